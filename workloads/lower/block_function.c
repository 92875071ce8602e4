/* See workloads/lower/block_function.h. */
#include "workloads/lower/block_function.h"

#include <stdio.h>
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/derive/differentiate.h"
#include "workloads/derive/unfuse.h"
#include "workloads/import/program_build.h"
#include "workloads/layout/laying.h"
#include "workloads/lower/kernel_names.h"
#include "workloads/lower/launched_block.h"

/* ---- what the framework holds of the model ---- */

static int64_t multiple_of(int64_t n, int64_t of) {
  return (n + of - 1) / of * of;
}

/* Ranks with unlike numbers of heads wait for the one with the most. Training scripts that pick the masked tokens have
 * no tensor parallelism: under it all tokens are computed, as where a rank has no more of them. */
static pl_model held(const pl_model *model, const pl_block_shard *shard, pl_block_function *block) {
  pl_model own = *model;
  const pl_framework *framework = pl_framework_or_ideal(shard->framework);
  int64_t tokens = shard->seq / (shard->cp > 1 ? shard->cp : 1);
  if (shard->tmp > 1 || own.ends.predictions >= tokens) own.ends.predictions = 0;
  if (model->width.vocab > 0)
    own.width.vocab = multiple_of(model->width.vocab, framework->kernels.vocab_multiple * shard->tmp);
  block->whole['v' - 'a'] = model->width.vocab;
  if (model->attention.n_heads % shard->tmp != 0) {
    own.attention.n_heads = own.attention.n_kv_heads = multiple_of(model->attention.n_heads, shard->tmp);
    block->whole['g' - 'a'] = model->attention.n_kv_heads;
  }
  return own;
}

/* Layers of a plain MLP are split by outputs and by inputs in turn: what is between them stays cut. */
static void hand_mlp_on(pl_layout_rules *rules) {
  for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
    if (rules->on[axis].role == PL_AXIS_TENSOR && rules->on[axis].n_handed < PL_LAYOUT_DIMS_MAX)
      rules->on[axis].handed[rules->on[axis].n_handed++] = pl_ir_name_of("f");
}

static pl_layout_rules rules_of(const pl_model *model, const pl_block_shard *shard, pl_block_kind kind) {
  int32_t tmp = shard->tmp, cp = shard->cp > 1 ? shard->cp : 1, ep = shard->ep > 1 ? shard->ep : 1;
  int32_t sharers = pl_model_head_sharers(model, tmp);
  /* Logits are of whole sequences, and so is what ranks exchange of them. */
  pl_layout_rules rules = {
      .sequence = shard->sp && kind != PL_BLOCK_LOSS, .ring = cp > 1 && !shard->cp_gather, .cp = cp};
  pl_layout_axis(&rules, "ep", ep, PL_AXIS_DATA, true, false);
  pl_layout_axis(&rules, "cp", cp, PL_AXIS_CONTEXT, false, false);
  pl_layout_axis(&rules, "tp", tmp / sharers, PL_AXIS_TENSOR, false, false);
  pl_layout_axis(&rules, "tpr", sharers, PL_AXIS_TENSOR, false, false);
  rules.whole_experts = shard->etp <= 1;
  if (model->unlike.parts != NULL) hand_mlp_on(&rules);
  return rules;
}

/* ---- laying it out ---- */

static bool is_row(const pl_ir_op *op, const char *name) {
  return pl_ir_op_is(op, name);
}

static pl_code lay(const pl_ir_module *training, const pl_layout_rules *rules, int32_t forward, int32_t backward,
                   pl_arena *scratch, pl_block_function *block, pl_error *error) {
  pl_ir_module *laid = &block->module;
  pl_partitioning own = {.rules = rules, .from = training, .to = laid, .scratch = scratch};
  own.made = PL_TAKE(scratch, int32_t, training->n_functions);
  if (own.made == NULL) return pl_fail_memory(error, "the program of a block");
  for (int32_t i = 0; i < training->n_functions; i++)
    own.made[i] = PL_IR_NONE;
  int32_t made;
  PL_TRY(pl_partition_function(&own, forward, &made, error));
  block->function = laid->functions[made];
  if (backward == PL_IR_NONE) return PL_OK;
  PL_TRY(pl_partition_function(&own, backward, &made, error));
  block->backward = laid->functions[made];
  return PL_OK;
}

static pl_code differentiate(const pl_ir_module *whole, const pl_block_shard *shard, const pl_block_function *block,
                             pl_arena *scratch, pl_ir_module *training, int32_t *forward, int32_t *backward,
                             pl_error *error) {
  const pl_framework *framework = pl_framework_or_ideal(shard->framework);
  const bool layer =
      block->kind == PL_BLOCK_LAYER || block->kind == PL_BLOCK_EXPERT_LAYER || block->kind == PL_BLOCK_CHAIN;
  pl_differentiate_options options = pl_differentiate_defaults();
  const pl_recompute_choice choice = {.function = whole->functions[whole->n_functions - 1]->name,
                                      .recompute = (uint8_t)shard->recompute};
  options.whole = !framework->kernels.ends_recompute;
  options.attends_again = pl_framework_attends_again(framework);
  options.choices = &choice;
  options.n_choices = layer && shard->recompute != PL_RECOMPUTE_NONE;
  return pl_ir_differentiate_function(whole, whole->n_functions - 1, &options, scratch, training, forward, backward,
                                      error);
}

static pl_code make(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard, pl_arena *scratch,
                    pl_block_function *block, pl_arena *arena, pl_error *error) {
  pl_model own = held(model, shard, block);
  block->kind = pl_model_class_kind(model, class_of_blocks);
  const pl_layout_rules rules = rules_of(&own, shard, block->kind);
  int32_t ep = shard->ep > 1 ? shard->ep : 1;
  pl_model_program_options options = pl_model_program_defaults(ep, 1, shard->seq);
  options.element = (pl_ir_element)shard->dtype;
  if (shard->fp8) options.narrow = shard->fp4 ? PL_IR_F4 : PL_IR_F8;
  pl_ir_module whole, training;
  int32_t forward, backward;
  PL_TRY(pl_model_program_block(&own, class_of_blocks, &options, scratch, &whole, error));
  if (!shard->flash) PL_TRY(pl_ir_unfuse(&whole, error));
  pl_ir_module_init(&block->module, arena, model->name, PL_IR_DISTRIBUTED);
  block->module.mesh = rules.mesh;
  block->module.n_microbatches = 1;
  PL_TRY(differentiate(&whole, shard, block, scratch, &training, &forward, &backward, error));
  PL_TRY(lay(&training, &rules, forward, backward, scratch, block, error));
  block->window_period = model->attention.window_period;
  if (model->unlike.parts == NULL) {
    if (block->kind >= PL_BLOCK_LATENT) block->kind = PL_BLOCK_IDENTITY; /* which only models of parts have */
    return PL_OK;
  }
  block->chain = model->unlike.parts[class_of_blocks].chain;
  block->takes_data = block->chain != NULL && model->unlike.parts[class_of_blocks].first_block == 0;
  return PL_OK;
}

/* ---- names ---- */

/* The path of the parameter that an op reads, NULL: none. */
static const char *path_of(const pl_ir_function *function, const pl_ir_op *op) {
  for (int32_t i = 1; i < op->n_inputs; i++) {
    int32_t maker = function->values[op->inputs[i]].op;
    if (maker != PL_IR_NONE && is_row(&function->ops[maker], "param")) return function->ops[maker].path;
  }
  return NULL;
}

/* Length without what makes the names of values unique: 1 of "y.2.2". */
static size_t without_numbers(const char *name) {
  size_t length = strlen(name), at = length;
  for (; at > 0 && (name[at - 1] == '.' || (name[at - 1] >= '0' && name[at - 1] <= '9')); at--)
    if (name[at - 1] == '.') length = at - 1;
  return length;
}

/* Length without the last part: 5 of "norm1.scale". */
static size_t without_last(const char *path) {
  const char *last = strrchr(path, '.');
  return last != NULL ? (size_t)(last - path) : strlen(path);
}

/* The module whose product an activation is of: "mlp" of "mlp.gate.weight"; NULL: none. */
static const char *module_of(const pl_ir_function *function, const pl_ir_op *op, size_t *length) {
  if (!is_row(op, "gelu") && !is_row(op, "silu") && !is_row(op, "relu")) return NULL;
  int32_t maker = function->values[op->inputs[0]].op;
  if (maker != PL_IR_NONE && is_row(&function->ops[maker], "add"))
    maker = function->values[function->ops[maker].inputs[0]].op;
  const char *path = maker != PL_IR_NONE ? path_of(function, &function->ops[maker]) : NULL;
  if (path == NULL || strchr(path, '.') == strrchr(path, '.')) return NULL;
  *length = strcspn(path, ".");
  return path;
}

/* Of latent attention: queries are a product of their own, and a norm is of what they were compressed to. */
static const char *latent_path(const pl_ir_function *function, const char *path) {
  bool queries = strcmp(path, "attention.q.weight") == 0, norm = strcmp(path, "attention.q_norm.scale") == 0;
  for (int32_t i = 0; (queries || norm) && i < function->n_ops; i++)
    if (is_row(&function->ops[i], "param") && strcmp(function->ops[i].path, "attention.kv_down.weight") == 0)
      return queries ? "attention.queries.weight" : "attention.compressed_norm.scale";
  return path;
}

/* "norm1" of "norm1.scale", "y" of "y.2.2"; of a head that is tied to the embedding "pooler" of "head.pooler.weight";
 * of an activation "mlp.active". */
static const pl_kernel_names *names_of(const pl_ir_function *function, const pl_ir_op *op, pl_block_kind kind) {
  enum { STEM = 64 };
  char stem[STEM];
  const char *path = path_of(function, op), *name = op->n_outputs > 0 ? function->values[op->first_output].name : "";
  size_t length = 0;
  const char *module = kind != PL_BLOCK_HEAD ? module_of(function, op, &length) : NULL;
  if (module != NULL) {
    snprintf(stem, sizeof stem, "%.*s.active", (int)(length < STEM / 2 ? length : STEM / 2), module);
    return pl_kernel_names_of(kind, stem);
  }
  if (path != NULL && (strcmp(path, "weight") == 0 || strcmp(path, "embedding.table") == 0)) path = "logits.weight";
  if (path != NULL && kind == PL_BLOCK_HEAD && strncmp(path, "head.", 5) == 0) path += 5;
  if (path != NULL) path = latent_path(function, path);
  if (path == NULL) path = name;
  length = path == name ? without_numbers(name) : without_last(path);
  if (length >= sizeof stem) return NULL;
  memcpy(stem, path, length);
  stem[length] = '\0';
  return pl_kernel_names_of(kind, stem);
}

static pl_code name_ops(pl_block_function *block, pl_block_kind kind, pl_arena *arena, pl_error *error) {
  const pl_ir_function *function = block->function;
  PL_ASSERT(function != NULL);
  const pl_kernel_names **names = PL_TAKE(arena, const pl_kernel_names *, function->n_ops + 1);
  if (names == NULL) return pl_fail_memory(error, "the program of a block");
  for (int32_t i = 0; i < function->n_ops; i++)
    names[i] = names_of(function, &function->ops[i], kind);
  block->names = names;
  return PL_OK;
}

static pl_code take(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard, pl_arena *arena,
                    pl_block_function *block, pl_error *error) {
  pl_arena scratch;
  pl_arena_init(&scratch, 1 << 16);
  *block = (pl_block_function){0};
  pl_code code = make(model, class_of_blocks, shard, &scratch, block, arena, error);
  pl_arena_release(&scratch);
  PL_TRY(code);
  if (block->function != NULL) PL_TRY(pl_launch_kernels(shard, arena, block, error));
  return name_ops(block, pl_model_class_kind(model, class_of_blocks), arena, error);
}

pl_code pl_block_function_take(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                               pl_arena *arena, pl_block_function *block, pl_error *error) {
  if (model->unlike.parts == NULL || pl_model_class_kind(model, class_of_blocks) != PL_BLOCK_LAYER)
    return take(model, class_of_blocks, shard, arena, block, error);
  const pl_model_part *part = &model->unlike.parts[class_of_blocks]; /* a layer with widths of its own */
  pl_block_shard own = *shard;
  own.seq = part->rows;
  return take(part->model, PL_BLOCK_LAYER, &own, arena, block, error);
}
