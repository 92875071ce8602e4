/* Mixed precision by torch.autocast (`autocast` of a profile): casts in front of products and around norms and
 * softmaxes in fp32, of weights where those are fp32, and what fp32 sums move more; of what is computed again, again.
 * Types stay as the program has them: these ops say what is moved and launched, in programs and in tuples' layers, and
 * compute nothing that anybody reads. Not here: what is larger in memory (kernel_wider.c), GELU in steps
 * (kernel_gelu.c). See workloads/fuse/kernel_stepping.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_stepping.h"

/* 2 bytes read and 4 written, as many as the other way round. */
static int32_t cast(pl_kernel_stepping *own, int32_t value, const char *name) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  type.element = PL_IR_F32;
  return pl_step_append(own, "cast", 1, &value, name, &type, PL_READ_AUTOCAST);
}

static int32_t sum(pl_kernel_stepping *own, int32_t a, int32_t b, const char *name, const char *reason) {
  const int32_t pair[] = {a, b};
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_IR_NONE;
  const pl_ir_type type = own->function->values[a].type;
  return pl_step_append(own, "add", 2, pair, name, &type, reason);
}

/* 4 bytes an element. */
static void twice_read(pl_kernel_stepping *own, int32_t value, const char *name) {
  if (value == PL_IR_NONE) return;
  const pl_ir_type type = own->function->values[value].type;
  pl_step_append(own, "copy", 1, &value, name, &type, PL_READ_AUTOCAST_WIDER);
}

static bool is_forward(const pl_kernel_stepping *own) {
  return strchr(own->finding.read.f->name, '.') == NULL;
}

static bool is_of(const pl_kernel_stepping *own, const char *function) {
  return strcmp(own->finding.read.f->name, function) == 0;
}

/* The value that was only brought to another layout since. */
static int32_t origin_of(const pl_kernel_stepping *own, int32_t value) {
  int32_t op = pl_read_maker(&own->finding.read, value);
  while (pl_read_is_view(&own->finding.read, op) || pl_read_is_collective(&own->finding.read, op) ||
         pl_step_is(own, op, "cut")) {
    value = pl_read_op(&own->finding.read, op)->inputs[0];
    op = pl_read_maker(&own->finding.read, value);
  }
  return value;
}

static int32_t source_of(const pl_kernel_stepping *own, int32_t value) {
  return pl_read_maker(&own->finding.read, origin_of(own, value));
}

/* What a layer is handed, where norms are behind the sums; the same that was kept. */
static bool is_handed(const pl_kernel_stepping *own, int32_t value, bool again) {
  int32_t source = source_of(own, value);
  bool wide = pl_ir_type_find(&own->finding.read.f->values[value].type, pl_ir_name_of("h")) >= 0;
  return wide && (again ? pl_step_is(own, source, "kept") : source == PL_IR_NONE);
}

/* Each of queries, keys and values casts for itself, before tensor ranks gather; and so does each that is computed
 * again. */
static void of_product(pl_kernel_stepping *own, int32_t index, pl_autocast_form form) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool forward = is_forward(own), again = !forward && own->again[index];
  if (!forward && !again) return;
  int32_t source = source_of(own, op->inputs[0]);
  bool wide = pl_read_is_norm(&own->finding.read, source) || (is_of(own, "head") && source == PL_IR_NONE) ||
              (form == PL_AUTOCAST_ALL && is_handed(own, op->inputs[0], again));
  if (wide) cast(own, own->map[origin_of(own, op->inputs[0])], "autocast");
  if (form == PL_AUTOCAST_ALL) cast(own, own->map[op->inputs[1]], "weight.autocast");
}

enum { MOST_PRODUCTS = 64 };

/* Products whose results are added up to a gradient; at most so many, for sums of sums of one value are twice as many
 * with each. */
static int32_t n_products(const pl_kernel_stepping *own, int32_t value, int32_t most) {
  int32_t op = source_of(own, value);
  if (most <= 1 || !pl_step_is(own, op, "add")) return 1;
  const pl_ir_op *add = pl_read_op(&own->finding.read, op);
  int32_t first = n_products(own, add->inputs[0], most - 1);
  return first + n_products(own, add->inputs[1], most - first);
}

/* A gradient that products give, perhaps several; of *most sums. */
static bool is_of_products(const pl_kernel_stepping *own, int32_t value, int32_t *most) {
  int32_t op = source_of(own, value);
  if (pl_step_is(own, op, "product")) return true;
  if (!pl_step_is(own, op, "add") || --*most <= 0) return false;
  const int32_t *inputs = pl_read_op(&own->finding.read, op)->inputs;
  return is_of_products(own, inputs[0], most) && is_of_products(own, inputs[1], most);
}

/* Each cast for itself, and added up in fp32. */
static void widen_products(pl_kernel_stepping *own, int32_t value) {
  int32_t n = n_products(own, value, MOST_PRODUCTS), all = cast(own, own->map[value], "autocast.dinput");
  for (int32_t i = 1; i < n; i++)
    all = sum(own, all, cast(own, own->map[value], "autocast.dinput"), "autocast.dsum", PL_READ_AUTOCAST);
}

static void of_norm_backward(pl_kernel_stepping *own, const pl_ir_op *op, pl_autocast_form form) {
  int32_t source = source_of(own, op->inputs[2]), most = MOST_PRODUCTS; /* none: the head's */
  bool adds = pl_step_is(own, source, "add");                           /* of_sum has cast what it adds to fp32 */
  if (source != PL_IR_NONE && (!adds || is_of_products(own, op->inputs[2], &most))) widen_products(own, op->inputs[2]);
  if (form == PL_AUTOCAST_NORMS) cast(own, own->map[op->first_output], "autocast.dx");
}

static bool is_of_norm_backward(const pl_kernel_stepping *own, int32_t value) {
  int32_t op = source_of(own, value);
  return pl_step_is(own, op, "layer_norm_backward") || pl_step_is(own, op, "rms_norm_backward");
}

/* Sums of the residual stream: 10 bytes instead of 6, of its gradients 12; and gradients of the branches are cast. */
static void of_sum(pl_kernel_stepping *own, const pl_ir_op *op, int32_t made) {
  const pl_ir_type *a = &own->finding.read.f->values[op->inputs[0]].type,
                   *b = &own->finding.read.f->values[op->inputs[1]].type;
  if (!pl_ir_type_same_shape(a, b) || pl_ir_type_find(a, pl_ir_name_of("h")) < 0) return;
  if (is_forward(own)) { /* not branches in parallel with each other */
    if (own->finding.read.n_users[op->inputs[0]] > 1) twice_read(own, made, "autocast.sum");
  } else if (is_of_norm_backward(own, op->inputs[0]) || is_of_norm_backward(own, op->inputs[1])) {
    sum(own, own->map[op->inputs[0]], own->map[op->inputs[1]], "autocast.dsum", PL_READ_AUTOCAST_WIDER);
    for (int32_t k = 0; k < 2; k++) {
      int32_t most = MOST_PRODUCTS;
      if (is_of_products(own, op->inputs[k], &most)) widen_products(own, op->inputs[k]);
    }
    int32_t before = pl_read_maker(&own->finding.read, op->inputs[0]);
    bool goes_on = pl_step_is(own, before, "add") && own->finding.n_readers[op->inputs[0]] == 1;
    if (!goes_on) cast(own, made, "autocast.dbranch");
  }
}

/* Words, positions and their dropout in fp32: 4 bytes an element more each; back, a table's rows are read, and read and
 * written, and positions read. */
static void of_embedding(pl_kernel_stepping *own, int32_t index, int32_t made) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool words = pl_step_is(own, index, "embedding") || pl_step_is(own, index, "embedding_backward");
  int32_t of = words && is_forward(own) ? op->inputs[1] : op->first_output;
  if (words && pl_ir_type_find(&own->finding.read.f->values[of].type, pl_ir_name_of("v")) < 0) return;
  if (!words && !pl_step_is(own, index, "dropout") && !(is_forward(own) && pl_step_is(own, index, "add"))) return;
  bool twice = words && !is_forward(own);
  int32_t rows = twice ? own->map[op->inputs[1]] : made;
  for (int i = 0; i < (twice ? 2 : 1); i++)
    twice_read(own, rows, "autocast.rows");
}

/* To fp32 and back; the other way round backward. */
static void of_scores(pl_kernel_stepping *own, int32_t made) {
  cast(own, made, "autocast.scores");
  cast(own, made, "autocast.probabilities");
}

static void of_head_backward(pl_kernel_stepping *own, int32_t value, int32_t made) {
  const pl_ir_function *f = own->finding.read.f;
  for (int32_t i = 0; i < f->n_results; i++)
    if (f->results[i] == value) cast(own, made, "autocast.dinput");
}

void pl_step_autocast(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (op->n_inputs == 0 || op->n_outputs == 0 || op->callee != PL_IR_NONE) return;
  const pl_ir_value *values = own->finding.read.f->values;
  bool looks_up = values[op->inputs[0]].type.element == PL_IR_I32;
  pl_ir_element element = (pl_ir_element)values[looks_up ? op->first_output : op->inputs[0]].type.element;
  if (element != PL_IR_F16 && element != PL_IR_BF16) return;
  pl_autocast_form form = pl_framework_autocast(own->options->framework, (pl_dtype)element);
  int32_t made = own->map[op->first_output];
  bool scores = pl_step_is(own, index, "softmax") || pl_step_is(own, index, "softmax_backward");
  if (made == PL_IR_NONE) return;
  if (scores && pl_framework_widens_scores(own->options->framework, (pl_dtype)element)) of_scores(own, made);
  if (form == PL_AUTOCAST_OFF || scores) return;
  if (form == PL_AUTOCAST_ALL && (is_of(own, "embedding") || is_of(own, "embedding.backward"))) {
    of_embedding(own, index, made);
    return;
  }
  if (is_of(own, "head.backward")) of_head_backward(own, op->first_output, made);
  if (pl_step_is(own, index, "product") && pl_read_weight(&own->finding.read, index) != NULL)
    of_product(own, index, form);
  else if (pl_step_is(own, index, "layer_norm") && form == PL_AUTOCAST_NORMS)
    cast(own, own->map[op->inputs[0]], "autocast.x");
  else if (pl_step_is(own, index, "layer_norm_backward") || pl_step_is(own, index, "rms_norm_backward"))
    of_norm_backward(own, op, form);
  else if (pl_step_is(own, index, "add") && !pl_read_is_bias(&own->finding.read, index) && form == PL_AUTOCAST_ALL)
    of_sum(own, op, made);
}
