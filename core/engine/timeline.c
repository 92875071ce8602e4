/* See core/engine/timeline.h. The format is the "Trace Event Format" of Chrome: complete events (ph X) with ts and dur
 * in microseconds, metadata events (ph M) for names and order.
 *
 * Dates are written from integers with six decimals (a picosecond, about one tick), and a duration is the difference of
 * two written dates, so that what follows each other without a gap does so in the file as well. Doubles would need 17
 * digits for that and three attempts at printing each.
 */
#include "core/engine/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/engine/timeline_memory.h"
#include "core/engine/timeline_slices.h"

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
  pl_timeline_source of;
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

static void put_metadata(chrome_trace *trace) {
  const pl_timeline_view *view = trace->of.view;
  for (uint32_t device = 0; device < trace->of.graph->n_devices; device++) {
    char number[32];
    snprintf(number, sizeof number, "device %" PRIu32, device);
    put_metadata_name(trace, "process_name", device, 0,
                      view != NULL && view->device != NULL ? view->device[device] : number);
    put_sort_index(trace, "process_sort_index", device, 0, device);
  }
  for (uint32_t at = 0; at < trace->of.graph->n_streams; at++) {
    const pl_stream *stream = &trace->of.graph->streams[at];
    put_metadata_name(trace, "thread_name", stream->device, pl_timeline_thread(stream),
                      pl_stream_kind_name((pl_stream_kind)stream->kind));
    put_sort_index(trace, "thread_sort_index", stream->device, pl_timeline_thread(stream), stream->kind);
  }
}

/* ---- events ---- */

static void put_place(const chrome_trace *trace, const pl_stream *on, int64_t time_ps) {
  fprintf(trace->stream, ",\"pid\":%" PRIu32 ",\"tid\":%d,\"ts\":", on->device + 1, pl_timeline_thread(on) + 1);
  put_microseconds(trace->stream, time_ps);
}

/* Bytes of a communication, and the processes that take part beside the one that it is shown on. */
static void put_transfer(const chrome_trace *trace, uint32_t at, const pl_stream *on) {
  const pl_task *task = &trace->of.graph->tasks[at];
  uint32_t n = 0;
  if (task->kind != PL_TASK_TRANSFER) return;
  fprintf(trace->stream, ",\"bytes\":%.0f", task->size_bytes);
  for (uint32_t member = 0; member < task->n_streams; member++) {
    uint32_t device = pl_timeline_stream(&trace->of, at, member)->device;
    if (device != on->device) fprintf(trace->stream, n++ == 0 ? ",\"peers\":[%" PRIu32 : ",%" PRIu32, device + 1);
  }
  if (n > 0) fputc(']', trace->stream);
}

static void put_slice(void *context, const pl_timeline_slice *slice) {
  chrome_trace *trace = context;
  FILE *stream = trace->stream;
  const pl_stream *on = &trace->of.graph->streams[slice->stream];
  const char *category = pl_category_name((pl_category)slice->category);
  const pl_task *task = &trace->of.graph->tasks[slice->task];
  int64_t start_ps = pl_timeline_ps(slice->start);
  open_entry(trace);
  fputs("{\"ph\":\"X\",\"name\":", stream);
  put_string(stream, pl_timeline_slice_name(&trace->of, slice));
  fprintf(stream, ",\"cat\":\"%s\"", slice->level == PL_TIMELINE_BLOCK ? "block" : slice->is_pass ? "pass" : category);
  put_place(trace, on, start_ps);
  fputs(",\"dur\":", stream);
  put_microseconds(stream, pl_timeline_ps(slice->finish) - start_ps);
  fprintf(stream, ",\"cname\":\"%s\",\"args\":{\"category\":\"%s\",\"task\":%" PRIu32, colours[slice->category],
          category, slice->own_task);
  if (task->microbatch >= 0) fprintf(stream, ",\"microbatch\":%" PRId32, task->microbatch);
  if (slice->flops > 0) fprintf(stream, ",\"flops\":%.0f", slice->flops);
  if (slice->bytes > 0) fprintf(stream, ",\"bytes\":%.0f", slice->bytes);
  put_transfer(trace, slice->task, on);
  fputs("}}", stream);
}

/* ---- arrows ---- */

static void put_arrow_end(chrome_trace *trace, const char *phase, uint32_t id, const pl_stream *on, pl_ticks time) {
  open_entry(trace);
  fprintf(trace->stream, "{\"ph\":%s,\"name\":\"send\",\"cat\":\"pipeline\",\"id\":%" PRIu32, phase, id);
  put_place(trace, on, pl_timeline_ps(time));
  fputs("}", trace->stream);
}

/* From a pipeline send to the pass that waited for it. */
static void put_arrows(chrome_trace *trace) {
  for (uint32_t at = 0; at < trace->of.graph->n_tasks; at++) {
    uint32_t receiver = pl_timeline_receiver(&trace->of, at);
    if (receiver == PL_NONE) continue;
    put_arrow_end(trace, "\"s\"", at, pl_timeline_stream(&trace->of, at, 0), trace->of.result->start[at]);
    put_arrow_end(trace, "\"f\",\"bp\":\"e\"", at, pl_timeline_stream(&trace->of, receiver, 0),
                  trace->of.result->start[receiver]);
  }
}

/* ---- memory ---- */

static void put_counter(chrome_trace *trace, const pl_memory_step *step, int64_t balance) {
  open_entry(trace);
  fprintf(trace->stream, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":%" PRIu32 ",\"ts\":", step->device + 1);
  put_microseconds(trace->stream, pl_timeline_ps(step->time));
  fprintf(trace->stream, ",\"args\":{\"GiB\":%.3f}}", (double)balance / (1 << 30));
}

/* Left out when there is no memory to sort it in: a trace has no failure but its stream's. */
static void put_memory(chrome_trace *trace) {
  size_t n;
  pl_memory_step *steps = pl_memory_steps_list(trace->of.graph, trace->of.result, &n);
  int64_t balance = 0;
  for (size_t at = 0; at < n; at++) {
    const pl_memory_step *step = &steps[at];
    if (at == 0 || steps[at - 1].device != step->device)
      balance = trace->of.graph->devices[step->device].resident_bytes;
    balance += step->bytes;
    bool is_last = at + 1 == n || steps[at + 1].device != step->device || steps[at + 1].time != step->time;
    if (is_last && pl_timeline_shows(&trace->of, step->task)) put_counter(trace, step, balance);
  }
  free(steps);
}

/* ---- the whole ---- */

static void put_header(const chrome_trace *trace) {
  const pl_timeline_view *view = trace->of.view;
  if (view == NULL || view->n_header == 0) return;
  fputs("\"otherData\":{", trace->stream);
  for (uint32_t at = 0; at < view->n_header; at++) {
    if (at > 0) fputc(',', trace->stream);
    put_string(trace->stream, view->header[at].key);
    fputc(':', trace->stream);
    put_string(trace->stream, view->header[at].value);
  }
  fputs("},", trace->stream);
}

void pl_timeline_write_chrome(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                              const pl_timeline_view *view) {
  chrome_trace trace = {.stream = stream, .of = {graph, result, view}};
  fputs("{\"displayTimeUnit\":\"ns\",", stream);
  put_header(&trace);
  fputs("\"traceEvents\":[", stream);
  put_metadata(&trace);
  pl_timeline_slices(&trace.of, put_slice, &trace);
  put_arrows(&trace);
  put_memory(&trace);
  fputs("\n]}\n", stream);
}
