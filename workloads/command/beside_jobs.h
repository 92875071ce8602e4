/* `simulate --beside JOB.yaml`: other jobs on the same fabric.
 *
 *   name: vision                what it is called; else the file's name
 *   model: vgg-16               as --model
 *   strategy: pp=1,dp=8,tmp=1,mbs=8     the text of --strategy; or a strategy tree (.yaml), whose device 0 is the
 *                               job's first
 *   gbs: 256                    samples per iteration
 *   seq: 1024                   as --seq; likewise dtype and framework
 *   devices: [n3, n4g0, 'n5g*'] devices, nodes, patterns; else the next that are free, as many as the strategy needs
 *   offset: 200ms               when its first iteration begins; else 0
 *   iterations: 4               in a row; else as many as fit into the first job's iteration alone, at least one
 */
#ifndef PL_WORKLOADS_BESIDE_JOBS_H
#define PL_WORKLOADS_BESIDE_JOBS_H

#include <argp.h>
#include <stdio.h>

#include "workloads/command/beside_report.h"
#include "workloads/command/job_session.h"

typedef struct pl_beside_entry pl_beside_entry;

typedef struct pl_beside_options {
  const char *paths[PL_BESIDE_JOBS_MAX];
  uint32_t n_paths; /* given; may exceed the room */
  pl_beside_entry *entries;
  pl_beside_result result;
} pl_beside_options;

/* The job of the command line, placed: a tuple's, or the program that a strategy tree makes. */
typedef struct pl_beside_main {
  const pl_cluster *cluster;
  pl_arena *arena;
  const pl_model *model;
  const pl_strategy *strategy;        /* NULL: `program` */
  const struct pl_ir_module *program; /* as it is launched */
  const char *strategy_text;          /* of a program: what says it */
} pl_beside_main;

/* A child parser; its input is a pl_beside_options. */
extern const struct argp pl_beside_options_argp;

/* Reads the jobs and gives each its devices, beside those of `main`. PL_BAD_INPUT with file, line and column:
 * what is wrong in a file, a device that two jobs have. Memory from main's arena, but for what release gives back. */
pl_code pl_beside_options_read(pl_beside_options *options, const pl_beside_main *main, const pl_job_options *job,
                               pl_error *error);
pl_code pl_beside_options_run(pl_beside_options *options, const pl_beside_main *main, const pl_job_options *job,
                              FILE *trace, pl_error *error);
/* Safe when nothing was read. */
void pl_beside_options_release(pl_beside_options *options);

#endif
