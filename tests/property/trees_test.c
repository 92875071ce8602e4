/* Random small models under random strategy trees on 2 to 16 devices: what the devices compute is what one computes,
 * and no value comes to where it is read with fewer bytes on the wire than it holds that were not there.
 *
 * Models and trees are written as text and read, so that readers, propagation, derivatives, partition, check and
 * executor are all in it; half of them are laid out by the prices of networks that make any collective the cheapest. A
 * tree may be refused (a degree that does not divide, cuts that no axes say both): refusals
 * have a place, and most trees are not. PACELINE_CASES says how many (200), PACELINE_SEED which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/hash_index.h"
#include "tests/support/random.h"
#include "workloads/derive/differentiate.h"
#include "workloads/execute/data.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

/* ---- models ---- */

enum { KINDS_MAX = 3, BATCH = 16 };

typedef struct shape {
  int32_t s, h, f, g, d, n_kinds, n_layers, kind_of[8];
  uint64_t body[KINDS_MAX]; /* seeds of the functions */
  bool skips[8];            /* the layer adds what came two in front of it */
} shape;

static shape random_shape(uint64_t *random) {
  static const int32_t extents[] = {4, 8, 12, 16, 24};
  shape own = {0};
  own.s = extents[random_below(random, 3)];
  own.h = extents[random_below(random, 4)];
  own.f = extents[random_below(random, 5)];
  own.g = extents[random_below(random, 2)];
  own.d = extents[random_below(random, 2)];
  own.n_kinds = (int32_t)random_between(random, 1, KINDS_MAX);
  own.n_layers = (int32_t)random_between(random, 2, 5);
  for (int32_t i = 0; i < own.n_kinds; i++)
    own.body[i] = random_u64(random);
  for (int32_t i = 0; i < own.n_layers; i++) {
    own.kind_of[i] = (int32_t)random_below(random, (uint32_t)own.n_kinds);
    own.skips[i] = i > 0 && random_below(random, 4) == 0;
  }
  return own;
}

/* One random step from %in [b,s,h] to %out [b,s,h]; names end with the step's number. */
static void write_step(FILE *to, uint64_t *random, const shape *of, int64_t b, int32_t n, const char *in) {
  int32_t h = of->h, f = of->f, g = of->g, d = of->d;
  static const char *const pointwise[] = {"gelu", "tanh", "silu"};
  switch (random_below(random, 10)) {
  case 0: /* a perceptron of two layers */
    fprintf(to, "  %%up%d.weight = param \"up%d.weight\"() : fp32[h=%d, f=%d]\n", n, n, h, f);
    fprintf(to, "  %%up%d = product(%%%s, %%up%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%up%d.bias = param \"up%d.bias\"() : fp32[f=%d]\n", n, n, f);
    fprintf(to, "  %%up%d.sum = add(%%up%d, %%up%d.bias)\n", n, n, n);
    fprintf(to, "  %%active%d = %s(%%up%d.sum)\n", n, pointwise[random_below(random, 3)], n);
    fprintf(to, "  %%down%d.weight = param \"down%d.weight\"() : fp32[f=%d, h=%d]\n", n, n, f, h);
    fprintf(to, "  %%out%d = product(%%active%d, %%down%d.weight) {over=f}\n", n, n, n);
    break;
  case 1: /* heads and back */
    fprintf(to, "  %%q%d.weight = param \"q%d.weight\"() : fp32[h=%d, g=%d, d=%d]\n", n, n, h, g, d);
    fprintf(to, "  %%q%d = product(%%%s, %%q%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%soft%d = softmax(%%q%d) {over=d}\n", n, n);
    fprintf(to, "  %%o%d.weight = param \"o%d.weight\"() : fp32[g=%d, d=%d, h=%d]\n", n, n, g, d, h);
    fprintf(to, "  %%out%d = product(%%soft%d, %%o%d.weight) {over=(g, d)}\n", n, n, n);
    break;
  case 2: /* every token sees every token */
    fprintf(to, "  %%keys%d = rename(%%%s) {from=s, to=t}\n", n, in);
    fprintf(to, "  %%scores%d = product(%%%s, %%keys%d) {over=h}\n", n, in, n);
    fprintf(to, "  %%scaled%d = scale(%%scores%d) {by=%g}\n", n, n, 0.25 / h);
    fprintf(to, "  %%seen%d = softmax(%%scaled%d) {over=t}\n", n, n);
    fprintf(to, "  %%out%d = product(%%seen%d, %%keys%d) {over=t}\n", n, n, n);
    break;
  case 3:
    fprintf(to, "  %%norm%d.scale = param \"norm%d.scale\"() : fp32[h=%d]\n", n, n, h);
    fprintf(to, "  %%out%d = rms_norm(%%%s, %%norm%d.scale) {over=h, epsilon=1e-05}\n", n, in, n);
    break;
  case 4: /* a gate */
    fprintf(to, "  %%gate%d.weight = param \"gate%d.weight\"() : fp32[h=%d, f=%d]\n", n, n, h, f);
    fprintf(to, "  %%gate%d = product(%%%s, %%gate%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%most%d = sum(%%gate%d) {over=f}\n", n, n);
    fprintf(to, "  %%half%d = scale(%%most%d) {by=0.1}\n", n, n);
    fprintf(to, "  %%open%d = tanh(%%half%d)\n", n, n);
    fprintf(to, "  %%out%d = multiply(%%%s, %%open%d)\n", n, in, n);
    break;
  case 5: /* windows of tokens: halos where these are cut */
    fprintf(to, "  %%window%d.weight = param \"window%d.weight\"() : fp32[f=%d, h=%d, k=3]\n", n, n, f, h);
    fprintf(to, "  %%window%d = convolution(%%%s, %%window%d.weight) {over=h, window=s, kernel=k, padding=\"1\"}\n", n,
            in, n);
    fprintf(to, "  %%shut%d.weight = param \"shut%d.weight\"() : fp32[f=%d, h=%d]\n", n, n, f, h);
    fprintf(to, "  %%out%d = product(%%window%d, %%shut%d.weight) {over=f}\n", n, n, n);
    break;
  case 6:
    fprintf(to, "  %%out%d = %s_pool(%%%s) {window=s, size=\"3\", padding=\"1\"}\n", n,
            random_below(random, 2) == 0 ? "max" : "average", in);
    break;
  case 7: /* bags of embeddings */
    fprintf(to, "  %%ids%d = input \"ids%d\"() {below=8} : i32[b=%lld, s=%d, l=2]\n", n, n, (long long)b, of->s);
    fprintf(to, "  %%table%d.weight = param \"table%d.weight\"() : fp32[v=8, h=%d]\n", n, n, h);
    fprintf(to, "  %%rows%d = embedding(%%ids%d, %%table%d.weight) {over=v, sum=l}\n", n, n, n);
    fprintf(to, "  %%out%d = add(%%%s, %%rows%d)\n", n, in, n);
    break;
  case 8: /* pairs of tokens */
    fprintf(to, "  %%other%d = rename(%%%s) {from=s, to=t}\n", n, in);
    fprintf(to, "  %%meet%d = product(%%%s, %%other%d) {over=h}\n", n, in, n);
    fprintf(to, "  %%pairs%d = triangle(%%meet%d) {from=(s, t), to=w}\n", n, n);
    fprintf(to, "  %%all%d = sum(%%pairs%d) {over=w}\n", n, n);
    fprintf(to, "  %%few%d = scale(%%all%d) {by=%g}\n", n, n, 0.1 / (h * of->s));
    fprintf(to, "  %%wide%d = tanh(%%few%d)\n", n, n);
    fprintf(to, "  %%out%d = multiply(%%%s, %%wide%d)\n", n, in, n);
    break;
  default:
    fprintf(to, "  %%out%d = %s(%%%s)\n", n, pointwise[random_below(random, 3)], in);
  }
}

static void write_function(FILE *to, const shape *of, int32_t kind, int64_t b, bool skips) {
  uint64_t random = of->body[kind];
  int32_t n_steps = (int32_t)random_between(&random, 1, 4);
  char in[24] = "x";
  fprintf(to, "func @layer%d%s(%%x: fp32[b=%lld, s=%d, h=%d]", kind, skips ? "s" : "", (long long)b, of->s, of->h);
  if (skips) fprintf(to, ", %%z: fp32[b=%lld, s=%d, h=%d]", (long long)b, of->s, of->h);
  fprintf(to, ") {\n");
  for (int32_t n = 0; n < n_steps; n++) {
    write_step(to, &random, of, b, n, in);
    snprintf(in, sizeof(in), "out%d", n);
    if (random_below(&random, 2) == 0) {
      fprintf(to, "  %%left%d = add(%%%s, %%x)\n", n, in);
      snprintf(in, sizeof(in), "left%d", n);
    }
  }
  if (skips) fprintf(to, "  %%joined = add(%%%s, %%z)\n", in);
  fprintf(to, "  return %%%s\n}\n", skips ? "joined" : in);
}

static char *write_model(const shape *of, int32_t n_microbatches) {
  char *text;
  size_t size;
  int64_t b = BATCH / n_microbatches;
  FILE *to = open_memstream(&text, &size);
  assert_non_null(to);
  fprintf(to, "plir 1 model \"random\"\nmicrobatches %d\n", n_microbatches);
  fprintf(to, "func @data() {\n  %%x = input \"vectors\"() : fp32[b=%lld, s=%d, h=%d]\n  return %%x\n}\n", (long long)b,
          of->s, of->h);
  for (int32_t kind = 0; kind < of->n_kinds; kind++)
    for (int32_t skips = 0; skips < 2; skips++)
      for (int32_t i = 0, written = 0; i < of->n_layers && written == 0; i++)
        if (of->kind_of[i] == kind && of->skips[i] == (skips == 1)) {
          write_function(to, of, kind, b, skips == 1);
          written = 1;
        }
  fprintf(to, "func @loss(%%x: fp32[b=%lld, s=%d, h=%d]) {\n  %%square = multiply(%%x, %%x)\n", (long long)b, of->s,
          of->h);
  fprintf(to, "  %%total = sum(%%square) {over=(b, s, h)}\n  %%mean = scale(%%total) {by=%.17g}\n  loss(%%mean)\n}\n",
          1.0 / (BATCH * of->s));
  fprintf(to, "func @main() {\n  %%x0 = call @data \"data\"()\n");
  for (int32_t i = 0; i < of->n_layers; i++) {
    fprintf(to, "  %%x%d = call @layer%d%s \"h.%d\"(%%x%d", i + 1, of->kind_of[i], of->skips[i] ? "s" : "", i, i);
    if (of->skips[i]) fprintf(to, ", %%x%d", i - 1);
    fprintf(to, ")\n");
  }
  fprintf(to, "  call @loss \"loss\"(%%x%d)\n}\nclass all {\n  chunk 0 forward @main\n  steps", of->n_layers);
  for (int32_t m = 0; m < n_microbatches; m++)
    fprintf(to, " F0.%d", m);
  fprintf(to, "\n}\n");
  fclose(to);
  return text;
}

/* ---- trees ---- */

/* "{b: 2, f|h: 4}" of `devices` or some of them, of batches of `b`. */
static void write_partition(FILE *to, uint64_t *random, int32_t devices, int32_t b, bool *cuts_batch) {
  static const char *const dims[] = {"b",     "f|g|h", "g|f|h", "h|f",   "f|h", "d|f|h",    "g|s|h",
                                     "f|g|s", "s",     "b|s",   "v|f|g", "s|b", "replicate"};
  uint32_t used[4];
  int32_t n_used = 0;
  fprintf(to, "{");
  while (devices > 1 && n_used < 3) {
    int32_t degree = random_divisor(random, devices);
    uint32_t dim = random_below(random, random_below(random, 3) > 0 ? 3 : sizeof(dims) / sizeof(dims[0]));
    bool again = degree == 1 || (dims[dim][0] == 'b' && b % degree != 0);
    for (int32_t i = 0; i < n_used; i++)
      again = again || dims[used[i]][0] == dims[dim][0];
    if (again && random_below(random, 8) > 0) continue;
    if (again) break;
    fprintf(to, "%s%s: %d", n_used > 0 ? ", " : "", dims[dim], degree);
    *cuts_batch = *cuts_batch || dims[dim][0] == 'b';
    used[n_used++] = dim;
    devices /= degree;
  }
  fprintf(to, "}");
}

/* NULL: nothing is said. */
static const char *random_memory(uint64_t *random) {
  static const char *const memories[] = {
      "{states: b}",  "{states: b, gradients: b}",           "{states: b, gradients: b, parameters: b}", "{kept: b}",
      "{kept: host}", "{states: [b, host], kept: [b, host]}"};
  uint32_t which = random_below(random, 18), n = sizeof memories / sizeof memories[0];
  return which < n ? memories[which] : NULL;
}

/* Of a layer, of an op in it or in all layers, of all products. */
static void write_child(FILE *to, uint64_t *random, uint32_t layer, int32_t devices, int32_t b, bool *cuts_batch) {
  static const char *const inside[] = {".out0", ".out*", ".left*", ".up0", ".gate*"};
  static const char *const recompute[] = {"full", "selective", "none"};
  uint32_t what = random_below(random, 8);
  if (what == 0)
    fprintf(to, "  - {match: h.*, ops: [product, gelu]");
  else if (what < 4)
    fprintf(to, "  - {match: h.%u%s", layer, inside[random_below(random, what == 1 ? 5 : 2)]);
  else
    fprintf(to, "  - {match: h.%u", layer);
  fprintf(to, ", partition: ");
  write_partition(to, random, devices, b, cuts_batch);
  const char *memory = random_memory(random);
  if (*cuts_batch && memory != NULL) fprintf(to, ", memory: %s", memory);
  if (what >= 4 && random_below(random, 3) == 0)
    fprintf(to, ", schedule: {recompute: %s}", recompute[random_below(random, 3)]);
  if (what < 4 && random_below(random, 2) == 0) /* of these ops alone: made again, or kept where the layer is not */
    fprintf(to, ", schedule: {recompute: %s}", recompute[2 * random_below(random, 2)]);
  fprintf(to, "}\n");
}

/* Two stages of unlike numbers of devices, one a divisor of the other, in any order: children of the root. */
static void write_unlike_stages(FILE *to, uint64_t *random, const shape *of, int32_t large, int32_t b,
                                bool *cuts_batch) {
  int32_t small = random_divisor(random, large), cut = (int32_t)random_between(random, 1, (uint32_t)of->n_layers - 1);
  bool first_is_small = random_below(random, 2) == 0, turned = random_below(random, 2) == 0;
  int32_t first = first_is_small ? small : large, second = first_is_small ? large : small;
  fprintf(to, "  - {match: [data, h.0-%d], devices: ", cut - 1);
  if (turned) { /* the platform's devices the other way round */
    fprintf(to, "[");
    for (int32_t i = first; i-- > 0;)
      fprintf(to, "%d%s", second + i, i > 0 ? ", " : "], partition: ");
  } else {
    fprintf(to, "0-%d, partition: ", first - 1);
  }
  write_partition(to, random, first, b, cuts_batch);
  fprintf(to, "}\n  - {match: [h.%d-%d, loss], devices: %d-%d, partition: ", cut, of->n_layers - 1, turned ? 0 : first,
          (turned ? 0 : first) + second - 1);
  write_partition(to, random, second, b, cuts_batch);
  fprintf(to, "}\n");
}

/* Some layers in pieces of a microbatch, one of them perhaps in pieces of these. */
static void write_pieces(FILE *to, uint64_t *random, int32_t n_layers) {
  uint32_t first = random_below(random, (uint32_t)n_layers);
  uint32_t last = (uint32_t)random_between(random, first, (uint32_t)n_layers - 1), inner = random_below(random, 2);
  fprintf(to, "  - {match: [h.%u-%u%s], schedule: {microbatches: 2%s}", first, last,
          random_below(random, 2) == 0 && last + 1 == (uint32_t)n_layers ? ", loss" : "",
          random_below(random, 2) == 0 ? ", kind: breadth-first" : "");
  if (inner) fprintf(to, ", children: [{match: h.%u, schedule: {microbatches: 2, recompute: full}}]", last);
  fprintf(to, "}\n");
}

static char *write_tree(uint64_t *random, const shape *of, int32_t *n_microbatches) {
  static const char *const kinds[] = {"1f1b", "gpipe", "fifo"};
  char *text;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  assert_non_null(to);
  int32_t stages = random_below(random, 2) == 0 ? 1 : (int32_t)random_between(random, 2, (uint32_t)of->n_layers);
  int32_t each = (int32_t)random_between(random, stages == 1 ? 2 : 1, (uint32_t)(16 / stages));
  if (random_below(random, 4) > 0) /* 6 and 12 are hard to refine */
    while ((each & (each - 1)) != 0)
      each--;
  *n_microbatches = 1 << random_below(random, 3);
  bool chunked = stages == 2 && of->n_layers >= 4 && *n_microbatches >= 2 && random_below(random, 3) == 0;
  bool unlike = stages == 2 && !chunked && random_below(random, 2) == 0;
  if (stages > 1 && !unlike) fprintf(to, "pipeline: {stages: %d%s}\n", stages, chunked ? ", chunks: 2" : "");
  if (!unlike) fprintf(to, "devices: 0-%d\n", stages * each - 1);
  fprintf(to, "schedule: {microbatches: %d", *n_microbatches);
  if (!chunked) fprintf(to, ", kind: %s", kinds[random_below(random, 3)]);
  fprintf(to, "}\npartition: ");
  bool cuts_batch = false;
  write_partition(to, random, each, BATCH / *n_microbatches, &cuts_batch);
  fprintf(to, "\n");
  const char *memory = random_memory(random);
  if (cuts_batch && memory != NULL) fprintf(to, "memory: %s\n", memory);
  int32_t n_children = (int32_t)random_below(random, 3), first = (int32_t)random_below(random, 5);
  bool pieces = random_below(random, 3) == 0;
  if (n_children > 0 || unlike || pieces) fprintf(to, "children:\n");
  if (unlike) write_unlike_stages(to, random, of, each, BATCH / *n_microbatches, &cuts_batch);
  for (int32_t i = 0; i < n_children; i++)
    write_child(to, random, (uint32_t)((i + first) % of->n_layers), each, BATCH / *n_microbatches, &cuts_batch);
  if (pieces) write_pieces(to, random, of->n_layers);
  fclose(to);
  return text;
}

/* ---- bytes ---- */

/* What a device gets in a collective, at least: rings do no better. */
static double wire_bytes(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_op *op) {
  const char *row = pl_ir_row_at(op->row)->name;
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  double n = 1;
  for (int32_t i = 0; over != NULL && i < over->n_names; i++)
    n *= module->mesh.axes[pl_ir_mesh_find(&module->mesh, over->names[i])].extent;
  double in = pl_ir_type_local_bytes(&module->mesh, &function->values[op->inputs[0]].type);
  if (strcmp(row, "all_gather") == 0) return (n - 1) * in;
  if (strcmp(row, "all_reduce") == 0) return 2 * (n - 1) / n * in;
  if (strcmp(row, "reduce_scatter") == 0 || strcmp(row, "all_to_all") == 0) return (n - 1) / n * in;
  return 0;
}

static bool is_conversion(const pl_ir_op *op) {
  static const char *const rows[] = {"all_gather", "all_reduce", "reduce_scatter", "all_to_all", "cut"};
  for (size_t i = 0; op->reason != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
    if (strcmp(pl_ir_row_at(op->row)->name, rows[i]) == 0) return true;
  return false;
}

/* Of what a device needs what it does not hold; of sums, all of it must still come from somewhere. */
static double bound_bytes(const pl_ir_mesh *mesh, const pl_ir_type *is, const pl_ir_type *wanted, uint32_t device) {
  double needs = pl_ir_type_local_bytes(mesh, wanted), has = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if ((is->on[axis] == PL_IR_PARTIAL || is->on[axis] == PL_IR_MAXIMUM) && wanted->on[axis] != is->on[axis])
      return needs;
  for (int32_t dim = 0; dim < is->rank; dim++) {
    int64_t a = pl_ir_type_local_origin(mesh, is, dim, device), c = pl_ir_type_local_extent(mesh, is, dim);
    int64_t b = pl_ir_type_local_origin(mesh, wanted, dim, device), e = pl_ir_type_local_extent(mesh, wanted, dim);
    int64_t low = a > b ? a : b, high = a + c < b + e ? a + c : b + e;
    has *= high > low ? (double)(high - low) : 0;
  }
  return needs - has * pl_ir_element_bytes((pl_ir_element)is->element);
}

/* From where the operand was made, through what was put in between. Returns how many are below. */
static int32_t check_operand(const pl_ir_module *module, const pl_ir_function *function, int32_t value) {
  double wire = 0;
  int32_t at = value;
  while (function->values[at].op != PL_IR_NONE && is_conversion(&function->ops[function->values[at].op])) {
    const pl_ir_op *op = &function->ops[function->values[at].op];
    wire += wire_bytes(module, function, op);
    at = op->inputs[0];
  }
  double bound = 0;
  for (uint32_t device = 0; device < pl_ir_mesh_devices(&module->mesh); device++) {
    double here = bound_bytes(&module->mesh, &function->values[at].type, &function->values[value].type, device);
    if (here > bound) bound = here;
  }
  if (wire >= bound * (1 - 1e-12)) return 0;
  printf("@%s: %%%s comes with %g bytes, and needs %g\n", function->name, function->values[value].name, wire, bound);
  return 1;
}

static int32_t check_bytes(const pl_ir_module *module, int64_t *n_checked) {
  int32_t n_below = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      for (int32_t k = 0; k < op->n_inputs && !is_conversion(op); k++, (*n_checked)++)
        n_below += check_operand(module, module->functions[f], op->inputs[k]);
    }
  return n_below;
}

/* ---- prices ---- */

/* A network that no cluster has: any collective may be the cheapest. By seed; 0: bytes decide. */
static pl_code random_price(void *context, const pl_ir_module *module, pl_collective_kind kind, uint32_t axes,
                            double size_bytes, double *time_s, pl_error *error) {
  uint64_t random = *(const uint64_t *)context + 1000 * (uint64_t)kind + axes;
  (void)module, (void)error;
  *time_s = (1 + random_below(&random, 100)) * (1e-5 + size_bytes * 1e-9);
  return PL_OK;
}

/* ---- how much rounding a model makes of itself ---- */

enum { SEED = 7, ROUNDING_TIMES = 16 };

static const pl_ir_op *param_of(const pl_ir_module *module, const char *path, const pl_ir_type **type) {
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      size_t whole = strlen(path), length = op->path != NULL ? strlen(op->path) : 0;
      bool ends = strcmp(pl_ir_row_at(op->row)->name, "param") == 0 && length < whole &&
                  strcmp(path + whole - length, op->path) == 0 && path[whole - length - 1] == '.';
      if (!ends) continue;
      *type = &module->functions[f]->values[op->first_output].type;
      return op;
    }
  return NULL;
}

/* The weights that the seed makes, each off by some of its last bits. */
static pl_code shaken(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error) {
  const pl_ir_type *type = NULL;
  (void)error;
  *given = param_of(context, path, &type) != NULL;
  if (!*given) return PL_OK;
  pl_ir_tensor tensor = {.type = *type, .n = n, .data = whole};
  for (int32_t dim = 0; dim < type->rank; dim++)
    tensor.extent[dim] = type->dims[dim].extent;
  pl_data_parameter(SEED, path, &tensor);
  uint64_t random = pl_hash_text(SEED, path);
  for (int64_t i = 0; i < n; i++)
    whole[i] *= 1 + ((double)random_below(&random, 9) - 4) * 0x1p-52;
  return PL_OK;
}

/* The plain program beside itself with the last bits of its weights (up to 4 units) shaken: by so much sums in another
 * order may part two programs that are the same. A chain of gates in front of norms can make 1e-9 of 1e-16: near
 * nothing a norm multiplies what is there by 1 / sqrt(epsilon), layer by layer. */
static pl_code measure_condition(const pl_ir_module *model, const pl_ir_module *plain, pl_arena *arena,
                                 pl_verification *v, pl_error *error) {
  const pl_data_source source = {.parameter = shaken, .context = (void *)(uintptr_t)model};
  const pl_verify_options shaking = {.seed = SEED, .iterations = 2, .other_source = &source};
  return pl_verify(plain, plain, &shaking, arena, v, error);
}

static double most_of(double usual, double shaken_apart) {
  return shaken_apart * ROUNDING_TIMES > usual ? shaken_apart * ROUNDING_TIMES : usual;
}

/* ---- cases ---- */

typedef struct tally {
  uint64_t equal, refused, wrong, shaky;
  int64_t n_checked, n_conversions;
  int32_t n_below, n_again; /* trees in which ops alone are made again or kept */
} tally;

static bool has_op_alone(const pl_tree_plan *plan) {
  for (int32_t f = 0; f < plan->n_functions; f++)
    for (int32_t i = 0; i < plan->program.functions[f]->n_ops; i++)
      if (plan->functions[f].ops[i].again != PL_RECOMPUTE_OP_AS_FUNCTION) return true;
  return false;
}

static pl_code run(const char *plain_text, const char *model_text, const char *tree_text, uint64_t network,
                   pl_arena *arena, tally *tally_of, pl_error *error) {
  pl_ir_module plain_model, plain, model, distributed;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_verification v;
  const pl_differentiate_options options = pl_differentiate_defaults();
  const pl_verify_options verify = {.seed = SEED, .iterations = 2};
  PL_TRY(pl_ir_parse("plain.plir", plain_text, strlen(plain_text), arena, &plain_model, error));
  PL_TRY(pl_ir_parse("model.plir", model_text, strlen(model_text), arena, &model, error));
  PL_TRY(pl_ir_check(&model, error));
  PL_TRY(pl_ir_differentiate(&plain_model, &options, arena, &plain, error));
  PL_TRY(pl_tree_parse("tree.yaml", tree_text, strlen(tree_text), arena, &tree, error));
  const pl_layout_prices prices = {.context = &network, .n_devices = UINT32_MAX, .seconds = random_price};
  if (network != 0) tree.prices = &prices;
  PL_TRY(pl_tree_plan_take(&tree, &model, arena, &plan, error));
  PL_TRY(pl_plan_adapt(&plan, error));
  PL_TRY(pl_program_of_plan(&plan, NULL, false, PL_IR_DISTRIBUTED, arena, &distributed, error));
  PL_TRY(pl_ir_check(&distributed, error));
  tally_of->n_again += has_op_alone(&plan);
  tally_of->n_below += check_bytes(&distributed, &tally_of->n_checked);
  PL_TRY(pl_verify(&plain, &distributed, &verify, arena, &v, error));
  tally_of->n_conversions += v.n_collectives;
  /* Steps keep values of order one: where they grow, softmaxes make rounding large.
   * Gradients that should be nothing are rounding (a gate behind which a norm stands): what is wrong is wrong by far.
   */
  if (v.loss_error < 1e-10 && v.gradient_error < 1e-5 && v.weight_error < 1e-5 && v.copies_error < 1e-8) return PL_OK;
  pl_verification s;
  PL_TRY(measure_condition(&plain_model, &plain, arena, &s, error));
  tally_of->shaky++;
  if (s.loss_error < 1e-7 && v.loss_error < most_of(1e-10, s.loss_error) &&
      v.gradient_error < most_of(1e-5, s.gradient_error) && v.weight_error < most_of(1e-5, s.weight_error) &&
      v.copies_error < 1e-8)
    return PL_OK;
  return pl_fail(error, PL_IO, "loss %g and %g, apart by %.1e, gradients %.1e (%s), weights %.1e (%s), copies %.1e",
                 v.loss, v.other_loss, v.loss_error, v.gradient_error, v.worst_gradient, v.weight_error, v.worst_weight,
                 v.copies_error);
}

static void try_case(uint64_t seed, tally *tally_of) {
  uint64_t random = seed;
  int32_t n_microbatches;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  const shape own = random_shape(&random);
  char *tree = write_tree(&random, &own, &n_microbatches);
  char *plain = write_model(&own, 1), *model = write_model(&own, n_microbatches);
  int32_t below = tally_of->n_below;
  pl_code code = run(plain, model, tree, seed % 2 == 0 ? seed : 0, &arena, tally_of, &error);
  bool refused = code == PL_BAD_INPUT && strncmp(error.message, "tree.yaml", 9) == 0;
  if (code == PL_OK)
    tally_of->equal++;
  else if (refused)
    tally_of->refused++;
  else
    tally_of->wrong++;
  if (refused && getenv("PACELINE_REFUSALS") != NULL) printf("%s\n", error.message);
  if ((code != PL_OK && !refused) || tally_of->n_below > below)
    printf("case %llu: %s\n%s%s\n", (unsigned long long)seed, error.message, tree, model);
  free(tree);
  free(plain);
  free(model);
  pl_arena_release(&arena);
}

static void random_trees(void **state) {
  (void)state;
  uint64_t seed = test_seed(1), n = test_number("PACELINE_CASES", 200);
  tally own = {0};
  for (uint64_t i = 0; i < n && own.wrong < 5; i++)
    try_case(seed + i, &own);
  printf("%llu equal (%llu by their own rounding), %llu refused, %llu wrong; %d recompute inside layers; %lld "
         "collectives; %lld operands, %d below "
         "their bound\n",
         (unsigned long long)own.equal, (unsigned long long)own.shaky, (unsigned long long)own.refused,
         (unsigned long long)own.wrong, own.n_again, (long long)own.n_conversions, (long long)own.n_checked,
         own.n_below);
  assert_int_equal(own.wrong, 0);
  assert_int_equal(own.n_below, 0);
  assert_true(own.equal >= n / 2);
  assert_true(own.shaky <= n / 50);
  assert_true((uint64_t)own.n_again >= n / 50);
}

/* Five layers of gates in front of norms: the loss is apart by 5.7e-10, and by 1.3e-9 when the last bits of the weights
 * are shaken. */
static void gates_and_norms(void **state) {
  (void)state;
  char *model, *tree_text = "devices: 0-7\nschedule: {microbatches: 1, kind: fifo}\npartition: {b: 2, h|f: 4}\n";
  size_t size;
  FILE *to = open_memstream(&model, &size);
  assert_non_null(to);
  fprintf(to, "plir 1 model \"random\"\nmicrobatches 1\n"
              "func @data() {\n  %%x = input \"vectors\"() : fp32[b=16, s=8, h=12]\n  return %%x\n}\n"
              "func @layer0(%%x: fp32[b=16, s=8, h=12]) {\n");
  for (int n = 0; n < 2; n++) {
    const char *in = n == 0 ? "x" : "left0";
    fprintf(to,
            "  %%gate%d.weight = param \"gate%d.weight\"() : fp32[h=12, f=16]\n"
            "  %%gate%d = product(%%%s, %%gate%d.weight) {over=h}\n  %%most%d = sum(%%gate%d) {over=f}\n"
            "  %%half%d = scale(%%most%d) {by=0.1}\n  %%open%d = tanh(%%half%d)\n"
            "  %%out%d = multiply(%%%s, %%open%d)\n",
            n, n, n, in, n, n, n, n, n, n, n, n, in, n);
    if (n == 0) fprintf(to, "  %%left0 = add(%%out0, %%x)\n");
  }
  fprintf(to,
          "  %%norm2.scale = param \"norm2.scale\"() : fp32[h=12]\n"
          "  %%out2 = rms_norm(%%out1, %%norm2.scale) {over=h, epsilon=1e-05}\n  return %%out2\n}\n"
          "func @loss(%%x: fp32[b=16, s=8, h=12]) {\n  %%square = multiply(%%x, %%x)\n"
          "  %%total = sum(%%square) {over=(b, s, h)}\n  %%mean = scale(%%total) {by=0.0078125}\n  loss(%%mean)\n}\n"
          "func @main() {\n  %%x0 = call @data \"data\"()\n");
  for (int i = 0; i < 5; i++)
    fprintf(to, "  %%x%d = call @layer0 \"h.%d\"(%%x%d)\n", i + 1, i, i);
  fprintf(to, "  call @loss \"loss\"(%%x5)\n}\nclass all {\n  chunk 0 forward @main\n  steps F0.0\n}\n");
  fclose(to);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  tally own = {0};
  if (run(model, model, tree_text, 0, &arena, &own, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(own.shaky, 1);
  pl_arena_release(&arena);
  free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_trees), cmocka_unit_test(gates_and_norms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
