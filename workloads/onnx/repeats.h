/* Where a sequence of signs repeats: "abcbcbcd" is a, three times bc, d. */
#ifndef PL_WORKLOADS_ONNX_REPEATS_H
#define PL_WORKLOADS_ONNX_REPEATS_H

#include "core/base/arena.h"

typedef struct pl_repeat {
  int32_t first, period, count; /* count 1: what stands between repeats, `period` long */
} pl_repeat;

enum { PL_REPEAT_PERIOD_MAX = 512, PL_REPEATS_MAX = 64 };

/* The repeats that cover most weight, first to last, with what is between them; a period has weight of its own. NULL:
 * no memory. O(n PERIOD_MAX) for each repeat. */
pl_repeat *pl_repeats_take(int32_t n, const uint64_t *signs, const double *weights, pl_arena *arena,
                           int32_t *n_repeats);

#endif
