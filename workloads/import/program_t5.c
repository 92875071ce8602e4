/* Encoders with decoders as programs (Raffel et al. 2020, T5; transformers' models/t5/modeling_t5.py): pre-norm layers
 * without biases, attention that is not scaled and has a number per head and bucket of distances added to its scores.
 * The decoder sees what is in front of it: pairs behind a token have a row of their own in its table, which no weight
 * stands for. Layers are h.0 ... of the encoder, then of the decoder; tables are looked up once for each side. */
#include <math.h>

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"

/* As good as minus infinity for a softmax, and within fp16. */
static const double masked = -30000;

/* `memory` [b,t,h]: what is attended to; PL_IR_NONE: x itself. */
static int32_t attention(pl_program_writer *to, const char *name, int32_t x, int32_t memory, int32_t bias) {
  pl_arena *arena = to->module->arena;
  const char *q = pl_arena_printf(arena, "%s.q", name), *k = pl_arena_printf(arena, "%s.k", name);
  const char *v = pl_arena_printf(arena, "%s.v", name), *out = pl_arena_printf(arena, "%s.out", name);
  if (arena->failed) return PL_IR_NONE;
  bool self = memory == PL_IR_NONE;
  int32_t queries = pl_write_linear(to, q, x, "hgrd", "h", false);
  int32_t keys = pl_write_linear(to, k, self ? x : memory, "hgd", "h", false);
  int32_t values = pl_write_linear(to, v, self ? x : memory, "hge", "h", false);
  if (self) keys = pl_write_rename(to, keys, "s", "t");
  if (self) values = pl_write_rename(to, values, "s", "t");
  int32_t scores = pl_write_product(to, "scores", queries, keys, "d");
  if (bias != PL_IR_NONE) scores = pl_write_two(to, "add", "placed", scores, bias);
  int32_t shares = pl_write_over(to, "softmax", "probabilities", scores, "t");
  shares = pl_write_dropout(to, "probabilities", shares, to->model->numbers.attention_dropout);
  return pl_write_linear(to, out, pl_write_product(to, "context", shares, values, "t"), "greh", "gre", false);
}

static int32_t feed(pl_program_writer *to, int32_t x) {
  int32_t y = pl_write_linear(to, "mlp.up", x, "hf", "h", false);
  if (to->model->mlp.gated_mlp) {
    int32_t gate = pl_write_activation(to, "active", pl_write_linear(to, "mlp.gate", x, "hf", "h", false));
    y = pl_write_two(to, "multiply", "active", gate, y);
  } else {
    y = pl_write_activation(to, "active", y);
  }
  y = pl_write_dropout(to, "active", y, to->model->numbers.hidden_dropout);
  return pl_write_linear(to, "mlp.down", y, "fh", "f", false);
}

static int32_t added(pl_program_writer *to, const char *name, int32_t x, int32_t y) {
  return pl_write_two(to, "add", name, x, pl_write_dropout(to, name, y, to->model->numbers.hidden_dropout));
}

static void layer(pl_program_writer *to, bool decodes) {
  if (pl_write_layer(to, decodes ? "decoder_layer" : "encoder_layer") == NULL) return;
  to->extent['f' - 'a'] = to->model->width.ffn_hidden;
  int32_t x = pl_write_argument(to, "x", "bsh"), bias = pl_write_argument(to, "bias", "stg");
  int32_t memory = decodes ? pl_write_argument(to, "memory", "bth") : PL_IR_NONE;
  int32_t normed = pl_write_norm(to, "norm1", x, "h");
  x = added(to, "attended", x, attention(to, "attention", normed, PL_IR_NONE, bias));
  if (decodes) {
    normed = pl_write_norm(to, "norm2", x, "h");
    x = added(to, "crossed", x, attention(to, "cross_attention", normed, memory, PL_IR_NONE));
  }
  x = added(to, "y", x, feed(to, pl_write_norm(to, decodes ? "norm3" : "norm2", x, "h")));
  pl_write_result(to, x);
}

/* Input "buckets" or "causal_buckets": the row of the table for each pair of tokens. */
static void position_bias(pl_program_writer *to, bool decodes) {
  static const pl_ir_name over = {"p"};
  const pl_stack *stack = to->model->program.stack;
  if (pl_write_function(to, decodes ? "decoder_bias" : "encoder_bias") == NULL) return;
  const pl_ir_attribute input[] = {pl_ir_integer("below", stack->buckets + decodes),
                                   pl_ir_integer("distance", stack->max_distance)};
  const char *name = decodes ? "causal_buckets" : "buckets";
  pl_ir_type type = pl_write_type(to, PL_IR_I32, "st");
  int32_t pairs = pl_ir_op_typed(to->module, to->function, "input", name, name, 0, NULL, &type, 2, input);
  to->extent['p' - 'a'] = stack->buckets;
  int32_t table = pl_write_param(to, "table", "pg");
  if (decodes) {
    to->extent['p' - 'a'] = 1;
    const int32_t both[] = {table, pl_write_constant(to, masked, "pg")};
    const pl_ir_attribute behind = pl_ir_names("over", 1, &over);
    table = pl_ir_op_infer(to->module, to->function, "concatenate", "table", 2, both, 1, &behind);
  }
  pl_write_result(to, pl_write_two_over(to, "embedding", "bias", pairs, table, "p"));
}

/* One table for both sides. */
static void embeddings(pl_program_writer *to) {
  static const char *const names[] = {"tokens", "decoder_tokens"};
  if (pl_write_function(to, "embedding") == NULL) return;
  int32_t table = pl_write_param(to, "table", "vh");
  int32_t results[2];
  for (int i = 0; i < 2; i++) {
    int32_t x = pl_write_two_over(to, "embedding", names[i], pl_write_input(to, names[i], "bs", to->model->width.vocab),
                                  table, "v");
    results[i] = pl_write_dropout(to, names[i], x, to->model->numbers.embedding_dropout);
  }
  pl_ir_results_set(to->module, to->function, 2, results);
}

/* What the decoder attends to: its tokens are t. */
static void encoder_norm(pl_program_writer *to) {
  if (pl_write_function(to, "encoder_norm") == NULL) return;
  int32_t x = pl_write_norm(to, "norm", pl_write_argument(to, "x", "bsh"), "h");
  x = pl_write_dropout(to, "x", x, to->model->numbers.hidden_dropout);
  pl_write_result(to, pl_write_rename(to, x, "s", "t"));
}

static const char *instance_of(pl_program_writer *to, int32_t index, const char *last) {
  const char *name = pl_arena_printf(to->module->arena, "h.%d%s", index, last);
  return name != NULL ? name : "h"; /* no memory: the arena says so */
}

static void write_main(pl_program_writer *to) {
  const pl_model *model = to->model;
  int32_t n_encoder = model->program.stack->n_encoder;
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x[2] = {pl_write_call(to, "embedding", "embedding", PL_IR_NONE)};
  int32_t y[3] = {x[0] == PL_IR_NONE ? PL_IR_NONE : x[0] + 1};
  x[1] = pl_write_call(to, "encoder_bias", instance_of(to, 0, ".bias"), PL_IR_NONE);
  for (int32_t i = 0; i < n_encoder; i++)
    x[0] = pl_write_call_of(to, "encoder_layer", instance_of(to, i, ""), x);
  y[2] = pl_write_call(to, "encoder_norm", instance_of(to, n_encoder - 1, ".norm"), x[0]);
  y[1] = pl_write_call(to, "decoder_bias", instance_of(to, n_encoder, ".bias"), PL_IR_NONE);
  for (int32_t i = n_encoder; i < model->n_layers; i++)
    y[0] = pl_write_call_of(to, "decoder_layer", instance_of(to, i, ""), y);
  y[0] = pl_write_call(to, "final_norm", "final_norm", y[0]);
  pl_write_call(to, "loss", "loss", pl_write_call(to, "head", model->ends.tied_embeddings ? "" : "head", y[0]));
}

void pl_program_encoder_decoder(pl_program_writer *to) {
  embeddings(to);
  position_bias(to, false);
  position_bias(to, true);
  layer(to, false);
  layer(to, true);
  encoder_norm(to);
  pl_program_final_norm(to);
  pl_program_head(to);
  pl_program_loss(to);
  write_main(to);
}
