/* The report as a page (see validation/report/report.h). Written as XML, so that any XML parser can check it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "validation/report/ablation.h"
#include "validation/report/assumptions.h"
#include "validation/report/report.h"
#include "validation/rows/case_statistics.h"

/* The dress of a sweep's page (search/command/report.html). */
static const char page_style[] =
    ":root{--ink:#1d2733;--soft:#5b6875;--line:#d9dfe5;--paper:#fff;--back:#f5f7f9}@media(prefers-color-scheme:dark){:"
    "root{--ink:#e6ebf0;--soft:#9aa7b4;--line:#36414c;--paper:#171d24;--back:#0f1419}}*{box-sizing:border-box}body{"
    "margin:0 auto;max-width:1240px;padding:16px;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,"
    "sans-serif}h1{font-size:1.5rem;margin:.3em 0}h2{font-size:1.1rem;margin:1.6em 0 "
    ".5em}.scroll,.words{background:var("
    "--paper);border:1px solid var(--line);border-radius:8px;padding:10px "
    "14px}.scroll{overflow-x:auto}.tall{max-height:"
    "70vh;overflow-y:auto}.facts{display:flex;flex-wrap:wrap;gap:10px;margin-bottom:10px}.fact{flex:1 1 "
    "150px;background:var(--paper);"
    "border:1px solid var(--line);border-radius:8px;padding:10px 14px}.fact b{display:block;font-size:1.35rem}.fact "
    "span,.note{color:var(--soft);font-size:.85rem}table{border-collapse:collapse;width:100%;font-size:.88rem}th,td{"
    "padding:4px 8px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}th:first-child,td:first-"
    "child,.text{text-align:left}th{color:var(--soft)}input{font:inherit;max-width:100%}.plots{display:grid;grid-"
    "template-columns:repeat(auto-fill,minmax(300px,1fr));gap:8px}.plots svg{width:100%}.bar{display:flex;width:180px;"
    "height:12px}.bar i{display:block;height:100%}.p0{background:#0969da}.p1{background:#d4580a}.p2{background:#8250df}"
    ".p3{background:#bf3989}.p4{background:#8c959f}dt{font-weight:600}dd{margin:0 0 .4em 0}";

/* Shows the rows that hold every word of the filter. */
static const char page_script[] =
    "const filter=document.getElementById('filter'),outside=document.getElementById('outside'),"
    "body=document.getElementById('rows'),said=document.getElementById('said');"
    "function update(){const words=filter.value.toLowerCase().split(/\\s+/).filter(w=>w);let n=0;"
    "for(const row of body.rows){const text=row.textContent.toLowerCase();"
    "const show=words.every(w=>text.includes(w))&&(!outside.checked||row.dataset.in==='0');"
    "row.hidden=!show;if(show)n++}said.textContent=n+' of '+body.rows.length+' configurations'}"
    "filter.addEventListener('input',update);outside.addEventListener('change',update);update();";

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
          "<h2>By %s</h2>\n<div "
          "class=\"scroll\"><table><tr><th>%s</th><th>rows</th><th>configurations</th><th>expressed</th><th>MAPE "
          "%%</th><th>median %%</th><th>p90 %%</th><th>bias %%</th><th>Spearman</th><th>regret %%</th><th>in 80 %% "
          "interval %%</th></tr>\n",
          groups->title, groups->title);
  for (uint32_t g = 0; g < groups->n_groups; g++)
    put_group(stream, &groups->groups[g]);
  fputs("</table></div>\n", stream);
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
  fputs("<h2>Memory</h2>\n<div class=\"scroll\"><table><tr><th>family</th><th>measured peaks</th><th>MAPE "
        "%</th><th>median %</th><th>bias "
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
  fputs("</table></div>\n", stream);
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
  fputs("</p>\n<div class=\"scroll\"><table><tr><th>configuration</th><th>measured</th><th>predicted</th><th>error "
        "%</th><th>parts</th></tr>\n",
        stream);
  for (uint32_t i = 0; i < report->n_worst; i++)
    put_worst_case(stream, report->worst[i]);
  fputs("</table></div>\n", stream);
}

static void put_reasons(FILE *stream, const pl_case_groups *reasons) {
  if (reasons->n_groups == 0) return;
  fputs("<h2>Not expressed</h2>\n<div "
        "class=\"scroll\"><table><tr><th>reason</th><th>rows</th><th>configurations</th></tr>\n",
        stream);
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
  fputs("</table></div>\n", stream);
}

/* ---- what stands on top ---- */

static void put_fact(FILE *stream, const char *format, double value, const char *what) {
  if (isnan(value)) return;
  fputs("<div class=\"fact\"><b>", stream);
  fprintf(stream, format, value); /* NOLINT: formats are literals of this file */
  fprintf(stream, "</b><span>%s</span></div>\n", what);
}

static void put_headline(FILE *stream, const pl_report *report) {
  const pl_statistics *all = &report->by[PL_BY_ALL].groups[0].statistics;
  const pl_group_summary sources = pl_case_groups_summary(&report->by[PL_BY_SOURCE]);
  bool several = sources.n_groups > 1;
  fputs("<div class=\"facts\">\n", stream);
  put_fact(stream, "%.1f %%", several ? sources.median_mape_pct : all->mape_pct,
           several ? "mean error of the median source: so far predicted times lie from measured ones"
                   : "mean error: so far predicted times lie from measured ones");
  put_fact(stream, "%.1f %%", all->median_ape_pct, "median error of all configurations");
  put_fact(stream, "%+.1f %%", all->bias_pct, "bias: below 0, predictions are too fast");
  put_fact(stream, "%.0f %%", all->coverage_pct, "in their interval, which is meant to hold 80 %");
  put_fact(stream, "%.0f", (double)all->n_timed, "configurations compared");
  fputs("</div>\n", stream);
}

static void put_words(FILE *stream) {
  fputs("<details class=\"words\"><summary>What the words mean</summary><dl>"
        "<dt>configuration</dt><dd>Rows that say the same are one; measured is their median.</dd>"
        "<dt>expressed</dt><dd>Paceline has words for it; what it has no words for stands under &#8220;Not "
        "expressed&#8221;.</dd>"
        "<dt>MAPE, median, p90</dt><dd>Of |predicted / measured - 1| in per cent: the mean, the middle one, and what "
        "nine of ten do not exceed.</dd>"
        "<dt>bias</dt><dd>The mean of predicted / measured - 1.</dd>"
        "<dt>Spearman</dt><dd>Rank correlation of MFU among configurations of one model on as many of the same GPUs: 1 "
        "is the right order.</dd>"
        "<dt>regret</dt><dd>How much longer the run takes that the predictions would choose than the best that was "
        "measured.</dd>"
        "<dt>80 % interval</dt><dd>Where 80 % of such runs are expected, from what calibration leaves over.</dd>"
        "</dl></details>\n",
        stream);
}

/* ---- every row ---- */

static void put_row(FILE *stream, const pl_case *c) {
  char strategy[160], text[PL_UNIT_TEXT_BYTES], range[PL_INTERVAL_TEXT_BYTES];
  bool known = !isnan(c->interval.low_s);
  bool inside = known && c->measured_s >= c->interval.low_s && c->measured_s <= c->interval.high_s;
  pl_report_strategy(c, strategy, sizeof strategy);
  const char *slash = strrchr(c->row->file, '/');
  fprintf(stream, "<tr data-in=\"%d\"><td>", inside);
  pl_xml_text(stream, slash != NULL ? slash + 1 : c->row->file);
  fprintf(stream, ":%u</td><td class=\"text\">", c->row->line);
  pl_xml_text(stream, c->row->model);
  fprintf(stream, "</td><td class=\"text\">%" PRId64 " ", c->row->n_gpus);
  pl_xml_text(stream, c->row->gpu);
  fputs("</td><td class=\"text\">", stream);
  pl_xml_text(stream, strategy);
  fprintf(stream, "</td><td>%s</td>", pl_format_time(c->measured_s, text));
  fprintf(stream, "<td>%s</td><td>%+.1f</td><td>%s%s</td></tr>\n", pl_format_time(c->result.iter_time_s, text),
          100 * pl_case_error(c), known ? pl_interval_format(&c->interval, range) : "",
          known && !inside ? ", outside" : "");
}

static void put_rows(FILE *stream, const pl_case_group *all) {
  fputs("<h2>Every configuration</h2>\n<p><input id=\"filter\" type=\"search\" placeholder=\"model, GPU, "
        "strategy ...\" aria-label=\"filter\"/> <label><input id=\"outside\" type=\"checkbox\"/> only those "
        "outside their interval</label> <span class=\"note\" id=\"said\"></span></p>\n<div class=\"scroll tall\">"
        "<table><thead><tr><th>row</th><th class=\"text\">model</th><th class=\"text\">GPUs</th><th "
        "class=\"text\">strategy</th><th>measured</th><th>predicted</th><th>error %</th><th>80 % interval</th></tr>"
        "</thead><tbody id=\"rows\">\n",
        stream);
  for (uint32_t i = 0; i < all->n_cases; i++)
    if (!isnan(pl_case_error(all->cases[i]))) put_row(stream, all->cases[i]);
  fprintf(stream, "</tbody></table></div>\n<script>//<![CDATA[\n%s\n//]]></script>\n", page_script);
}

void pl_report_html(FILE *stream, const pl_report *report) {
  const pl_statistics *all = &report->by[PL_BY_ALL].groups[0].statistics;
  fprintf(stream,
          "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src "
          "'unsafe-inline'\"/>\n"
          "<title>Paceline: predicted beside measured</title>\n<style>%s%s</style></head><body>\n"
          "<h1>Predicted beside measured</h1>\n<p>%u rows, %u different configurations, %u expressed, %u "
          "compared.</p>\n",
          page_style, pl_scatter_style, all->n_rows, all->n_cases, all->n_expressed, all->n_timed);
  put_headline(stream, report);
  put_words(stream);
  put_groups(stream, &report->by[PL_BY_FAMILY]);
  put_plots(stream, &report->by[PL_BY_FAMILY]);
  put_worst(stream, report);
  put_rows(stream, &report->by[PL_BY_ALL].groups[0]);
  if (report->ablation != NULL) pl_ablation_html(stream, report->ablation);
  put_memory(stream, &report->by[PL_BY_FAMILY]);
  put_reasons(stream, &report->by[PL_BY_REASON]);
  pl_assumptions_html(stream, report->cases);
  put_groups(stream, &report->by[PL_BY_SOURCE]);
  put_groups(stream, &report->by[PL_BY_GPU]);
  put_groups(stream, &report->by[PL_BY_FRAMEWORK]);
  fputs("</body></html>\n", stream);
}
