/* The order of a column-split product's gradients where collectives run beside products (overlaps_tensor of a profile):
 * its input is gathered again beside the product for the input's gradient, which is scattered, or summed up over all
 * ranks (overlaps_tensor_backward), beside the product for the weight's, in dense layers. It is Megatron's
 * (tensor_parallel/layers.py). See workloads/fuse/kernel_groups.h. */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"
#include "workloads/language/ir_layer.h"

typedef struct ordering {
  const pl_kernel_finding *own;
  int32_t *order, n; /* groups */
} ordering;

static bool is_of_tensor_group(const ordering *of, int32_t op, const char *row) {
  return pl_read_is(&of->own->read, op, row) &&
         pl_ir_axis_is_of_tensors(pl_ir_text_of(pl_read_op(&of->own->read, op), "over"));
}

static int32_t place_of(const ordering *of, int32_t op) {
  int32_t group = op != PL_IR_NONE ? pl_kernel_group(of->own, op) : PL_IR_NONE;
  for (int32_t i = 0; i < of->n; i++)
    if (of->order[i] == group) return i;
  return PL_IR_NONE;
}

/* From one place to another, what is between them moves up or down. */
static void move(ordering *of, int32_t from, int32_t to) {
  int32_t group = of->order[from];
  if (from < to)
    memmove(&of->order[from], &of->order[from + 1], (size_t)(to - from) * sizeof *of->order);
  else
    memmove(&of->order[to + 1], &of->order[to], (size_t)(from - to) * sizeof *of->order);
  of->order[to] = group;
}

/* A product between the two places reads what was gathered. */
static bool feeds_product(const ordering *of, int32_t gather, int32_t before) {
  int32_t reader = of->own->read.user[pl_read_op(&of->own->read, gather)->first_output];
  int32_t at = place_of(of, reader);
  return pl_read_is(&of->own->read, reader, "product") && at > place_of(of, gather) && at < before;
}

/* The product whose output is scattered, or the kernel of several whose sum is; PL_IR_NONE: it is none of these. */
static int32_t product_of(const ordering *of, int32_t scatter) {
  int32_t maker = pl_read_made(&of->own->read, scatter, 0);
  bool several = pl_read_is(&of->own->read, maker, "add") && pl_kernel_group(of->own, maker) != maker;
  return several || pl_read_is(&of->own->read, maker, "product") ? place_of(of, maker) : PL_IR_NONE;
}

/* Around the scattering at place `at`: what is gathered again in front of the product, the scattering behind it. */
static void order_around(ordering *of, int32_t at) {
  int32_t product = product_of(of, of->order[at]);
  if (product == PL_IR_NONE || product > at) return;
  for (int32_t i = product + 1; i < at; i++) {
    int32_t gather = of->order[i], kept = pl_read_made(&of->own->read, gather, 0);
    if (!is_of_tensor_group(of, gather, "all_gather") || !pl_read_is(&of->own->read, kept, "kept")) continue;
    if (!feeds_product(of, gather, at)) continue;
    move(of, i, product);
    if (place_of(of, kept) > product) move(of, place_of(of, kept), product);
    break;
  }
  product = product_of(of, of->order[at]);
  move(of, at, product + 1);
}

void pl_kernel_order_beside(const pl_kernel_finding *own, int32_t *order, int32_t n) {
  ordering of = {.own = own, .order = order, .n = n};
  if (pl_ir_has_experts(own->read.f)) return;
  bool sums = own->framework->pipeline.overlaps_tensor_backward;
  for (int32_t i = 0; i < n; i++)
    if (is_of_tensor_group(&of, order[i], "reduce_scatter") ||
        (sums && is_of_tensor_group(&of, order[i], "all_reduce")))
      order_around(&of, i);
}
