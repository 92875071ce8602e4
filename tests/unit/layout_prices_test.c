/* Conversions between layouts are the cheapest that prices know: another network, other collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "workloads/derive/differentiate.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"

/* One layer cut on b over 2 x 4 devices, the next on s: what comes between is to be found. */
static const char model_text[] =
    "plir 1 model \"two\"\nmicrobatches 1\n"
    "func @data() {\n  %x = input \"vectors\"() : fp32[b=8, s=8, h=4]\n  return %x\n}\n"
    "func @first(%x: fp32[b=8, s=8, h=4]) {\n  %y = gelu(%x)\n  return %y\n}\n"
    "func @second(%x: fp32[b=8, s=8, h=4]) {\n  %y = tanh(%x)\n  return %y\n}\n"
    "func @loss(%x: fp32[b=8, s=8, h=4]) {\n  %total = sum(%x) {over=(b, s, h)}\n  loss(%total)\n}\n"
    "func @main() {\n  %x0 = call @data \"data\"()\n  %x1 = call @first \"h.0\"(%x0)\n"
    "  %x2 = call @second \"h.1\"(%x1)\n  call @loss \"loss\"(%x2)\n}\n"
    "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";
static const char tree_text[] = "mesh: {outer: 2, inner: 4}\npartition: {b: [outer, inner]}\nchildren:\n"
                                "  - {match: [h.1, loss], partition: {s: [outer, inner]}}\n";

typedef struct network {
  double per_byte[PL_COLLECTIVE_COUNT], start_s;
  double slow_outer; /* times as long over the outer axis */
  pl_code fails;
  bool tells;
  int32_t n_asked;
} network;

static pl_code price(void *context, const pl_ir_module *module, pl_collective_kind kind, uint32_t axes,
                     double size_bytes, double *time_s, pl_error *error) {
  network *own = context;
  own->n_asked++;
  if (own->fails != PL_OK) return pl_fail(error, own->fails, "no such link");
  *time_s = own->start_s + own->per_byte[kind] * size_bytes;
  if (pl_ir_mesh_find(&module->mesh, pl_ir_name_of("outer")) >= 0 &&
      (axes >> pl_ir_mesh_find(&module->mesh, pl_ir_name_of("outer")) & 1) != 0)
    *time_s *= own->slow_outer;
  return PL_OK;
}

static pl_code make(network *of, pl_arena *arena, pl_ir_module *made, pl_error *error) {
  static pl_strategy_tree tree;
  static pl_tree_plan plan;
  static pl_ir_module model;
  const pl_layout_prices prices = {.context = of, .n_devices = 8, .tells = of->tells, .seconds = price};
  PL_TRY(pl_ir_parse("two.plir", model_text, strlen(model_text), arena, &model, error));
  PL_TRY(pl_tree_parse("two.yaml", tree_text, strlen(tree_text), arena, &tree, error));
  tree.prices = &prices;
  PL_TRY(pl_tree_plan_take(&tree, &model, arena, &plan, error));
  PL_TRY(pl_plan_adapt(&plan, error));
  PL_TRY(pl_program_of_plan(&plan, NULL, false, PL_IR_DISTRIBUTED, arena, made, error));
  return pl_ir_check(made, error);
}

/* Ops of this row in the forward pass, over so many axes; 0: any. */
static int32_t count(const pl_ir_module *module, const char *row, int32_t n_axes) {
  int32_t n = 0;
  const pl_ir_function *main = module->functions[pl_ir_function_find(module, "chunk0.forward")];
  for (int32_t i = 0; i < main->n_ops; i++) {
    const pl_ir_attribute *over = pl_ir_attribute_find(&main->ops[i], "over");
    n += strcmp(pl_ir_row_at(main->ops[i].row)->name, row) == 0 && (n_axes == 0 || over->n_names == n_axes);
  }
  return n;
}

static void the_cheapest_is_taken(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module made;
  pl_error error = PL_ERROR_INIT;
  network even = {.per_byte = {1, 1, 1, 1, 1, 1}, .slow_outer = 1};
  assert_int_equal(make(&even, &arena, &made, &error), PL_OK);
  assert_int_equal(count(&made, "all_to_all", 2), 1); /* an eighth of what a gather moves */
  assert_int_equal(count(&made, "all_gather", 0), 0);

  network no_all_to_all = even;
  no_all_to_all.per_byte[PL_ALL_TO_ALL] = 100;
  assert_int_equal(make(&no_all_to_all, &arena, &made, &error), PL_OK);
  assert_int_equal(count(&made, "all_to_all", 0), 0);
  assert_int_equal(count(&made, "all_gather", 2), 1);
  assert_int_equal(count(&made, "cut", 2), 1);

  /* Over the outer axis everything takes long: inside it b is gathered and s cut, so that a quarter goes over it; then
   * s is gathered inside, and cut over both. */
  network far = even;
  far.slow_outer = 100;
  far.per_byte[PL_ALL_TO_ALL] = 100;
  assert_int_equal(make(&far, &arena, &made, &error), PL_OK);
  assert_int_equal(count(&made, "all_gather", 2), 0);
  assert_int_equal(count(&made, "all_gather", 1), 3);
  assert_int_equal(count(&made, "cut", 1), 1);
  assert_int_equal(count(&made, "cut", 2), 1);

  /* To start takes longest: as few as can be. */
  far.start_s = 1e9;
  assert_int_equal(make(&far, &arena, &made, &error), PL_OK);
  assert_int_equal(count(&made, "all_gather", 0) + count(&made, "all_to_all", 0), 1);
  pl_arena_release(&arena);
}

static void reasons_say_time_and_what_else(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module made;
  pl_error error = PL_ERROR_INIT;
  network even = {.per_byte = {1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, .slow_outer = 1, .tells = true};
  assert_int_equal(make(&even, &arena, &made, &error), PL_OK);
  const pl_ir_function *main = made.functions[pl_ir_function_find(&made, "chunk0.forward")];
  const char *reason = NULL;
  for (int32_t i = 0; i < main->n_ops; i++)
    if (strcmp(pl_ir_row_at(main->ops[i].row)->name, "all_to_all") == 0) reason = main->ops[i].reason;
  assert_non_null(reason);
  assert_non_null(strstr(reason, "as functions hand it on: 128 us, against ")); /* 8 * 8 * 4 * 4 bytes / 8 */
  assert_non_null(strstr(reason, "all_"));
  pl_arena_release(&arena);
}

/* The same ops, whoever reads their reasons; sums and gathers along one axis have no price where nobody does. */
static void what_nobody_reads_is_not_asked(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module made[2];
  pl_error error = PL_ERROR_INIT;
  network told = {.per_byte = {1, 1, 1, 1, 1, 1}, .slow_outer = 100, .tells = true}, quiet = told;
  quiet.tells = false;
  assert_int_equal(make(&told, &arena, &made[0], &error), PL_OK);
  assert_int_equal(make(&quiet, &arena, &made[1], &error), PL_OK);
  assert_int_equal(made[0].n_functions, made[1].n_functions);
  int32_t n_ops = 0, n_told = 0;
  for (int32_t f = 0; f < made[0].n_functions; f++) {
    const pl_ir_function *a = made[0].functions[f], *b = made[1].functions[f];
    assert_int_equal(a->n_ops, b->n_ops);
    for (int32_t i = 0; i < a->n_ops; i++) {
      assert_int_equal(a->ops[i].row, b->ops[i].row);
      n_told += a->ops[i].reason != NULL && strstr(a->ops[i].reason, "against") != NULL;
      assert_true(b->ops[i].reason == NULL || strstr(b->ops[i].reason, "against") == NULL);
    }
    n_ops += a->n_ops;
  }
  assert_true(n_ops > 10 && n_told > 0);
  assert_true(quiet.n_asked > 0 && quiet.n_asked < told.n_asked);
  pl_arena_release(&arena);
}

static void a_price_that_cannot_be_had_is_an_error(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module made;
  pl_error error = PL_ERROR_INIT;
  network broken = {.fails = PL_BAD_INPUT, .slow_outer = 1};
  assert_int_equal(make(&broken, &arena, &made, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "no such link");
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cheapest_is_taken), cmocka_unit_test(reasons_say_time_and_what_else),
      cmocka_unit_test(what_nobody_reads_is_not_asked), cmocka_unit_test(a_price_that_cannot_be_had_is_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
