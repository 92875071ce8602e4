/* Writes a run as a Chrome trace (JSON object format) that Perfetto and chrome://tracing open: devices of the graph are
 * processes, streams are threads, tasks are complete events in microseconds with the picosecond as the last decimal. A
 * fused task is the parent (category "pass") of its parts when they were recorded (pl_engine_options.record_parts),
 * else one event. Events carry their category, their task id and, where there is one, the microbatch; transfers also
 * their bytes and the processes that they join; ops that compute their FLOPs and bytes, if the view has them. Parts of
 * one block (a layer) lie in a parent of category "block". Arrows lead from a pipeline send to the pass that waited for
 * it, and a counter per device follows its memory.
 */
#ifndef PL_CORE_TIMELINE_H
#define PL_CORE_TIMELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/engine/engine.h"
#include "core/graph/graph.h"

typedef struct pl_timeline_entry {
  const char *key, *value;
} pl_timeline_entry;

/* What the graph does not know of a part. */
typedef struct pl_timeline_part {
  double flops, bytes; /* computed, and moved to and from device memory; 0: not said */
  int32_t block;       /* index into the view's names of blocks; -1: none */
} pl_timeline_part;

/* Tasks that follow each other on a stream and are one pass of a stage, drawn as a task with their parts is. */
typedef struct pl_timeline_pass {
  uint32_t first_task, stream; /* of the graph */
  pl_ticks finish;
  uint8_t category; /* pl_category */
} pl_timeline_pass;

typedef struct pl_timeline_view {
  const char *const *device; /* per graph device: the process name (UTF-8; say here for how many devices it stands) */
  const pl_timeline_entry *header; /* what the run was of */
  uint32_t n_header;
  const pl_timeline_part *parts;  /* per part of the graph; NULL: nothing is known */
  const char *const *block_names; /* "layer 12": what parents of neighbouring parts are called */
  const pl_timeline_pass *passes; /* of tasks that are drawn in them, by their parts alone */
  uint32_t n_passes;
  const uint32_t *pass_of; /* per task of the graph its pass; PL_NONE: it is drawn by itself; NULL: all are */
  bool is_window;          /* only these microbatches, and what belongs to none */
  int32_t first_microbatch, last_microbatch;
  bool has_ops_window; /* ops only of these microbatches; passes, blocks, transfers and memory of all that are shown */
  int32_t first_ops, last_ops;
  bool is_perfetto; /* in Perfetto's own format (core/engine/timeline_perfetto.h) */
} pl_timeline_view;

/* Streams the trace; memory beyond the result O(tasks), for the counters. `view` or its arrays may be NULL: "device 0".
 * The caller checks ferror and closes. */
void pl_timeline_write_chrome(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                              const pl_timeline_view *view);

#endif
