/* A program's graph of one device per class, whose passes are fused, has the dates of the graph of all devices, to the
 * tick: trees that cut 16 devices in several ways, with and without a pipeline, on platforms with one kind of GPU and
 * with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "workloads/import/model_file.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/simulate_program.h"

static const char *const trees[] = {
    "partition: {b: 16}\n",
    "schedule: {microbatches: 2}\npartition: {b: 16}\nmemory: {states: b, gradients: b, parameters: b}\n",
    "mesh: {dp: 4, tp: 4}\npartition: {b: dp, v|g|r|f|s: tp}\nmemory: {states: b}\n",
    "mesh: {tp: 2, dp: 8}\npartition: {b: dp, v|g|r|f: tp}\n",
    "partition: {b: 8}\nchildren:\n  - {match: h.1, partition: {b: 4, f|g: 2}}\n  - {match: h.*, schedule: "
    "{microbatches: 2}}\n",
    "partition: {b: 2, s: 4}\nring: true\n"};

/* Several lists, with messages and sums between them: fewer devices may be alike, but some are. */
static const char *const pipelines[] = {
    "mesh: {dp: 4, tp: 2}\npipeline: {stages: 2}\nschedule: {microbatches: 4, kind: 1f1b}\npartition: {b: dp, v|g|r|f: "
    "tp}\n",
    "mesh: {dp: 8}\npipeline: {stages: 2}\nschedule: {microbatches: 4, kind: gpipe}\npartition: {b: dp}\nmemory: "
    "{states: b}\n",
    "mesh: {dp: 2, tp: 4}\npipeline: {stages: 2}\nschedule: {microbatches: 4, kind: zb-h1}\npartition: {b: dp, "
    "v|g|r|f|s: tp}\n",
    "mesh: {dp: 4, tp: 2}\npipeline: {stages: 2, chunks: 2}\nschedule: {microbatches: 4, kind: zb-v}\npartition: {b: "
    "dp, "
    "v|g|r|f: tp}\nmemory: {states: b, gradients: b}\n"};

/* What a run says; the digest of its tasks and their number are of the graph. */
static void check_same(const pl_program_report *folded, const pl_program_report *whole, bool mixed) {
  assert_true(folded->n_tasks < whole->n_tasks || (mixed && folded->n_tasks == whole->n_tasks));
  assert_true(folded->iter_time_s == whole->iter_time_s);
  assert_true(folded->idle_s == whole->idle_s);
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    assert_true(folded->spent_s[category] == whole->spent_s[category]);
  assert_true(folded->n_kernels == whole->n_kernels && folded->n_collectives == whole->n_collectives);
  assert_true(folded->n_sends == whole->n_sends);
  assert_true(folded->flops == whole->flops);
  assert_true(folded->interval.low_s < folded->iter_time_s);
  assert_true(folded->interval.low_s == whole->interval.low_s && folded->interval.high_s == whole->interval.high_s);
}

/* Half-widths that differ, so that what is charged to something else shows. */
static pl_residuals unlike(void) {
  pl_residuals residuals = {.centre = 0};
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    residuals.half[i] = 0.01 * (i + 1);
  return residuals;
}

static void check(const char *platform_path, const char *text, const char *framework_path, const char *model_path,
                  int64_t seq, bool pipeline) {
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  pl_model model;
  pl_framework framework;
  pl_job job = {.gbs = 32, .seq = seq, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_ir_module module, launched;
  pl_program_report reports[2];
  pl_arena_init(&arena, 0);
  assert_int_equal(pl_platform_load(platform_path, NULL, &platform, &error), PL_OK);
  const pl_cluster *cluster = pl_platform_cluster(platform);
  assert_int_equal(pl_model_load(model_path, &arena, &model, &error), PL_OK);
  if (pl_framework_load(framework_path, &arena, &framework, &error) != PL_OK) fail_msg("%s", error.message);
  job.framework = &framework;
  pl_code code = pl_tree_parse("t.yaml", text, strlen(text), &arena, &tree, &error);
  if (code == PL_OK) code = pl_program_of_tree(&model, &job, &tree, PL_IR_DISTRIBUTED, &arena, &plan, &module, &error);
  if (code == PL_OK) code = pl_program_launched(cluster, &module, &framework, &arena, &launched, &error);
  for (int i = 0; i < 2 && code == PL_OK; i++) {
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    const pl_residuals residuals = unlike();
    const pl_aspects aspects = {0};
    options.fold = i == 0;
    options.residuals = &residuals;
    options.program_aspects = &aspects;
    code = pl_simulate_program(cluster, &launched, &framework, &options, &arena, &reports[i], &error);
  }
  if (code != PL_OK) fail_msg("%s: %s", platform_path, error.message);
  check_same(&reports[0], &reports[1], pipeline && cluster->n_profiles > 1);
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
}

static void folded(void **state) {
  (void)state;
  static const char *const platforms[] = {"platforms/amp-hetero-cluster.xml", "platforms/hc2.xml",
                                          "platforms/dgx-a100-16.xml"};
  static const char *const frameworks[] = {"nanotron", "megatron-core"};
  const char *tiny = "workloads/models/tiny-gpt2.json";
  for (size_t p = 0; p < sizeof platforms / sizeof platforms[0]; p++)
    for (size_t t = 0; t < sizeof trees / sizeof trees[0]; t++)
      check(platforms[p], trees[t], frameworks[(p + t) % 2], tiny, 16, false);
  for (size_t p = 0; p < sizeof platforms / sizeof platforms[0]; p++)
    for (size_t t = 0; t < sizeof pipelines / sizeof pipelines[0]; t++)
      check(platforms[p], pipelines[t], frameworks[(p + t) % 2], tiny, 16, true);
}

/* Messages on their way contend with the tensor collectives inside of passes. */
static void fused_with_rivals(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof pipelines / sizeof pipelines[0]; t++)
    check("platforms/amp-hetero-cluster.xml", pipelines[t], "megatron-core", "workloads/models/gpt2-345m.json", 1024,
          true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(folded), cmocka_unit_test(fused_with_rivals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
