/* Layers of several kinds as programs (workloads/ir/stack.h). The ends are those of transformers, but of pictures; the
 * layers' functions are named by what they hold: @state_space_layer, @attention_mlp_layer ... */

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"

/* ---- pictures in patches ---- */

static void set_extent(pl_program_writer *to, char letter, int64_t extent) {
  to->extent[letter - 'a'] = extent;
}

/* A convolution whose windows touch: [b,h,y,x]. */
static int32_t patches(pl_program_writer *to, const pl_stack *stack) {
  static const pl_ir_name over = {"c"}, points[] = {{"y"}, {"x"}}, kernel[] = {{"i"}, {"j"}};
  set_extent(to, 'c', stack->channels);
  set_extent(to, 'y', stack->height);
  set_extent(to, 'x', stack->width);
  set_extent(to, 'i', stack->patch_height);
  set_extent(to, 'j', stack->patch_width);
  pl_ir_type type = pl_write_type(to, to->options->element, "bcyx");
  int32_t pictures = pl_ir_op_typed(to->module, to->function, "input", "pictures", "pictures", 0, NULL, &type, 0, NULL);
  const int32_t inputs[] = {pictures, pl_write_param(to, "patches.weight", "hcij")};
  const pl_ir_attribute attributes[] = {
      pl_ir_names("over", 1, &over), pl_ir_names("window", 2, points), pl_ir_names("kernel", 2, kernel),
      pl_ir_text("stride", pl_write_pair(to, stack->patch_height, stack->patch_width))};
  int32_t y = pl_ir_op_infer(to->module, to->function, "convolution", "patches", 2, inputs, 4, attributes);
  return pl_write_bias(to, "patches.bias", y, "h");
}

static void patch_embedding(pl_program_writer *to, const pl_stack *stack) {
  static const pl_ir_name points[] = {{"y"}, {"x"}}, tokens = {"s"};
  int64_t n = pl_stack_patches(stack);
  if (pl_write_function(to, "embedding") == NULL) return;
  int32_t y = patches(to, stack);
  const pl_ir_attribute joined[] = {pl_ir_names("from", 2, points), pl_ir_names("to", 1, &tokens)};
  set_extent(to, 's', n);
  y = pl_ir_op_infer(to->module, to->function, "join", "tokens", 1, &y, 2, joined);
  y = pl_write_spread(to, "tokens", y, "bsh");
  set_extent(to, 's', 1);
  const int32_t all[] = {pl_write_spread(to, "class", pl_write_param(to, "class", "h"), "bsh"), y};
  const pl_ir_attribute behind = pl_ir_names("over", 1, &tokens);
  set_extent(to, 's', n + 1);
  int32_t x = pl_ir_op_infer(to->module, to->function, "concatenate", "tokens", 2, all, 1, &behind);
  x = pl_write_two(to, "add", "placed", x, pl_write_param(to, "positions", "sh"));
  pl_write_result(to, pl_write_dropout(to, "x", x, to->model->numbers.embedding_dropout));
}

/* The first token of each picture. */
static void class_head(pl_program_writer *to, const pl_stack *stack) {
  static const pl_ir_name tokens = {"s"};
  if (pl_write_function(to, "head") == NULL) return;
  int32_t x = pl_write_argument(to, "x", "bsh");
  set_extent(to, 's', 1);
  pl_ir_type type = pl_write_type(to, to->options->element, "bsh");
  const pl_ir_attribute first[] = {pl_ir_names("over", 1, &tokens), pl_ir_integer("first", 0)};
  x = pl_ir_op_typed(to->module, to->function, "part", "class", NULL, 1, &x, &type, 2, first);
  x = pl_write_over(to, "sum", "class", x, "s");
  set_extent(to, 's', pl_stack_patches(stack) + 1);
  set_extent(to, 'o', stack->classes);
  set_extent(to, 'j', to->model->width.hidden);
  if (stack->pooler) {
    x = pl_write_linear(to, "pooler", x, "hj", "h", true);
    x = pl_write_rename(to, pl_write_one(to, "tanh", "pooled", x), "j", "h");
  }
  pl_write_result(to, pl_write_linear(to, "classes", x, "ho", "h", true));
}

static void class_loss(pl_program_writer *to, const pl_stack *stack) {
  if (pl_write_function(to, "loss") == NULL) return;
  int32_t logits = pl_write_argument(to, "logits", "bo");
  int32_t losses = pl_program_cross_entropy(to, logits, pl_write_input(to, "targets", "b", stack->classes), "o");
  pl_write_loss(to, losses, "b", (double)to->options->gbs);
}

/* ---- layers ---- */

static int32_t added(pl_program_writer *to, const char *name, int32_t x, int32_t y, const char *bias) {
  if (bias != NULL) y = pl_write_bias(to, bias, y, "h");
  return pl_write_two(to, "add", name, x, pl_write_dropout(to, name, y, to->model->numbers.hidden_dropout));
}

static int32_t attended(pl_program_writer *to, int32_t normed) {
  int32_t y = pl_program_attention(to, normed, false);
  return to->model->attention.output_bias ? pl_write_bias(to, "attention.out.bias", y, "h") : y;
}

static int32_t mixed(pl_program_writer *to, int32_t x, pl_mixer mixer) {
  int32_t normed = pl_write_norm(to, "norm1", x, "h");
  switch (mixer) {
  case PL_MIXER_STATE_SPACE:
    return added(to, "mixed", x, pl_program_state_space(to, normed), NULL);
  case PL_MIXER_DELTA_RULE:
    return added(to, "mixed", x, pl_program_delta_rule(to, normed), NULL);
  case PL_MIXER_BESIDE:
    return added(to, "mixed", x,
                 pl_write_two(to, "add", "both", pl_program_state_space(to, normed), attended(to, normed)), NULL);
  default:
    return added(to, "attended", x, pl_program_attention(to, normed, false),
                 to->model->attention.output_bias ? "attention.out.bias" : NULL);
  }
}

static const char *const mixer_names[PL_MIXER_COUNT] = {[PL_MIXER_NONE] = "",
                                                        [PL_MIXER_ATTENTION] = "attention_",
                                                        [PL_MIXER_STATE_SPACE] = "state_space_",
                                                        [PL_MIXER_BESIDE] = "attention_state_space_",
                                                        [PL_MIXER_DELTA_RULE] = "delta_rule_"};
static const char *const feed_names[PL_FEED_COUNT] = {
    [PL_FEED_NONE] = "", [PL_FEED_MLP] = "mlp_", [PL_FEED_EXPERTS] = "expert_"};

static const char *name_of(pl_program_writer *to, const pl_stack_layer *layer) {
  const char *name =
      pl_arena_printf(to->module->arena, "%s%slayer", mixer_names[layer->mixer], feed_names[layer->feed]);
  return name != NULL ? name : "layer"; /* no memory: the arena says so */
}

static void write_layer(pl_program_writer *to, const pl_stack_layer *layer) {
  const char *name = name_of(to, layer);
  const pl_model *model = to->model;
  if (pl_ir_function_find(to->module, name) != PL_IR_NONE || pl_write_layer(to, name) == NULL) return;
  int32_t x = pl_write_argument(to, "x", "bsh");
  if (layer->mixer != PL_MIXER_NONE) x = mixed(to, x, (pl_mixer)layer->mixer);
  if (layer->feed != PL_FEED_NONE) {
    bool experts = layer->feed == PL_FEED_EXPERTS;
    int32_t y = pl_write_norm(to, "norm2", x, "h");
    y = experts ? pl_program_experts(to, y) : pl_program_mlp(to, "mlp", y, model->width.ffn_hidden);
    x = added(to, "y", x, y, model->mlp.mlp_bias && !experts ? "mlp.down.bias" : NULL);
  }
  pl_write_result(to, x);
}

/* ---- all ---- */

static void write_main(pl_program_writer *to) {
  const pl_model *model = to->model;
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "embedding", "embedding", PL_IR_NONE);
  for (int32_t layer = 0; layer < model->n_layers; layer++) {
    const char *instance = pl_arena_printf(to->module->arena, "h.%d", layer);
    x = pl_write_call(to, name_of(to, &model->program.stack->layers[layer]), instance, x);
  }
  x = pl_write_call(to, "final_norm", "final_norm", x);
  pl_write_call(to, "loss", "loss", pl_write_call(to, "head", model->ends.tied_embeddings ? "" : "head", x));
}

void pl_program_stack(pl_program_writer *to) {
  const pl_stack *stack = to->model->program.stack;
  bool pictures = stack->kind == PL_STACK_PATCHES;
  if (stack->kind == PL_STACK_ENCODER_DECODER) {
    pl_program_encoder_decoder(to);
    return;
  }
  if (pictures)
    patch_embedding(to, stack);
  else
    pl_program_embedding(to);
  for (int32_t layer = 0; layer < to->model->n_layers; layer++)
    write_layer(to, &stack->layers[layer]);
  pl_program_final_norm(to);
  if (pictures) {
    class_head(to, stack);
    class_loss(to, stack);
  } else {
    pl_program_head(to);
    pl_program_loss(to);
  }
  write_main(to);
}
