/* See workloads/lower/block_program.h, pl_block_program_take: checks the shard, lays the block's function out, lowers
 * it to the tape, derives the rest and copies the result to the arena.
 *
 * Some 20 us a block, nearly all of it the function. The strategies of a sweep cut blocks in few ways, so what is made
 * once is kept (workloads/lower/block_cache.h, one for each thread); functions by themselves are not.
 */
#include <math.h>

#include "core/cluster/cluster.h"
#include "workloads/lower/block_program.h"
#include "workloads/lower/launched_block.h"

/* Unlike numbers of heads per rank: with a key and value for each. */
static bool spreads_heads(const pl_model *model, const pl_block_shard *shard) {
  return pl_framework_or_ideal(shard->framework)->kernels.uneven_heads &&
         model->attention.n_kv_heads == model->attention.n_heads && model->attention.n_heads >= shard->tmp;
}

static pl_code check_network(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  if (shard->tmp == 1 || model->unlike.parts == NULL || model->unlike.parts[0].chain == NULL) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: convolutions are not split over tensor ranks; use tmp=1", model->name);
}

static pl_code check_heads(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  int32_t tmp = shard->tmp;
  if (!pl_model_has_blocks(model)) return PL_OK; /* what does not divide is not cut */
  PL_TRY(check_network(model, shard, error));
  bool spreads = spreads_heads(model, shard);
  if (model->attention.n_heads % tmp != 0 && !spreads)
    return pl_fail(error, PL_BAD_INPUT, "%s: tmp=%d does not divide the %lld attention heads", model->name, tmp,
                   (long long)model->attention.n_heads);
  if (model->attention.n_kv_heads % tmp != 0 && tmp % model->attention.n_kv_heads != 0 && !spreads)
    return pl_fail(error, PL_BAD_INPUT, "%s: tmp=%d neither divides the %lld key-value heads nor is a multiple of them",
                   model->name, tmp, (long long)model->attention.n_kv_heads);
  int64_t width;
  if (!pl_model_splits_mlp(model, tmp, &width))
    return pl_fail(error, PL_BAD_INPUT, "%s: tmp=%d does not divide the MLP width %lld", model->name, tmp,
                   (long long)width);
  return PL_OK;
}

static pl_code check_context(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  if (shard->cp <= 1) return PL_OK;
  int64_t chunks = (int64_t)shard->cp * (model->attention.causal ? 2 : 1);
  if (shard->seq % chunks != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: cp=%d cuts a sequence into %lld chunks, which do not divide its length %lld", model->name,
                   shard->cp, (long long)chunks, (long long)shard->seq);
  if (!shard->flash)
    return pl_fail(error, PL_BAD_INPUT, "%s: cp=%d needs fused attention (--attention flash)", model->name, shard->cp);
  return PL_OK;
}

static pl_code check_experts(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  if (shard->ep > 1 && model->moe.n_experts == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: ep=%d, but the model has no experts; use ep=1", model->name, shard->ep);
  if (shard->ep > 1 && model->moe.n_experts % shard->ep != 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: ep=%d does not divide the %lld experts", model->name, shard->ep,
                   (long long)model->moe.n_experts);
  if (shard->etp > 1 &&
      (shard->etp != shard->tmp || model->moe.n_experts == 0 || model->moe.expert_ffn % shard->etp != 0))
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: etp=%d: experts of width %lld are cut over all tmp=%d tensor ranks or none", model->name,
                   shard->etp, (long long)model->moe.expert_ffn, shard->tmp);
  if (model->moe.n_experts > 0 && shard->tmp > 1 && !shard->sp)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: experts with tmp=%d need sequence parallelism (sp=1): without it the ranks of a tensor group "
                   "would send the same tokens",
                   model->name, shard->tmp);
  double tokens = (double)shard->mbs * (double)shard->seq * (double)model->moe.topk * model->moe.capacity_factor *
                  pl_model_expert_load(model, shard->ep);
  if (model->moe.n_experts > 0 && tokens > 0x1p53)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: mbs=%d, seq=%lld: %.3g tokens for the experts are more than can be counted", model->name,
                   shard->mbs, (long long)shard->seq, tokens);
  return PL_OK;
}

pl_code pl_block_check_shard(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  enum { TMP_MAX = 1 << 16, MBS_MAX = 1 << 16 };
  const int64_t seq_max = INT64_C(1) << 24;
  if (shard->cp < 0 || shard->cp > TMP_MAX || shard->ep < 0 || shard->ep > TMP_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: cp=%d, ep=%d: out of range (1 to %d)", model->name, shard->cp, shard->ep,
                   TMP_MAX);
  if (shard->tmp < 1 || shard->tmp > TMP_MAX || shard->mbs < 1 || shard->mbs > MBS_MAX || shard->seq < 1 ||
      shard->seq > seq_max)
    return pl_fail(error, PL_BAD_INPUT, "%s: tmp=%d, mbs=%d, seq=%lld: out of range (1 to %d, %d, %lld)", model->name,
                   shard->tmp, shard->mbs, (long long)shard->seq, TMP_MAX, MBS_MAX, (long long)seq_max);
  PL_TRY(check_heads(model, shard, error));
  PL_TRY(check_experts(model, shard, error));
  PL_TRY(check_context(model, shard, error));
  int64_t seq = shard->cp > 1 ? shard->seq / shard->cp : shard->seq;
  if (shard->sp && seq % shard->tmp != 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: sequence parallelism with tmp=%d does not divide the sequence length %lld",
                   model->name, shard->tmp, (long long)seq);
  if (model->positions.learned_positions && shard->seq > model->positions.max_positions)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: sequence length %lld exceeds the model's %lld learned positions: use --seq %lld or less",
                   model->name, (long long)shard->seq, (long long)model->positions.max_positions,
                   (long long)model->positions.max_positions);
  if (shard->fp8 && pl_dtype_bytes(shard->dtype) != 2)
    return pl_fail(error, PL_BAD_INPUT, "%s: products in fp8 need everything else in 16 bits (fp16 or bf16), not %s",
                   model->name, pl_dtype_name(shard->dtype));
  if ((unsigned)shard->dtype >= PL_DTYPE_FP8)
    return pl_fail(error, PL_UNSUPPORTED, "%s: dtype %s is not supported for training; use fp32, tf32, fp16 or bf16",
                   model->name, (unsigned)shard->dtype < PL_DTYPE_COUNT ? pl_dtype_name(shard->dtype) : "(unknown)");
  return PL_OK;
}

static pl_op_list list_of(pl_arena *arena, const pl_op *ops, uint32_t n_ops) {
  pl_op_list list = {.ops = pl_arena_copy(arena, ops, n_ops * sizeof *ops, _Alignof(pl_op)), .n_ops = n_ops};
  for (uint32_t i = 0; i < n_ops; i++)
    list.n_overlaps += ops[i].overlap != PL_OVERLAP_NONE;
  return list;
}

/* A loss that takes some of the tokens at a time: of the logits' gradient there is as much, in the loss and in the
 * head.
 */
static void cut_logits_gradient(pl_tape *tape, pl_block_kind kind) {
  uint32_t gradient = kind == PL_BLOCK_LOSS   ? tape->input_gradient
                      : kind == PL_BLOCK_HEAD ? tape->output_gradient
                                              : PL_NONE;
  if (tape->framework->kernels.loss == PL_LOSS_CHUNKED && gradient != PL_NONE)
    tape->tensors[gradient].pieces = PL_LOSS_CHUNKS;
}

static pl_code take(const pl_model *model, pl_block_kind kind, const pl_block_shard *shard,
                    const pl_block_function *function, pl_arena *arena, pl_block_program *program, pl_error *error) {
  *program = (pl_block_program){.kind = kind};
  pl_tape tape;
  pl_tape_init(&tape, shard);
  bool experts = kind == PL_BLOCK_EXPERT_LAYER && model->moe.n_experts > 0;
  tape.layer = kind == PL_BLOCK_LAYER || experts || kind == PL_BLOCK_CHAIN; /* what recomputation acts on */
  /* Not in NVFP4: Transformer Engine's userbuffers send 16 bits or fp8 (UserBufferQuantizationMode at d0067d0da). */
  tape.overlaps =
      kind == PL_BLOCK_LAYER && shard->sp && shard->tmp > 1 && !shard->fp4 && tape.framework->pipeline.overlaps_tensor;
  tape.overlaps_split = kind == PL_BLOCK_LAYER && shard->tmp > 1 && tape.framework->pipeline.overlaps_tensor_backward;
  PL_TRY(pl_launch_block(function, &tape, error));
  cut_logits_gradient(&tape, kind);

  pl_block_program result = {.kind = kind,
                             .block_class = (int32_t)kind,
                             .n_tensors = tape.n_tensors,
                             .input = tape.input,
                             .output = tape.output,
                             .output_gradient = tape.output_gradient,
                             .input_gradient = tape.input_gradient,
                             .model_flops = pl_block_model_flops(function, shard)};
  pl_block_memory(&tape, &result);
  if (shard->halves && !pl_block_halves(&tape, arena, &result)) return pl_fail_memory(error, "the program of a block");
  result.tensors = pl_arena_copy(arena, tape.tensors, tape.n_tensors * sizeof(pl_tensor), _Alignof(pl_tensor));
  result.forward = list_of(arena, tape.forward, tape.n_forward);
  result.backward = list_of(arena, tape.backward, tape.n_backward);
  if (result.tensors == NULL || result.forward.ops == NULL || result.backward.ops == NULL)
    return pl_fail_memory(error, "the program of a block");
  *program = result;
  return PL_OK;
}

static pl_code check_part_shard(const pl_model *model, const pl_block_shard *shard, pl_error *error) {
  PL_TRY(check_network(model, shard, error));
  if (shard->seq != model->positions.max_positions)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: its samples have %lld tokens in the first layer and other numbers further on, not %lld: leave "
                   "out --seq",
                   model->name, (long long)model->positions.max_positions, (long long)shard->seq);
  if (shard->sp || shard->cp > 1 || shard->ep > 1)
    return pl_fail(error, PL_BAD_INPUT, "%s: layers of unlike lengths know no %s", model->name,
                   shard->sp       ? "sequence parallelism; use sp=0"
                   : shard->cp > 1 ? "context parallelism; use cp=1"
                                   : "experts; use ep=1");
  return PL_OK;
}

/* The shard of one class: a model of unlike blocks has sequences of its own length. */
static pl_block_shard shard_of(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard) {
  pl_block_shard own = *shard;
  if (model->unlike.parts == NULL) return own;
  const pl_model_part *part = &model->unlike.parts[class_of_blocks];
  int64_t sequences = own.mbs * part->windows;
  own.mbs = sequences < INT32_MAX ? (int32_t)sequences : INT32_MAX;
  own.seq = part->rows;
  return own;
}

pl_code pl_block_check_class(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                             pl_error *error) {
  const pl_block_shard own = shard_of(model, class_of_blocks, shard);
  if (model->unlike.parts != NULL) PL_TRY(check_part_shard(model, shard, error));
  return pl_block_check_shard(model->unlike.parts != NULL ? model->unlike.parts[class_of_blocks].model : model, &own,
                              error);
}

/* Passes of all blocks together have bytes that integers count: what memory is found in. */
static pl_code check_bytes(const pl_model *model, const pl_block_shard *shard, const pl_block_program *program,
                           pl_error *error) {
  const double peaks[] = {program->saved_bytes, program->forward_peak_bytes, program->backward_peak_bytes,
                          program->inputs_peak_bytes, program->weights_peak_bytes};
  double most = 0;
  for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
    most = fmax(most, peaks[i]);
  if (most <= 0x1p61 / pl_model_n_blocks(model)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: mbs=%d, seq=%lld: a pass of a block takes %.3g bytes%s, more than can be counted; "
                 "use fewer sequences or shorter ones",
                 model->name, shard->mbs, (long long)shard->seq, most,
                 shard->flash ? "" : " with its whole attention matrix");
}

pl_code pl_block_program_make(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                              const pl_block_function *function, pl_arena *arena, pl_block_program *program,
                              pl_error *error) {
  const pl_model_part *part = model->unlike.parts != NULL ? &model->unlike.parts[class_of_blocks] : NULL;
  const pl_block_shard own = shard_of(model, class_of_blocks, shard);
  *program = (pl_block_program){0};
  PL_TRY(pl_block_check_class(model, class_of_blocks, shard, error));
  PL_TRY(take(part != NULL ? part->model : model, pl_model_class_kind(model, class_of_blocks), &own, function, arena,
              program, error));
  program->block_class = class_of_blocks;
  return check_bytes(model, shard, program, error);
}

pl_code pl_block_class_program_take(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                                    pl_arena *arena, pl_block_program *program, pl_error *error) {
  *program = (pl_block_program){.kind = pl_model_class_kind(model, class_of_blocks)};
  PL_TRY(pl_block_check_class(model, class_of_blocks, shard, error));
  pl_arena scratch;
  pl_block_function function;
  pl_arena_init(&scratch, 1 << 16);
  pl_code code = pl_block_function_take(model, class_of_blocks, shard, &scratch, &function, error);
  if (code == PL_OK) code = pl_block_program_make(model, class_of_blocks, shard, &function, arena, program, error);
  pl_arena_release(&scratch);
  return code;
}

pl_code pl_block_program_take(const pl_model *model, pl_block_kind kind, const pl_block_shard *shard, pl_arena *arena,
                              pl_block_program *program, pl_error *error) {
  pl_model plain = *model; /* of a model of unlike blocks: as if all were like its first layers */
  plain.unlike.parts = NULL;
  return pl_block_class_program_take(&plain, (int32_t)kind, shard, arena, program, error);
}

pl_code pl_block_programs_take(const pl_model *model, const pl_block_shard *shard, pl_arena *arena,
                               const pl_block_program **blocks, pl_error *error) {
  pl_block_program *made = PL_TAKE(arena, pl_block_program, pl_model_n_classes(model));
  if (made == NULL) return pl_fail_memory(error, "the programs of the blocks");
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    PL_TRY(pl_block_class_program_take(model, c, shard, arena, &made[c], error));
  *blocks = made;
  return PL_OK;
}
