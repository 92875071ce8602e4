/* paceline model show: what a model is made of, and what one rank computes, keeps and sends of it under a shard. */
#include "workloads/command/cmd_model.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/cluster/cluster.h"
#include "core/system/command_line.h"
#include "core/text/json_writer.h"
#include "workloads/command/show_program_model.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/chain.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"
#include "workloads/strategy/job_defaults.h"
#include "workloads/strategy/strategy.h"

typedef struct request {
  const char *action, *file;
  pl_block_shard shard;
  pl_job_origin origin; /* of type and sequence length */
  bool json, ops;
  pl_error error;
} request;

enum {
  OPTION_TMP = 256,
  OPTION_EP,
  OPTION_ETP,
  OPTION_MBS,
  OPTION_SEQ,
  OPTION_SP,
  OPTION_RECOMPUTE,
  OPTION_DTYPE,
  OPTION_ATTENTION,
  OPTION_OPS,
  OPTION_JSON
};

static const struct argp_option options[] = {
    {"tmp", OPTION_TMP, "N", 0, "Tensor-parallel degree (default 1)", 0},
    {"ep", OPTION_EP, "N", 0, "Expert-parallel degree (default 1)", 0},
    {"etp", OPTION_ETP, "N", 0, "Tensor ranks over which each expert is cut: 1 or all (default 1)", 0},
    {"mbs", OPTION_MBS, "N", 0, "Sequences per microbatch (default 1)", 0},
    {"seq", OPTION_SEQ, "N", 0,
     "Sequence length (default: the positions that the model was trained with, at most 8192)", 0},
    {"sp", OPTION_SP, NULL, 0, "Sequence parallelism", 0},
    {"recompute", OPTION_RECOMPUTE, "HOW", 0, "none, selective, alternate or full (default none)", 0},
    {"dtype", OPTION_DTYPE, "TYPE", 0, "fp32, tf32, fp16 or bf16 (default: the model's torch_dtype, else fp16)", 0},
    {"attention", OPTION_ATTENTION, "KIND", 0, "flash (default) or unfused: separate products and softmax", 0},
    {"ops", OPTION_OPS, NULL, 0, "List the ops of every kind of block, forward and backward", 0},
    {"json", OPTION_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static pl_code parse_degree(const char *text, const char *what, int32_t *value, pl_error *error) {
  int64_t parsed;
  PL_TRY(pl_parse_integer(text, what, 1, 1 << 16, &parsed, error));
  *value = (int32_t)parsed;
  return PL_OK;
}

static pl_code parse_recompute(const char *text, pl_recompute *recompute, pl_error *error) {
  int found = pl_words_find(pl_recompute_names, text);
  if (found >= 0) *recompute = (pl_recompute)found;
  if (found >= 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--recompute '%s' is none of none, selective, alternate and full", text);
}

static pl_code parse_dtype(const char *text, pl_dtype *dtype, pl_error *error) {
  int found = pl_dtype_from_alias(text);
  if (found < 0 || found >= PL_DTYPE_FP8)
    return pl_fail(error, PL_BAD_INPUT, "--dtype '%s' is none of fp32, tf32, fp16 and bf16", text);
  *dtype = (pl_dtype)found;
  return PL_OK;
}

static pl_code parse_attention(const char *text, bool *flash, pl_error *error) {
  *flash = strcmp(text, "flash") == 0;
  if (*flash || strcmp(text, "unfused") == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--attention '%s' is neither flash nor unfused", text);
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
  request *in = state->input;
  switch (key) {
  case OPTION_TMP:
    parse_degree(text, "--tmp", &in->shard.tmp, &in->error);
    break;
  case OPTION_EP:
    parse_degree(text, "--ep", &in->shard.ep, &in->error);
    return 0;
  case OPTION_ETP:
    parse_degree(text, "--etp", &in->shard.etp, &in->error);
    break;
  case OPTION_MBS:
    parse_degree(text, "--mbs", &in->shard.mbs, &in->error);
    break;
  case OPTION_SEQ:
    in->origin.seq_is_given = true;
    pl_parse_integer(text, "--seq", 1, INT64_C(1) << 24, &in->shard.seq, &in->error);
    break;
  case OPTION_SP:
    in->shard.sp = true;
    break;
  case OPTION_RECOMPUTE:
    parse_recompute(text, &in->shard.recompute, &in->error);
    break;
  case OPTION_DTYPE:
    in->origin.dtype_is_given = true;
    parse_dtype(text, &in->shard.dtype, &in->error);
    break;
  case OPTION_ATTENTION:
    parse_attention(text, &in->shard.flash, &in->error);
    break;
  case OPTION_OPS:
    in->ops = true;
    break;
  case OPTION_JSON:
    in->json = true;
    break;
  case ARGP_KEY_ARG:
    if (state->arg_num > 1) pl_command_line_refuse_argument(text, &in->error);
    *(state->arg_num == 0 ? &in->action : &in->file) = text;
    break;
  case ARGP_KEY_END:
    if (in->action == NULL) {
      pl_fail(&in->error, PL_BAD_INPUT, "what is to be done? paceline model show FILE");
    } else if (strcmp(in->action, "show") != 0) {
      pl_fail(&in->error, PL_BAD_INPUT,
              "'%s' is not an action; there is: show FILE ('paceline list models' lists names)", in->action);
    } else if (in->file == NULL) {
      pl_fail(&in->error, PL_BAD_INPUT, "show needs a file: a Hugging Face config.json");
    }
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

typedef struct report {
  const pl_model *model;
  const pl_block_shard *shard;
  const pl_job_origin *origin;
  pl_block_program programs[PL_MODEL_CLASSES_MAX]; /* by class */
} report;

/* ---- text ---- */

static void print_tensor(const pl_block_program *program, uint32_t index) {
  if (index == PL_NONE) return;
  const pl_tensor *tensor = &program->tensors[index];
  static const char *const prefix[] = {
      [PL_TENSOR_ACTIVATION] = "",  [PL_TENSOR_MASK] = "m:",     [PL_TENSOR_SIGNS] = "s:",
      [PL_TENSOR_PARAMETER] = "w:", [PL_TENSOR_GRADIENT] = "d:", [PL_TENSOR_PARAMETER_GRADIENT] = "dw:"};
  printf(" %s%s[", prefix[tensor->kind], tensor->name);
  for (uint8_t i = 0; i < tensor->rank; i++)
    printf("%s%c=%lld", i ? "," : "", tensor->dims[i], (long long)tensor->extent[i]);
  printf("]%s", tensor->saved ? "*" : "");
}

static void print_op(const pl_block_program *program, const pl_op *op) {
  char size[PL_UNIT_TEXT_BYTES];
  printf("    %-28s %-13s %-9s", op->name, pl_op_kind_name((pl_op_kind)op->kind),
         pl_category_name((pl_category)op->category));
  if (op->kind == PL_OP_COLLECTIVE)
    printf(" %s %s", pl_collective_name((pl_collective_kind)op->collective), pl_format_bytes(op->size_bytes, size));
  else
    printf(" %lldx[%lld,%lld,%lld] %.4g GF %s", (long long)op->batch, (long long)op->m, (long long)op->n,
           (long long)op->k, op->flops * 1e-9, pl_format_bytes(op->bytes, size));
  printf(" :");
  for (int i = 0; i < PL_OP_INPUTS; i++)
    print_tensor(program, op->inputs[i]);
  printf(" ->");
  print_tensor(program, op->output);
  print_tensor(program, op->auxiliary);
  print_tensor(program, op->third);
  putchar('\n');
}

static void print_list(const char *title, const pl_block_program *program, pl_op_list list) {
  printf("  %s\n", title);
  for (uint32_t i = 0; i < list.n_ops; i++)
    print_op(program, &list.ops[i]);
}

enum { CLASS_NAME_BYTES = 32 };

/* "layer"; of unlike blocks "layer@3", with the first block of the class. */
static const char *class_name(const pl_model *model, int32_t class_of_blocks, char name[CLASS_NAME_BYTES]) {
  const char *kind = pl_block_kind_name(pl_model_class_kind(model, class_of_blocks));
  if (model->unlike.parts == NULL) return kind;
  snprintf(name, CLASS_NAME_BYTES, "%s@%d", kind, model->unlike.parts[class_of_blocks].first_block);
  return name;
}

static void print_blocks(const report *out) {
  char name[CLASS_NAME_BYTES];
  char saved[PL_UNIT_TEXT_BYTES], forward[PL_UNIT_TEXT_BYTES], backward[PL_UNIT_TEXT_BYTES], sent[PL_UNIT_TEXT_BYTES];
  printf("%-12s %6s %15s %11s %11s %11s %11s %9s\n", "block", "count", "parameters", "saved", "fwd peak", "bwd peak",
         "output", "ops f+b");
  for (int32_t c = 0; c < pl_model_n_classes(out->model); c++) {
    const pl_block_program *program = &out->programs[c];
    int32_t count = pl_model_count_class(out->model, c);
    if (count == 0) continue;
    printf("%-12s %6d %15.0f %11s %11s %11s %11s %5u+%u\n", class_name(out->model, c, name), count, program->parameters,
           pl_format_bytes(program->saved_bytes, saved), pl_format_bytes(program->forward_peak_bytes, forward),
           pl_format_bytes(program->backward_peak_bytes, backward), pl_format_bytes(program->output_bytes, sent),
           program->forward.n_ops, program->backward.n_ops);
  }
}

/* What is there only in some models. */
static void print_kinds(const pl_model *model) {
  if (model->attention.kv_rank > 0)
    printf("  latent attention: queries of rank %lld, key-values of rank %lld, %lld rotary, values of %lld\n",
           (long long)model->attention.q_rank, (long long)model->attention.kv_rank,
           (long long)model->attention.rope_size, (long long)model->attention.value_size);
  if (model->moe.n_experts == 0) return;
  printf("  %lld experts of width %lld in %d layers, %lld per token", (long long)model->moe.n_experts,
         (long long)model->moe.expert_ffn, pl_model_count_blocks(model, PL_BLOCK_EXPERT_LAYER),
         (long long)model->moe.topk);
  if (model->moe.shared_ffn > 0) printf(", shared experts of width %lld", (long long)model->moe.shared_ffn);
  printf("; %.0f parameters active per token\n", pl_model_active_parameters(model));
}

static void print_transformer(const pl_model *model) {
  printf("  layers %d in %d blocks, hidden %lld, ffn %lld%s (%s), heads %lld x %lld, key-value heads %lld\n",
         model->n_layers, pl_model_n_blocks(model), (long long)model->width.hidden, (long long)model->width.ffn_hidden,
         model->mlp.gated_mlp ? " gated" : "", model->mlp.activation, (long long)model->attention.n_heads,
         (long long)model->attention.head_size, (long long)model->attention.n_kv_heads);
  print_kinds(model);
  if (model->ends.n_predictions > 0)
    printf("  multi-token prediction: %d modules of %.0f parameters besides, in programs and strategy trees\n",
           model->ends.n_predictions, pl_model_prediction_parameters(model) / model->ends.n_predictions);
  printf("  vocabulary %lld%s, positions %lld %s, %s norms%s%s\n", (long long)model->width.vocab,
         model->ends.tied_embeddings ? " (tied head)" : "", (long long)model->positions.max_positions,
         model->positions.rotary              ? "rotary"
         : model->positions.learned_positions ? "learned"
                                              : "without encoding",
         model->norms.norm == PL_NORM_RMS     ? "RMS"
         : model->norms.norm == PL_NORM_PIXEL ? "pixel"
                                              : "layer",
         model->norms.parallel_residual ? ", parallel residual" : "",
         model->norms.post_norm ? " behind the residual" : "");
}

static void print_network(const pl_model *model) {
  const pl_picture *picture = &model->unlike.parts[0].chain->in;
  printf("  %d blocks on pictures of %d x %d x %d\n", pl_model_n_blocks(model), picture->channels, picture->height,
         picture->width);
}

static void print_text(const report *out, bool ops) {
  const pl_model *model = out->model;
  const pl_block_shard *shard = out->shard;
  printf("%s: %s, %s\n", model->name, model->family, model->architecture);
  if (model->unlike.parts != NULL && model->unlike.parts[0].chain != NULL)
    print_network(model);
  else
    print_transformer(model);
  printf("  parameters %.0f", model->count.parameters);
  if (model->count.trained_parameters != model->count.parameters)
    printf(" (%.0f trained, with the language-model head)", model->count.trained_parameters);
  printf("\n  %.6g TFLOP per sequence of %lld, forward and backward\n",
         pl_model_flops_per_sequence(model, shard->seq) * 1e-12, (long long)shard->seq);
  printf("one rank of tmp=%d,sp=%d,mbs=%d,seq=%lld,recompute=%s, %s, %s attention:\n", shard->tmp, shard->sp,
         shard->mbs, (long long)shard->seq, pl_recompute_names[shard->recompute], pl_dtype_name(shard->dtype),
         shard->flash ? "fused" : "unfused");
  const pl_job job = {.dtype = shard->dtype, .seq = shard->seq};
  pl_job_origin_print(stdout, 12, model, &job, out->origin, 0);
  print_blocks(out);
  char name[CLASS_NAME_BYTES];
  for (int32_t c = 0; c < pl_model_n_classes(model) && ops; c++) {
    if (out->programs[c].forward.n_ops == 0 || pl_model_count_class(model, c) == 0) continue;
    printf(
        "%s (* kept for the backward pass; w: parameter, d: gradient, dw: gradient of a parameter, m: dropout mask)\n",
        class_name(model, c, name));
    print_list("forward", &out->programs[c], out->programs[c].forward);
    print_list("backward", &out->programs[c], out->programs[c].backward);
  }
}

/* ---- JSON ---- */

static void put_op(pl_json *json, const pl_op *op) {
  pl_json_open_object(json);
  pl_json_put_string(json, "name", op->name);
  pl_json_put_string(json, "kind", pl_op_kind_name((pl_op_kind)op->kind));
  pl_json_put_string(json, "category", pl_category_name((pl_category)op->category));
  if (op->kind == PL_OP_COLLECTIVE) {
    pl_json_put_string(json, "collective", pl_collective_name((pl_collective_kind)op->collective));
    pl_json_put_number(json, "size_bytes", op->size_bytes);
  } else {
    pl_json_put_integer(json, "batch", op->batch);
    pl_json_put_integer(json, "m", op->m);
    pl_json_put_integer(json, "n", op->n);
    pl_json_put_integer(json, "k", op->k);
    pl_json_put_number(json, "flops", op->flops);
    pl_json_put_number(json, "bytes", op->bytes);
  }
  pl_json_close_object(json);
}

static void put_list(pl_json *json, const char *key, pl_op_list list) {
  pl_json_key(json, key);
  pl_json_open_array(json);
  for (uint32_t i = 0; i < list.n_ops; i++)
    put_op(json, &list.ops[i]);
  pl_json_close_array(json);
}

static void put_block(pl_json *json, const char *name, const pl_block_program *program, bool ops) {
  pl_json_key(json, name);
  pl_json_open_object(json);
  pl_json_put_number(json, "parameters", program->parameters);
  pl_json_put_number(json, "tied_parameters", program->tied_parameters);
  if (program->expert_parameters > 0) pl_json_put_number(json, "expert_parameters", program->expert_parameters);
  pl_json_put_number(json, "saved_bytes", program->saved_bytes);
  pl_json_put_number(json, "forward_peak_bytes", program->forward_peak_bytes);
  pl_json_put_number(json, "backward_peak_bytes", program->backward_peak_bytes);
  pl_json_put_number(json, "output_bytes", program->output_bytes);
  pl_json_put_number(json, "model_flops", program->model_flops);
  if (ops) {
    put_list(json, "forward", program->forward);
    put_list(json, "backward", program->backward);
  }
  pl_json_close_object(json);
}

static void put_shard(pl_json *json, const pl_block_shard *shard) {
  pl_json_key(json, "shard");
  pl_json_open_object(json);
  pl_json_put_integer(json, "tmp", shard->tmp);
  if (shard->ep > 1) pl_json_put_integer(json, "ep", shard->ep);
  if (shard->etp > 1) pl_json_put_integer(json, "etp", shard->etp);
  pl_json_put_boolean(json, "sp", shard->sp);
  pl_json_put_integer(json, "mbs", shard->mbs);
  pl_json_put_integer(json, "seq", shard->seq);
  pl_json_put_string(json, "recompute", pl_recompute_names[shard->recompute]);
  pl_json_put_string(json, "dtype", pl_dtype_name(shard->dtype));
  pl_json_put_boolean(json, "flash", shard->flash);
  pl_json_close_object(json);
}

static void put_experts(pl_json *json, const pl_model *model) {
  if (model->moe.n_experts == 0) return;
  pl_json_put_integer(json, "n_experts", model->moe.n_experts);
  pl_json_put_integer(json, "experts_per_token", model->moe.topk);
  pl_json_put_integer(json, "expert_ffn", model->moe.expert_ffn);
  pl_json_put_integer(json, "shared_ffn", model->moe.shared_ffn);
  pl_json_put_number(json, "active_parameters", pl_model_active_parameters(model));
}

static void print_json(const report *out, bool ops) {
  const pl_model *model = out->model;
  pl_json json;
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "model", model->name);
  pl_json_put_string(&json, "family", model->family);
  pl_json_put_string(&json, "architecture", model->architecture);
  pl_json_put_integer(&json, "n_layers", model->n_layers);
  pl_json_put_integer(&json, "n_blocks", pl_model_n_blocks(model));
  pl_json_put_integer(&json, "hidden", model->width.hidden);
  pl_json_put_integer(&json, "ffn_hidden", model->width.ffn_hidden);
  pl_json_put_integer(&json, "n_heads", model->attention.n_heads);
  pl_json_put_integer(&json, "n_kv_heads", model->attention.n_kv_heads);
  pl_json_put_integer(&json, "head_size", model->attention.head_size);
  put_experts(&json, model);
  pl_json_put_integer(&json, "vocab", model->width.vocab);
  pl_json_put_integer(&json, "max_positions", model->positions.max_positions);
  pl_json_put_boolean(&json, "tied_embeddings", model->ends.tied_embeddings);
  pl_json_put_number(&json, "parameters", model->count.parameters);
  pl_json_put_number(&json, "trained_parameters", model->count.trained_parameters);
  if (model->ends.n_predictions > 0)
    pl_json_put_number(&json, "multi_token_parameters", pl_model_prediction_parameters(model));
  pl_json_put_number(&json, "flops_per_sequence", pl_model_flops_per_sequence(model, out->shard->seq));
  pl_job_origin_json(&json, model, out->origin);
  put_shard(&json, out->shard);
  pl_json_key(&json, "blocks");
  pl_json_open_object(&json);
  char name[CLASS_NAME_BYTES];
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    if (pl_model_count_class(model, c) > 0) put_block(&json, class_name(model, c, name), &out->programs[c], ops);
  pl_json_close_object(&json);
  pl_json_close_object(&json);
}

static pl_code show(request *in, pl_arena *arena) {
  pl_model model;
  report out = {.model = &model, .shard = &in->shard, .origin = &in->origin};
  PL_TRY(pl_model_load_any(in->file, arena, &model, &in->error));
  pl_job job = {.dtype = in->shard.dtype, .seq = in->shard.seq};
  in->origin.products_are_given = true; /* shown in the model's own type */
  PL_TRY(pl_job_defaults_take(&model, in->file, &job, &in->origin, &in->error));
  if (!pl_model_has_blocks(&model) && in->ops)
    return pl_fail(&in->error, PL_BAD_INPUT, "--ops: of %s 'paceline program print --model %s' lists them",
                   model.program.onnx != NULL   ? "an ONNX file"
                   : model.program.dlrm != NULL ? "a recommendation model"
                                                : "a model of several kinds of layers",
                   in->file);
  if (!pl_model_has_blocks(&model))
    return pl_program_model_show(&model, &job, in->shard.mbs, in->json, arena, &in->error);
  in->shard.dtype = job.dtype;
  in->shard.seq = job.seq;
  for (int32_t c = 0; c < pl_model_n_classes(&model); c++)
    PL_TRY(pl_block_class_program_take(&model, c, &in->shard, arena, &out.programs[c], &in->error));
  (in->json ? print_json : print_text)(&out, in->ops);
  return PL_OK;
}

int pl_cmd_model(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse_option,
      "show FILE",
      "Shows a model (a Hugging Face config.json, or an ONNX file): dimensions, parameters, FLOPs and, for one rank of "
      "a "
      "tensor-parallel group, what each block computes and keeps. FILE may be a name of 'paceline list models'.\v"
      "Example:\n  paceline model show llama-3-70b --tmp 8 --sp",
      NULL,
      NULL,
      NULL};
  request in = {.shard = {.tmp = 1, .mbs = 1, .dtype = PL_DTYPE_FP16, .flash = true}, .error = PL_ERROR_INIT};
  char name[] = "paceline model", *given = argv[0];
  argv[0] = name; /* what argp calls us in messages */
  pl_command_line_parse("model", &argp, argc, argv, false, &in, &in.error);
  argv[0] = given;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = in.error.code != PL_OK ? in.error.code : show(&in, &arena);
  pl_arena_release(&arena);
  if (code != PL_OK) return pl_command_report("model", &in.error);
  return pl_command_finish("model", 0);
}
