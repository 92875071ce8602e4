/* What the end of a search says of strategies that are nearer to the best than the best moves for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "search/command/search_summary.h"

/* Three rows at 1, 1.001 and 1.01 s. */
static char *summary(double low_s, double high_s, bool json) {
  static const double times_s[] = {1, 1.001, 1.01};
  pl_search_values values[3] = {0};
  pl_result_row rows[3] = {0};
  for (int i = 0; i < 3; i++) {
    snprintf(values[i].strategy.text, sizeof values[i].strategy.text, "pp=%d", i);
    rows[i].iter_time_s = times_s[i];
    rows[i].search = &values[i];
  }
  const pl_search_outcome outcome = {.n_rows = 3, .n_computed = 3, .top = rows, .n_top = 3};
  const pl_sensitivity sensitivity = {.n_runs = PL_SENSITIVITY_RUNS, .low_s = low_s, .high_s = high_s};
  const pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  const pl_evaluation evaluation = {.options = &options};
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  assert_non_null(stream);
  pl_search_summary_print(stream, NULL, "bound", &outcome, &sensitivity, &(pl_training_cost){0}, &evaluation, json);
  fclose(stream);
  return text;
}

static void check(double low_s, double high_s, bool json, const char *expected, bool is_there) {
  char *text = summary(low_s, high_s, json);
  assert_int_equal(strstr(text, expected) != NULL, is_there);
  free(text);
}

static void test_near_rows_are_said(void **state) {
  (void)state;
  check(0.999, 1.004, false, "not told apart from the best: the 1 behind it; the best itself moves by 0.5 %", true);
  check(0.98, 1, false, "the 2 behind it", true);
  check(0.9995, 1, false, "not told apart", false);
  check(1 - 1e-10, 1, false, "not told apart", false); /* rounding */
  check(0.999, 1.004, true, "\"not_told_apart\": 1", true);
  check(1, 1, true, "\"not_told_apart\": 0", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_near_rows_are_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
