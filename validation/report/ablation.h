/* What two things in the simulator do to its predictions: every configuration once more without the overlap factor of
 * device profiles, without sharing (the analytic network, where no transfer feels another), and without both, as
 * Proteus, figure 9, does. And where sharing changes a prediction: flow against analytic network, row by row.
 */
#ifndef PL_VALIDATION_ABLATION_H
#define PL_VALIDATION_ABLATION_H

#include "core/text/json_writer.h"
#include "validation/report/report.h"

typedef enum pl_variant {
  PL_VARIANT_ALL = 0,
  PL_VARIANT_NO_OVERLAP,
  PL_VARIANT_NO_SHARING,
  PL_VARIANT_NEITHER,
  PL_VARIANT_COUNT
} pl_variant;

extern const char *const pl_variant_names[PL_VARIANT_COUNT]; /* "all", "no_overlap_factor" ... */

typedef struct pl_ablated_family {
  const char *name;
  uint32_t n_timed;
  double mape_pct[PL_VARIANT_COUNT], median_pct[PL_VARIANT_COUNT]; /* over the timed; NaN: none */
  uint32_t n_expressed, n_over_1, n_over_5; /* of the expressed: sharing changes the time by more than 1, 5 % */
  double most_pct;                          /* largest change */
  uint32_t n_shared;                        /* of the timed: sharing changes the time by more than 1 % */
  double shared_mape_pct[2];                /* over these: with sharing, without; NaN: none */
} pl_ablated_family;

typedef struct pl_shared_case {
  const pl_case *c;
  double change_pct; /* with sharing / without - 1 */
} pl_shared_case;

enum { PL_ABLATION_WORST = 10 };

typedef struct pl_ablation {
  const pl_ablated_family *families; /* as the report has them, those with expressed cases; all together last */
  uint32_t n_families;
  pl_shared_case largest[PL_ABLATION_WORST]; /* that change at all, the largest first */
  uint32_t n_largest;
} pl_ablation;

/* `cases` are simulated with everything on; `report` is of them. Memory from `arena`. Three more runs of all cases. */
pl_code pl_ablation_take(const pl_cases *cases, const pl_report *report, const pl_case_options *options,
                         pl_arena *arena, pl_ablation *ablation, pl_error *error);

void pl_ablation_print(FILE *stream, const pl_ablation *ablation);
void pl_ablation_json(pl_json *json, const pl_ablation *ablation); /* as the value of the key "ablation" */
void pl_ablation_html(FILE *stream, const pl_ablation *ablation);

#endif
