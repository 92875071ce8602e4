/* Does a strategy compute what the model says? The distributed program is run beside the plain training program (one
 * device, one microbatch of the whole batch), both by the reference executor on the same data, and everything that a
 * training step leaves behind is compared: loss of every step, gradients of the last, and weights after it. */
#ifndef PL_WORKLOADS_VERIFY_H
#define PL_WORKLOADS_VERIFY_H

#include "workloads/execute/executor.h"
#include "workloads/framework/job.h"
#include "workloads/strategy/strategy.h"

typedef struct pl_verify_options {
  uint64_t seed;
  int32_t iterations;                        /* steps of the optimizer; 2 and more show that updated weights are used */
  bool single;                               /* fp32 */
  const struct pl_data_source *source;       /* of weights (execute/data.h); NULL: made from the seed */
  const struct pl_data_source *other_source; /* of the distributed program; NULL: the same */
} pl_verify_options;

/* Errors are relative: of a tensor, its largest difference over its largest element in the plain program, or over
 * PL_VERIFY_NOISE of the largest of all tensors of its kind where that is more. */
#define PL_VERIFY_NOISE        1e-5
#define PL_VERIFY_NOISE_SINGLE 1e-2
typedef struct pl_verification {
  uint32_t n_devices;
  int32_t n_classes, n_functions, n_parameters, n_microbatches;
  bool norms_batches; /* batch norms: their statistics are over a microbatch, so that dividing the batch changes them */
  int32_t n_collectives, n_sends; /* ops of the distributed program, each function once */
  double loss, other_loss;        /* of the last step: plain, distributed */
  double loss_error, gradient_error, weight_error, copies_error; /* copies: devices that hold the same */
  double peak_bytes; /* of values and state that a device of the distributed program held at once, as wide as their
                        types say */
  const char *worst_gradient, *worst_weight; /* paths, in `arena` */
} pl_verification;

/* Runs both. PL_BAD_INPUT: the distributed program does not run (it is wrong); PL_UNSUPPORTED: it cannot be made. */
pl_code pl_verify(const pl_ir_module *plain, const pl_ir_module *distributed, const pl_verify_options *options,
                  pl_arena *arena, pl_verification *verification, pl_error *error);

/* 1e-10 in fp64, 2e-4 in fp32 (sums in another order, through two optimizer steps). */
double pl_verify_tolerance(const pl_verify_options *options);
bool pl_verification_holds(const pl_verification *verification, const pl_verify_options *options);

#endif
