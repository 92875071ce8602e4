/* What `simulate` prints, as text for people and as JSON with the names and units of the result columns. */
#ifndef PL_WORKLOADS_SIMULATE_REPORT_H
#define PL_WORKLOADS_SIMULATE_REPORT_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "workloads/command/beside_report.h"
#include "workloads/command/straggler_options.h"
#include "workloads/command/training_cost.h"
#include "workloads/launch/launch.h"
#include "workloads/run/nearest_fit.h"
#include "workloads/run/sensitivity.h"
#include "workloads/run/simulate.h"
#include "workloads/run/site_remains.h"
#include "workloads/strategy/job_defaults.h"

typedef struct pl_simulate_subject {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_job_origin *origin;
  const pl_simulate_options *way; /* of simulating; NULL: not told */
  const pl_strategy *strategy;
  const pl_site_remains *remains;         /* of the site; NULL: nothing, or none */
  pl_nearest_fit nearest;                 /* where the strategy does not fit */
  const pl_training_cost *cost;           /* NULL: not asked for */
  const pl_launch *launch;                /* the launch file that all this comes from; NULL: none */
  const pl_straggler_options *stragglers; /* NULL: not asked for */
  const pl_beside_result *beside;         /* likewise */
} pl_simulate_subject;

/* What the tensor group's collectives take from products beside them, likewise. */
void pl_simulate_products_print(FILE *stream, const pl_simulate_subject *subject);

/* What exchanges of experts take from what computes beside them; nothing where they take nothing. */
void pl_simulate_exchange_print(FILE *stream, const pl_cluster *cluster, const pl_framework *framework);

/* The lines of a model with its job, and of a platform; which of its GPUs are idle, where any is. */
/* `narrow_share` of the work of products in fp8 or NVFP4, of a job that asks for them. */
void pl_simulate_model_print(FILE *stream, const pl_model *model, const pl_job *job, const pl_job_origin *origin,
                             double narrow_share);
/* "fp8" or "fp4", and "narrow_share"; nothing of a job in one type. */
void pl_simulate_narrow_json(pl_json *json, const pl_job *job, double narrow_share);
void pl_simulate_platform_print(FILE *stream, const pl_cluster *cluster);
void pl_simulate_idle_print(FILE *stream, const pl_cluster *cluster, uint32_t n_used);
/* One line each of what was found; throughput without tokens where a sample is one. */
void pl_simulate_time_print(FILE *stream, double iter_time_s, const pl_interval *interval, bool fits);
void pl_simulate_throughput_print(FILE *stream, double samples_per_s, double tokens_per_s);
void pl_simulate_mfu_print(FILE *stream, double mfu);

/* What `explain` prints too: the job; whether it fits; iteration time, throughput, MFU; and as JSON the job with all
 * columns of the row. */
void pl_simulate_subject_print(FILE *stream, const pl_simulate_subject *subject);
void pl_simulate_verdict_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report);
void pl_simulate_speed_print(FILE *stream, const pl_result_row *row, const pl_interval *interval);
/* By how much what a site's figures leave moved the time: a line, and as JSON "remains"; nothing where nothing remains.
 */
void pl_simulate_remains_print(FILE *stream, const pl_simulate_subject *subject);
/* A line if the site has no run of this GPU, software or precision. */
void pl_simulate_stranger_print(FILE *stream, const pl_site_remains *remains, const char *const name[PL_SITE_NAMES]);
void pl_simulate_subject_json(pl_json *json, const pl_simulate_subject *subject, const pl_simulate_report *report);

/* All columns of a row, into the object that is open. */
void pl_simulate_row_json(pl_json *json, const pl_result_row *row);

void pl_simulate_report_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report);
void pl_simulate_report_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                             const pl_sensitivity *sensitivity);

#endif
