/* What may be shown as it is, and how the rest is escaped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/status.h"

static void test_escapes(void **state) {
  (void)state;
  static const struct {
    const char *text, *expected;
  } cases[] = {
      {"", ""},
      {"plain, \"quoted\" \\ 100 %s", "plain, \"quoted\" \\ 100 %s"},
      {"h\xc3\xb4te \xe2\x82\xac \xf0\x9f\x9a\x82", "h\xc3\xb4te \xe2\x82\xac \xf0\x9f\x9a\x82"},
      {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
      {"\x1b[31mred\x07\x7f", "\\u001b[31mred\\u0007\\u007f"},
      {"\xc2\x9b"
       "31m\xc2\x80\xc2\xa0",
       "\\u009b31m\\u0080\xc2\xa0"},
      {"\xe2\x80\xae"
       "cod.exe\xe2\x80\xac",
       "\\u202ecod.exe\\u202c"},
      {"\xe2\x81\xa6|\xe2\x81\xa9|\xe2\x80\x8f|\xd8\x9c|\xef\xbb\xbf|\xe2\x80\xa8",
       "\\u2066|\\u2069|\\u200f|\\u061c|\\ufeff|\\u2028"},
      {"\xf3\xa0\x81\x81", "\\U000e0041"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc0\x80|\xe0\x80\xaf|\xed\xa0\x80", "\\xc0\\x80|\\xe0\\x80\\xaf|\\xed\\xa0\\x80"}, /* overlong, surrogate */
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},                                         /* beyond U+10FFFF */
      {"cut \xe2\x82", "cut \\xe2\\x82"},
  };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char out[256], *put;
    size_t size;
    assert_string_equal(pl_printable(cases[i].text, out, sizeof out), cases[i].expected);
    assert_int_equal(*pl_printable_end(out), '\0');
    assert_int_equal(*pl_printable_end(cases[i].text) == '\0', strcmp(cases[i].text, out) == 0);
    assert_string_equal(pl_printable_strdup(&arena, cases[i].text), cases[i].expected);
    FILE *stream = open_memstream(&put, &size);
    pl_printable_put(stream, cases[i].text);
    fclose(stream);
    assert_string_equal(put, cases[i].expected);
    free(put);
  }
  pl_arena_release(&arena);
}

/* Cut off in front of a character or an escape that has no room. */
static void test_room(void **state) {
  (void)state;
  for (size_t size = 1; size < 16; size++) {
    char out[16];
    memset(out, '#', sizeof out);
    pl_printable("ab\xe2\x82\xac\x1b"
                 "c",
                 out, size);
    size_t expected = size > 12 ? 12 : size > 11 ? 11 : size > 5 ? 5 : size > 2 ? 2 : size - 1;
    assert_int_equal(strlen(out), expected);
    for (size_t i = size; i < sizeof out; i++)
      assert_int_equal(out[i], '#');
  }
}

/* Every code point and every pair of bytes goes through, comes out printable, and does so again unchanged. */
static void test_all(void **state) {
  (void)state;
  for (uint32_t a = 1; a < 256; a++)
    for (uint32_t b = 0; b < 256; b++) {
      char text[] = {(char)a, (char)b, '\x80', '\0'}, once[64], twice[64];
      pl_printable(text, once, sizeof once);
      assert_int_equal(*pl_printable_end(once), '\0');
      assert_string_equal(pl_printable(once, twice, sizeof twice), once);
    }
}

static void test_messages(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  pl_fail(&error, PL_BAD_INPUT, "no host '%s'", "a\nFAKE: OK\x1b[2J\xe2\x80\xae");
  assert_string_equal(error.message, "no host 'a\\nFAKE: OK\\u001b[2J\\u202e'");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_escapes), cmocka_unit_test(test_room),
                                     cmocka_unit_test(test_all), cmocka_unit_test(test_messages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
