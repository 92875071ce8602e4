/* See workloads/command/show_program_model.h. */
#include "workloads/command/show_program_model.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/text/json_writer.h"
#include "workloads/import/program_build.h"
#include "workloads/ir/dlrm.h"
#include "workloads/ir/stack.h"
#include "workloads/language/ir_parameters.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_work.h"
#include "workloads/onnx/onnx_program.h"

enum { NAME_BYTES = 100 };

const char *pl_onnx_loss_text(const pl_model *model, char text[PL_ONNX_LOSS_TEXT_BYTES]) {
  const pl_onnx_model *onnx = model->program.onnx;
  char name[NAME_BYTES];
  if (onnx->cross_entropy)
    snprintf(text, PL_ONNX_LOSS_TEXT_BYTES,
             "cross entropy over the last dimension of '%s', assumed: a product with weights makes it",
             pl_printable(onnx->output, name, sizeof(name)));
  else
    snprintf(text, PL_ONNX_LOSS_TEXT_BYTES, "mean of '%s', assumed: no product with weights makes it",
             pl_printable(onnx->output, name, sizeof(name)));
  return text;
}

static int32_t n_calls(const pl_ir_module *module, int32_t function) {
  const pl_ir_function *main = module->functions[module->n_functions - 1];
  int32_t n = 0;
  for (int32_t i = 0; i < main->n_ops; i++)
    n += main->ops[i].callee == function;
  return n;
}

static const char *sizes(const pl_onnx_model *onnx, bool more, char text[NAME_BYTES]) {
  char batch[32] = "any number of", seq[64] = "";
  if (onnx->batch > 0) snprintf(batch, sizeof(batch), "%" PRId64, onnx->batch);
  if (onnx->has_seq && onnx->seq > 0) snprintf(seq, sizeof(seq), " of %" PRId64 " tokens", onnx->seq);
  if (onnx->has_seq && onnx->seq == 0) snprintf(seq, sizeof(seq), " of any length");
  snprintf(text, NAME_BYTES, "%s samples%s%s", batch, seq,
           more ? "; the file says 1, taken for any number, assumed" : "");
  return text;
}

static void print_onnx(const pl_model *model) {
  const pl_onnx_model *onnx = model->program.onnx;
  char text[PL_ONNX_LOSS_TEXT_BYTES], name[NAME_BYTES];
  printf("%s: ONNX, operator set %" PRId64 ", %d nodes", model->name, onnx->opset, onnx->n_nodes);
  if (onnx->producer[0] != 0) printf(", by %s", pl_printable(onnx->producer, name, sizeof(name)));
  printf("\n  inputs     %s\n", sizes(onnx, model->of_one_sample, name));
  if (onnx->empty_cache) printf("  cache      %s\n", PL_ONNX_EMPTY_CACHE);
  printf("  parameters %.0f\n  layers     %d\n", model->count.parameters, model->n_layers);
  printf("  loss       %s\n", pl_onnx_loss_text(model, text));
  if (onnx->n_outputs > 1) printf("  outputs    %d; the others have no loss and are left out\n", onnx->n_outputs);
  if (onnx->tied) printf("  tied       the head reads the embedding's table\n");
}

static void print_mlp(const char *name, const int64_t *widths, int32_t n_layers) {
  printf("  %-10s", name);
  for (int32_t i = 0; i <= n_layers; i++)
    printf("%s%" PRId64, i == 0 ? " " : "-", widths[i]);
  printf("\n");
}

static void print_dlrm(const pl_model *model) {
  const pl_dlrm *dlrm = model->program.dlrm;
  printf("%s: DLRM\n  parameters %.0f\n", model->name, model->count.parameters);
  print_mlp("bottom", dlrm->bottom, dlrm->n_bottom);
  for (int32_t i = 0; i < dlrm->n_groups; i++)
    printf("  %-10s %" PRId64 " of %" PRId64 " rows, %" PRId64 " wide, %" PRId64 " id%s each\n", "tables",
           dlrm->groups[i].tables, dlrm->groups[i].rows, dlrm->width, dlrm->lookups, dlrm->lookups == 1 ? "" : "s");
  printf("  %-10s %s\n", "meet by",
         dlrm->concatenates ? "standing behind each other"
         : dlrm->itself     ? "products of pairs, and with themselves"
                            : "products of pairs");
  print_mlp("top", dlrm->top, dlrm->n_top);
}

/* What is taken for the time of kernels that no device was measured with, and of those that a program has not. */
#define SCANS_ASSUMED                                                                                                  \
  "assumed: a scan is the batched products of its chunks, one after the other, and their states as fast as memory; "   \
  "convolutions along tokens are as fast as memory"
#define EXPERTS_ASSUMED "tokens are evenly spread over the experts"

static bool has_scans(const pl_stack *stack, int32_t n_layers) {
  bool any = false;
  for (int32_t i = 0; i < n_layers; i++)
    any = any || stack->layers[i].mixer > PL_MIXER_ATTENTION;
  return any;
}

static bool has_experts(const pl_stack *stack, int32_t n_layers) {
  bool any = false;
  for (int32_t i = 0; i < n_layers; i++)
    any = any || stack->layers[i].feed == PL_FEED_EXPERTS;
  return any;
}

const char *pl_program_kernels_assumed(const pl_model *model) {
  if (model->program.stack == NULL || model->program.stack->kind != PL_STACK_MIXERS) return NULL;
  bool scans = has_scans(model->program.stack, model->n_layers),
       experts = has_experts(model->program.stack, model->n_layers);
  if (scans) return experts ? SCANS_ASSUMED "; " EXPERTS_ASSUMED : SCANS_ASSUMED;
  return experts ? "assumed: " EXPERTS_ASSUMED : NULL;
}

static void print_layers(const pl_model *model) {
  static const char *const mixers[PL_MIXER_COUNT] = {[PL_MIXER_ATTENTION] = "attention",
                                                     [PL_MIXER_STATE_SPACE] = "state space",
                                                     [PL_MIXER_BESIDE] = "attention and state space side by side",
                                                     [PL_MIXER_DELTA_RULE] = "gated delta rule"};
  static const char *const feeds[PL_FEED_COUNT] = {[PL_FEED_MLP] = "MLP", [PL_FEED_EXPERTS] = "experts"};
  int32_t n[PL_MIXER_COUNT][PL_FEED_COUNT] = {{0}};
  const char *between = "";
  if (model->program.stack->kind == PL_STACK_ENCODER_DECODER) {
    printf("  layers     %d of the encoder, %d of the decoder, which has as many tokens (assumed)\n",
           model->program.stack->n_encoder, model->n_layers - model->program.stack->n_encoder);
    return;
  }
  for (int32_t i = 0; i < model->n_layers; i++)
    n[model->program.stack->layers[i].mixer][model->program.stack->layers[i].feed]++;
  printf("  layers     ");
  for (int m = 0; m < PL_MIXER_COUNT; m++)
    for (int f = 0; f < PL_FEED_COUNT; f++) {
      if (n[m][f] == 0) continue;
      const char *mixer = mixers[m] != NULL ? mixers[m] : "", *feed = feeds[f] != NULL ? feeds[f] : "";
      printf("%s%d of %s%s%s", between, n[m][f], mixer, mixer[0] != 0 && feed[0] != 0 ? " and " : "", feed);
      between = ", ";
    }
  printf("\n");
}

static void print_stack(const pl_model *model) {
  const pl_stack *stack = model->program.stack;
  printf("%s: %s (%s), %s\n  parameters %.0f", model->name, model->family, model->architecture, stack->title,
         model->count.parameters);
  if (model->count.trained_parameters != model->count.parameters)
    printf("; %.0f with what training it needs", model->count.trained_parameters);
  printf("\n");
  print_layers(model);
  printf("  hidden     %" PRId64 "\n", model->width.hidden);
  if (stack->kind == PL_STACK_PATCHES)
    printf("  patches    %" PRId64 " of %" PRId64 "x%" PRId64 " points and %" PRId64
           " channels, and the class: %" PRId64 " tokens; %" PRId64 " classes\n",
           pl_stack_patches(stack), stack->patch_height, stack->patch_width, stack->channels,
           pl_stack_patches(stack) + 1, stack->classes);
  if (stack->state_heads > 0)
    printf("  state      %" PRId64 " heads of %" PRId64 " in %" PRId64 " groups, %" PRId64
           " states each, chunks of %" PRId64 "\n",
           stack->state_heads, stack->state_head_size, stack->state_groups, stack->state_size, stack->chunk);
  const char *assumed = pl_program_kernels_assumed(model);
  if (assumed != NULL) printf("  kernels    %s\n", assumed);
}

bool pl_program_model_has_tokens(const pl_model *model) {
  if (model->program.stack != NULL) return model->program.stack->kind != PL_STACK_PATCHES;
  if (model->program.onnx != NULL) return model->program.onnx->has_seq;
  return model->program.dlrm == NULL && model->positions.max_positions != 1;
}

static void print_text(const pl_model *model, const pl_ir_module *module, const pl_job *job, int64_t mbs,
                       pl_arena *arena) {
  (model->program.onnx != NULL ? print_onnx : model->program.stack != NULL ? print_stack : print_dlrm)(model);
  printf("forward pass of %" PRId64 " samples", mbs);
  if (pl_program_model_has_tokens(model)) printf(" of %" PRId64 " tokens", job->seq);
  printf(":\n  %-14s %6s %6s %14s %12s\n", "function", "calls", "ops", "parameters", "GFLOP");
  for (int32_t f = 0; f + 1 < module->n_functions; f++) {
    const pl_ir_work work = pl_ir_function_work(module, f);
    printf("  @%-13s %6d %6d %14.0f %12.6g\n", module->functions[f]->name, n_calls(module, f),
           module->functions[f]->n_ops, pl_ir_parameters_count(module, f, arena),
           (work.product_flops + work.attention_flops + work.other_flops) * 1e-9);
  }
}

static void put_onnx(pl_json *json, const pl_model *model) {
  const pl_onnx_model *onnx = model->program.onnx;
  pl_json_put_integer(json, "opset", onnx->opset);
  pl_json_put_string(json, "producer", onnx->producer);
  pl_json_put_integer(json, "n_nodes", onnx->n_nodes);
  pl_json_put_integer(json, "n_layers", model->n_layers);
  pl_json_put_number(json, "parameters", model->count.parameters);
  pl_json_put_boolean(json, "tied_embeddings", onnx->tied);
  pl_json_put_string(json, "output", onnx->output);
  pl_json_put_string(json, "loss", onnx->cross_entropy ? "cross_entropy" : "mean");
}

static void put_dlrm(pl_json *json, const pl_model *model) {
  pl_json_put_integer(json, "n_tables", pl_dlrm_n_tables(model->program.dlrm));
  pl_json_put_integer(json, "embedding_size", model->program.dlrm->width);
  pl_json_put_integer(json, "lookups", model->program.dlrm->lookups);
  pl_json_put_number(json, "parameters", model->count.parameters);
  pl_json_put_string(json, "loss", "cross_entropy");
}

static void put_stack(pl_json *json, const pl_model *model) {
  pl_json_put_string(json, "class", model->architecture);
  pl_json_put_integer(json, "n_layers", model->n_layers);
  pl_json_put_integer(json, "hidden_size", model->width.hidden);
  pl_json_put_number(json, "parameters", model->count.parameters);
  pl_json_put_number(json, "trained_parameters", model->count.trained_parameters);
  pl_json_put_boolean(json, "tied_embeddings", model->ends.tied_embeddings);
  pl_json_put_string(json, "loss", "cross_entropy");
}

static void print_json(const pl_model *model, const pl_ir_module *module, const pl_job *job, int64_t mbs,
                       pl_arena *arena) {
  pl_json json;
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "model", model->name);
  pl_json_put_string(&json, "family", model->family);
  (model->program.onnx != NULL ? put_onnx : model->program.stack != NULL ? put_stack : put_dlrm)(&json, model);
  pl_json_put_integer(&json, "mbs", mbs);
  pl_json_put_integer(&json, "seq", job->seq);
  pl_json_key(&json, "functions");
  pl_json_open_object(&json);
  for (int32_t f = 0; f + 1 < module->n_functions; f++) {
    const pl_ir_work work = pl_ir_function_work(module, f);
    pl_json_key(&json, module->functions[f]->name);
    pl_json_open_object(&json);
    pl_json_put_integer(&json, "calls", n_calls(module, f));
    pl_json_put_integer(&json, "ops", module->functions[f]->n_ops);
    pl_json_put_number(&json, "parameters", pl_ir_parameters_count(module, f, arena));
    pl_json_put_number(&json, "flops", work.product_flops + work.attention_flops + work.other_flops);
    pl_json_close_object(&json);
  }
  pl_json_close_object(&json);
  pl_json_close_object(&json);
}

pl_code pl_program_model_show(const pl_model *model, const pl_job *job, int64_t mbs, bool json, pl_arena *arena,
                              pl_error *error) {
  int64_t batch = model->program.onnx != NULL && model->program.onnx->batch > 0 ? model->program.onnx->batch : mbs;
  pl_model_program_options options = pl_model_program_defaults(batch, 1, job->seq);
  options.element = (pl_ir_element)job->dtype;
  pl_ir_module module;
  PL_TRY(pl_model_program_build(model, &options, arena, &module, error));
  (json ? print_json : print_text)(model, &module, job, batch, arena);
  return PL_OK;
}
