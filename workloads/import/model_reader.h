/* Keys of a Hugging Face config.json, as the readers of models take them. Internal to workloads/import. */
#ifndef PL_WORKLOADS_MODEL_READER_H
#define PL_WORKLOADS_MODEL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/text/document.h"

typedef struct pl_model_reader {
  const pl_document *document;
  const pl_node *root; /* of what is read: the file's, or its text_config */
  pl_error *error;
  const pl_node *outer; /* around a text_config, where it alone says whether embeddings are tied; else NULL */
} pl_model_reader;

/* Far above any model, and low enough that no product of two overflows. */
enum { PL_MODEL_LAYERS_MAX = 100000, PL_MODEL_WIDTH_MAX = 1 << 22, PL_MODEL_HEADS_MAX = 1 << 16 };
enum { PL_MODEL_VOCAB_MAX = 1 << 30, PL_MODEL_PREDICTIONS_MAX = 16 };
static const int64_t pl_model_positions_max = INT64_C(1) << 31;

/* Present, and not null. */
bool pl_reader_has(const pl_model_reader *in, const char *key);
/* Written in the file, be it as null: where a class's default differs from what null means to it. */
bool pl_reader_mentions(const pl_model_reader *in, const char *key);
/* The key of a dimension, else another name of it that the file has: classes of transformers map their own names
 * (n_embd, d_model ...) and the common ones (hidden_size) to each other. */
const char *pl_reader_dimension(const pl_model_reader *in, const char *key);
/* From 1 to `highest`; required, or left as it is where the key is absent. */
pl_code pl_reader_integer(const pl_model_reader *in, const char *key, int64_t highest, int64_t *value);
pl_code pl_reader_optional_integer(const pl_model_reader *in, const char *key, int64_t highest, int64_t *value);
pl_code pl_reader_optional_boolean(const pl_model_reader *in, const char *key, bool *value);
/* A probability: what matters here is only whether it is above zero. A key of NULL: there is none. */
pl_code pl_reader_probability(const pl_model_reader *in, const char *key, double otherwise, bool *positive);
/* Texts are names: what would move a terminal's cursor is not one. In `arena`. */
pl_code pl_reader_text(const pl_model_reader *in, const char *key, const char *otherwise, pl_arena *arena,
                       const char **value);
/* Keys that must be false (true) or absent: else PL_BAD_INPUT with `why`. */
pl_code pl_reader_refuse(const pl_model_reader *in, const char *key, const char *why);
pl_code pl_reader_demand(const pl_model_reader *in, const char *key, const char *why);

#endif
