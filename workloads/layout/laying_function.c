/* See workloads/layout/laying.h: a whole function, op by op, and what functions must agree on. */
#include <string.h>

#include "workloads/language/ir_again.h"
#include "workloads/layout/laying.h"

static bool is_row(const pl_ir_op *op, const char *name) {
  return pl_ir_op_is(op, name);
}

static bool is_late(const pl_ir_op *op) {
  return is_row(op, "keep");
}

/* What is kept comes last, when it is known what was made of it. */
static pl_code lay_ops(pl_laying *part, pl_error *error) {
  for (int late = 0; late < 2; late++)
    for (int32_t i = 0; i < part->from->n_ops; i++)
      if (is_late(&part->from->ops[i]) == (late == 1)) {
        part->lays_again = part->again[i];
        PL_TRY(pl_laying_op(part, &part->from->ops[i], error));
      }
  part->lays_again = false;
  return PL_OK;
}

/* ---- functions ---- */

static const pl_agreed *find_agreed(pl_partitioning *own, const char *name, uint64_t hash) {
  uint32_t probe = 0;
  for (const pl_agreed *known; (known = (const pl_agreed *)pl_hash_index_find(&own->agreed, hash, &probe)) != NULL;)
    if (strcmp(known->name, name) == 0) return known;
  return NULL;
}

bool pl_layout_is_agreed(pl_partitioning *own, const char *name) {
  return find_agreed(own, name, pl_hash_characters(0, name, strlen(name))) != NULL;
}

bool pl_layout_agree(pl_partitioning *own, const char *name, pl_ir_type *type, bool *host) {
  uint64_t hash = pl_hash_characters(0, name, strlen(name));
  const pl_agreed *known = find_agreed(own, name, hash);
  if (known != NULL) {
    *type = known->type;
    if (host != NULL) *host = known->host;
    return true;
  }
  pl_agreed *made = PL_TAKE(own->scratch, pl_agreed, 1);
  if (made == NULL) return false;
  *made = (pl_agreed){.name = name, .type = *type, .host = host != NULL && *host};
  return pl_hash_index_put(&own->agreed, hash, made, own->scratch);
}

pl_code pl_laying_init(pl_laying *part, pl_partitioning *own, const pl_ir_function *from, pl_ir_function *to,
                       pl_error *error) {
  const char **fed = PL_TAKE(own->scratch, const char *, from->n_values + 1);
  const pl_ir_op **stored = PL_TAKE(own->scratch, const pl_ir_op *, from->n_values + 1);
  *part = (pl_laying){.own = own, .from = from, .to = to, .fed = fed, .stored = stored};
  part->handing = own->leaves != NULL ? own->leaves->of_function(own->leaves->context, from) : own->rules;
  part->rules = part->handing;
  part->variants = PL_TAKE(own->scratch, pl_variants, from->n_values + 1);
  part->again = pl_ir_again_take_if_derived(from, own->scratch);
  if (fed == NULL || stored == NULL || part->variants == NULL || part->again == NULL || to == NULL)
    return pl_fail_memory(error, "the distributed program");
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    if (is_row(op, "accumulate")) fed[op->inputs[0]] = op->path;
    if (is_row(op, "store")) stored[op->inputs[0]] = op;
    part->update = part->update || is_row(op, "gradient");
  }
  return PL_OK;
}

pl_code pl_partition_function(pl_partitioning *own, int32_t function, int32_t *made, pl_error *error) {
  *made = own->made[function];
  if (*made != PL_IR_NONE) return PL_OK;
  const pl_ir_function *from = own->from->functions[function];
  pl_laying part;
  /* Callees first: they are added while this one is written, so it is added when it is whole. */
  pl_ir_function *to = PL_TAKE(own->to->arena, pl_ir_function, 1);
  if (to != NULL) to->name = pl_arena_strdup(own->to->arena, from->name);
  if (to != NULL) /* a quarter more for what brings values to other layouts */
    pl_ir_function_expect(own->to, to, from->n_ops + from->n_ops / 4, from->n_values + from->n_values / 4);
  PL_TRY(pl_laying_init(&part, own, from, to, error));
  for (int32_t i = 0; i < from->n_arguments; i++) {
    pl_ir_type type = from->values[i].type;
    pl_layout_handed(part.handing, &type);
    pl_laying_set(&part, i, pl_ir_argument(own->to, to, from->values[i].name, &type));
  }
  PL_TRY(lay_ops(&part, error));
  int32_t results[PL_IR_OPERANDS_MAX];
  PL_ASSERT(from->n_results <= PL_IR_OPERANDS_MAX);
  for (int32_t i = 0; i < from->n_results; i++)
    PL_TRY(pl_laying_handed(&part, from->results[i], own->hands_sums != NULL && own->hands_sums[function], &results[i],
                            error));
  pl_ir_results_set(own->to, to, from->n_results, results);
  own->made[function] = *made = pl_ir_function_append(own->to, to);
  return *made != PL_IR_NONE ? PL_OK : pl_fail_memory(error, "the distributed program");
}
