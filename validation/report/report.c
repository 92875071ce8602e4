/* Groups of cases (see validation/report/report.h). */
#include "validation/report/report.h"
#include "validation/rows/case_statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pl_report_part_names[PL_REPORT_PARTS] = {"compute", "tensor", "pipeline", "data", "bubble"};

void pl_report_parts(const pl_case *c, double percent[PL_REPORT_PARTS]) {
  const pl_result_row *row = &c->result;
  const double times[PL_REPORT_PARTS] = {row->compute_s, row->tensor_comm_s, row->pipeline_comm_s, row->data_comm_s,
                                         row->bubble_s};
  for (int i = 0; i < PL_REPORT_PARTS; i++)
    percent[i] = 100 * times[i] / row->iter_time_s;
}

void pl_report_strategy(const pl_case *c, char *text, size_t size) {
  const pl_strategy *s = &c->strategy;
  if (c->program != NULL) { /* which says how it is cut */
    const char *slash = strrchr(c->program, '/');
    snprintf(text, size, "%s", slash != NULL ? slash + 1 : c->program);
    return;
  }
  int used = snprintf(text, size, "tp %d pp %d dp %d mbs %d", s->tmp, s->pp, s->dp, s->mbs);
  const struct {
    bool shown;
    const char *format;
    int value;
  } more[] = {{s->cp > 1, " cp %d", s->cp},
              {s->ep > 1, " ep %d", s->ep},
              {s->vpp > 1, " vpp %d", s->vpp},
              {s->zero > 0, " zero %d", s->zero},
              {s->shard > 0, " shard %d", s->shard}};
  for (size_t i = 0; i < sizeof more / sizeof more[0] && used > 0 && (size_t)used < size; i++)
    if (more[i].shown) used += snprintf(text + used, size - (size_t)used, more[i].format, more[i].value);
  if (used > 0 && (size_t)used < size)
    snprintf(text + used, size - (size_t)used, "%s%s%s", s->sp ? " sp" : "",
             s->recompute == PL_RECOMPUTE_NONE ? "" : " recompute ",
             s->recompute == PL_RECOMPUTE_NONE ? "" : pl_recompute_names[s->recompute]);
}

/* The property by which cases are grouped, as a piece of text; empty: in no group. */
static const char *property(const pl_case *c, pl_grouping grouping, size_t *length) {
  const char *text = "all", *colon;
  switch (grouping) {
  case PL_BY_FAMILY:
    text = c->row->family;
    break;
  case PL_BY_GPU:
    text = c->row->gpu;
    break;
  case PL_BY_FRAMEWORK:
    text = c->row->framework;
    break;
  case PL_BY_REASON:
    text = c->reason != NULL ? c->reason : "";
    *length = strcspn(text, ":");
    return text;
  case PL_BY_SOURCE: /* "github:OWNER/NAME:path@commit": the repository; "arXiv:2104.04473 ...": the paper */
    text = c->row->source;
    colon = strchr(text, ':');
    *length = colon != NULL ? (size_t)(colon - text) + 1 + strcspn(colon + 1, ":@ ") : strlen(text);
    if (*length == 0) {
      text = "not stated";
      *length = strlen(text);
    }
    return text;
  case PL_BY_ALL:
  case PL_GROUPING_COUNT:
    break;
  }
  if (text[0] == '\0') text = "not stated";
  *length = strlen(text);
  return text;
}

static pl_case_group *find(const pl_case_groups *groups, const char *text, size_t length) {
  for (uint32_t g = 0; g < groups->n_groups; g++)
    if (strncmp(groups->groups[g].name, text, length) == 0 && groups->groups[g].name[length] == '\0')
      return &groups->groups[g];
  return NULL;
}

/* Two passes: how many of each, then which. */
static pl_code group_cases(const pl_cases *cases, pl_grouping grouping, pl_arena *arena, pl_case_groups *groups,
                           pl_error *error) {
  groups->groups = PL_TAKE(arena, pl_case_group, cases->n_cases);
  groups->scratch = PL_TAKE(arena, double, cases->n_cases);
  uint32_t *group_of = PL_TAKE(arena, uint32_t, cases->n_cases);
  if (groups->groups == NULL || groups->scratch == NULL || group_of == NULL) return pl_fail_memory(error, "the report");
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    size_t length;
    const char *text = property(&cases->cases[i], grouping, &length);
    group_of[i] = UINT32_MAX;
    if (length == 0) continue;
    pl_case_group *group = find(groups, text, length);
    if (group == NULL) {
      group = &groups->groups[groups->n_groups++];
      group->name = pl_arena_printf(arena, "%.*s", (int)length, text);
      if (group->name == NULL) return pl_fail_memory(error, "the report");
    }
    group_of[i] = (uint32_t)(group - groups->groups);
    group->n_cases++;
  }
  for (uint32_t g = 0; g < groups->n_groups; g++) {
    pl_case_group *group = &groups->groups[g];
    const pl_case **members = PL_TAKE(arena, const pl_case *, group->n_cases);
    if (members == NULL) return pl_fail_memory(error, "the report");
    uint32_t n = 0;
    for (uint32_t i = 0; i < cases->n_cases; i++)
      if (group_of[i] == g) members[n++] = &cases->cases[i];
    group->cases = members;
    PL_TRY(pl_statistics_of(members, n, arena, &group->statistics, error));
  }
  return PL_OK;
}

static double summarise(const pl_case_groups *groups, bool coverage, double *median, uint32_t *n) {
  double sum = 0;
  *n = 0;
  for (uint32_t g = 0; g < groups->n_groups; g++) {
    const pl_statistics *s = &groups->groups[g].statistics;
    double value = coverage ? s->coverage_pct : s->mape_pct;
    if (s->n_timed == 0 || isnan(value)) continue;
    groups->scratch[(*n)++] = value;
    sum += value;
  }
  *median = pl_median(groups->scratch, *n);
  return *n > 0 ? sum / *n : NAN;
}

pl_group_summary pl_case_groups_summary(const pl_case_groups *groups) {
  pl_group_summary summary;
  uint32_t n;
  summary.mean_coverage_pct = summarise(groups, true, &summary.median_coverage_pct, &n);
  summary.mean_mape_pct = summarise(groups, false, &summary.median_mape_pct, &summary.n_groups);
  return summary;
}

static int compare_errors(const void *left, const void *right) {
  const pl_case *a = *(const pl_case *const *)left, *b = *(const pl_case *const *)right;
  double x = fabs(log(a->result.iter_time_s / a->measured_s)), y = fabs(log(b->result.iter_time_s / b->measured_s));
  return x != y ? (x < y) - (x > y) : (a > b) - (a < b);
}

/* By the ratio: a prediction of half the time is as wrong as one of twice. */
static pl_code find_worst(const pl_cases *cases, pl_arena *arena, pl_report *report, pl_error *error) {
  const pl_case **timed = PL_TAKE(arena, const pl_case *, cases->n_cases);
  if (timed == NULL) return pl_fail_memory(error, "the report");
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (pl_case_is_timed(&cases->cases[i])) timed[n++] = &cases->cases[i];
  qsort(timed, n, sizeof *timed, compare_errors);
  report->n_worst = n < PL_REPORT_WORST ? n : PL_REPORT_WORST;
  for (uint32_t i = 0; i < report->n_worst; i++)
    report->worst[i] = timed[i];
  return PL_OK;
}

pl_code pl_report_take(const pl_cases *cases, pl_arena *arena, pl_report *report, pl_error *error) {
  static const char *const titles[PL_GROUPING_COUNT] = {
      [PL_BY_ALL] = "all", [PL_BY_FAMILY] = "family",       [PL_BY_SOURCE] = "source",
      [PL_BY_GPU] = "gpu", [PL_BY_FRAMEWORK] = "framework", [PL_BY_REASON] = "reason"};
  *report = (pl_report){.cases = cases};
  for (int g = 0; g < PL_GROUPING_COUNT; g++) {
    report->by[g].title = titles[g];
    PL_TRY(group_cases(cases, (pl_grouping)g, arena, &report->by[g], error));
  }
  PL_TRY(pl_besides_take(cases, arena, &report->besides, error));
  return find_worst(cases, arena, report, error);
}
