/* See workloads/import/program_build.h. */
#include "workloads/import/program_build.h"

#include <math.h>
#include <string.h>

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"
#include "workloads/onnx/onnx_program.h"

pl_model_program_options pl_model_program_defaults(int64_t gbs, int32_t n_microbatches, int64_t seq) {
  return (pl_model_program_options){.gbs = gbs,
                                    .n_microbatches = n_microbatches,
                                    .batch = n_microbatches > 0 ? gbs / n_microbatches : 0,
                                    .seq = seq,
                                    .element = PL_IR_BF16,
                                    .dropout = true};
}

static pl_code check_job(const pl_model *model, const pl_model_program_options *options, pl_error *error) {
  int64_t most = options->batch * options->n_microbatches;
  if (options->n_microbatches < 1 || options->batch < 1 ||
      (options->fewer ? most < options->gbs : most != options->gbs))
    return pl_fail(error, PL_BAD_INPUT, "%d microbatches of %lld sequences are not the %lld sequences of an iteration",
                   options->n_microbatches, (long long)options->batch, (long long)options->gbs);
  if (options->seq < 1)
    return pl_fail(error, PL_BAD_INPUT, "%lld tokens a sequence: at least one is needed", (long long)options->seq);
  if (model->program.stack != NULL && model->program.stack->kind == PL_STACK_PATCHES) return PL_OK; /* has its own */
  if (model->unlike.parts == NULL && model->positions.learned_positions &&
      options->seq > model->positions.max_positions)
    return pl_fail(error, PL_BAD_INPUT, "%s: sequences of %lld tokens, but its table of positions has %lld rows",
                   model->name, (long long)options->seq, (long long)model->positions.max_positions);
  return PL_OK;
}

static int64_t tokens_of(const pl_program_writer *to) {
  const pl_stack *stack = to->model->program.stack;
  bool pictures = stack != NULL && stack->kind == PL_STACK_PATCHES;
  return pictures ? pl_stack_patches(stack) + 1 : to->options->seq;
}

/* Letters: program_write.h. */
static void set_extents(pl_program_writer *to) {
  const pl_model *model = to->model;
  const struct {
    char letter;
    int64_t extent;
  } all[] = {{'b', to->options->batch},
             {'s', tokens_of(to)},
             {'t', tokens_of(to)},
             {'h', model->width.hidden},
             {'g', model->attention.n_kv_heads},
             {'r', model->attention.n_kv_heads > 0 ? model->attention.n_heads / model->attention.n_kv_heads : 1},
             {'d', model->attention.head_size},
             {'e', model->attention.value_size},
             {'v', model->width.vocab},
             {'x', model->moe.n_experts},
             {'p', model->positions.max_positions + model->positions.position_offset},
             {'y', model->width.type_vocab},
             {'m', model->ends.predictions},
             {'j', model->width.hidden},
             {'o', 2},
             {'q', model->attention.q_rank},
             {'k', model->attention.kv_rank},
             {'a', model->attention.head_size - model->attention.rope_size},
             {'z', model->attention.rope_size}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    to->extent[all[i].letter - 'a'] = all[i].extent;
}

/* ---- layers ---- */

/* Gemma: some layers see a window, and every so many-th sees all. */
static pl_layer_kind kind_of(const pl_model *model, int64_t seq, int32_t layer) {
  bool window = model->attention.sliding_window > 0 && model->attention.sliding_window < seq;
  return (pl_layer_kind){
      .experts = pl_model_has_experts(model, layer),
      .window = window && (model->attention.window_period < 2 || (layer + 1) % model->attention.window_period != 0)};
}

static const char *name_of(const pl_model *model, pl_layer_kind kind) {
  if (kind.window && model->attention.window_period > 1) return kind.experts ? "window_expert_layer" : "window_layer";
  return kind.experts ? "expert_layer" : "layer";
}

static void write_layers(pl_program_writer *to) {
  const pl_model *model = to->model;
  for (int32_t layer = 0; layer < model->n_layers; layer++) {
    pl_layer_kind kind = kind_of(model, to->options->seq, layer);
    const char *name = name_of(model, kind);
    if (pl_ir_function_find(to->module, name) == PL_IR_NONE) pl_program_layer(to, name, kind);
  }
}

/* ---- @main ---- */

static void write_main(pl_program_writer *to) {
  const pl_model *model = to->model;
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "embedding", "embedding", PL_IR_NONE);
  for (int32_t layer = 0; layer < model->n_layers; layer++) {
    const char *instance = pl_arena_printf(to->module->arena, "h.%d", layer);
    x = pl_write_call(to, name_of(model, kind_of(model, to->options->seq, layer)), instance, x);
  }
  int32_t made = x;
  if (model->norms.final_norm) x = pl_write_call(to, "final_norm", "final_norm", x);
  x = pl_write_call(to, "head", model->ends.tied_embeddings ? "" : "head", x);
  pl_write_call(to, "loss", "loss", x);
  pl_program_call_predictions(to, name_of(model, kind_of(model, to->options->seq, model->n_layers - 1)), made);
}

static void write_transformer(pl_program_writer *to) {
  pl_program_embedding(to);
  write_layers(to);
  pl_program_final_norm(to);
  pl_program_head(to);
  pl_program_loss(to);
  pl_program_predictions(to);
  write_main(to);
}

static void write_class(pl_ir_module *module) {
  pl_ir_class *made = PL_TAKE(module->arena, pl_ir_class, 1);
  pl_ir_chunk *chunk = PL_TAKE(module->arena, pl_ir_chunk, 1);
  pl_ir_step *steps = PL_TAKE(module->arena, pl_ir_step, module->n_microbatches);
  if (made == NULL || chunk == NULL || steps == NULL) return;
  *chunk = (pl_ir_chunk){.forward = pl_ir_function_find(module, "main"), .backward = PL_IR_NONE, .weights = PL_IR_NONE};
  for (int32_t m = 0; m < module->n_microbatches; m++)
    steps[m] = (pl_ir_step){.kind = PL_IR_STEP_F, .microbatch = m};
  *made = (pl_ir_class){.name = "all",
                        .chunks = chunk,
                        .n_chunks = 1,
                        .steps = steps,
                        .n_steps = module->n_microbatches,
                        .update = PL_IR_NONE};
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    made->at[axis] = PL_IR_NONE;
  module->classes = made;
  module->n_classes = 1;
}

static pl_code build_onnx(const pl_model *model, const pl_model_program_options *options, pl_arena *arena,
                          pl_ir_module *module, pl_error *error) {
  const pl_onnx_job job = {.gbs = options->gbs,
                           .batch = options->batch,
                           .seq = options->seq,
                           .n_microbatches = options->n_microbatches,
                           .element = options->element};
  PL_TRY(pl_onnx_program_build(model->program.onnx, &job, arena, module, NULL, error));
  write_class(module);
  return arena->failed ? pl_fail_memory(error, "the program of a model") : PL_OK;
}

pl_code pl_model_program_build(const pl_model *model, const pl_model_program_options *options, pl_arena *arena,
                               pl_ir_module *module, pl_error *error) {
  PL_TRY(check_job(model, options, error));
  if (model->program.onnx != NULL) return build_onnx(model, options, arena, module, error);
  PL_TRY(pl_program_check_predictions(model, error));
  if (pl_model_has_blocks(model) && model->unlike.parts == NULL) PL_TRY(pl_program_check_layer(model, error));
  pl_ir_module_init(module, arena, model->name, PL_IR_MODEL);
  module->n_microbatches = options->n_microbatches;
  pl_program_writer to = {.module = module, .model = model, .options = options, .error = error};
  set_extents(&to);
  if (model->program.dlrm != NULL)
    pl_program_dlrm(&to);
  else if (model->program.stack != NULL)
    pl_program_stack(&to);
  else if (model->unlike.parts != NULL)
    pl_program_parts(&to);
  else
    write_transformer(&to);
  write_class(module);
  return arena->failed ? pl_fail_memory(error, "the program of a model") : PL_OK;
}

/* ---- one block ---- */

static void write_block(pl_program_writer *to, int32_t class_of_blocks) {
  const pl_model *model = to->model;
  pl_block_kind kind = pl_model_class_kind(model, class_of_blocks);
  bool window = model->attention.sliding_window > 0 && model->attention.sliding_window < to->options->seq;
  if (model->unlike.parts != NULL) {
    pl_program_part(to, class_of_blocks);
    return;
  }
  switch (kind) {
  case PL_BLOCK_EMBEDDING:
    pl_program_embedding(to);
    return;
  case PL_BLOCK_LAYER:
    pl_program_layer(to, "layer", (pl_layer_kind){.window = window});
    return;
  case PL_BLOCK_EXPERT_LAYER:
    if (model->moe.n_experts == 0) break; /* without experts there is no such layer */
    pl_program_layer(to, "expert_layer", (pl_layer_kind){.experts = true, .window = window});
    return;
  case PL_BLOCK_FINAL_NORM:
    if (!model->norms.final_norm) break;
    pl_program_final_norm(to);
    return;
  case PL_BLOCK_HEAD:
    pl_program_head(to);
    return;
  case PL_BLOCK_LOSS:
    pl_program_loss(to);
    return;
  default:
    break;
  }
  if (pl_write_function(to, "identity") != NULL) pl_write_result(to, pl_write_argument(to, "x", "bsh"));
}

/* A probability for what is dropped, where the file's is none that can be computed with. */
static void set_dropout(bool drops, double *probability) {
  if (!drops) *probability = 0;
  if (drops && !(*probability > 0 && *probability < 1)) *probability = 0.5;
}

/* Numbers that no time depends on, where they are none that a program can compute with. */
static pl_model with_numbers(const pl_model *model) {
  pl_model own = *model;
  if (model->unlike.parts != NULL) return own;
  int64_t turned = llround(own.numbers.rotary_share * (double)own.attention.head_size);
  if (!(own.numbers.rotary_base > 0)) own.numbers.rotary_base = 10000;
  own.positions.rotary = own.positions.rotary && own.attention.head_size > 1;
  if (turned < 2 || turned % 2 != 0 || turned > own.attention.head_size)
    own.numbers.rotary_share =
        (double)(turned < 3 || turned > own.attention.head_size ? 2 : turned - 1) / (double)own.attention.head_size;
  set_dropout(own.dropout.embedding_dropout, &own.numbers.embedding_dropout);
  set_dropout(own.dropout.attention_dropout, &own.numbers.attention_dropout);
  set_dropout(own.dropout.hidden_dropout, &own.numbers.hidden_dropout);
  return own;
}

pl_code pl_model_program_block(const pl_model *model, int32_t class_of_blocks, const pl_model_program_options *options,
                               pl_arena *arena, pl_ir_module *module, pl_error *error) {
  const pl_model own = with_numbers(model);
  pl_ir_module_init(module, arena, model->name, PL_IR_MODEL);
  module->n_microbatches = 1;
  pl_program_writer to = {.module = module, .model = &own, .options = options, .alone = true, .error = error};
  set_extents(&to);
  write_block(&to, class_of_blocks);
  return arena->failed ? pl_fail_memory(error, "the program of a block") : PL_OK;
}
