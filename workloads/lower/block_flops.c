/* See workloads/lower/block_program.h, pl_model_flops_per_sequence. */
#include "workloads/ir/chain.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_routing.h"
#include "workloads/language/ir_work.h"
#include "workloads/lower/block_program.h"
#include "workloads/lower/launched_block.h"

static const pl_ir_type *type_of(const pl_block_function *block, int32_t value) {
  return &block->function->values[value].type;
}

static const pl_ir_op *op_of(const pl_block_function *block, int32_t op) {
  return &block->function->ops[op];
}

/* Of the whole model, unpadded; 1: the value has no such dimension. */
static double whole(const pl_block_function *block, int32_t value, char dim) {
  const char name[] = {dim, '\0'};
  int32_t at = pl_ir_type_find(type_of(block, value), pl_ir_name_of(name));
  if (at < 0) return 1;
  int64_t known = block->whole[dim - 'a'];
  return (double)(known != 0 ? known : type_of(block, value)->dims[at].extent);
}

/* ---- products with weights ---- */

static bool is_with_weight(const pl_block_function *block, const pl_ir_op *op) {
  int32_t maker = pl_ir_op_is(op, "product") ? block->function->values[op->inputs[1]].op : PL_IR_NONE;
  return maker != PL_IR_NONE && pl_ir_op_is(op_of(block, maker), "param");
}

/* Rows of a microbatch times the elements of the weight. */
static double product_flops(const pl_block_function *block, const pl_ir_op *op, double mbs) {
  int32_t made = op->first_output, weight = op->inputs[1];
  double in = 1, out = 1, rows = 1;
  for (int32_t i = 0; i < type_of(block, weight)->rank; i++) {
    pl_ir_name name = type_of(block, weight)->dims[i].name;
    *(pl_ir_op_has_name(op, "over", name) ? &in : &out) *= whole(block, weight, name.text[0]);
  }
  for (int32_t i = 0; i < type_of(block, made)->rank; i++) {
    pl_ir_name name = type_of(block, made)->dims[i].name;
    if (pl_ir_type_find(type_of(block, weight), name) < 0)
      rows *= name.text[0] == 'b' ? mbs : whole(block, made, name.text[0]);
  }
  return 2 * rows * in * out;
}

/* ---- attention ---- */

/* Values of the function: what attention reads as queries and as values. */
typedef struct attended {
  int32_t q, v;
} attended;

/* Attention, in one op or in steps, whose last is `op`. */
static bool find_attended(const pl_block_function *block, int32_t op, attended *found) {
  pl_ir_core steps;
  const pl_ir_op *own = op_of(block, op);
  if (pl_ir_op_is(own, "attention") || pl_ir_op_is(own, "ring_attention")) {
    *found = (attended){.q = own->inputs[0], .v = own->inputs[2]};
    return true;
  }
  if (!pl_ir_core_find(block->function, op, &steps)) return false;
  *found = (attended){.q = op_of(block, steps.scores)->inputs[0], .v = own->inputs[1]};
  return true;
}

/* On this rank: widths of heads are cut over none. */
static double width_of(const pl_block_function *block, int32_t value, const char *dim) {
  const pl_ir_type *type = type_of(block, value);
  int32_t at = pl_ir_type_find(type, pl_ir_name_of(dim));
  return at < 0 ? 1 : (double)pl_ir_type_local_extent(&block->module.mesh, type, at);
}

static double attention_flops(const pl_block_function *block, const attended *core, const pl_block_shard *shard) {
  double seq = (double)shard->seq, heads = whole(block, core->q, 'g') * whole(block, core->q, 'r');
  return 2 * (double)shard->mbs * seq * seq * heads * (width_of(block, core->q, "d") + width_of(block, core->v, "e"));
}

double pl_block_model_flops(const pl_block_function *block, const pl_block_shard *shard) {
  double flops = 0;
  if (block->function == NULL) return 0;
  const pl_ir_routing routing = pl_ir_routing_even(&block->module);
  for (int32_t i = 0; i < block->function->n_ops; i++) {
    const pl_ir_op *op = op_of(block, i);
    attended core;
    if (is_with_weight(block, op))
      flops +=
          product_flops(block, op, (double)shard->mbs) * pl_ir_routed_share(&routing, type_of(block, op->inputs[0]));
    else if (pl_ir_op_is(op, "convolution")) /* of one picture here, on one rank */
      flops += (double)shard->mbs * pl_ir_op_flops(&block->module.mesh, block->function, op);
    else if (find_attended(block, i, &core))
      flops += attention_flops(block, &core, shard);
  }
  return flops;
}

/* Of one sequence, forward; 0: no memory. */
static double block_flops(const pl_model *model, const pl_block_shard *shard, pl_block_kind kind) {
  pl_block_function function;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  double flops = 0;
  pl_arena_init(&arena, 1 << 16);
  if (pl_block_function_take(model, (int32_t)kind, shard, &arena, &function, &error) == PL_OK)
    flops = pl_block_model_flops(&function, shard);
  pl_arena_release(&arena);
  return flops;
}

static double part_flops(const pl_model_part *part) {
  const pl_block_shard shard = {
      .tmp = 1, .mbs = (int32_t)part->windows, .seq = part->rows, .dtype = PL_DTYPE_FP16, .flash = true};
  if (part->kind == PL_BLOCK_LAYER) return block_flops(part->model, &shard, PL_BLOCK_LAYER);
  if (part->kind == PL_BLOCK_CHAIN) return pl_chain_flops(part->chain);
  bool is_linear = part->kind == PL_BLOCK_LATENT || part->kind == PL_BLOCK_PIXELS || part->kind == PL_BLOCK_DENSE_OUT ||
                   part->kind == PL_BLOCK_DENSE_IN;
  return is_linear ? 2 * (double)part->rows * (double)part->model->width.hidden * (double)part->out_width : 0;
}

double pl_model_flops_per_sequence(const pl_model *model, int64_t seq) {
  if (model->unlike.parts != NULL) {
    double forward = 0;
    for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
      forward += part_flops(&model->unlike.parts[model->unlike.part_of[block]]);
    return 3 * forward;
  }
  const pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = seq, .dtype = PL_DTYPE_FP16, .flash = true};
  const pl_block_kind kinds[] = {PL_BLOCK_LAYER, PL_BLOCK_EXPERT_LAYER, PL_BLOCK_HEAD};
  double forward = 0;
  for (int i = 0; i < 3; i++) {
    int32_t count = pl_model_count_blocks(model, kinds[i]);
    if (count > 0) forward += count * block_flops(model, &shard, kinds[i]);
  }
  return 3 * forward;
}

/* ---- of a narrow type ---- */

double pl_model_narrow_share(const pl_model *model, pl_dtype dtype, bool fp4, int64_t seq) {
  const pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = seq, .dtype = dtype, .flash = true, .fp8 = true, .fp4 = fp4};
  double all = 0, narrow = 0;
  pl_model plain = *model; /* FLOPs of the model are those of tokens, not of experts' padding */
  plain.moe.capacity_factor = 1;
  plain.moe.expert_load = 0;
  plain.moe.expert_loads = NULL;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 1 << 16);
  for (int32_t c = 0; c < pl_model_n_classes(model); c++) {
    pl_block_program program;
    double count = pl_model_count_class(model, c);
    if (count == 0 || pl_block_class_program_take(&plain, c, &shard, &arena, &program, &error) != PL_OK) continue;
    all += count * program.model_flops;
    for (uint32_t i = 0; i < program.forward.n_ops; i++) {
      const pl_op *op = &program.forward.ops[i];
      if (op->kind == PL_OP_GEMM && op->dtype == (fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8)) narrow += count * op->flops;
    }
  }
  pl_arena_release(&arena);
  return all > 0 ? narrow / all : 0;
}

double pl_mixed_peak_flops(const pl_device_profile *profile, pl_dtype dtype, bool fp4, double narrow_share) {
  double peak = profile->peak_flops[dtype], narrow = profile->peak_flops[fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8];
  if (!(narrow_share > 0)) return peak;
  return peak > 0 && narrow > 0 ? 1 / ((1 - narrow_share) / peak + narrow_share / narrow) : 0;
}
