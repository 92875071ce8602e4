/* Models of unlike blocks as programs: the layers of a plain MLP. Pictures (convolution chains, TransGAN) are refused:
 * the language has no ops for them yet. */
#include "workloads/import/program_write.h"

pl_code pl_program_check_parts(const pl_model *model, pl_error *error) {
  for (int32_t i = 0; i < model->n_parts; i++) {
    pl_block_kind kind = model->parts[i].kind;
    if (kind != PL_BLOCK_IDENTITY && kind != PL_BLOCK_DENSE_OUT && kind != PL_BLOCK_DENSE_IN && kind != PL_BLOCK_MEAN)
      return pl_fail(error, PL_UNSUPPORTED,
                     "%s: models of model_type '%s' have layers of pictures, which programs cannot say yet",
                     model->name, model->family);
  }
  return PL_OK;
}

/* y = relu(x W), from h to f wide and back from f to h: the two may be cut differently. */
static void dense(pl_program_writer *to, const char *name, const char *from, const char *weight, const char *over) {
  if (pl_write_function(to, name) == NULL) return;
  int32_t y = pl_write_linear(to, "dense", pl_write_argument(to, "x", from), weight, over, false);
  pl_write_result(to, pl_write_one(to, "relu", "y", y));
}

static void data(pl_program_writer *to) {
  if (pl_write_function(to, "data") == NULL) return;
  pl_ir_type type = pl_write_type(to, to->options->element, "bh");
  pl_write_result(to, pl_ir_op_typed(to->module, to->function, "input", "vectors", "vectors", 0, NULL, &type, 0, NULL));
}

static void mean_loss(pl_program_writer *to) {
  if (pl_write_function(to, "loss") == NULL) return;
  int32_t x = pl_write_cast(to, "x.fp32", pl_write_argument(to, "x", "bh"), PL_IR_F32);
  pl_write_loss(to, x, "bh", (double)to->options->gbs * (double)to->model->hidden);
}

static const char *name_of(pl_block_kind kind) {
  return kind == PL_BLOCK_DENSE_OUT ? "dense_out" : "dense_in";
}

void pl_program_parts(pl_program_writer *to) {
  const pl_model *model = to->model;
  to->extent['f' - 'a'] = model->hidden;
  data(to);
  dense(to, name_of(PL_BLOCK_DENSE_OUT), "bh", "hf", "h");
  dense(to, name_of(PL_BLOCK_DENSE_IN), "bf", "fh", "f");
  mean_loss(to);
  if (pl_write_function(to, "main") == NULL) return;
  int32_t x = pl_write_call(to, "data", "data", PL_IR_NONE);
  for (int32_t block = 0, layer = 0; block < pl_model_n_blocks(model); block++) {
    pl_block_kind kind = pl_model_block_kind(model, block);
    if (kind == PL_BLOCK_DENSE_OUT || kind == PL_BLOCK_DENSE_IN)
      x = pl_write_call(to, name_of(kind), pl_arena_printf(to->module->arena, "h.%d", layer++), x);
    if (kind == PL_BLOCK_MEAN) pl_write_call(to, "loss", "loss", x);
  }
}
