/* What a collective of a Kineto trace is: versions differ in where they say it (on the kernel, on record_param_comms,
 * only in the name of an annotation), so all of them are asked, the most exact first. See
 * workloads/formats/kineto_rank.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/kineto_rank.h"

typedef struct kind_word {
  const char *word; /* letters only, small */
  pl_trace_message_kind kind;
} kind_word;

/* Longer words before those that they begin with. */
static const kind_word kind_words[] = {
    {"allreduce", PL_TRACE_ALL_REDUCE}, {"reducescatter", PL_TRACE_REDUCE_SCATTER}, {"allgather", PL_TRACE_ALL_GATHER},
    {"broadcast", PL_TRACE_BROADCAST},  {"alltoall", PL_TRACE_ALL_TO_ALL},          {"barrier", PL_TRACE_BARRIER},
    {"sendrecv", PL_TRACE_ALL_TO_ALL},  {"send", PL_TRACE_POINT_TO_POINT},          {"recv", PL_TRACE_POINT_TO_POINT},
    {"reduce", PL_TRACE_REDUCE},
};

pl_trace_message_kind pl_kineto_message_kind(const char *name, bool *receives) {
  char letters[64];
  size_t n = 0;
  for (; *name != '\0' && n + 1 < sizeof letters; name++)
    if (isalpha((unsigned char)*name)) letters[n++] = (char)tolower((unsigned char)*name);
  letters[n] = '\0';
  for (size_t w = 0; w < sizeof kind_words / sizeof *kind_words; w++)
    if (strstr(letters, kind_words[w].word) != NULL) {
      *receives = strcmp(kind_words[w].word, "recv") == 0;
      return kind_words[w].kind;
    }
  return PL_TRACE_OTHER_COLLECTIVE;
}

static int type_bytes(const pl_trace *trace, uint32_t type) {
  static const struct {
    const char *word;
    int bytes;
  } types[] = {{"double", 8},   {"long", 8},    {"int64", 8}, {"float64", 8}, {"half", 2},
               {"bfloat16", 2}, {"float16", 2}, {"short", 2}, {"float8", 1},  {"char", 1},
               {"byte", 1},     {"int8", 1},    {"bool", 1},  {"float", 4},   {"int", 4}};
  if (type == PL_NONE) return 0;
  char word[32];
  size_t n = 0;
  for (const char *c = trace->names[type]; *c != '\0' && n + 1 < sizeof word; c++)
    word[n++] = (char)tolower((unsigned char)*c);
  word[n] = '\0';
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    if (strstr(word, types[t].word) != NULL) return types[t].bytes;
  return 0;
}

static int64_t size_of(const pl_trace *trace, const pl_kineto_communication *says, pl_trace_message_kind kind) {
  int bytes = type_bytes(trace, says->type != PL_NONE ? says->type : says->input_type);
  int64_t in = says->in_elements, out = says->out_elements;
  /* The whole buffer: what a rank holds of it is a share with all-gather, the input with the others. */
  int64_t elements = kind == PL_TRACE_ALL_GATHER && out > 0 ? out : in > 0 ? in : says->input_elements;
  if (elements <= 0 && out > 0) elements = out;
  return bytes > 0 && elements > 0 && elements < ((int64_t)1 << 50) ? elements * bytes : -1;
}

/* "[0, 1, 2]", or "0 1 2". */
static uint32_t read_members(const char *text, int64_t *members, uint32_t most) {
  uint32_t n = 0;
  while (*text != '\0' && n < most) {
    if (!isdigit((unsigned char)*text)) {
      if (*text == '.') return 0; /* a list that was cut short: "[0, 1, ...]" */
      text++;
      continue;
    }
    char *end;
    members[n++] = strtoll(text, &end, 10);
    text = end;
  }
  return n;
}

static bool is_set(const int64_t *members, uint32_t n) {
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < a; b++)
      if (members[a] == members[b]) return false;
  return true;
}

static uint32_t find_group(pl_kineto_rank *own, const pl_kineto_communication *says) {
  enum { MOST = 1 << 14 };
  uint32_t name = says->group != PL_NONE ? says->group : pl_trace_name(own->trace, "", 0);
  int64_t *members = malloc(MOST * sizeof *members);
  if (members == NULL || name == PL_NONE) {
    free(members);
    return PL_NONE;
  }
  uint32_t n = says->ranks != PL_NONE ? read_members(own->trace->names[says->ranks], members, MOST) : 0;
  if (n == 0 || n > 4096 || !is_set(members, n)) { /* all ranks, as far as anything is known */
    int64_t world = own->kineto->world_size;
    n = 0;
    if (says->group_size <= 0 || world <= 0 || says->group_size == world)
      for (; n < MOST && n < world; n++)
        members[n] = n;
    own->n_assumed_group++;
  }
  uint32_t group = pl_trace_add_group(own->trace, name, members, n);
  free(members);
  return group;
}

uint32_t pl_kineto_message(pl_kineto_rank *own, const char *name, uint32_t communication, uint32_t around,
                           pl_trace_op_kind *kind) {
  static const pl_kineto_communication nothing = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, -1,      -1, -1,
                                                  -1,      -1,      -1,      -1,      PL_NONE, -1};
  const pl_kineto_communication *all = own->kineto->communications;
  const pl_kineto_communication *says = communication > 0 && all[communication - 1].collective != PL_NONE
                                            ? &all[communication - 1]
                                        : around > 0        ? &all[around - 1]
                                        : communication > 0 ? &all[communication - 1]
                                                            : &nothing;
  bool receives = false;
  const char *word = says->collective != PL_NONE ? own->trace->names[says->collective] : name;
  pl_trace_message message = {.kind = (uint8_t)pl_kineto_message_kind(word, &receives),
                              .group = PL_NONE,
                              .peer = -1,
                              .tag = PL_NONE,
                              .sequence = says->sequence};
  message.size_bytes = size_of(own->trace, says, message.kind);
  int64_t peer = receives ? says->source : says->destination;
  if (message.kind == PL_TRACE_POINT_TO_POINT && (peer < 0 || peer == own->number || peer > INT32_MAX))
    message.kind = PL_TRACE_OTHER_COLLECTIVE; /* nobody says with whom: counted among its group's */
  *kind = PL_TRACE_COLLECTIVE;
  if (message.kind == PL_TRACE_POINT_TO_POINT) {
    *kind = receives ? PL_TRACE_RECEIVE : PL_TRACE_SEND;
    message.peer = (int32_t)peer;
  } else {
    message.group = find_group(own, says);
    if (message.group == PL_NONE) return PL_NONE;
  }
  return pl_trace_add_message(own->trace, message);
}
