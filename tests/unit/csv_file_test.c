/* CSV files: quotes, line breaks, remarks, compression, numbers, and every refusal with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "validation/csv_file.h"

static pl_code parse(const char *text, pl_csv_file *csv, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_csv_file_parse("t.csv", text, strlen(text), &arena, csv, error);
}

static void test_fields(void **state) {
  (void)state;
  pl_csv_file csv;
  pl_error error;
  const char *text = "\xef\xbb\xbf# where from\r\n\r\n# and how\r\nname,\"a, b\",c\r\n"
                     "one,\"x\"\"y,\r\nz\",\r\n\r\n,2,\"\"\nlast,3.5,8";
  if (parse(text, &csv, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(csv.n_columns, 3);
  assert_int_equal(csv.n_rows, 3);
  assert_string_equal(csv.names[1], "a, b");
  int column = pl_csv_file_column(&csv, "a, b");
  assert_int_equal(column, 1);
  assert_int_equal(pl_csv_file_column(&csv, "d"), -1);
  assert_string_equal(pl_csv_file_text(&csv, 0, 0), "one");
  assert_string_equal(pl_csv_file_text(&csv, 0, 1), "x\"y,\r\nz");
  assert_string_equal(pl_csv_file_text(&csv, 0, 2), "");
  assert_string_equal(pl_csv_file_text(&csv, 1, 0), "");
  assert_string_equal(pl_csv_file_text(&csv, 1, 2), "");
  assert_string_equal(pl_csv_file_text(&csv, 2, 2), "8");
  assert_string_equal(pl_csv_file_text(&csv, 2, -1), "");
  assert_true(csv.lines[0] == 5 && csv.lines[1] == 8 && csv.lines[2] == 9);
  double number;
  assert_int_equal(pl_csv_file_number(&csv, 2, 1, 0, 10, &number, &error), PL_OK);
  assert_true(number == 3.5);
  int64_t integer;
  assert_int_equal(pl_csv_file_integer(&csv, 2, 2, 0, 10, &integer, &error), PL_OK);
  assert_true(integer == 8);
  assert_int_equal(pl_csv_file_integer(&csv, 2, 1, 0, 10, &integer, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t.csv:9: a, b: 3.5 is not a whole number");
}

static void test_numbers(void **state) {
  (void)state;
  static const struct {
    const char *text, *expected; /* NULL: good */
  } cases[] = {{"1e-3", NULL},
               {" 7 ", NULL},
               {"16.0", NULL},
               {"", "t.csv:2: a: '' is not a number"},
               {"nan", "'nan' is not a number"},
               {"inf", "'inf'"},
               {"0x10", "'0x10'"},
               {"1e999", "'1e999'"},
               {"12us", "'12us'"},
               {"1 2", "'1 2'"},
               {"-1", "t.csv:2: a: -1 is not between 0 and 100"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[64];
    snprintf(text, sizeof text, "a,b\n%s,\n", cases[i].text);
    pl_csv_file csv;
    pl_error error;
    assert_int_equal(parse(text, &csv, &error), PL_OK);
    double value;
    pl_code code = pl_csv_file_number(&csv, 0, 0, 0, 100, &value, &error);
    bool good = cases[i].expected == NULL;
    if (good ? code != PL_OK : code != PL_BAD_INPUT || strstr(error.message, cases[i].expected) == NULL)
      fail_msg("'%s': code %d: %s", cases[i].text, (int)code, error.message);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "t.csv: empty"},
      {"# only\n# remarks\n", "t.csv: empty"},
      {"a,b\n1\n", "t.csv:2: 1 fields where the header has 2"},
      {"a,b\n1,2\n\n1,2,3\n", "t.csv:4: 3 fields where the header has 2"},
      {"a,b,a\n", "t.csv:1: two columns are called 'a'"},
      {"a,b\n1,\"2\n3,4\n", "t.csv:2: a quoted field that begins here is never closed"},
      {"a,b\n1,\"2\"x\n", "t.csv:2: text behind a closing quote"},
      {"a,b\n\x01,2\n", "t.csv:2: byte 0x01"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_csv_file csv;
    pl_error error;
    pl_code code = parse(cases[i][0], &csv, &error);
    if (code != PL_BAD_INPUT || strstr(error.message, cases[i][1]) == NULL)
      fail_msg("case %zu: code %d: %s", i, (int)code, error.message);
  }
  pl_csv_file csv;
  pl_error error;
  int column;
  assert_int_equal(parse("a,b\n", &csv, &error), PL_OK);
  assert_int_equal(pl_csv_file_require(&csv, "m", &column, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t.csv: no column 'm'; there are: a, b");
}

static void write_gz(const char *path, const char *text) {
  gzFile file = gzopen(path, "wb9");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
  assert_int_equal(gzclose(file), Z_OK);
}

static void test_files(void **state) {
  (void)state;
  char path[] = "/tmp/csv_file_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  pl_csv_file csv;
  pl_error error = PL_ERROR_INIT;
  write_gz(path, "m,n\n1,2\n3,4\n");
  if (pl_csv_file_load(path, &arena, &csv, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(csv.n_rows, 2);
  assert_string_equal(pl_csv_file_text(&csv, 1, 1), "4");
  assert_int_equal(truncate(path, 20), 0);
  assert_int_equal(pl_csv_file_load(path, &arena, &csv, &error), PL_BAD_INPUT);
  error = PL_ERROR_INIT;
  unlink(path);
  assert_int_equal(pl_csv_file_load(path, &arena, &csv, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "No such file"));
}

/* Every allocation fails once. */
static void test_no_memory(void **state) {
  (void)state;
  int64_t k = 0;
  for (;; k++) {
    pl_arena small;
    pl_arena_init(&small, 0);
    small.fail_after = k;
    pl_csv_file csv;
    pl_error error = PL_ERROR_INIT;
    pl_code code = pl_csv_file_parse("t.csv", "a\n1\n", 4, &small, &csv, &error);
    pl_arena_release(&small);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
  }
  assert_true(k >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_fields, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
