/* The model of a row as a Hugging Face configuration (see validation/rows/row.h).
 *
 * The architecture is that of the model's entry in models.csv if its name is there. Else: BERT by name, Mixtral's where
 * there are experts, Llama's where the MLP is gated, Nemotron's where it is not and heads share keys and values,
 * GPT-2's otherwise.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/data_folder.h"
#include "core/text/json_writer.h"
#include "validation/rows/row.h"
#include "workloads/import/model_file.h"

/* ---- models known by name ---- */

/* Letters and digits only, in lower case: "LLAMA3.1_405B" and "Llama31 405B" are one model. What stands in parentheses
 * ("DeepSeekV3 (dropless)") is not of the name. */
static void plain_name(const char *name, char *plain, size_t size) {
  size_t n = 0;
  for (; *name != '\0' && *name != '(' && n + 1 < size; name++)
    if (isalnum((unsigned char)*name)) plain[n++] = (char)tolower((unsigned char)*name);
  plain[n] = '\0';
}

static bool contradicts(const pl_csv *known, uint32_t i, const char *column, int64_t stated) {
  int64_t value = strtoll(pl_csv_cell(known, i, pl_csv_column(known, column)), NULL, 10);
  return stated > 0 && value > 0 && stated != value;
}

/* Whether the entry's longer name may be meant by the row's: not in the middle of a number ("GPT-2" is no GPT 20B), and
 * not of other dimensions. */
static bool may_be_short_for(const pl_csv *known, uint32_t i, const char *candidate, const char *wanted,
                             const pl_measured_row *row) {
  size_t length = strlen(wanted);
  if (strncmp(candidate, wanted, length) != 0) return false;
  if (isdigit((unsigned char)wanted[length - 1]) && isdigit((unsigned char)candidate[length])) return false;
  return !contradicts(known, i, "n_layers", row->n_layers) && !contradicts(known, i, "hidden", row->hidden) &&
         !contradicts(known, i, "n_heads", row->n_heads);
}

/* The row of the table: same name, or one that begins with it ("Qwen3-235B": "Qwen3 235B_A22B"). */
static uint32_t find_known(const pl_csv *known, const pl_measured_row *row) {
  char wanted[96], candidate[96];
  plain_name(row->model, wanted, sizeof wanted);
  uint32_t column = pl_csv_column(known, "model"), longer = PL_CSV_NO_COLUMN;
  for (uint32_t i = 0; i < known->n_rows && strlen(wanted) >= 4; i++) {
    plain_name(pl_csv_cell(known, i, column), candidate, sizeof candidate);
    if (strcmp(candidate, wanted) == 0) return i;
    if (longer == PL_CSV_NO_COLUMN && may_be_short_for(known, i, candidate, wanted, row)) longer = i;
  }
  return longer;
}

/* Another name of the same model ("GPT3-175B": "GPT 175B", "Nemotron-8B": "Nemotron3 8B", "LLaMA 7B": "Llama2 7B"): the
 * letters in front of the first digit are the same, and so are the dimensions that the row states. */
static uint32_t find_alike(const pl_csv *known, const pl_measured_row *row) {
  const struct {
    const char *column;
    int64_t value;
  } stated[] = {{"n_layers", row->n_layers},
                {"hidden", row->hidden},
                {"n_heads", row->n_heads},
                {"ffn_hidden", row->ffn_hidden > 0 ? row->ffn_hidden : 4 * row->hidden}};
  enum { N = sizeof stated / sizeof stated[0], SHORTEST = 3 };
  char wanted[96], candidate[96];
  plain_name(row->model, wanted, sizeof wanted);
  size_t length = strcspn(wanted, "0123456789");
  if (length < SHORTEST || row->n_layers == 0 || row->hidden == 0 || row->n_heads == 0) return PL_CSV_NO_COLUMN;
  for (uint32_t i = 0; i < known->n_rows; i++) {
    plain_name(pl_csv_cell(known, i, pl_csv_column(known, "model")), candidate, sizeof candidate);
    size_t n = 0;
    if (strcspn(candidate, "0123456789") != length || strncmp(candidate, wanted, length) != 0) continue;
    while (n < N && strtoll(pl_csv_cell(known, i, pl_csv_column(known, stated[n].column)), NULL, 10) == stated[n].value)
      n++;
    if (n == N) return i;
  }
  return PL_CSV_NO_COLUMN;
}

typedef struct entry {
  const pl_csv *table;
  uint32_t row; /* PL_CSV_NO_COLUMN: not known */
} entry;

static const char *known_text(entry known, const char *column) {
  return known.row == PL_CSV_NO_COLUMN ? "" : pl_csv_cell(known.table, known.row, pl_csv_column(known.table, column));
}

static int64_t known_count(entry known, const char *column) {
  return strtoll(known_text(known, column), NULL, 10);
}

int32_t pl_row_recipe_vpp(const pl_measured_row *row, const pl_csv *known) {
  const entry found = {known, find_known(known, row)};
  int64_t vpp = known_count(found, "recipe_vpp");
  return row->pp > 1 && row->pp == known_count(found, "recipe_pp") && vpp < INT16_MAX ? (int32_t)vpp : 0;
}

/* "vocab ~250k" in the notes: bigscience's pages say it once for a whole page. */
static int64_t vocab_of_notes(const char *notes) {
  const char *at = strcasestr(notes, "vocab ~");
  if (at == NULL) return 0;
  char *end;
  double value = strtod(at + strlen("vocab ~"), &end);
  return *end == 'k' && value > 0 && value < 1e6 ? (int64_t)(value * 1000) : 0;
}

/* ---- dimensions ---- */

typedef struct dimensions {
  const char *type;
  int64_t n_layers, hidden, ffn_hidden, n_heads, n_kv_heads, vocab, n_experts, topk, expert_ffn;
} dimensions;

static int64_t first_of(int64_t a, int64_t b) {
  return a > 0 ? a : b;
}

/* Stated, or as the model's name has it. */
static bool is_gated(const pl_measured_row *row, entry known) {
  static const char *const gated[] = {"llama", "mistral", "mixtral", "qwen", "gemma", "deepseek"};
  if (pl_row_gated(row) >= 0) return pl_row_gated(row) == 1;
  bool named = pl_row_mentions(known_text(known, "gated_mlp"), "true");
  for (size_t i = 0; i < sizeof gated / sizeof gated[0]; i++)
    named = named || pl_row_mentions(row->model, gated[i]);
  return named;
}

static const char *model_type(const pl_measured_row *row, entry known, const dimensions *d) {
  const char *stated = known_text(known, "model_type");
  if (stated[0] != '\0') return stated;
  if (pl_row_mentions(row->model, "bert")) return "bert";
  if (d->n_experts > 1) return "mixtral";
  if (is_gated(row, known)) return "llama";
  return d->n_kv_heads != d->n_heads ? "nemotron" : "gpt2";
}

/* What BERT and GPT-2 (and GPT-3) have in common wherever they are trained: WordPiece of the published uncased BERT,
 * GPT-2's byte pairs. */
static int64_t usual_vocab(const char *model, const char *type) {
  static const char *const others[] = {"neo", "oss", "-j", "gptj"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (pl_row_mentions(model, others[i])) return 0;
  if (strcmp(type, "bert") == 0) return 30522;
  return strcmp(type, "gpt2") == 0 && strncasecmp(model, "gpt", 3) == 0 ? 50257 : 0;
}

/* Where the table has no such column at all, so that its author was not asked: the vocabulary of the family's first
 * models, Llama's rule for the width of a gated MLP. */
static void fill_unasked(const pl_measured_row *row, entry known, dimensions *d) {
  enum { MULTIPLE = 256 };
  if (d->vocab == 0 && !pl_measured_has_column(row, "vocab"))
    d->vocab = strcmp(d->type, "bert") == 0                                       ? 30522
               : strcmp(d->type, "llama") == 0 || strcmp(d->type, "mixtral") == 0 ? 32000
                                                                                  : 50257;
  if (d->ffn_hidden == 0 && is_gated(row, known) && !pl_measured_has_column(row, "ffn_hidden"))
    d->ffn_hidden = (8 * d->hidden / 3 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

static bool is_type(const dimensions *d, const char *type) {
  return strcmp(d->type, type) == 0;
}

static pl_code check_stated(const dimensions *d, const pl_measured_row *row, entry known, pl_error *error) {
  const struct {
    const char *name;
    int64_t value;
  } needed[] = {{"n_layers", d->n_layers}, {"hidden", d->hidden}, {"ffn_hidden", d->ffn_hidden},
                {"n_heads", d->n_heads},   {"vocab", d->vocab},   {"seq_len", row->seq_len}};
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (needed[i].value == 0)
      return pl_fail(error, PL_UNSUPPORTED, "not stated: %s%s", needed[i].name,
                     known.row == PL_CSV_NO_COLUMN ? "" : " (nor in models.csv)");
  return PL_OK;
}

static pl_code find_dimensions(const pl_measured_row *row, entry known, dimensions *d, pl_error *error) {
  *d = (dimensions){.n_layers = first_of(row->n_layers, known_count(known, "n_layers")),
                    .hidden = first_of(row->hidden, known_count(known, "hidden")),
                    .ffn_hidden = first_of(row->ffn_hidden, known_count(known, "ffn_hidden")),
                    .n_heads = first_of(row->n_heads, known_count(known, "n_heads")),
                    .n_kv_heads = first_of(row->n_kv_heads, known_count(known, "n_kv_heads")),
                    .vocab = first_of(row->vocab, vocab_of_notes(row->notes)),
                    .n_experts = first_of(row->n_experts, known_count(known, "n_experts")),
                    .topk = first_of(row->topk, known_count(known, "topk"))};
  d->vocab = first_of(d->vocab, known_count(known, "vocab"));
  if (d->n_kv_heads == 0) d->n_kv_heads = d->n_heads;
  d->type = model_type(row, known, d);
  if (d->vocab == 0) d->vocab = usual_vocab(row->model, d->type);
  if (d->ffn_hidden == 0 && !is_gated(row, known)) d->ffn_hidden = 4 * d->hidden;
  fill_unasked(row, known, d);
  /* Tables differ in what `ffn_hidden` of a mixture is, the dense layers' width or an expert's: models.csv has both. */
  d->expert_ffn = first_of(known_count(known, "moe_ffn_hidden"), d->ffn_hidden);
  if (d->n_experts > 1) d->ffn_hidden = first_of(known_count(known, "ffn_hidden"), d->ffn_hidden);
  return check_stated(d, row, known, error);
}

/* ---- the configuration ---- */

/* Tokens per sequence that BERT's data has masked: 20 of 128, 80 of 512 (max_predictions_per_seq of its own recipe). */
static int64_t masked_tokens(int64_t seq_len) {
  return (5 * seq_len + 31) / 32;
}

static void put_given(pl_json *json, const char *key, int64_t value) {
  if (value > 0) pl_json_put_integer(json, key, value);
}

/* Keys of all families: each reads its own. */
static void put_configuration(pl_json *json, const pl_measured_row *row, const pl_row_habits *habits,
                              const dimensions *d, entry known) {
  double dropout = habits->dropout ? 0.1 : 0;
  bool gpt2 = is_type(d, "gpt2");
  pl_json_open_object(json);
  pl_json_put_string(json, "model_type", d->type);
  pl_json_put_string(json, "name", "row");
  pl_json_put_integer(json, gpt2 ? "n_layer" : "num_hidden_layers", d->n_layers);
  pl_json_put_integer(json, gpt2 ? "n_embd" : "hidden_size", d->hidden);
  pl_json_put_integer(json, gpt2 ? "n_head" : "num_attention_heads", d->n_heads);
  pl_json_put_integer(json, gpt2 ? "n_inner" : "intermediate_size", d->ffn_hidden);
  pl_json_put_integer(json, "num_key_value_heads", d->n_kv_heads);
  pl_json_put_integer(json, "vocab_size", d->vocab);
  pl_json_put_integer(json, gpt2 ? "n_positions" : "max_position_embeddings", row->seq_len);
  if (!is_type(d, "deepseek_v2") && !is_type(d, "deepseek_v3"))
    put_given(json, "head_dim", known_count(known, "head_dim"));
  if (d->n_experts > 1) {
    const char *const counts[] = {"num_local_experts", "num_experts", "n_routed_experts"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
      pl_json_put_integer(json, counts[i], d->n_experts);
    pl_json_put_integer(json, "num_experts_per_tok", first_of(d->topk, 1));
    pl_json_put_integer(json, "moe_intermediate_size", d->expert_ffn);
    int64_t shared_ffn = known_count(known, "shared_expert_ffn");
    if (shared_ffn > 0) put_given(json, "n_shared_experts", shared_ffn / d->expert_ffn);
    const char *const latent[][2] = {{"q_lora_rank", "q_lora_rank"},
                                     {"kv_lora_rank", "kv_lora_rank"},
                                     {"qk_nope_head_dim", "qk_head_dim"},
                                     {"qk_rope_head_dim", "qk_rope_head_dim"},
                                     {"v_head_dim", "v_head_dim"},
                                     {"first_k_dense_replace", "first_k_dense_replace"},
                                     {"n_group", "n_group"},
                                     {"topk_group", "topk_group"}};
    for (size_t i = 0; i < sizeof latent / sizeof latent[0]; i++)
      put_given(json, latent[i][0], known_count(known, latent[i][1]));
  }
  if (habits->picks_masked && is_type(d, "bert"))
    put_given(json, "max_predictions_per_seq", masked_tokens(row->seq_len));
  const char *tied = known_text(known, "tied_embeddings");
  int is_tied = pl_row_tied(row) >= 0 ? pl_row_tied(row) : tied[0] != '\0' ? pl_row_mentions(tied, "true") : -1;
  if (is_tied >= 0) pl_json_put_boolean(json, "tie_word_embeddings", is_tied == 1);
  const char *const dropouts[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop", "hidden_dropout_prob",
                                  "attention_probs_dropout_prob"};
  for (size_t i = 0; i < sizeof dropouts / sizeof dropouts[0]; i++)
    pl_json_put_number(json, dropouts[i], dropout);
  pl_json_close_object(json);
}

static pl_code parse(const pl_measured_row *row, const pl_row_habits *habits, const dimensions *d, entry known,
                     pl_arena *arena, pl_model *model, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a model");
  pl_json json;
  pl_json_init(&json, stream, false);
  put_configuration(&json, row, habits, d, known);
  pl_code code = fclose(stream) == 0 ? PL_OK : pl_fail_memory(error, "a model");
  if (code == PL_OK) code = pl_model_parse("row", text, size, arena, model, error);
  free(text);
  return code;
}

/* "MLP 1B": layers of one width and nothing else, if the row has neither heads nor a vocabulary. */
static bool is_perceptron(const pl_measured_row *row) {
  return strncmp(row->model, "MLP", 3) == 0 && row->n_heads == 0 && row->vocab == 0;
}

static pl_code take_perceptron(const pl_measured_row *row, pl_arena *arena, pl_model *model, pl_error *error) {
  char text[160];
  int size = snprintf(text, sizeof text,
                      "{\"model_type\": \"mlp\", \"num_hidden_layers\": %" PRId64 ", \"hidden_size\": %" PRId64 "}",
                      row->n_layers, row->hidden);
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_model_parse("row", text, (size_t)size, arena, model, &why);
  if (code == PL_BAD_INPUT) return pl_fail(error, PL_UNSUPPORTED, "model: %s", why.message);
  if (code != PL_OK) return pl_fail(error, code, "%s", why.message);
  model->name = row->model;
  return PL_OK;
}

/* Convolutional networks are known by name; their layers are among the models that come with Paceline. NULL: it is
 * none. */
static const char *find_network(const pl_measured_row *row) {
  static const struct {
    const char *name, *file;
  } networks[] = {{"resnet50", "resnet-50"}, {"vgg16", "vgg-16"}, {"inceptionv3", "inception-v3"}};
  char plain[96];
  plain_name(row->model, plain, sizeof plain);
  for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
    if (strcmp(plain, networks[i].name) == 0) return networks[i].file;
  return NULL;
}

pl_code pl_row_known_load(pl_arena *arena, pl_csv *known, pl_error *error) {
  const char *path;
  PL_TRY(pl_data_find("models.csv", arena, &path, error));
  return pl_csv_load(path, arena, known, error);
}

bool pl_row_is_network(const pl_measured_row *row) {
  return find_network(row) != NULL;
}

static pl_code take_network(const pl_measured_row *row, const char *file, pl_arena *arena, pl_model *model,
                            pl_error *error) {
  char name[64];
  const char *path;
  snprintf(name, sizeof name, "models/%s.json", file);
  PL_TRY(pl_data_find(name, arena, &path, error));
  PL_TRY(pl_model_load(path, arena, model, error));
  model->name = row->model;
  return PL_OK;
}

const char *pl_row_beside(const pl_measured_row *row, const char *path, pl_arena *arena) {
  const char *slash = strrchr(row->file, '/');
  if (path[0] == '/' || slash == NULL) return path;
  const char *there = pl_arena_printf(arena, "%.*s%s", (int)(slash - row->file) + 1, row->file, path);
  return there == NULL || access(there, F_OK) == 0 ? there : path;
}

/* What other columns say beside a file is the same. */
static pl_code check_beside(const pl_measured_row *row, const pl_model *model, pl_error *error) {
  const struct {
    const char *column;
    int64_t stated, value;
  } counts[] = {{"n_layers", row->n_layers, model->n_layers},
                {"hidden", row->hidden, model->width.hidden},
                {"ffn_hidden", row->ffn_hidden, model->width.ffn_hidden},
                {"n_heads", row->n_heads, model->attention.n_heads},
                {"n_kv_heads", row->n_kv_heads, model->attention.n_kv_heads},
                {"vocab", row->vocab, model->width.vocab}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (counts[i].stated != 0 && counts[i].stated != counts[i].value)
      return pl_fail(error, PL_UNSUPPORTED,
                     "column '%s': %" PRId64 ", and 'model_file' has %" PRId64 "; leave the column empty",
                     counts[i].column, counts[i].stated, counts[i].value);
  return PL_OK;
}

static pl_code take_file(const pl_measured_row *row, pl_arena *arena, pl_model *model, pl_error *error) {
  const char *path = pl_row_beside(row, row->model_file, arena);
  if (path == NULL) return pl_fail_memory(error, "the models");
  if (row->seq_len == 0) return pl_fail(error, PL_UNSUPPORTED, "not stated: seq_len");
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_model_load(path, arena, model, &why);
  if (code == PL_BAD_INPUT || code == PL_IO) return pl_fail(error, PL_UNSUPPORTED, "model_file: %s", why.message);
  if (code != PL_OK) return pl_fail(error, code, "%s", why.message);
  if (row->model[0] != '\0') model->name = row->model;
  return check_beside(row, model, error);
}

pl_code pl_row_model(const pl_measured_row *row, const pl_row_habits *habits, const pl_csv *known, pl_arena *arena,
                     pl_model *model, pl_error *error) {
  /* Nemotron 3 Nano, Super and Ultra; Nemotron3 4B, 8B and 22B are older and transformers. */
  static const char *const spaces[] = {"Nemotron-H",
                                       "NemotronH",
                                       "Nemotron_3_Nano",
                                       "Nemotron 3 Nano",
                                       "Nemotron_3_Super",
                                       "Nemotron 3 Super",
                                       "Nemotron_3_5",
                                       "Nemotron 3.5",
                                       "Nemotron_3_Ultra",
                                       "Nemotron 3 Ultra",
                                       "mamba",
                                       "jamba",
                                       "zamba",
                                       "hyena",
                                       "RWKV"};
  static const char *const images[] = {"ResNet", "VGG", "Inception"};
  if (row->model_file[0] != '\0') return take_file(row, arena, model, error);
  const char *network = find_network(row);
  if (network != NULL) return take_network(row, network, arena, model, error);
  for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
    if (pl_row_mentions(row->model, images[i]))
      return pl_fail(error, PL_UNSUPPORTED,
                     "not a transformer: of convolutional networks ResNet-50, VGG-16 and "
                     "Inception v3 are known, not %s",
                     row->model);
  if (is_perceptron(row)) return take_perceptron(row, arena, model, error);
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
    if (pl_row_mentions(row->model, spaces[i]))
      return pl_fail(error, PL_UNSUPPORTED, "not a transformer: %s has state space layers", row->model);
  entry found = {known, find_known(known, row)};
  if (found.row == PL_CSV_NO_COLUMN) found.row = find_alike(known, row);
  dimensions d;
  PL_TRY(find_dimensions(row, found, &d, error));
  pl_error why = PL_ERROR_INIT;
  pl_code code = parse(row, habits, &d, found, arena, model, &why);
  if (code == PL_BAD_INPUT) return pl_fail(error, PL_UNSUPPORTED, "model: %s", why.message);
  if (code != PL_OK) return pl_fail(error, code, "%s", why.message);
  if (habits->dropout && !model->mlp.gated_mlp) /* also where the family's files have none: Nemotron's */
    model->dropout.embedding_dropout = model->dropout.attention_dropout = model->dropout.hidden_dropout = true;
  if (habits->no_head) model->ends.predictions = 1;
  model->name = row->model;
  return PL_OK;
}
