/* Lists that are alike share what is noted and counted of their passes (language/ir_alike.h): the same program whose
 * paths keep its lists from being alike takes the same and holds the same, to the bit. Random tuples as programs. And
 * what is alike, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "tests/support/random.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_alike.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/simulate_program.h"

static const char *const frameworks[] = {"ideal",      "megatron-core",      "nanotron",
                                         "torch-fsdp", "megatron-deepspeed", "deepspeed"};
static const char *const platforms[] = {"platforms/dgx-a100-16.xml", "platforms/amp-hetero-cluster.xml",
                                        "platforms/hc2.xml"};
static const char *const schedules[] = {"schedule=1f1b", "vpp=2", "schedule=gpipe", "schedule=zb-h1",
                                        "vpp=2,schedule=zb-v"};
enum {
  N_FRAMEWORKS = sizeof frameworks / sizeof *frameworks,
  N_PLATFORMS = sizeof platforms / sizeof *platforms,
  N_SCHEDULES = sizeof schedules / sizeof *schedules
};

/* ---- programs ---- */

static void rename_calls(pl_ir_module *module, int32_t function, int32_t n_parts, pl_arena *arena) {
  const char *const parts = "m.m.m.m.m.m.m.m.m.m.m.m.m.m.m.m.";
  if (function == PL_IR_NONE) return;
  pl_ir_function *f = module->functions[function];
  for (int32_t i = 0; i < f->n_ops; i++)
    if (f->ops[i].callee != PL_IR_NONE && f->ops[i].path[0] != 0)
      f->ops[i].path = pl_arena_printf(arena, "%.*s%s", 2 * (int)n_parts, parts, f->ops[i].path);
}

/* Paths of each list have other numbers of components than those of the lists before. Returns how many were alike. */
static int32_t tell_apart(pl_ir_module *module, pl_arena *arena) {
  const int32_t *likes = pl_ir_alike_take(module, arena);
  int32_t n = 0;
  assert_non_null(likes);
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_ir_class *class = &module->classes[c];
    if (likes[c] == c) continue;
    n++;
    rename_calls(module, class->update, n, arena);
    for (int32_t i = 0; i < class->n_chunks; i++) {
      rename_calls(module, class->chunks[i].forward, n, arena);
      rename_calls(module, class->chunks[i].backward, n, arena);
      rename_calls(module, class->chunks[i].weights, n, arena);
    }
  }
  likes = pl_ir_alike_take(module, arena);
  for (int32_t c = 0; c < module->n_classes; c++)
    assert_int_equal(likes[c], c);
  return n;
}

/* All but pointers. */
static void check_same(const pl_program_report *a, const pl_program_report *b) {
  assert_true(a->iter_time_s == b->iter_time_s && a->idle_s == b->idle_s && a->flops == b->flops);
  assert_int_equal(a->run_digest, b->run_digest);
  assert_int_equal(a->n_tasks, b->n_tasks);
  assert_true(a->n_kernels == b->n_kernels && a->n_collectives == b->n_collectives && a->n_sends == b->n_sends);
  assert_memory_equal(a->spent_s, b->spent_s, sizeof a->spent_s);
  assert_true(a->interval.low_s == b->interval.low_s && a->interval.high_s == b->interval.high_s);
  for (uint32_t c = 0; c < a->n_classes; c++)
    assert_memory_equal(&a->memory[c], &b->memory[c], sizeof a->memory[c]);
}

static pl_residuals unlike(void) {
  pl_residuals residuals = {.centre = 0};
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    residuals.half[i] = 0.01 * (i + 1);
  return residuals;
}

static void random_tuple(uint64_t *state, char *text, size_t size) {
  int pp = 4 + (int)random_below(state, 3), tmp = random_below(state, 2) ? 2 : 1;
  const char *schedule = schedules[random_below(state, N_SCHEDULES)];
  int zero = (int)random_below(state, strcmp(schedule, "schedule=1f1b") == 0 ? 4 : 2);
  snprintf(text, size, "pp=%d,dp=2,tmp=%d,mbs=1,idle=1,%s,zero=%d%s%s", pp, tmp, schedule, zero,
           tmp > 1 && random_below(state, 2) ? ",sp=1" : "", random_below(state, 3) == 0 ? ",recompute=full" : "");
  if (pp * tmp * 2 > 16) snprintf(text, size, "pp=4,dp=2,tmp=2,mbs=1,idle=1,%s,zero=%d", schedule, zero);
}

/* Returns how many lists were alike; -1: the tuple is refused. */
static int32_t check(uint64_t *state, uint64_t seed) {
  static const char model_text[] = "{\"model_type\": \"gpt2\", \"n_layer\": 24, \"n_embd\": 64, \"n_head\": 4, "
                                   "\"n_positions\": 64, \"vocab_size\": 128}";
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  pl_model model;
  pl_framework framework;
  pl_strategy strategy;
  pl_ir_module module, launched;
  pl_program_report reports[2];
  char tuple[160];
  pl_job job = {.gbs = 2 * (int64_t)random_between(state, 4, 40), .seq = 64, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_arena_init(&arena, 0);
  assert_int_equal(pl_platform_load(platforms[random_below(state, N_PLATFORMS)], NULL, &platform, &error), PL_OK);
  const pl_cluster *cluster = pl_platform_cluster(platform);
  assert_int_equal(pl_model_parse("gpt", model_text, sizeof model_text - 1, &arena, &model, &error), PL_OK);
  if (pl_framework_load(frameworks[random_below(state, N_FRAMEWORKS)], &arena, &framework, &error) != PL_OK)
    fail_msg("%s", error.message);
  job.framework = &framework;
  random_tuple(state, tuple, sizeof tuple);
  pl_code code = pl_strategy_parse(tuple, &model, &arena, &strategy, &error);
  if (code == PL_OK) code = pl_strategy_check(&strategy, &model, &job, cluster->n_devices, &error);
  if (code == PL_OK) code = pl_strategy_assign_unplaced(&strategy, &model, &job, "", &arena, &error);
  if (code == PL_OK) code = pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error);
  if (code == PL_OK) code = pl_program_launched(cluster, &module, &framework, &arena, &launched, &error);
  int32_t n_alike = code == PL_BAD_INPUT || code == PL_UNSUPPORTED ? -1 : 0;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  const pl_residuals residuals = unlike();
  const pl_aspects aspects = {0};
  options.fold = random_below(state, 2);
  options.leap = random_below(state, 2);
  options.residuals = &residuals;
  options.program_aspects = &aspects;
  for (int i = 0; i < 2 && code == PL_OK; i++) {
    if (i == 1) n_alike = tell_apart(&launched, &arena);
    code = pl_simulate_program(cluster, &launched, &framework, &options, &arena, &reports[i], &error);
  }
  if (code != PL_OK && n_alike >= 0) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, tuple, error.message);
  if (code != PL_OK) print_message("%s\n", error.message);
  if (code == PL_OK) check_same(&reports[0], &reports[1]);
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
  return n_alike;
}

static void alike_lists_are_as_others(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(71), n_cases = test_number("PACELINE_CASES", 60), n_alike = 0, n_refused = 0;
  for (uint64_t i = 0; i < n_cases; i++) {
    uint64_t state = seed + 1000 * i;
    int32_t n = check(&state, state);
    n_alike += n > 0 ? (uint64_t)n : 0;
    n_refused += n < 0;
  }
  print_message("%llu lists were alike, %llu tuples refused\n", (unsigned long long)n_alike,
                (unsigned long long)n_refused);
  assert_true(n_alike > n_cases / 2 && n_refused < n_cases / 3);
}

/* ---- what is alike ---- */

static const char three[] =
    "plir 1 distributed \"three\"\nmesh pp=4\nmicrobatches 1\n"
    "func @one(%%x: fp32[b=8, h=8]) {\n  %%y = gelu(%%x)\n  return %%y\n}\n"
    "func @two(%%x: fp32[b=8, h=8]) {\n  %%y = relu(%%x)\n  return %%y\n}\n"
    "func @data() {\n  %%x = input \"vectors\"() : fp32[b=8, h=8]\n  return %%x\n}\n"
    "func @first() {\n  %%x = call @data \"data\"()\n  send(%%x) {to=a, tag=\"to a\"}\n}\n"
    "func @of.a() {\n  %%x = receive() {from=first, tag=\"to a\"} : fp32[b=8, h=8]\n"
    "  %%y = call @one \"h.1\"(%%x)\n  %%z = call @one \"h.2\"(%%y)\n  send(%%z) {to=b, tag=\"to b\"}\n}\n"
    "func @of.b() {\n  %%x = receive() {from=a, tag=\"to b\"} : fp32[b=8, h=8]\n"
    "  %%y = call @%s \"%s\"(%%x)\n  %%z = call @one \"%s\"(%%y)\n  send(%%z) {to=last, tag=\"to the last\"}\n}\n"
    "func @last() {\n  %%x = receive() {from=b, tag=\"to the last\"} : fp32[b=8, h=8]\n"
    "  %%total = sum(%%x) {over=(b, h)}\n  loss(%%total)\n}\n"
    "class first at pp=0 {\n  chunk 0 forward @first\n  steps F0.0\n}\n"
    "class a at pp=1 {\n  chunk 1 forward @of.a\n  steps F1.0\n}\n"
    "class b at pp=2 {\n  chunk 2 forward @of.b\n  steps F2.0\n}\n"
    "class last at pp=3 {\n  chunk 3 forward @last\n  steps F3.0\n}\n";

static void check_three(const char *callee, const char *path, const char *second_path, bool alike) {
  pl_arena arena;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  char text[4096];
  pl_arena_init(&arena, 0);
  snprintf(text, sizeof text, three, callee, path, second_path);
  if (pl_ir_parse("m.plir", text, strlen(text), &arena, &module, &error) != PL_OK) fail_msg("%s", error.message);
  const int32_t *likes = pl_ir_alike_take(&module, &arena);
  assert_non_null(likes);
  assert_int_equal(likes[1], 1);
  assert_int_equal(likes[2], alike ? 1 : 2);
  assert_int_equal(likes[3], 3);
  const pl_ir_telling sends = {.sends = true, .other = "b", .tag = "to b"};
  const pl_ir_op *op = pl_ir_alike_op(&module, &module.classes[1], &module.classes[2], &sends);
  assert_string_equal(pl_ir_text_of(op, "to"), "last");
  assert_string_equal(pl_ir_text_of(op, "tag"), "to the last");
  pl_arena_release(&arena);
}

static void what_is_alike(void **unused) {
  (void)unused;
  check_three("one", "h.3", "h.4", true);
  check_three("one", "h.3", "h.3", false); /* one path, of two of the other's */
  check_three("two", "h.3", "h.4", false); /* another function */
  check_three("one", "h", "h.4", false);   /* may be around it */
  check_three("one", "h.2", "h.1", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(alike_lists_are_as_others), cmocka_unit_test(what_is_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
