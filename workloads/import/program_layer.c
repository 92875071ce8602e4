/* Transformer layers as functions of the program language: what workloads/block/block_layer.c says for one rank, in
 * whole values. */
#include <math.h>
#include <string.h>

#include "workloads/import/program_write.h"

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
  bool latent = model->kv_rank > 0;
  long long turned = latent ? model->rope_size : llround(model->numbers.rotary_share * (double)model->head_size);
  if ((!model->rotary && !latent) || (turned > 0 && turned % 2 == 0)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "%s: rotary positions turn %lld of the %lld elements of a head; programs turn pairs of them",
                 model->name, turned, (long long)model->head_size);
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
  if (find_activation(model->activation) < 0)
    return pl_fail(error, PL_UNSUPPORTED,
                   "%s: activation '%.32s' is not one that programs can say: gelu, gelu_new, gelu_fast, "
                   "gelu_pytorch_tanh, silu, swish, relu, relu2",
                   model->name, model->activation);
  if (model->norm == PL_NORM_PIXEL)
    return pl_fail(error, PL_UNSUPPORTED, "%s: norms without parameters are not what programs can say yet",
                   model->name);
  if (model->relative_window > 0)
    return pl_fail(error, PL_UNSUPPORTED, "%s: tables of relative positions are not what programs can say yet",
                   model->name);
  return PL_OK;
}

int32_t pl_write_activation(pl_program_writer *to, const char *name, int32_t a) {
  int found = find_activation(to->model->activation);
  int32_t y = pl_write_one(to, activations[found].row, name, a);
  return activations[found].squared ? pl_write_two(to, "multiply", name, y, y) : y;
}

/* ---- attention ---- */

int32_t pl_program_rotary(pl_program_writer *to, const char *name, int32_t x, int32_t positions, double share) {
  const pl_ir_name d = pl_ir_name_of("d");
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &d), pl_ir_real("base", to->model->numbers.rotary_base),
                                        pl_ir_real("share", share)};
  return pl_ir_op_infer(to->module, to->function, "rotary", name, 2, (const int32_t[]){x, positions}, share < 1 ? 3 : 2,
                        attributes);
}

/* Queries and keys, normalised per head and turned. */
static int32_t finished_heads(pl_program_writer *to, const char *name, const char *norm, int32_t x, int32_t positions) {
  if (to->model->qk_norm) x = pl_write_norm(to, norm, x, "d");
  return to->model->rotary ? pl_program_rotary(to, name, x, positions, to->model->numbers.rotary_share) : x;
}

static void plain_heads(pl_program_writer *to, int32_t x, int32_t positions, int32_t qkv[3]) {
  bool bias = to->model->attention_bias;
  qkv[0] = pl_write_linear(to, "attention.q", x, "hgrd", "h", bias);
  qkv[0] = finished_heads(to, "queries", "attention.q_norm", qkv[0], positions);
  qkv[1] = pl_write_linear(to, "attention.k", x, "hgd", "h", bias);
  qkv[1] = pl_write_rename(to, finished_heads(to, "keys", "attention.k_norm", qkv[1], positions), "s", "t");
  qkv[2] = pl_write_rename(to, pl_write_linear(to, "attention.v", x, "hge", "h", bias), "s", "t");
}

/* Masks compare positions, so that a sequence in another order is the same function. */
static int32_t core(pl_program_writer *to, const int32_t qkv[3], int32_t positions, bool window) {
  const pl_model *model = to->model;
  const int32_t inputs[] = {qkv[0], qkv[1], qkv[2], positions, pl_write_rename(to, positions, "s", "t")};
  pl_ir_attribute attributes[5] = {pl_ir_real("scale", 1 / sqrt((double)model->head_size))};
  int32_t n = 1;
  if (model->causal) attributes[n++] = pl_ir_integer("causal", 1);
  if (window) attributes[n++] = pl_ir_integer("window", model->sliding_window);
  if (model->numbers.attention_dropout > 0 && to->options->dropout) {
    attributes[n++] = pl_ir_real("p", model->numbers.attention_dropout);
    attributes[n++] = pl_ir_integer("seed", to->n_dropouts++);
  }
  return pl_ir_op_infer(to->module, to->function, "attention", "context", 5, inputs, n, attributes);
}

/* Without its bias, which acts behind the sum over the tensor group. */
static int32_t attention(pl_program_writer *to, int32_t x, bool window) {
  int32_t positions = pl_write_input(to, "positions", "s", to->options->seq), qkv[3];
  if (to->model->kv_rank > 0)
    pl_program_latent(to, x, positions, qkv);
  else
    plain_heads(to, x, positions, qkv);
  return pl_write_linear(to, "attention.out", core(to, qkv, positions, window), "greh", "gre", false);
}

/* ---- layers ---- */

int32_t pl_program_mlp(pl_program_writer *to, const char *path, int32_t x, int64_t width) {
  const pl_model *model = to->model;
  pl_arena *arena = to->module->arena;
  const char *up = pl_arena_printf(arena, "%s.up", path), *gate = pl_arena_printf(arena, "%s.gate", path);
  const char *down = pl_arena_printf(arena, "%s.down", path);
  if (arena->failed) return PL_IR_NONE;
  to->extent['f' - 'a'] = width;
  int32_t y = pl_write_linear(to, up, x, "hf", "h", model->mlp_bias);
  if (model->gated_mlp) {
    int32_t gated = pl_write_activation(to, "active", pl_write_linear(to, gate, x, "hf", "h", model->mlp_bias));
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
  int32_t y = attention(to, model->post_norm ? x : pl_write_norm(to, "norm1", x, "h"), kind.window);
  if (model->sandwich_norms) y = pl_write_norm(to, "attention.post_norm", y, "h");
  x = residual(to, "attended", x, y, model->output_bias ? "attention.out.bias" : NULL);
  if (model->post_norm) x = pl_write_norm(to, "norm1", x, "h");
  y = model->post_norm ? x : pl_write_norm(to, "norm2", x, "h");
  y = kind.experts ? pl_program_experts(to, y) : pl_program_mlp(to, "mlp", y, model->ffn_hidden);
  if (model->sandwich_norms) y = pl_write_norm(to, "mlp.post_norm", y, "h");
  x = residual(to, "y", x, y, model->mlp_bias && !kind.experts ? "mlp.down.bias" : NULL);
  return model->post_norm ? pl_write_norm(to, "norm2", x, "h") : x;
}

/* Dropout, where configured, acts once on the sum. */
static int32_t parallel(pl_program_writer *to, int32_t x, pl_layer_kind kind) {
  const pl_model *model = to->model;
  int32_t left = attention(to, pl_write_norm(to, "norm1", x, "h"), kind.window);
  int32_t right = pl_program_mlp(to, "mlp", pl_write_norm(to, "norm2", x, "h"), model->ffn_hidden);
  int32_t sum = pl_write_two(to, "add", "sum", left, right);
  if (model->output_bias) sum = pl_write_bias(to, "attention.out.bias", sum, "h");
  return residual(to, "y", x, sum, model->mlp_bias ? "mlp.down.bias" : NULL);
}

void pl_program_layer(pl_program_writer *to, const char *name, pl_layer_kind kind) {
  if (pl_write_function(to, name) == NULL) return;
  int32_t x = pl_write_argument(to, "x", "bsh");
  pl_write_result(to, to->model->parallel_residual ? parallel(to, x, kind) : sequential(to, x, kind));
}
