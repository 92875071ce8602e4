/* Rows of measurements written in a test, expressed as `paceline validate` does it. */
#ifndef PL_TESTS_SUPPORT_ROW_FIXTURE_H
#define PL_TESTS_SUPPORT_ROW_FIXTURE_H

#include <string.h>

#include "tests/support/arena_fixture.h"
#include "validation/rows/case.h"

/* `text`: a whole table, header included. */
static pl_cases express_table(char *text) {
  pl_error error = PL_ERROR_INIT;
  pl_csv csv, known;
  pl_measured *measured = PL_TAKE(&arena, pl_measured, 1);
  pl_cases cases = {0};
  const pl_case_options options = {.n_threads = 1};
  if (pl_csv_load("validation/models.csv", &arena, &known, &error) != PL_OK ||
      pl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &error) != PL_OK ||
      pl_measured_read(&csv, &arena, measured, &error) != PL_OK ||
      pl_cases_take(measured, 1, &arena, &cases, &error) != PL_OK ||
      pl_cases_express(&cases, &known, &options, &arena, &error) != PL_OK)
    fail_msg("%s", error.message);
  return cases;
}

#endif
