/* See core/device_profile.h. */
#include "core/device_profile.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  double bytes;
} dtypes[PL_DTYPE_COUNT] = {[PL_DTYPE_FP32] = {"fp32", 4.0},
                            [PL_DTYPE_TF32] = {"tf32", 4.0}, /* 19 bits in the unit, 32 in memory */
                            [PL_DTYPE_FP16] = {"fp16", 2.0},
                            [PL_DTYPE_BF16] = {"bf16", 2.0},
                            [PL_DTYPE_FP8] = {"fp8", 1.0}};

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
