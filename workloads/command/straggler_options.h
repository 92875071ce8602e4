/* What `simulate` and `explain` share about devices that compute slower than they should: --jitter, --draws, --slow,
 * and what they print of it. */
#ifndef PL_WORKLOADS_STRAGGLER_OPTIONS_H
#define PL_WORKLOADS_STRAGGLER_OPTIONS_H

#include <argp.h>
#include <stdio.h>

#include "core/text/json_writer.h"
#include "workloads/run/simulate.h"

typedef struct pl_straggler_options {
  const char *slow, *jitter, *draws; /* NULL: not given */
  pl_stragglers stragglers;
  pl_straggling straggling;
} pl_straggler_options;

/* A child parser; its input is a pl_straggler_options. */
extern const struct argp pl_straggler_options_argp;

static inline bool pl_straggler_options_are_given(const pl_straggler_options *options) {
  return options->slow != NULL || options->jitter != NULL || options->draws != NULL;
}

/* Reads what was given. */
pl_code pl_straggler_options_parse(pl_straggler_options *options, pl_arena *arena, pl_error *error);
/* On the cluster, for the ranks of a strategy (NULL: for the first `n_working` devices), into `simulate`. Nothing if
 * nothing was given. */
pl_code pl_straggler_options_place(pl_straggler_options *options, const pl_cluster *cluster,
                                   const pl_strategy *strategy, uint32_t n_working, pl_arena *arena,
                                   pl_simulate_options *simulate, pl_error *error);

/* Nothing if nothing was given. */
void pl_stragglers_print(FILE *stream, const pl_straggler_options *options, const pl_cluster *cluster);
/* Under the key "stragglers" of the object that is open. */
void pl_stragglers_json(pl_json *json, const pl_straggler_options *options, const pl_cluster *cluster);

#endif
