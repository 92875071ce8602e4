/* See core/engine/timeline_slices.h. */
#include "core/engine/timeline_slices.h"

#include <stdlib.h>

const char *pl_timeline_slice_name(const pl_timeline_source *of, const pl_timeline_slice *slice) {
  if (slice->level == PL_TIMELINE_BLOCK) return of->view->block_names[slice->block];
  return slice->name == PL_NONE ? pl_category_name((pl_category)slice->category) : of->graph->names[slice->name];
}

bool pl_timeline_shows(const pl_timeline_source *of, uint32_t task) {
  const pl_timeline_view *view = of->view;
  int32_t microbatch = of->graph->tasks[task].microbatch;
  if (view == NULL || !view->is_window || microbatch < 0) return true;
  return microbatch >= view->first_microbatch && microbatch <= view->last_microbatch;
}

static bool is_fused(const pl_graph *graph, uint32_t task) {
  return graph->tasks[task].kind == PL_TASK_WORK && graph->segments[graph->tasks[task].index].n_parts > 1;
}

/* ---- tasks ---- */

static const pl_timeline_part *known_part(const pl_timeline_source *of, uint32_t part) {
  return of->view != NULL && of->view->parts != NULL ? &of->view->parts[part] : NULL;
}

/* Of a task that computes one op; NULL: it does not, or nothing is known of it. */
static const pl_timeline_part *only_part(const pl_timeline_source *of, const pl_task *task) {
  if (task->kind != PL_TASK_WORK || of->graph->segments[task->index].n_parts != 1) return NULL;
  return known_part(of, of->graph->segments[task->index].first_part);
}

static bool is_in_pass(const pl_timeline_source *of, uint32_t task) {
  return of->view != NULL && of->view->pass_of != NULL && of->view->pass_of[task] != PL_NONE;
}

/* On every stream that the task occupies; a task without a stream is a dependency and is not drawn. */
static void visit_task(const pl_timeline_source *of, uint32_t at, pl_timeline_visit *visit, void *context) {
  const pl_task *task = &of->graph->tasks[at];
  uint32_t name = task->label;
  if (name == PL_NONE && task->kind == PL_TASK_WORK)
    name = of->graph->parts[of->graph->segments[task->index].first_part].name;
  bool is_pass = of->result->part_spans != NULL && is_fused(of->graph, at);
  pl_timeline_slice slice = {.name = name,
                             .category = is_pass ? pl_graph_segment_category(of->graph, task->index) : task->category,
                             .task = at,
                             .own_task = at,
                             .block = -1,
                             .is_pass = is_pass,
                             .start = of->result->start[at],
                             .finish = of->result->finish[at]};
  const pl_timeline_part *only = is_pass ? NULL : only_part(of, task);
  if (only != NULL) {
    slice.flops = only->flops;
    slice.bytes = only->bytes;
  }
  for (uint32_t member = 0; member < task->n_streams; member++) {
    slice.stream = of->graph->task_streams[task->first_stream + member];
    visit(context, &slice);
  }
}

static void visit_passes(const pl_timeline_source *of, pl_timeline_visit *visit, void *context) {
  for (uint32_t i = 0; of->view != NULL && i < of->view->n_passes; i++) {
    const pl_timeline_pass *pass = &of->view->passes[i];
    const pl_timeline_slice slice = {.name = PL_NONE,
                                     .category = pass->category,
                                     .stream = pass->stream,
                                     .task = pass->first_task,
                                     .own_task = pass->first_task,
                                     .block = -1,
                                     .is_pass = true,
                                     .start = of->result->start[pass->first_task],
                                     .finish = pass->finish};
    if (pl_timeline_shows(of, pass->first_task)) visit(context, &slice);
  }
}

/* ---- blocks ---- */

static bool has_parts(const pl_timeline_source *of, const pl_part_span *span) {
  return (is_fused(of->graph, span->task) || is_in_pass(of, span->task)) && pl_timeline_shows(of, span->task);
}

static uint32_t stream_of(const pl_timeline_source *of, const pl_part_span *span) {
  return of->graph->task_streams[of->graph->tasks[span->task].first_stream + span->member];
}

/* Visits the block that is under way on a stream; `task` PL_NONE: none is. */
static void close_block(pl_timeline_slice *open, pl_timeline_visit *visit, void *context) {
  if (open->task != PL_NONE) visit(context, open);
  open->task = PL_NONE;
}

static bool goes_on(const pl_timeline_source *of, const pl_timeline_slice *open, const pl_part_span *span,
                    int32_t block) {
  const char *const *names = of->view->block_names;
  /* Of a pass of several tasks there may be communication in between. */
  bool follows = is_in_pass(of, span->task) || open->finish == span->start;
  return open->task == pl_timeline_drawn_in(of, span->task) && block >= 0 && names[open->block] == names[block] &&
         follows;
}

static void visit_blocks(const pl_timeline_source *of, pl_timeline_visit *visit, void *context) {
  const pl_engine_result *result = of->result;
  uint32_t n_streams = of->graph->n_streams;
  pl_timeline_slice *open =
      of->view != NULL && of->view->parts != NULL ? calloc((size_t)n_streams + 1, sizeof *open) : NULL;
  if (open == NULL) return;
  for (uint32_t s = 0; s < n_streams; s++)
    open[s].task = PL_NONE;
  for (uint32_t at = 0; result->part_spans != NULL && at < result->n_part_spans; at++) {
    const pl_part_span *span = &result->part_spans[at];
    int32_t block = known_part(of, span->part)->block;
    uint32_t stream = stream_of(of, span);
    bool shown = has_parts(of, span);
    if (!shown) close_block(&open[stream], visit, context); /* so that a window has the order of the whole */
    if (!shown) continue;
    if (!goes_on(of, &open[stream], span, block)) close_block(&open[stream], visit, context);
    if (block >= 0 && open[stream].task == PL_NONE)
      open[stream] = (pl_timeline_slice){.name = PL_NONE,
                                         .category = of->graph->parts[span->part].category,
                                         .task = pl_timeline_drawn_in(of, span->task),
                                         .own_task = span->task,
                                         .stream = stream,
                                         .order = at + 1,
                                         .block = block,
                                         .level = PL_TIMELINE_BLOCK,
                                         .start = span->start};
    open[stream].finish = span->finish;
  }
  for (uint32_t s = 0; s < n_streams; s++)
    close_block(&open[s], visit, context);
  free(open);
}

/* ---- parts ---- */

static bool has_ops(const pl_timeline_source *of, uint32_t task) {
  const pl_timeline_view *view = of->view;
  int32_t microbatch = of->graph->tasks[task].microbatch;
  if (view == NULL || !view->has_ops_window || microbatch < 0) return true;
  return microbatch >= view->first_ops && microbatch <= view->last_ops;
}

static void visit_parts(const pl_timeline_source *of, pl_timeline_visit *visit, void *context) {
  for (uint32_t at = 0; of->result->part_spans != NULL && at < of->result->n_part_spans; at++) {
    const pl_part_span *span = &of->result->part_spans[at];
    const pl_part *part = &of->graph->parts[span->part];
    if (!has_parts(of, span) || !has_ops(of, span->task)) continue;
    const pl_timeline_part *known = known_part(of, span->part);
    const pl_timeline_slice slice = {.name = part->name != PL_NONE ? part->name : of->graph->tasks[span->task].label,
                                     .category = part->category,
                                     .task = pl_timeline_drawn_in(of, span->task),
                                     .own_task = span->task,
                                     .stream = stream_of(of, span),
                                     .order = at + 1,
                                     .block = known != NULL ? known->block : -1,
                                     .level = PL_TIMELINE_PART,
                                     .start = span->start,
                                     .finish = span->finish,
                                     .bytes = part->transfers ? part->size_bytes
                                              : known != NULL ? known->bytes
                                                              : 0,
                                     .flops = known != NULL ? known->flops : 0};
    visit(context, &slice);
  }
}

void pl_timeline_slices(const pl_timeline_source *of, pl_timeline_visit *visit, void *context) {
  for (uint32_t at = 0; at < of->graph->n_tasks; at++)
    if (pl_timeline_shows(of, at) && !is_in_pass(of, at)) visit_task(of, at, visit, context);
  visit_passes(of, visit, context);
  visit_blocks(of, visit, context);
  visit_parts(of, visit, context);
}

/* ---- sends ---- */

/* The compute task of `device` that waits for this one and starts first. */
static uint32_t find_receiver(const pl_timeline_source *of, uint32_t task, uint32_t device) {
  const pl_graph *graph = of->graph;
  uint32_t found = PL_NONE;
  for (uint32_t at = graph->successor_offset[task]; at < graph->successor_offset[task + 1]; at++) {
    uint32_t next = graph->successors[at];
    if (graph->tasks[next].kind != PL_TASK_WORK || graph->tasks[next].n_streams == 0) continue;
    const pl_stream *on = pl_timeline_stream(of, next, 0);
    if (on->device != device || on->kind != PL_STREAM_COMPUTE) continue;
    if (found == PL_NONE || of->result->start[next] < of->result->start[found]) found = next;
  }
  return found;
}

uint32_t pl_timeline_receiver(const pl_timeline_source *of, uint32_t send) {
  const pl_task *task = &of->graph->tasks[send];
  if (task->category != PL_CATEGORY_PIPELINE || task->n_streams < 2 || !pl_timeline_shows(of, send)) return PL_NONE;
  uint32_t receiver = find_receiver(of, send, pl_timeline_stream(of, send, task->n_streams - 1)->device);
  return receiver != PL_NONE && pl_timeline_shows(of, receiver) ? receiver : PL_NONE;
}
