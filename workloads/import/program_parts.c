/* Models of unlike blocks as programs: plain MLPs and convolutional networks; those that grow pictures:
 * program_transgan.c. */
#include "workloads/import/program_write.h"
#include "workloads/ir/chain.h"

/* y = relu(x W), from h to f wide and back from f to h: the two may be cut differently. */
static void dense(pl_program_writer *to, const char *name, const char *from, const char *weight, const char *over) {
  if (pl_write_function(to, name) == NULL) return;
  int32_t y = pl_write_linear(to, "dense", pl_write_argument(to, "x", from), weight, over, false);
  pl_write_result(to, pl_write_one(to, "relu", "y", y));
}

/* Pictures have what a chain says, all else is vectors. */
static const char *set_shape(pl_program_writer *to, const pl_picture *picture) {
  if (picture == NULL) return "bh";
  to->extent['c' - 'a'] = picture->channels;
  to->extent['y' - 'a'] = picture->height;
  to->extent['x' - 'a'] = picture->width;
  return "bcyx";
}

static void data(pl_program_writer *to, const pl_picture *picture) {
  if (pl_write_function(to, "data") == NULL) return;
  const char *name = picture != NULL ? "pictures" : "vectors";
  pl_ir_type type = pl_write_type(to, to->options->element, set_shape(to, picture));
  pl_write_result(to, pl_ir_op_typed(to->module, to->function, "input", name, name, 0, NULL, &type, 0, NULL));
}

static void mean_loss(pl_program_writer *to, const pl_picture *picture) {
  if (pl_write_function(to, "loss") == NULL) return;
  const char *dims = set_shape(to, picture);
  int32_t x = pl_write_cast(to, "x.fp32", pl_write_argument(to, "x", dims), PL_IR_F32);
  double n = picture != NULL ? (double)pl_picture_points(picture) * picture->channels : (double)to->model->width.hidden;
  pl_write_loss(to, x, dims, (double)to->options->gbs * n);
}

/* What the last chain of a network hands on; NULL: no network. */
static const pl_picture *last_picture(const pl_model *model) {
  const pl_picture *last = NULL;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    if (pl_model_block_kind(model, block) == PL_BLOCK_CHAIN)
      last = &model->unlike.parts[model->unlike.part_of[block]].chain->out;
  return last;
}

static const char *name_of(pl_program_writer *to, int32_t part) {
  pl_block_kind kind = to->model->unlike.parts[part].kind;
  if (kind == PL_BLOCK_DENSE_OUT) return "dense_out";
  if (kind == PL_BLOCK_DENSE_IN) return "dense_in";
  const char *made = pl_arena_printf(to->module->arena, "chain%d", part);
  return made != NULL ? made : "chain";
}

static void write_part(pl_program_writer *to, int32_t part) {
  const char *name = name_of(to, part);
  if (to->model->unlike.parts[part].kind == PL_BLOCK_DENSE_OUT) dense(to, name, "bh", "hf", "h");
  if (to->model->unlike.parts[part].kind == PL_BLOCK_DENSE_IN) dense(to, name, "bf", "fh", "f");
  if (to->model->unlike.parts[part].kind == PL_BLOCK_CHAIN)
    pl_program_chain(to, name, to->model->unlike.parts[part].chain);
}

/* ---- parts alone ---- */

/* A linear layer on each token. */
static int32_t token_linear(pl_program_writer *to, const char *path, const pl_model_part *own) {
  to->extent['o' - 'a'] = own->out_width;
  return pl_write_linear(to, path, pl_write_argument(to, "x", "bsh"), "ho", "h", true);
}

/* Fewer channels on more tokens, tokens repeated, or in another order. Which is which no time depends on: tokens that
 * only change places are said to be joined of one part each. In memory all of them are moved. */
static int32_t reshaped(pl_program_writer *to, const pl_model_part *own) {
  int32_t x = pl_write_argument(to, "x", "bsh");
  static const pl_ir_name h[] = {{"h"}}, split[] = {{"h"}, {"u"}}, joined[] = {{"s"}, {"u"}}, s[] = {{"s"}};
  to->extent['u' - 'a'] = own->out_rows / own->rows;
  to->extent['h' - 'a'] = own->out_width;
  if (own->out_width < own->model->width.hidden) {
    pl_ir_type type = pl_write_type(to, to->options->element, "bshu");
    const pl_ir_attribute attributes[] = {pl_ir_names("from", 1, h), pl_ir_names("to", 2, split)};
    x = pl_ir_op_typed(to->module, to->function, "split", "x", NULL, 1, &x, &type, 2, attributes);
  } else {
    x = pl_write_spread(to, "x", x, "bush");
  }
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 2, joined), pl_ir_names("to", 1, s)};
  return pl_ir_op_infer(to->module, to->function, "join", "reshaped", 1, &x, 2, attributes);
}

static void token_part(pl_program_writer *to, const pl_model_part *own) {
  to->extent['s' - 'a'] = own->rows;
  if (pl_write_function(to, pl_block_kind_name(own->kind)) == NULL) return;
  if (own->kind == PL_BLOCK_LATENT) pl_write_result(to, token_linear(to, "latent", own));
  if (own->kind == PL_BLOCK_RESHAPE) pl_write_result(to, reshaped(to, own));
  if (own->kind == PL_BLOCK_POSITIONS)
    pl_write_result(to, pl_write_bias(to, "positions", pl_write_argument(to, "x", "bsh"), "sh"));
  if (own->kind == PL_BLOCK_PIXELS) {
    int32_t pixels = pl_write_cast(to, "pixels.fp32", token_linear(to, "pixels", own), PL_IR_F32);
    pl_write_loss(to, pixels, "bso", (double)to->options->gbs * (double)own->rows * (double)own->out_width);
  }
  if (own->kind == PL_BLOCK_IDENTITY) pl_write_result(to, pl_write_argument(to, "x", "bsh"));
}

void pl_program_part(pl_program_writer *to, int32_t part) {
  const pl_model_part *own = &to->model->unlike.parts[part];
  to->extent['f' - 'a'] = own->model->width.hidden;
  to->extent['h' - 'a'] = own->model->width.hidden;
  if (own->kind == PL_BLOCK_MEAN)
    mean_loss(to, last_picture(to->model));
  else if (own->kind == PL_BLOCK_CHAIN || own->kind == PL_BLOCK_DENSE_OUT || own->kind == PL_BLOCK_DENSE_IN)
    write_part(to, part);
  else
    token_part(to, own);
}

void pl_program_parts(pl_program_writer *to) {
  const pl_model *model = to->model;
  if (model->unlike.changes != NULL) {
    pl_program_transgan(to);
    return;
  }
  const pl_model_part *parts = model->unlike.parts, *first = &parts[model->unlike.part_of[0]];
  to->extent['f' - 'a'] = model->width.hidden;
  data(to, first->kind == PL_BLOCK_CHAIN ? &first->chain->in : NULL);
  for (int32_t part = 0; part < model->unlike.n_parts; part++)
    write_part(to, part);
  mean_loss(to, last_picture(model));
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "data", "data", PL_IR_NONE);
  for (int32_t block = 0, layer = 0; block < pl_model_n_blocks(model); block++) {
    pl_block_kind kind = pl_model_block_kind(model, block);
    if (kind == PL_BLOCK_IDENTITY) continue;
    const char *instance = kind == PL_BLOCK_MEAN ? "loss" : pl_arena_printf(to->module->arena, "h.%d", layer++);
    x = pl_write_call(to, kind == PL_BLOCK_MEAN ? "loss" : name_of(to, model->unlike.part_of[block]), instance, x);
  }
}
