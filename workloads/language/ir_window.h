/* Windows that slide over the dimensions `window` of a picture: of convolutions and pooling.
 *
 * Along each of them, element o of the result sees elements o * stride - before + dilation * k for k = 0 ... size - 1;
 * what lies outside is zero (not there, of a maximum). The result has (extent + before + after - dilation * (size - 1)
 * - 1) / stride + 1 elements, rounded down. Attributes say so for all dimensions at once ("2") or for each ("2x1"):
 * `stride` and `dilation` (1), `padding` (before; 0), `padding_after` (as before), of pooling also `size`.
 */
#ifndef PL_WORKLOADS_IR_WINDOW_H
#define PL_WORKLOADS_IR_WINDOW_H

#include "workloads/language/ir_table.h"

enum { PL_IR_WINDOWS_MAX = 3 };

typedef struct pl_ir_window {
  int64_t size, stride, dilation, before, after;
  int64_t in, out; /* extents */
} pl_ir_window;

typedef struct pl_ir_windows {
  int32_t n;
  pl_ir_window of[PL_IR_WINDOWS_MAX];
  int64_t n_in, n_out, n_size; /* points of the picture, of the result, of one window */
} pl_ir_windows;

/* Over the dimensions `window` of `picture`. Sizes are extents of `weights` along its dimensions `kernel`, in the same
 * order; NULL: the attribute `size`. */
pl_code pl_ir_windows_of(const pl_ir_op *op, const pl_ir_type *picture, const pl_ir_type *weights,
                         pl_ir_windows *windows, pl_error *error);
/* The picture with the extents that windows leave of it. */
pl_ir_type pl_ir_windows_result(const pl_ir_op *op, const pl_ir_type *picture, const pl_ir_windows *windows);
/* seen[n_out, n_size]: the point of the picture that a result's window has there, -1 outside. NULL: no memory. */
const int64_t *pl_ir_windows_seen(const pl_ir_windows *windows, pl_arena *arena);

#endif
