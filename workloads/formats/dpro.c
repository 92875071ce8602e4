/* The files of a rank of dPRO's. See workloads/formats/dpro.h. */
#include "workloads/formats/dpro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/growing.h"
#include "workloads/formats/byteps.h"

static const char *text_of(const pl_dpro *own, uint32_t name) {
  return name == PL_NONE ? "" : own->trace->names[name];
}

static pl_code add(pl_dpro *own, pl_dpro_event event, pl_error *error) {
  if (event.duration_ns < 0) {
    own->n_negative++;
    event.duration_ns = 0;
  }
  event.op = PL_NONE;
  event.peer = -1;
  if (!PL_GROW(own->events, own->n_events, own->event_room)) return pl_fail_memory(error, own->path);
  own->events[own->n_events++] = event;
  return PL_OK;
}

/* ---- names of processes and threads (phase M) ---- */

static pl_code add_title(pl_dpro *own, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error) {
  bool of_thread = strcmp(text_of(own, event->name), "thread_name") == 0;
  if ((!of_thread && strcmp(text_of(own, event->name), "process_name") != 0) || said->name == PL_NONE) return PL_OK;
  if (!PL_GROW(own->processes, own->n_processes, own->process_room)) return pl_fail_memory(error, own->path);
  own->processes[own->n_processes++] =
      (pl_dpro_process){event->process, said->name, of_thread ? event->thread : PL_NONE};
  return PL_OK;
}

static const char *title_of(const pl_dpro *own, uint32_t process, uint32_t thread) {
  for (uint32_t p = own->n_processes; p-- > 0;)
    if (own->processes[p].process == process && own->processes[p].thread == thread)
      return text_of(own, own->processes[p].title);
  return "";
}

/* ---- tensors: "3+1_0" as "1+3" ---- */

static int by_number(const void *a, const void *b) {
  long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

/* PL_NONE: no numbers, or no memory, which `error` says. */
static uint32_t tensors_of(pl_dpro *own, const char *text, pl_error *error) {
  enum { MOST = 1024 };
  long ids[MOST];
  char *end, out[MOST * 12];
  size_t n = 0, at = 0;
  for (; n < MOST; text = end + 1) {
    ids[n] = strtol(text, &end, 10);
    if (end == text || ids[n] < 0 || ids[n] > 999999999) return PL_NONE;
    n++;
    if (*end != '+') break;
  }
  if (n == MOST || (*end != '\0' && *end != '_' && *end != '.')) return PL_NONE;
  qsort(ids, n, sizeof *ids, by_number);
  for (size_t k = 0; k < n; k++)
    at += (size_t)snprintf(out + at, sizeof out - at, "%s%ld", k > 0 ? "+" : "", ids[k]);
  uint32_t name = pl_trace_name(own->trace, out, at);
  if (name == PL_NONE) pl_fail_memory(error, own->path);
  return name;
}

/* ---- TensorFlow's profile ---- */

static pl_code computing_event(void *context, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error) {
  pl_dpro *own = context;
  if (event->phase == 'M') return add_title(own, event, said, error);
  if (event->phase != 'X' || strstr(title_of(own, event->process, PL_NONE), "/device:GPU") == NULL ||
      strstr(title_of(own, event->process, event->thread), "TensorFlow Ops") == NULL)
    return PL_OK;
  if (!event->has_start || !event->has_duration) {
    own->n_without_time++;
    return PL_OK;
  }
  const char *name = text_of(own, said->long_name != PL_NONE ? said->long_name : event->name);
  static const char call[] = "StatefulPartitionedCall/"; /* a function around all of them */
  if (strncmp(name, call, sizeof call - 1) == 0) name += sizeof call - 1;
  uint32_t op = pl_trace_name(own->trace, name, strcspn(name, ":")); /* "op_name:OpType" */
  if (op == PL_NONE) return pl_fail_memory(error, own->path);
  return add(own,
             (pl_dpro_event){.start_ns = event->start_ns,
                             .duration_ns = event->duration_ns,
                             .step = said->group,
                             .name = op,
                             .tensors = PL_NONE,
                             .thread = event->thread != PL_NONE ? event->thread : op,
                             .kind = PL_DPRO_COMPUTING},
             error);
}

/* ---- Horovod's timeline: begin and end by process, which is a group of tensors ---- */

static pl_code end_phase(pl_dpro *own, const pl_dpro_phase *phase, int64_t end_ns, pl_error *error) {
  const char *title = title_of(own, phase->process, PL_NONE), *name = text_of(own, phase->name);
  bool sync = strstr(title, "Sync") != NULL;
  int kind = sync                                            ? PL_DPRO_SYNC
             : strcmp(name, "MEMCPY_IN_FUSION_BUFFER") == 0  ? PL_DPRO_COPY_IN
             : strcmp(name, "MEMCPY_OUT_FUSION_BUFFER") == 0 ? PL_DPRO_COPY_OUT
             : strcmp(name, "NCCL_ALLREDUCE") == 0           ? PL_DPRO_ALL_REDUCE
                                                             : -1;
  const char *dot = strchr(title, '.');
  if (kind < 0 || (!sync && dot == NULL)) return PL_OK;
  uint32_t tensors = tensors_of(own, sync ? name : dot + 1, error);
  if (tensors == PL_NONE) return error->code; /* barriers and broadcasts have no numbers */
  return add(own,
             (pl_dpro_event){.start_ns = phase->start_ns,
                             .duration_ns = end_ns - phase->start_ns,
                             .step = -1,
                             .name = tensors,
                             .tensors = tensors,
                             .kind = (uint8_t)kind},
             error);
}

static pl_code timeline_event(void *context, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error) {
  enum { MOST_OPEN = 4096 };
  pl_dpro *own = context;
  if (event->phase == 'M') return add_title(own, event, said, error);
  if ((event->phase != 'B' && event->phase != 'E') || !event->has_start) return PL_OK;
  if (event->phase == 'B') {
    if (own->n_open >= MOST_OPEN)
      return pl_fail(error, PL_BAD_INPUT, "%s: more than %d phases are begun and not ended", own->path, MOST_OPEN);
    if (!PL_GROW(own->open, own->n_open, own->open_room)) return pl_fail_memory(error, own->path);
    own->open[own->n_open++] = (pl_dpro_phase){event->process, event->name, event->start_ns};
    return PL_OK;
  }
  for (uint32_t k = own->n_open; k-- > 0;)
    if (own->open[k].process == event->process) {
      pl_dpro_phase phase = own->open[k];
      memmove(&own->open[k], &own->open[k + 1], (own->n_open - k - 1) * sizeof *own->open);
      own->n_open--;
      return end_phase(own, &phase, event->start_ns, error);
    }
  own->n_unpaired++;
  return PL_OK;
}

/* ---- what the patched NCCL sent and received ---- */

static pl_code message_event(void *context, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error) {
  pl_dpro *own = context;
  const char *name = text_of(own, event->name), *dot = strchr(name, '.');
  bool sends = dot != NULL && strstr(dot, ".SEND") != NULL, receives = dot != NULL && strstr(dot, ".RECV") != NULL;
  if (event->phase != 'X' || sends == receives) return PL_OK;
  if (!event->has_start || !event->has_duration || said->chunk < 0) {
    own->n_without_time++;
    return PL_OK;
  }
  const char *behind = strstr(dot, ">>"); /* "<any>.<<digits>>ids.SEND" */
  uint32_t tensors = tensors_of(own, behind != NULL ? behind + 2 : dot + 1, error);
  if (tensors == PL_NONE) return error->code;
  own->has_chunks = true;
  return add(own,
             (pl_dpro_event){.start_ns = event->start_ns,
                             .duration_ns = event->duration_ns,
                             .step = -1,
                             .name = tensors,
                             .tensors = tensors,
                             .loop = (int32_t)said->loop,
                             .channel = (int32_t)said->channel,
                             .chunk = (int32_t)said->chunk,
                             .slice = (int32_t)said->slice,
                             .kind = sends ? PL_DPRO_SEND : PL_DPRO_RECEIVE},
             error);
}

/* ---- rings: {"RealRing": {"0": "3[3000] -> 0[2000] via ..,0[2000] -> 1[3000] .."}, "Tree": {"-1": ..}} ---- */

typedef struct ring_reading {
  pl_dpro *own;
  uint32_t depth;
  bool in_rings, in_trees;
  int32_t channel;
} ring_reading;

static pl_code add_hops(ring_reading *at, const char *text, pl_error *error) {
  pl_dpro *own = at->own;
  pl_dpro_ring ring = {at->channel, -1, -1};
  for (const char *hop = text; hop != NULL; hop = strchr(hop, ',')) {
    long long from = -1, to = -1;
    hop += *hop == ',';
    const char *arrow = strstr(hop, "->"), *comma = strchr(hop, ',');
    if (arrow == NULL || (comma != NULL && arrow > comma)) continue;
    if (sscanf(hop, " %lld[", &from) != 1 || sscanf(arrow + 2, " %lld[", &to) != 1) continue;
    if (from == own->number && to >= 0 && to <= INT32_MAX) ring.next = to;
    if (to == own->number && from >= 0 && from <= INT32_MAX) ring.previous = from;
  }
  if (!PL_GROW(own->rings, own->n_rings, own->ring_room)) return pl_fail_memory(error, own->path);
  own->rings[own->n_rings++] = ring;
  return PL_OK;
}

static pl_code ring_token(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  ring_reading *at = context;
  if (token == PL_JSON_OPEN_OBJECT || token == PL_JSON_OPEN_ARRAY) at->depth++;
  if (token == PL_JSON_CLOSE_OBJECT || token == PL_JSON_CLOSE_ARRAY) at->depth--;
  if (token == PL_JSON_KEY && at->depth == 1) {
    at->in_rings = size == 8 && memcmp(text, "RealRing", 8) == 0;
    at->in_trees = size >= 4 && memcmp(text, "Tree", 4) == 0; /* Tree; NCCL itself says Trees */
  }
  int64_t channel;
  if (token == PL_JSON_KEY && at->depth == 2)
    at->channel = pl_fixed_point(text, size, 0, &channel) && channel >= 0 && channel < 1024 ? (int32_t)channel : -1;
  bool of_ring = at->in_rings && at->channel >= 0;
  if (token != PL_JSON_STRING || at->depth != 2 || !(of_ring || at->in_trees)) return PL_OK;
  char *copy = strndup(text, size);
  if (copy == NULL) return pl_fail_memory(error, at->own->path);
  pl_code code = of_ring                              ? add_hops(at, copy, error)
                 : pl_dpro_trees_parse(at->own, copy) ? PL_OK
                                                      : pl_fail_memory(error, at->own->path);
  free(copy);
  return code;
}

/* ---- the folder ---- */

/* FOLDER/name or, if there is only that, FOLDER/name.gz; NULL: neither (or no memory). */
static char *find_file(const char *folder, const char *name) {
  char *path = NULL;
  for (int gz = 0; gz < 2; gz++) {
    if (asprintf(&path, "%s/%s%s", folder, name, gz ? ".gz" : "") < 0) return NULL;
    if (access(path, R_OK) == 0) return path;
    free(path);
  }
  return NULL;
}

bool pl_dpro_is_rank(const char *folder) {
  static const char *const beside[] = {"comm.json", "comm_detail.json", "metadata.json", "gradient_name_list.json"};
  char *path = find_file(folder, "trace.json");
  bool found = false;
  for (size_t k = 0; path != NULL && !found && k < sizeof beside / sizeof *beside; k++) {
    char *other = find_file(folder, beside[k]);
    found = other != NULL;
    free(other);
  }
  free(path);
  return found;
}

typedef pl_code (*take_event)(void *context, const pl_chrome_event *event, const pl_dpro_said *said, pl_error *error);

static pl_code read_events(pl_dpro *own, const char *name, take_event take, pl_error *error) {
  char *path = find_file(own->path, name);
  if (path == NULL && own->is_byteps && take != computing_event) return PL_OK; /* these are Horovod's */
  if (path == NULL) {
    pl_trace_add_note(own->trace, "%s: rank %lld: has no %s", own->path, (long long)own->number, name);
    return PL_OK;
  }
  const pl_dpro_reader reader = {own->trace, take, own};
  pl_json_end end;
  pl_code code = pl_dpro_events_read(path, &reader, &end, error);
  own->is_cut |= code == PL_OK && (end.is_cut || end.is_gzip_cut);
  free(path);
  return code;
}

static pl_code read_rings(pl_dpro *own, pl_error *error) {
  char *path = find_file(own->path, "nccl_rank_graph.json");
  ring_reading at = {.own = own};
  const pl_json_reader reader = {ring_token, NULL, &at};
  pl_json_end end;
  pl_code code = path == NULL ? PL_OK : pl_json_events_read(path, &reader, &end, error);
  free(path);
  return code;
}

static pl_code read_folder(pl_dpro *own, pl_byteps *servers, int32_t worker, pl_error *error) {
  own->is_byteps = servers != NULL;
  PL_TRY(read_events(own, "trace.json", computing_event, error));
  own->n_processes = 0; /* each file numbers its own */
  PL_TRY(read_events(own, "comm.json", timeline_event, error));
  PL_TRY(read_events(own, "comm_detail.json", message_event, error));
  PL_TRY(read_rings(own, error));
  if (servers != NULL && worker >= 0) PL_TRY(pl_byteps_add_worker(servers, worker, own, error));
  return pl_dpro_finish(own, error);
}

static void release(pl_dpro *own) {
  free(own->events);
  free(own->open);
  free(own->processes);
  free(own->rings);
  free(own->trees);
}

pl_code pl_dpro_load(const char *folder, int64_t number, pl_byteps *servers, int32_t worker, pl_trace *trace,
                     pl_error *error) {
  pl_dpro own = {.path = folder, .number = number, .trace = trace};
  pl_code code = read_folder(&own, servers, worker, error);
  release(&own);
  return code;
}

static pl_code parse_events(pl_dpro *own, const char *text, size_t size, take_event take, pl_error *error) {
  const pl_dpro_reader reader = {own->trace, take, own};
  pl_json_end end;
  own->n_processes = 0;
  if (text == NULL) return PL_OK;
  PL_TRY(pl_dpro_events_parse(own->path, text, size, &reader, &end, error));
  own->is_cut |= end.is_cut;
  return PL_OK;
}

pl_code pl_dpro_parse(const char *name, const pl_dpro_texts *texts, int64_t number, pl_byteps *servers, int32_t worker,
                      pl_trace *trace, pl_error *error) {
  pl_dpro own = {.path = name, .number = number, .trace = trace};
  ring_reading at = {.own = &own};
  const pl_json_reader rings = {ring_token, NULL, &at};
  pl_json_end end;
  pl_code code = parse_events(&own, texts->computing, texts->computing_size, computing_event, error);
  if (code == PL_OK) code = parse_events(&own, texts->timeline, texts->timeline_size, timeline_event, error);
  if (code == PL_OK) code = parse_events(&own, texts->messages, texts->messages_size, message_event, error);
  if (code == PL_OK && texts->rings != NULL)
    code = pl_json_events_parse(name, texts->rings, texts->rings_size, &rings, &end, error);
  if (code == PL_OK && servers != NULL && worker >= 0) code = pl_byteps_add_worker(servers, worker, &own, error);
  if (code == PL_OK) code = pl_dpro_finish(&own, error);
  release(&own);
  return code;
}
