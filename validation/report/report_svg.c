/* Scatter plots (see validation/report/report.h). Colours for light and dark pages, with a background of their own,
 * because a picture in a README cannot know what page it lies on. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "validation/report/report.h"
#include "validation/rows/case_statistics.h"

const char pl_scatter_style[] =
    ".card{fill:#fff;stroke:#d0d7de}.plot{fill:#fff;stroke:#6e7781}.grid{stroke:#eaeef2}.band{fill:#8c959f;"
    "fill-opacity:.18}.identity{stroke:#57606a;stroke-width:1.2}.point{fill:#0969da;fill-opacity:.55}.range{stroke:#"
    "0969da;stroke-opacity:.3;stroke-width:1}"
    "svg text{fill:#1f2328;font:11px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}svg .small{font-size:"
    "10px;fill:#57606a}svg .head{font-size:13px;font-weight:600}"
    "@media (prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#30363d}.plot{fill:#0d1117;stroke:#8b949e}.grid{"
    "stroke:#21262d}.identity{stroke:#b1bac4}.point{fill:#58a6ff}.range{stroke:#58a6ff}svg text{fill:#e6edf3}svg "
    ".small{fill:#9ea7b3}}";

/* The square in which points lie; the same logarithmic axis both ways. */
typedef struct panel {
  double left, top, size, low, high; /* seconds */
} panel;

static double along(const panel *p, double time_s) {
  return p->size * log(time_s / p->low) / log(p->high / p->low);
}

static double across_x(const panel *p, double time_s) {
  return p->left + along(p, time_s);
}

static double across_y(const panel *p, double time_s) {
  return p->top + p->size - along(p, time_s);
}

/* From 10 % below the smallest to 10 % above the largest. */
static bool find_range(const pl_case_group *group, panel *p) {
  p->low = INFINITY;
  p->high = 0;
  for (uint32_t i = 0; i < group->n_cases; i++) {
    const pl_case *c = group->cases[i];
    if (!pl_case_is_timed(c)) continue;
    p->low = fmin(p->low, 0.9 * fmin(c->measured_s, c->result.iter_time_s));
    p->high = fmax(p->high, 1.1 * fmax(c->measured_s, c->result.iter_time_s));
  }
  double narrow = sqrt(2 / fmax(1, p->high / p->low)); /* a factor of two at least */
  if (narrow > 1) {
    p->low /= narrow;
    p->high *= narrow;
  }
  return p->high > 0;
}

/* At 1, 2 and 5 times powers of ten, powers alone over more than two decades. */
static void draw_grid(FILE *stream, const panel *p) {
  static const double steps[] = {1, 2, 5};
  double decades = log10(p->high / p->low);
  for (int exponent = (int)floor(log10(p->low)); exponent <= (int)ceil(log10(p->high)); exponent++)
    for (int s = 0; s < (decades > 2 ? 1 : 3); s++) {
      double tick = steps[s] * pow(10, exponent), x = across_x(p, tick), y = across_y(p, tick);
      if (tick < p->low || tick > p->high) continue;
      fprintf(stream, "<path class=\"grid\" d=\"M%.1f %.1fv%.1fM%.1f %.1fh%.1f\"/>", x, p->top, p->size, p->left, y,
              p->size);
      fprintf(stream, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>", x,
              p->top + p->size + 13, tick);
      fprintf(stream, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", p->left - 4, y + 3,
              tick);
    }
}

/* Between 25 % too fast and 25 % too slow, inside the square. */
static void draw_band(FILE *stream, const panel *p) {
  double over = along(p, 1.25 * p->low), under = -along(p, 0.75 * p->low);
  double right = p->left + p->size, bottom = p->top + p->size;
  fprintf(stream,
          "<polygon class=\"band\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>"
          "<path class=\"identity\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
          p->left, bottom, p->left, bottom - over, right - over, p->top, right, p->top, right, p->top + under,
          p->left + under, bottom, p->left, bottom, right, p->top);
}

/* From the lower to the upper end of the prediction interval, inside the square. */
static void draw_interval(FILE *stream, const panel *p, const pl_case *c) {
  double low = fmax(c->interval.low_s, p->low), high = fmin(c->interval.high_s, p->high);
  if (isnan(c->interval.low_s) || low >= high) return;
  fprintf(stream, "<path class=\"range\" d=\"M%.1f %.1fV%.1f\"/>", across_x(p, c->measured_s), across_y(p, low),
          across_y(p, high));
}

static void draw_point(FILE *stream, const panel *p, const pl_case *c, bool titles) {
  fprintf(stream, "<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"", across_x(p, c->measured_s),
          across_y(p, c->result.iter_time_s));
  if (!titles) {
    fputs("/>", stream);
    return;
  }
  char strategy[160], measured[PL_UNIT_TEXT_BYTES], predicted[PL_UNIT_TEXT_BYTES], range[PL_INTERVAL_TEXT_BYTES];
  pl_report_strategy(c, strategy, sizeof strategy);
  fputs("><title>", stream);
  pl_xml_text(stream, c->row->model);
  fprintf(stream, ", %" PRId64 " GPUs, ", c->row->n_gpus);
  pl_xml_text(stream, strategy);
  fprintf(stream, ": measured %s, predicted %s", pl_format_time(c->measured_s, measured),
          pl_format_time(c->result.iter_time_s, predicted));
  if (!isnan(c->interval.low_s)) fprintf(stream, " (80 %%: %s)", pl_interval_format(&c->interval, range));
  fprintf(stream, ", %+.0f %%</title></circle>\n", 100 * pl_case_error(c));
}

bool pl_scatter_draw(FILE *stream, const pl_case_group *group, double left, double top, bool titles) {
  panel p = {.left = left + 44, .top = top + 30, .size = PL_SCATTER_SIZE - 76};
  if (!find_range(group, &p)) return false;
  const pl_statistics *s = &group->statistics;
  fprintf(stream, "<g><rect class=\"card\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"6\"/>", left + 2,
          top + 2, PL_SCATTER_SIZE - 4, PL_SCATTER_SIZE - 4);
  fprintf(stream, "<text class=\"head\" x=\"%.1f\" y=\"%.1f\">", left + 12, top + 21);
  pl_xml_text(stream, group->name);
  fprintf(stream, "</text><text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%u, MAPE %.1f %%</text>\n",
          left + PL_SCATTER_SIZE - 12, top + 21, s->n_timed, s->mape_pct);
  fprintf(stream, "<rect class=\"plot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", p.left, p.top, p.size,
          p.size);
  draw_grid(stream, &p);
  draw_band(stream, &p);
  for (uint32_t i = 0; titles && i < group->n_cases; i++)
    if (pl_case_is_timed(group->cases[i])) draw_interval(stream, &p, group->cases[i]);
  for (uint32_t i = 0; i < group->n_cases; i++)
    if (pl_case_is_timed(group->cases[i])) draw_point(stream, &p, group->cases[i], titles);
  fprintf(stream, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">measured, s</text>",
          p.left + p.size / 2, p.top + p.size + 28);
  fprintf(stream,
          "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 %.1f "
          "%.1f)\">predicted, s</text></g>\n",
          left + 14, p.top + p.size / 2, left + 14, p.top + p.size / 2);
  return true;
}

void pl_report_svg(FILE *stream, const pl_report *report) {
  enum { PER_LINE = 3 }; /* readable at the width of a page */
  const pl_case_groups *families = &report->by[PL_BY_FAMILY];
  uint32_t n = 0, shown = 0;
  for (uint32_t g = 0; g < families->n_groups; g++)
    n += families->groups[g].statistics.n_timed > 0;
  uint32_t width = PL_SCATTER_SIZE * (n < PER_LINE ? n : PER_LINE),
           height = PL_SCATTER_SIZE * ((n + PER_LINE - 1) / PER_LINE);
  fprintf(stream,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" role=\"img\">\n"
          "<title>Predicted over measured iteration times, by family</title>\n<style>%s</style>\n",
          width, height, width, height, pl_scatter_style);
  for (uint32_t g = 0; g < families->n_groups; g++) {
    uint32_t column = shown % PER_LINE, line = shown / PER_LINE;
    shown += pl_scatter_draw(stream, &families->groups[g], (double)column * PL_SCATTER_SIZE,
                             (double)line * PL_SCATTER_SIZE, false);
  }
  fputs("</svg>\n", stream);
}
