/* Blocks of convolutional networks (workloads/ir/chain.h) as functions of the program language. A picture is
 * [b, c, y, x]; a convolution's weight [o, c, i, j] has its filter as i and j. What is padded is padded by half in
 * front, rounded down.
 */
#include "workloads/import/program_write.h"
#include "workloads/ir/chain.h"

enum { ATTRIBUTES_MAX = 7 };

static void set_extent(pl_program_writer *to, char letter, int64_t extent) {
  to->extent[letter - 'a'] = extent;
}

static const char *picture_dims(pl_program_writer *to, const pl_picture *picture) {
  set_extent(to, 'c', picture->channels);
  set_extent(to, 'y', picture->height);
  set_extent(to, 'x', picture->width);
  return "bcyx";
}

static const char *path_of(pl_program_writer *to, const char *kind, uint32_t step) {
  const char *made = pl_arena_printf(to->module->arena, "%s.%u", kind, step);
  return made != NULL ? made : kind; /* no memory: the arena says so */
}

/* Rows or columns that a window lacks to see all that it should. */
static int64_t lacking(int64_t in, int64_t out, int64_t size, int64_t stride) {
  int64_t seen = (out - 1) * stride + size;
  return seen > in ? seen - in : 0;
}

/* How the step's window slides: behind the `n` attributes that are there. */
static int32_t sliding(pl_program_writer *to, const pl_chain_step *step, pl_ir_attribute *attributes, int32_t n) {
  static const pl_ir_name points[] = {{"y"}, {"x"}};
  int64_t high = lacking(step->in.height, step->out.height, step->filter_height, step->stride);
  int64_t wide = lacking(step->in.width, step->out.width, step->filter_width, step->stride);
  attributes[n++] = pl_ir_names("window", 2, points);
  attributes[n++] = pl_ir_text("stride", pl_write_pair(to, step->stride, step->stride));
  attributes[n++] = pl_ir_text("padding", pl_write_pair(to, high / 2, wide / 2));
  attributes[n++] = pl_ir_text("padding_after", pl_write_pair(to, high - high / 2, wide - wide / 2));
  return n;
}

static int32_t convolution(pl_program_writer *to, const pl_chain_step *step, uint32_t index, int32_t x) {
  static const pl_ir_name over[] = {{"c"}}, kernel[] = {{"i"}, {"j"}};
  const char *name = path_of(to, "convolution", index);
  picture_dims(to, &step->in);
  set_extent(to, 'o', step->out.channels);
  set_extent(to, 'i', step->filter_height);
  set_extent(to, 'j', step->filter_width);
  pl_ir_attribute attributes[ATTRIBUTES_MAX] = {pl_ir_names("over", 1, over), pl_ir_names("kernel", 2, kernel)};
  int32_t n = sliding(to, step, attributes, 2);
  const int32_t inputs[] = {x, pl_write_param(to, path_of(to, "weight", index), "ocij")};
  int32_t y = pl_ir_op_infer(to->module, to->function, "convolution", name, 2, inputs, n, attributes);
  if (step->bias) y = pl_write_bias(to, path_of(to, "bias", index), y, "o");
  return pl_write_rename(to, y, "o", "c");
}

static int32_t pool(pl_program_writer *to, const pl_chain_step *step, uint32_t index, int32_t x) {
  bool max = step->kind == PL_STEP_MAX_POOL;
  pl_ir_attribute attributes[ATTRIBUTES_MAX] = {
      pl_ir_text("size", pl_write_pair(to, step->filter_height, step->filter_width))};
  int32_t n = sliding(to, step, attributes, 1);
  return pl_ir_op_infer(to->module, to->function, max ? "max_pool" : "average_pool", path_of(to, "pool", index), 1, &x,
                        n, attributes);
}

static int32_t batch_norm(pl_program_writer *to, const pl_chain_step *step, uint32_t index, int32_t x) {
  static const pl_ir_name over[] = {{"b"}, {"y"}, {"x"}};
  picture_dims(to, &step->out);
  const int32_t inputs[] = {x, pl_write_param(to, path_of(to, "scale", index), "c"),
                            pl_write_param(to, path_of(to, "shift", index), "c")};
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 3, over),
                                        pl_ir_real("epsilon", to->model->numbers.norm_epsilon)};
  return pl_ir_op_infer(to->module, to->function, "batch_norm", path_of(to, "norm", index), 3, inputs, 2, attributes);
}

/* On all points and channels at once; the result is a picture of one point. */
static int32_t linear(pl_program_writer *to, const pl_chain_step *step, uint32_t index, int32_t x) {
  const char *name = path_of(to, "linear", index);
  picture_dims(to, &step->in);
  set_extent(to, 'o', step->out.channels);
  int32_t y = pl_write_product(to, name, x, pl_write_param(to, path_of(to, "weight", index), "ocyx"), "cyx");
  if (step->bias) y = pl_write_bias(to, path_of(to, "bias", index), y, "o");
  return pl_write_spread(to, name, pl_write_rename(to, y, "o", "c"), picture_dims(to, &step->out));
}

/* Channels of both, side by side: each laid into a picture of zeros. */
static int32_t join(pl_program_writer *to, const pl_chain_step *step, uint32_t index, int32_t a, int32_t b) {
  const char *name = path_of(to, "join", index), *dims = picture_dims(to, &step->out);
  return pl_write_two(to, "add", name, pl_write_padded(to, name, a, "c", 0, dims),
                      pl_write_padded(to, name, b, "c", step->in.channels, dims));
}

static int32_t write_step(pl_program_writer *to, const pl_chain_step *step, uint32_t i, int32_t a, int32_t b) {
  switch ((pl_chain_step_kind)step->kind) {
  case PL_STEP_CONVOLUTION:
    return convolution(to, step, i, a);
  case PL_STEP_NORM:
    return batch_norm(to, step, i, a);
  case PL_STEP_RELU:
    return pl_write_one(to, "relu", path_of(to, "relu", i), a);
  case PL_STEP_DROPOUT:
    return pl_write_dropout(to, path_of(to, "dropout", i), a, to->model->numbers.hidden_dropout);
  case PL_STEP_MAX_POOL:
  case PL_STEP_MEAN_POOL:
    return pool(to, step, i, a);
  case PL_STEP_LINEAR:
    return linear(to, step, i, a);
  case PL_STEP_ADD:
    return pl_write_two(to, "add", path_of(to, "shortcut", i), a, b);
  case PL_STEP_JOIN:
    return join(to, step, i, a, b);
  }
  return a;
}

void pl_program_chain(pl_program_writer *to, const char *name, const pl_chain *chain) {
  if (pl_write_function(to, name) == NULL) return;
  int32_t made[PL_CHAIN_STEPS_MAX + 1];
  made[0] = pl_write_argument(to, "x", picture_dims(to, &chain->in));
  for (uint32_t i = 0; i < chain->n_steps; i++) {
    const pl_chain_step *step = &chain->steps[i];
    made[i + 1] = write_step(to, step, i + 1, made[step->first], made[step->second]);
  }
  pl_write_result(to, made[chain->n_steps]);
}
