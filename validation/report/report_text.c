/* The report as text (see validation/report/report.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "validation/report/ablation.h"
#include "validation/report/assumptions.h"
#include "validation/report/report.h"
#include "validation/rows/case_statistics.h"

static void print_number(FILE *stream, int width, const char *format, double value) {
  char text[32] = "-";
  if (!isnan(value)) snprintf(text, sizeof text, format, value);
  fprintf(stream, " %*s", width, text);
}

static void print_line(FILE *stream, const pl_case_group *group) {
  const pl_statistics *s = &group->statistics;
  fprintf(stream, "%-40.40s %5u %7u %9u", group->name, s->n_rows, s->n_cases, s->n_expressed);
  print_number(stream, 7, "%.1f", s->mape_pct);
  print_number(stream, 7, "%.1f", s->median_ape_pct);
  print_number(stream, 7, "%.1f", s->p90_ape_pct);
  print_number(stream, 7, "%+.1f", s->bias_pct);
  print_number(stream, 8, "%.2f", s->spearman);
  print_number(stream, 7, "%.1f", s->regret_pct);
  if (!isnan(s->coverage_pct)) print_number(stream, 8, "%.0f", s->coverage_pct);
  fputc('\n', stream);
}

static void print_summary(FILE *stream, const pl_case_groups *groups) {
  const pl_group_summary s = pl_case_groups_summary(groups);
  if (s.n_groups < 2) return;
  fprintf(stream, "mean over %u: MAPE %.1f %%", s.n_groups, s.mean_mape_pct);
  if (!isnan(s.mean_coverage_pct)) fprintf(stream, ", covered %.0f %%", s.mean_coverage_pct);
  fprintf(stream, "; median: MAPE %.1f %%", s.median_mape_pct);
  if (!isnan(s.mean_coverage_pct)) fprintf(stream, ", covered %.0f %%", s.median_coverage_pct);
  fputc('\n', stream);
}

static void print_groups(FILE *stream, const pl_report *report, const pl_case_groups *groups) {
  bool ranged = !isnan(report->by[PL_BY_ALL].groups[0].statistics.coverage_pct);
  fprintf(stream, "%-40s %5s %7s %9s %7s %7s %7s %7s %8s %7s%s\n", groups->title, "rows", "configs", "expressed",
          "MAPE%", "median%", "p90%", "bias%", "spearman", "regret%", ranged ? " covered%" : "");
  for (uint32_t g = 0; g < groups->n_groups; g++)
    print_line(stream, &groups->groups[g]);
  print_summary(stream, groups);
  fputc('\n', stream);
}

/* Cases whose reasons differ in detail only stand under the first one's. */
static void print_reasons(FILE *stream, const pl_case_groups *reasons) {
  if (reasons->n_groups == 0) return;
  fprintf(stream, "not expressed%*s %5s %7s  for example\n", 27, "", "rows", "configs");
  for (uint32_t g = 0; g < reasons->n_groups; g++) {
    const pl_case_group *group = &reasons->groups[g];
    const pl_case *c = group->cases[0];
    const char *detail = c->reason + strlen(group->name);
    fprintf(stream, "%-40.40s %5u %7u  %s:%" PRIu32 "%s\n", group->name, group->statistics.n_rows, group->n_cases,
            c->row->file, c->row->line, detail);
  }
  fputc('\n', stream);
}

static void print_memory(FILE *stream, const pl_case_groups *families) {
  bool any = false;
  for (uint32_t g = 0; g < families->n_groups; g++) {
    const pl_case_group *group = &families->groups[g];
    const pl_statistics *s = &group->statistics;
    if (s->n_memory == 0 && s->verdict[1][0] + s->verdict[1][1] == 0) continue;
    if (!any)
      fprintf(stream, "%-40s %6s %7s %7s %7s   %s\n", "memory", "peaks", "MAPE%", "median%", "bias%",
              "ran: predicted to fit, not; out of memory: to fit, not");
    any = true;
    fprintf(stream, "%-40.40s %6u", group->name, s->n_memory);
    print_number(stream, 7, "%.1f", s->memory_mape_pct);
    print_number(stream, 7, "%.1f", s->memory_median_ape_pct);
    print_number(stream, 7, "%+.1f", s->memory_bias_pct);
    fprintf(stream, "   %u, %u; %u, %u\n", s->verdict[0][0], s->verdict[0][1], s->verdict[1][0], s->verdict[1][1]);
  }
  if (any) fputc('\n', stream);
}

static void print_besides(FILE *stream, const pl_besides *besides) {
  if (besides->n_families == 0) return;
  fprintf(stream, "%-40s %5s %7s %7s %7s %7s %8s %7s %6s %7s %7s\n", "beside the sources' predictions", "times",
          "MAPE%", "theirs", "bias%", "theirs", "spearman", "theirs", "peaks", "MAPE%", "theirs");
  for (uint32_t i = 0; i < besides->n_families; i++) {
    const pl_beside *b = &besides->families[i];
    fprintf(stream, "%-40.40s %5u", b->family, b->n_times);
    print_number(stream, 7, "%.1f", b->mape_pct[0]);
    print_number(stream, 7, "%.1f", b->mape_pct[1]);
    print_number(stream, 7, "%+.1f", b->bias_pct[0]);
    print_number(stream, 7, "%+.1f", b->bias_pct[1]);
    print_number(stream, 8, "%.3f", b->spearman[0]);
    print_number(stream, 7, "%.3f", b->spearman[1]);
    fprintf(stream, " %6u", b->n_memory);
    print_number(stream, 7, "%.1f", b->memory_mape_pct[0]);
    print_number(stream, 7, "%.1f", b->memory_mape_pct[1]);
    fputc('\n', stream);
  }
  fputc('\n', stream);
}

static void print_place(FILE *stream, int64_t place) {
  if (place > 0)
    fprintf(stream, " %9" PRId64, place);
  else
    fprintf(stream, " %9s", "-");
}

static void print_order(FILE *stream, const pl_order *order) {
  const pl_measured_row *row = order->cases[0]->row;
  char name[128], strategy[160], time[PL_UNIT_TEXT_BYTES];
  snprintf(name, sizeof name, "order: %s, %" PRId64 " %s", row->family, row->n_gpus, row->gpu);
  fprintf(stream, "%-40.60s %9s %9s %9s   predicted\n", name, "measured", "ours", "theirs");
  for (uint32_t i = 0; i < order->n_cases; i++) {
    const pl_case *c = order->cases[i];
    snprintf(strategy, sizeof strategy, "tp %" PRId64 " pp %" PRId64 " dp %" PRId64 " mbs %" PRId64, c->row->tp,
             c->row->pp, c->row->dp, c->row->mbs);
    fprintf(stream, "  %-38s", strategy);
    print_place(stream, c->row->measured_rank);
    print_place(stream, order->predicted[i]);
    print_place(stream, c->row->other_rank);
    fprintf(stream, "   %s\n", c->reason != NULL ? c->reason : pl_format_time(c->result.iter_time_s, time));
  }
  fprintf(stream, "  %-38s %9u", "rank correlation", order->n_expressed);
  print_number(stream, 9, "%.3f", order->spearman[0]);
  print_number(stream, 9, "%.3f", order->spearman[1]);
  fputs("\n\n", stream);
}

static void print_worst(FILE *stream, const pl_report *report) {
  if (report->n_worst == 0) return;
  fprintf(stream, "largest errors\n");
  for (uint32_t i = 0; i < report->n_worst; i++) {
    const pl_case *c = report->worst[i];
    char strategy[160], measured[PL_UNIT_TEXT_BYTES], predicted[PL_UNIT_TEXT_BYTES], interval[PL_INTERVAL_TEXT_BYTES];
    double percent[PL_REPORT_PARTS];
    pl_report_strategy(c, strategy, sizeof strategy);
    pl_report_parts(c, percent);
    fprintf(stream, "  %s:%u %s, %" PRId64 " %s, %s\n", c->row->file, c->row->line, c->row->model, c->row->n_gpus,
            c->row->gpu, strategy);
    fprintf(stream, "    measured %s, predicted %s", pl_format_time(c->measured_s, measured),
            pl_format_time(c->result.iter_time_s, predicted));
    if (!isnan(c->interval.low_s)) fprintf(stream, " (80 %%: %s)", pl_interval_format(&c->interval, interval));
    fprintf(stream, ", %+.0f %%:", 100 * pl_case_error(c));
    for (int part = 0; part < PL_REPORT_PARTS; part++)
      fprintf(stream, " %s %.0f %%", pl_report_part_names[part], percent[part]);
    if (c->program == NULL)
      fprintf(stream, "; MFU %.1f %%, predicted %.1f %%", 100 * c->result.mfu * c->result.iter_time_s / c->measured_s,
              100 * c->result.mfu);
    fputc('\n', stream);
  }
}

void pl_report_print(FILE *stream, const pl_report *report) {
  static const pl_grouping tables[] = {PL_BY_FAMILY, PL_BY_SOURCE, PL_BY_GPU, PL_BY_FRAMEWORK};
  const pl_statistics *all = &report->by[PL_BY_ALL].groups[0].statistics;
  fprintf(stream, "%u rows, %u different configurations, %u expressed, %u compared", all->n_rows, all->n_cases,
          all->n_expressed, all->n_timed);
  if (!isnan(all->coverage_pct)) fprintf(stream, "; %.0f %% of them in their 80 %% intervals", all->coverage_pct);
  fputs("\n\n", stream);
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
    print_groups(stream, report, &report->by[tables[i]]);
  if (report->ablation != NULL) pl_ablation_print(stream, report->ablation);
  print_memory(stream, &report->by[PL_BY_FAMILY]);
  print_reasons(stream, &report->by[PL_BY_REASON]);
  print_besides(stream, &report->besides);
  for (uint32_t i = 0; i < report->besides.n_orders; i++)
    print_order(stream, &report->besides.orders[i]);
  if (report->shows_assumptions) pl_assumptions_print(stream, report->cases);
  print_worst(stream, report);
}
