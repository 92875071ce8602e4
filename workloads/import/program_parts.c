/* Models of unlike blocks as programs: plain MLPs and convolutional networks. TransGAN is refused: attention has no
 * table of relative positions.
 */
#include "workloads/import/program_write.h"
#include "workloads/ir/chain.h"

static bool is_known(pl_block_kind kind) {
  return kind == PL_BLOCK_IDENTITY || kind == PL_BLOCK_DENSE_OUT || kind == PL_BLOCK_DENSE_IN ||
         kind == PL_BLOCK_CHAIN || kind == PL_BLOCK_MEAN;
}

pl_code pl_program_check_parts(const pl_model *model, pl_error *error) {
  for (int32_t i = 0; i < model->n_parts; i++)
    if (!is_known(model->parts[i].kind))
      return pl_fail(error, PL_UNSUPPORTED,
                     "%s: models of model_type '%s' cut pictures into windows and have tables of relative positions, "
                     "which programs cannot say yet",
                     model->name, model->family);
  return PL_OK;
}

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
  double n = picture != NULL ? (double)pl_picture_points(picture) * picture->channels : (double)to->model->hidden;
  pl_write_loss(to, x, dims, (double)to->options->gbs * n);
}

static const char *name_of(pl_program_writer *to, int32_t part) {
  pl_block_kind kind = to->model->parts[part].kind;
  if (kind == PL_BLOCK_DENSE_OUT) return "dense_out";
  if (kind == PL_BLOCK_DENSE_IN) return "dense_in";
  const char *made = pl_arena_printf(to->module->arena, "chain%d", part);
  return made != NULL ? made : "chain";
}

static void write_part(pl_program_writer *to, int32_t part) {
  const char *name = name_of(to, part);
  if (to->model->parts[part].kind == PL_BLOCK_DENSE_OUT) dense(to, name, "bh", "hf", "h");
  if (to->model->parts[part].kind == PL_BLOCK_DENSE_IN) dense(to, name, "bf", "fh", "f");
  if (to->model->parts[part].kind == PL_BLOCK_CHAIN) pl_program_chain(to, name, to->model->parts[part].chain);
}

void pl_program_parts(pl_program_writer *to) {
  const pl_model *model = to->model;
  const pl_model_part *parts = model->parts, *first = &parts[model->part_of[0]];
  const pl_picture *last = NULL;
  to->extent['f' - 'a'] = model->hidden;
  data(to, first->kind == PL_BLOCK_CHAIN ? &first->chain->in : NULL);
  for (int32_t part = 0; part < model->n_parts; part++)
    write_part(to, part);
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    if (pl_model_block_kind(model, block) == PL_BLOCK_CHAIN) last = &parts[model->part_of[block]].chain->out;
  mean_loss(to, last);
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "data", "data", PL_IR_NONE);
  for (int32_t block = 0, layer = 0; block < pl_model_n_blocks(model); block++) {
    pl_block_kind kind = pl_model_block_kind(model, block);
    if (kind == PL_BLOCK_IDENTITY) continue;
    const char *instance = kind == PL_BLOCK_MEAN ? "loss" : pl_arena_printf(to->module->arena, "h.%d", layer++);
    x = pl_write_call(to, kind == PL_BLOCK_MEAN ? "loss" : name_of(to, model->part_of[block]), instance, x);
  }
}
