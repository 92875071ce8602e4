/* CSV: what RFC 4180 allows is read, everything else is refused with file:line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/system/gzip.h"
#include "core/text/csv.h"
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

static void finds_the_separator(void **state) {
  (void)state;
  pl_csv csv;
  pl_error error;
  assert_int_equal(parse("a;b\n1,5;\"x;y\"\n", &csv, &error), PL_OK);
  assert_true(csv.n_columns == 2 && csv.n_rows == 1);
  assert_string_equal(pl_csv_cell(&csv, 0, 0), "1,5");
  assert_string_equal(pl_csv_cell(&csv, 0, 1), "x;y");
  assert_int_equal(parse("# a, b\na\tb\n1;5\t\n", &csv, &error), PL_OK);
  assert_int_equal(csv.n_columns, 2);
  assert_string_equal(pl_csv_cell(&csv, 0, 0), "1;5");
  assert_int_equal(parse("a;b,c\n1;2,3\n", &csv, &error), PL_OK);
  assert_string_equal(csv.header[0], "a;b");
  assert_int_equal(parse("\"a,b\";c\n1;2\n", &csv, &error), PL_OK);
  assert_string_equal(csv.header[0], "a,b");
  assert_int_equal(parse("a;b\n1;2;3\n", &csv, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t.csv:2: 3 cells where the header has 2");
}

static void finds_columns_of_any_case(void **state) {
  (void)state;
  pl_csv csv;
  pl_error error;
  assert_int_equal(parse("Gbs, TP ,tp\n1,2,3\n", &csv, &error), PL_OK);
  assert_int_equal(pl_csv_column_of_any_case(&csv, "gbs"), 0);
  assert_int_equal(pl_csv_column_of_any_case(&csv, "tp"), 1);
  assert_true(pl_csv_column_of_any_case(&csv, "t") == PL_CSV_NO_COLUMN);
  assert_true(pl_csv_column(&csv, "gbs") == PL_CSV_NO_COLUMN);
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

static void skips_remarks_in_front(void **state) {
  (void)state;
  pl_csv csv;
  pl_error error;
  assert_int_equal(parse("# from, \"there\n\n#and how\r\na,b\n#1,2\n", &csv, &error), PL_OK);
  assert_int_equal(csv.n_columns, 2);
  assert_int_equal(csv.n_rows, 1);
  assert_string_equal(pl_csv_cell(&csv, 0, 0), "#1");
  assert_int_equal(csv.lines[0], 5);
  assert_int_equal(parse("# nothing but this", &csv, &error), PL_BAD_INPUT);
}

/* Appends one gzip member with `text`. */
static void append_member(const char *path, const char *text) {
  gzFile file = gzopen(path, "ab9");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
  assert_int_equal(gzclose(file), Z_OK);
}

static void reads_gzip(void **state) {
  (void)state;
  char path[] = "/tmp/csv_test_XXXXXX", text[1024];
  int file = mkstemp(path);
  assert_true(file >= 0);
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  append_member(path, "m,n\n1,2\n");
  append_member(path, "3,4\n");
  if (pl_csv_load(path, &arena, &csv, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(csv.n_rows, 2);
  assert_string_equal(pl_csv_cell(&csv, 1, 1), "4");
  ssize_t size = pread(file, text, sizeof text, 0);
  assert_true(size > 20);
  /* Cut off anywhere: never read as if it were whole. A cut between the members is a whole file. */
  int n_good = 0;
  for (size_t cut = 2; cut < (size_t)size; cut++) {
    char *content;
    size_t content_size;
    error = PL_ERROR_INIT;
    if (pl_gzip_expand("t.gz", text, cut, 1000, &content, &content_size, &error) == PL_OK) n_good++;
    free(content);
  }
  assert_int_equal(n_good, 2); /* behind the first member; and with one byte of the next, which is no beginning yet */
  char *content;
  size_t content_size;
  error = PL_ERROR_INIT;
  assert_int_equal(pl_gzip_expand("t.gz", text, (size_t)size, 5, &content, &content_size, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "t.gz: expands to more than"));
  close(file);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(reads_quotes_line_ends_and_gaps, set_up, tear_down),
      cmocka_unit_test_setup_teardown(finds_the_separator, set_up, tear_down),
      cmocka_unit_test_setup_teardown(finds_columns_of_any_case, set_up, tear_down),
      cmocka_unit_test_setup_teardown(says_where_it_is_wrong, set_up, tear_down),
      cmocka_unit_test_setup_teardown(skips_remarks_in_front, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reads_gzip, set_up, tear_down),
      cmocka_unit_test_setup_teardown(numbers_are_decimal_and_finite, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
