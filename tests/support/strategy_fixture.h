/* A model and a job for tests of strategies; include behind cmocka.h. set_up and tear_down go around each test. */
#ifndef PL_TESTS_SUPPORT_STRATEGY_FIXTURE_H
#define PL_TESTS_SUPPORT_STRATEGY_FIXTURE_H

#include "workloads/import/model_file.h"
#include "workloads/strategy/strategy.h"

typedef struct fixture {
  pl_arena arena;
  pl_model model; /* GPT-2 345M: 24 layers, 30 blocks, 16 heads, 1024 learned positions */
  pl_job job;
} fixture;

static int set_up(void **state) {
  static fixture own;
  own = (fixture){.job = {.gbs = 32, .seq = 1024, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 25e6}};
  pl_arena_init(&own.arena, 0);
  pl_error error = PL_ERROR_INIT;
  *state = &own;
  return pl_model_load("workloads/models/gpt2-345m.json", &own.arena, &own.model, &error) == PL_OK ? 0 : -1;
}

static int tear_down(void **state) {
  pl_arena_release(&((fixture *)*state)->arena);
  return 0;
}

static pl_strategy parse(fixture *own, const char *text) {
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return strategy;
}

#define DEGREES "pp=4,dp=4,tmp=1,mbs=1"

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
