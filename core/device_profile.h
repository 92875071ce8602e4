/* What is known of one type of accelerator: plain data, read from platforms/devices/NAME.json.
 *
 * Op cost (workloads/op_cost.h) uses the measured table entry of an op if there is one, else the roofline
 * max(flops / (peak * eff), bytes / (bandwidth * eff)) + launch overhead.
 */
#ifndef PL_CORE_DEVICE_PROFILE_H
#define PL_CORE_DEVICE_PROFILE_H

#include <stdint.h>

typedef enum pl_dtype {
  PL_DTYPE_FP32 = 0,
  PL_DTYPE_TF32,
  PL_DTYPE_FP16,
  PL_DTYPE_BF16,
  PL_DTYPE_FP8,
  PL_DTYPE_COUNT
} pl_dtype;

const char *pl_dtype_name(pl_dtype dtype); /* "fp16" */
double pl_dtype_bytes(pl_dtype dtype);     /* 4, 4, 2, 2, 1 */
int pl_dtype_from_name(const char *name);  /* -1 when unknown */

/* One measured op: `kind` is the op kind's name ("gemm", "attention", "layer" ...), dims as that kind defines
 * them (GEMM: batch, m, n, k; zero where unused). Sorted by (kind, dtype, pass, dims) for binary search. */
typedef struct pl_op_entry {
  char kind[16];
  char pass[12]; /* "forward", "backward", "" = any */
  pl_dtype dtype;
  int64_t dims[4];
  double time_s;
} pl_op_entry;

typedef struct pl_device_profile {
  const char *name;                  /* as platform files write it: "A100-SXM4-80GB" */
  const char *architecture;          /* "ampere" */
  double memory_bytes;               /* capacity the driver reports */
  double reserved_bytes;             /* context, libraries, fragmentation: not usable by tensors */
  double bandwidth_Bps;              /* of device memory */
  double peak_flops[PL_DTYPE_COUNT]; /* dense; 0 = the type is not supported in hardware */
  double compute_efficiency;         /* of peak, large GEMM */
  double attention_efficiency;       /* of peak, fused attention */
  double bandwidth_efficiency;       /* of bandwidth, memory-bound kernels */
  double launch_overhead_s;          /* per kernel */
  double overlap_compute;            /* gamma: compute takes (1 + gamma) while gradient communication runs */
  double overlap_communication;      /* gamma of the communication, likewise */
  const pl_op_entry *ops;
  uint32_t n_ops;
  uint64_t digest; /* of the profile file */
} pl_device_profile;

#endif
