/* See workloads/fuse/kernel_groups.h: sets of ops, and reading the function that they are of. */
#include "workloads/fuse/kernel_groups.h"

#include <string.h>

bool pl_kernel_finding_init(pl_kernel_finding *own, const pl_ir_module *module, int32_t function,
                            const pl_framework *framework, const pl_kernel_packs *packs, pl_arena *scratch) {
  const pl_ir_function *f = module->functions[function];
  *own = (pl_kernel_finding){.framework = framework,
                             .packs = packs,
                             .n_readers = PL_TAKE(scratch, int32_t, f->n_values + 1),
                             .reader = PL_TAKE(scratch, int32_t, f->n_values + 1),
                             .parent = PL_TAKE(scratch, int32_t, f->n_ops + 1)};
  if (!pl_reading_take(&own->read, &module->mesh, f, scratch) || scratch->failed) return false;
  for (int32_t i = 0; i < f->n_ops; i++) {
    own->parent[i] = i;
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      own->n_readers[f->ops[i].inputs[k]]++;
      own->reader[f->ops[i].inputs[k]] = i;
    }
  }
  for (int32_t i = 0; i < f->n_results; i++)
    own->n_readers[f->results[i]] += 2; /* nobody is the only one to read it */
  return true;
}

int32_t pl_kernel_group(const pl_kernel_finding *own, int32_t op) {
  while (own->parent[op] != op)
    op = own->parent[op];
  return op;
}

void pl_kernel_join(pl_kernel_finding *own, int32_t op, int32_t other) {
  if (op == PL_IR_NONE || other == PL_IR_NONE) return;
  int32_t a = pl_kernel_group(own, op), b = pl_kernel_group(own, other);
  own->parent[a > b ? a : b] = a > b ? b : a; /* a group is called by its first op */
}

/* ---- reading ---- */

int32_t pl_kernel_reader(const pl_kernel_finding *own, int32_t value) {
  return own->n_readers[value] == 1 ? own->reader[value] : PL_IR_NONE;
}

bool pl_kernel_is_product(const pl_kernel_finding *own, int32_t op) {
  return pl_read_is(&own->read, op, "product") || pl_read_is(&own->read, op, "convolution");
}

/* ---- views ---- */

static bool is_light(const pl_kernel_finding *own, int32_t op) {
  static const char *const rows[] = {"rename", "cut", "spread", "scale", "place", "constant", "cast", NULL};
  return pl_read_is_one_of(&own->read, op, rows);
}

static bool has_company(const pl_kernel_finding *own, int32_t op) {
  int32_t group = pl_kernel_group(own, op);
  for (int32_t i = group; i < own->read.f->n_ops; i++)
    if (i != op && pl_kernel_group(own, i) == group) return true;
  return false;
}

/* The one group that reads all of what `op` gives; PL_IR_NONE: several, or none. */
static int32_t readers_group(const pl_kernel_finding *own, int32_t op) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  int32_t value = is->first_output, found = PL_IR_NONE, n = 0;
  for (int32_t i = op + 1; i < own->read.f->n_ops && n < own->n_readers[value]; i++)
    for (int32_t k = 0; k < own->read.f->ops[i].n_inputs; k++) {
      if (own->read.f->ops[i].inputs[k] != value) continue;
      n++;
      if (found != PL_IR_NONE && pl_kernel_group(own, found) != pl_kernel_group(own, i)) return PL_IR_NONE;
      found = i;
    }
  return n == own->n_readers[value] ? found : PL_IR_NONE;
}

static bool computes(const pl_kernel_finding *own, int32_t op) {
  const pl_ir_row *row = pl_ir_row_at(pl_read_op(&own->read, op)->row);
  static const char *const free_rows[] = {"rename", "spread", "constant", "cut", NULL};
  return row->effect == PL_IR_PURE && !pl_read_is_one_of(&own->read, op, free_rows);
}

/* Part of what reads it: of a kernel of several ops; what multiplies by a number or places elements of any op that
 * computes. */
static void join_reader(pl_kernel_finding *own, int32_t op) {
  int32_t reader = readers_group(own, op);
  bool costs = pl_read_is(&own->read, op, "scale") || pl_read_is(&own->read, op, "place");
  if (reader == PL_IR_NONE || pl_read_is(&own->read, op, "cast")) return;
  if (has_company(own, reader) || (costs && computes(own, reader))) pl_kernel_join(own, op, reader);
}

/* Between two members of a group. */
static void join_between(pl_kernel_finding *own, int32_t op) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  int32_t reader = readers_group(own, op);
  for (int32_t k = 0; k < is->n_inputs && reader != PL_IR_NONE; k++) {
    int32_t maker = pl_read_made(&own->read, op, k);
    if (maker != PL_IR_NONE && pl_kernel_group(own, maker) == pl_kernel_group(own, reader))
      pl_kernel_join(own, op, reader);
  }
}

/* Tokens that are copied for their experts; scores or their gradients, which a profile scales by a kernel of its own.
 */
static bool stands_alone(const pl_kernel_finding *own, int32_t op) {
  if (pl_ir_is_dispatch(own->routing, own->read.f, pl_read_op(&own->read, op))) return true;
  if (own->framework->kernels.fuses_scale || !pl_read_is(&own->read, op, "scale")) return false;
  const pl_ir_type *type = pl_read_type(&own->read, pl_read_op(&own->read, op)->first_output);
  return pl_ir_type_find(type, pl_ir_name_of("s")) >= 0 && pl_ir_type_find(type, pl_ir_name_of("t")) >= 0;
}

void pl_kernel_views(pl_kernel_finding *own) {
  for (int32_t i = own->read.f->n_ops; i-- > 0;)
    if (is_light(own, i) && !stands_alone(own, i)) join_between(own, i);
  for (int32_t i = own->read.f->n_ops; i-- > 0;)
    if (is_light(own, i) && !stands_alone(own, i)) join_reader(own, i);
}

void pl_kernel_groups_find(pl_kernel_finding *own) {
  pl_kernel_products(own);
  pl_kernel_gradients(own);
  pl_kernel_sweeps(own);
  pl_kernel_losses(own);
  pl_kernel_cores(own);
  pl_kernel_batch_norms(own);
  pl_kernel_views(own);
}
