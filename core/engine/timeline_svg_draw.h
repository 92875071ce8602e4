/* What the files of a run's drawing share (timeline_svg.c: rows, axis, legend; timeline_svg_memory.c: memory over
 * time), and nobody else. */
#ifndef PL_CORE_TIMELINE_SVG_DRAW_H
#define PL_CORE_TIMELINE_SVG_DRAW_H

#include "core/engine/timeline_svg.h"

/* Of the page, in pixels; the gap lies between two windows of time. */
enum { PL_TIMELINE_WIDTH = 1280, PL_TIMELINE_LEFT = 96, PL_TIMELINE_RIGHT = 16, PL_TIMELINE_GAP = 44 };

typedef struct pl_timeline_drawing {
  FILE *stream;
  const pl_graph *graph;
  const pl_engine_result *result;
  const pl_diagram *diagram;
  double row_height;
  const uint8_t *pass_of; /* category of each segment, by most of its computing; NULL: of its first part */
  /* What is drawn of the time: [0, first_end] and, if there is a gap, [second_start, makespan]. */
  pl_ticks first_end, second_start;
  bool has_gap;
  double pixels_per_tick;
} pl_timeline_drawing;

double pl_timeline_x_of(const pl_timeline_drawing *d, pl_ticks time);
/* The part of [*start, *finish] in window `second`; false: nothing of it. */
bool pl_timeline_clip(const pl_timeline_drawing *d, bool second, pl_ticks *start, pl_ticks *finish);

double pl_timeline_memory_height(const pl_timeline_drawing *d); /* 0: no task changes any memory */
void pl_timeline_put_memory(const pl_timeline_drawing *d, double top);

#endif
