/* The report as a page (see validation/report/report.h). Written as XML, so that any XML parser can check it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "validation/report/ablation.h"
#include "validation/report/assumptions.h"
#include "validation/report/report.h"
#include "validation/rows/case_statistics.h"

static const char page_style[] =
    ":root{color-scheme:light dark}body{font:14px/1.45 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "max-width:1400px;margin:2em auto;padding:0 1em}table{border-collapse:collapse;margin:.5em 0 1.5em}th,td{padding:"
    ".2em .7em;border-bottom:1px solid #8c959f55;text-align:right}th:first-child,td:first-child{text-align:left}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(320px,1fr));gap:8px}.plots svg{width:100%}"
    ".bar{display:flex;width:220px;height:12px}.bar i{display:block;height:100%}.p0{background:#0969da}.p1{background:"
    "#d4580a}.p2{background:#8250df}.p3{background:#bf3989}.p4{background:#8c959f}.note{color:#6e7781}";

static void put_number(FILE *stream, const char *format, double value) {
  fputs("<td>", stream);
  if (isnan(value))
    fputs("–", stream);
  else
    fprintf(stream, format, value); /* NOLINT: formats are literals of this file */
  fputs("</td>", stream);
}

static void put_group(FILE *stream, const pl_case_group *group) {
  const pl_statistics *s = &group->statistics;
  fputs("<tr><td>", stream);
  pl_xml_text(stream, group->name);
  fprintf(stream, "</td><td>%u</td><td>%u</td><td>%u</td>", s->n_rows, s->n_cases, s->n_expressed);
  put_number(stream, "%.1f", s->mape_pct);
  put_number(stream, "%.1f", s->median_ape_pct);
  put_number(stream, "%.1f", s->p90_ape_pct);
  put_number(stream, "%+.1f", s->bias_pct);
  put_number(stream, "%.2f", s->spearman);
  put_number(stream, "%.1f", s->regret_pct);
  put_number(stream, "%.0f", s->coverage_pct);
  fputs("</tr>\n", stream);
}

static void put_summary(FILE *stream, const pl_case_groups *groups) {
  const pl_group_summary s = pl_case_groups_summary(groups);
  if (s.n_groups < 2) return;
  fprintf(stream,
          "<p class=\"note\">Mean over %u: MAPE %.1f %%, %.0f %% in their intervals; median: %.1f %%, %.0f %%.</p>\n",
          s.n_groups, s.mean_mape_pct, s.mean_coverage_pct, s.median_mape_pct, s.median_coverage_pct);
}

static void put_groups(FILE *stream, const pl_case_groups *groups) {
  fprintf(stream,
          "<h2>By %s</h2>\n<table><tr><th>%s</th><th>rows</th><th>configurations</th><th>expressed</th><th>MAPE "
          "%%</th><th>median %%</th><th>p90 %%</th><th>bias %%</th><th>Spearman</th><th>regret %%</th><th>in 80 %% "
          "interval %%</th></tr>\n",
          groups->title, groups->title);
  for (uint32_t g = 0; g < groups->n_groups; g++)
    put_group(stream, &groups->groups[g]);
  fputs("</table>\n", stream);
  put_summary(stream, groups);
}

static void put_plots(FILE *stream, const pl_case_groups *families) {
  fputs(
      "<h2>Predicted over measured time</h2>\n<p class=\"note\">Seconds per iteration, both axes logarithmic; the line "
      "is where both are equal, the band 25 % to either side; the strokes are 80 % prediction intervals.</p>\n<div "
      "class=\"plots\">\n",
      stream);
  for (uint32_t g = 0; g < families->n_groups; g++) {
    if (families->groups[g].statistics.n_timed == 0) continue;
    fprintf(stream, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">", PL_SCATTER_SIZE,
            PL_SCATTER_SIZE);
    pl_scatter_draw(stream, &families->groups[g], 0, 0, true);
    fputs("</svg>\n", stream);
  }
  fputs("</div>\n", stream);
}

static void put_memory(FILE *stream, const pl_case_groups *families) {
  fputs("<h2>Memory</h2>\n<table><tr><th>family</th><th>measured peaks</th><th>MAPE %</th><th>median %</th><th>bias "
        "%</th><th>ran, predicted to fit</th><th>ran, predicted not to</th><th>crashed, predicted to "
        "fit</th><th>crashed, "
        "predicted not to</th></tr>\n",
        stream);
  for (uint32_t g = 0; g < families->n_groups; g++) {
    const pl_statistics *s = &families->groups[g].statistics;
    if (s->n_expressed == 0) continue;
    fputs("<tr><td>", stream);
    pl_xml_text(stream, families->groups[g].name);
    fprintf(stream, "</td><td>%u</td>", s->n_memory);
    put_number(stream, "%.1f", s->memory_mape_pct);
    put_number(stream, "%.1f", s->memory_median_ape_pct);
    put_number(stream, "%+.1f", s->memory_bias_pct);
    fprintf(stream, "<td>%u</td><td>%u</td><td>%u</td><td>%u</td></tr>\n", s->verdict[0][0], s->verdict[0][1],
            s->verdict[1][0], s->verdict[1][1]);
  }
  fputs("</table>\n", stream);
}

static void put_worst_case(FILE *stream, const pl_case *c) {
  char strategy[160], measured[PL_UNIT_TEXT_BYTES], predicted[PL_UNIT_TEXT_BYTES];
  double percent[PL_REPORT_PARTS];
  pl_report_strategy(c, strategy, sizeof strategy);
  pl_report_parts(c, percent);
  fputs("<tr><td>", stream);
  pl_xml_text(stream, c->row->file);
  fprintf(stream, ":%u<br/>", c->row->line);
  pl_xml_text(stream, c->row->model);
  fprintf(stream, ", %" PRId64 " ", c->row->n_gpus);
  pl_xml_text(stream, c->row->gpu);
  fprintf(stream, "<br/>%s</td><td>%s</td><td>%s</td><td>%+.0f</td><td><div class=\"bar\">", strategy,
          pl_format_time(c->measured_s, measured), pl_format_time(c->result.iter_time_s, predicted),
          100 * pl_case_error(c));
  for (int i = 0; i < PL_REPORT_PARTS; i++)
    fprintf(stream, "<i class=\"p%d\" style=\"width:%.1f%%\" title=\"%s %.0f %%\"></i>", i, percent[i],
            pl_report_part_names[i], percent[i]);
  fputs("</div></td></tr>\n", stream);
}

static void put_worst(FILE *stream, const pl_report *report) {
  fputs("<h2>Largest errors</h2>\n<p class=\"note\">What the predicted time is made of:", stream);
  for (int i = 0; i < PL_REPORT_PARTS; i++)
    fprintf(stream, " <b class=\"p%d\">&#160;&#160;</b> %s", i, pl_report_part_names[i]);
  fputs("</p>\n<table><tr><th>configuration</th><th>measured</th><th>predicted</th><th>error "
        "%</th><th>parts</th></tr>\n",
        stream);
  for (uint32_t i = 0; i < report->n_worst; i++)
    put_worst_case(stream, report->worst[i]);
  fputs("</table>\n", stream);
}

static void put_reasons(FILE *stream, const pl_case_groups *reasons) {
  if (reasons->n_groups == 0) return;
  fputs("<h2>Not expressed</h2>\n<table><tr><th>reason</th><th>rows</th><th>configurations</th></tr>\n", stream);
  for (uint32_t g = 0; g < reasons->n_groups; g++) {
    const pl_case_group *group = &reasons->groups[g];
    fputs("<tr><td><details><summary>", stream);
    pl_xml_text(stream, group->name);
    fputs("</summary>\n", stream);
    for (uint32_t i = 0; i < group->n_cases; i++) {
      const pl_case *c = group->cases[i];
      pl_xml_text(stream, c->row->file);
      fprintf(stream, ":%u ", c->row->line);
      pl_xml_text(stream, c->row->model);
      fputs(": ", stream);
      pl_xml_text(stream, c->reason);
      fputs("<br/>\n", stream);
    }
    fprintf(stream, "</details></td><td>%u</td><td>%u</td></tr>\n", group->statistics.n_rows, group->n_cases);
  }
  fputs("</table>\n", stream);
}

void pl_report_html(FILE *stream, const pl_report *report) {
  const pl_statistics *all = &report->by[PL_BY_ALL].groups[0].statistics;
  fprintf(stream,
          "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
          "<title>Paceline: predicted beside measured</title>\n<style>%s%s</style></head><body>\n"
          "<h1>Predicted beside measured</h1>\n<p>%u rows, %u different configurations, %u expressed, %u "
          "compared.</p>\n",
          page_style, pl_scatter_style, all->n_rows, all->n_cases, all->n_expressed, all->n_timed);
  put_groups(stream, &report->by[PL_BY_FAMILY]);
  put_plots(stream, &report->by[PL_BY_FAMILY]);
  put_worst(stream, report);
  if (report->ablation != NULL) pl_ablation_html(stream, report->ablation);
  put_memory(stream, &report->by[PL_BY_FAMILY]);
  put_reasons(stream, &report->by[PL_BY_REASON]);
  pl_assumptions_html(stream, report->cases);
  put_groups(stream, &report->by[PL_BY_SOURCE]);
  put_groups(stream, &report->by[PL_BY_GPU]);
  put_groups(stream, &report->by[PL_BY_FRAMEWORK]);
  fputs("</body></html>\n", stream);
}
