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
#include "tests/support/random_tree.h"
#include "workloads/derive/differentiate.h"
#include "workloads/execute/data.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"

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
  const random_tree_shape own = random_tree_shape_of(&random);
  char *tree = random_tree_text(&random, &own, &n_microbatches);
  char *plain = random_tree_model(&own, 1), *model = random_tree_model(&own, n_microbatches);
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
