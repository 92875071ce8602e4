/* Lists of words (core/base/words.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/words.h"

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

/* Whole words only, and how many are left out: for every room, what is shown and what is counted make the whole. */
static void test_list_that_does_not_fit_says_how_many_are_left_out(void **state) {
  (void)state;
  static const char *const many[] = {"one",   "two",   "three", "four", "five", "six",
                                     "seven", "eight", "nine",  "ten",  NULL};
  char whole[PL_WORDS_BYTES], text[PL_WORDS_BYTES];
  pl_words_list(many, whole, sizeof whole);
  assert_string_equal(whole, "one, two, three, four, five, six, seven, eight, nine, ten");
  for (size_t size = PL_WORDS_LEAST_BYTES; size < strlen(whole) + PL_WORDS_LEAST_BYTES; size++) {
    pl_words_list(many, text, size);
    assert_true(strlen(text) < size);
    if (strcmp(text, whole) == 0) continue;
    unsigned left_out = 0, shown = 0;
    const char *and = strstr(text, " and ");
    if (and == NULL) {
      assert_int_equal(sscanf(text, "%u", &left_out), 1);
    } else {
      assert_int_equal(sscanf(and, " and %u more", &left_out), 1);
      assert_memory_equal(text, whole, (size_t)(and-text));
      assert_true(whole[and-text] == ',');
      shown = 1;
      for (const char *c = text; c < and; c++)
        shown += *c == ',';
    }
    assert_int_equal(shown + left_out, 10);
  }
}

static void test_nearest(void **state) {
  (void)state;
  static const char *const names[] = {"gbs", "seq_len", "n_gpus", "step_time_s", "1f1b", "interleaved", "tp", NULL};
  static const struct {
    const char *word;
    int nearest;
  } cases[] = {{"seq_lne", 1},   {"seqlen", 1}, {"SEQ_LEN", 1},    {"seq_length", 1},  {"ngpus", 2},
               {"step_time", 3}, {"1F1B", 4},   {"interleave", 5}, {"batch", -1},      {"", -1},
               {"gpus", 2},      {"xy", -1},    {"sequence", -1},  {"intreleaved", 5}, {"interleaving", 5}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (pl_words_nearest(names, cases[i].word) != cases[i].nearest)
      fail_msg("%s: %d", cases[i].word, pl_words_nearest(names, cases[i].word));
  assert_int_equal(pl_words_nearest(NULL, "gbs"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_find),
      cmocka_unit_test(test_list_leaves_out_empty_words),
      cmocka_unit_test(test_list_that_does_not_fit_says_how_many_are_left_out),
      cmocka_unit_test(test_nearest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
