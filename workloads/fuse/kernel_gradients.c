/* Gradients of parameters on their way into their buffers: by the product that makes them, or by a kernel of their own;
 * those of biases and norms by the kernel that sums them up. See workloads/fuse/kernel_groups.h.
 */
#include "workloads/fuse/kernel_groups.h"

/* Behind the cast to the type of the buffer. */
static int32_t maker_of(pl_kernel_finding *own, int32_t accumulate) {
  int32_t op = pl_read_made(&own->read, accumulate, 0);
  if (!pl_read_is(&own->read, op, "cast")) return op;
  pl_kernel_join(own, accumulate, op);
  return pl_read_made(&own->read, op, 0);
}

static bool is_weight_gradient(const pl_kernel_finding *own, int32_t op) {
  return pl_read_is(&own->read, op, "product") || pl_read_is(&own->read, op, "convolution_backward_weights");
}

static bool is_summed_up(const pl_kernel_finding *own, int32_t op) {
  static const char *const rows[] = {
      "sum", "layer_norm_backward", "rms_norm_backward", "batch_norm_backward", "embedding_backward", NULL};
  for (const char *const *row = rows; *row != NULL; row++)
    if (pl_read_is(&own->read, op, *row)) return true;
  return false;
}

/* What makes the gradient of the parameter, behind casts and collectives. */
static int32_t source_of(const pl_kernel_finding *own, int32_t accumulate) {
  static const char *const through[] = {"cast", "cut", "copy", "scale", NULL};
  int32_t op = pl_read_made(&own->read, accumulate, 0);
  while (pl_read_is_one_of(&own->read, op, through) || pl_read_is_collective(&own->read, op))
    op = pl_read_made(&own->read, op, 0);
  return op;
}

/* What brings a gradient into what is reduced, a cast to the type of its buffer or a copy, in front of the collective
 * that cuts it; PL_IR_NONE: nothing. */
static int32_t written_before(const pl_kernel_finding *own, int32_t accumulate) {
  int32_t meeting = pl_read_made(&own->read, accumulate, 0);
  int32_t op = pl_read_is_collective(&own->read, meeting) ? pl_read_made(&own->read, meeting, 0) : PL_IR_NONE;
  return pl_read_is(&own->read, op, "cast") || pl_read_is(&own->read, op, "copy") ? op : PL_IR_NONE;
}

/* A cast is of whoever adds gradients to buffers where nothing is between: what sums up, products that add. */
static void join_cast(pl_kernel_finding *own, int32_t accumulate) {
  int32_t cast = written_before(own, accumulate);
  if (!pl_read_is(&own->read, cast, "cast") || own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED) return;
  int32_t maker = pl_read_made(&own->read, cast, 0);
  if (is_weight_gradient(own, maker) ? pl_framework_adds_in_products(own->framework) : is_summed_up(own, maker))
    pl_kernel_join(own, cast, maker);
}

/* Of a pack one kernel makes all gradients, and one adds them up. */
static void join_pack(pl_kernel_finding *own, int32_t accumulate) {
  int32_t pack = pl_kernel_pack_of(own->packs, pl_read_op(&own->read, accumulate)->path);
  int32_t source = source_of(own, accumulate);
  for (int32_t i = accumulate + 1; pack != PL_IR_NONE && i < own->read.f->n_ops; i++) {
    if (!pl_read_is(&own->read, i, "accumulate")) continue;
    if (pl_kernel_pack_of(own->packs, pl_read_op(&own->read, i)->path) != pack) continue;
    int32_t other = source_of(own, i);
    bool alike = source != PL_IR_NONE && other != PL_IR_NONE &&
                 pl_read_op(&own->read, source)->row == pl_read_op(&own->read, other)->row &&
                 pl_kernel_same_type(own, source, other);
    if (alike) pl_kernel_join(own, source, other);
    if (alike) pl_kernel_join(own, accumulate, i);
    if (alike && own->framework->gradients.gradient_path == PL_GRADIENTS_ADDED)
      pl_kernel_join(own, written_before(own, accumulate), written_before(own, i));
    return; /* which joins the next */
  }
}

static void join_source(pl_kernel_finding *own, int32_t accumulate) {
  int32_t maker = maker_of(own, accumulate);
  if (maker == PL_IR_NONE) return;
  if (is_weight_gradient(own, maker) ? pl_framework_adds_in_products(own->framework) : is_summed_up(own, maker))
    pl_kernel_join(own, accumulate, maker);
  int32_t dy = pl_read_is(&own->read, maker, "embedding_backward") ? pl_read_made(&own->read, maker, 1) : PL_IR_NONE;
  if (pl_read_is(&own->read, dy, "sum") && pl_kernel_next(own, dy) == maker) pl_kernel_join(own, maker, dy);
}

static void join_first(pl_kernel_finding *own, int32_t *first, int32_t op) {
  if (*first == PL_IR_NONE) *first = op;
  pl_kernel_join(own, *first, op);
}

enum { PATH_OF_WIDE = 3, PATH_STEPS };

/* Of the steps of a gradient in front of its reduction each is one kernel with those of others. */
static void join_path(pl_kernel_finding *own, int32_t accumulate, int32_t firsts[PATH_STEPS]) {
  static const char *const rows[] = {"copy", "cast", "scale", "cast"};
  bool before = false;
  for (int32_t op = pl_read_made(&own->read, accumulate, 0), end = source_of(own, accumulate);
       op != end && op != PL_IR_NONE; op = pl_read_made(&own->read, op, 0)) {
    before = before || pl_read_is_collective(&own->read, op);
    const char *reason = pl_read_op(&own->read, op)->reason;
    bool of_wide = reason != NULL && strcmp(reason, PL_READ_GRADIENT_OF_WIDE) == 0;
    for (int i = 0; i < PATH_STEPS; i++)
      if (before && pl_read_is(&own->read, op, rows[i]) && of_wide == (i == PATH_OF_WIDE))
        join_first(own, &firsts[i], op);
  }
}

/* Sharded gradients pass through kernels over all of a block's, vectors' too, however few its tokens are. */
static void join_all(pl_kernel_finding *own) {
  int32_t first = PL_IR_NONE, firsts[PATH_STEPS] = {PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE};
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    if (!pl_read_is(&own->read, i, "accumulate")) continue;
    int32_t source = source_of(own, i);
    if (is_weight_gradient(own, source)) join_first(own, &first, i);
    join_path(own, i, firsts);
  }
}

/* What a function gathers at once is copied by one kernel. */
static void join_copies(pl_kernel_finding *own) {
  int32_t first = PL_IR_NONE;
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "copy") && pl_ir_attribute_find(pl_read_op(&own->read, i), "launches") != NULL)
      join_first(own, &first, i);
}

/* Queries, keys and values, or the halves of a gate's gradient, are copied by one kernel a step. */
static void join_heads(pl_kernel_finding *own) {
  enum { STEPS = 9 };
  int32_t firsts[STEPS];
  for (int i = 0; i < STEPS; i++)
    firsts[i] = PL_IR_NONE;
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    int64_t step = pl_read_is(&own->read, i, "copy") ? pl_ir_integer_of(pl_read_op(&own->read, i), "heads", 0) : 0;
    if (step > 0 && step < STEPS) join_first(own, &firsts[step], i);
  }
}

void pl_kernel_gradients(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "accumulate")) join_source(own, i);
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "accumulate")) join_cast(own, i);
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "accumulate")) join_pack(own, i);
  if (own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED) join_all(own);
  if (own->framework->gathers.gather_unit == PL_GATHER_LAYER) join_copies(own);
  join_heads(own);
}
