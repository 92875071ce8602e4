/* Lists of words (core/words.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/words.h"

static const char *const words[] = {"flow", "", "analytic", NULL};

static void test_find(void **state) {
  (void)state;
  assert_int_equal(pl_words_find(words, "flow"), 0);
  assert_int_equal(pl_words_find(words, "analytic"), 2);
  assert_int_equal(pl_words_find(words, "flo"), -1);
  assert_int_equal(pl_words_find(words, "flows"), -1);
  assert_int_equal(pl_words_find(NULL, "flow"), -1);
}

static void test_list_leaves_out_empty_words(void **state) {
  (void)state;
  char text[PL_WORDS_BYTES];
  assert_string_equal(pl_words_list(words, text, sizeof text), "flow, analytic");
  assert_string_equal(pl_words_list(words + 3, text, sizeof text), "");
}

static void test_list_is_cut_to_its_room(void **state) {
  (void)state;
  char text[9];
  assert_string_equal(pl_words_list(words, text, sizeof text), "flow, an");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_find),
      cmocka_unit_test(test_list_leaves_out_empty_words),
      cmocka_unit_test(test_list_is_cut_to_its_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
