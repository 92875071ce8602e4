/* Generators of the TransGAN kind as programs (workloads/import/model_transgan.c): a picture of few tokens grows.
 * Tokens stand row by row; a picture in windows is so many sequences more, each of a window's tokens.
 *
 *   upsample       every token four times: twice the side (the published code interpolates; no parameter depends on it)
 *   pixel_shuffle  channels (h, u, v) become places (y, u) and (x, v) of a picture of twice the side
 *   partition      places (u, y) and (v, x) of a picture become windows (u, v) of tokens (y, x); merge: and back
 */
#include <math.h>

#include "workloads/import/program_write.h"

typedef struct growing {
  pl_program_writer *to;
  const pl_model_part *part;
  int64_t batch; /* pictures of a microbatch */
} growing;

static void set(const growing *own, char letter, int64_t extent) {
  own->to->extent[letter - 'a'] = extent;
}

static int64_t side_of(int64_t tokens) {
  return llround(sqrt((double)tokens));
}

/* ---- dimensions ---- */

static void names_of(const char *letters, int32_t *n, pl_ir_name names[PL_IR_RANK_MAX]) {
  for (*n = 0; letters[*n] != 0; (*n)++)
    names[*n] = pl_ir_name_of((const char[]){letters[*n], 0});
}

/* Dimension `from` as dimensions `into`; the result's are `dims`. */
static int32_t split(const growing *own, int32_t x, const char *from, const char *into, const char *dims) {
  if (x == PL_IR_NONE) return x;
  pl_ir_name one = pl_ir_name_of(from), many[PL_IR_RANK_MAX];
  int32_t n;
  names_of(into, &n, many);
  pl_ir_type type = pl_write_type(own->to, own->to->options->element, dims);
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 1, &one), pl_ir_names("to", n, many)};
  return pl_ir_op_typed(own->to->module, own->to->function, "split", "x", NULL, 1, &x, &type, 2, attributes);
}

static int32_t join(const growing *own, int32_t x, const char *from, const char *into) {
  if (x == PL_IR_NONE) return x;
  pl_ir_name one = pl_ir_name_of(into), many[PL_IR_RANK_MAX];
  int32_t n;
  names_of(from, &n, many);
  const pl_ir_attribute attributes[] = {pl_ir_names("from", n, many), pl_ir_names("to", 1, &one)};
  return pl_ir_op_infer(own->to->module, own->to->function, "join", "x", 1, &x, 2, attributes);
}

/* ---- changes of shape ---- */

static int32_t upsample(const growing *own, int32_t x) {
  set(own, 'y', side_of(own->part->rows));
  set(own, 'x', side_of(own->part->rows));
  set(own, 'u', 2);
  set(own, 'v', 2);
  x = split(own, x, "s", "yx", "byxh");
  return join(own, pl_write_spread(own->to, "x", x, "byuxvh"), "yuxv", "s");
}

static int32_t pixel_shuffle(const growing *own, int32_t x) {
  set(own, 'y', side_of(own->part->rows));
  set(own, 'x', side_of(own->part->rows));
  set(own, 'u', 2);
  set(own, 'v', 2);
  set(own, 'h', own->part->out_width);
  x = split(own, x, "h", "huv", "bshuv");
  return join(own, split(own, x, "s", "yx", "byxhuv"), "yuxv", "s");
}

/* `across` windows along a side of `side` tokens. */
static void set_windows(const growing *own, int64_t side, int64_t across) {
  set(own, 'u', across);
  set(own, 'v', across);
  set(own, 'y', side / across);
  set(own, 'x', side / across);
}

static int32_t cut_windows(const growing *own, int32_t x, int64_t across) {
  set_windows(own, side_of(own->part->rows), across);
  x = split(own, x, "s", "uyvx", "buyvxh");
  return join(own, join(own, x, "buv", "b"), "yx", "s");
}

static int32_t merge_windows(const growing *own, int32_t x) {
  int64_t across = side_of(own->part->windows);
  set_windows(own, across * side_of(own->part->rows), across);
  set(own, 'b', own->batch);
  x = split(own, x, "b", "buv", "buvsh");
  return join(own, split(own, x, "s", "yx", "buvyxh"), "uyvx", "s");
}

static int32_t reshaped(const growing *own, int32_t x, pl_shape_change change, int64_t across) {
  switch (change) {
  case PL_SHAPE_UPSAMPLE:
    return upsample(own, x);
  case PL_SHAPE_PIXEL_SHUFFLE:
    return pixel_shuffle(own, x);
  case PL_SHAPE_PARTITION:
    return cut_windows(own, x, across);
  case PL_SHAPE_MERGE:
    return merge_windows(own, x);
  default:
    return pl_write_scale(own->to, "copied", x, 1);
  }
}

/* ---- other blocks ---- */

/* From one vector to all tokens of the first picture. */
static int32_t latent(const growing *own, int32_t x, int64_t channels) {
  set(own, 'o', own->part->out_width);
  x = pl_write_linear(own->to, "latent", x, "ho", "h", true);
  set(own, 's', own->part->out_width / channels);
  set(own, 'h', channels);
  return split(own, x, "o", "sh", "bsh");
}

static int32_t pixels(const growing *own, int32_t x) {
  set(own, 'o', own->part->out_width);
  return pl_write_linear(own->to, "pixels", x, "ho", "h", true);
}

/* The mean of what the last block gives. */
static void mean_loss(const growing *own) {
  pl_program_writer *to = own->to;
  if (pl_write_function(to, "loss") == NULL) return;
  int32_t x = pl_write_cast(to, "pixels.fp32", pl_write_argument(to, "x", "bso"), PL_IR_F32);
  pl_write_loss(to, x, "bso", (double)to->options->gbs * (double)own->part->rows * (double)own->part->out_width);
}

static void layer(const growing *own, const char *name) {
  pl_program_writer *to = own->to;
  const pl_model *whole = to->model, *model = own->part->model;
  to->model = model;
  set(own, 't', own->part->rows);
  set(own, 'g', model->attention.n_kv_heads);
  set(own, 'r', 1);
  set(own, 'd', model->attention.head_size);
  set(own, 'e', model->attention.value_size);
  set(own, 'f', model->width.ffn_hidden);
  pl_program_layer(to, name, (pl_layer_kind){0});
  to->model = whole;
}

static const char *const change_names[] = {[PL_SHAPE_COPY] = "copy",
                                           [PL_SHAPE_UPSAMPLE] = "upsample",
                                           [PL_SHAPE_PIXEL_SHUFFLE] = "pixel_shuffle",
                                           [PL_SHAPE_PARTITION] = "partition",
                                           [PL_SHAPE_MERGE] = "merge"};

static const char *name_of(const growing *own, int32_t part, pl_shape_change change) {
  bool reshapes = own->part->kind == PL_BLOCK_RESHAPE;
  const char *kind = reshapes ? change_names[change] : pl_block_kind_name((pl_block_kind)own->part->kind);
  const char *name = pl_arena_printf(own->to->module->arena, "%s%d", kind, part);
  return name != NULL ? name : kind;
}

/* The sequences that a picture is in behind the block. */
static int64_t windows_behind(const pl_model *model, int32_t block) {
  int32_t next = block + 1 < pl_model_n_blocks(model) ? block + 1 : block;
  return model->unlike.parts[model->unlike.part_of[next]].windows;
}

static const char *write_block(growing *own, int32_t block) {
  pl_program_writer *to = own->to;
  int32_t part = to->model->unlike.part_of[block];
  pl_shape_change change = (pl_shape_change)to->model->unlike.changes[block];
  own->part = &to->model->unlike.parts[part];
  const char *name = name_of(own, part, change);
  if (pl_ir_function_find(to->module, name) != PL_IR_NONE) return name;
  set(own, 'b', own->batch * own->part->windows);
  set(own, 's', own->part->rows);
  set(own, 'h', own->part->model->width.hidden);
  if (own->part->kind == PL_BLOCK_LAYER) {
    layer(own, name);
    return name;
  }
  if (pl_write_function(to, name) == NULL) return name;
  int32_t x = pl_write_argument(to, "x", own->part->kind == PL_BLOCK_LATENT ? "bh" : "bsh");
  if (own->part->kind == PL_BLOCK_PIXELS) {
    x = pixels(own, x);
  } else if (own->part->kind == PL_BLOCK_LATENT) {
    int32_t next = to->model->unlike.part_of[block + 1]; /* blocks keep their width until they say otherwise */
    x = latent(own, x, to->model->unlike.parts[next].model->width.hidden);
  } else if (own->part->kind == PL_BLOCK_POSITIONS) {
    x = pl_write_bias(to, "positions", x, "sh");
  } else {
    x = reshaped(own, x, change, side_of(windows_behind(to->model, block)));
  }
  pl_write_result(to, x);
  return name;
}

void pl_program_transgan(pl_program_writer *to) {
  const pl_model *model = to->model;
  growing own = {.to = to, .batch = to->options->batch};
  int32_t n_blocks = pl_model_n_blocks(model);
  const char **names = (const char **)PL_TAKE(to->module->arena, const char *, n_blocks);
  if (names == NULL) return;
  set(&own, 'h', model->unlike.parts[model->unlike.part_of[0]].model->width.hidden);
  if (pl_write_function(to, "data") == NULL) return;
  pl_ir_type type = pl_write_type(to, to->options->element, "bh");
  pl_write_result(to, pl_ir_op_typed(to->module, to->function, "input", "vectors", "vectors", 0, NULL, &type, 0, NULL));
  for (int32_t block = 0; block < n_blocks; block++)
    if (pl_model_block_kind(model, block) != PL_BLOCK_IDENTITY) names[block] = write_block(&own, block);
  mean_loss(&own); /* behind the last */
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "data", "data", PL_IR_NONE);
  for (int32_t block = 0, n = 0; block < n_blocks; block++)
    if (names[block] != NULL) x = pl_write_call(to, names[block], pl_arena_printf(to->module->arena, "h.%d", n++), x);
  pl_write_call(to, "loss", "loss", x);
}
