/* What `paceline validate` says of its cases: tables for people, JSON, CSV with a line per case. */
#ifndef PL_VALIDATION_REPORT_H
#define PL_VALIDATION_REPORT_H

#include <stdio.h>

#include "core/text/xml_text.h"
#include "validation/report/beside.h"
#include "validation/rows/case.h"
#include "validation/rows/case_statistics.h"
#include "validation/statistics/statistics.h"

/* Cases with one value of a property: a family, a source, a GPU, a framework. */
typedef struct pl_case_group {
  const char *name;
  const pl_case *const *cases; /* in the order of the files */
  uint32_t n_cases;
  pl_statistics statistics;
} pl_case_group;

typedef struct pl_case_groups {
  const char *title;
  pl_case_group *groups; /* in the order of their first case */
  uint32_t n_groups;
  double *scratch; /* n_groups */
} pl_case_groups;

typedef enum pl_grouping {
  PL_BY_ALL = 0, /* one group */
  PL_BY_FAMILY,
  PL_BY_SOURCE,
  PL_BY_GPU,
  PL_BY_FRAMEWORK,
  PL_BY_REASON, /* those not expressed, by the class of their reason */
  PL_GROUPING_COUNT
} pl_grouping;

enum { PL_REPORT_WORST = 10 };

typedef struct pl_report {
  const pl_cases *cases;
  pl_case_groups by[PL_GROUPING_COUNT];
  const pl_case *worst[PL_REPORT_WORST]; /* timed cases, largest error first */
  uint32_t n_worst;
  pl_besides besides;
  const struct pl_ablation *ablation; /* validation/report/ablation.h; NULL: none was asked for. Set by the caller. */
  bool shows_assumptions;             /* in the text; set by the caller */
  bool shows_sensitivities;           /* in the CSV; likewise */
} pl_report;

/* Over groups with compared cases, each with the same weight however many it has. */
typedef struct pl_group_summary {
  uint32_t n_groups;
  double mean_mape_pct, median_mape_pct, mean_coverage_pct, median_coverage_pct; /* NaN: none */
} pl_group_summary;
pl_group_summary pl_case_groups_summary(const pl_case_groups *groups);

/* Groups and statistics; everything in `arena`. */
pl_code pl_report_take(const pl_cases *cases, pl_arena *arena, pl_report *report, pl_error *error);

void pl_report_print(FILE *stream, const pl_report *report);
void pl_report_json(FILE *stream, const pl_report *report);
/* One line per case: the columns of the table and what was predicted. */
void pl_report_csv(FILE *stream, const pl_report *report);

/* A page that stands alone: the tables, a scatter plot per family, the largest errors with what they are made of.
 * Nothing is loaded from elsewhere, and nothing runs. */
void pl_report_html(FILE *stream, const pl_report *report);
/* The scatter plots alone, side by side. */
void pl_report_svg(FILE *stream, const pl_report *report);
/* One of them, PL_SCATTER_SIZE wide and high, as a group to be placed in an svg element with the classes of
 * pl_scatter_style: predicted over measured time, log-log, identity and a band of 25 %. With `titles` every point says
 * what it is and has its prediction interval. Returns false, and draws nothing, without timed cases. */
enum { PL_SCATTER_SIZE = 340 };
extern const char pl_scatter_style[];
bool pl_scatter_draw(FILE *stream, const pl_case_group *group, double left, double top, bool titles);
/* What a case spends its predicted time on, as the columns of a result row name it; percent of the iteration. */
enum { PL_REPORT_PARTS = 5 };
extern const char *const pl_report_part_names[PL_REPORT_PARTS];
void pl_report_parts(const pl_case *c, double percent[PL_REPORT_PARTS]);
/* "tp 8 pp 16 dp 8 mbs 1 vpp 2 zero 1 full sp". */
void pl_report_strategy(const pl_case *c, char *text, size_t size);

#endif
