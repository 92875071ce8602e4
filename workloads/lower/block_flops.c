/* See workloads/lower/block_program.h, pl_model_flops_per_sequence. */
#include "workloads/ir/chain.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_routing.h"
#include "workloads/lower/block_program.h"
#include "workloads/lower/launched_block.h"
#include "workloads/lower/lowering.h"

/* Values of the function: what attention reads as queries and as values. */
typedef struct attended {
  int32_t q, v;
} attended;

/* Attention, in one op or in steps, whose last is `op`. */
static bool find_attended(const pl_lowering *to, int32_t op, attended *found) {
  pl_ir_core steps;
  const pl_ir_op *own = pl_read_op(&to->read, op);
  if (pl_read_is(&to->read, op, "attention") || pl_read_is(&to->read, op, "ring_attention")) {
    *found = (attended){.q = own->inputs[0], .v = own->inputs[2]};
    return true;
  }
  if (!pl_ir_core_find(to->read.f, op, &steps)) return false;
  *found = (attended){.q = pl_read_op(&to->read, steps.scores)->inputs[0], .v = own->inputs[1]};
  return true;
}

double pl_block_model_flops(const pl_block_function *block, const pl_block_shard *shard) {
  pl_tape tape;
  pl_lowering to;
  double flops = 0;
  if (block->function == NULL) return 0;
  pl_tape_init(&tape, shard);
  to.tape = &tape;
  to.block = block;
  to.read = block->read;
  to.read.mesh = &block->module.mesh;
  to.read.f = block->function;
  const pl_ir_routing routing = pl_ir_routing_even(&block->module);
  for (int32_t i = 0; i < block->function->n_ops; i++) {
    attended core;
    if (pl_read_is(&to.read, i, "product") && pl_lower_is_param(&to, pl_read_op(&to.read, i)->inputs[1])) {
      const pl_linear linear = pl_lower_linear(&to, i);
      double share = pl_ir_routed_share(&routing, pl_read_type(&to.read, pl_read_op(&to.read, i)->inputs[0]));
      flops += 2 * linear.model_rows * linear.model_in * linear.model_out * share;
    } else if (find_attended(&to, i, &core)) {
      double seq = (double)tape.model_seq, heads = pl_lower_whole(&to, core.q, 'g') * pl_lower_whole(&to, core.q, 'r');
      double widths = (double)(pl_lower_extent(&to, core.q, 'd') + pl_lower_extent(&to, core.v, 'e'));
      flops += 2 * (double)tape.mbs * seq * seq * heads * widths;
    }
  }
  return flops;
}

/* Of one sequence, forward; 0: no memory. */
static double block_flops(const pl_model *model, const pl_block_shard *shard, pl_block_kind kind) {
  pl_tape tape;
  pl_lowering lowering;
  pl_block_function function;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 1 << 16);
  pl_tape_init(&tape, shard);
  if (pl_block_function_take(model, (int32_t)kind, shard, &arena, &function, &error) == PL_OK) {
    if (function.launched)
      tape.model_flops = pl_block_model_flops(&function, shard);
    else
      pl_lower_block(&function, &tape, &lowering);
  }
  pl_arena_release(&arena);
  return tape.model_flops;
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
