/* Cases: measured configurations, each beside what is predicted for it.
 *
 * Rows that say the same of model, machine, software and strategy are one case, measured several times: the case takes
 * their median, so that a configuration that somebody published ten times does not count ten times. A case that cannot
 * be expressed keeps its reason.
 */
#ifndef PL_VALIDATION_CASE_H
#define PL_VALIDATION_CASE_H

#include "core/graph/result.h"
#include "validation/rows/measured.h"
#include "validation/rows/row.h"
#include "workloads/cost/op_profile.h"
#include "workloads/run/interval.h"
#include "workloads/run/simulate.h"
#include "workloads/run/site.h"

enum { PL_CASE_DEVICE_BYTES = 64 };

/* The profile of its GPUs; of several kinds the platform's first, with the most memory that any has. */
typedef struct pl_case_gpu {
  char name[PL_CASE_DEVICE_BYTES];
  double memory_bytes;
  uint32_t n_kinds;
} pl_case_gpu;

typedef struct pl_case {
  const pl_measured_row *row; /* the first of its rows, in the order of the files */
  uint32_t n_rows;            /* that say the same */
  double measured_s;          /* median of theirs; NaN: no time was measured */
  double measured_mem_bytes;  /* likewise */
  bool crashed;               /* the run did not get through */
  const char *reason;         /* why it cannot be expressed, "CLASS: detail"; NULL = it is */
  const char *assumptions;    /* what was taken where the row says nothing (validation/report/assumptions.h); NULL: not
                                 expressed */
  const char *program;        /* file of the program that ran; NULL: the row says model and strategy instead */
  const char *platform;       /* arguments of platform make, or a file */
  pl_platform_plan plan;
  pl_row_habits habits;
  const pl_model *model;
  pl_framework framework;
  pl_job job; /* with that framework */
  pl_strategy strategy;
  pl_result_row result;       /* all zero unless expressed */
  double predicted_mem_bytes; /* the figure of memory that the source publishes, of the rank of which it does */
  double flops;               /* the model's, of one iteration, without recomputation */
  pl_interval interval;       /* of the time; NaN: none was asked for */
  /* How the time's logarithm moves with each figure of a site, and where the run is with that; nobody asked: 0. */
  double sensitivity[PL_SITE_COUNT];
  double remains_factor; /* of the predicted time, by what remains at the site; 1: none */
  pl_case_gpu device;    /* not simulated: empty */
} pl_case;

typedef struct pl_cases {
  pl_case *cases;
  uint32_t n_cases, n_rows;
} pl_cases;

typedef struct pl_case_options {
  const char *platform_path; /* simulate on this platform whatever the rows say of theirs; NULL: as the rows say */
  const char *framework;     /* profile of every row; NULL: as the rows say */
  const pl_op_profile *op_profile; /* measured layers, for the rows that they are of; NULL: none */
  const char *collective_profile;  /* --collective-profile; NULL: the default */
  const char *profile_folder;      /* NULL: as pl_platform_load has it */
  pl_network_kind network;
  const pl_allocator_form *allocator; /* of every row; NULL: as its framework has it */
  bool no_overlap_factor;
  const pl_residuals *residuals; /* that intervals are composed of; NULL: no intervals */
  const pl_site *site;           /* of every row; NULL: none */
  bool sensitivities;            /* simulate each case once more per figure of a site */
  uint32_t n_threads;
  bool progress;
} pl_case_options;

/* Merges the rows of `tables` into cases, in the order of their first rows. */
pl_code pl_cases_take(const pl_measured *tables, uint32_t n_tables, pl_arena *arena, pl_cases *cases, pl_error *error);
/* Maps every case (validation/rows/row.h); reasons and models in `arena`. */
pl_code pl_cases_express(pl_cases *cases, const pl_csv *known_models, const pl_case_options *options, pl_arena *arena,
                         pl_error *error);
/* Simulates every case that is expressed, on n_threads processes, since SimGrid loads one platform at a time in each: a
 * process takes platform by platform, each made and loaded once, or in parts if its cases are more than a process's
 * share. The cases of a single platform are shared by threads instead. What turns out impossible only now gets its
 * reason. Results do not depend on the number of threads. */
pl_code pl_cases_simulate(pl_cases *cases, const pl_case_options *options, pl_arena *arena, pl_error *error);

static inline bool pl_case_is_timed(const pl_case *c) {
  return c->reason == NULL && !c->crashed && c->measured_s > 0;
}

static inline double pl_case_error(const pl_case *c) {
  return c->result.iter_time_s / c->measured_s - 1;
}

#endif
