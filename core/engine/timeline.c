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
  const pl_timeline_view *view; /* NULL: all of it, unnamed */
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

static void put_metadata(chrome_trace *trace) {
  const pl_timeline_view *view = trace->view;
  for (uint32_t device = 0; device < trace->graph->n_devices; device++) {
    char number[32];
    snprintf(number, sizeof number, "device %" PRIu32, device);
    put_metadata_name(trace, "process_name", device, 0,
                      view != NULL && view->device != NULL ? view->device[device] : number);
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
  double bytes; /* of a part that communicates, or moves to and from memory */
  double flops;
  const char *block; /* not NULL: the parent of a block's parts, which is called so */
  bool is_pass;      /* what the parts of a fused task lie in */
} pl_slice;

static const pl_stream *stream_of(const chrome_trace *trace, uint32_t task, uint32_t member) {
  return &trace->graph->streams[trace->graph->task_streams[trace->graph->tasks[task].first_stream + member]];
}

/* Tasks without a microbatch belong to all of them. */
static bool is_shown(const chrome_trace *trace, uint32_t task) {
  const pl_timeline_view *view = trace->view;
  int32_t microbatch = trace->graph->tasks[task].microbatch;
  if (view == NULL || !view->is_window || microbatch < 0) return true;
  return microbatch >= view->first_microbatch && microbatch <= view->last_microbatch;
}

static void put_place(const chrome_trace *trace, const pl_stream *on, int64_t time_ps) {
  fprintf(trace->stream, ",\"pid\":%" PRIu32 ",\"tid\":%d,\"ts\":", on->device + 1, on->kind + 1);
  put_microseconds(trace->stream, time_ps);
}

/* Bytes of a communication, and the processes that take part beside the one that it is shown on. */
static void put_transfer(const chrome_trace *trace, uint32_t at, const pl_stream *on) {
  const pl_task *task = &trace->graph->tasks[at];
  uint32_t n = 0;
  if (task->kind != PL_TASK_TRANSFER) return;
  fprintf(trace->stream, ",\"bytes\":%.0f", task->size_bytes);
  for (uint32_t member = 0; member < task->n_streams; member++) {
    uint32_t device = stream_of(trace, at, member)->device;
    if (device != on->device) fprintf(trace->stream, n++ == 0 ? ",\"peers\":[%" PRIu32 : ",%" PRIu32, device + 1);
  }
  if (n > 0) fputc(']', trace->stream);
}

static void put_slice(chrome_trace *trace, const pl_slice *slice, const pl_stream *on) {
  FILE *stream = trace->stream;
  const char *category = pl_category_name((pl_category)slice->category);
  const pl_task *task = &trace->graph->tasks[slice->task];
  int64_t start_ps = to_picoseconds(slice->start);
  open_entry(trace);
  fputs("{\"ph\":\"X\",\"name\":", stream);
  put_string(stream, slice->block != NULL     ? slice->block
                     : slice->name == PL_NONE ? category
                                              : trace->graph->names[slice->name]);
  fprintf(stream, ",\"cat\":\"%s\"", slice->block != NULL ? "block" : slice->is_pass ? "pass" : category);
  put_place(trace, on, start_ps);
  fputs(",\"dur\":", stream);
  put_microseconds(stream, to_picoseconds(slice->finish) - start_ps);
  fprintf(stream, ",\"cname\":\"%s\",\"args\":{\"category\":\"%s\",\"task\":%" PRIu32, colours[slice->category],
          category, slice->task);
  if (task->microbatch >= 0) fprintf(stream, ",\"microbatch\":%" PRId32, task->microbatch);
  if (slice->flops > 0) fprintf(stream, ",\"flops\":%.0f", slice->flops);
  if (slice->bytes > 0) fprintf(stream, ",\"bytes\":%.0f", slice->bytes);
  put_transfer(trace, slice->task, on);
  fputs("}}", stream);
}

/* On every stream that the task occupies; a task without a stream is a dependency and is not drawn. */
static void put_on_streams(chrome_trace *trace, const pl_slice *slice) {
  for (uint32_t member = 0; member < trace->graph->tasks[slice->task].n_streams; member++)
    put_slice(trace, slice, stream_of(trace, slice->task, member));
}

static bool is_fused(const pl_graph *graph, uint32_t task) {
  return graph->tasks[task].kind == PL_TASK_WORK && graph->segments[graph->tasks[task].index].n_parts > 1;
}

/* A fused task is the parent of its parts, which lie in it on the same track. */
static void put_tasks(chrome_trace *trace) {
  const pl_engine_result *result = trace->result;
  for (uint32_t at = 0; at < trace->graph->n_tasks; at++) {
    const pl_task *task = &trace->graph->tasks[at];
    if (!is_shown(trace, at)) continue;
    uint32_t name = task->label;
    if (name == PL_NONE && task->kind == PL_TASK_WORK)
      name = trace->graph->parts[trace->graph->segments[task->index].first_part].name;
    bool is_pass = result->part_spans != NULL && is_fused(trace->graph, at);
    const pl_slice slice = {.name = name,
                            .category = is_pass ? pl_graph_segment_category(trace->graph, task->index) : task->category,
                            .task = at,
                            .start = result->start[at],
                            .finish = result->finish[at],
                            .is_pass = is_pass};
    put_on_streams(trace, &slice);
  }
}

static const pl_timeline_part *known_part(const chrome_trace *trace, uint32_t part) {
  return trace->view != NULL && trace->view->parts != NULL ? &trace->view->parts[part] : NULL;
}

static bool has_parts(const chrome_trace *trace, const pl_part_span *span) {
  return is_fused(trace->graph, span->task) && is_shown(trace, span->task);
}

/* The parent of a block's parts under way on each stream; `task` PL_NONE: none. */
static void put_block(chrome_trace *trace, pl_slice *open, uint32_t stream) {
  if (open->task != PL_NONE) put_slice(trace, open, &trace->graph->streams[stream]);
  open->task = PL_NONE;
}

static bool goes_on(const pl_slice *open, const pl_part_span *span, const char *block) {
  return open->task == span->task && open->block == block && open->finish == span->start;
}

/* Parents before their parts. Without memory there are none. */
static void put_blocks(chrome_trace *trace) {
  const pl_engine_result *result = trace->result;
  uint32_t n_streams = trace->graph->n_streams;
  pl_slice *open = trace->view != NULL && trace->view->parts != NULL ? calloc(n_streams, sizeof *open) : NULL;
  if (open == NULL) return;
  for (uint32_t s = 0; s < n_streams; s++)
    open[s].task = PL_NONE;
  for (uint32_t at = 0; result->part_spans != NULL && at < result->n_part_spans; at++) {
    const pl_part_span *span = &result->part_spans[at];
    int32_t index = known_part(trace, span->part)->block;
    uint32_t stream = trace->graph->task_streams[trace->graph->tasks[span->task].first_stream + span->member];
    bool shown = has_parts(trace, span);
    if (!shown) put_block(trace, &open[stream], stream); /* so that a window has the order of the whole */
    if (!shown) continue;
    const char *block = index >= 0 ? trace->view->block_names[index] : NULL;
    if (!goes_on(&open[stream], span, block)) put_block(trace, &open[stream], stream);
    if (block != NULL && open[stream].task == PL_NONE)
      open[stream] = (pl_slice){.name = PL_NONE,
                                .category = trace->graph->parts[span->part].category,
                                .task = span->task,
                                .start = span->start,
                                .block = block};
    open[stream].finish = span->finish;
  }
  for (uint32_t s = 0; s < n_streams; s++)
    put_block(trace, &open[s], s);
  free(open);
}

static bool has_ops(const chrome_trace *trace, uint32_t task) {
  const pl_timeline_view *view = trace->view;
  int32_t microbatch = trace->graph->tasks[task].microbatch;
  if (view == NULL || !view->has_ops_window || microbatch < 0) return true;
  return microbatch >= view->first_ops && microbatch <= view->last_ops;
}

static void put_parts(chrome_trace *trace) {
  for (uint32_t at = 0; trace->result->part_spans != NULL && at < trace->result->n_part_spans; at++) {
    const pl_part_span *span = &trace->result->part_spans[at];
    const pl_part *part = &trace->graph->parts[span->part];
    if (!has_parts(trace, span) || !has_ops(trace, span->task)) continue;
    const pl_timeline_part *known = known_part(trace, span->part);
    const pl_slice slice = {.name = part->name != PL_NONE ? part->name : trace->graph->tasks[span->task].label,
                            .category = part->category,
                            .task = span->task,
                            .start = span->start,
                            .finish = span->finish,
                            .bytes = part->transfers ? part->size_bytes
                                     : known != NULL ? known->bytes
                                                     : 0,
                            .flops = known != NULL ? known->flops : 0};
    put_slice(trace, &slice, stream_of(trace, span->task, span->member));
  }
}

/* ---- arrows ---- */

/* The compute task of `device` that waits for this one and starts first; PL_NONE: none does. */
static uint32_t find_receiver(const chrome_trace *trace, uint32_t task, uint32_t device) {
  const pl_graph *graph = trace->graph;
  uint32_t found = PL_NONE;
  for (uint32_t at = graph->successor_offset[task]; at < graph->successor_offset[task + 1]; at++) {
    uint32_t next = graph->successors[at];
    if (graph->tasks[next].kind != PL_TASK_WORK || graph->tasks[next].n_streams == 0) continue;
    const pl_stream *on = stream_of(trace, next, 0);
    if (on->device != device || on->kind != PL_STREAM_COMPUTE) continue;
    if (found == PL_NONE || trace->result->start[next] < trace->result->start[found]) found = next;
  }
  return found;
}

static void put_arrow_end(chrome_trace *trace, const char *phase, uint32_t id, const pl_stream *on, pl_ticks time) {
  open_entry(trace);
  fprintf(trace->stream, "{\"ph\":%s,\"name\":\"send\",\"cat\":\"pipeline\",\"id\":%" PRIu32, phase, id);
  put_place(trace, on, to_picoseconds(time));
  fputs("}", trace->stream);
}

/* From a pipeline send to the pass that waited for it. */
static void put_arrows(chrome_trace *trace) {
  for (uint32_t at = 0; at < trace->graph->n_tasks; at++) {
    const pl_task *task = &trace->graph->tasks[at];
    if (task->category != PL_CATEGORY_PIPELINE || task->n_streams < 2 || !is_shown(trace, at)) continue;
    uint32_t receiver = find_receiver(trace, at, stream_of(trace, at, task->n_streams - 1)->device);
    if (receiver == PL_NONE || !is_shown(trace, receiver)) continue;
    put_arrow_end(trace, "\"s\"", at, stream_of(trace, at, 0), trace->result->start[at]);
    put_arrow_end(trace, "\"f\",\"bp\":\"e\"", at, stream_of(trace, receiver, 0), trace->result->start[receiver]);
  }
}

/* ---- memory ---- */

static void put_counter(chrome_trace *trace, const pl_memory_step *step, int64_t balance) {
  open_entry(trace);
  fprintf(trace->stream, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":%" PRIu32 ",\"ts\":", step->device + 1);
  put_microseconds(trace->stream, to_picoseconds(step->time));
  fprintf(trace->stream, ",\"args\":{\"GiB\":%.3f}}", (double)balance / (1 << 30));
}

/* Left out when there is no memory to sort it in: a trace has no failure but its stream's. */
static void put_memory(chrome_trace *trace) {
  size_t n;
  pl_memory_step *steps = pl_memory_steps_list(trace->graph, trace->result, &n);
  int64_t balance = 0;
  for (size_t at = 0; at < n; at++) {
    const pl_memory_step *step = &steps[at];
    if (at == 0 || steps[at - 1].device != step->device) balance = trace->graph->devices[step->device].resident_bytes;
    balance += step->bytes;
    bool is_last = at + 1 == n || steps[at + 1].device != step->device || steps[at + 1].time != step->time;
    if (is_last && is_shown(trace, step->task)) put_counter(trace, step, balance);
  }
  free(steps);
}

/* ---- the whole ---- */

static void put_header(const chrome_trace *trace) {
  const pl_timeline_view *view = trace->view;
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
  chrome_trace trace = {.stream = stream, .graph = graph, .result = result, .view = view};
  fputs("{\"displayTimeUnit\":\"ns\",", stream);
  put_header(&trace);
  fputs("\"traceEvents\":[", stream);
  put_metadata(&trace);
  put_tasks(&trace);
  put_blocks(&trace);
  put_parts(&trace);
  put_arrows(&trace);
  put_memory(&trace);
  fputs("\n]}\n", stream);
}
