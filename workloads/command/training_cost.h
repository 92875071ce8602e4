/* What a whole training run takes: --tokens and --price of `simulate` and `search`.
 *
 * Energy is that of the GPUs at their power limits (device profiles), from the first second to the last, idle ones too:
 * the most that they may draw. Hosts, switches and cooling are not in it. */
#ifndef PL_WORKLOADS_TRAINING_COST_H
#define PL_WORKLOADS_TRAINING_COST_H

#include <argp.h>
#include <stdio.h>

#include "core/base/status.h"
#include "core/cluster/cluster.h"
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

typedef struct pl_training_bill {
  double time_s, gpu_hours, money; /* money: NaN without a price */
  double energy_J;                 /* NaN: the power of some device is not known */
} pl_training_bill;

/* All GPUs of the cluster are paid for, idle ones too. All NaN where tokens_per_s is not above 0. */
pl_training_bill pl_training_bill_of(const pl_training_cost *cost, double tokens_per_s, const pl_cluster *cluster);

/* "12.3 million", three figures. */
enum { PL_AMOUNT_TEXT_BYTES = 48 };
const char *pl_format_amount(double value, char text[PL_AMOUNT_TEXT_BYTES]);
/* "45.6 MWh", three figures. */
const char *pl_format_energy(double energy_J, char text[PL_AMOUNT_TEXT_BYTES]);
/* "9.8 days", "4 hours". */
const char *pl_format_days(double time_s, char text[PL_AMOUNT_TEXT_BYTES]);

/* "training         15 T tokens: ..." and what is assumed, labels `width` columns wide; nothing if it was not asked. */
void pl_training_cost_print(FILE *stream, int width, const pl_training_cost *cost, double tokens_per_s,
                            const pl_cluster *cluster);
/* Keys of the same. */
void pl_training_cost_json(pl_json *json, const pl_training_cost *cost, double tokens_per_s, const pl_cluster *cluster);

#endif
