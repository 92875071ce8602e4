/* See workloads/language/ir_window.h. */
#include "workloads/language/ir_window.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/language/ir_operands.h"

enum { NUMBER_MAX = 1 << 20 };

/* "2" or "2x1" into n numbers of at least `least`. */
static pl_code read_numbers(const pl_ir_op *op, const char *attribute, int32_t n, int64_t least, int64_t *numbers,
                            pl_error *error) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  if (found == NULL) return PL_OK;
  const char *at = found->text;
  int32_t n_read = 0;
  bool good = true;
  while (good && n_read < n) {
    char *end;
    good = *at >= '0' && *at <= '9';
    numbers[n_read] = strtoll(at, &end, 10);
    good &= numbers[n_read] >= least && numbers[n_read] <= NUMBER_MAX;
    n_read++;
    at = end;
    if (*at != 'x' || n_read == n) break;
    at++;
  }
  for (int32_t i = 1; n_read == 1 && i < n; i++)
    numbers[i] = numbers[0];
  if (good && *at == 0 && (n_read == n || n_read == 1)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s=\"%s\" of %s: one number from %" PRId64 " to %d, or %d of them, as in \"2x1\"", attribute,
                 found->text, pl_ir_op_name(op), least, NUMBER_MAX, n);
}

static pl_code read_sizes(const pl_ir_op *op, const pl_ir_type *weights, int32_t n, int64_t *sizes, pl_error *error) {
  if (weights == NULL) return read_numbers(op, "size", n, 1, sizes, error);
  const pl_ir_attribute *kernel = pl_ir_attribute_find(op, "kernel");
  if (kernel->n_names != n)
    return pl_fail(error, PL_BAD_INPUT, "%s has %d dimensions in 'window' and %d in 'kernel'", pl_ir_op_name(op), n,
                   kernel->n_names);
  for (int32_t i = 0; i < n; i++) {
    sizes[i] = weights->dims[pl_ir_type_find(weights, kernel->names[i])].extent;
    if (sizes[i] > NUMBER_MAX)
      return pl_fail(error, PL_BAD_INPUT,
                     "%s=%" PRId64 " of the weights of %s: a window has at most %d elements a side",
                     kernel->names[i].text, sizes[i], pl_ir_op_name(op), NUMBER_MAX);
  }
  return PL_OK;
}

static pl_code slide(const pl_ir_op *op, pl_ir_name dim, pl_ir_window *window, pl_error *error) {
  int64_t reach = window->dilation * (window->size - 1);
  bool is_pooling = pl_ir_attribute_find(op, "kernel") == NULL;
  if (is_pooling && (window->before > reach || window->after > reach))
    return pl_fail(error, PL_BAD_INPUT,
                   "%s pads %s by more than a window less one, %" PRId64 ": there are results that see nothing",
                   pl_ir_op_name(op), dim.text, reach);
  int64_t room = window->in + window->before + window->after - reach - 1;
  if (room < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s=%" PRId64 " is smaller than the window of %s, which reaches over %" PRId64,
                   dim.text, window->in, pl_ir_op_name(op), reach + 1);
  window->out = room / window->stride + 1;
  return PL_OK;
}

pl_code pl_ir_windows_of(const pl_ir_op *op, const pl_ir_type *picture, const pl_ir_type *weights,
                         pl_ir_windows *windows, pl_error *error) {
  const pl_ir_attribute *names = pl_ir_attribute_find(op, "window");
  int32_t n = names->n_names;
  if (n < 1 || n > PL_IR_WINDOWS_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s has %d dimensions in 'window'; it takes 1 to %d", pl_ir_op_name(op), n,
                   PL_IR_WINDOWS_MAX);
  int64_t size[PL_IR_WINDOWS_MAX], stride[] = {1, 1, 1}, dilation[] = {1, 1, 1}, before[] = {0, 0, 0}, after[3];
  PL_TRY(read_sizes(op, weights, n, size, error));
  PL_TRY(read_numbers(op, "stride", n, 1, stride, error));
  PL_TRY(read_numbers(op, "dilation", n, 1, dilation, error));
  PL_TRY(read_numbers(op, "padding", n, 0, before, error));
  for (int32_t i = 0; i < n; i++)
    after[i] = before[i];
  PL_TRY(read_numbers(op, "padding_after", n, 0, after, error));
  *windows = (pl_ir_windows){.n = n, .n_in = 1, .n_out = 1, .n_size = 1};
  for (int32_t i = 0; i < n; i++) {
    pl_ir_window *one = &windows->of[i];
    *one = (pl_ir_window){.size = size[i], .stride = stride[i], .dilation = dilation[i]};
    one->before = before[i];
    one->after = after[i];
    one->in = picture->dims[pl_ir_type_find(picture, names->names[i])].extent;
    PL_TRY(slide(op, names->names[i], one, error));
    double points = (double)windows->n_in * (double)one->in, seen = (double)windows->n_out * (double)one->out;
    if (fmax(fmax(points, seen), (double)windows->n_size * (double)one->size) > (double)PL_IR_EXTENT_MAX)
      return pl_fail(error, PL_BAD_INPUT, "the picture of %s has more points than can be counted", pl_ir_op_name(op));
    windows->n_in *= one->in;
    windows->n_out *= one->out;
    windows->n_size *= one->size;
  }
  return PL_OK;
}

pl_ir_type pl_ir_windows_result(const pl_ir_op *op, const pl_ir_type *picture, const pl_ir_windows *windows) {
  const pl_ir_attribute *names = pl_ir_attribute_find(op, "window");
  pl_ir_type result = pl_ir_type_whole(picture);
  for (int32_t i = 0; i < windows->n; i++)
    result.dims[pl_ir_type_find(picture, names->names[i])].extent = windows->of[i].out;
  return result;
}

static int64_t point_seen(const pl_ir_windows *windows, int64_t out, int64_t in_window) {
  int64_t point = 0, step = 1;
  for (int32_t i = windows->n - 1; i >= 0; i--) {
    const pl_ir_window *one = &windows->of[i];
    int64_t at = out % one->out * one->stride - one->before + in_window % one->size * one->dilation;
    if (at < 0 || at >= one->in) return -1;
    point += at * step;
    step *= one->in;
    out /= one->out;
    in_window /= one->size;
  }
  return point;
}

const int64_t *pl_ir_windows_seen(const pl_ir_windows *windows, pl_arena *arena) {
  int64_t *seen = PL_TAKE(arena, int64_t, windows->n_out * windows->n_size);
  for (int64_t out = 0; seen != NULL && out < windows->n_out; out++)
    for (int64_t k = 0; k < windows->n_size; k++)
      seen[out * windows->n_size + k] = point_seen(windows, out, k);
  return seen;
}
