/* Reads a generator of the TransGAN kind (Jiang et al. 2021, "TransGAN: Two Pure Transformers Can Make One Strong
 * GAN"): a picture grows from a few tokens; each time its side doubles it has fewer channels, so that layers have
 * widths and lengths of their own. AMP partitions one of 56 blocks (section 6.5.3).
 *
 *   {"model_type": "transgan", "name": "...", "latent_dim": 512, "gf_dim": 1024, "bottom_width": 9, "num_heads": 4,
 *    "mlp_ratio": 4, "g_norm": "pn", "g_window_size": 18, "qkv_bias": true, "relative_positions": true,
 *    "blocks": ["latent", "positions", "layer*12", "upsample", ..., "pixels"]}
 *
 * Keys are those of the published code's arguments (VITA-Group/TransGAN) where it has them. "blocks" lists what a
 * pipeline may cut between, in order, with *N for N in a row:
 *   latent         one linear layer from latent_dim to bottom_width^2 tokens of gf_dim channels; the first
 *   positions      learned positions are added
 *   layer          attention over all tokens, or inside each window, and MLP
 *   upsample       twice the side, the same channels;  pixel_shuffle: twice the side, a quarter of the channels
 *   partition      the picture in windows of g_window_size^2 tokens;  merge: and back
 *   copy           tokens copied as they are;  view: nothing (DeepSpeed counts such pipeline layers)
 *   pixels         a linear layer per token to 3 channels, and the loss; the last
 * "g_norm" is "ln" (LayerNorm, the default) or "pn" (PixelNorm). Missing: mlp_ratio 4, no qkv_bias, no
 * relative_positions.
 */
#include <stdlib.h>
#include <string.h>

#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

enum { BLOCKS_MAX = 4096, LEAST_BLOCKS = PL_MODEL_BLOCKS_BEFORE_LAYERS + 1 + PL_MODEL_BLOCKS_AFTER_LAYERS };

typedef enum shape_change {
  VIEW = 0,
  LATENT,
  POSITIONS,
  LAYER,
  UPSAMPLE,
  PIXEL_SHUFFLE,
  PARTITION,
  MERGE,
  COPY,
  PIXELS
} shape_change;

static const char *const block_names[] = {
    [VIEW] = "view",           [LATENT] = "latent",     [POSITIONS] = "positions",
    [LAYER] = "layer",         [UPSAMPLE] = "upsample", [PIXEL_SHUFFLE] = "pixel_shuffle",
    [PARTITION] = "partition", [MERGE] = "merge",       [COPY] = "copy",
    [PIXELS] = "pixels"};

typedef struct reader {
  const pl_document *document;
  const pl_node *root;
  pl_arena *arena;
  pl_model *model;
  pl_error *error;
  int64_t latent, mlp_ratio, window;
  bool relative;
  /* where the blocks have come to */
  int64_t side, channels;
  bool is_windowed;
  pl_model_part *parts;
  uint8_t *part_of, *changes;
  int32_t n_blocks;
} reader;

/* ---- keys ---- */

static pl_code integer(const reader *in, const char *key, int64_t highest, int64_t otherwise, int64_t *value) {
  *value = otherwise;
  if (otherwise > 0 && pl_node_get(in->root, key) == NULL) return PL_OK;
  return pl_node_integer(in->document, in->root, key, 1, highest, value, in->error);
}

static pl_code boolean(const reader *in, const char *key, bool *value) {
  *value = false;
  if (pl_node_get(in->root, key) == NULL) return PL_OK;
  return pl_node_boolean(in->document, in->root, key, value, in->error);
}

static pl_code read_norm(const reader *in) {
  const char *norm = "ln";
  if (pl_node_get(in->root, "g_norm") != NULL)
    PL_TRY(pl_node_string(in->document, in->root, "g_norm", &norm, in->error));
  bool is_pixel = strcmp(norm, "pn") == 0;
  in->model->norms.norm = is_pixel ? PL_NORM_PIXEL : PL_NORM_LAYER;
  in->model->norms.norm_bias = !is_pixel;
  in->model->numbers.norm_epsilon = is_pixel ? 1e-8 : 1e-5;
  if (is_pixel || strcmp(norm, "ln") == 0) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "g_norm"), in->error,
                          "'g_norm' is '%s'; supported are ln and pn", norm);
}

/* What all layers share; widths are set block by block. */
static pl_code read_traits(reader *in) {
  const int64_t width_max = INT64_C(1) << 22, side_max = 4096;
  pl_model *model = in->model;
  bool qkv_bias;
  PL_TRY(integer(in, "latent_dim", width_max, 0, &in->latent));
  PL_TRY(integer(in, "gf_dim", width_max, 0, &in->channels));
  PL_TRY(integer(in, "bottom_width", side_max, 0, &in->side));
  PL_TRY(integer(in, "num_heads", width_max, 0, &model->attention.n_heads));
  PL_TRY(integer(in, "mlp_ratio", 1024, 4, &in->mlp_ratio));
  PL_TRY(integer(in, "g_window_size", side_max, INT64_MAX, &in->window));
  PL_TRY(boolean(in, "qkv_bias", &qkv_bias));
  PL_TRY(boolean(in, "relative_positions", &in->relative));
  PL_TRY(read_norm(in));
  PL_TRY(pl_model_read_name(in->document, in->arena, in->model, in->error));
  model->family = "transgan";
  model->architecture = "TransGANGenerator";
  model->mlp.activation = "gelu";
  model->attention.n_kv_heads = model->attention.n_heads;
  model->attention.attention_bias = qkv_bias;
  model->attention.output_bias = model->mlp.mlp_bias = model->positions.learned_positions = true;
  model->width.vocab = 1;
  model->moe.capacity_factor = 1;
  model->moe.expert_layer_step = 1;
  model->positions.max_positions = in->side * in->side;
  return PL_OK;
}

/* ---- blocks ---- */

static pl_model_part part_here(const reader *in, pl_block_kind kind) {
  int64_t across = in->is_windowed ? in->side / in->window : 1, side = in->side / across;
  return (pl_model_part){.kind = kind,
                         .windows = across * across,
                         .rows = side * side,
                         .out_rows = side * side,
                         .out_width = in->channels,
                         .first_block = in->n_blocks};
}

static pl_code refuse(const reader *in, const pl_node *node, const char *why) {
  return pl_document_fail(in->document, node, in->error, "'blocks': number %d: %s", in->n_blocks + 1, why);
}

static pl_code check_place(const reader *in, const pl_node *node, shape_change change) {
  if ((change == LATENT) != (in->n_blocks == 0)) return refuse(in, node, "the first block, and no other, is latent");
  bool apart = change == LAYER || change == VIEW || change == COPY || change == MERGE;
  if (in->is_windowed && !apart) return refuse(in, node, "the picture is still in windows: merge them first");
  if (change == MERGE && !in->is_windowed) return refuse(in, node, "the picture is not in windows");
  if (change == PARTITION && in->window == INT64_MAX) return refuse(in, node, "partition needs 'g_window_size'");
  if (change == PARTITION && in->side % in->window != 0)
    return refuse(in, node, "'g_window_size' does not divide the side of the picture");
  if (change == PIXEL_SHUFFLE && in->channels % 4 != 0)
    return refuse(in, node, "pixel_shuffle needs channels that 4 divides");
  if ((change == PIXEL_SHUFFLE || change == UPSAMPLE) && in->side > 1 << 14)
    return refuse(in, node, "the picture becomes too large");
  if (change == LAYER && in->channels % in->model->attention.n_heads != 0)
    return refuse(in, node, "'num_heads' does not divide the channels");
  return PL_OK;
}

/* The part that the block is, and what it leaves to the next. */
static pl_model_part make_part(reader *in, shape_change change, int64_t *width) {
  static const pl_block_kind kinds[] = {
      [VIEW] = PL_BLOCK_IDENTITY,     [LATENT] = PL_BLOCK_LATENT,    [POSITIONS] = PL_BLOCK_POSITIONS,
      [LAYER] = PL_BLOCK_LAYER,       [UPSAMPLE] = PL_BLOCK_RESHAPE, [PIXEL_SHUFFLE] = PL_BLOCK_RESHAPE,
      [PARTITION] = PL_BLOCK_RESHAPE, [MERGE] = PL_BLOCK_RESHAPE,    [COPY] = PL_BLOCK_RESHAPE,
      [PIXELS] = PL_BLOCK_PIXELS};
  pl_model_part part = part_here(in, kinds[change]);
  *width = in->channels;
  switch (change) {
  case LATENT:
    *width = in->latent;
    part.out_width = part.rows * in->channels;
    part.rows = part.out_rows = 1;
    break;
  case UPSAMPLE:
  case PIXEL_SHUFFLE:
    in->side *= 2;
    in->channels /= change == PIXEL_SHUFFLE ? 4 : 1;
    part.out_rows *= 4;
    part.out_width = in->channels;
    break;
  case PARTITION:
  case MERGE:
    in->is_windowed = change == PARTITION;
    break;
  case PIXELS:
    part.out_width = 3;
    break;
  default:
    break;
  }
  return part;
}

static pl_code model_of(const reader *in, const pl_model_part *part, int64_t width, const pl_model **made) {
  pl_model *model = PL_TAKE(in->arena, pl_model, 1);
  if (model == NULL) return pl_fail_memory(in->error, "the parts of a model");
  *model = *in->model;
  model->n_layers = 1;
  model->width.hidden = width;
  model->width.ffn_hidden = in->mlp_ratio * width;
  model->attention.head_size = model->attention.value_size =
      width / model->attention.n_heads > 0 ? width / model->attention.n_heads : 1;
  model->positions.learned_positions = false; /* a block of their own */
  for (int64_t side = 1; in->relative && part->kind == PL_BLOCK_LAYER && side * side <= part->rows; side++)
    model->positions.relative_window = side;
  *made = model;
  return PL_OK;
}

static bool is_same(const pl_model_part *a, const pl_model_part *b, int64_t width) {
  return a->kind == b->kind && a->windows == b->windows && a->rows == b->rows && a->out_rows == b->out_rows &&
         a->out_width == b->out_width && a->model->width.hidden == width;
}

static const uint8_t changes[] = {
    [COPY] = PL_SHAPE_COPY,           [UPSAMPLE] = PL_SHAPE_UPSAMPLE, [PIXEL_SHUFFLE] = PL_SHAPE_PIXEL_SHUFFLE,
    [PARTITION] = PL_SHAPE_PARTITION, [MERGE] = PL_SHAPE_MERGE,       [PIXELS] = PL_SHAPE_NONE};

static pl_code add_block(reader *in, const pl_node *node, shape_change change) {
  PL_TRY(check_place(in, node, change));
  if (in->n_blocks == BLOCKS_MAX) return refuse(in, node, "too many");
  int64_t width;
  pl_model_part part = make_part(in, change, &width);
  int32_t p = 0;
  while (p < in->model->unlike.n_parts && !is_same(&in->parts[p], &part, width))
    p++;
  if (p == PL_MODEL_PARTS_MAX) return refuse(in, node, "too many different ones");
  if (p == in->model->unlike.n_parts) {
    PL_TRY(model_of(in, &part, width, &part.model));
    in->parts[in->model->unlike.n_parts++] = part;
  }
  in->changes[in->n_blocks] = changes[change];
  in->part_of[in->n_blocks++] = (uint8_t)p;
  return PL_OK;
}

/* "layer*12" */
static pl_code read_block(reader *in, const pl_node *node) {
  const char *text;
  PL_TRY(pl_node_as_string(in->document, node, &text, in->error));
  size_t length = strcspn(text, "*");
  char *end = NULL;
  long count = text[length] == '*' ? strtol(text + length + 1, &end, 10) : 1;
  if (count < 1 || count > BLOCKS_MAX || (end != NULL && *end != '\0'))
    return pl_document_fail(in->document, node, in->error, "'blocks': '%.64s' has a count that is not from 1 to %d",
                            text, BLOCKS_MAX);
  for (size_t b = 0; b < sizeof block_names / sizeof block_names[0]; b++) {
    if (strlen(block_names[b]) != length || strncmp(block_names[b], text, length) != 0) continue;
    for (long i = 0; i < count; i++)
      PL_TRY(add_block(in, node, (shape_change)b));
    return PL_OK;
  }
  return pl_document_fail(in->document, node, in->error,
                          "'blocks': '%.64s' is unknown; there are latent, positions, layer, upsample, pixel_shuffle, "
                          "partition, merge, copy, view and pixels",
                          text);
}

static pl_code read_blocks(reader *in) {
  const pl_node *list = pl_node_get(in->root, "blocks");
  if (list == NULL || !pl_node_is_sequence(list))
    return pl_document_fail(in->document, list != NULL ? list : in->root, in->error,
                            "'blocks' must be a list of block names");
  in->parts = PL_TAKE(in->arena, pl_model_part, PL_MODEL_PARTS_MAX);
  in->part_of = PL_TAKE(in->arena, uint8_t, BLOCKS_MAX);
  in->changes = PL_TAKE(in->arena, uint8_t, BLOCKS_MAX);
  if (in->parts == NULL || in->part_of == NULL || in->changes == NULL)
    return pl_fail_memory(in->error, "the blocks of a model");
  for (size_t i = 0; i < pl_node_count(list); i++)
    PL_TRY(read_block(in, pl_node_at(list, i)));
  if (in->n_blocks < LEAST_BLOCKS)
    return pl_document_fail(in->document, list, in->error, "'blocks': %d of them; %d are needed", in->n_blocks,
                            LEAST_BLOCKS);
  if (in->parts[in->part_of[in->n_blocks - 1]].kind != PL_BLOCK_PIXELS)
    return pl_document_fail(in->document, list, in->error, "'blocks': the last one must be pixels");
  return PL_OK;
}

/* The whole speaks of its first layer where a report asks for a width. */
static void adopt_first_layer(pl_model *model) {
  const pl_model *first = model->unlike.parts[0].model;
  for (int32_t p = model->unlike.n_parts; p-- > 0;)
    if (model->unlike.parts[p].kind == PL_BLOCK_LAYER) first = model->unlike.parts[p].model;
  model->width.hidden = first->width.hidden;
  model->width.ffn_hidden = first->width.ffn_hidden;
  model->attention.head_size = model->attention.value_size = first->attention.head_size;
}

pl_code pl_model_transgan_read(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  reader in = {
      .document = document, .root = pl_document_root(document), .arena = arena, .model = model, .error = error};
  model->digest = pl_document_digest(document);
  PL_TRY(read_traits(&in));
  PL_TRY(read_blocks(&in));
  model->unlike.parts = in.parts;
  model->unlike.part_of = in.part_of;
  model->unlike.changes = in.changes;
  model->n_layers = in.n_blocks - PL_MODEL_BLOCKS_BEFORE_LAYERS - PL_MODEL_BLOCKS_AFTER_LAYERS;
  adopt_first_layer(model);
  for (int32_t block = 0; block < in.n_blocks; block++)
    model->count.trained_parameters += pl_model_block_parameters(model, block);
  model->count.parameters = model->count.trained_parameters;
  return PL_OK;
}
