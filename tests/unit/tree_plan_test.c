/* Propagation of strategy trees: who holds, what is inferred and from whom, what is refused, what it costs, and every
 * allocation that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/import/program_build.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"

static const char by_layer[] = "partition: {b: 4, v|g|r|f: 2}\n"
                               "children:\n"
                               "  - {match: h.1, partition: {b: 2, v|g|r|f: 4}}\n"
                               "  - {match: h.*.mlp.up, partition: {f: 8}}\n"
                               "  - {match: h.0, schedule: {recompute: full}}\n";

static void gpt(int32_t n_layers, pl_arena *arena, pl_ir_module *module) {
  char text[256];
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  const pl_model_program_options options = pl_model_program_defaults(8, 1, 8);
  snprintf(text, sizeof(text),
           "{\"model_type\": \"gpt2\", \"n_layer\": %d, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 16, "
           "\"vocab_size\": 64}",
           n_layers);
  assert_int_equal(pl_model_parse("gpt", text, strlen(text), arena, &model, &error), PL_OK);
  assert_int_equal(pl_model_program_build(&model, &options, arena, module, &error), PL_OK);
}

static pl_code plan_of(const char *tree_text, const pl_ir_module *model, pl_arena *arena, pl_strategy_tree *tree,
                       pl_tree_plan *plan, pl_error *error) {
  *error = PL_ERROR_INIT;
  PL_TRY(pl_tree_parse("t.yaml", tree_text, strlen(tree_text), arena, tree, error));
  return pl_tree_plan_take(tree, model, arena, plan, error);
}

static const pl_tree_op_plan *op_of(const pl_tree_plan *plan, const char *module, const char *value) {
  int32_t function = pl_tree_plan_module(plan, module)->function;
  const pl_ir_function *of = plan->program.functions[function];
  int32_t found = pl_ir_value_find(of, value);
  assert_int_not_equal(found, PL_IR_NONE);
  return &plan->functions[function].ops[of->values[found].op];
}

static int32_t line_of(const pl_tree_plan *plan, const pl_tree_op_plan *op) {
  return plan->tree->nodes[plan->leaves[op->leaf].node].partition_at.line;
}

static void who_holds(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_error error;
  gpt(3, &arena, &model);
  assert_int_equal(plan_of(by_layer, &model, &arena, &tree, &plan, &error), PL_OK);
  assert_int_equal(plan.mesh.n_axes, 3); /* 8 = 2 x 2 x 2 */
  const pl_tree_op_plan *up = op_of(&plan, "h.1", "mlp.up"), *active = op_of(&plan, "h.1", "active");
  assert_int_equal(line_of(&plan, up), 4);
  assert_int_equal(up->origin, PL_TREE_EXPLICIT);
  assert_int_equal(line_of(&plan, active), 4); /* of what it is made from */
  assert_int_equal(active->origin, PL_TREE_FORWARD);
  assert_int_equal(line_of(&plan, op_of(&plan, "h.1", "mlp.up.bias")), 4);
  assert_int_equal(line_of(&plan, op_of(&plan, "h.1", "attention.q")), 3); /* its layer's */
  assert_int_equal(line_of(&plan, op_of(&plan, "h.2", "attention.q")), 1); /* the root's */
  assert_int_equal(line_of(&plan, op_of(&plan, "h.1", "mlp.down")), 4);    /* nobody names it */
  const pl_tree_module_plan *first = pl_tree_plan_module(&plan, "h.0"), *last = pl_tree_plan_module(&plan, "h.2");
  assert_int_not_equal(first->function, last->function); /* recomputed, and not */
  assert_int_equal(plan.functions[first->function].recompute, PL_RECOMPUTE_FULL);
  pl_arena_release(&arena);
}

/* Twice and four times the layers: the work grows by as much each time. */
static void linear(void **state) {
  (void)state;
  int64_t visits[3];
  for (int i = 0; i < 3; i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_ir_module model;
    pl_strategy_tree tree;
    pl_tree_plan plan;
    pl_error error;
    gpt(16 + 16 * i, &arena, &model);
    assert_int_equal(plan_of(by_layer, &model, &arena, &tree, &plan, &error), PL_OK);
    visits[i] = plan.n_visits;
    pl_arena_release(&arena);
  }
  print_message("16, 32, 48 layers: %lld, %lld, %lld visits\n", (long long)visits[0], (long long)visits[1],
                (long long)visits[2]);
  assert_int_equal(visits[2] - visits[1], visits[1] - visits[0]);
}

/* ---- what is inferred between modules ---- */

static const char joined[] =
    "plir 1 model \"joined\"\nmicrobatches 1\n"
    "func @data() {\n  %x = input \"vectors\"() : fp32[b=8, h=8]\n  return %x\n}\n"
    "func @one(%x: fp32[b=8, h=8]) {\n  %y = gelu(%x)\n  return %y\n}\n"
    "func @both(%x: fp32[b=8, h=8], %z: fp32[b=8, h=8]) {\n  %y = add(%x, %z)\n  return %y\n}\n"
    "func @loss(%x: fp32[b=8, h=8]) {\n  %total = sum(%x) {over=(b, h)}\n  loss(%total)\n}\n"
    "func @main() {\n  %x = call @data \"data\"()\n  %a = call @one \"a\"(%x)\n"
    "  %b = call @one \"b\"(%x)\n  %c = call @both \"c\"(%a, %b)\n  call @loss \"loss\"(%c)\n"
    "  %d = call @data \"apart\"()\n}\n"
    "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

static void check_joined(const char *tree_text, const char *message) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_error error = PL_ERROR_INIT;
  if (pl_ir_parse("m.plir", joined, strlen(joined), &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  pl_code code = plan_of(tree_text, &model, &arena, &tree, &plan, &error);
  if (message == NULL && code != PL_OK) fail_msg("%s", error.message);
  if (message != NULL && strstr(error.message, message) == NULL) fail_msg("%s", error.message);
  if (message == NULL) {
    assert_int_equal(pl_tree_plan_module(&plan, "c")->origin, PL_TREE_FORWARD);
    assert_int_equal(pl_tree_plan_module(&plan, "data")->origin, PL_TREE_BACKWARD);
  }
  pl_arena_release(&arena);
}

static void between_modules(void **state) {
  (void)state;
  check_joined("children:\n  - {match: [a, b], partition: {b: 4}}\n  - {match: apart, partition: {b: 2}}\n", NULL);
  check_joined("children:\n  - {match: [a, b], partition: {b: 4}}\n",
               "t.yaml:1:1: no partition reaches apart, and nothing that it is joined to has one: it has no devices");
  check_joined(
      "children:\n  - {match: a, partition: {b: 4}}\n  - {match: b, partition: {b: 2}}\n",
      "t.yaml:3:27: c has no partition of its own, and what it is inferred from has two: this one of b, and that of a "
      "at t.yaml:2:27; say which");
  check_joined("partition: {b: 2}\nchildren:\n  - {match: a, devices: 0-1}\n  - {match: b, devices: 2-3}\n"
               "  - {match: c, devices: 4-5}\n  - {match: [loss, apart], devices: 0-1}\n",
               "5 stretches of modules on 3 stages");
  check_joined(
      "partition: {b: 2}\nchildren:\n  - {match: c, devices: [2, 2]}\n  - {match: [loss, apart], devices: 0-1}\n",
      "t.yaml:3:25: devices 2, 2 and 2, 2 (t.yaml:3:25) share some");
  check_joined("children:\n  - {match: c, devices: 2-5, partition: {b: 4}}\n"
               "  - {match: [loss, apart], devices: 0-1, partition: {b: 4}}\n",
               "t.yaml:3:53: loss is on stage 1, which has 2 devices: they cannot be cut into 4");
}

/* ---- parameters of several modules ---- */

/* Calls of @main are called as `instances` says; their parameters, of unlike dimensions, may not be the same. */
static void check_shared(const char *const instances[2], const char *const params[2], const char *first,
                         const char *second, const char *message) {
  static const char program[] =
      "plir 1 model \"shared\"\nmicrobatches 1\n"
      "func @data() {\n  %%x = input \"vectors\"() : fp32[b=8, h=8]\n  return %%x\n}\n"
      "func @one(%%x: fp32[b=8, h=8]) {\n  %%w = param \"%s\"() : fp32[h=8, f=8]\n"
      "  %%u = product(%%x, %%w) {over=h} : fp32[b=8, f=8]\n  %%y = rename(%%u) {from=f, to=h}\n  return %%y\n}\n"
      "func @two(%%x: fp32[b=8, h=8]) {\n  %%w = param \"%s\"() : fp32[h=8, r=8]\n"
      "  %%u = product(%%x, %%w) {over=h} : fp32[b=8, r=8]\n  %%y = rename(%%u) {from=r, to=h}\n  return %%y\n}\n"
      "func @loss(%%x: fp32[b=8, h=8]) {\n  %%total = sum(%%x) {over=(b, h)}\n  loss(%%total)\n}\n"
      "func @main() {\n  %%d = call @data \"data\"()\n  %%x = call @one \"z\"(%%d)\n  %%a = call @one%s(%%x)\n"
      "  %%b = call @two%s(%%a)\n  call @loss \"loss\"(%%b)\n}\n"
      "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_error error = PL_ERROR_INIT;
  char text[2048], tree_text[256];
  snprintf(text, sizeof text, program, params[0], params[1], instances[0], instances[1]);
  snprintf(
      tree_text, sizeof tree_text,
      "partition: {b: 2}\nchildren:\n  - {match: [z, %s], partition: {f: 2}}\n  - {match: %s, partition: {b: 2}}\n",
      first, second);
  if (pl_ir_parse("m.plir", text, strlen(text), &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  pl_code code = plan_of(tree_text, &model, &arena, &tree, &plan, &error);
  if (message == NULL && code != PL_OK) fail_msg("%s", error.message);
  if (message != NULL && strstr(error.message, message) == NULL) fail_msg("'%s' is not in: %s", message, error.message);
  pl_arena_release(&arena);
}

static void parameters_of_several(void **state) {
  (void)state;
  static const char lies_twice[] = "a.w.u is read by ";
  const char *const apart[] = {" \"a\"", " \"b\""};
  const char *const around[] = {" \"a\"", " \"a.w\""}, *const below[] = {" \"a.w\"", " \"a\""};
  const char *const bare[] = {" \"a\"", ""}, *const longer[] = {" \"a\"", " \"ab\""};
  const char *const equal[] = {"w.u", "w.u"}, *const inner[] = {"w.u", "u"}, *const outer[] = {"u", "w.u"};
  const char *const whole[] = {"w.u", "a.w.u"}, *const other[] = {"w.u", "ab.w.u"};
  check_shared(apart, equal, "a", "b", NULL);
  check_shared(longer, equal, "a", "ab", NULL);
  check_shared(around, equal, "a", "a.w", NULL); /* a.w.u and a.w.w.u */
  check_shared(bare, other, "a", "two", NULL);
  check_shared(bare, whole, "a", "two", lies_twice);
  check_shared(around, inner, "a", "data", lies_twice);
  check_shared(below, outer, "a", "data", lies_twice);
}

/* ---- microbatches of inner nodes ---- */

static int32_t count_rows(const pl_ir_function *function, const char *row) {
  int32_t n = 0;
  for (int32_t i = 0; i < function->n_ops; i++)
    n += strcmp(pl_ir_row_at(function->ops[i].row)->name, row) == 0;
  return n;
}

static const char in_pieces[] = "partition: {b: 2}\n"
                                "children:\n"
                                "  - match: h.0-2\n"
                                "    schedule: {microbatches: 2}\n"
                                "    children:\n"
                                "      - {match: h.1, schedule: {microbatches: 2}}\n";

/* Calls of @main in their order: instance, piece of pieces. */
static void check_calls(const char *tree_text, const char *wanted) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_error error;
  char is[512] = "";
  gpt(4, &arena, &model);
  if (plan_of(tree_text, &model, &arena, &tree, &plan, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_ir_function *main = plan.program.functions[plan.program.n_functions - 1];
  for (int32_t i = 0; i < main->n_ops; i++) {
    const pl_ir_op *op = &main->ops[i];
    size_t n = strlen(is);
    if (op->callee == PL_IR_NONE || strncmp(op->path, "h.", 2) != 0) continue;
    const pl_ir_function *callee = plan.program.functions[op->callee];
    snprintf(is + n, sizeof is - n, "%s:%d/%d(%d) ", op->path + 2, (int)pl_ir_integer_of(op, "piece", 0),
             (int)pl_ir_integer_of(op, "pieces", 1), (int)callee->values[0].type.dims[0].extent);
  }
  assert_string_equal(is, wanted);
  assert_int_equal(count_rows(main, "deal"), count_rows(main, "interleave"));
  pl_arena_release(&arena);
}

static void pieces(void **state) {
  (void)state;
  check_calls(in_pieces, "0:0/2(4) 1:0/4(2) 1:2/4(2) 2:0/2(4) 0:1/2(4) 1:1/4(2) 1:3/4(2) 2:1/2(4) 3:0/1(8) ");
  check_calls("partition: {b: 2}\nchildren:\n"
              "  - {match: h.0-1, schedule: {microbatches: 2, kind: breadth-first}}\n",
              "0:0/2(4) 0:1/2(4) 1:0/2(4) 1:1/2(4) 2:0/1(8) 3:0/1(8) ");
}

static void check_refused(const char *child, const char *message) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_error error;
  char text[256];
  gpt(3, &arena, &model);
  snprintf(text, sizeof text, "partition: {b: 2}\nchildren:\n  - {match: %s}\n", child);
  assert_int_equal(plan_of(text, &model, &arena, &tree, &plan, &error), PL_BAD_INPUT);
  if (strstr(error.message, message) == NULL) fail_msg("%s", error.message);
  pl_arena_release(&arena);
}

static void refused_pieces(void **state) {
  (void)state;
  check_refused("h.*, schedule: {microbatches: 3}",
                "t.yaml:3:43: 3 microbatches do not divide the 8 samples that h.0 runs on");
  check_refused("h.*, schedule: {microbatches: 64}", "t.yaml:3:43: 64 microbatches of a child: at most 32");
  check_refused("h.*, schedule: {microbatches: 8}", "t.yaml:1:13: 2 parts do not divide b = 1 of h.0");
  check_refused("h.*.mlp, schedule: {microbatches: 2}", "microbatches is chosen by module, and h.0.mlp.up.weight lies");
  check_refused("h.*, schedule: {kind: gpipe}", "t.yaml:3:35: kind of a child is the order of its microbatches");
  check_refused("h.*, schedule: {microbatches: 2, kind: 1f1b}", "module by module (breadth-first), not 1f1b");
  check_refused("h.*, schedule: {microbatches: 4, max_ongoing: 2}", "max_ongoing is 4 or more; recompute: full");
  check_refused("h.*, schedule: {microbatches: 2}}\n  - {match: h.*, schedule: {microbatches: 4}",
                "microbatches of h.0 is said here and otherwise at t.yaml:3:43");
}

/* ---- memory ---- */

static void fail_allocations(const char *tree_text) {
  pl_arena models;
  pl_arena_init(&models, 0);
  pl_ir_module model;
  gpt(3, &models, &model);
  int64_t k = 0;
  for (pl_code code = PL_NO_MEMORY; code != PL_OK; k++) {
    pl_arena arena;
    pl_strategy_tree tree;
    pl_tree_plan plan;
    pl_ir_module distributed;
    pl_error error;
    pl_arena_init(&arena, 1 << 12);
    arena.fail_after = k;
    code = plan_of(tree_text, &model, &arena, &tree, &plan, &error);
    if (code == PL_OK && k % 7 == 0)
      code = pl_program_of_plan(&plan, NULL, true, PL_IR_DISTRIBUTED, &arena, &distributed, &error);
    if (code != PL_OK && (code != PL_NO_MEMORY || error.code != PL_NO_MEMORY))
      fail_msg("allocation %lld: %s", (long long)k, error.message);
    pl_arena_release(&arena);
  }
  print_message("%lld allocations\n", (long long)k);
  assert_true(k > 30);
  pl_arena_release(&models);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  fail_allocations(by_layer);
  fail_allocations(in_pieces);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_holds),
                                     cmocka_unit_test(linear),
                                     cmocka_unit_test(between_modules),
                                     cmocka_unit_test(parameters_of_several),
                                     cmocka_unit_test(pieces),
                                     cmocka_unit_test(refused_pieces),
                                     cmocka_unit_test(every_allocation_fails_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
