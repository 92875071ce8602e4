/* See core/engine/timeline.h. The format is the "Trace Event Format" of Chrome: complete events (ph X) with ts and dur
 * in microseconds, metadata events (ph M) for names and order.
 *
 * Dates are written from integers with six decimals (a picosecond, about one tick), and a duration is the difference of
 * two written dates, so that what follows each other without a gap does so in the file as well. Doubles would need 17
 * digits for that and three attempts at printing each.
 */
#include "core/engine/timeline.h"

#include <inttypes.h>

/* Names of Chrome's palette; Perfetto picks colours by name and ignores these. */
static const char *const colours[PL_CATEGORY_COUNT] = {
    [PL_CATEGORY_FORWARD] = "thread_state_running",    /* green */
    [PL_CATEGORY_BACKWARD] = "rail_response",          /* blue */
    [PL_CATEGORY_RECOMPUTE] = "thread_state_runnable", /* light blue */
    [PL_CATEGORY_OPTIMIZER] = "olive",
    [PL_CATEGORY_TENSOR] = "thread_state_iowait", /* orange */
    [PL_CATEGORY_PIPELINE] = "yellow",
    [PL_CATEGORY_DATA] = "terrible", /* red */
    [PL_CATEGORY_OTHER] = "grey",
    [PL_CATEGORY_HOST] = "black",
    [PL_CATEGORY_CONTEXT] = "bad", /* orange */
    [PL_CATEGORY_EXPERT] = "thread_state_sleeping",
};

typedef struct chrome_trace {
  FILE *stream;
  const pl_graph *graph;
  const pl_engine_result *result;
  bool has_entry;
} chrome_trace;

static void put_string(FILE *stream, const char *text) {
  putc('"', stream);
  for (const unsigned char *at = (const unsigned char *)text; *at != 0; at++) {
    if (*at == '"' || *at == '\\') {
      fprintf(stream, "\\%c", *at);
    } else if (*at < 0x20) {
      fprintf(stream, "\\u%04x", *at);
    } else {
      putc(*at, stream);
    }
  }
  putc('"', stream);
}

static int64_t to_picoseconds(pl_ticks ticks) {
  const __int128 half = (__int128)1 << 39;
  return (int64_t)(((__int128)ticks * 1000000000000 + half) >> 40);
}

static void put_microseconds(FILE *stream, int64_t time_ps) {
  fprintf(stream, "%" PRId64 ".%06" PRId64, time_ps / 1000000, time_ps % 1000000);
}

static void open_entry(chrome_trace *trace) {
  fputs(trace->has_entry ? ",\n" : "\n", trace->stream);
  trace->has_entry = true;
}

/* ---- metadata ---- */

static void put_metadata_name(chrome_trace *trace, const char *kind, uint32_t process, int thread, const char *name) {
  open_entry(trace);
  fprintf(trace->stream, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%d,\"args\":{\"name\":", kind,
          process + 1, thread + 1);
  put_string(trace->stream, name);
  fputs("}}", trace->stream);
}

static void put_sort_index(chrome_trace *trace, const char *kind, uint32_t process, int thread, uint32_t index) {
  open_entry(trace);
  fprintf(trace->stream,
          "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%d,\"args\":{\"sort_index\":%" PRIu32 "}}", kind,
          process + 1, thread + 1, index);
}

static void put_metadata(chrome_trace *trace, const pl_timeline_names *names) {
  for (uint32_t device = 0; device < trace->graph->n_devices; device++) {
    char number[32];
    snprintf(number, sizeof number, "device %" PRIu32, device);
    put_metadata_name(trace, "process_name", device, 0,
                      names != NULL && names->device != NULL ? names->device[device] : number);
    put_sort_index(trace, "process_sort_index", device, 0, device);
  }
  for (uint32_t at = 0; at < trace->graph->n_streams; at++) {
    const pl_stream *stream = &trace->graph->streams[at];
    put_metadata_name(trace, "thread_name", stream->device, stream->kind,
                      pl_stream_kind_name((pl_stream_kind)stream->kind));
    put_sort_index(trace, "thread_sort_index", stream->device, stream->kind, stream->kind);
  }
}

/* ---- events ---- */

typedef struct pl_slice {
  uint32_t name, category, task;
  pl_ticks start, finish;
} pl_slice;

static void put_slice(chrome_trace *trace, const pl_slice *slice, const pl_stream *on) {
  FILE *stream = trace->stream;
  const char *category = pl_category_name((pl_category)slice->category);
  int64_t start_ps = to_picoseconds(slice->start);
  open_entry(trace);
  fputs("{\"ph\":\"X\",\"name\":", stream);
  put_string(stream, slice->name == PL_NONE ? category : trace->graph->names[slice->name]);
  fprintf(stream, ",\"cat\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%d,\"ts\":", category, on->device + 1, on->kind + 1);
  put_microseconds(stream, start_ps);
  fputs(",\"dur\":", stream);
  put_microseconds(stream, to_picoseconds(slice->finish) - start_ps);
  fprintf(stream, ",\"cname\":\"%s\",\"args\":{\"category\":\"%s\",\"task\":%" PRIu32, colours[slice->category],
          category, slice->task);
  if (trace->graph->tasks[slice->task].microbatch >= 0)
    fprintf(stream, ",\"microbatch\":%" PRId32, trace->graph->tasks[slice->task].microbatch);
  fputs("}}", stream);
}

static const pl_stream *stream_of(const chrome_trace *trace, uint32_t task, uint32_t member) {
  return &trace->graph->streams[trace->graph->task_streams[trace->graph->tasks[task].first_stream + member]];
}

/* On every stream that the task occupies; a task without a stream is a dependency and is not drawn. */
static void put_on_streams(chrome_trace *trace, const pl_slice *slice) {
  for (uint32_t member = 0; member < trace->graph->tasks[slice->task].n_streams; member++)
    put_slice(trace, slice, stream_of(trace, slice->task, member));
}

static bool is_fused(const pl_graph *graph, uint32_t task) {
  return graph->tasks[task].kind == PL_TASK_WORK && graph->segments[graph->tasks[task].index].n_parts > 1;
}

static void put_tasks(chrome_trace *trace) {
  const pl_engine_result *result = trace->result;
  for (uint32_t at = 0; at < trace->graph->n_tasks; at++) {
    const pl_task *task = &trace->graph->tasks[at];
    if (result->part_spans != NULL && is_fused(trace->graph, at)) continue;
    uint32_t name = task->label;
    if (name == PL_NONE && task->kind == PL_TASK_WORK)
      name = trace->graph->parts[trace->graph->segments[task->index].first_part].name;
    put_on_streams(trace, &(pl_slice){name, task->category, at, result->start[at], result->finish[at]});
  }
}

static void put_parts(chrome_trace *trace) {
  for (uint32_t at = 0; trace->result->part_spans != NULL && at < trace->result->n_part_spans; at++) {
    const pl_part_span *span = &trace->result->part_spans[at];
    const pl_part *part = &trace->graph->parts[span->part];
    if (!is_fused(trace->graph, span->task)) continue;
    uint32_t name = part->name != PL_NONE ? part->name : trace->graph->tasks[span->task].label;
    put_slice(trace, &(pl_slice){name, part->category, span->task, span->start, span->finish},
              stream_of(trace, span->task, span->member));
  }
}

void pl_timeline_write_chrome(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                              const pl_timeline_names *names) {
  chrome_trace trace = {.stream = stream, .graph = graph, .result = result};
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", stream);
  put_metadata(&trace, names);
  put_tasks(&trace);
  put_parts(&trace);
  fputs("\n]}\n", stream);
}
