/* Products with weights: those that are one (packs), and the biases that they add. See
 * workloads/fuse/kernel_groups.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_latent.h"
#include "workloads/language/ir_product.h"

/* ---- packs ---- */

int32_t pl_kernel_pack_of(const pl_kernel_packs *packs, const char *path) {
  for (int32_t i = 0; path != NULL && i < packs->n; i++)
    if (strcmp(packs->items[i].path, path) == 0) return packs->items[i].pack;
  return PL_IR_NONE;
}

static bool note(pl_kernel_packs *packs, const char *path, int32_t pack, pl_arena *scratch) {
  if (path == NULL || pl_kernel_pack_of(packs, path) != PL_IR_NONE) return true;
  void *items = pl_arena_grown(scratch, packs->items, (size_t)packs->n, 1, sizeof *packs->items, &packs->room);
  if (items == NULL) return false;
  packs->items = (pl_kernel_pack *)items;
  packs->items[packs->n++] = (pl_kernel_pack){path, pack};
  return true;
}

/* A product with a weight that an operand comes from, and the bias that was added to it on the way. */
typedef struct source {
  int32_t product;
  const char *weight, *bias;
} source;

/* The gate's projection is packed with that of what is scanned first. */
static bool is_scan(const pl_kernel_finding *own, int32_t op) {
  return pl_read_is(&own->read, op, "state_space_scan") || pl_read_is(&own->read, op, "delta_rule_scan");
}

static source source_of(const pl_kernel_finding *own, int32_t value) {
  pl_head_ops ops;
  if (!pl_read_heads(&own->read, value, &ops)) return (source){.product = PL_IR_NONE};
  return (source){.product = ops.product,
                  .weight = pl_read_weight(&own->read, ops.product),
                  .bias = ops.bias != PL_IR_NONE ? pl_read_weight(&own->read, ops.bias) : NULL};
}

static bool pack(const pl_kernel_finding *own, pl_kernel_packs *packs, int32_t n, const source *sources,
                 pl_arena *scratch) {
  for (int32_t i = 0; i < n; i++) {
    if (sources[i].product == PL_IR_NONE) return true;
    if (pl_read_op(&own->read, sources[i].product)->inputs[0] != pl_read_op(&own->read, sources[0].product)->inputs[0])
      return true;
  }
  bool fits = true;
  int32_t number = packs->n_packs;
  for (int32_t i = 0; i < n; i++) /* that one of them is in already */
    if (pl_kernel_pack_of(packs, sources[i].weight) != PL_IR_NONE) number = pl_kernel_pack_of(packs, sources[i].weight);
  for (int32_t i = 0; i < n; i++)
    fits = note(packs, sources[i].weight, number, scratch) && note(packs, sources[i].bias, number + 1, scratch) && fits;
  if (number == packs->n_packs) packs->n_packs += 2;
  return fits;
}

static bool pack_scan(const pl_kernel_finding *own, pl_kernel_packs *packs, int32_t op, pl_arena *scratch) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  bool state_space = pl_read_is(&own->read, op, "state_space_scan");
  const source of[] = {source_of(own, is->inputs[0]), source_of(own, is->inputs[state_space ? 3 : 1]),
                       source_of(own, is->inputs[state_space ? 4 : 2]), source_of(own, is->inputs[1])};
  return pack(own, packs, state_space ? 4 : 3, of, scratch);
}

static source source_at(const pl_kernel_finding *own, int32_t product) {
  return (source){.product = product, .weight = pl_read_weight(&own->read, product)};
}

/* Compressed keys and values are one product with the rotated share, expanded ones another. */
static bool pack_latent(const pl_kernel_finding *own, pl_kernel_packs *packs, const int32_t operands[3],
                        pl_arena *scratch) {
  pl_ir_latent of;
  if (!pl_ir_latent_find(own->read.f, operands, &of)) return true;
  const source low[] = {source_at(own, of.kv_down), source_at(own, of.k_rotary)},
               heads[] = {source_at(own, of.k), source_at(own, of.v)};
  return pack(own, packs, 2, low, scratch) && pack(own, packs, 2, heads, scratch);
}

static bool pack_op(const pl_kernel_finding *own, pl_kernel_packs *packs, int32_t op, pl_arena *scratch) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  int32_t operands[3];
  if (pl_ir_core_operands(own->read.f, op, operands)) {
    const source heads[] = {source_of(own, operands[0]), source_of(own, operands[1]), source_of(own, operands[2])};
    return pack(own, packs, 3, heads, scratch) && pack_latent(own, packs, operands, scratch);
  }
  if (is_scan(own, op)) return pack_scan(own, packs, op, scratch);
  int32_t gate = pl_read_gate(&own->read, op);
  if (gate < 0) return true;
  const source halves[] = {source_of(own, is->inputs[gate]), source_of(own, is->inputs[1 - gate])};
  return pack(own, packs, 2, halves, scratch);
}

bool pl_kernel_packs_find(const pl_ir_module *module, const pl_framework *framework, pl_arena *scratch,
                          pl_kernel_packs *packs) {
  *packs = (pl_kernel_packs){0};
  for (int32_t f = 0; f < module->n_functions; f++) {
    pl_kernel_finding own;
    if (!pl_kernel_finding_init(&own, module, f, framework, packs, scratch)) return false;
    for (int32_t i = 0; i < own.read.f->n_ops; i++)
      if (!pack_op(&own, packs, i, scratch)) return false;
  }
  return true;
}

/* ---- products of a pack ---- */

bool pl_kernel_same_type(const pl_kernel_finding *own, int32_t a, int32_t b) {
  return strcmp(pl_ir_text_of(pl_read_op(&own->read, a), PL_IR_PRODUCT_NARROW),
                pl_ir_text_of(pl_read_op(&own->read, b), PL_IR_PRODUCT_NARROW)) == 0;
}

/* The same input times the weights of a pack, forward or made again. */
static void join_same_input(pl_kernel_finding *own, int32_t op) {
  int32_t own_pack = pl_kernel_pack_of(own->packs, pl_read_weight(&own->read, op));
  for (int32_t i = op + 1; own_pack != PL_IR_NONE && i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "product") &&
        pl_read_op(&own->read, i)->inputs[0] == pl_read_op(&own->read, op)->inputs[0] &&
        pl_kernel_pack_of(own->packs, pl_read_weight(&own->read, i)) == own_pack && pl_kernel_same_type(own, op, i)) {
      pl_kernel_join(own, op, i);
      return; /* which joins the next */
    }
}

/* One number for a pack and the type that a product of it is in; PL_IR_NONE: of no pack. */
static int32_t typed_pack(const pl_kernel_finding *own, int32_t product) {
  int32_t pack = pl_kernel_pack_of(own->packs, pl_read_weight(&own->read, product));
  pl_ir_element narrow = PL_IR_ELEMENT_COUNT;
  (void)pl_ir_element_of(pl_ir_text_of(pl_read_op(&own->read, product), PL_IR_PRODUCT_NARROW), &narrow);
  return pack != PL_IR_NONE ? pack * (PL_IR_ELEMENT_COUNT + 1) + (int32_t)narrow : PL_IR_NONE;
}

/* The pack, with a type, whose products an addition's operand is made of, one or a sum of several that nobody else
 * reads. */
static int32_t summed_pack(const pl_kernel_finding *own, int32_t value) {
  int32_t op = pl_read_maker(&own->read, value);
  if (own->n_readers[value] != 1) return PL_IR_NONE;
  if (pl_read_is(&own->read, op, "product")) return typed_pack(own, op);
  if (!pl_read_is(&own->read, op, "add")) return PL_IR_NONE;
  int32_t left = summed_pack(own, pl_read_op(&own->read, op)->inputs[0]);
  return left != PL_IR_NONE && left == summed_pack(own, pl_read_op(&own->read, op)->inputs[1]) ? left : PL_IR_NONE;
}

/* A product of the pack that an addition has for an operand and that nobody else reads; PL_IR_NONE: none. */
static int32_t term_of(const pl_kernel_finding *own, int32_t add, int32_t pack) {
  for (int32_t i = 0; i < 2; i++) {
    int32_t op = pl_read_made(&own->read, add, i);
    if (pl_read_is(&own->read, op, "product") && own->n_readers[pl_read_op(&own->read, add)->inputs[i]] == 1 &&
        typed_pack(own, op) == pack)
      return op;
  }
  return PL_IR_NONE;
}

/* (((dy + a) + b) + c: what else is added to the products' sum. */
static void join_chain(pl_kernel_finding *own, int32_t op) {
  for (int32_t i = 0; i < 2; i++) {
    int32_t term = pl_read_made(&own->read, op, i), before = pl_read_made(&own->read, op, 1 - i);
    if (!pl_read_is(&own->read, term, "product") || !pl_read_is(&own->read, before, "add")) continue;
    int32_t pack = typed_pack(own, term);
    int32_t other = pack != PL_IR_NONE ? term_of(own, before, pack) : PL_IR_NONE;
    if (other == PL_IR_NONE || term_of(own, op, pack) != term || pl_kernel_next(own, before) != op) continue;
    pl_kernel_join(own, op, term);
    pl_kernel_join(own, op, before);
    pl_kernel_join(own, before, other);
  }
}

/* Terms of one sum: the gradient of what all products of a pack read. */
static void join_sum(pl_kernel_finding *own, int32_t op) {
  const pl_ir_op *is = pl_read_op(&own->read, op);
  int32_t left = summed_pack(own, is->inputs[0]);
  if (left == PL_IR_NONE || left != summed_pack(own, is->inputs[1])) {
    join_chain(own, op);
    return;
  }
  pl_kernel_join(own, op, pl_read_made(&own->read, op, 0));
  pl_kernel_join(own, op, pl_read_made(&own->read, op, 1));
}

/* ---- biases ---- */

/* What is added to the residual stream in the end is added by the addition's kernel. Without `fused_bias` an activation
 * that is one kernel still adds what is before it, and what nothing adds behind it is a kernel of its own. */
static void join_bias(pl_kernel_finding *own, int32_t op) {
  int32_t product = pl_read_made(&own->read, op, 0);
  const pl_ir_op *is = pl_read_op(&own->read, op);
  if (!pl_kernel_is_product(own, product) || pl_read_user(&own->read, is->inputs[0]) != op) return;
  if (pl_read_is_partial(&own->read, is->inputs[0]) || pl_read_is_before_residual(&own->read, op)) return;
  int32_t user = own->read.user[is->first_output]; /* which may be kept besides, and read by what is in steps */
  if (pl_read_is_bias_in_steps(&own->read, op, own->framework)) return;
  bool activated = pl_read_is_activation(&own->read, user);
  if (!own->framework->kernels.fuses_activation && activated) return;
  if (!own->framework->kernels.fuses_bias && !activated) return;
  pl_kernel_join(own, op, product);
}

void pl_kernel_products(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    if (pl_read_is(&own->read, i, "product"))
      join_same_input(own, i);
    else if (pl_read_is_bias(&own->read, i))
      join_bias(own, i);
    else if (pl_read_is(&own->read, i, "add"))
      join_sum(own, i);
  }
}
