/* See workloads/import/program_build.h. */
#include "workloads/import/program_build.h"

#include <math.h>
#include <string.h>

#include "workloads/import/program_write.h"

pl_model_program_options pl_model_program_defaults(int64_t gbs, int32_t n_microbatches, int64_t seq) {
  return (pl_model_program_options){.gbs = gbs,
                                    .n_microbatches = n_microbatches,
                                    .batch = n_microbatches > 0 ? gbs / n_microbatches : 0,
                                    .seq = seq,
                                    .element = PL_IR_BF16,
                                    .dropout = true};
}

static pl_code check_job(const pl_model *model, const pl_model_program_options *options, pl_error *error) {
  if (options->n_microbatches < 1 || options->batch < 1 || options->batch * options->n_microbatches != options->gbs)
    return pl_fail(error, PL_BAD_INPUT, "%d microbatches of %lld sequences are not the %lld sequences of an iteration",
                   options->n_microbatches, (long long)options->batch, (long long)options->gbs);
  if (options->seq < 1)
    return pl_fail(error, PL_BAD_INPUT, "%lld tokens a sequence: at least one is needed", (long long)options->seq);
  if (model->parts == NULL && model->learned_positions && options->seq > model->max_positions)
    return pl_fail(error, PL_BAD_INPUT, "%s: sequences of %lld tokens, but its table of positions has %lld rows",
                   model->name, (long long)options->seq, (long long)model->max_positions);
  return PL_OK;
}

/* Letters: program_write.h. */
static void set_extents(pl_program_writer *to) {
  const pl_model *model = to->model;
  const struct {
    char letter;
    int64_t extent;
  } all[] = {{'b', to->options->batch}, {'s', to->options->seq},     {'t', to->options->seq},
             {'h', model->hidden},      {'g', model->n_kv_heads},    {'r', model->n_heads / model->n_kv_heads},
             {'d', model->head_size},   {'e', model->value_size},    {'v', model->vocab},
             {'x', model->n_experts},   {'p', model->max_positions}, {'y', model->type_vocab},
             {'m', model->predictions}, {'j', model->hidden},        {'o', 2},
             {'q', model->q_rank},      {'k', model->kv_rank},       {'a', model->head_size - model->rope_size},
             {'z', model->rope_size}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    to->extent[all[i].letter - 'a'] = all[i].extent;
}

/* ---- layers ---- */

/* Gemma 2: the first layer and every other one behind it sees a window. */
static pl_layer_kind kind_of(const pl_model *model, int64_t seq, int32_t layer) {
  bool window = model->sliding_window > 0 && model->sliding_window < seq;
  return (pl_layer_kind){.experts = pl_model_has_experts(model, layer),
                         .window = window && (!model->alternating_window || layer % 2 == 0)};
}

static const char *name_of(const pl_model *model, pl_layer_kind kind) {
  if (kind.window && model->alternating_window) return kind.experts ? "window_expert_layer" : "window_layer";
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
  if (model->final_norm) x = pl_write_call(to, "final_norm", "final_norm", x);
  x = pl_write_call(to, "head", model->tied_embeddings ? "" : "head", x);
  pl_write_call(to, "loss", "loss", x);
}

static void write_transformer(pl_program_writer *to) {
  pl_program_embedding(to);
  write_layers(to);
  pl_program_final_norm(to);
  pl_program_head(to);
  pl_program_loss(to);
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

pl_code pl_model_program_build(const pl_model *model, const pl_model_program_options *options, pl_arena *arena,
                               pl_ir_module *module, pl_error *error) {
  PL_TRY(check_job(model, options, error));
  PL_TRY(model->parts != NULL ? pl_program_check_parts(model, error) : pl_program_check_layer(model, error));
  pl_ir_module_init(module, arena, model->name, PL_IR_MODEL);
  module->n_microbatches = options->n_microbatches;
  pl_program_writer to = {.module = module, .model = model, .options = options, .error = error};
  set_extents(&to);
  if (model->parts != NULL)
    pl_program_parts(&to);
  else
    write_transformer(&to);
  write_class(module);
  return arena->failed ? pl_fail_memory(error, "the program of a model") : PL_OK;
}
