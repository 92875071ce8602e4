/* What a whole training run takes: --tokens and --price of `simulate` and `search`. */
#ifndef PL_WORKLOADS_TRAINING_COST_H
#define PL_WORKLOADS_TRAINING_COST_H

#include <argp.h>
#include <stdio.h>

#include "core/base/status.h"
#include "core/text/json_writer.h"

typedef struct pl_training_cost {
  double tokens; /* to train on; 0 = not asked */
  double price;  /* of an hour of one GPU, in whatever money; 0 = not given */
  pl_error error;
} pl_training_cost;

/* A child parser; its input is a pl_training_cost, zeroed. */
extern const struct argp pl_training_cost_argp;
/* What was wrong with the options. */
pl_code pl_training_cost_check(const pl_training_cost *cost, pl_error *error);

/* "training         15 T tokens: ..." in one line, the label `width` columns wide; nothing if it was not asked.
 * `n_devices`: that are paid for, idle ones too. */
void pl_training_cost_print(FILE *stream, int width, const pl_training_cost *cost, double tokens_per_s,
                            uint32_t n_devices);
/* Keys of the same. */
void pl_training_cost_json(pl_json *json, const pl_training_cost *cost, double tokens_per_s, uint32_t n_devices);

#endif
