/* See workloads/import/model_reader.h. */
#include "workloads/import/model_reader.h"

#include <string.h>

bool pl_reader_has(const pl_model_reader *in, const char *key) {
  return pl_node_get(in->root, key) != NULL;
}

bool pl_reader_mentions(const pl_model_reader *in, const char *key) {
  for (size_t i = 0; i < pl_node_count(in->root); i++) {
    const char *name = NULL;
    pl_node_entry(in->document, in->root, i, &name);
    if (name != NULL && strcmp(name, key) == 0) return true;
  }
  return false;
}

const char *pl_reader_dimension(const pl_model_reader *in, const char *key) {
  static const char *const names[][6] = {
      {"hidden_size", "n_embd", "n_embed", "d_model"},
      {"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
      {"num_attention_heads", "n_head", "n_heads", "num_heads"},
      {"intermediate_size", "n_inner", "ffn_dim"},
      {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"},
  };
  if (key == NULL || pl_reader_has(in, key)) return key;
  for (size_t group = 0; group < sizeof names / sizeof names[0]; group++) {
    bool is_this = false;
    for (size_t i = 0; i < 6 && names[group][i] != NULL; i++)
      is_this = is_this || strcmp(names[group][i], key) == 0;
    for (size_t i = 0; is_this && i < 6 && names[group][i] != NULL; i++)
      if (pl_reader_has(in, names[group][i])) return names[group][i];
  }
  return key;
}

pl_code pl_reader_integer(const pl_model_reader *in, const char *key, int64_t highest, int64_t *value) {
  return pl_node_integer(in->document, in->root, key, 1, highest, value, in->error);
}

pl_code pl_reader_optional_integer(const pl_model_reader *in, const char *key, int64_t highest, int64_t *value) {
  return pl_reader_has(in, key) ? pl_reader_integer(in, key, highest, value) : PL_OK;
}

pl_code pl_reader_optional_boolean(const pl_model_reader *in, const char *key, bool *value) {
  return pl_reader_has(in, key) ? pl_node_boolean(in->document, in->root, key, value, in->error) : PL_OK;
}

pl_code pl_reader_probability(const pl_model_reader *in, const char *key, double otherwise, bool *positive) {
  double value = otherwise;
  if (key != NULL && pl_reader_has(in, key)) {
    PL_TRY(pl_node_number(in->document, in->root, key, &value, in->error));
    if (!(value >= 0 && value <= 1))
      return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                              "'%s' is %g: a probability from 0 to 1 is needed", key, value);
  }
  *positive = value > 0;
  return PL_OK;
}

pl_code pl_reader_text(const pl_model_reader *in, const char *key, const char *otherwise, pl_arena *arena,
                       const char **value) {
  const char *found = otherwise;
  if (pl_reader_has(in, key)) PL_TRY(pl_node_name(in->document, in->root, key, &found, in->error));
  *value = pl_arena_strdup(arena, found);
  return *value != NULL ? PL_OK : pl_fail_memory(in->error, "the model's strings");
}

pl_code pl_reader_refuse(const pl_model_reader *in, const char *key, const char *why) {
  bool set = false;
  PL_TRY(pl_reader_optional_boolean(in, key, &set));
  return set ? pl_document_fail(in->document, pl_node_get(in->root, key), in->error, "'%s': %s", key, why) : PL_OK;
}

pl_code pl_reader_demand(const pl_model_reader *in, const char *key, const char *why) {
  bool set = true;
  PL_TRY(pl_reader_optional_boolean(in, key, &set));
  return set ? PL_OK : pl_document_fail(in->document, pl_node_get(in->root, key), in->error, "'%s': %s", key, why);
}
