/* Reads a convolutional network for classifying pictures.
 *
 *   {"model_type": "cnn", "name": "resnet-50", "image": [3, 224, 224], "norm": "batch",
 *    "blocks": ["conv 64 7x7/2, max 3/2", "[conv 64 1x1, conv 64 3x3, conv 256 1x1]*3", ..., "mean, linear 1000"]}
 *
 * "image" has channels, height and width; "norm" is "batch" (the default) or "none". "blocks" are what a pipeline may
 * cut between, each a chain of layers (workloads/ir/chain.h), with *N for N in a row; the loss is a block of its own
 * behind them. A sample is a picture: its sequence has one token. Blocks of equal layers on equal pictures are one
 * class.
 */
#include <stdlib.h>
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/chain.h"
#include "workloads/ir/model.h"

enum { BLOCKS_MAX = 1024, TEXT_MAX = 512 };

typedef struct reader {
  const pl_document *document;
  const pl_node *root;
  pl_arena *arena;
  pl_model *model;
  pl_error *error;
  bool norm;
  pl_picture picture; /* where the blocks have come to */
  pl_model_part *parts;
  const char *texts[PL_MODEL_PARTS_MAX]; /* of the parts */
  uint8_t *part_of;
  int32_t n_blocks;
} reader;

/* ---- keys ---- */

static pl_code read_image(reader *in) {
  enum { SIDE_MAX = 1 << 14 };
  int32_t *const sides[] = {&in->picture.channels, &in->picture.height, &in->picture.width};
  const pl_node *list = pl_node_get(in->root, "image");
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) != 3)
    return pl_document_fail(in->document, list != NULL ? list : in->root, in->error,
                            "'image' must be a list of three: channels, height, width");
  for (size_t i = 0; i < 3; i++) {
    double value;
    PL_TRY(pl_node_as_number(in->document, pl_node_at(list, i), &value, in->error));
    if (!(value >= 1 && value <= SIDE_MAX) || value != (double)(int32_t)value)
      return pl_document_fail(in->document, pl_node_at(list, i), in->error, "'image': %g is not from 1 to %d", value,
                              SIDE_MAX);
    *sides[i] = (int32_t)value;
  }
  return PL_OK;
}

static pl_code read_norm(reader *in) {
  const char *norm = "batch";
  if (pl_node_get(in->root, "norm") != NULL) PL_TRY(pl_node_string(in->document, in->root, "norm", &norm, in->error));
  in->norm = strcmp(norm, "batch") == 0;
  if (in->norm || strcmp(norm, "none") == 0) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "norm"), in->error,
                          "'norm' is '%.64s'; supported are batch and none", norm);
}

/* What a transformer has and this has not is one, so that it divides and multiplies. */
static void describe(pl_model *model) {
  model->family = "cnn";
  model->architecture = "CNN";
  model->mlp.activation = "relu";
  model->attention.n_heads = model->attention.n_kv_heads = 1;
  model->attention.head_size = model->attention.value_size = 1;
  model->width.hidden = model->width.ffn_hidden = 1;
  model->width.vocab = model->positions.max_positions = 1;
  model->norms.norm = PL_NORM_LAYER;
  model->norms.norm_bias = true;
  model->moe.capacity_factor = 1;
  model->numbers = (pl_model_numbers){.norm_epsilon = 1e-5, .hidden_dropout = 0.5};
  model->moe.expert_layer_step = 1;
}

/* ---- blocks ---- */

static pl_code model_of(const reader *in, const pl_picture *picture, const pl_model **made) {
  pl_model *model = PL_TAKE(in->arena, pl_model, 1);
  if (model == NULL) return pl_fail_memory(in->error, "the parts of a model");
  *model = *in->model;
  model->n_layers = 1;
  model->width.hidden = model->width.ffn_hidden = picture->channels;
  *made = model;
  return PL_OK;
}

static pl_code add_part(reader *in, const pl_model_part *part, const char *text) {
  if (in->model->unlike.n_parts == PL_MODEL_PARTS_MAX)
    return pl_document_fail(in->document, in->root, in->error, "'blocks': more than %d different ones",
                            PL_MODEL_PARTS_MAX);
  in->texts[in->model->unlike.n_parts] = text;
  in->parts[in->model->unlike.n_parts++] = *part;
  return PL_OK;
}

static pl_code make_chain(const reader *in, const pl_node *node, const char *text, const pl_chain **made) {
  pl_chain *chain = PL_TAKE(in->arena, pl_chain, 1);
  if (chain == NULL) return pl_fail_memory(in->error, "the parts of a model");
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_chain_parse(text, in->picture, in->norm, in->arena, chain, &why);
  if (code == PL_BAD_INPUT) return pl_document_fail(in->document, node, in->error, "'blocks': %s", why.message);
  *made = chain;
  return code == PL_OK ? PL_OK : pl_fail(in->error, code, "%s", why.message);
}

/* The class of such a block, made if it is a new one. The first block is a class of its own: its input needs no
 * gradient. */
static pl_code find_part(reader *in, const pl_node *node, const char *text, int32_t *p) {
  for (*p = 1; *p < in->model->unlike.n_parts; (*p)++)
    if (in->texts[*p] != NULL && strcmp(in->texts[*p], text) == 0 &&
        pl_picture_equal(in->parts[*p].chain->in, in->picture))
      return PL_OK;
  *p = in->model->unlike.n_parts;
  pl_model_part part = {.kind = PL_BLOCK_CHAIN, .windows = 1, .first_block = in->n_blocks};
  PL_TRY(make_chain(in, node, text, &part.chain));
  PL_TRY(model_of(in, &in->picture, &part.model));
  part.rows = pl_picture_points(&part.chain->in);
  part.out_rows = pl_picture_points(&part.chain->out);
  part.out_width = part.chain->out.channels;
  return add_part(in, &part, text);
}

static pl_code add_block(reader *in, const pl_node *node, const char *text) {
  int32_t p;
  if (in->n_blocks == BLOCKS_MAX)
    return pl_document_fail(in->document, node, in->error, "'blocks': more than %d", BLOCKS_MAX);
  PL_TRY(find_part(in, node, text, &p));
  in->part_of[in->n_blocks++] = (uint8_t)p;
  in->picture = in->parts[p].chain->out;
  return PL_OK;
}

/* "[...]*3": three such blocks. */
static pl_code read_block(reader *in, const pl_node *node) {
  const char *text;
  PL_TRY(pl_node_as_string(in->document, node, &text, in->error));
  const char *star = strrchr(text, '*');
  size_t length = star != NULL ? (size_t)(star - text) : strlen(text);
  char *end = NULL;
  long count = star != NULL ? strtol(star + 1, &end, 10) : 1;
  if (count < 1 || count > BLOCKS_MAX || (end != NULL && (end == star + 1 || *end != '\0')))
    return pl_document_fail(in->document, node, in->error, "'blocks': '%.64s' has a count that is not from 1 to %d",
                            text, BLOCKS_MAX);
  if (length > TEXT_MAX) return pl_document_fail(in->document, node, in->error, "'blocks': longer than %d", TEXT_MAX);
  const char *own = pl_arena_printf(in->arena, "%.*s", (int)length, text);
  if (own == NULL) return pl_fail_memory(in->error, "the parts of a model");
  for (long i = 0; i < count; i++)
    PL_TRY(add_block(in, node, own));
  return PL_OK;
}

static pl_code add_loss(reader *in) {
  pl_model_part part = {.kind = PL_BLOCK_MEAN, .windows = 1, .first_block = in->n_blocks};
  part.rows = part.out_rows = pl_picture_points(&in->picture);
  part.out_width = in->picture.channels;
  PL_TRY(model_of(in, &in->picture, &part.model));
  PL_TRY(add_part(in, &part, ""));
  in->part_of[in->n_blocks++] = (uint8_t)(in->model->unlike.n_parts - 1);
  return PL_OK;
}

static pl_code read_blocks(reader *in) {
  const int32_t least = PL_MODEL_BLOCKS_BEFORE_LAYERS + 1 + PL_MODEL_BLOCKS_AFTER_LAYERS;
  const pl_node *list = pl_node_get(in->root, "blocks");
  if (list == NULL || !pl_node_is_sequence(list))
    return pl_document_fail(in->document, list != NULL ? list : in->root, in->error,
                            "'blocks' must be a list of layers, like \"conv 64 7x7/2, max 3/2\"");
  in->parts = PL_TAKE(in->arena, pl_model_part, PL_MODEL_PARTS_MAX);
  in->part_of = PL_TAKE(in->arena, uint8_t, BLOCKS_MAX + 1);
  if (in->parts == NULL || in->part_of == NULL) return pl_fail_memory(in->error, "the blocks of a model");
  for (size_t i = 0; i < pl_node_count(list); i++)
    PL_TRY(read_block(in, pl_node_at(list, i)));
  PL_TRY(add_loss(in));
  if (in->n_blocks >= least) return PL_OK;
  return pl_document_fail(in->document, list, in->error, "'blocks': %d of them; %d are needed", in->n_blocks - 1,
                          least - 1);
}

pl_code pl_model_cnn_read(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  reader in = {
      .document = document, .root = pl_document_root(document), .arena = arena, .model = model, .error = error};
  model->digest = pl_document_digest(document);
  PL_TRY(read_image(&in));
  PL_TRY(read_norm(&in));
  PL_TRY(pl_model_read_name(in.document, arena, model, error));
  describe(model);
  PL_TRY(read_blocks(&in));
  model->unlike.parts = in.parts;
  model->unlike.part_of = in.part_of;
  model->n_layers = in.n_blocks - PL_MODEL_BLOCKS_BEFORE_LAYERS - PL_MODEL_BLOCKS_AFTER_LAYERS;
  for (int32_t block = 0; block < in.n_blocks; block++)
    model->count.trained_parameters += pl_model_block_parameters(model, block);
  model->count.parameters = model->count.trained_parameters;
  return PL_OK;
}
