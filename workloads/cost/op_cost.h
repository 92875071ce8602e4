/* Time of one op on one device type: the profile's table entry if there is one, else the profile's fitted curve for
 * such ops, else the roofline.
 *
 * Curves: fused attention in 16 bits (workloads/cost/attention_cost.h; fp8 models keep attention in bf16, as
 * Transformer Engine does unless told otherwise), and the kinds of memory-bound kernels that the profile lists, as
 * overhead + bytes / (bandwidth * efficiency of the kind and pass). GEMM in the types that the profile has fits for:
 * workloads/cost/gemm_cost.h; convolutions likewise: workloads/cost/convolution_cost.h. The roofline:
 *
 *   time = max(flops' / (peak * efficiency), bytes / (bandwidth * bandwidth_efficiency)) + launch overhead
 *
 * flops' of a GEMM or convolution are those of the product padded to whole tiles, m and n up to a multiple of 32: the
 * one dependence on shape that is geometry and not measurement. efficiency is the profile's compute_efficiency, for
 * fused attention its attention_efficiency; memory-bound kinds compute at the fp32 peak. Efficiencies that depend on
 * size come from measurements, as table entries or, later, as fitted curves.
 *
 * Sustained rate. Kernels are timed one by one, for milliseconds, while the GPU runs at the clock that it may boost to.
 * In training it sits at its power limit, and the products that draw most are the ones that it slows down: over seconds
 * tensor cores do no more than the share of their peak that the profile calls "sustained". So matrix products and fused
 * attention take at least flops / (peak * sustained), table entries excepted, which are what they are. A factor on all
 * of them was tried and describes the runs that the share is fitted to less well: slow products draw less and are not
 * slowed down.
 *
 * Split accumulation. Tensor cores of Hopper add up fp8 in some 14 bits of mantissa; forward products leave it at that,
 * gradients are promoted to fp32 every so often (use_split_accumulator of Transformer Engine's recipes: fprop false,
 * dgrad and wgrad true), and take the profile's factor longer. It was seen of products that ran over and over, so it
 * acts behind the sustained rate.
 *
 * Spread. Products and attention that computing bounds take 1 + drag of that, since a synchronous step waits for the
 * slowest of its devices (netmodel/device/device_spread.h); table entries excepted.
 *
 * A type without a peak in the profile is one that the device does not compute in; commands refuse it
 * (pl_job_options_complete) rather than guess what a library would fall back to. Here its arithmetic takes no time.
 */
#ifndef PL_WORKLOADS_OP_COST_H
#define PL_WORKLOADS_OP_COST_H

#include "core/cluster/device_profile.h"
#include "workloads/ir/model.h"

typedef enum pl_cost_source {
  PL_COST_TABLE = 0,
  PL_COST_ROOFLINE,
  PL_COST_FIT,
  /* Of the two last, scaled by what a whole block was measured to take (workloads/program/measured_block.h): at this
   * tensor degree and microbatch, or at another one. */
  PL_COST_MEASURED_BLOCK,
  PL_COST_SCALED_BLOCK
} pl_cost_source;
typedef enum pl_cost_bound { PL_BOUND_COMPUTE = 0, PL_BOUND_MEMORY, PL_BOUND_LAUNCH } pl_cost_bound;

const char *pl_cost_source_name(pl_cost_source source); /* "table" */
const char *pl_cost_bound_name(pl_cost_bound bound);    /* "compute" */

typedef struct pl_op_time {
  double time_s;
  pl_cost_source source;
  pl_cost_bound bound; /* which term is the largest; of a table entry by the roofline */
} pl_op_time;

/* Compute ops only (collectives are the network's). Table entries match exactly: kind, dtype, pass ("forward" for
 * recomputation too; an entry without pass matches any) and the dims (batch, m, n, k) of workloads/ir/op.h. O(log
 * entries); table entries and fits contain the launch. */
pl_op_time pl_op_cost(const pl_device_profile *profile, const pl_op *op);

/* The curve by which a fused attention op is timed: the profile's for its kernel, the fastest of all for this op where
 * it may be any of them; NULL: there is none. */
const pl_attention_profile *pl_op_attention(const pl_device_profile *profile, const pl_op *op);

/* Optimizer step over `parameters` local parameters as one fused kernel: memory bound. 0 parameters take no time. */
pl_op_time pl_optimizer_cost(const pl_device_profile *profile, double parameters, double bytes_per_parameter);

/* What was gathered, copied to where it is used: so many bytes read and written, by kernels one after another of which
 * the host takes `launch_s` for each. */
pl_op_time pl_gathered_copy_cost(const pl_device_profile *profile, double bytes, double n_kernels, double launch_s);

#endif
