/* Numbers of a Hugging Face configuration that no time depends on, but what is computed does (pl_model_numbers,
 * workloads/ir/model.h): programs say them. Keys and defaults are those of the classes of transformers 4.x. */
#include <math.h>
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_families.h"
#include "workloads/import/model_file.h"

/* What families call them, and their classes' defaults; a key of NULL: there is none, the default always holds. */
static const struct numbers_of {
  const char *type, *epsilon_key, *base_key, *share_key;
  double epsilon, base, share;
  bool normalises;
} families[] = {
    {"gpt2", "layer_norm_epsilon", NULL, NULL, 1e-5, 10000, 1, false},
    {"gpt_neox", "layer_norm_eps", "rotary_emb_base", "rotary_pct", 1e-5, 10000, 0.25, false},
    {"bert", "layer_norm_eps", NULL, NULL, 1e-12, 10000, 1, false},
    {"mixtral", "rms_norm_eps", "rope_theta", NULL, 1e-5, 1e6, 1, true},
    {"nemotron", "norm_eps", "rope_theta", "partial_rotary_factor", 1e-5, 10000, 0.5, false},
    {"deepseek_v3", "rms_norm_eps", "rope_theta", NULL, 1e-6, 10000, 1, true},
    {"phi3", "rms_norm_eps", "rope_theta", "partial_rotary_factor", 1e-5, 10000, 1, false},
    {"internlm2", "rms_norm_eps", "rope_theta", NULL, 1e-6, 1e6, 1, false},
    {"glm", "rms_norm_eps", "rope_theta", "partial_rotary_factor", 1.5625e-7, 10000, 0.5, false},
    {"glm4", "rms_norm_eps", "rope_theta", "partial_rotary_factor", 1.5625e-7, 10000, 0.5, false},
    {"starcoder2", "norm_epsilon", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"llama4_text", "rms_norm_eps", "rope_theta", NULL, 1e-5, 500000, 1, false},
    {"gemma3_text", "rms_norm_eps", "rope_theta", NULL, 1e-6, 1e6, 1, false},
    {"opt", NULL, NULL, NULL, 1e-5, 10000, 1, false},
    {"bloom", "layer_norm_epsilon", NULL, NULL, 1e-5, 10000, 1, false},
    {"mpt", "layer_norm_epsilon", NULL, NULL, 1e-5, 10000, 1, false},
    {"falcon", "layer_norm_epsilon", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"gptj", "layer_norm_epsilon", NULL, "rotary_dim", 1e-5, 10000, 64, false},
    {"phi", "layer_norm_eps", "rope_theta", "partial_rotary_factor", 1e-5, 10000, 0.5, false},
    {"phimoe", "rms_norm_eps", "rope_theta", NULL, 1e-5, 1e6, 1, false},
    {"gpt_bigcode", "layer_norm_epsilon", NULL, NULL, 1e-5, 10000, 1, false},
    {"stablelm", "layer_norm_eps", "rope_theta", "partial_rotary_factor", 1e-5, 10000, 0.25, false},
    {"cohere", "layer_norm_eps", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"cohere2", "layer_norm_eps", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"roberta", "layer_norm_eps", NULL, NULL, 1e-12, 10000, 1, false},
    {"gpt_oss", "rms_norm_eps", "rope_theta", NULL, 1e-5, 150000, 1, true},
    {"olmo2", "rms_norm_eps", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"olmoe", "rms_norm_eps", "rope_theta", NULL, 1e-5, 10000, 1, false},
    {"granitemoe", "rms_norm_eps", "rope_theta", NULL, 1e-6, 10000, 1, true},
    {"glm4_moe", "rms_norm_eps", "rope_theta", "partial_rotary_factor", 1e-5, 10000, 0.5, true},
    {NULL, "rms_norm_eps", "rope_theta", NULL, 1e-6, 10000, 1, false}, /* the descendants of Llama */
};

static pl_code number(const pl_document *document, const pl_node *from, const char *key, double least, double most,
                      double *value, pl_error *error) {
  if (key == NULL || pl_node_get(from, key) == NULL) return PL_OK;
  PL_TRY(pl_node_number(document, from, key, value, error));
  if (*value >= least && *value <= most) return PL_OK;
  return pl_document_fail(document, pl_node_get(from, key), error, "'%s' is %g: a number from %g to %g is needed", key,
                          *value, least, most);
}

/* The file's probability, 0 where the family has none. */
static pl_code dropout(const pl_document *document, const pl_node *root, const char *key, double otherwise,
                       double *value, pl_error *error) {
  *value = key != NULL ? otherwise : 0;
  return number(document, root, key, 0, 1, value, error);
}

static pl_code read_rotary(const pl_document *document, const pl_node *root, const struct numbers_of *family,
                           int64_t head_size, pl_model_numbers *numbers, pl_error *error) {
  const double least = 1e-6, most = 1e12;
  const pl_node *group = pl_node_get(root, "rope_parameters");                     /* since transformers 5 */
  if (family->share_key != NULL && strcmp(family->share_key, "rotary_dim") == 0) { /* a number of elements */
    PL_TRY(number(document, root, family->share_key, 0, (double)head_size, &numbers->rotary_share, error));
    numbers->rotary_share = fmin(numbers->rotary_share / (double)head_size, 1);
    return PL_OK;
  }
  if (family->base_key == NULL) return PL_OK;
  PL_TRY(number(document, root, family->base_key, least, most, &numbers->rotary_base, error));
  if (group != NULL && pl_node_is_mapping(group))
    PL_TRY(number(document, group, "rope_theta", least, most, &numbers->rotary_base, error));
  return number(document, root, family->share_key, 0, 1, &numbers->rotary_share, error);
}

static pl_code read_routing(const pl_document *document, const pl_node *root, pl_model_numbers *numbers,
                            pl_error *error) {
  if (pl_node_get(root, "norm_topk_prob") != NULL)
    PL_TRY(pl_node_boolean(document, root, "norm_topk_prob", &numbers->normalises_routing, error));
  return number(document, root, "routed_scaling_factor", 1e-6, 1e6, &numbers->routing_scale, error);
}

pl_code pl_model_numbers_read(const pl_document *document, const pl_node *root, const pl_model_family *family,
                              pl_model *model, pl_error *error) {
  const struct numbers_of *of = families;
  while (of->type != NULL && strcmp(of->type, family->type) != 0)
    of++;
  pl_model_numbers *numbers = &model->numbers;
  *numbers = (pl_model_numbers){.norm_epsilon = of->epsilon,
                                .rotary_base = of->base,
                                .rotary_share = of->share,
                                .routing_scale = 1,
                                .normalises_routing = of->normalises};
  if (strcmp(family->type, "deepseek_v3") == 0) numbers->routing_scale = 2.5;
  PL_TRY(number(document, root, of->epsilon_key, 0, 1, &numbers->norm_epsilon, error));
  PL_TRY(read_rotary(document, root, of, model->attention.head_size, numbers, error));
  if (model->moe.n_experts > 0 && strcmp(family->type, "mixtral") != 0 && strcmp(family->type, "gpt_oss") != 0)
    PL_TRY(read_routing(document, root, numbers, error));
  model->positions.rotary = model->positions.rotary && numbers->rotary_share > 0;
  double otherwise = family->default_dropout;
  PL_TRY(dropout(document, root, family->embedding_dropout, otherwise, &numbers->embedding_dropout, error));
  PL_TRY(dropout(document, root, family->attention_dropout, family->default_attention_dropout,
                 &numbers->attention_dropout, error));
  return dropout(document, root, family->hidden_dropout, otherwise, &numbers->hidden_dropout, error);
}
