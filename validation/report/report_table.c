/* The report as JSON and as CSV (see validation/report/report.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/text/json_writer.h"
#include "validation/report/ablation.h"
#include "validation/report/assumptions.h"
#include "validation/report/report.h"
#include "validation/rows/case_columns.h"
#include "validation/rows/case_statistics.h"

static void put_statistics(pl_json *json, const pl_statistics *s) {
  pl_json_put_integer(json, "rows", s->n_rows);
  pl_json_put_integer(json, "configurations", s->n_cases);
  pl_json_put_integer(json, "expressed", s->n_expressed);
  pl_json_put_integer(json, "compared", s->n_timed);
  pl_json_put_number(json, "mape_pct", s->mape_pct);
  pl_json_put_number(json, "median_ape_pct", s->median_ape_pct);
  pl_json_put_number(json, "p90_ape_pct", s->p90_ape_pct);
  pl_json_put_number(json, "bias_pct", s->bias_pct);
  pl_json_put_number(json, "spearman", s->spearman);
  pl_json_put_integer(json, "spearman_groups", s->n_ranked_groups);
  pl_json_put_number(json, "regret_pct", s->regret_pct);
  pl_json_put_integer(json, "regret_groups", s->n_choice_groups);
  pl_json_put_number(json, "coverage_pct", s->coverage_pct);
  pl_json_put_integer(json, "memory_peaks", s->n_memory);
  pl_json_put_number(json, "memory_mape_pct", s->memory_mape_pct);
  pl_json_put_number(json, "memory_median_ape_pct", s->memory_median_ape_pct);
  pl_json_put_integer(json, "ran_predicted_to_fit", s->verdict[0][0]);
  pl_json_put_integer(json, "ran_predicted_not_to_fit", s->verdict[0][1]);
  pl_json_put_integer(json, "crashed_predicted_to_fit", s->verdict[1][0]);
  pl_json_put_integer(json, "crashed_predicted_not_to_fit", s->verdict[1][1]);
}

static void put_groups(pl_json *json, const char *name, const char *key, const pl_case_groups *groups) {
  pl_json_key(json, name);
  pl_json_open_array(json);
  for (uint32_t g = 0; g < groups->n_groups; g++) {
    pl_json_open_object(json);
    pl_json_put_string(json, key, groups->groups[g].name);
    put_statistics(json, &groups->groups[g].statistics);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_summary(pl_json *json, const char *name, const pl_case_groups *groups) {
  const pl_group_summary s = pl_case_groups_summary(groups);
  pl_json_key(json, name);
  pl_json_open_object(json);
  pl_json_put_integer(json, "groups", s.n_groups);
  pl_json_put_number(json, "mean_mape_pct", s.mean_mape_pct);
  pl_json_put_number(json, "median_mape_pct", s.median_mape_pct);
  pl_json_put_number(json, "mean_coverage_pct", s.mean_coverage_pct);
  pl_json_put_number(json, "median_coverage_pct", s.median_coverage_pct);
  pl_json_close_object(json);
}

static void put_case(pl_json *json, const pl_case *c) {
  char strategy[160];
  pl_json_open_object(json);
  pl_json_put_string(json, "file", c->row->file);
  pl_json_put_integer(json, "line", c->row->line);
  pl_json_put_string(json, "family", c->row->family);
  pl_json_put_string(json, "model", c->row->model);
  pl_json_put_string(json, "gpu", c->row->gpu);
  pl_json_put_integer(json, "n_gpus", c->row->n_gpus);
  if (c->reason != NULL) {
    pl_json_put_string(json, "reason", c->reason);
  } else {
    pl_report_strategy(c, strategy, sizeof strategy);
    pl_json_put_string(json, "strategy", strategy);
    pl_json_put_number(json, "measured_s", c->measured_s);
    pl_json_put_number(json, "predicted_s", c->result.iter_time_s);
    pl_json_put_number(json, "predicted_low_s", c->interval.low_s);
    pl_json_put_number(json, "predicted_high_s", c->interval.high_s);
    pl_json_put_number(json, "error_pct", 100 * pl_case_error(c));
    double percent[PL_REPORT_PARTS];
    pl_report_parts(c, percent);
    for (int i = 0; i < PL_REPORT_PARTS; i++) {
      char key[32];
      snprintf(key, sizeof key, "%s_pct", pl_report_part_names[i]);
      pl_json_put_number(json, key, percent[i]);
    }
  }
  pl_json_close_object(json);
}

static void put_pair(pl_json *json, const char *name, const double pair[2]) {
  char other[64];
  pl_json_put_number(json, name, pair[0]);
  snprintf(other, sizeof other, "other_%s", name);
  pl_json_put_number(json, other, pair[1]);
}

static void put_besides(pl_json *json, const pl_besides *besides) {
  pl_json_key(json, "beside");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < besides->n_families; i++) {
    const pl_beside *b = &besides->families[i];
    pl_json_open_object(json);
    pl_json_put_string(json, "family", b->family);
    pl_json_put_integer(json, "times", b->n_times);
    put_pair(json, "mape_pct", b->mape_pct);
    put_pair(json, "bias_pct", b->bias_pct);
    put_pair(json, "spearman", b->spearman);
    pl_json_put_integer(json, "memory_peaks", b->n_memory);
    put_pair(json, "memory_mape_pct", b->memory_mape_pct);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_order(pl_json *json, const pl_order *order) {
  const pl_measured_row *row = order->cases[0]->row;
  pl_json_open_object(json);
  pl_json_put_string(json, "family", row->family);
  pl_json_put_string(json, "gpu", row->gpu);
  pl_json_put_integer(json, "n_gpus", row->n_gpus);
  pl_json_put_integer(json, "expressed", order->n_expressed);
  put_pair(json, "spearman", order->spearman);
  pl_json_key(json, "configurations");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < order->n_cases; i++) {
    pl_json_open_object(json);
    pl_json_put_integer(json, "line", order->cases[i]->row->line);
    pl_json_put_integer(json, "measured_rank", order->cases[i]->row->measured_rank);
    pl_json_put_integer(json, "rank", order->predicted[i]);
    pl_json_put_integer(json, "other_rank", order->cases[i]->row->other_rank);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  pl_json_close_object(json);
}

static void put_orders(pl_json *json, const pl_besides *besides) {
  pl_json_key(json, "orders");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < besides->n_orders; i++)
    put_order(json, &besides->orders[i]);
  pl_json_close_array(json);
}

static void put_reasons(pl_json *json, const pl_case_groups *reasons) {
  pl_json_key(json, "not_expressed");
  pl_json_open_array(json);
  for (uint32_t g = 0; g < reasons->n_groups; g++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "class", reasons->groups[g].name);
    pl_json_put_integer(json, "rows", reasons->groups[g].statistics.n_rows);
    pl_json_put_integer(json, "configurations", reasons->groups[g].n_cases);
    pl_json_key(json, "cases");
    pl_json_open_array(json);
    for (uint32_t i = 0; i < reasons->groups[g].n_cases; i++)
      put_case(json, reasons->groups[g].cases[i]);
    pl_json_close_array(json);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

void pl_report_json(FILE *stream, const pl_report *report) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  put_statistics(&json, &report->by[PL_BY_ALL].groups[0].statistics);
  put_groups(&json, "families", "family", &report->by[PL_BY_FAMILY]);
  put_groups(&json, "sources", "source", &report->by[PL_BY_SOURCE]);
  put_summary(&json, "over_families", &report->by[PL_BY_FAMILY]);
  put_summary(&json, "over_sources", &report->by[PL_BY_SOURCE]);
  put_groups(&json, "gpus", "gpu", &report->by[PL_BY_GPU]);
  put_groups(&json, "frameworks", "framework", &report->by[PL_BY_FRAMEWORK]);
  put_besides(&json, &report->besides);
  put_orders(&json, &report->besides);
  if (report->ablation != NULL) {
    pl_json_key(&json, "ablation");
    pl_ablation_json(&json, report->ablation);
  }
  put_reasons(&json, &report->by[PL_BY_REASON]);
  pl_assumptions_json(&json, report->cases);
  pl_json_key(&json, "worst");
  pl_json_open_array(&json);
  for (uint32_t i = 0; i < report->n_worst; i++)
    put_case(&json, report->worst[i]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}

/* ---- CSV ---- */

static void put_text(FILE *stream, const char *text) {
  if (text[strcspn(text, ",\"\r\n")] == '\0') {
    fputs(text, stream);
    return;
  }
  fputc('"', stream);
  for (; *text != '\0'; text++) {
    if (*text == '"') fputc('"', stream);
    fputc(*text, stream);
  }
  fputc('"', stream);
}

/* What does not apply is empty. */
static void put_value(FILE *stream, const pl_case_column *column, const pl_case *c) {
  if (column->type == PL_TABLE_TEXT) {
    put_text(stream, column->text(c));
  } else if (column->type == PL_TABLE_INTEGER) {
    int64_t value = column->integer(c);
    if (value >= 0) fprintf(stream, "%" PRId64, value);
  } else {
    double value = column->number(c);
    if (!isnan(value)) fprintf(stream, "%.9g", value);
  }
}

void pl_report_csv(FILE *stream, const pl_report *report) {
  uint32_t n_columns = report->shows_sensitivities ? pl_case_n_columns_of_sites : pl_case_n_columns;
  for (uint32_t i = 0; i < n_columns; i++)
    fprintf(stream, "%s%s", i == 0 ? "" : ",", pl_case_columns[i].name);
  fputc('\n', stream);
  for (uint32_t row = 0; row < report->cases->n_cases; row++) {
    for (uint32_t i = 0; i < n_columns; i++) {
      if (i > 0) fputc(',', stream);
      put_value(stream, &pl_case_columns[i], &report->cases->cases[row]);
    }
    fputc('\n', stream);
  }
}
