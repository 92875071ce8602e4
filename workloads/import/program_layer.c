/* Transformer layers as functions of the program language, in whole values. */
#include <math.h>
#include <string.h>

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"

/* Families' names of what the language computes. "gelu" of BERT and "gelu_fast" of GPT-NeoX differ from the form with
 * tanh by less than 1e-3. */
static const struct {
  const char *name, *row;
  bool squared;
} activations[] = {{"gelu", "gelu", false},      {"gelu_new", "gelu", false},
                   {"gelu_fast", "gelu", false}, {"gelu_pytorch_tanh", "gelu", false},
                   {"silu", "silu", false},      {"swish", "silu", false},
                   {"relu", "relu", false},      {"relu2", "relu", true}};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };

static int find_activation(const char *name) {
  for (int i = 0; i < N_ACTIVATIONS; i++)
    if (strcmp(activations[i].name, name) == 0) return i;
  return -1;
}

/* Turned elements come in pairs. */
static pl_code check_rotary(const pl_model *model, pl_error *error) {
  bool latent = model->attention.kv_rank > 0;
  long long turned =
      latent ? model->attention.rope_size : llround(model->numbers.rotary_share * (double)model->attention.head_size);
  if ((!model->positions.rotary && !latent) || (turned > 0 && turned % 2 == 0)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "%s: rotary positions turn %lld of the %lld elements of a head; programs turn pairs of them",
                 model->name, turned, (long long)model->attention.head_size);
}

static pl_code check_dropout(const pl_model *model, pl_error *error) {
  const pl_model_numbers *is = &model->numbers;
  if (is->embedding_dropout < 1 && is->attention_dropout < 1 && is->hidden_dropout < 1) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "%s: a dropout probability of 1 leaves nothing that a program could compute",
                 model->name);
}

pl_code pl_program_check_layer(const pl_model *model, pl_error *error) {
  PL_TRY(check_rotary(model, error));
  PL_TRY(check_dropout(model, error));
  if (find_activation(model->mlp.activation) < 0)
    return pl_fail(error, PL_UNSUPPORTED,
                   "%s: activation '%.32s' is not one that programs can say: gelu, gelu_new, gelu_fast, "
                   "gelu_pytorch_tanh, silu, swish, relu, relu2",
                   model->name, model->mlp.activation);
  return PL_OK;
}

int32_t pl_write_activation(pl_program_writer *to, const char *name, int32_t a) {
  int found = to->model->mlp.activation != NULL ? find_activation(to->model->mlp.activation) : -1;
  if (found < 0) found = 0; /* of a block alone, whose time does not depend on it */
  int32_t y = pl_write_one(to, activations[found].row, name, a);
  return activations[found].squared ? pl_write_two(to, "multiply", name, y, y) : y;
}

/* ---- attention ---- */

static int64_t width_of_heads(const pl_program_writer *to, int32_t x) {
  const pl_ir_type *type = &to->function->values[x].type;
  return type->dims[pl_ir_type_find(type, pl_ir_name_of("d"))].extent;
}

int32_t pl_program_rotary(pl_program_writer *to, const char *name, int32_t x, int32_t positions, double share) {
  const pl_ir_name d = pl_ir_name_of("d");
  int64_t turned = x != PL_IR_NONE ? llround(share * (double)width_of_heads(to, x)) : 0;
  if (turned < 2 || turned % 2 != 0) return x; /* of a block alone: what is turned comes in pairs */
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &d), pl_ir_real("base", to->model->numbers.rotary_base),
                                        pl_ir_real("share", share)};
  return pl_ir_op_infer(to->module, to->function, "rotary", name, 2, (const int32_t[]){x, positions}, share < 1 ? 3 : 2,
                        attributes);
}

/* Weights for all heads (`heads`: the letters that count them), of one mean per head (Cohere) or of all together (OLMo
 * 2). Of a block alone, whose kernel is the same, it is one per head. */
static int32_t normed(pl_program_writer *to, const char *norm, int32_t x, const char *heads) {
  if (to->alone || !to->model->attention.qk_norm_whole) return pl_write_norm(to, norm, x, "d");
  const char *all = pl_arena_printf(to->module->arena, "%sd", heads);
  if (all == NULL) return PL_IR_NONE;
  return pl_write_norm_of(to, norm, x, to->model->attention.qk_norm_joint ? all : "d", all);
}

/* Queries and keys, normalised and turned. */
static int32_t finished_heads(pl_program_writer *to, const char *name, const char *norm, int32_t x, const char *heads,
                              int32_t positions) {
  if (to->model->attention.qk_norm) x = normed(to, norm, x, heads);
  return to->model->positions.rotary ? pl_program_rotary(to, name, x, positions, to->model->numbers.rotary_share) : x;
}

static void plain_heads(pl_program_writer *to, int32_t x, int32_t positions, int32_t qkv[3]) {
  bool bias = to->model->attention.attention_bias;
  qkv[0] = pl_write_linear(to, "attention.q", x, "hgrd", "h", bias);
  qkv[0] = finished_heads(to, "queries", "attention.q_norm", qkv[0], "gr", positions);
  qkv[1] = pl_write_linear(to, "attention.k", x, "hgd", "h", bias);
  qkv[1] = pl_write_rename(to, finished_heads(to, "keys", "attention.k_norm", qkv[1], "g", positions), "s", "t");
  qkv[2] = pl_write_rename(to, pl_write_linear(to, "attention.v", x, "hge", "h", bias), "s", "t");
}

/* A number per head that the softmax counts as one more key, which gives no value: y / (1 + exp(sink - l)), l the
 * log-sum-exp of the scores. */
static int32_t with_sinks(pl_program_writer *to, int32_t context) {
  if (context == PL_IR_NONE) return context;
  int32_t sinks = pl_write_cast(to, "sinks.fp32", pl_write_param(to, "attention.sinks", "gr"), PL_IR_F32);
  int32_t above = pl_write_scale(to, "above", pl_write_two(to, "subtract", "above", context + 1, sinks), -1);
  pl_ir_type type = pl_write_type(to, PL_IR_F32, "bsgr");
  const pl_ir_attribute value = pl_ir_real("value", 1);
  int32_t one = pl_ir_op_typed(to->module, to->function, "constant", "one", NULL, 0, NULL, &type, 1, &value);
  int32_t whole = pl_write_two(to, "add", "with_sinks", pl_write_one(to, "exp", "sink", above), one);
  int32_t share = pl_write_cast(to, "share", pl_write_one(to, "reciprocal", "share", whole), to->options->element);
  return pl_write_two(to, "multiply", "context", context, share);
}

/* Masks compare positions, so that a sequence in another order is the same function. */
static int32_t core(pl_program_writer *to, const int32_t qkv[3], int32_t positions, bool window) {
  const pl_model *model = to->model;
  const int32_t inputs[] = {qkv[0], qkv[1], qkv[2], positions, pl_write_rename(to, positions, "s", "t")};
  static const pl_ir_name heads[] = {{"g"}, {"r"}};
  pl_ir_attribute attributes[7] = {pl_ir_real("scale", 1 / sqrt((double)model->attention.head_size))};
  int32_t n = 1;
  if (model->attention.causal) attributes[n++] = pl_ir_integer("causal", 1);
  if (window) attributes[n++] = pl_ir_integer("window", model->attention.sliding_window);
  if (model->numbers.attention_dropout > 0 && to->options->dropout) {
    attributes[n++] = pl_ir_real("p", model->numbers.attention_dropout);
    attributes[n++] = pl_ir_integer("seed", to->n_dropouts++);
  }
  if (model->positions.alibi && !to->alone) attributes[n++] = pl_ir_names("alibi", 2, heads);
  if (model->positions.alibi && !to->alone && model->positions.alibi_scaled)
    attributes[n++] = pl_ir_real("slope", 1 / sqrt((double)model->attention.head_size));
  int32_t context = pl_ir_op_infer(to->module, to->function, "attention", "context", 5, inputs, n, attributes);
  return model->attention.attention_sinks && !to->alone ? with_sinks(to, context) : context;
}

/* Attention whose scores have a number per head and pair of tokens added to them, from a table (Liu et al. 2021, Swin,
 * eq. 4): the fused op has no place for it. Input "relative_positions": the row of the table for each pair. */
static int32_t relative_core(pl_program_writer *to, const int32_t qkv[3]) {
  const pl_model *model = to->model;
  to->extent['p' - 'a'] = (int64_t)pl_model_relative_positions(model);
  /* of the queries, so that the scores' gradient, which the table's and theirs read, is not scaled for one of both */
  int32_t scaled = pl_write_scale(to, "scaled", qkv[0], 1 / sqrt((double)model->attention.head_size));
  int32_t scores = pl_write_product(to, "scores", scaled, qkv[1], "d");
  int32_t pairs = pl_write_input(to, "relative_positions", "st", to->extent['p' - 'a']);
  int32_t table = pl_write_param(to, "attention.relative_positions.table", "pg");
  scores = pl_write_two(to, "add", "placed", scores,
                        pl_write_two_over(to, "embedding", "relative_positions", pairs, table, "p"));
  int32_t shares = pl_write_over(to, "softmax", "probabilities", scores, "t");
  shares = pl_write_dropout(to, "probabilities", shares, model->numbers.attention_dropout);
  return pl_write_product(to, "context", shares, qkv[2], "t");
}

/* Without its bias, which acts behind the sum over the tensor group. */
int32_t pl_program_attention(pl_program_writer *to, int32_t x, bool window) {
  int32_t positions = pl_write_input(to, "positions", "s", to->extent['s' - 'a']), qkv[3];
  if (to->model->attention.kv_rank > 0)
    pl_program_latent(to, x, positions, qkv);
  else
    plain_heads(to, x, positions, qkv);
  int32_t context =
      to->model->positions.relative_window > 0 ? relative_core(to, qkv) : core(to, qkv, positions, window);
  if (to->model->program.stack != NULL && to->model->program.stack->gated_attention) {
    int32_t gate = pl_write_linear(to, "attention.gate", x, "hgre", "h", to->model->attention.attention_bias);
    context = pl_write_two(to, "multiply", "context", context, pl_write_one(to, "sigmoid", "gate", gate));
  }
  return pl_write_linear(to, "attention.out", context, "greh", "gre", false);
}

/* ---- layers ---- */

int32_t pl_program_mlp(pl_program_writer *to, const char *path, int32_t x, int64_t width) {
  const pl_model *model = to->model;
  pl_arena *arena = to->module->arena;
  const char *up = pl_arena_printf(arena, "%s.up", path), *gate = pl_arena_printf(arena, "%s.gate", path);
  const char *down = pl_arena_printf(arena, "%s.down", path);
  if (arena->failed) return PL_IR_NONE;
  to->extent['f' - 'a'] = width;
  int32_t y = pl_write_linear(to, up, x, "hf", "h", model->mlp.mlp_bias);
  if (model->mlp.gated_mlp) {
    int32_t gated = pl_write_activation(to, "active", pl_write_linear(to, gate, x, "hf", "h", model->mlp.mlp_bias));
    y = pl_write_two(to, "multiply", "active", gated, y);
  } else {
    y = pl_write_activation(to, "active", y);
  }
  return pl_write_linear(to, down, y, "fh", "f", false);
}

/* x + dropout(y), with y's bias. */
static int32_t residual(pl_program_writer *to, const char *name, int32_t x, int32_t y, const char *bias) {
  if (bias != NULL) y = pl_write_bias(to, bias, y, "h");
  y = pl_write_dropout(to, name, y, to->model->numbers.hidden_dropout);
  return pl_write_two(to, "add", name, x, y);
}

static int32_t sequential(pl_program_writer *to, int32_t x, pl_layer_kind kind) {
  const pl_model *model = to->model;
  bool in_front = !model->norms.post_norm && !model->norms.norms_behind;
  int32_t y = pl_program_attention(to, in_front ? pl_write_norm(to, "norm1", x, "h") : x, kind.window);
  if (model->norms.norms_behind) y = pl_write_norm(to, "norm1", y, "h");
  if (model->norms.sandwich_norms) y = pl_write_norm(to, "attention.post_norm", y, "h");
  x = residual(to, "attended", x, y, model->attention.output_bias ? "attention.out.bias" : NULL);
  if (model->norms.post_norm) x = pl_write_norm(to, "norm1", x, "h");
  y = in_front ? pl_write_norm(to, "norm2", x, "h") : x;
  y = kind.experts ? pl_program_experts(to, y) : pl_program_mlp(to, "mlp", y, model->width.ffn_hidden);
  if (model->norms.norms_behind) y = pl_write_norm(to, "norm2", y, "h");
  if (model->norms.sandwich_norms) y = pl_write_norm(to, "mlp.post_norm", y, "h");
  x = residual(to, "y", x, y, model->mlp.mlp_bias && !kind.experts ? "mlp.down.bias" : NULL);
  return model->norms.post_norm ? pl_write_norm(to, "norm2", x, "h") : x;
}

/* Dropout, where configured, acts once on the sum. */
static int32_t parallel(pl_program_writer *to, int32_t x, pl_layer_kind kind) {
  const pl_model *model = to->model;
  int32_t normed = pl_write_norm(to, "norm1", x, "h"), left = pl_program_attention(to, normed, kind.window);
  if (!model->norms.shared_norm) normed = pl_write_norm(to, "norm2", x, "h");
  int32_t right = pl_program_mlp(to, "mlp", normed, model->width.ffn_hidden);
  int32_t sum = pl_write_two(to, "add", "sum", left, right);
  if (model->attention.output_bias) sum = pl_write_bias(to, "attention.out.bias", sum, "h");
  return residual(to, "y", x, sum, model->mlp.mlp_bias ? "mlp.down.bias" : NULL);
}

void pl_program_layer(pl_program_writer *to, const char *name, pl_layer_kind kind) {
  if (pl_write_layer(to, name) == NULL) return;
  int32_t x = pl_write_argument(to, "x", "bsh");
  pl_write_result(to, to->model->norms.parallel_residual ? parallel(to, x, kind) : sequential(to, x, kind));
}
