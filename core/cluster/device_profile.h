/* What is known of one type of accelerator: plain data, read from platforms/devices/NAME.json.
 *
 * Op cost (workloads/cost/op_cost.h) uses the measured table entry of an op if there is one, else the curve fitted to
 * such ops (attention, kernels), else the roofline max(flops / (peak * eff), bytes / (bandwidth * eff)) + launch
 * overhead.
 */
#ifndef PL_CORE_DEVICE_PROFILE_H
#define PL_CORE_DEVICE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/cluster/gemm_profile.h"

typedef enum pl_dtype {
  PL_DTYPE_FP32 = 0,
  PL_DTYPE_TF32,
  PL_DTYPE_FP16,
  PL_DTYPE_BF16,
  PL_DTYPE_FP8,
  PL_DTYPE_FP4, /* NVFP4: four bits and one scale of eight bits for every 16 numbers */
  PL_DTYPE_COUNT
} pl_dtype;

const char *pl_dtype_name(pl_dtype dtype); /* "fp16" */
double pl_dtype_bytes(pl_dtype dtype);     /* 4, 4, 2, 2, 1, 9 / 16 */
int pl_dtype_from_name(const char *name);  /* -1 when unknown */
/* The same for what people and programs call them: in any case, with or without "torch.", bfloat16, float16, half,
 * float32, float and float8 as well. */
int pl_dtype_from_alias(const char *name);

/* One measured op: `kind` is the op kind's name ("gemm", "attention", "layer" ...), dims as that kind defines
 * them (GEMM: batch, m, n, k; zero where unused). Sorted by (kind, dtype, pass, dims) for binary search. */
typedef struct pl_op_entry {
  char kind[16];
  char pass[12]; /* "forward", "backward", "" = any */
  pl_dtype dtype;
  int64_t dims[4];
  double time_s;
} pl_op_entry;

/* Implementations of fused attention; which one runs is the framework's choice, how fast it is the device's. */
typedef enum pl_attention_kernel {
  PL_ATTENTION_ANY = 0, /* the profile's first */
  PL_ATTENTION_FLASH1,
  PL_ATTENTION_FLASH2,
  PL_ATTENTION_FLASH3,
  PL_ATTENTION_CUDNN,
  PL_ATTENTION_KERNEL_COUNT,
  PL_ATTENTION_FASTEST = PL_ATTENTION_KERNEL_COUNT /* of those that the device has figures for: of no profile */
} pl_attention_kernel;

const char *pl_attention_kernel_name(pl_attention_kernel kernel); /* "flash2"; "any" */
int pl_attention_kernel_from_name(const char *name);              /* -1 when unknown */

/* |predicted / measured - 1| on measurements of this device that were kept out of the fit. n = 0: none, the figures are
 * another device's. */
typedef struct pl_held_out {
  uint32_t n;
  double median_error, p90_error;
} pl_held_out;

/* One such implementation on this device: the curve of workloads/cost/attention_cost.h. */
enum { PL_HEAD_SIZES = 6 };
typedef struct pl_attention_profile {
  pl_attention_kernel kernel;
  uint32_t n_head_sizes;
  double head_size[PL_HEAD_SIZES];  /* ascending */
  double efficiency[PL_HEAD_SIZES]; /* of peak while a multiprocessor is inside its loop over keys, by head size */
  double multiprocessors;           /* thread blocks that run at full speed side by side */
  double query_tile, key_tile;      /* rows of a thread block; keys of one step of its loop */
  double prologue_keys;             /* start and end of a thread block, as keys of its loop */
  double tail;                      /* share of a mean thread block for which multiprocessors wait at the end */
  double overhead_s;
  double backward_ratio; /* time of the backward's loops over the forward's */
  double backward_prologue_keys, backward_overhead_s;
  pl_held_out held_out[2]; /* forward, backward */
} pl_attention_profile;

/* Kinds of memory-bound kernels with a speed of their own. */
typedef enum pl_kernel_kind {
  PL_KERNEL_NORM = 0,
  PL_KERNEL_SOFTMAX,
  PL_KERNEL_ELEMENTWISE,
  PL_KERNEL_EMBEDDING,
  PL_KERNEL_CROSS_ENTROPY,
  PL_KERNEL_OPTIMIZER,
  PL_KERNEL_KIND_COUNT
} pl_kernel_kind;

const char *pl_kernel_kind_name(pl_kernel_kind kind); /* "norm" */
int pl_kernel_kind_from_name(const char *name);       /* -1 when unknown */

/* time = overhead_s + bytes / (bandwidth * bandwidth_efficiency); an efficiency of 0: nothing is known. */
typedef struct pl_kernel_profile {
  double bandwidth_efficiency, overhead_s;
  pl_held_out held_out;
} pl_kernel_profile;

/* A convolution and its two derivatives. */
typedef enum pl_convolution_pass {
  PL_CONVOLUTION_FORWARD = 0,
  PL_CONVOLUTION_DATA,   /* gradient of the pictures */
  PL_CONVOLUTION_WEIGHT, /* gradient of the filters */
  PL_CONVOLUTION_PASS_COUNT
} pl_convolution_pass;

const char *pl_convolution_pass_name(pl_convolution_pass pass); /* "forward", "data", "weight" */

/* Convolutions of one pass in some data types on this device: the formula of workloads/cost/convolution_cost.h. */
typedef struct pl_convolution_fit {
  uint32_t dtypes; /* bits 1 << pl_dtype */
  pl_convolution_pass pass;
  double multiprocessors, tile_m, tile_n;
  double efficiency, efficiency_3x3; /* of peak; of filters of 3 x 3 with stride 1 */
  double bandwidth_efficiency, overhead_s;
  double depth; /* start and end of a thread block, as elements of k */
  double waves; /* share of the idle multiprocessors of a last wave that costs time */
  pl_held_out held_out;
} pl_convolution_fit;

/* An op of programs (workloads/language), by the name of its row, as it was measured on this device where one runs
 * them: time = overhead_s + flops / flops_rate + bytes / bytes_rate, without the terms whose rate is 0. */
enum { PL_PROGRAM_OP_BYTES = 32 };
typedef struct pl_program_kernel {
  char op[PL_PROGRAM_OP_BYTES];
  double overhead_s, flops_rate, bytes_rate;
  pl_held_out held_out;
} pl_program_kernel;

/* By the name of the op; for qsort. */
static inline int pl_program_kernel_by_op(const void *left, const void *right) {
  return strcmp(((const pl_program_kernel *)left)->op, ((const pl_program_kernel *)right)->op);
}

typedef struct pl_device_profile {
  const char *name;                  /* as platform files write it: "A100-SXM4-80GB" */
  const char *architecture;          /* "ampere" */
  double memory_bytes;               /* capacity the driver reports */
  double communicator_bytes;         /* buffers of one communicator of the collective library; 0: not known */
  double switch_bytes;               /* besides, of one with three GPUs of a node and more, for each of these: what
                                        reductions in the switch need; 0: none */
  double reserved_bytes;             /* context, libraries, fragmentation: not usable by tensors */
  double bandwidth_Bps;              /* of device memory */
  double peak_flops[PL_DTYPE_COUNT]; /* dense; 0 = the type is not supported in hardware */
  double compute_efficiency;         /* of peak, large GEMM */
  double attention_efficiency;       /* of peak, fused attention */
  double bandwidth_efficiency;       /* of bandwidth, memory-bound kernels */
  double launch_overhead_s;          /* per kernel */
  double sustained_compute;          /* of peak: tensor cores for seconds at the power limit; 0: not known */
  double
      split_accumulation; /* of fp8: time of products that add up in fp32 over that of those that do not; 0: as long */
  double compute_spread;  /* of ln(time of products) over devices of the type; 0: not known */
  double compute_drag;    /* what the slowest of those in the cluster adds to products; 0: nothing */
  double power_W;         /* the power limit that the figures are of; 0: not known */
  double overlap_compute; /* gamma: compute takes (1 + gamma) while gradient communication runs */
  double overlap_communication; /* gamma of the communication, likewise */
  uint32_t channels;            /* thread blocks of a collective in a node, a multiprocessor each; 0: not known */
  bool fills_device;            /* products launch one thread block per multiprocessor, which all stay */
  const pl_attention_profile *attention; /* the default first; none: attention_efficiency is used */
  uint32_t n_attention;
  pl_kernel_profile kernels[PL_KERNEL_KIND_COUNT][2]; /* forward, backward */
  pl_gemm_profile gemm;                               /* optional */
  const pl_convolution_fit *convolutions;             /* optional */
  uint32_t n_convolutions;
  const pl_op_entry *ops;
  uint32_t n_ops;
  const pl_program_kernel *programs; /* optional; by op, rising: for programs they take the place of all else */
  uint32_t n_programs;
  uint64_t digest; /* of the profile file */
} pl_device_profile;

#endif
