/* See workloads/cost/ir_kernel.h. */
#include "workloads/cost/ir_kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/cost/ir_launch.h"
#include "workloads/fuse/reading.h"
#include "workloads/ir/chain.h"
#include "workloads/language/ir_product.h"
#include "workloads/language/ir_routing.h"
#include "workloads/language/ir_scan.h"
#include "workloads/language/ir_work.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- products ---- */

static int64_t extents(const pl_ir_type *type, const pl_ir_op *op, const char *attribute, bool named) {
  int64_t n = 1;
  for (int32_t i = 0; i < type->rank; i++)
    if (pl_ir_op_has_name(op, attribute, type->dims[i].name) == named) n *= type->dims[i].extent;
  return n;
}

static pl_ir_product shape_of(const pl_ir_launch *own, const pl_ir_op *op) {
  const pl_ir_type a = pl_ir_launch_local(own, op->inputs[0]), b = pl_ir_launch_local(own, op->inputs[1]);
  return pl_ir_product_of(op, &a, &b);
}

static bool is_routed(const pl_ir_launch *own, int32_t value) {
  return pl_ir_is_routed(own->routing, pl_ir_launch_type(own, value));
}

/* False: no matrix product but something as fast as memory. */
static bool as_products(const pl_ir_launch *own, pl_op *kernel) {
  const pl_ir_op *first = pl_ir_launch_find(own, "product");
  pl_ir_product sum = shape_of(own, first);
  kernel->batch = sum.batch;
  kernel->m = sum.m;
  kernel->n = sum.n;
  kernel->k = sum.k;
  kernel->transposed = sum.transposed;
  bool weighs = sum.m == 1 && (is_routed(own, first->inputs[0]) || is_routed(own, first->inputs[1]));
  if (sum.k == 1 || (sum.m == 1 && sum.n == 1) || weighs) return false; /* or weighs experts' answers, token by token */
  for (const pl_ir_op *op = first + 1; op < own->ops + own->n_ops; op++) {
    if (!is(op, "product")) continue;
    const pl_ir_product shape = shape_of(own, op);
    if (op->inputs[0] == first->inputs[0])
      sum.n += shape.n;
    else
      sum.k += shape.k;
  }
  double element = pl_ir_element_bytes(pl_ir_product_element(first, pl_ir_launch_type(own, first->inputs[0]))),
         out = pl_ir_element_bytes((pl_ir_element)pl_ir_launch_type(own, first->first_output)->element);
  const pl_ir_op *accumulate = pl_ir_launch_find(own, "accumulate");
  if (accumulate != NULL)
    out = 2 * pl_ir_element_bytes((pl_ir_element)pl_ir_launch_type(own, accumulate->inputs[0])->element);
  pl_op_set_product(kernel, sum.batch, sum.m, sum.n, sum.k, element, out);
  return true;
}

static int32_t number_of(const char *text) {
  int n = 1;
  return text[0] != 0 && sscanf(text, "%d", &n) == 1 && n > 0 ? n : 1;
}

static int32_t extent_at(const pl_ir_type *type, const pl_ir_attribute *names, int32_t i) {
  int32_t at = names != NULL && i < names->n_names ? pl_ir_type_find(type, names->names[i]) : -1;
  return at >= 0 ? (int32_t)type->dims[at].extent : 1;
}

/* The product that a convolution is, of its three forms (workloads/cost/convolution_cost.h). */
static void as_convolution(const pl_ir_launch *own, const pl_ir_op *op, pl_op *kernel, pl_chain_step *step) {
  bool data = is(op, "convolution_backward_data"), weights = is(op, "convolution_backward_weights");
  int32_t given = data ? op->first_output : op->inputs[0], made = data      ? op->inputs[0]
                                                                  : weights ? op->inputs[1]
                                                                            : op->first_output;
  const pl_ir_type x = pl_ir_type_local(own->mesh, pl_ir_launch_type(own, given)),
                   y = pl_ir_type_local(own->mesh, pl_ir_launch_type(own, made)),
                   w = pl_ir_type_local(own->mesh, pl_ir_launch_type(own, weights ? op->first_output : op->inputs[1]));
  const pl_ir_attribute *taps = pl_ir_attribute_find(op, "kernel"), *window = pl_ir_attribute_find(op, "window");
  int64_t n_taps = extents(&w, op, "kernel", true), in = extents(&w, op, "over", true), out = 1;
  out = (int64_t)(pl_ir_type_elements(&w) / (double)(n_taps * in));
  *step = (pl_chain_step){.filter_height = extent_at(&w, taps, 0),
                          .filter_width = extent_at(&w, taps, 1),
                          .stride = number_of(pl_ir_text_of(op, "stride")),
                          .in = {(int32_t)in, extent_at(&x, window, 0), extent_at(&x, window, 1)},
                          .out = {(int32_t)out, extent_at(&y, window, 0), extent_at(&y, window, 1)}};
  int64_t rows = (int64_t)(pl_ir_type_elements(&y) / (double)out);
  pl_op_set_convolution(kernel, step, rows / pl_picture_points(&step->out),
                        data      ? PL_CONVOLUTION_DATA
                        : weights ? PL_CONVOLUTION_WEIGHT
                                  : PL_CONVOLUTION_FORWARD);
}

/* Each channel along one dimension, a few taps: as fast as memory. */
static bool is_along_tokens(const pl_ir_op *op) {
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over"), *window = pl_ir_attribute_find(op, "window");
  return (over == NULL || over->n_names == 0) && window != NULL && window->n_names == 1;
}

static const pl_ir_op *find_scan(const pl_ir_launch *own) {
  for (int32_t i = 0; i < own->n_ops; i++)
    if (strstr(pl_ir_row_at(own->ops[i].row)->name, "_scan") != NULL) return &own->ops[i];
  return NULL;
}

static void local_inputs(const pl_ir_launch *own, const pl_ir_op *op, pl_ir_type *inputs) {
  for (int32_t i = 0; i < op->n_inputs; i++)
    inputs[i] = pl_ir_type_local(own->mesh, pl_ir_launch_type(own, op->inputs[i]));
}

/* Shown as one product: of a chunk's tokens by a head's width, as deep as all products of the chunk together. */
static void as_scan(const pl_ir_launch *own, const pl_ir_op *op, pl_op *kernel) {
  pl_ir_type inputs[PL_IR_OPERANDS_MAX];
  pl_ir_scan_dims dims;
  local_inputs(own, op, inputs);
  if (pl_ir_scan_dims_of(op, inputs, &dims, NULL) != PL_OK) return;
  kernel->kind = PL_OP_GEMM;
  kernel->dtype = pl_ir_launch_type(own, op->inputs[0])->element;
  kernel->m = dims.chunk;
  kernel->n = dims.own.extent;
  kernel->batch = (int64_t)ceil(dims.heads / (double)dims.chunk);
  kernel->k = (int64_t)ceil(kernel->flops / (2 * (double)kernel->batch * (double)kernel->m * (double)kernel->n));
  kernel->bytes += pl_ir_scan_state_bytes(op, inputs);
}

/* Its products one after the other, each with what it reads and writes, and the chunks' states handed on as fast as
 * memory. No device was measured with such kernels. */
static double scan_time(const pl_device_profile *profile, const pl_ir_launch *own, const pl_ir_op *op,
                        const pl_op *kernel) {
  pl_ir_type inputs[PL_IR_OPERANDS_MAX];
  pl_ir_scan_product products[PL_IR_SCAN_PRODUCTS_MAX];
  local_inputs(own, op, inputs);
  pl_op states = {.name = kernel->name,
                  .kind = PL_OP_ELEMENTWISE,
                  .category = kernel->category,
                  .dtype = PL_DTYPE_FP32,
                  .batch = 1,
                  .bytes = pl_ir_scan_state_bytes(op, inputs) / 2};
  double time_s = pl_op_cost(profile, &states).time_s, element = pl_dtype_bytes((pl_dtype)kernel->dtype);
  for (int32_t i = 0, n = pl_ir_scan_products(op, inputs, products); i < n; i++) {
    const pl_ir_scan_product *is = &products[i];
    double batch = (double)is->batch, m = (double)is->m, width = (double)is->n, k = (double)is->k;
    pl_op one = {.name = kernel->name,
                 .kind = PL_OP_GEMM,
                 .category = kernel->category,
                 .dtype = kernel->dtype,
                 .batch = is->batch,
                 .m = is->m,
                 .n = is->n,
                 .k = is->k,
                 .flops = 2 * batch * m * width * k,
                 .bytes = batch * element * (m * k + k * width + m * width)};
    time_s += is->times * pl_op_cost(profile, &one).time_s;
  }
  return time_s;
}

/* ---- kinds ---- */

static bool has_vocabulary(const pl_ir_launch *own, int32_t value) {
  return pl_ir_type_find(pl_ir_launch_type(own, value), pl_ir_name_of("v")) >= 0;
}

/* A norm in steps, one of them: what its op stands for is cast on its way in or out. */
static bool is_step_of_norm(const pl_ir_launch *own, const pl_framework *framework) {
  bool norm = pl_ir_launch_find(own, "rms_norm") != NULL || pl_ir_launch_find(own, "rms_norm_backward") != NULL;
  return norm && !framework->kernels.fuses_norm && pl_ir_launch_find(own, "cast") != NULL;
}

/* Batch norm and its ReLU in one kernel. */
static bool is_normed_relu(const pl_ir_launch *own) {
  return (pl_ir_launch_find(own, "batch_norm") != NULL && pl_ir_launch_find(own, "relu") != NULL) ||
         (pl_ir_launch_find(own, "batch_norm_backward") != NULL && pl_ir_launch_find(own, "relu_backward") != NULL);
}

/* A layer norm that is a graph's ops streams through memory as they do. */
static bool is_norm_of_graph(const pl_ir_launch *own, const pl_framework *framework) {
  return framework->kernels.graph != PL_GRAPH_NONE &&
         (pl_ir_launch_find(own, "layer_norm") != NULL || pl_ir_launch_find(own, "layer_norm_backward") != NULL);
}

static pl_op_kind kind_of(const pl_ir_launch *own, const pl_framework *framework) {
  static const struct {
    pl_ir_launches launches;
    pl_op_kind kind;
  } kinds[] = {{PL_IR_LAUNCHES_NORM, PL_OP_NORM},
               {PL_IR_LAUNCHES_SOFTMAX, PL_OP_SOFTMAX},
               {PL_IR_LAUNCHES_LOSS, PL_OP_CROSS_ENTROPY},
               {PL_IR_LAUNCHES_LOOK_UP, PL_OP_EMBEDDING}};
  if (is_step_of_norm(own, framework) || is_normed_relu(own) || is_norm_of_graph(own, framework))
    return PL_OP_ELEMENTWISE;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (pl_ir_launch_find_kind(own, kinds[i].launches) != NULL) {
      bool positions = kinds[i].kind == PL_OP_EMBEDDING &&
                       (pl_ir_launch_find(own, "add") != NULL || pl_ir_launch_find(own, "sum") != NULL);
      return positions ? PL_OP_ELEMENTWISE : kinds[i].kind;
    }
  static const char *const steps[] = {"subtract", "divide", "sum", "pick"};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    const pl_ir_op *op = pl_ir_launch_find(own, steps[i]);
    if (op != NULL && pl_ir_launch_find(own, "accumulate") == NULL && has_vocabulary(own, op->inputs[0]))
      return PL_OP_CROSS_ENTROPY;
  }
  return PL_OP_ELEMENTWISE;
}

/* ---- the kernel ---- */

static void shape_sweep(const pl_ir_launch *own, pl_op *kernel) {
  int32_t value = own->n_outputs > 0 ? own->results[0] : own->n_inputs > 0 ? own->inputs[0] : PL_IR_NONE;
  if (value == PL_IR_NONE) return;
  const pl_ir_type widest = pl_ir_launch_local(own, value);
  kernel->n = widest.rank > 0 ? widest.dims[widest.rank - 1].extent : 1;
  kernel->m = (int64_t)(pl_ir_type_elements(&widest) / (double)kernel->n);
}

static double share_of_op(const pl_ir_launch *own, const pl_ir_op *op) {
  bool routed = false;
  for (int32_t i = 0; i < op->n_inputs; i++)
    routed = routed || is_routed(own, op->inputs[i]);
  for (int32_t i = 0; i < op->n_outputs; i++)
    routed = routed || is_routed(own, op->first_output + i);
  return routed ? own->routing->share : 1;
}

/* On their way to attention, whose launches the host's time per layer has; 8 is a gate's. */
static bool copies_heads(const pl_ir_op *copy) {
  int64_t step = pl_ir_integer_of(copy, "heads", 0);
  return step > 0 && step < 8;
}

static bool has_reason(const pl_ir_launch *own, const char *reason) {
  return own->ops[0].reason != NULL && strcmp(own->ops[0].reason, reason) == 0;
}

/* Of software whose figure is a module's, of which the norm itself, or the op that moves tokens, has the launch. */
static bool is_in_launch_of_module(const pl_ir_launch *own, const pl_framework *framework) {
  bool of_norm = has_reason(own, PL_READ_NORM_STEPS) && pl_ir_launch_find(own, "rms_norm") == NULL &&
                 pl_ir_launch_find(own, "rms_norm_backward") == NULL;
  return (of_norm || has_reason(own, PL_READ_TOKEN_STEPS)) && pl_framework_has_module_launches(framework);
}

/* Of what it reads first, but for signs. NULL: it reads nothing. */
static const pl_ir_type *first_type(const pl_ir_launch *own) {
  int32_t i = 0;
  while (i < own->n_inputs && pl_ir_launch_type(own, own->inputs[i])->element == PL_IR_BIT)
    i++;
  return i < own->n_inputs ? pl_ir_launch_type(own, own->inputs[i]) : NULL;
}

/* One of its ops by itself. */
static pl_ir_launch alone(const pl_ir_launch *own, const pl_ir_op *op) {
  pl_ir_launch one = *own;
  one.ops = op;
  one.n_ops = 1;
  one.n_inputs = op->n_inputs;
  one.n_outputs = op->n_outputs;
  memcpy(one.inputs, op->inputs, (size_t)op->n_inputs * sizeof *one.inputs);
  for (int32_t i = 0; i < op->n_outputs; i++)
    one.results[i] = op->first_output + i;
  return one;
}

static bool describe(const pl_ir_launch *own, const pl_framework *framework, pl_category category, pl_op *kernel,
                     pl_chain_step *step) {
  if (pl_ir_launch_is_nothing(own)) return false;
  const pl_ir_type *first = first_type(own);
  const pl_ir_op *copy = pl_ir_launch_find(own, "copy");
  uint8_t element = first == NULL || first->element == PL_IR_I32 ? (uint8_t)PL_IR_F32 : first->element;
  *kernel = (pl_op){.name = pl_ir_row_at(own->ops[0].row)->name,
                    .kind = (uint8_t)kind_of(own, framework),
                    .category = (uint8_t)category,
                    .dtype = element,
                    .batch = 1,
                    .deterministic = framework->kernels.deterministic,
                    .attention_kernel = (uint8_t)framework->kernels.attention_kernel,
                    .host_free = (copy != NULL && copies_heads(copy)) || is_in_launch_of_module(own, framework) ||
                                 has_reason(own, PL_READ_AUTOCAST_WIDER),
                    .plain = has_reason(own, PL_READ_NORM_STEPS) || has_reason(own, PL_READ_AUTOCAST) ||
                             has_reason(own, PL_READ_TOKEN_STEPS) || has_reason(own, PL_READ_GRAPH) ||
                             is_norm_of_graph(own, framework) || is_step_of_norm(own, framework) ||
                             pl_ir_launch_find(own, "batch_norm") != NULL ||
                             pl_ir_launch_find(own, "batch_norm_backward") != NULL,
                    .bytes = pl_ir_launch_moves(own, framework, element)};
  for (int32_t i = 0; i < own->n_ops; i++)
    kernel->flops += pl_ir_op_flops(own->mesh, own->f, &own->ops[i]) * share_of_op(own, &own->ops[i]);
  if (copy != NULL) kernel->bytes *= (double)pl_ir_integer_of(copy, "times", 1);
  if (copy != NULL && pl_ir_attribute_find(copy, "bytes") != NULL)
    kernel->bytes = pl_ir_real_of(copy, "bytes", 0) * pl_ir_launch_elements(own, copy->inputs[0]);
  shape_sweep(own, kernel);
  const pl_ir_op *attention = pl_ir_launch_find_kind(own, PL_IR_LAUNCHES_ATTENTION),
                 *product = pl_ir_launch_find(own, "product");
  if (attention != NULL) {
    const pl_ir_launch core = alone(own, attention); /* sinks are what it has on chip */
    double bytes = pl_ir_launch_moves(&core, framework, element);
    pl_ir_kernel(own->mesh, own->f, attention, category, kernel);
    kernel->deterministic = framework->kernels.deterministic;
    kernel->attention_kernel = (uint8_t)framework->kernels.attention_kernel;
    kernel->bytes = bytes;
    return true;
  }
  if (product != NULL && as_products(own, kernel)) {
    kernel->dtype = (uint8_t)pl_ir_product_element(product, pl_ir_launch_type(own, product->inputs[0]));
    return true;
  }
  const pl_ir_op *scan = find_scan(own);
  if (scan != NULL) {
    as_scan(own, scan, kernel);
    return true;
  }
  const pl_ir_op *convolution = pl_ir_launch_find_kind(own, PL_IR_LAUNCHES_CONVOLUTION);
  if (convolution != NULL && !is_along_tokens(convolution)) as_convolution(own, convolution, kernel, step);
  return true;
}

/* A gradient from elsewhere among the sum of products: autograd adds it in a kernel of its own, in front of the rest or
 * behind it. False: there is none. */
static bool adds_another(const pl_ir_launch *own, pl_op *sweep) {
  for (const pl_ir_op *op = own->ops; op < own->ops + own->n_ops; op++) {
    if (!is(op, "add") ||
        !pl_ir_type_same_shape(pl_ir_launch_type(own, op->inputs[0]), pl_ir_launch_type(own, op->inputs[1])))
      continue;
    int32_t other = own->f->values[op->inputs[0]].op == PL_IR_NONE ? op->inputs[0] : op->inputs[1];
    if (own->f->values[other].op != PL_IR_NONE) continue;
    *sweep = (pl_op){.name = "add",
                     .kind = PL_OP_ELEMENTWISE,
                     .category = PL_CATEGORY_BACKWARD,
                     .dtype = pl_ir_launch_type(own, other)->element,
                     .batch = 1,
                     .bytes = 3 * pl_ir_launch_bytes(own, other)};
    shape_sweep(own, sweep);
    return true;
  }
  return false;
}

/* Kernels that copy what was gathered; 0: the kernel does something else. */
static int64_t n_copies(const pl_ir_launch *own) {
  const pl_ir_op *copy = pl_ir_launch_find(own, "copy");
  return copy != NULL ? pl_ir_integer_of(copy, "launches", 0) : 0;
}

/* New tensors are filled before a library's kernel writes them, in deterministic runs. */
static void fill(const pl_ir_launch *own, pl_op *kernel) {
  if (kernel->deterministic && pl_op_allocates(kernel) && own->n_outputs > 0)
    kernel->filled_bytes = pl_ir_launch_bytes(own, own->results[0]);
}

bool pl_ir_launched(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                    const pl_ir_op *op, const pl_framework *framework, pl_category category, pl_op *kernel,
                    pl_chain_step *step) {
  const pl_ir_launch own = pl_ir_launch_of(module, routing, function, op);
  return describe(&own, framework, category, kernel, step);
}

bool pl_ir_launched_beside(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                           const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launch own = pl_ir_launch_of(module, routing, function, op);
  const pl_ir_op *product = pl_ir_launch_find(&own, "product");
  if (product == NULL || own.n_ops == 1) return false;
  pl_op sum = {.kind = PL_OP_ELEMENTWISE};
  return as_products(&own, &sum) && adds_another(&own, kernel);
}

bool pl_ir_launched_time(const pl_device_profile *profile, const pl_ir_module *module, const pl_ir_routing *routing,
                         const pl_ir_function *function, const pl_ir_op *op, const pl_framework *framework,
                         pl_category category, pl_op *kernel, pl_op_time *time) {
  const pl_ir_launch own = pl_ir_launch_of(module, routing, function, op);
  pl_chain_step step;
  *kernel = (pl_op){0};
  if (!describe(&own, framework, category, kernel, &step)) return false;
  double moved = pl_ir_real_of(op, "moves", 0);
  if (moved > 0) { /* one launch for all of an update: see pl_ir_graph */
    double n = pl_ir_launch_elements(&own, op->inputs[0]);
    kernel->bytes = n * moved;
    *time = pl_optimizer_cost(profile, n, moved);
    time->time_s -= pl_optimizer_cost(profile, 1, 0).time_s;
  } else if (n_copies(&own) > 0) {
    *time = pl_gathered_copy_cost(profile, kernel->bytes, (double)n_copies(&own), framework->launch.launch_s);
  } else {
    fill(&own, kernel);
    const pl_ir_op *scan = find_scan(&own);
    *time = pl_op_cost(profile, kernel);
    if (scan != NULL) time->time_s = scan_time(profile, &own, scan, kernel);
    pl_op sweep;
    if (kernel->kind == PL_OP_GEMM && own.n_ops > 1 && adds_another(&own, &sweep))
      time->time_s += pl_op_cost(profile, &sweep).time_s;
  }
  kernel->convolution = NULL;
  return true;
}
