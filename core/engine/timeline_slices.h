/* The slices of a timeline: what is drawn of a run, whatever it is written as. A task is a slice on every stream that
 * it occupies; one whose parts were recorded (a pass) encloses them, and parts of one block, a layer, lie in a slice of
 * their own between the two. What a view leaves out is no slice. */
#ifndef PL_CORE_TIMELINE_SLICES_H
#define PL_CORE_TIMELINE_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/engine/timeline.h"

typedef struct pl_timeline_source {
  const pl_graph *graph;
  const pl_engine_result *result;
  const pl_timeline_view *view; /* NULL: all of it, unnamed */
} pl_timeline_source;

typedef enum pl_timeline_level { PL_TIMELINE_TASK = 0, PL_TIMELINE_BLOCK, PL_TIMELINE_PART } pl_timeline_level;

typedef struct pl_timeline_slice {
  uint32_t name, category, stream; /* name: of the graph; PL_NONE: the category's, or the block's */
  uint32_t task, own_task;         /* the first of its pass, where the view has passes; of the graph its own */
  uint32_t order;                  /* among the slices of its task: 0, or 1 + the number of its (first) span */
  int32_t block;                   /* of the view's names, of a block's slice and of a part that lies in one; -1 */
  pl_timeline_level level;
  bool is_pass; /* a task that encloses its parts */
  pl_ticks start, finish;
  double bytes; /* of a part that communicates, or moves to and from memory */
  double flops;
} pl_timeline_slice;

typedef void pl_timeline_visit(void *context, const pl_timeline_slice *slice);

/* Tasks by number, then blocks, then parts by their start: parents before what they enclose. Without memory there are
 * no blocks. */
void pl_timeline_slices(const pl_timeline_source *of, pl_timeline_visit *visit, void *context);

const char *pl_timeline_slice_name(const pl_timeline_source *of, const pl_timeline_slice *slice);

/* Whether the view shows what belongs to the task; tasks without a microbatch belong to all of them. */
bool pl_timeline_shows(const pl_timeline_source *of, uint32_t task);

static inline const pl_stream *pl_timeline_stream(const pl_timeline_source *of, uint32_t task, uint32_t member) {
  return &of->graph->streams[of->graph->task_streams[of->graph->tasks[task].first_stream + member]];
}

/* The first task of the pass that a task is drawn in; else itself. */
static inline uint32_t pl_timeline_drawn_in(const pl_timeline_source *of, uint32_t task) {
  const pl_timeline_view *view = of->view;
  uint32_t pass = view != NULL && view->pass_of != NULL ? view->pass_of[task] : PL_NONE;
  return pass != PL_NONE ? view->passes[pass].first_task : task;
}

/* The pass that waited for a pipeline send; PL_NONE: the task is no such send, or one of both is not shown. */
uint32_t pl_timeline_receiver(const pl_timeline_source *of, uint32_t send);

/* The number of a stream's thread in its device's process, from 0. */
static inline int pl_timeline_thread(const pl_stream *stream) {
  return stream->kind + stream->lane * PL_STREAM_KIND_COUNT;
}

/* To picoseconds, about one tick. */
static inline int64_t pl_timeline_ps(pl_ticks ticks) {
  const __int128 half = (__int128)1 << 39;
  return (int64_t)(((__int128)ticks * 1000000000000 + half) >> 40);
}

#endif
