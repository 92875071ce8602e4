/* See workloads/cost/op_cost.h. */
#include "workloads/cost/op_cost.h"

#include <math.h>
#include <string.h>

#include "workloads/cost/attention_cost.h"
#include "workloads/cost/convolution_cost.h"
#include "workloads/cost/gemm_cost.h"

enum { TILE = 32 };

/* Without a default: the compiler says when a new one has no name. */
const char *pl_cost_source_name(pl_cost_source source) {
  switch (source) {
  case PL_COST_TABLE:
    return "table";
  case PL_COST_ROOFLINE:
    return "roofline";
  case PL_COST_FIT:
    return "fit";
  case PL_COST_MEASURED_BLOCK:
    return "measured layer";
  case PL_COST_SCALED_BLOCK:
    return "scaled layer";
  }
  return "unknown";
}

const char *pl_cost_bound_name(pl_cost_bound bound) {
  switch (bound) {
  case PL_BOUND_COMPUTE:
    return "compute";
  case PL_BOUND_MEMORY:
    return "memory";
  case PL_BOUND_LAUNCH:
    return "launch";
  }
  return "unknown";
}

/* The profile's order: kind, dtype, pass, dims. */
static int compare(const pl_op_entry *entry, const char *kind, pl_dtype dtype, const char *pass,
                   const int64_t dims[4]) {
  int order = strcmp(entry->kind, kind);
  if (order == 0) order = (entry->dtype > dtype) - (entry->dtype < dtype);
  if (order == 0) order = strcmp(entry->pass, pass);
  for (int i = 0; i < 4 && order == 0; i++)
    order = (entry->dims[i] > dims[i]) - (entry->dims[i] < dims[i]);
  return order;
}

static const pl_op_entry *find(const pl_device_profile *profile, const char *kind, pl_dtype dtype, const char *pass,
                               const int64_t dims[4]) {
  uint32_t low = 0, high = profile->n_ops;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare(&profile->ops[middle], kind, dtype, pass, dims);
    if (order == 0) return &profile->ops[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

static const pl_op_entry *find_any_pass(const pl_device_profile *profile, const char *kind, pl_dtype dtype,
                                        const char *pass, const int64_t dims[4]) {
  const pl_op_entry *entry = find(profile, kind, dtype, pass, dims);
  return entry != NULL ? entry : find(profile, kind, dtype, "", dims);
}

static double whole_tiles(int64_t extent) {
  int64_t tiles = (extent + TILE - 1) / TILE;
  return (double)(tiles * TILE);
}

static double compute_time(const pl_device_profile *profile, const pl_op *op) {
  double flops = op->flops, efficiency = profile->compute_efficiency;
  pl_dtype dtype = PL_DTYPE_FP32;
  if (op->kind == PL_OP_GEMM) {
    flops = 2 * (double)op->batch * whole_tiles(op->m) * whole_tiles(op->n) * (double)op->k;
    dtype = (pl_dtype)op->dtype;
  } else if (op->kind == PL_OP_CONVOLUTION) {
    pl_convolution_shape shape = pl_convolution_shape_of(op);
    double rate = pl_convolution_peak(profile, (pl_dtype)op->dtype, shape.aligned) * efficiency;
    return rate > 0 ? 2 * whole_tiles(op->m) * whole_tiles(op->n) * (double)op->k / rate : 0;
  } else if (op->kind == PL_OP_ATTENTION) {
    efficiency = profile->attention_efficiency;
    dtype = (pl_dtype)op->dtype;
  }
  double peak = profile->peak_flops[dtype];
  return flops > 0 && peak > 0 ? flops / (peak * efficiency) : 0;
}

static pl_op_time roofline(const pl_device_profile *profile, double compute_s, double bytes) {
  double memory_s = bytes / (profile->bandwidth_Bps * profile->bandwidth_efficiency);
  double work_s = fmax(compute_s, memory_s), launch_s = profile->launch_overhead_s;
  pl_cost_bound bound = launch_s > work_s ? PL_BOUND_LAUNCH : compute_s > memory_s ? PL_BOUND_COMPUTE : PL_BOUND_MEMORY;
  return (pl_op_time){.time_s = work_s + launch_s, .source = PL_COST_ROOFLINE, .bound = bound};
}

static pl_cost_bound bound_of(double overhead_s, double compute_s, double memory_s) {
  if (overhead_s > fmax(compute_s, memory_s)) return PL_BOUND_LAUNCH;
  return compute_s > memory_s ? PL_BOUND_COMPUTE : PL_BOUND_MEMORY;
}

/* Attention in 16 bits by one of the profile's curves; false: there is none, or the data type is another. */
static bool time_attention(const pl_device_profile *profile, const pl_attention_profile *attention, const pl_op *op,
                           pl_op_time *time) {
  pl_dtype dtype = op->dtype == PL_DTYPE_FP8 ? PL_DTYPE_BF16 : (pl_dtype)op->dtype;
  if (attention == NULL || pl_dtype_bytes(dtype) != 2 || profile->peak_flops[dtype] <= 0) return false;
  bool backward = op->category == PL_CATEGORY_BACKWARD;
  double products = 4 * (double)op->batch * (double)op->k * (backward ? PL_ATTENTION_BACKWARD_FLOPS : 1);
  const pl_attention_shape shape = {.heads = (double)op->batch,
                                    .queries = (double)op->m,
                                    .keys = (double)op->n,
                                    .head_size = (double)op->k,
                                    .pairs = op->flops / products,
                                    .bytes = op->bytes,
                                    .backward = backward,
                                    .deterministic = op->deterministic};
  pl_attention_time parts = pl_attention_time_of(attention, profile->peak_flops[dtype],
                                                 profile->bandwidth_Bps * profile->bandwidth_efficiency, &shape);
  double work_s = fmax(parts.compute_s, parts.memory_s) + parts.helpers_s;
  time->time_s = work_s + parts.overhead_s;
  time->source = PL_COST_FIT;
  time->bound = parts.overhead_s > work_s          ? PL_BOUND_LAUNCH
                : parts.compute_s > parts.memory_s ? PL_BOUND_COMPUTE
                                                   : PL_BOUND_MEMORY;
  return true;
}

const pl_attention_profile *pl_op_attention(const pl_device_profile *profile, const pl_op *op) {
  const pl_attention_profile *best = NULL;
  pl_op_time time, least = {0};
  if (op->attention_kernel != PL_ATTENTION_FASTEST)
    return pl_attention_choose(profile, (pl_attention_kernel)op->attention_kernel);
  for (uint32_t i = 0; i < profile->n_attention; i++) {
    if (!time_attention(profile, &profile->attention[i], op, &time)) return profile->attention;
    if (best != NULL && time.time_s >= least.time_s) continue;
    best = &profile->attention[i];
    least = time;
  }
  return best;
}

static bool fitted_attention(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  return time_attention(profile, pl_op_attention(profile, op), op, time);
}

static bool fitted_kernel(const pl_device_profile *profile, pl_kernel_kind kind, bool backward, double bytes,
                          pl_op_time *time) {
  const pl_kernel_profile *kernel = &profile->kernels[kind][backward];
  if (kernel->bandwidth_efficiency <= 0) return false;
  double memory_s = bytes / (profile->bandwidth_Bps * kernel->bandwidth_efficiency);
  *time = (pl_op_time){.time_s = memory_s + kernel->overhead_s,
                       .source = PL_COST_FIT,
                       .bound = kernel->overhead_s > memory_s ? PL_BOUND_LAUNCH : PL_BOUND_MEMORY};
  return true;
}

/* False: nothing is known of such products on this device. */
static bool fitted_gemm(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  const pl_gemm_fit *fit = pl_gemm_fit_for(profile, (pl_dtype)op->dtype);
  if (fit == NULL || op->batch <= 0 || op->m <= 0 || op->n <= 0 || op->k <= 0) return false;
  pl_gemm_shape shape = {.batch = op->batch,
                         .m = op->m,
                         .n = op->n,
                         .k = op->k,
                         .dtype = (pl_dtype)op->dtype,
                         .bytes = op->bytes,
                         .transposed = op->transposed};
  pl_gemm_time gemm = pl_gemm_cost(profile, fit, &shape);
  *time = (pl_op_time){
      .time_s = gemm.time_s, .source = PL_COST_FIT, .bound = bound_of(gemm.overhead_s, gemm.compute_s, gemm.memory_s)};
  return true;
}

static bool fitted_convolution(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  pl_dtype dtype = (pl_dtype)op->dtype;
  const pl_convolution_fit *fit = pl_convolution_fit_for(profile, dtype, (pl_convolution_pass)op->convolution_pass);
  if (fit == NULL || profile->peak_flops[dtype] <= 0) return false;
  pl_convolution_shape shape = pl_convolution_shape_of(op);
  pl_convolution_time parts = pl_convolution_time_of(profile, fit, dtype, &shape);
  *time = (pl_op_time){.time_s = pl_convolution_seconds(&parts),
                       .source = PL_COST_FIT,
                       .bound = bound_of(parts.overhead_s, parts.compute_s, parts.memory_s)};
  return true;
}

static bool fitted(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  static const pl_kernel_kind kinds[PL_OP_KIND_COUNT] = {[PL_OP_NORM] = PL_KERNEL_NORM,
                                                         [PL_OP_SOFTMAX] = PL_KERNEL_SOFTMAX,
                                                         [PL_OP_ELEMENTWISE] = PL_KERNEL_ELEMENTWISE,
                                                         [PL_OP_EMBEDDING] = PL_KERNEL_EMBEDDING,
                                                         [PL_OP_CROSS_ENTROPY] = PL_KERNEL_CROSS_ENTROPY};
  if (op->kind == PL_OP_ATTENTION) return fitted_attention(profile, op, time);
  if (op->kind == PL_OP_GEMM) return fitted_gemm(profile, op, time);
  if (op->kind == PL_OP_CONVOLUTION) return fitted_convolution(profile, op, time);
  if (op->plain) return false; /* fits are of activation functions: see validation/calibration/README.md */
  return fitted_kernel(profile, kinds[op->kind], op->category == PL_CATEGORY_BACKWARD, op->bytes, time);
}

/* What tensor cores do for seconds on end: see the head of workloads/cost/op_cost.h. */
static void sustain(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  if (profile->sustained_compute <= 0 || (op->kind != PL_OP_GEMM && op->kind != PL_OP_ATTENTION)) return;
  pl_dtype dtype = (pl_dtype)op->dtype;
  if (op->kind == PL_OP_ATTENTION && dtype == PL_DTYPE_FP8) dtype = PL_DTYPE_BF16;
  if (dtype == PL_DTYPE_FP32 || profile->peak_flops[dtype] <= 0) return;
  double least_s = op->flops / (profile->peak_flops[dtype] * profile->sustained_compute);
  if (time->time_s >= least_s) return;
  time->time_s = least_s;
  time->bound = PL_BOUND_COMPUTE;
}

/* The pace of the slowest of all devices of the type (netmodel/device/device_spread.h). */
static void keep_pace(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  bool is_product = op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION || op->kind == PL_OP_CONVOLUTION;
  if (is_product && time->bound == PL_BOUND_COMPUTE) time->time_s *= 1 + profile->compute_drag;
}

/* Gradients of products in fp8 are added up in fp32, which tensor cores of some devices do not do by themselves. */
static void split_accumulation(const pl_device_profile *profile, const pl_op *op, pl_op_time *time) {
  bool is_gradient = op->kind == PL_OP_GEMM && op->dtype == PL_DTYPE_FP8 && op->category == PL_CATEGORY_BACKWARD;
  if (is_gradient && profile->split_accumulation > 0 && time->bound == PL_BOUND_COMPUTE)
    time->time_s *= profile->split_accumulation;
}

/* A tensor written once by a kernel of its own. */
static double fill_time_s(const pl_device_profile *profile, double bytes) {
  pl_op_time time;
  if (!fitted_kernel(profile, PL_KERNEL_ELEMENTWISE, false, bytes, &time)) time = roofline(profile, 0, bytes);
  return time.time_s;
}

static pl_op_time cost_once(const pl_device_profile *profile, const pl_op *op) {
  pl_op_time time;
  if (!fitted(profile, op, &time)) time = roofline(profile, compute_time(profile, op), op->bytes);
  sustain(profile, op, &time);
  split_accumulation(profile, op, &time);
  keep_pace(profile, op, &time);
  if (op->filled_bytes > 0) time.time_s += fill_time_s(profile, op->filled_bytes);
  if (profile->n_ops == 0) return time;
  const int64_t dims[4] = {op->batch, op->m, op->n, op->k};
  const char *pass = op->category == PL_CATEGORY_BACKWARD ? "backward" : "forward";
  const pl_op_entry *entry =
      find_any_pass(profile, pl_op_kind_name((pl_op_kind)op->kind), (pl_dtype)op->dtype, pass, dims);
  if (entry == NULL) return time;
  time.time_s = entry->time_s;
  time.source = PL_COST_TABLE;
  return time;
}

pl_op_time pl_op_cost(const pl_device_profile *profile, const pl_op *op) {
  PL_DEBUG_ASSERT(op->kind != PL_OP_COLLECTIVE);
  if (op->times <= 1) return cost_once(profile, op);
  pl_op one = *op;
  one.times = 1;
  one.flops /= (double)op->times;
  one.bytes /= (double)op->times;
  one.filled_bytes /= (double)op->times;
  pl_op_time time = cost_once(profile, &one);
  time.time_s *= (double)op->times;
  return time;
}

pl_op_time pl_optimizer_cost(const pl_device_profile *profile, double parameters, double bytes_per_parameter) {
  if (parameters <= 0) return (pl_op_time){.source = PL_COST_ROOFLINE, .bound = PL_BOUND_MEMORY};
  pl_op_time time;
  if (fitted_kernel(profile, PL_KERNEL_OPTIMIZER, false, parameters * bytes_per_parameter, &time)) return time;
  return roofline(profile, 0, parameters * bytes_per_parameter);
}

pl_op_time pl_gathered_copy_cost(const pl_device_profile *profile, double bytes, double n_kernels, double launch_s) {
  double launches_s = n_kernels * fmax(launch_s, profile->launch_overhead_s);
  pl_op_time time = pl_optimizer_cost(profile, 1, bytes);
  if (launches_s > time.time_s)
    time = (pl_op_time){.time_s = launches_s, .source = PL_COST_ROOFLINE, .bound = PL_BOUND_LAUNCH};
  return time;
}
