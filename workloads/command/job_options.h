/* What `simulate` and `sweep` share on the command line: platform, model, job and the way of simulating. */
#ifndef PL_WORKLOADS_JOB_OPTIONS_H
#define PL_WORKLOADS_JOB_OPTIONS_H

#include <argp.h>

#include "core/base/status.h"
#include "workloads/cost/op_profile.h"
#include "workloads/run/simulate.h"
#include "workloads/run/site.h"
#include "workloads/strategy/job_defaults.h"

typedef struct pl_job_options {
  const char *platform_path, *model_path, *framework_choice; /* the last: NULL = ideal */
  const char *model_text;                                    /* not NULL: instead of the file at model_path */
  pl_job job;                                                /* gbs, seq 0 = not given */
  const char *collective_choice;                             /* --collective-profile; NULL = the default */
  pl_collective_profile collective_profile; /* what simulate.collective_profile points to after pl_job_options_adopt */
  const char *op_profile_path;              /* --op-profile; NULL = none */
  pl_op_profile op_profile;                 /* what job.op_profile points to once pl_job_options_adopt has run */
  pl_framework framework;                   /* what job.framework points to once pl_job_options_adopt has run */
  pl_job_origin origin;                     /* of type, products and sequence length */
  /* On the command line: stronger than the framework. */
  bool attention_is_given, bucket_is_given, sends_are_given, exchange_is_given;
  double exchange_sms;       /* --exchange-sms; negative = as the framework has it */
  int allocator;             /* --allocator, a pl_allocator_form; -1 = as the framework has it */
  bool counts_memory;        /* pl_job_options_count_memory has chosen it */
  int passed_over;           /* the framework's own where that is another, once pl_job_options_adopt has run; 0: none */
  int sends_tokens_per_node; /* as a launch file's dispatcher does, 0 or 1; -1 = as the framework does */
  int permutation, experts;  /* as a launch file has them (workloads/framework/framework.h); -1 = as the framework */
  const char *site_path;     /* --site; NULL = none */
  pl_site site;              /* that, once pl_job_options_adopt has run */
  bool must_fit;             /* --must-fit */
  pl_simulate_options simulate;
  pl_error error; /* first bad option */
} pl_job_options;

/* What these options are called on the command line and in results, by enumerator; NULL ends them. */
extern const char *const pl_network_names[],
    *const pl_sharing_names[], *const pl_stream_policy_names[], *const pl_send_form_names[] /* [split] */,
                                                                    *const pl_collective_form_names[] /* [chunked] */;

/* Defaults beside those of workloads/strategy/job_defaults.h: fused attention, 25 MB buckets, flow network, equal
 * sharing, fluid collectives. */
void pl_job_options_init(pl_job_options *options);
/* A child parser; its input is a pl_job_options. Bad values are kept in options->error (argp itself goes on), so that
 * the command reports them with its one line and exit status 2. */
extern const struct argp pl_job_options_argp;
/* As a sweep, a search and what takes up their rows do: memory is that of tensors and what the framework's profile adds
 * to it, unless --allocator says otherwise. A replay would cost more than all else of a simulation. */
void pl_job_options_count_memory(pl_job_options *options);
/* A line, if the framework's allocator would be replayed otherwise. `width`: of the labels' column. */
void pl_job_options_print_memory(FILE *stream, int width, const pl_job_options *options);
/* What must be given is given. */
pl_code pl_job_options_check(pl_job_options *options, pl_error *error);
/* Reads the collective profile (chunked collectives and SimGrid's network have none) and the framework's, and gives the
 * job what the command line leaves open and they or the model say. Without a platform there are no collectives to read
 * about. The options stay where they are from here on. */
pl_code pl_job_options_adopt(pl_job_options *options, const pl_model *model, pl_arena *arena, pl_error *error);
/* Cluster, collective profile and framework as the site has them, in `arena`: what is simulated from here on; on
 * another GPU, in other software or precision than its own `site` becomes what it says of these. Without a site the
 * given ones. */
pl_code pl_job_options_visit(pl_job_options *options, const pl_cluster **cluster, pl_arena *arena, pl_error *error);
/* The first of these alone: the collective profile. */
pl_code pl_job_options_adopt_collectives(pl_job_options *options, pl_arena *arena, pl_error *error);
/* And the framework's, if one is given, without a model. */
pl_code pl_job_options_adopt_framework(pl_job_options *options, pl_arena *arena, pl_error *error);
/* And the site's file. */
pl_code pl_job_options_adopt_site(pl_job_options *options, pl_arena *arena, pl_error *error);
/* After the platform is loaded: every device must know the data type, and an op profile something of the model on one
 * of the devices. */
pl_code pl_job_options_complete(pl_job_options *options, const pl_model *model, const pl_cluster *cluster,
                                pl_error *error);
/* Of this alone, also without a model: exchanges of experts leave something to compute on, whoever says what they take.
 */
pl_code pl_job_options_check_exchange(const pl_job_options *options, const pl_cluster *cluster, pl_error *error);

/* Under --must-fit: PL_DOES_NOT_FIT if the row's strategy does not; PL_OK otherwise. */
pl_code pl_job_options_demand_fit(const pl_job_options *options, const pl_result_row *row, pl_error *error);

#endif
