/* See core/engine/timeline_svg.h. Bars of one category and row are one path, so that a drawing of 64 stages stays
 * small. */
#include "core/engine/timeline_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/engine/timeline_svg_draw.h"

enum {
  WIDTH = PL_TIMELINE_WIDTH,
  LEFT = PL_TIMELINE_LEFT,
  RIGHT = PL_TIMELINE_RIGHT,
  GAP = PL_TIMELINE_GAP,
  TOP = 64,
  AXIS = 24,
  LEGEND = 38,
  ROWS_HEIGHT = 432, /* with the memory below as wide as a slide */
  LEAST_ROW = 9,
  MOST_ROW = 46
};

/* By category; NULL: not drawn. */
static const char *const fills[PL_CATEGORY_COUNT] = {
    [PL_CATEGORY_FORWARD] = "#2f9e44",   [PL_CATEGORY_BACKWARD] = "#1c7ed6", [PL_CATEGORY_RECOMPUTE] = "#74c0fc",
    [PL_CATEGORY_OPTIMIZER] = "#868e96", [PL_CATEGORY_TENSOR] = "#f76707",   [PL_CATEGORY_PIPELINE] = "#fab005",
    [PL_CATEGORY_DATA] = "#e03131",      [PL_CATEGORY_HOST] = "#212529",     [PL_CATEGORY_CONTEXT] = "#d6336c",
    [PL_CATEGORY_EXPERT] = "#9c36b5",
};

static void put_escaped(FILE *stream, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
      fprintf(stream, "&#%d;", *text);
    else
      fputc(*text, stream);
  }
}

/* ---- time ---- */

static void choose_windows(pl_timeline_drawing *d) {
  const pl_graph *graph = d->graph;
  pl_ticks trip = 0, makespan = d->result->makespan;
  for (uint32_t at = 0; at < graph->n_tasks; at++)
    if (graph->tasks[at].microbatch == 0 && graph->tasks[at].kind == PL_TASK_WORK && d->result->finish[at] > trip)
      trip = d->result->finish[at];
  pl_ticks window = trip + trip / 4;
  bool many = d->diagram->n_microbatches > 16 && (uint32_t)d->diagram->n_microbatches > 2 * d->diagram->n_rows;
  d->has_gap = many && trip > 0 && window < makespan / 3;
  d->first_end = d->has_gap ? window : makespan;
  d->second_start = d->has_gap ? makespan - window : makespan;
  double room = WIDTH - LEFT - RIGHT - (d->has_gap ? GAP : 0);
  d->pixels_per_tick = room / (double)(d->first_end + (makespan - d->second_start));
}

double pl_timeline_x_of(const pl_timeline_drawing *d, pl_ticks time) {
  if (!d->has_gap || time <= d->first_end) return LEFT + (double)time * d->pixels_per_tick;
  return LEFT + (double)d->first_end * d->pixels_per_tick + GAP + (double)(time - d->second_start) * d->pixels_per_tick;
}

bool pl_timeline_clip(const pl_timeline_drawing *d, bool second, pl_ticks *start, pl_ticks *finish) {
  pl_ticks low = second ? d->second_start : 0, high = second ? d->result->makespan : d->first_end;
  if (second && !d->has_gap) return false;
  if (*start < low) *start = low;
  if (*finish > high) *finish = high;
  return *finish > *start;
}

/* ---- bars ---- */

static double y_of(const pl_timeline_drawing *d, uint32_t row) {
  return TOP + row * d->row_height;
}

/* Computing fills the upper seven tenths of a row, communication the lower two. */
static void put_bar(const pl_timeline_drawing *d, uint32_t row, bool computes, pl_ticks start, pl_ticks finish) {
  double x = pl_timeline_x_of(d, start), width = pl_timeline_x_of(d, finish) - x,
         y = y_of(d, row) + (computes ? 0.03 : 0.75) * d->row_height;
  if (width < 0.15) return;
  if (computes && width > 1.5) width -= 0.5; /* so that neighbours are told apart */
  fprintf(d->stream, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, y, width, (computes ? 0.68 : 0.2) * d->row_height, width);
}

static bool is_on(const pl_timeline_drawing *d, const pl_task *task, uint32_t device, bool *computes) {
  for (uint32_t member = 0; member < task->n_streams; member++) {
    const pl_stream *stream = &d->graph->streams[d->graph->task_streams[task->first_stream + member]];
    if (stream->device != device) continue;
    *computes = stream->kind == PL_STREAM_COMPUTE;
    return true;
  }
  return false;
}

static uint32_t category_of(const pl_timeline_drawing *d, const pl_task *task) {
  return task->kind == PL_TASK_WORK && d->pass_of != NULL ? d->pass_of[task->index] : task->category;
}

static int32_t n_chunks_of(const pl_timeline_drawing *d) {
  return d->diagram->chunk_of != NULL ? d->diagram->n_chunks : 1;
}

static int32_t chunk_of(const pl_timeline_drawing *d, const pl_task *task) {
  return d->diagram->chunk_of != NULL && task->kind == PL_TASK_WORK ? d->diagram->chunk_of[task->index] : 0;
}

/* Of a chunk's bars: microbatch 3 of chunk 0 and of chunk 1 are told apart. */
static double opacity_of(const pl_timeline_drawing *d, int32_t chunk) {
  int32_t n = n_chunks_of(d);
  return n < 2 ? 1 : 1 - 0.62 * chunk / (n - 1);
}

static void begin_path(const pl_timeline_drawing *d, uint32_t category, int32_t chunk) {
  fprintf(d->stream, "<path fill=\"%s\"", fills[category]);
  if (chunk > 0) fprintf(d->stream, " fill-opacity=\"%.2f\"", opacity_of(d, chunk));
  fputs(" d=\"", d->stream);
}

static void put_bars(const pl_timeline_drawing *d, uint32_t row, uint32_t category, int32_t chunk) {
  bool open = false, computes = false;
  for (uint32_t at = 0; at < d->graph->n_tasks; at++) {
    const pl_task *task = &d->graph->tasks[at];
    if (category_of(d, task) != category || chunk_of(d, task) != chunk ||
        !is_on(d, task, d->diagram->devices[row], &computes))
      continue;
    for (int second = 0; second < 2; second++) {
      pl_ticks start = d->result->start[at], finish = d->result->finish[at];
      if (!pl_timeline_clip(d, second == 1, &start, &finish)) continue;
      if (!open) begin_path(d, category, chunk);
      open = true;
      put_bar(d, row, computes, start, finish);
    }
  }
  if (open) fputs("\"/>\n", d->stream);
}

/* Of the microbatch, where there is room for it. */
static void put_numbers(const pl_timeline_drawing *d, uint32_t row) {
  double size = fmin(12, 0.5 * d->row_height);
  if (size < 5.5) return;
  fprintf(d->stream, "<g font-size=\"%.1f\" fill=\"#fff\" text-anchor=\"middle\">", size);
  for (uint32_t at = 0; at < d->graph->n_tasks; at++) {
    const pl_task *task = &d->graph->tasks[at];
    bool computes = false;
    if (task->kind != PL_TASK_WORK || task->microbatch < 0 || !is_on(d, task, d->diagram->devices[row], &computes))
      continue;
    for (int second = 0; second < 2 && computes; second++) {
      pl_ticks start = d->result->start[at], finish = d->result->finish[at];
      if (!pl_timeline_clip(d, second == 1, &start, &finish)) continue;
      double x = pl_timeline_x_of(d, start), width = pl_timeline_x_of(d, finish) - x;
      int digits = task->microbatch < 10 ? 1 : task->microbatch < 100 ? 2 : task->microbatch < 1000 ? 3 : 5;
      if (width < 0.62 * size * digits + 2) continue;
      fprintf(d->stream, "<text x=\"%.1f\" y=\"%.1f\"%s>%" PRId32 "</text>", x + width / 2,
              y_of(d, row) + 0.37 * d->row_height + 0.36 * size,
              opacity_of(d, chunk_of(d, task)) < 0.6 ? " fill=\"#1d2733\"" : "", task->microbatch);
    }
  }
  fputs("</g>\n", d->stream);
}

static void put_row(const pl_timeline_drawing *d, uint32_t row) {
  double y = y_of(d, row), height = 0.95 * d->row_height;
  fprintf(d->stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"%.1f\">", LEFT - 8,
          y + 0.5 * height + 4, fmin(13, fmax(7, 0.7 * d->row_height)));
  put_escaped(d->stream, d->diagram->labels[row]);
  fputs("</text>\n", d->stream);
  double first_x = pl_timeline_x_of(d, d->first_end);
  fprintf(d->stream, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#eef1f4\"/>\n", LEFT, y,
          first_x - LEFT, height);
  if (d->has_gap)
    fprintf(d->stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#eef1f4\"/>\n", first_x + GAP,
            y, WIDTH - RIGHT - first_x - GAP, height);
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    for (int32_t chunk = 0; fills[category] != NULL && chunk < n_chunks_of(d); chunk++)
      put_bars(d, row, category, chunk);
  put_numbers(d, row);
}

/* ---- around them ---- */

static bool is_drawn(const pl_timeline_drawing *d, uint32_t category) {
  for (uint32_t at = 0; at < d->graph->n_tasks; at++)
    if (category_of(d, &d->graph->tasks[at]) == category && d->graph->tasks[at].n_streams > 0) return true;
  return false;
}

static void put_legend(const pl_timeline_drawing *d, double y) {
  double x = LEFT;
  for (uint32_t category = 0; category <= PL_CATEGORY_COUNT; category++) {
    bool waits = category == PL_CATEGORY_COUNT;
    if (!waits && (fills[category] == NULL || !is_drawn(d, category))) continue;
    const char *name = waits ? "waiting" : pl_category_name((pl_category)category);
    fprintf(
        d->stream,
        "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
        x, y, waits ? "#eef1f4" : fills[category], x + 17, y + 11, name);
    x += 32 + 7.2 * (double)strlen(name);
  }
  for (int32_t chunk = 0; n_chunks_of(d) > 1 && chunk < n_chunks_of(d); chunk++) {
    fprintf(d->stream,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\" fill-opacity=\"%.2f\"/>"
            "<text x=\"%.0f\" y=\"%.0f\">%s%" PRId32 "</text>\n",
            x, y, fills[PL_CATEGORY_FORWARD], opacity_of(d, chunk), x + 17, y + 11, chunk == 0 ? "chunk " : "", chunk);
    x += chunk == 0 ? 82 : 44;
  }
}

/* What is left out between the windows, along the rows and as long as they have room for it. */
static void put_gap(const pl_timeline_drawing *d) {
  static const char *const words[] = {"the %" PRId32 " microbatches go on alike", "%" PRId32 " alike", "..."};
  double middle = pl_timeline_x_of(d, d->first_end) + GAP / 2.0, height = d->diagram->n_rows * d->row_height;
  char text[64];
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    snprintf(text, sizeof text, words[i], d->diagram->n_microbatches);
    if ((double)strlen(text) * 6.6 < height + 14) break;
  }
  fprintf(d->stream,
          "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\" font-size=\"13\" fill=\"#5b6875\" "
          "transform=\"rotate(-90 %.0f %.0f)\">%s</text>\n",
          middle + 4, TOP + height / 2, middle + 4, TOP + height / 2, text);
}

static void put_axis(const pl_timeline_drawing *d, double y) {
  char text[PL_UNIT_TEXT_BYTES];
  const pl_ticks marks[] = {0, d->first_end, d->second_start, d->result->makespan};
  for (int i = 0; i < 4; i++) {
    if ((i == 1 || i == 2) && !d->has_gap) continue;
    double x = i == 2 ? pl_timeline_x_of(d, d->first_end) + GAP : pl_timeline_x_of(d, marks[i]);
    fprintf(d->stream, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>\n", x, y + 14,
            i == 0 || i == 2 ? "start" : "end", pl_format_time(pl_ticks_to_s(marks[i]), text));
  }
  if (d->has_gap) put_gap(d);
}

void pl_timeline_write_svg(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                           const pl_diagram *diagram) {
  pl_timeline_drawing d = {.stream = stream, .graph = graph, .result = result, .diagram = diagram};
  d.row_height = fmin(MOST_ROW, fmax(LEAST_ROW, (double)ROWS_HEIGHT / diagram->n_rows));
  uint8_t *pass_of = malloc(graph->n_segments + 1);
  for (uint32_t at = 0; pass_of != NULL && at < graph->n_segments; at++)
    pass_of[at] = (uint8_t)pl_graph_segment_category(graph, at);
  d.pass_of = pass_of;
  choose_windows(&d);
  double bottom = TOP + diagram->n_rows * d.row_height, memory_top = bottom + AXIS;
  double memory_height = pl_timeline_memory_height(&d);
  fprintf(stream,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" font-family=\"system-ui, sans-serif\" "
          "font-size=\"13\" fill=\"#1d2733\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
          WIDTH, memory_top + memory_height + LEGEND);
  fprintf(stream, "<text x=\"%d\" y=\"26\" font-size=\"19\" font-weight=\"600\">", LEFT);
  put_escaped(stream, diagram->title);
  fprintf(stream, "</text>\n<text x=\"%d\" y=\"47\" fill=\"#5b6875\">", LEFT);
  put_escaped(stream, diagram->subtitle);
  fputs("</text>\n", stream);
  for (uint32_t row = 0; row < diagram->n_rows; row++)
    put_row(&d, row);
  put_axis(&d, bottom + 2);
  pl_timeline_put_memory(&d, memory_top);
  put_legend(&d, memory_top + memory_height + 10);
  fputs("</svg>\n", stream);
  free(pass_of);
}
