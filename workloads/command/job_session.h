/* One job with one strategy, as commands read it: model, strategy, platform, everything checked that must fit together.
 *
 * In two steps, because what can be refused by reading the model and the strategy alone should not wait for the
 * platform, which takes seconds for thousands of GPUs.
 */
#ifndef PL_WORKLOADS_JOB_SESSION_H
#define PL_WORKLOADS_JOB_SESSION_H

#include "netmodel/platform/platform.h"
#include "workloads/command/job_options.h"
#include "workloads/command/simulate_report.h"

typedef struct pl_job_session {
  pl_arena arena;
  pl_platform *platform;     /* NULL until pl_job_session_place */
  const pl_cluster *cluster; /* the platform's, as the site has it; likewise */
  pl_model model;
  pl_strategy strategy;
} pl_job_session;

void pl_job_session_init(pl_job_session *session);
/* Safe after any failure. */
void pl_job_session_release(pl_job_session *session);

/* Model and strategy: loads the one, parses the other, and brings in what the framework says. `options` passed
 * pl_job_options_check. */
pl_code pl_job_session_read(pl_job_session *session, pl_job_options *options, const char *strategy, pl_error *error);
/* The same for who needs no more than a program: ONNX files too. */
pl_code pl_job_session_read_any(pl_job_session *session, pl_job_options *options, const char *strategy,
                                pl_error *error);
/* Loads the platform, completes `options` and checks and assigns the strategy on it. */
pl_code pl_job_session_place(pl_job_session *session, pl_job_options *options, pl_error *error);
/* The same on a cluster that somebody else has loaded. */
pl_code pl_job_session_place_on(pl_job_session *session, pl_job_options *options, const pl_cluster *cluster,
                                pl_error *error);

/* With a site the interval is what that leaves open, by a few more simulations. */
pl_code pl_job_session_interval(pl_job_session *session, const pl_job_options *options, pl_simulate_report *report,
                                pl_error *error);
/* What a report is about; where the strategy does not fit, with the nearest one that does. */
pl_code pl_job_session_subject(pl_job_session *session, const pl_job_options *options, const pl_simulate_report *report,
                               pl_simulate_subject *subject, pl_error *error);

#endif
