/* What simulating a program costs is linear in its ops (DistIR, section 5.4), counted and not timed: with layers
 * doubled, the tasks that the engine plays and the bytes that are taken for them grow by as much as from half of them
 * to one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/simulate_program.h"
#include "workloads/strategy/job_defaults.h"
#include "workloads/strategy/strategy.h"

typedef struct cost {
  double kernels, tasks, bytes;
} cost;

static cost cost_of(int layers) {
  char text[400];
  pl_arena arena, run;
  pl_model model;
  pl_strategy strategy;
  pl_ir_module module;
  pl_program_report report;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  pl_arena_init(&run, 0);
  snprintf(text, sizeof(text),
           "{\"model_type\": \"gpt2\", \"n_layer\": %d, \"n_embd\": 256, \"n_head\": 4, \"n_positions\": 64, "
           "\"vocab_size\": 512}",
           layers);
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1, .gpus_per_node = 8});
  const pl_job job = {.gbs = 16, .seq = 64, .dtype = PL_DTYPE_FP16, .flash = true};
  assert_int_equal(pl_model_parse("m.json", text, strlen(text), &arena, &model, &error), PL_OK);
  assert_int_equal(pl_strategy_parse("pp=2,dp=2,tmp=2,mbs=2", &model, &arena, &strategy, &error), PL_OK);
  pl_strategy_adopt(&strategy, &job);
  assert_int_equal(pl_strategy_assign_unplaced(&strategy, &model, &job, "", &arena, &error), PL_OK);
  assert_int_equal(pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error), PL_OK);
  const pl_simulate_options options = {.network = PL_NETWORK_FLOW};
  assert_int_equal(pl_simulate_program(cluster, &module, NULL, &options, &run, &report, &error), PL_OK);
  const cost made = {(double)report.n_kernels, (double)report.n_tasks, (double)pl_arena_used_bytes(&run)};
  synthetic_cluster_release(cluster);
  pl_arena_release(&run);
  pl_arena_release(&arena);
  return made;
}

static void is_linear_in_ops(void **state) {
  (void)state;
  const cost a = cost_of(16), b = cost_of(32), c = cost_of(64);
  assert_true(b.kernels > a.kernels);
  assert_true(c.kernels - b.kernels == 2 * (b.kernels - a.kernels));
  assert_true(c.tasks - b.tasks == 2 * (b.tasks - a.tasks));
  double growth = (c.bytes - b.bytes) / (b.bytes - a.bytes);
  printf("ops %.0f, %.0f, %.0f; tasks %.0f, %.0f, %.0f; bytes grow %.3f times as much from 32 to 64 layers as from 16 "
         "to 32\n",
         a.kernels, b.kernels, c.kernels, a.tasks, b.tasks, c.tasks, growth);
  assert_true(growth < 2.2); /* arrays that double as they grow */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_linear_in_ops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
