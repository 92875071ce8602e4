/* A job as a launch file has it (workloads/launch/launch.h), for commands that know --from. */
#ifndef PL_WORKLOADS_LAUNCHED_JOB_H
#define PL_WORKLOADS_LAUNCHED_JOB_H

#include "workloads/command/job_session.h"
#include "workloads/launch/launch.h"

/* Reads the file and gives `options` what the command line leaves open: model, batch, sequence length, types,
 * framework; loads the platform into the session, whose GPUs say how many replicas there are; *strategy, where it is
 * NULL, is the file's. PL_BAD_INPUT: the file, or no platform, or no model. */
pl_code pl_launched_job_take(const char *path, pl_job_session *session, pl_job_options *options, const char **strategy,
                             pl_launch *launch, pl_error *error);

#endif
