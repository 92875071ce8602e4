/* See workloads/launch/launch.h: the dimensions that a launch file states, as the config.json of the Hugging Face
 * family that has this architecture. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/launch/launch.h"

static const char *family_of(const pl_launch_model *m) {
  if (m->kv_rank > 0) return "deepseek_v3";
  if (m->n_experts > 1 && (m->n_dense_layers > 0 || m->expert_step > 1)) return "glm4_moe";
  if (m->n_experts > 1) return m->qk_norm ? "qwen3_moe" : m->shared_ffn > 0 ? "qwen2_moe" : "mixtral";
  if (m->gated) return m->qk_norm ? "qwen3" : "llama";
  if (m->bert) return "bert";
  if (m->squared_relu || m->n_kv_heads != m->n_heads) return "nemotron";
  return m->rotary ? "gpt_neox" : "gpt2";
}

/* What the family has and the file says otherwise. */
static pl_code assume_family(pl_launch *launch, const char *family, pl_error *error) {
  const pl_launch_model *m = &launch->model;
  bool layer_norm = strcmp(family, "gpt2") == 0 || strcmp(family, "gpt_neox") == 0 || strcmp(family, "bert") == 0 ||
                    strcmp(family, "nemotron") == 0;
  if (layer_norm == m->rms_norm)
    PL_TRY(pl_launch_assume(launch, error, "%s norms, which %s has", layer_norm ? "layer" : "RMS", family));
  if (!layer_norm && !m->rotary) PL_TRY(pl_launch_assume(launch, error, "rotary positions, which %s has", family));
  if (m->hidden_dropout > 0 && !layer_norm)
    PL_TRY(pl_launch_assume(launch, error, "no dropout behind products: %s has none", family));
  if (m->kv_rank > 0 && (m->bias || m->qkv_bias))
    PL_TRY(pl_launch_assume(launch, error, "no biases in latent attention: %s has none", family));
  return PL_OK;
}

static void put_given(pl_json *json, const char *key, int64_t value) {
  if (value > 0) pl_json_put_integer(json, key, value);
}

static void put_experts(pl_json *json, const pl_launch_model *m) {
  static const char *const counts[] = {"num_local_experts", "num_experts", "n_routed_experts"};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    pl_json_put_integer(json, counts[i], m->n_experts);
  pl_json_put_integer(json, "num_experts_per_tok", m->topk);
  pl_json_put_integer(json, "moe_intermediate_size", m->expert_ffn);
  put_given(json, "shared_expert_intermediate_size", m->shared_ffn);
  if (m->shared_ffn > 0 && m->expert_ffn > 0) put_given(json, "n_shared_experts", m->shared_ffn / m->expert_ffn);
  if (m->capacity_factor > 0) pl_json_put_number(json, "expert_capacity_factor", m->capacity_factor);
  put_given(json, "first_k_dense_replace", m->n_dense_layers);
  put_given(json, "moe_layer_freq", m->expert_step);
  put_given(json, "moe_layer_phase", m->expert_phase);
  pl_json_put_boolean(json, "use_qk_norm", m->qk_norm);
}

static void put_latent(pl_json *json, const pl_launch_model *m) {
  pl_json_key(json, "q_lora_rank");
  if (m->q_rank > 0)
    pl_json_integer(json, m->q_rank);
  else
    pl_json_string(json, NULL);
  pl_json_put_integer(json, "kv_lora_rank", m->kv_rank);
  pl_json_put_integer(json, "qk_nope_head_dim", m->nope_size);
  pl_json_put_integer(json, "qk_rope_head_dim", m->rope_size);
  pl_json_put_integer(json, "v_head_dim", m->value_size);
}

/* Keys of all families: each reads its own. */
static void put_configuration(pl_json *json, const pl_launch *launch, const char *family) {
  const pl_launch_model *m = &launch->model;
  bool gpt2 = strcmp(family, "gpt2") == 0;
  pl_json_open_object(json);
  pl_json_put_string(json, "model_type", family);
  pl_json_put_string(json, "name", PL_LAUNCH_MODEL_NAME);
  pl_json_put_integer(json, gpt2 ? "n_layer" : "num_hidden_layers", m->n_layers);
  pl_json_put_integer(json, gpt2 ? "n_embd" : "hidden_size", m->hidden);
  pl_json_put_integer(json, gpt2 ? "n_head" : "num_attention_heads", m->n_heads);
  bool mixtral = strcmp(family, "mixtral") == 0;
  pl_json_put_integer(json, gpt2 ? "n_inner" : "intermediate_size", mixtral ? m->expert_ffn : m->ffn);
  pl_json_put_integer(json, "num_key_value_heads", m->n_kv_heads);
  pl_json_put_integer(json, "vocab_size", m->vocab);
  pl_json_put_integer(json, gpt2 ? "n_positions" : "max_position_embeddings", m->positions);
  if (m->kv_rank == 0 && m->head_size > 0) pl_json_put_integer(json, "head_dim", m->head_size);
  if (m->n_experts > 1) put_experts(json, m);
  if (m->n_experts <= 1 && m->kv_rank > 0) {
    pl_json_key(json, "n_routed_experts");
    pl_json_string(json, NULL);
  }
  if (m->kv_rank > 0) put_latent(json, m);
  pl_json_put_boolean(json, "tie_word_embeddings", !m->untied);
  pl_json_put_boolean(json, "attention_bias", (m->bias || m->qkv_bias) && m->kv_rank == 0);
  pl_json_put_boolean(json, "mlp_bias", m->bias);
  pl_json_put_boolean(json, "use_parallel_residual", false);
  static const char *const hidden[] = {"embd_pdrop", "resid_pdrop", "hidden_dropout_prob", "hidden_dropout"};
  static const char *const attention[] = {"attn_pdrop", "attention_probs_dropout_prob", "attention_dropout"};
  for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
    pl_json_put_number(json, hidden[i], m->hidden_dropout);
  for (size_t i = 0; i < sizeof attention / sizeof attention[0]; i++)
    pl_json_put_number(json, attention[i], m->attention_dropout);
  pl_json_close_object(json);
}

static pl_code check_stated(const pl_launch *launch, pl_error *error) {
  const pl_launch_model *m = &launch->model;
  const struct {
    const char *what;
    int64_t value;
  } needed[] = {{"the number of layers", m->n_layers},
                {"the hidden size", m->hidden},
                {"the number of attention heads", m->n_heads},
                {"the number of positions, or the sequence length", m->positions}};
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (needed[i].value == 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: %s is not in this file; name the model with --model", launch->path,
                     needed[i].what);
  return PL_OK;
}

pl_code pl_launch_model_text(pl_launch *launch, pl_arena *arena, const char **text, pl_error *error) {
  *text = NULL;
  if (!launch->has_model || launch->model_name != NULL) return PL_OK;
  PL_TRY(check_stated(launch, error));
  const char *family = family_of(&launch->model);
  PL_TRY(assume_family(launch, family, error));
  char *made = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&made, &size);
  if (stream == NULL) return pl_fail_memory(error, "a model");
  pl_json json;
  pl_json_init(&json, stream, true);
  put_configuration(&json, launch, family);
  pl_code code = fclose(stream) == 0 ? PL_OK : pl_fail_memory(error, "a model");
  if (code == PL_OK && (*text = pl_arena_strdup(arena, made)) == NULL) code = pl_fail_memory(error, "a model");
  free(made);
  return code;
}
