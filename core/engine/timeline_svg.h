/* Draws a run as an SVG that fits a slide: a row per chosen device, what it computes with the number of its microbatch,
 * what it communicates below, and where it waits the bare row. Of many microbatches the beginning and the end are
 * drawn, each a little longer than the first microbatch is under way; between them lie repetitions, which the drawing
 * says. Below, on the same axis, the memory of the rows over time against what a device has.
 */
#ifndef PL_CORE_TIMELINE_SVG_H
#define PL_CORE_TIMELINE_SVG_H

#include <stdio.h>

#include "core/engine/engine.h"
#include "core/graph/graph.h"

typedef struct pl_diagram {
  const uint32_t *devices;   /* of the graph, one per row */
  const char *const *labels; /* of the rows */
  uint32_t n_rows;
  const char *title, *subtitle;
  int32_t n_microbatches;
  const uint8_t *chunk_of; /* per segment of the graph: chunk of its stage, the later the lighter; NULL: one each */
  int32_t n_chunks;        /* of a stage */
  double usable_bytes;     /* what the stage with least room has of it: the line to stay below; INFINITY: unknown */
} pl_diagram;

/* The caller checks ferror and closes. O(tasks log tasks). */
void pl_timeline_write_svg(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                           const pl_diagram *diagram);

#endif
