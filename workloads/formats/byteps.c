/* The files. See workloads/formats/byteps.h. */
#include "workloads/formats/byteps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/growing.h"

/* A begin or an end. */
typedef struct point {
  uint32_t process, name, thread;
  int64_t ns;
  bool ends;
} point;

typedef struct title {
  uint32_t process, text;
} title;

typedef struct reading {
  const char *path;
  pl_trace *trace;
  point *points;
  title *titles;
  uint32_t n_points, point_room, n_titles, title_room;
} reading;

static const char *text_of(const reading *at, uint32_t name) {
  return name == PL_NONE ? "" : at->trace->names[name];
}

static pl_code event(void *context, const pl_chrome_event *found, const pl_dpro_said *said, pl_error *error) {
  reading *at = context;
  if (found->phase == 'M' && strcmp(text_of(at, found->name), "process_name") == 0 && said->name != PL_NONE) {
    if (!PL_GROW(at->titles, at->n_titles, at->title_room)) return pl_fail_memory(error, at->path);
    at->titles[at->n_titles++] = (title){found->process, said->name};
  }
  if ((found->phase != 'B' && found->phase != 'E') || !found->has_start || found->name == PL_NONE) return PL_OK;
  if (!PL_GROW(at->points, at->n_points, at->point_room)) return pl_fail_memory(error, at->path);
  at->points[at->n_points++] =
      (point){found->process, found->name, found->thread, found->start_ns, found->phase == 'E'};
  return PL_OK;
}

/* By process and name: begins, then ends, each by date: files are joined from logs, begins from one, ends from another.
 */
static int by_name_and_date(const void *a_, const void *b_) {
  const point *a = a_, *b = b_;
  if (a->process != b->process) return a->process < b->process ? -1 : 1;
  if (a->name != b->name) return a->name < b->name ? -1 : 1;
  if (a->ends != b->ends) return a->ends ? 1 : -1;
  return (a->ns > b->ns) - (a->ns < b->ns);
}

static const char *title_of(const reading *at, uint32_t process) {
  for (uint32_t t = at->n_titles; t-- > 0;)
    if (at->titles[t].process == process) return text_of(at, at->titles[t].text);
  return "";
}

/* "Comm.TENSOR.PUSH", or without the first word: the tensor's name and where the last word begins; PL_NONE: it is none,
 * or no memory. */
static uint32_t tensor_of(const reading *at, uint32_t name, const char **word) {
  const char *text = text_of(at, name), *last = strrchr(text, '.'), *first = strchr(text, '.');
  if (last == NULL || last == text) return PL_NONE;
  size_t from = first < last ? (size_t)(first + 1 - text) : 0, size = (size_t)(last - text) - from;
  *word = last + 1;
  return pl_trace_name(at->trace, text + from, size);
}

/* False: no memory. */
typedef bool (*take_pair)(pl_byteps *own, const reading *at, const char *process, const point *begin, const point *end);

static bool take_message(pl_byteps *own, const reading *at, const char *process, const point *begin, const point *end) {
  char from[8], to[8];
  int a, b;
  const char *word;
  if (sscanf(process, " %7[a-z]_%d -> %7[a-z]_%d", from, &a, to, &b) != 4 || a < 0 || b < 0 || a > 99999 || b > 99999)
    return true;
  bool sends = strcmp(from, "worker") == 0 && strcmp(to, "server") == 0;
  if (!sends && (strcmp(from, "server") != 0 || strcmp(to, "worker") != 0)) return true;
  uint32_t tensor = tensor_of(at, begin->name, &word);
  if (tensor == PL_NONE) return at->trace->texts.failed ? false : true;
  bool push = strcmp(word, "PUSH") == 0;
  if (!push && strcmp(word, "PULL") != 0) return true;
  if (!PL_GROW(own->messages, own->n_messages, own->message_room)) return false;
  int kind = push ? (sends ? PL_DPRO_PUSH : PL_DPRO_PUSHED) : (sends ? PL_DPRO_PULL : PL_DPRO_PULLED);
  int32_t worker = sends ? a : b, server = sends ? b : a;
  own->messages[own->n_messages++] =
      (pl_byteps_message){tensor, worker, server, (uint8_t)kind, begin->ns, end->ns, -1, 0, false};
  return true;
}

static bool take_work(pl_byteps *own, const reading *at, const char *process, const point *begin, const point *end) {
  int server;
  const char *word;
  if (sscanf(process, " server_%d", &server) != 1 || server < 0 || server > 99999) return true;
  uint32_t tensor = tensor_of(at, begin->name, &word);
  if (tensor == PL_NONE) return at->trace->texts.failed ? false : true;
  if (strcmp(word, "COPY_FIRST") != 0 && strcmp(word, "SUM") != 0 && strcmp(word, "COPY_MERGED") != 0) return true;
  if (!PL_GROW(own->works, own->n_works, own->work_room)) return false;
  own->works[own->n_works++] = (pl_byteps_work){tensor, begin->name, begin->thread,
                                                server, begin->ns,   end->ns > begin->ns ? end->ns : begin->ns};
  return true;
}

/* The n-th begin of a name ends with its n-th end. */
static pl_code pair(pl_byteps *own, reading *at, take_pair take, pl_error *error) {
  qsort(at->points, at->n_points, sizeof *at->points, by_name_and_date);
  for (uint32_t a = 0, b; a < at->n_points; a = b) {
    uint32_t n_begun = 0;
    for (b = a;
         b < at->n_points && at->points[b].process == at->points[a].process && at->points[b].name == at->points[a].name;
         b++)
      n_begun += !at->points[b].ends;
    uint32_t n_ended = b - a - n_begun, n = n_begun < n_ended ? n_begun : n_ended;
    own->n_unpaired += n_begun + n_ended - 2 * n;
    for (uint32_t k = 0; k < n; k++) {
      const point *begin = &at->points[a + k], *end = &at->points[a + n_begun + k];
      bool apart = end->ns - begin->ns > PL_TRACE_SPAN_NS || begin->ns - end->ns > PL_TRACE_SPAN_NS;
      own->n_unpaired += 2 * apart;
      if (!apart && !take(own, at, title_of(at, begin->process), begin, end)) return pl_fail_memory(error, at->path);
    }
  }
  return PL_OK;
}

static pl_code finish(pl_byteps *own, reading *at, take_pair take, pl_code code, const pl_json_end *end,
                      pl_error *error) {
  if (code == PL_OK) {
    own->is_cut |= end->is_cut || end->is_gzip_cut;
    if (at->n_points > 0) code = pair(own, at, take, error);
  }
  free(at->points);
  free(at->titles);
  return code;
}

static pl_code read_file(pl_byteps *own, const char *path, take_pair take, pl_trace *trace, pl_error *error) {
  reading at = {.path = path, .trace = trace};
  const pl_dpro_reader reader = {trace, event, &at};
  pl_json_end end;
  pl_code code = pl_dpro_events_read(path, &reader, &end, error);
  return finish(own, &at, take, code, &end, error);
}

static int by_link(const void *a_, const void *b_) {
  const pl_byteps_message *a = a_, *b = b_;
  if (a->server != b->server) return a->server < b->server ? -1 : 1;
  if (a->worker != b->worker) return a->worker < b->worker ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

/* Half of what the fastest messages of both directions of a link differ by. One direction alone says nothing. */
static void compare_clocks(pl_byteps *own) {
  for (uint32_t a = 0, b; a < own->n_messages; a = b) {
    int64_t least[2] = {INT64_MAX, INT64_MAX};
    for (b = a; b < own->n_messages && own->messages[b].server == own->messages[a].server &&
                own->messages[b].worker == own->messages[a].worker;
         b++) {
      const pl_byteps_message *m = &own->messages[b];
      int there = m->kind == PL_DPRO_PUSH || m->kind == PL_DPRO_PULL;
      if (m->end_ns - m->start_ns < least[there]) least[there] = m->end_ns - m->start_ns;
    }
    bool both = least[0] != INT64_MAX && least[1] != INT64_MAX;
    for (uint32_t k = a; k < b && both; k++)
      own->messages[k].ahead_ns = least[1] / 2 - least[0] / 2;
  }
}

static pl_code judge(pl_byteps *own, const char *name, pl_error *error) {
  if (own->n_messages > 1) qsort(own->messages, own->n_messages, sizeof *own->messages, by_link);
  compare_clocks(own);
  if (own->n_messages > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: no push or pull in it (processes 'worker_0 -> server_0', names that end in .PUSH or .PULL)",
                 name);
}

pl_code pl_byteps_load(pl_byteps *own, const char *path, pl_trace *trace, pl_error *error) {
  static const char links[] = "comm_timeline.json";
  char *servers = NULL;
  if (asprintf(&servers, "%.*sserver_timeline.json", (int)(strlen(path) - (sizeof links - 1)), path) < 0)
    return pl_fail_memory(error, path);
  pl_code code = read_file(own, path, take_message, trace, error);
  if (code == PL_OK) code = judge(own, path, error);
  if (code == PL_OK && access(servers, R_OK) == 0)
    code = read_file(own, servers, take_work, trace, error);
  else if (code == PL_OK)
    pl_trace_add_note(trace, "%s: no server_timeline.json beside it: what servers did with what they got is not known",
                      path);
  free(servers);
  return code;
}

pl_code pl_byteps_parse(pl_byteps *own, const char *name, const char *links, size_t links_size, const char *servers,
                        size_t servers_size, pl_trace *trace, pl_error *error) {
  const char *texts[] = {links, servers};
  const size_t sizes[] = {links_size, servers_size};
  for (int k = 0; k < 2 && texts[k] != NULL; k++) {
    reading at = {.path = name, .trace = trace};
    const pl_dpro_reader reader = {trace, event, &at};
    pl_json_end end;
    pl_code code = pl_dpro_events_parse(name, texts[k], sizes[k], &reader, &end, error);
    PL_TRY(finish(own, &at, k == 0 ? take_message : take_work, code, &end, error));
  }
  return judge(own, name, error);
}

void pl_byteps_release(pl_byteps *own) {
  free(own->messages);
  free(own->works);
  *own = (pl_byteps){.n_messages = 0};
}
