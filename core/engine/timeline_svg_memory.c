/* See core/engine/timeline_svg_draw.h. A line per stage, dark blue for the first to light for the last; of many stages
 * MOST_LINES, which are named. Of every half pixel the most that was held is drawn: peaks are never lost, dips that are
 * narrower are. */
#include <math.h>
#include <stdlib.h>

#include "core/base/units.h"
#include "core/engine/timeline_memory.h"
#include "core/engine/timeline_svg_draw.h"

enum { HEIGHT = 130, TITLE = 20, MOST_LINES = 8, PLOT = HEIGHT - TITLE - 8 };

double pl_timeline_memory_height(const pl_timeline_drawing *d) {
  for (uint32_t at = 0; at < d->graph->n_tasks; at++)
    if (d->graph->tasks[at].memory != PL_NONE && d->graph->tasks[at].n_streams > 0) return HEIGHT;
  return 0;
}

/* ---- one line ---- */

enum { COLUMNS = 2 * (PL_TIMELINE_WIDTH - PL_TIMELINE_LEFT - PL_TIMELINE_RIGHT) }; /* half a pixel wide */

typedef struct memory_columns {
  double most[COLUMNS]; /* bytes; -1: not on the page (the gap) */
} memory_columns;

/* The balance holds from `start` to `finish`. */
static void raise_columns(const pl_timeline_drawing *d, memory_columns *columns, pl_ticks start, pl_ticks finish,
                          double bytes) {
  for (int second = 0; second < (d->has_gap ? 2 : 1); second++) {
    pl_ticks from = start, to = finish;
    if (!pl_timeline_clip(d, second == 1, &from, &to)) continue;
    double left = pl_timeline_x_of(d, from), right = pl_timeline_x_of(d, to);
    if (second == 1 && from == d->second_start) left = pl_timeline_x_of(d, d->first_end) + PL_TIMELINE_GAP;
    int first = (int)(2 * (left - PL_TIMELINE_LEFT)), last = (int)(2 * (right - PL_TIMELINE_LEFT) - 1e-6);
    for (int column = first < 0 ? 0 : first; column <= last && column < COLUMNS; column++)
      columns->most[column] = fmax(columns->most[column], bytes);
  }
}

static void fill_columns(const pl_timeline_drawing *d, uint32_t device, const pl_memory_step *steps, size_t n,
                         memory_columns *columns) {
  for (int column = 0; column < COLUMNS; column++)
    columns->most[column] = -1;
  int64_t balance = d->graph->devices[device].resident_bytes;
  pl_ticks since = 0;
  for (size_t at = 0; at < n; at++) {
    if (steps[at].time > since) raise_columns(d, columns, since, steps[at].time, (double)balance);
    since = steps[at].time;
    balance += steps[at].bytes;
  }
  raise_columns(d, columns, since, d->result->makespan, (double)balance);
}

static void put_line(const pl_timeline_drawing *d, const memory_columns *columns, double bottom,
                     double pixels_per_byte) {
  bool open = false;
  for (int column = 0; column < COLUMNS; column++) {
    double bytes = columns->most[column], x = PL_TIMELINE_LEFT + column / 2.0, y = bottom - bytes * pixels_per_byte;
    if (open && bytes == columns->most[column - 1]) continue;
    if (open) fprintf(d->stream, "H%.1f", x);
    if (bytes >= 0) fprintf(d->stream, open ? "V%.2f" : "M%.1f %.2f", open ? y : x, y);
    open = bytes >= 0;
  }
  if (open) fprintf(d->stream, "H%d", PL_TIMELINE_WIDTH - PL_TIMELINE_RIGHT);
}

/* ---- which lines ---- */

static uint32_t line_row(const pl_timeline_drawing *d, uint32_t line, uint32_t n_lines) {
  return n_lines == 1 ? 0 : line * (d->diagram->n_rows - 1) / (n_lines - 1);
}

static size_t steps_of(const pl_memory_step *steps, size_t n, uint32_t device, size_t *first) {
  size_t count = 0;
  *first = 0;
  for (size_t at = 0; at < n; at++) {
    if (steps[at].device != device) continue;
    if (count++ == 0) *first = at;
  }
  return count;
}

static const char *line_colour(uint32_t line, uint32_t n_lines, char text[8]) {
  double share = n_lines == 1 ? 0 : (double)line / (n_lines - 1);
  snprintf(text, 8, "#%02x%02x%02x", (unsigned)lrint(0x1b + share * (0x8c - 0x1b)),
           (unsigned)lrint(0x3a + share * (0xc4 - 0x3a)), (unsigned)lrint(0x6b + share * (0xff - 0x6b)));
  return text;
}

static void put_name(const pl_timeline_drawing *d, double *x, double y, const char *colour, const char *name) {
  fprintf(d->stream,
          "<rect x=\"%.0f\" y=\"%.0f\" width=\"14\" height=\"3\" fill=\"%s\"/><text x=\"%.0f\" y=\"%.0f\" "
          "font-size=\"12\">%s</text>\n",
          *x, y - 5, colour, *x + 18, y, name);
  *x += 80;
}

static void put_frame(const pl_timeline_drawing *d, double top, double most_bytes, double pixels_per_byte) {
  double bottom = top + PLOT, end = pl_timeline_x_of(d, d->first_end);
  char text[PL_UNIT_TEXT_BYTES];
  fprintf(d->stream, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"#f6f8fa\"/>\n", PL_TIMELINE_LEFT,
          top, end - PL_TIMELINE_LEFT, PLOT);
  if (d->has_gap)
    fprintf(d->stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"#f6f8fa\"/>\n",
            end + PL_TIMELINE_GAP, top, PL_TIMELINE_WIDTH - PL_TIMELINE_RIGHT - end - PL_TIMELINE_GAP, PLOT);
  fprintf(d->stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"12\">0</text>\n", PL_TIMELINE_LEFT - 8,
          bottom);
  double usable = d->diagram->usable_bytes, marked = isfinite(usable) && usable > 0 ? usable : most_bytes;
  double y = bottom - marked * pixels_per_byte;
  fprintf(d->stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"12\">%s</text>\n", PL_TIMELINE_LEFT - 8,
          y + 4, pl_format_bytes(marked, text));
  if (marked == usable)
    fprintf(d->stream, "<path class=\"usable\" d=\"M%d %.1fH%d\" stroke=\"#c92a2a\" stroke-dasharray=\"5 4\"/>\n",
            PL_TIMELINE_LEFT, y, PL_TIMELINE_WIDTH - PL_TIMELINE_RIGHT);
}

void pl_timeline_put_memory(const pl_timeline_drawing *d, double top) {
  size_t n;
  pl_memory_step *steps = pl_memory_steps_list(d->graph, d->result, &n);
  if (steps == NULL) return;
  uint32_t n_lines = d->diagram->n_rows < MOST_LINES ? d->diagram->n_rows : MOST_LINES;
  double most = 0, name_x = PL_TIMELINE_LEFT + 160, usable = d->diagram->usable_bytes;
  for (uint32_t row = 0; row < d->diagram->n_rows; row++)
    most = fmax(most, (double)d->result->peak_bytes[d->diagram->devices[row]]);
  double scale = PLOT / (1.06 * fmax(most, isfinite(usable) ? usable : 0));
  fprintf(d->stream, "<text x=\"%d\" y=\"%.1f\" font-weight=\"600\">memory over time</text>\n", PL_TIMELINE_LEFT,
          top + TITLE - 6);
  put_frame(d, top + TITLE, most, scale);
  for (uint32_t line = n_lines; line-- > 0;) {
    uint32_t device = d->diagram->devices[line_row(d, line, n_lines)];
    size_t first, count = steps_of(steps, n, device, &first);
    char colour[8];
    fprintf(d->stream, "<path class=\"memory\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\" d=\"",
            line_colour(line, n_lines, colour));
    memory_columns columns;
    fill_columns(d, device, steps + first, count, &columns);
    put_line(d, &columns, top + TITLE + PLOT, scale);
    fputs("\"/>\n", d->stream);
  }
  for (uint32_t line = 0; line < n_lines; line++) {
    char colour[8];
    put_name(d, &name_x, top + TITLE - 6, line_colour(line, n_lines, colour),
             d->diagram->labels[line_row(d, line, n_lines)]);
  }
  if (isfinite(usable)) put_name(d, &name_x, top + TITLE - 6, "#c92a2a", "what a device has for it");
  free(steps);
}
