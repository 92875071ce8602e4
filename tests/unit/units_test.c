/* Units: what is read, what is refused with which words, what is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"

typedef pl_code (*parser)(const char *text, const char *what, double *value, pl_error *error);

static void reads(parser parse, const char *text, double expected) {
  double value = -1.0;
  pl_error error = PL_ERROR_INIT;
  if (parse(text, "x", &value, &error) != PL_OK) fail_msg("'%s' refused: %s", text, error.message);
  if (value != expected) fail_msg("'%s' read as %.17g instead of %.17g", text, value, expected);
}

static void refuses(parser parse, const char *text) {
  double value = -1.0;
  pl_error error = PL_ERROR_INIT;
  if (parse(text, "--option", &value, &error) != PL_BAD_INPUT) fail_msg("'%s' accepted as %.17g", text, value);
  assert_true(value == -1.0);
  assert_non_null(strstr(error.message, "--option: '"));
  char shown[256];
  if (strlen(text) <= 64) assert_non_null(strstr(error.message, pl_printable(text, shown, sizeof shown)));
}

static void bytes(void **state) {
  (void)state;
  reads(pl_parse_bytes, "0", 0.0);
  reads(pl_parse_bytes, "4096", 4096.0);
  reads(pl_parse_bytes, "7B", 7.0);
  reads(pl_parse_bytes, "25MB", 25e6);
  reads(pl_parse_bytes, "1.5kB", 1500.0);
  reads(pl_parse_bytes, "80GiB", 85899345920.0);
  reads(pl_parse_bytes, ".5TiB", 549755813888.0);
  reads(pl_parse_bytes, "2e3kB", 2e6);
  reads(pl_parse_bytes, "3TB", 3e12);
}

static void rates(void **state) {
  (void)state;
  reads(pl_parse_rate, "25GBps", 25e9);
  reads(pl_parse_rate, "100Gbps", 12.5e9);
  reads(pl_parse_rate, "8bps", 1.0);
  reads(pl_parse_rate, "1GiBps", 1073741824.0);
  reads(pl_parse_rate, "8Kibps", 1024.0);
  reads(pl_parse_rate, "600", 600.0);
  refuses(pl_parse_rate, "25GB");
  refuses(pl_parse_rate, "25GB/s");
  refuses(pl_parse_rate, "25GBpss");
  refuses(pl_parse_rate, "25gbps");
  refuses(pl_parse_rate, "ps");
}

static void flops(void **state) {
  (void)state;
  reads(pl_parse_flops, "312Tf", 312e12);
  reads(pl_parse_flops, "1.5Pf", 1.5e15);
  reads(pl_parse_flops, "9f", 9.0);
  refuses(pl_parse_flops, "312TF");
  refuses(pl_parse_flops, "312TB");
}

static void times(void **state) {
  (void)state;
  reads(pl_parse_time, "1.5", 1.5);
  reads(pl_parse_time, "20ms", 0.02); /* the double next to 0.02, not 20 * 1e-3 */
  reads(pl_parse_time, "3us", 3e-6);
  reads(pl_parse_time, "7ns", 7e-9);
  reads(pl_parse_time, "1ps", 1e-12);
  reads(pl_parse_time, "2s", 2.0);
  refuses(pl_parse_time, "3min");
  refuses(pl_parse_time, "-3us");
}

static void every_parser_refuses(void **state) {
  (void)state;
  static const char *const bad[] = {"",   " ",    "-1",    "+1",  "nan", "inf", "infinity", "0x10", "1 GB",
                                    "GB", "1GBx", "1e999", "1kk", "1KB", "1mB", "1,5",      "--",   "1e",
                                    ".",  "1..2", "1\xff", "B",   "1bB", "1 ",  "1GB GB",   "1Gi",  " 1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    refuses(pl_parse_bytes, bad[i]);
    refuses(pl_parse_rate, bad[i]);
    refuses(pl_parse_flops, bad[i]);
    refuses(pl_parse_time, bad[i]);
    refuses(pl_parse_number, bad[i]);
  }
  refuses(pl_parse_bytes, "1e308TiB"); /* finite figure, infinite product */
}

static void a_long_text_is_cut_in_the_message(void **state) {
  (void)state;
  char text[5000];
  memset(text, '9', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  refuses(pl_parse_bytes, text);
}

static void integer_is(const char *text, int64_t lowest, int64_t highest, int64_t expected) {
  int64_t value = 77;
  assert_int_equal(pl_parse_integer(text, "n", lowest, highest, &value, NULL), PL_OK);
  assert_int_equal(value, expected);
}

static void integer_refused(const char *text, int64_t lowest, int64_t highest, const char *words) {
  int64_t value = 77;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_parse_integer(text, "n", lowest, highest, &value, &error), PL_BAD_INPUT);
  assert_int_equal(value, 77);
  assert_non_null(strstr(error.message, words));
}

static void integers(void **state) {
  (void)state;
  integer_is("0", 0, 0, 0);
  integer_is("007", 1, 10, 7);
  integer_is("-5", -5, 5, -5);
  integer_is("9223372036854775807", 0, INT64_MAX, INT64_MAX);
  integer_is("-9223372036854775808", INT64_MIN, 0, INT64_MIN);
  integer_refused("9223372036854775808", 0, INT64_MAX, "out of range");
  integer_refused("11", 1, 10, "n: 11 is out of range: 1 to 10");
  integer_refused("0", 1, 10, "out of range");
  integer_refused("1.0", 1, 10, "whole number");
  integer_refused("", 1, 10, "whole number");
  integer_refused("-", 1, 10, "whole number");
  integer_refused("1e3", 1, 10000, "whole number");
  integer_refused(" 1", 1, 10, "whole number");
}

static void prints(const char *(*print)(double value, char text[PL_UNIT_TEXT_BYTES]), double value,
                   const char *expected) {
  char text[PL_UNIT_TEXT_BYTES];
  assert_string_equal(print(value, text), expected);
}

static void printing(void **state) {
  (void)state;
  prints(pl_format_bytes, 0.0, "0 B");
  prints(pl_format_bytes, 1.0, "1 B");
  prints(pl_format_bytes, 1023.0, "1023 B");
  prints(pl_format_bytes, 1024.0, "1 KiB");
  prints(pl_format_bytes, 24.6 * 0x1p30, "24.6 GiB");
  prints(pl_format_bytes, 1020.0 * 0x1p30, "1020 GiB");
  prints(pl_format_bytes, 5000.0 * 0x1p40, "5000 TiB");
  prints(pl_format_rate, 25e9, "25 GB/s");
  prints(pl_format_rate, 12.5e9, "12.5 GB/s");
  prints(pl_format_rate, 999.9e6, "1 GB/s"); /* not "1000 MB/s" */
  prints(pl_format_time, 1.534, "1.53 s");
  prints(pl_format_time, 0.0, "0 s");
  prints(pl_format_time, 0.02, "20 ms");
  prints(pl_format_time, 3.4e-6, "3.4 us");
  prints(pl_format_time, 5e-13, "0.5 ps");
  prints(pl_format_time, 1234.0, "1234 s");
  prints(pl_format_figure, 25189.6, "25190");
  prints(pl_format_figure, 67.987, "67.99");
  prints(pl_format_figure, 9999.4, "9999");
  prints(pl_format_figure, 9999.6, "10000");
  prints(pl_format_figure, 2429541.0, "2430000");
  prints(pl_format_figure, 0.0, "0");
  prints(pl_format_figure, -123456.0, "-123500");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes),    cmocka_unit_test(rates),
      cmocka_unit_test(flops),    cmocka_unit_test(times),
      cmocka_unit_test(integers), cmocka_unit_test(every_parser_refuses),
      cmocka_unit_test(printing), cmocka_unit_test(a_long_text_is_cut_in_the_message),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
