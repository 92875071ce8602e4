/* What the ablation says, as text, JSON and HTML (see validation/report/ablation.h). */
#include <inttypes.h>
#include <math.h>

#include "core/base/units.h"
#include "validation/report/ablation.h"

static void print_number(FILE *stream, double value) {
  if (isnan(value))
    fprintf(stream, " %8s", "-");
  else
    fprintf(stream, " %8.1f", value);
}

void pl_ablation_print(FILE *stream, const pl_ablation *ablation) {
  fprintf(stream, "%-30s %8s %8s %8s %8s   %8s %6s %6s %9s\n", "ablation, MAPE%", "all", "no over.", "no shar.",
          "neither", "sharing:", "> 1 %", "> 5 %", "largest%");
  for (uint32_t f = 0; f < ablation->n_families; f++) {
    const pl_ablated_family *family = &ablation->families[f];
    fprintf(stream, "%-30.30s", family->name);
    for (int variant = 0; variant < PL_VARIANT_COUNT; variant++)
      print_number(stream, family->mape_pct[variant]);
    fprintf(stream, "   %5u of %6u %6u %9.1f\n", family->n_expressed, family->n_over_1, family->n_over_5,
            family->most_pct);
  }
  fprintf(stream, "\n%-30s %8s %8s %8s\n", "where sharing counts, MAPE%", "rows", "flow", "analytic");
  for (uint32_t f = 0; f < ablation->n_families; f++) {
    const pl_ablated_family *family = &ablation->families[f];
    if (family->n_shared > 0)
      fprintf(stream, "%-30.30s %8u %8.1f %8.1f\n", family->name, family->n_shared, family->shared_mape_pct[0],
              family->shared_mape_pct[1]);
  }
  fputs("\nsharing changes most\n", stream);
  for (uint32_t i = 0; i < ablation->n_largest; i++) {
    const pl_shared_case *own = &ablation->largest[i];
    char strategy[160];
    double percent[PL_REPORT_PARTS];
    pl_report_strategy(own->c, strategy, sizeof strategy);
    pl_report_parts(own->c, percent);
    fprintf(stream, "  %+6.1f %%  %s:%u %s, %" PRId64 " %s, %s:", own->change_pct, own->c->row->file, own->c->row->line,
            own->c->row->model, own->c->row->n_gpus, own->c->row->gpu, strategy);
    for (int part = 0; part < PL_REPORT_PARTS; part++)
      fprintf(stream, " %s %.0f %%", pl_report_part_names[part], percent[part]);
    fputc('\n', stream);
  }
  fputc('\n', stream);
}

static void put_variants(pl_json *json, const char *key, const double values[PL_VARIANT_COUNT]) {
  pl_json_key(json, key);
  pl_json_open_object(json);
  for (int variant = 0; variant < PL_VARIANT_COUNT; variant++)
    pl_json_put_number(json, pl_variant_names[variant], values[variant]);
  pl_json_close_object(json);
}

static void put_family(pl_json *json, const pl_ablated_family *family) {
  pl_json_open_object(json);
  pl_json_put_string(json, "family", family->name);
  pl_json_put_integer(json, "compared", family->n_timed);
  put_variants(json, "mape_pct", family->mape_pct);
  put_variants(json, "median_ape_pct", family->median_pct);
  pl_json_put_integer(json, "expressed", family->n_expressed);
  pl_json_put_integer(json, "sharing_over_1_pct", family->n_over_1);
  pl_json_put_integer(json, "sharing_over_5_pct", family->n_over_5);
  pl_json_put_number(json, "sharing_most_pct", family->most_pct);
  pl_json_put_integer(json, "compared_over_1_pct", family->n_shared);
  pl_json_put_number(json, "mape_over_1_pct_with_sharing", family->shared_mape_pct[0]);
  pl_json_put_number(json, "mape_over_1_pct_without", family->shared_mape_pct[1]);
  pl_json_close_object(json);
}

void pl_ablation_json(pl_json *json, const pl_ablation *ablation) {
  pl_json_open_object(json);
  pl_json_key(json, "families");
  pl_json_open_array(json);
  for (uint32_t f = 0; f < ablation->n_families; f++)
    put_family(json, &ablation->families[f]);
  pl_json_close_array(json);
  pl_json_key(json, "sharing");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < ablation->n_largest; i++) {
    const pl_shared_case *own = &ablation->largest[i];
    char strategy[160];
    pl_report_strategy(own->c, strategy, sizeof strategy);
    pl_json_open_object(json);
    pl_json_put_string(json, "file", own->c->row->file);
    pl_json_put_integer(json, "line", own->c->row->line);
    pl_json_put_string(json, "model", own->c->row->model);
    pl_json_put_string(json, "strategy", strategy);
    pl_json_put_number(json, "change_pct", own->change_pct);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  pl_json_close_object(json);
}

static void put_percent(FILE *stream, double value) {
  if (isnan(value))
    fputs("<td>–</td>", stream);
  else
    fprintf(stream, "<td>%.1f</td>", value);
}

void pl_ablation_html(FILE *stream, const pl_ablation *ablation) {
  fputs("<h2>Ablation</h2>\n<p class=\"note\">MAPE without the overlap factor of device profiles, without sharing (the "
        "analytic network) and without both; and how many predictions sharing changes.</p>\n"
        "<div class=\"scroll\"><table><tr><th>family</th><th>all on</th><th>no overlap factor</th><th>no "
        "sharing</th><th>neither</th>"
        "<th>predictions</th><th>sharing: over 1 %</th><th>over 5 %</th><th>largest %</th></tr>\n",
        stream);
  for (uint32_t f = 0; f < ablation->n_families; f++) {
    const pl_ablated_family *family = &ablation->families[f];
    fputs("<tr><td>", stream);
    pl_xml_text(stream, family->name);
    fputs("</td>", stream);
    for (int variant = 0; variant < PL_VARIANT_COUNT; variant++)
      put_percent(stream, family->mape_pct[variant]);
    fprintf(stream, "<td>%u</td><td>%u</td><td>%u</td><td>%.1f</td></tr>\n", family->n_expressed, family->n_over_1,
            family->n_over_5, family->most_pct);
  }
  fputs("</table></div>\n<div class=\"scroll\"><table><tr><th>sharing changes most</th><th>by %</th></tr>\n", stream);
  for (uint32_t i = 0; i < ablation->n_largest; i++) {
    const pl_case *c = ablation->largest[i].c;
    char strategy[160];
    pl_report_strategy(c, strategy, sizeof strategy);
    fputs("<tr><td>", stream);
    pl_xml_text(stream, c->row->file);
    fprintf(stream, ":%u ", c->row->line);
    pl_xml_text(stream, c->row->model);
    fprintf(stream, ", %" PRId64 " ", c->row->n_gpus);
    pl_xml_text(stream, c->row->gpu);
    fprintf(stream, ", %s</td><td>%+.1f</td></tr>\n", strategy, ablation->largest[i].change_pct);
  }
  fputs("</table></div>\n", stream);
}
