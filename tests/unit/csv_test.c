/* CSV: what RFC 4180 allows is read, everything else is refused with file:line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/csv.h"
#include "tests/support/arena_fixture.h"

static pl_code parse(const char *text, pl_csv *csv, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_csv_parse("t.csv", text, strlen(text), &arena, csv, error);
}

static void reads_quotes_line_ends_and_gaps(void **state) {
  (void)state;
  pl_csv csv;
  pl_error error;
  const char *text = "\xef\xbb\xbf"
                     "a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\r\n\n  \n,,\"\"\n-2.5e3,q,r";
  assert_int_equal(parse(text, &csv, &error), PL_OK);
  assert_int_equal(csv.n_columns, 3);
  assert_int_equal(csv.n_rows, 3);
  assert_string_equal(pl_csv_cell(&csv, 0, 1), "x, \"y\"\nz");
  assert_string_equal(pl_csv_cell(&csv, 0, 2), "");
  assert_string_equal(pl_csv_cell(&csv, 2, 2), "r");
  assert_string_equal(pl_csv_cell(&csv, 2, PL_CSV_NO_COLUMN), "");
  assert_int_equal(csv.lines[0], 2);
  assert_int_equal(csv.lines[1], 6);
  assert_int_equal(csv.lines[2], 7);
  assert_int_equal(pl_csv_column(&csv, "c"), 2);
  assert_true(pl_csv_column(&csv, "d") == PL_CSV_NO_COLUMN);
  bool given;
  double value = 1;
  assert_int_equal(pl_csv_number(&csv, 2, 0, &given, &value, &error), PL_OK);
  assert_true(given && value == -2500);
  assert_int_equal(pl_csv_number(&csv, 1, 0, &given, &value, &error), PL_OK);
  assert_true(!given && value == -2500);
}

static void says_where_it_is_wrong(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "t.csv: is empty"},
      {"\n \n", "t.csv: is empty"},
      {"a,a\n", "t.csv: two columns are called 'a'"},
      {"a,\n", "t.csv: column 2 has no name"},
      {"a,b\n1,2\n\n1\n", "t.csv:4: 1 cells where the header has 2"},
      {"a,b\n1,2,3\n", "t.csv:2: 3 cells where the header has 2"},
      {"a,b\n1,\"x\n", "t.csv:2: a quoted cell begins here"},
      {"a,b\n1,x\"y\"\n", "t.csv:2: a quote inside a cell"},
      {"a,b\n1,\"x\"y\n", "t.csv:2: text behind a closing quote"},
      {"a,b\n1,\xff\n", "t.csv:2:3: byte 0xff is not UTF-8"},
      {"a,b\n1,\x1b[2J\n", "t.csv:2:3: control character 0x1b"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_csv csv;
    pl_error error;
    assert_int_equal(parse(cases[i][0], &csv, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i][1]) != error.message) fail_msg("%s, not: %s", error.message, cases[i][1]);
  }
}

static void numbers_are_decimal_and_finite(void **state) {
  (void)state;
  static const char *const wrong[] = {"1x", "nan", "inf", "0x10", "1e999", "--1", " 1", "1,5"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char text[64];
    snprintf(text, sizeof text, "n\n\"%s\"\n", wrong[i]);
    pl_csv csv;
    pl_error error;
    assert_int_equal(parse(text, &csv, &error), PL_OK);
    bool given;
    double value = 7;
    assert_int_equal(pl_csv_number(&csv, 0, 0, &given, &value, &error), PL_BAD_INPUT);
    assert_true(value == 7 && strstr(error.message, "t.csv:2: column 'n': '") == error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(reads_quotes_line_ends_and_gaps, set_up, tear_down),
      cmocka_unit_test_setup_teardown(says_where_it_is_wrong, set_up, tear_down),
      cmocka_unit_test_setup_teardown(numbers_are_decimal_and_finite, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
