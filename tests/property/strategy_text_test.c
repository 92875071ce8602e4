/* A strategy that is printed is read back as the same: wherever the blocks are cut, between layers or among those in
 * front of them and behind, and however the boundaries are counted. What is searched for puts its boundaries
 * anywhere: a stage of slow devices may hold the head alone.
 *
 * PACELINE_SEED and PACELINE_CASES as elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/strategy_fixture.h"

enum { MAX_CHUNKS = 30 };

/* n + 1 increasing numbers from 0 to n_blocks. */
static void random_cut(uint64_t *random, int32_t n, int32_t n_blocks, int32_t *boundary) {
  int32_t left = n_blocks - 1, wanted = n - 1, at = 0;
  boundary[0] = 0;
  for (int32_t block = 1; block < n_blocks; block++, left--)
    if (random_below(random, (uint32_t)left) < (uint32_t)wanted) {
      boundary[++at] = block;
      wanted--;
    }
  boundary[n] = n_blocks;
}

static void check_same(fixture *own, const pl_strategy *strategy) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  char *text = pl_strategy_text(strategy, &own->model);
  assert_non_null(text);
  pl_strategy read = parse(own, text);
  if (memcmp(read.boundary, strategy->boundary, ((size_t)n_chunks + 1) * sizeof(int32_t)) != 0)
    fail_msg("%s: read as another cut", text);
  char *again = pl_strategy_text(&read, &own->model);
  assert_string_equal(again, text);
  free(again);
  free(text);
}

static void what_is_printed_is_read_back(void **state) {
  fixture *own = *state;
  uint64_t random = test_seed(11), n_cases = test_number("PACELINE_CASES", 3000);
  int32_t n_blocks = pl_model_n_blocks(&own->model);
  for (uint64_t i = 0; i < n_cases; i++) {
    int32_t boundary[MAX_CHUNKS + 1];
    int32_t n = 1 + (int32_t)random_below(&random, (uint32_t)n_blocks);
    random_cut(&random, n, n_blocks, boundary);
    pl_strategy strategy = parse(own, "pp=1,dp=1,tmp=1,mbs=1");
    strategy.pp = n;
    strategy.recipe = PL_ASSIGN_GIVEN;
    strategy.boundary = boundary;
    strategy.counts_layers = random_below(&random, 2) == 0;
    check_same(own, &strategy);
  }
}

/* As searches print them: in layers wherever that says it. */
static void stages_of_ends_alone_are_told_in_layers(void **state) {
  static const struct {
    const char *text;
    int32_t boundary[6];
  } cases[] = {{"0:0:12:23:24", {0, 2, 14, 25, 30}},
               {"0:7:12:24:24", {0, 9, 14, 26, 30}},
               {"0:0:12:24:24", {0, 2, 14, 26, 30}},
               {"0:1:2:29:30", {0, 1, 2, 29, 30}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    snprintf(text, sizeof text, DEGREES ",assign=%s", cases[i].text);
    pl_strategy strategy = parse(*state, text);
    assert_memory_equal(strategy.boundary, cases[i].boundary, 5 * sizeof(int32_t));
    pl_strategy_format_assign(&strategy, &((fixture *)*state)->model, text, sizeof text);
    assert_string_equal(text, cases[i].text);
  }
}

static void slips_are_still_refused(void **state) {
  static const char *const slips[] = {"0:7:7:12:24", "0:0:0:12:24", "0:12:24:24:24", "0:0:12:30:30", "0:12:24:24:30"};
  fixture *own = *state;
  for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
    char text[128];
    pl_strategy strategy;
    pl_error error = PL_ERROR_INIT;
    snprintf(text, sizeof text, DEGREES ",assign=%s", slips[i]);
    assert_int_equal(pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error), PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "is not increasing"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(what_is_printed_is_read_back), TEST(stages_of_ends_alone_are_told_in_layers),
                                     TEST(slips_are_still_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
