/* The model of a row as a Hugging Face configuration (see validation/row.h): BERT by name, Llama's architecture where
 * the MLP is gated, GPT-2's otherwise. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validation/row.h"

/* Letters and digits only, in lower case: "LLAMA3.1_405B" and "Llama31 405B" are one model. */
static void plain_name(const char *name, char *plain, size_t size) {
  size_t n = 0;
  for (; *name != '\0' && *name != '(' && n + 1 < size; name++)
    if (isalnum((unsigned char)*name)) plain[n++] = (char)tolower((unsigned char)*name);
  plain[n] = '\0';
}

/* The row of the table of known models: same name, or one that begins with it ("Qwen3-235B": "Qwen3 235B_A22B"). */
static uint32_t find_known(const pl_csv *known, const char *model) {
  char wanted[96], candidate[96];
  plain_name(model, wanted, sizeof wanted);
  uint32_t column = pl_csv_column(known, "model"), longer = PL_CSV_NO_COLUMN;
  for (uint32_t row = 0; row < known->n_rows && wanted[0] != '\0'; row++) {
    plain_name(pl_csv_cell(known, row, column), candidate, sizeof candidate);
    if (strcmp(candidate, wanted) == 0) return row;
    if (longer == PL_CSV_NO_COLUMN && strncmp(candidate, wanted, strlen(wanted)) == 0) longer = row;
  }
  return longer;
}

static int64_t known_count(const pl_csv *known, uint32_t row, const char *name) {
  bool given;
  double value = 0;
  uint32_t column = pl_csv_column(known, name);
  if (row == PL_CSV_NO_COLUMN || column == PL_CSV_NO_COLUMN) return 0;
  return pl_csv_number(known, row, column, &given, &value, NULL) == PL_OK && given ? (int64_t)value : 0;
}

/* "vocab ~250k" in the notes: bigscience's pages say it once for a whole page. */
static int64_t vocab_of_notes(const char *notes) {
  const char *at = strcasestr(notes, "vocab ~");
  if (at == NULL) return 0;
  char *end;
  double value = strtod(at + strlen("vocab ~"), &end);
  return *end == 'k' && value > 0 && value < 1e6 ? (int64_t)(value * 1000) : 0;
}

typedef struct dimensions {
  int64_t n_layers, hidden, ffn_hidden, n_heads, n_kv_heads, vocab;
  bool gated;
} dimensions;

static int64_t first_of(int64_t a, int64_t b) {
  return a > 0 ? a : b;
}

static pl_code find_dimensions(const pl_measured_row *row, const pl_csv *known, dimensions *d, pl_error *error) {
  uint32_t k = find_known(known, row->model);
  *d = (dimensions){.n_layers = first_of(row->n_layers, known_count(known, k, "n_layers")),
                    .hidden = first_of(row->hidden, known_count(known, k, "hidden")),
                    .ffn_hidden = first_of(row->ffn_hidden, known_count(known, k, "ffn_hidden")),
                    .n_heads = first_of(row->n_heads, known_count(known, k, "n_heads")),
                    .n_kv_heads = first_of(row->n_kv_heads, known_count(known, k, "n_kv_heads")),
                    .vocab = first_of(row->vocab, vocab_of_notes(row->notes)),
                    .gated = pl_row_mentions(row->mlp_type, "gated")};
  d->vocab = first_of(d->vocab, known_count(known, k, "vocab"));
  if (d->ffn_hidden == 0 && !d->gated) d->ffn_hidden = 4 * d->hidden;
  if (d->n_kv_heads == 0) d->n_kv_heads = d->n_heads;
  const struct {
    const char *name;
    int64_t value;
  } needed[] = {{"n_layers", d->n_layers}, {"hidden", d->hidden}, {"ffn_hidden", d->ffn_hidden},
                {"n_heads", d->n_heads},   {"vocab", d->vocab},   {"seq_len", row->seq_len}};
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (needed[i].value == 0)
      return pl_fail(error, PL_UNSUPPORTED, "not stated: %s%s", needed[i].name,
                     k == PL_CSV_NO_COLUMN ? "" : " (nor in models.csv)");
  return PL_OK;
}

static pl_code check_plain(const pl_measured_row *row, const dimensions *d, pl_error *error) {
  if (pl_row_mentions(row->model, "Nemotron-H") || pl_row_mentions(row->model, "mamba"))
    return pl_fail(error, PL_UNSUPPORTED, "not a transformer: %s has state space layers", row->model);
  if (row->n_experts > 1)
    return pl_fail(error, PL_UNSUPPORTED, "mixture of experts: %" PRId64 " experts", row->n_experts);
  if (!d->gated && d->n_kv_heads != d->n_heads)
    return pl_fail(error, PL_UNSUPPORTED, "grouped-query attention beside an ungated MLP");
  return PL_OK;
}

pl_code pl_row_model(const pl_measured_row *row, const pl_row_habits *habits, const pl_csv *known, pl_arena *arena,
                     pl_model *model, pl_error *error) {
  dimensions d;
  PL_TRY(find_dimensions(row, known, &d, error));
  PL_TRY(check_plain(row, &d, error));
  const char *type = pl_row_mentions(row->model, "bert") ? "bert" : d.gated ? "llama" : "gpt2";
  bool gpt2 = strcmp(type, "gpt2") == 0;
  double dropout = habits->dropout ? 0.1 : 0;
  char text[1024];
  /* Keys of all three families: each reads its own. */
  int length =
      snprintf(text, sizeof text,
               "{\"model_type\": \"%s\", \"name\": \"row\", \"%s\": %" PRId64 ", \"%s\": %" PRId64 ", \"%s\": %" PRId64
               ", \"num_key_value_heads\": %" PRId64 ", \"%s\": %" PRId64 ", \"vocab_size\": %" PRId64
               ", \"max_position_embeddings\": %" PRId64 ", \"n_positions\": %" PRId64
               ", \"embd_pdrop\": %g, \"attn_pdrop\": %g, \"resid_pdrop\": %g, \"hidden_dropout_prob\": %g, "
               "\"attention_probs_dropout_prob\": %g}",
               type, gpt2 ? "n_layer" : "num_hidden_layers", d.n_layers, gpt2 ? "n_embd" : "hidden_size", d.hidden,
               gpt2 ? "n_head" : "num_attention_heads", d.n_heads, d.n_kv_heads, gpt2 ? "n_inner" : "intermediate_size",
               d.ffn_hidden, d.vocab, row->seq_len, row->seq_len, dropout, dropout, dropout, dropout, dropout);
  PL_ASSERT(length > 0 && (size_t)length < sizeof text);
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_model_parse("row", text, (size_t)length, arena, model, &why);
  if (code == PL_BAD_INPUT) return pl_fail(error, PL_UNSUPPORTED, "model: %s", why.message);
  if (code != PL_OK) return pl_fail(error, code, "%s", why.message);
  model->name = row->model;
  return PL_OK;
}
