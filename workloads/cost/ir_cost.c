/* See workloads/cost/ir_cost.h. */
#include "workloads/cost/ir_cost.h"

#include <string.h>

#include "workloads/language/ir_product.h"
#include "workloads/language/ir_work.h"

static const pl_ir_type *type_of(const pl_ir_function *function, int32_t value) {
  return &function->values[value].type;
}

static pl_dtype dtype_of(const pl_ir_type *type) {
  return pl_ir_element_is_number((pl_ir_element)type->element) ? (pl_dtype)type->element : PL_DTYPE_FP32;
}

static pl_ir_type local(const pl_ir_mesh *mesh, const pl_ir_function *function, int32_t value) {
  return pl_ir_type_local(mesh, type_of(function, value));
}

static void as_product(const pl_ir_op *op, const pl_ir_type *a, const pl_ir_type *b, pl_op *kernel) {
  const pl_ir_product shape = pl_ir_product_of(op, a, b);
  kernel->kind = PL_OP_GEMM;
  kernel->batch = shape.batch;
  kernel->m = shape.m;
  kernel->n = shape.n;
  kernel->k = shape.k;
  /* A product without a sum, or of vectors, is no matrix product: it is as fast as memory. */
  if (kernel->k == 1 || (kernel->m == 1 && kernel->n == 1)) kernel->kind = PL_OP_ELEMENTWISE;
}

static void as_attention(const pl_ir_type *q, const pl_ir_type *k, const pl_ir_type *v, pl_op *kernel) {
  kernel->kind = PL_OP_ATTENTION;
  kernel->m = pl_ir_type_extent(q, "s");
  kernel->n = pl_ir_type_extent(k, "t");
  kernel->k = (pl_ir_type_extent(q, "d") + pl_ir_type_extent(v, "e")) / 2;
  kernel->batch = (int64_t)(pl_ir_type_elements(q) / (double)(kernel->m * pl_ir_type_extent(q, "d")));
}

static pl_op_kind kind_of(const pl_ir_row *row) {
  return row->launches == PL_IR_LAUNCHES_NORM      ? PL_OP_NORM
         : row->launches == PL_IR_LAUNCHES_SOFTMAX ? PL_OP_SOFTMAX
         : row->launches == PL_IR_LAUNCHES_LOOK_UP ? PL_OP_EMBEDDING
                                                   : PL_OP_ELEMENTWISE;
}

/* Dimensions that stand beside each other, in the order of their names, are one dimension seen otherwise. */
static bool is_view(const pl_ir_function *function, const pl_ir_op *op) {
  bool splits = pl_ir_op_is(op, "split");
  if (!splits && !pl_ir_op_is(op, "join")) return false;
  const pl_ir_type *apart = type_of(function, splits ? op->first_output : op->inputs[0]);
  const pl_ir_attribute *names = pl_ir_attribute_find(op, splits ? "to" : "from");
  for (int32_t i = 1; i < names->n_names; i++)
    if (pl_ir_type_find(apart, names->names[i]) != pl_ir_type_find(apart, names->names[0]) + i) return false;
  return true;
}

/* Gives another name, another view or what is there. */
static bool is_free(const pl_ir_function *function, const pl_ir_op *op) {
  if (is_view(function, op)) return true;
  const pl_ir_row *row = pl_ir_row_at(op->row);
  if (row->launches == PL_IR_LAUNCHES_NOTHING) return true;
  bool rings = pl_ir_row_is_ring(row);
  return row->effect == PL_IR_READS || row->effect == PL_IR_SENDS || row->effect == PL_IR_CALLS ||
         (row->effect == PL_IR_COLLECTIVE && !rings);
}

bool pl_ir_kernel(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op, pl_category category,
                  pl_op *kernel) {
  if (is_free(function, op)) return false;
  const pl_ir_row *row = pl_ir_row_at(op->row);
  pl_ir_type first = local(mesh, function, op->inputs[0]);
  pl_ir_type widest = op->n_outputs > 0 ? local(mesh, function, op->first_output) : first;
  *kernel = (pl_op){.name = row->name,
                    .kind = (uint8_t)kind_of(row),
                    .category = (uint8_t)category,
                    .dtype = (uint8_t)dtype_of(&first),
                    .batch = 1,
                    .flops = pl_ir_op_flops(mesh, function, op),
                    .bytes = pl_ir_op_bytes(mesh, function, op)};
  kernel->n = widest.rank > 0 ? widest.dims[widest.rank - 1].extent : 1;
  kernel->m = (int64_t)(pl_ir_type_elements(&widest) / (double)kernel->n);
  if (strcmp(row->name, "accumulate") == 0) kernel->bytes *= 3; /* read twice, written once */
  if (strcmp(row->name, "embedding") == 0)
    kernel->bytes = 2 * pl_ir_type_local_bytes(mesh, type_of(function, op->first_output)); /* rows, not the table */
  if (strcmp(row->name, "product") == 0) {
    pl_ir_type second = local(mesh, function, op->inputs[1]);
    as_product(op, &first, &second, kernel);
    kernel->dtype = (uint8_t)pl_ir_product_element(op, &first);
  }
  if (row->launches == PL_IR_LAUNCHES_ATTENTION) {
    pl_ir_type keys = local(mesh, function, op->inputs[1]), values = local(mesh, function, op->inputs[2]);
    as_attention(&first, &keys, &values, kernel);
  }
  return true;
}

double pl_ir_collective_bytes(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op) {
  bool gathers = pl_ir_op_is(op, "all_gather");
  return pl_ir_type_local_bytes(mesh, type_of(function, gathers ? op->first_output : op->inputs[0]));
}

/* A ring's pieces are attended to as if they were all. */
static const pl_program_kernel *measured(const pl_device_profile *profile, const char *row) {
  if (strncmp(row, "ring_", 5) == 0) row += 5;
  uint32_t low = 0, high = profile->n_programs;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = strcmp(profile->programs[middle].op, row);
    if (order == 0) return &profile->programs[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

bool pl_ir_op_time(const pl_device_profile *profile, const pl_ir_mesh *mesh, const pl_ir_function *function,
                   const pl_ir_op *op, pl_category category, pl_op *kernel, pl_op_time *time) {
  *kernel = (pl_op){0};
  bool computes = pl_ir_kernel(mesh, function, op, category, kernel);
  const pl_program_kernel *known = measured(profile, pl_ir_row_at(op->row)->name);
  if (known == NULL) {
    *time = computes ? pl_op_cost(profile, kernel) : (pl_op_time){.source = PL_COST_TABLE};
    return computes;
  }
  double flops = pl_ir_op_flops(mesh, function, op), bytes = pl_ir_op_bytes(mesh, function, op);
  double products_s = known->flops_rate > 0 ? flops / known->flops_rate : 0,
         traffic_s = known->bytes_rate > 0 ? bytes / known->bytes_rate : 0;
  *time = (pl_op_time){.time_s = known->overhead_s + products_s + traffic_s,
                       .source = PL_COST_ROOFLINE,
                       .bound = products_s > traffic_s ? PL_BOUND_COMPUTE : PL_BOUND_MEMORY};
  return true;
}
