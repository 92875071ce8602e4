/* Fits the model of matrix products (workloads/cost/gemm_cost.h) to measured ones.
 *
 * One shape of five, by a hash of its numbers that was settled before anything was looked at, is held out and only used
 * to say how good the fit is. On the rest, in this order:
 *
 *   formula    the 10 parameters, by cyclic descent (one parameter at a time, its logarithm up or down by a step that
 *              grows on success and halves on failure), from the same start for every device. Loss: mean Huber loss
 *              (0.1) of ln(predicted / measured), products of less than 1 GFLOP with a fifth of the weight, plus a
 *              small pull to the start, which keeps a tile that is never chosen from drifting. At most
 *              PL_GEMM_FIT_SHAPES shapes, evenly spaced in their order.
 *   unaligned  the factor on compute time for which the median product comes out right, from shapes whose rows do not
 *              begin on 16 bytes, where there are any; else the factors that were measured on an A100.
 *   residual   from PL_GEMM_RESIDUAL_SHAPES shapes on: the table, by least absolute deviations (iteratively reweighted
 *              least squares, conjugate gradients) with a smoothness penalty between neighbouring knots.
 *
 * No random numbers, no threads: the same input gives the same fit. Everything is rounded as the profile holds it
 * before errors are taken.
 *
 * A second fit leaves out one (n, k) pair of five with all its m, which is harder: nothing near is known. It is only
 * reported.
 */
#ifndef PL_VALIDATION_GEMM_FIT_H
#define PL_VALIDATION_GEMM_FIT_H

#include "validation/fit/gemm_samples.h"
#include "workloads/ir/op.h"

enum {
  PL_GEMM_FIT_SHAPES = 6000,
  PL_GEMM_RESIDUAL_SHAPES = 2000,
  PL_GEMM_LEAST_SHAPES = 30,
  PL_GEMM_PARAMETERS = 10,
  PL_GEMM_WORST = 5
};

typedef struct pl_gemm_error {
  uint32_t n;
  double median, p90, bias; /* of |predicted / measured - 1|; bias: median with its sign */
} pl_gemm_error;

typedef struct pl_gemm_worst {
  pl_gemm_sample sample;
  double predicted_s;
} pl_gemm_worst;

typedef struct pl_gemm_fit_report {
  uint32_t n_shapes, n_fitted, n_unaligned; /* all; of these, not held out; of those, not on 16 bytes */
  uint32_t n_knots;
  pl_gemm_error roofline; /* held out, from 1 GFLOP: what the profile says without any fit */
  pl_gemm_error formula;  /* held out, from 1 GFLOP: without the residual */
  pl_gemm_error held_out; /* the same with it */
  pl_gemm_error small;    /* held out, below 1 GFLOP */
  pl_gemm_error fitted;   /* what the fit has seen, from 1 GFLOP */
  pl_gemm_error pairs;    /* the harder test, from 1 GFLOP */
  uint32_t n_worst;
  pl_gemm_worst worst[PL_GEMM_WORST]; /* held out, from 1 GFLOP */
} pl_gemm_fit_report;

/* Fits samples[0 .. n), all of one data type. `device` gives bandwidth, peak and gemm.multiprocessors; its fits are not
 * looked at. *fit gets everything but `dtypes`, its table from `arena`. PL_BAD_INPUT: fewer than PL_GEMM_LEAST_SHAPES
 * shapes, no peak for the type. About 5 s for 30,000 shapes. */
pl_code pl_gemm_fit_take(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n, pl_arena *arena,
                         pl_gemm_fit *fit, pl_gemm_fit_report *report, pl_error *error);

/* Whether the fit leaves this shape out. */
bool pl_gemm_is_held_out(const pl_gemm_shape *shape);

/* 2 batch m n k. */
double pl_gemm_flops(const pl_gemm_shape *shape);
/* A product of that shape as an op of the forward pass. */
pl_op pl_gemm_op_of(const pl_gemm_shape *shape);

#endif
