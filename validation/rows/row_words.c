/* Words of a row's columns (see validation/rows/row.h). One table per column: a word that is not in it makes the row
 * not expressed, with the nearest one that is. Case and blanks around a word do not count. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/words.h"
#include "validation/rows/row.h"

enum { WORDS_MAX = 24, WORD_BYTES = 64 };

typedef struct meaning {
  const char *word;
  int value;
} meaning;

typedef struct column_words {
  const char *column;
  const meaning *words;
  int n;
} column_words;

#define WORDS(name, list)                                                                                              \
  { name, list, sizeof(list) / sizeof *(list) }

static const meaning mlp_words[] = {
    {"gated", true},      {"swiglu", true},     {"geglu", true},     {"reglu", true},        {"glu", true},
    {"gated-silu", true}, {"gated-gelu", true}, {"2-matrix", false}, {"ungated", false},     {"plain", false},
    {"standard", false},  {"gelu", false},      {"relu", false},     {"squared-relu", false}};
static const column_words mlp = WORDS("mlp_type", mlp_words);

static const meaning schedule_words[] = {{"1f1b", PL_SCHEDULE_1F1B},
                                         {"non-interleaved", PL_SCHEDULE_1F1B},
                                         {"pipedream-flush", PL_SCHEDULE_1F1B},
                                         {"dapple", PL_SCHEDULE_1F1B},
                                         {"gpipe", PL_SCHEDULE_GPIPE},
                                         {"afab", PL_SCHEDULE_GPIPE},
                                         {"f-then-b", PL_SCHEDULE_GPIPE},
                                         {"interleaved", PL_SCHEDULE_INTERLEAVED},
                                         {"interleaved 1f1b", PL_SCHEDULE_INTERLEAVED},
                                         {"interleaved-1f1b", PL_SCHEDULE_INTERLEAVED},
                                         {"interleaved1f1b", PL_SCHEDULE_INTERLEAVED},
                                         {"1f1b-interleaved", PL_SCHEDULE_INTERLEAVED},
                                         {"1f1b-int", PL_SCHEDULE_INTERLEAVED},
                                         {"vpp", PL_SCHEDULE_INTERLEAVED},
                                         {"fifo", PL_SCHEDULE_FIFO},
                                         {"breadth-first", PL_SCHEDULE_BREADTH_FIRST},
                                         {"zb-h1", PL_SCHEDULE_ZB_H1},
                                         {"zbh1", PL_SCHEDULE_ZB_H1},
                                         {"zb-h2", PL_SCHEDULE_ZB_H2},
                                         {"zbh2", PL_SCHEDULE_ZB_H2},
                                         {"zb-v", PL_SCHEDULE_ZB_V},
                                         {"zbv", PL_SCHEDULE_ZB_V}};
static const column_words schedules = WORDS("schedule", schedule_words);

static const meaning tied_words[] = {{"tied", true},    {"true", true},   {"1", true},  {"yes", true},
                                     {"untied", false}, {"false", false}, {"0", false}, {"no", false}};
static const column_words tied = WORDS("tied_embeddings", tied_words);

static const meaning norm_words[] = {{"fused", true},  {"compiled", true}, {"apex", true},  {"te", true},
                                     {"eager", false}, {"unfused", false}, {"torch", false}};
static const column_words norms = WORDS("norms", norm_words);

static const meaning reshard_words[] = {{"true", true},   {"1", true},      {"yes", true},
                                        {"always", true}, {"false", false}, {"0", false},
                                        {"no", false},    {"never", false}, {"default", -1}};
static const column_words reshards = WORDS("reshard_after_forward", reshard_words);

/* Stages of ZeRO; -1: nothing is said. A number above 0 is one of ranks. */
static const meaning fsdp_words[] = {{"FULL_SHARD", 3},
                                     {"FSDP", 3},
                                     {"FSDP1", 3},
                                     {"FSDP2", 3},
                                     {"ZeRO-3", 3},
                                     {"ZERO3", 3},
                                     {"HSDP", 3},
                                     {"HYBRID_SHARD", 3},
                                     {"on", 3},
                                     {"yes", 3},
                                     {"true", 3},
                                     {"SHARD_GRAD_OP", 2},
                                     {"ZeRO-2", 2},
                                     {"ZERO2", 2},
                                     {"HYBRID_SHARD_ZERO2", 2},
                                     {"_HYBRID_SHARD_ZERO2", 2},
                                     {"ZeRO-1", 1},
                                     {"ZERO1", 1},
                                     {"NO_SHARD", 0},
                                     {"/", -1},
                                     {"no", -1},
                                     {"false", -1},
                                     {"off", -1},
                                     {"ddp", -1}};
static const column_words fsdp = WORDS("fsdp", fsdp_words);

static void trim(const char *text, char word[WORD_BYTES]) {
  text += strspn(text, " ");
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == ' ')
    length--;
  snprintf(word, WORD_BYTES, "%.*s", (int)(length < WORD_BYTES ? length : WORD_BYTES - 1), text);
}

static bool find_word(const column_words *table, const char *text, int *value) {
  char word[WORD_BYTES];
  trim(text, word);
  for (int i = 0; i < table->n; i++)
    if (strcasecmp(table->words[i].word, word) == 0) {
      *value = table->words[i].value;
      return true;
    }
  return false;
}

static pl_code refuse_word(const column_words *table, const char *text, pl_error *error) {
  const char *names[WORDS_MAX + 1] = {NULL};
  char list[PL_ERROR_MESSAGE_BYTES / 2], word[WORD_BYTES];
  for (int i = 0; i < table->n && i < WORDS_MAX; i++)
    names[i] = table->words[i].word;
  trim(text, word);
  int nearest = pl_words_nearest(names, word);
  pl_words_list(names, list, sizeof list);
  return pl_fail(error, PL_UNSUPPORTED, "%s: '%s' is unknown%s%s%s; known are %s", table->column, word,
                 nearest >= 0 ? ", did you mean '" : "", nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "'?" : "",
                 list);
}

static pl_code check_word(const column_words *table, const char *text, pl_error *error) {
  int value;
  return text[strspn(text, " ")] == '\0' || find_word(table, text, &value) ? PL_OK : refuse_word(table, text, error);
}

static bool is_number(const char *text) {
  return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* ---- schedules ---- */

/* Names of schedules that change the time, as people write them: in a text that is more than such a name, or the name
 * of one that nothing here plays. */
static const char *find_foreign_schedule(const char *text) {
  static const char *const names[] = {
      "ZB-1p",       "ZB-2p",       "ZB-H1",      "ZB-H2",    "ZBV",     "ZB-V",   "ZB1P",   "ZB2P",  "ZBH1",   "ZBH2",
      "zero bubble", "zero-bubble", "zerobubble", "DualPipe", "Chimera", "Hanayo", "V-Half", "V-Min", "BitPipe"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (pl_row_mentions(text, names[i])) return names[i];
  return NULL;
}

static pl_code check_schedule(const pl_measured_row *row, pl_error *error) {
  const char *const texts[] = {row->schedule, row->framework, row->notes};
  int schedule = PL_SCHEDULE_1F1B;
  bool is_said = find_word(&schedules, row->schedule, &schedule);
  for (int i = is_said ? 1 : 0; i < 3; i++) {
    const char *name = find_foreign_schedule(texts[i]);
    if (name != NULL)
      return pl_fail(error, PL_UNSUPPORTED,
                     "schedule: '%s' is not simulated; gpipe, fifo, 1f1b, interleaved, breadth-first, and zb-h1, zb-h2 "
                     "and zb-v in the column schedule are",
                     name);
  }
  PL_TRY(check_word(&schedules, row->schedule, error));
  if (!is_said || row->pp <= 1) return PL_OK;
  bool is_v = schedule == PL_SCHEDULE_ZB_V, is_chunked = pl_schedule_is_chunked((pl_schedule_kind)schedule);
  if (is_chunked && row->vpp < 2) return pl_fail(error, PL_UNSUPPORTED, "not stated: vpp, of an interleaved schedule");
  if (!is_chunked && schedule != PL_SCHEDULE_1F1B && row->vpp > (is_v ? 2 : 1))
    return pl_fail(error, PL_UNSUPPORTED, "schedule: '%.40s' has %s per stage, not vpp %d", row->schedule,
                   is_v ? "two chunks" : "one chunk", (int)row->vpp);
  return PL_OK;
}

int32_t pl_row_chunks(const pl_measured_row *row, int32_t otherwise) {
  int schedule = PL_SCHEDULE_1F1B;
  if (row->pp <= 1) return 1;
  find_word(&schedules, row->schedule, &schedule);
  if (schedule <= PL_SCHEDULE_INTERLEAVED || pl_schedule_is_chunked((pl_schedule_kind)schedule)) return otherwise;
  return schedule == PL_SCHEDULE_ZB_V ? 2 : 1;
}

pl_schedule_kind pl_row_schedule(const pl_measured_row *row, int32_t vpp) {
  int schedule = PL_SCHEDULE_1F1B;
  if (!find_word(&schedules, row->schedule, &schedule) || schedule <= PL_SCHEDULE_INTERLEAVED || row->pp <= 1)
    return vpp > 1 ? PL_SCHEDULE_INTERLEAVED : schedule == PL_SCHEDULE_GPIPE ? PL_SCHEDULE_GPIPE : PL_SCHEDULE_1F1B;
  return (pl_schedule_kind)schedule;
}

/* ---- the others ---- */

static pl_code check_resharding(const pl_measured_row *row, pl_error *error) {
  int value = -1;
  PL_TRY(check_word(&reshards, row->reshard_after_forward, error));
  find_word(&reshards, row->reshard_after_forward, &value);
  bool on = value == 1 || pl_row_mentions(row->notes, "reshard_after_forward=true") ||
            pl_row_mentions(row->framework, "reshard_after_forward=true");
  if (!on || row->pp <= 1) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "reshard_after_forward: on behind a pipeline, which gathers weights for every microbatch");
}

pl_code pl_row_check_words(const pl_measured_row *row, pl_error *error) {
  PL_TRY(check_word(&mlp, row->mlp_type, error));
  PL_TRY(check_schedule(row, error));
  PL_TRY(check_word(&tied, row->tied_embeddings, error));
  PL_TRY(check_word(&norms, row->norms, error));
  PL_TRY(check_resharding(row, error));
  if (!is_number(row->fsdp)) PL_TRY(check_word(&fsdp, row->fsdp, error));
  if (row->etp > 1 && row->etp != row->tp)
    return pl_fail(error, PL_UNSUPPORTED,
                   "etp: %" PRId64 ": experts are cut over all tp %" PRId64 " tensor ranks or none", row->etp, row->tp);
  return PL_OK;
}

/* -1: not stated. */
static int flag_of(const column_words *table, const char *text) {
  int value = -1;
  find_word(table, text, &value);
  return value;
}

int pl_row_gated(const pl_measured_row *row) {
  return flag_of(&mlp, row->mlp_type);
}

int pl_row_tied(const pl_measured_row *row) {
  return flag_of(&tied, row->tied_embeddings);
}

int pl_row_fused_norms(const pl_measured_row *row) {
  return flag_of(&norms, row->norms);
}

int pl_row_resharding(const pl_measured_row *row) {
  return flag_of(&reshards, row->reshard_after_forward);
}

/* "DeepSpeed ZeRO-3", "zero stage 2"; -1: no such words ("zero bubble"). */
static int sharding_of_name(const char *framework) {
  for (const char *at = framework; (at = strcasestr(at, "zero")) != NULL;) {
    at += strlen("zero");
    at += strspn(at, " -_");
    if (strncasecmp(at, "stage", strlen("stage")) == 0) at += strlen("stage");
    at += strspn(at, " -_");
    if (*at >= '1' && *at <= '3' && !isdigit((unsigned char)at[1])) return *at - '0';
  }
  return -1;
}

int pl_row_sharding(const pl_measured_row *row) {
  /* Megatron's switch. */
  static const char *const shares_optimizer[] = {"use-distributed-optimizer", "use_distributed_optimizer",
                                                 "with distributed optimizer", NULL};
  if (row->fsdp[strspn(row->fsdp, " ")] == '\0') {
    int named = sharding_of_name(row->framework);
    return named < 0 && pl_row_says_one_of(row, shares_optimizer) ? 1 : named;
  }
  if (is_number(row->fsdp)) return strtol(row->fsdp, NULL, 10) > 0 ? 3 : -1;
  return flag_of(&fsdp, row->fsdp);
}
