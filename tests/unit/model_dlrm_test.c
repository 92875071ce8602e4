/* Recommendation models: parameters to the unit, groups of tables, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/import/model_file.h"
#include "workloads/import/program_build.h"
#include "workloads/ir/dlrm.h"
#include "workloads/language/ir_parameters.h"

/* 8 tables of 64 million; 128-512-512-512-64 and (64 + 9 * 8 / 2)-1024-1024-1024-1024-1 with biases. Of MLPerf's the
 * tables of Criteo's terabyte, 128 wide, 13-512-256-128 and (128 + 27 * 26 / 2)-1024-1024-512-256-1. */
static void test_published_counts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t tables, groups, features;
    double parameters;
  } known[] = {{"dlrm-516m", 8, 1, 100, 512e6 + 624192 + 3253249},
               {"dlrm-mlperf", 26, 26, 479, 128.0 * 187767399 + 171392 + 2197505}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    pl_ir_module module;
    if (pl_model_load_any(known[i].name, &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
    assert_true(model.count.parameters == known[i].parameters);
    assert_int_equal(pl_dlrm_n_tables(model.program.dlrm), known[i].tables);
    assert_int_equal(model.program.dlrm->n_groups, known[i].groups);
    assert_int_equal(model.program.dlrm->top[0], known[i].features);
    const pl_model_program_options options = pl_model_program_defaults(4, 1, 1);
    assert_int_equal(pl_model_program_build(&model, &options, &arena, &module, &error), PL_OK);
    double sum = 0;
    for (int32_t f = 0; f < module.n_functions - 1; f++)
      sum += pl_ir_parameters_count(&module, f, &arena);
    assert_true(sum == known[i].parameters);
    assert_int_equal(pl_model_load(known[i].name, &arena, &model, &error), PL_UNSUPPORTED);
  }
}

static void test_refuses(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"\"bottom_mlp\": [4, 8], \"top_mlp\": [4, 1], \"embedding_rows\": [5]", "'embedding_size'"},
      {"\"bottom_mlp\": [4, 7], \"top_mlp\": [4, 1], \"embedding_rows\": [5], \"embedding_size\": 8",
       "ends with 7, and embeddings are 8 wide"},
      {"\"bottom_mlp\": [4, 8], \"top_mlp\": [4, 2], \"embedding_rows\": [5], \"embedding_size\": 8", "ends with 2"},
      {"\"bottom_mlp\": [4, 8], \"top_mlp\": [1], \"embedding_rows\": 5, \"embedding_size\": 8", "must be a list"},
      {"\"bottom_mlp\": [4, 8], \"top_mlp\": [1], \"embedding_rows\": [0], \"embedding_size\": 8", "0 is not from 1"},
      {"\"bottom_mlp\": [4, 8], \"top_mlp\": [1], \"embedding_rows\": [5], \"embedding_size\": 8, "
       "\"interaction\": \"sum\"",
       "supported are dot and cat"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[512];
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    snprintf(text, sizeof text, "{\"model_type\": \"dlrm\", %s}", cases[i].text);
    assert_int_equal(pl_model_parse("m.json", text, strlen(text), &arena, &model, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i].says) == NULL) fail_msg("%s: %s", cases[i].text, error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_published_counts, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
