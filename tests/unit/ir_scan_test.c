/* Rows of recurrences along a sequence: two tokens by hand, chunks' work, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"
#include "workloads/language/ir_scan.h"

/* One head with one channel and two states; step 1 and 2, A = -ln 2, so that the second token halves twice:
 * h1 = 3 (1, 2) = (3, 6), h2 = (3, 6) / 4 + 2 x 5 (0.5, -1) = (5.75, -8.5);
 * y1 = h1 (1, 1) + 10 x 3 = 39, y2 = h2 (2, 1) + 10 x 5 = 53. */
static void test_state_space_by_hand(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "state_space_scan", "over=s, chunk=2");
  ir_case_set(ir_case_numbers(&one, "s=2 g=1 d=1"), 2, (const double[]){3, 5});
  ir_case_set(ir_case_numbers(&one, "s=2 g=1"), 2, (const double[]){1, 2});
  ir_case_set(ir_case_numbers(&one, "g=1"), 1, (const double[]){-log(2)});
  ir_case_set(ir_case_numbers(&one, "s=2 g=1 n=2"), 4, (const double[]){1, 2, 0.5, -1});
  ir_case_set(ir_case_numbers(&one, "s=2 g=1 n=2"), 4, (const double[]){1, 1, 2, 1});
  ir_case_set(ir_case_numbers(&one, "g=1"), 1, (const double[]){10});
  ir_case_compute(&one);
  ir_case_expect(&one, 2, (const double[]){39, 53});
}

/* One head with keys of two and values of one; decay of ln 1/2 in front of the second token, beta 1 and 0.5:
 * S1 = k1 4 = (4, 0), y1 = S1 q1 = 4; decayed (2, 0), known of k2 = (1, 1): 2, written 0.5 (6 - 2) = 2,
 * S2 = (4, 2), y2 = S2 (1, -1) = 2. */
static void test_delta_rule_by_hand(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "delta_rule_scan", "over=s, chunk=2");
  ir_case_set(ir_case_numbers(&one, "s=2 d=2"), 4, (const double[]){1, 7, 1, -1});
  ir_case_set(ir_case_numbers(&one, "s=2 d=2"), 4, (const double[]){1, 0, 1, 1});
  ir_case_set(ir_case_numbers(&one, "s=2 e=1"), 2, (const double[]){4, 6});
  ir_case_set(ir_case_numbers(&one, "s=2"), 2, (const double[]){-3, -log(2)});
  ir_case_set(ir_case_numbers(&one, "s=2"), 2, (const double[]){1, 0.5});
  ir_case_compute(&one);
  ir_case_expect(&one, 2, (const double[]){4, 2});
}

/* Of chunks of 4 of 8 tokens, 2 samples, 2 groups of 3 heads of 12 with states of 5: C B' for each group, the rest for
 * each head. */
static void test_work_is_that_of_chunks(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "state_space_scan", "over=s, chunk=4");
  static const char *const operands[] = {"b=2 s=8 g=2 r=3 d=12", "b=2 s=8 g=2 r=3", "g=2 r=3",
                                         "b=2 s=8 g=2 n=5",      "b=2 s=8 g=2 n=5", "g=2 r=3"};
  for (int i = 0; i < 6; i++)
    ir_case_numbers(&one, operands[i]);
  ir_case_compute(&one);
  double tokens = 2 * 8, heads = 6, groups = 2;
  double expected = tokens * (groups * 2 * 4 * 5 + heads * (2 * 4 * 12 + 2 * 2 * 5 * 12));
  assert_true(pl_ir_scan_flops(&one.op, one.in, one.out) == expected);
  assert_true(pl_ir_scan_state_bytes(&one.op, one.in) == 4.0 * 4 * (tokens / 4) * heads * 12 * 5);
}

static void test_refuses(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  ir_case one;
  ir_case_init(&one, &arena, 1, "delta_rule_scan", "over=s");
  for (int i = 0; i < 2; i++)
    ir_case_numbers(&one, "s=2 d=2");
  ir_case_numbers(&one, "s=2 e=1 j=2");
  for (int i = 0; i < 2; i++)
    ir_case_numbers(&one, "s=2");
  assert_non_null(strstr(ir_case_refused(&one, &error), "has 2 dimensions that operand 4 lacks; it is one"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_state_space_by_hand, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_delta_rule_by_hand, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_work_is_that_of_chunks, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
