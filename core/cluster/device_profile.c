/* See core/cluster/device_profile.h. */
#include "core/cluster/device_profile.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
  const char *name;
  double bytes;
} dtypes[PL_DTYPE_COUNT] = {
    [PL_DTYPE_FP32] = {"fp32", 4.0}, [PL_DTYPE_TF32] = {"tf32", 4.0}, /* 19 bits in the unit, 32 in memory */
    [PL_DTYPE_FP16] = {"fp16", 2.0}, [PL_DTYPE_BF16] = {"bf16", 2.0},
    [PL_DTYPE_FP8] = {"fp8", 1.0},   [PL_DTYPE_FP4] = {"fp4", 0.5625}};

const char *pl_dtype_name(pl_dtype dtype) {
  return dtypes[dtype].name;
}

double pl_dtype_bytes(pl_dtype dtype) {
  return dtypes[dtype].bytes;
}

int pl_dtype_from_name(const char *name) {
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (strcmp(dtypes[dtype].name, name) == 0) return dtype;
  return -1;
}

int pl_dtype_from_alias(const char *name) {
  static const struct {
    const char *name;
    pl_dtype dtype;
  } others[] = {{"bfloat16", PL_DTYPE_BF16}, {"float16", PL_DTYPE_FP16}, {"half", PL_DTYPE_FP16},
                {"float32", PL_DTYPE_FP32},  {"float", PL_DTYPE_FP32},   {"float8", PL_DTYPE_FP8}};
  if (strncasecmp(name, "torch.", 6) == 0) name += 6;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcasecmp(others[i].name, name) == 0) return (int)others[i].dtype;
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (strcasecmp(dtypes[dtype].name, name) == 0) return dtype;
  return -1;
}

static const char *const attention_kernels[PL_ATTENTION_KERNEL_COUNT] = {[PL_ATTENTION_ANY] = "any",
                                                                         [PL_ATTENTION_FLASH1] = "flash1",
                                                                         [PL_ATTENTION_FLASH2] = "flash2",
                                                                         [PL_ATTENTION_FLASH3] = "flash3",
                                                                         [PL_ATTENTION_CUDNN] = "cudnn"};

const char *pl_attention_kernel_name(pl_attention_kernel kernel) {
  return attention_kernels[kernel];
}

int pl_attention_kernel_from_name(const char *name) {
  for (int kernel = 0; kernel < PL_ATTENTION_KERNEL_COUNT; kernel++)
    if (strcmp(attention_kernels[kernel], name) == 0) return kernel;
  return -1;
}

static const char *const kernel_kinds[PL_KERNEL_KIND_COUNT] = {[PL_KERNEL_NORM] = "norm",
                                                               [PL_KERNEL_SOFTMAX] = "softmax",
                                                               [PL_KERNEL_ELEMENTWISE] = "elementwise",
                                                               [PL_KERNEL_EMBEDDING] = "embedding",
                                                               [PL_KERNEL_CROSS_ENTROPY] = "cross_entropy",
                                                               [PL_KERNEL_OPTIMIZER] = "optimizer"};

const char *pl_kernel_kind_name(pl_kernel_kind kind) {
  return kernel_kinds[kind];
}

int pl_kernel_kind_from_name(const char *name) {
  for (int kind = 0; kind < PL_KERNEL_KIND_COUNT; kind++)
    if (strcmp(kernel_kinds[kind], name) == 0) return kind;
  return -1;
}

const char *pl_gemm_tile_name(pl_gemm_tile tile) {
  static const char *const names[PL_GEMM_TILE_COUNT] = {[PL_GEMM_TILE_256X128] = "256x128",
                                                        [PL_GEMM_TILE_128X128] = "128x128",
                                                        [PL_GEMM_TILE_128X64] = "128x64",
                                                        [PL_GEMM_TILE_64X64] = "64x64"};
  return names[tile];
}

const char *pl_convolution_pass_name(pl_convolution_pass pass) {
  static const char *const names[PL_CONVOLUTION_PASS_COUNT] = {
      [PL_CONVOLUTION_FORWARD] = "forward", [PL_CONVOLUTION_DATA] = "data", [PL_CONVOLUTION_WEIGHT] = "weight"};
  return names[pass];
}
