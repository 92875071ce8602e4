/* See search/trace/replay_timeline.h. */
#include "search/trace/replay_timeline.h"

#include "core/system/output_file.h"
#include "core/text/json_writer.h"

static void put_label(pl_json *json, const char *kind, uint32_t rank, uint32_t stream, const char *name) {
  pl_json_open_object(json);
  pl_json_put_string(json, "ph", "M");
  pl_json_put_string(json, "name", kind);
  pl_json_put_integer(json, "pid", rank);
  pl_json_put_integer(json, "tid", stream);
  pl_json_key(json, "args");
  pl_json_open_object(json);
  pl_json_put_string(json, "name", name);
  pl_json_close_object(json);
  pl_json_close_object(json);
}

static void put_labels(pl_json *json, const pl_trace *trace) {
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    char name[32];
    snprintf(name, sizeof name, "rank %lld", (long long)trace->ranks[r].number);
    put_label(json, "process_name", (uint32_t)trace->ranks[r].number, 0, name);
  }
  for (uint32_t s = 0; s < trace->n_streams; s++)
    put_label(json, "thread_name", (uint32_t)trace->ranks[trace->streams[s].rank].number, s + 1,
              trace->names[trace->streams[s].name]);
}

/* An op from where its gate opens to where its body ends. */
static void put_op(pl_json *json, const pl_trace_replay *replay, uint32_t op, const pl_ticks *finish) {
  const pl_trace *trace = replay->trace;
  pl_ticks start = finish[replay->gate[op]], end = finish[replay->body[op]];
  pl_json_open_object(json);
  pl_json_put_string(json, "ph", "X");
  pl_json_put_string(json, "name", pl_trace_op_name(trace, op));
  pl_json_put_string(json, "cat", pl_trace_op_kind_names[trace->ops[op].kind]);
  pl_json_put_integer(json, "pid", trace->ranks[pl_trace_rank_of(trace, op)].number);
  pl_json_put_integer(json, "tid", (int64_t)trace->ops[op].stream + 1);
  pl_json_put_number(json, "ts", pl_ticks_to_s(start) * 1e6);
  pl_json_put_number(json, "dur", pl_ticks_to_s(end - start) * 1e6);
  pl_json_close_object(json);
}

static void put_all(FILE *stream, const pl_trace_replay *replay, const pl_ticks *finish) {
  pl_json json;
  pl_json_init(&json, stream, false);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "displayTimeUnit", "ms");
  pl_json_key(&json, "traceEvents");
  pl_json_open_array(&json);
  put_labels(&json, replay->trace);
  for (uint32_t op = 0; op < replay->trace->n_ops; op++)
    if (replay->gate[op] != PL_NONE) put_op(&json, replay, op, finish);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
  fputc('\n', stream);
}

pl_code pl_replay_timeline_store(const char *path, bool force, const pl_trace_replay *replay, const pl_ticks *finish,
                                 pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, force, error));
  put_all(file.stream, replay, finish);
  return pl_output_file_close(&file, PL_OK, error);
}
