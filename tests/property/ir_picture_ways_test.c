/* Rows of pictures and of shapes on random operands: every layout that the table allows computes on parts what the
 * whole is, and derivatives are what differences say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"
#include "tests/support/random.h"

static uint64_t seed = 1;

/* Windows of 3 x 2 over pictures of 5 x 4. */
static const char *const sliding[] = {"", ", stride=2, padding=1", ", stride=1x2, padding=2x0, padding_after=0x1",
                                      ", dilation=2x1, padding=1x0"};
static const int heights[] = {3, 3, 5, 3}, widths[] = {3, 3, 2, 3};
enum { N_SLIDING = sizeof(sliding) / sizeof(sliding[0]) };

static const char *attributes_of(const char *first, const char *rest) {
  return pl_arena_printf(&arena, "%s%s", first, rest);
}

static void test_convolution(void **state) {
  (void)state;
  for (int i = 0; i < N_SLIDING; i++) {
    const char *attributes = attributes_of("over=c, window=(y, x), kernel=(p, q)", sliding[i]);
    ir_case one;
    ir_case_init(&one, &arena, seed, "convolution", attributes);
    ir_case_numbers(&one, "b=4 c=6 y=5 x=4");
    ir_case_numbers(&one, "q=2 o=6 c=6 p=3"); /* in an order of its own */
    /* the same, either operand a partial sum, b, c, o */
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 6 + 5 + 36 - 2);
    assert_int_equal(one.out[0].dims[2].extent, heights[i]);
    assert_int_equal(one.out[0].dims[3].extent, widths[i]);
    ir_case_check_gradients(&one, 1e-8);
    const char *y = pl_arena_printf(&arena, "b=4 y=%d o=6 x=%d", heights[i], widths[i]);
    ir_case_init(&one, &arena, seed, "convolution_backward_data", attributes);
    ir_case_numbers(&one, y);
    ir_case_numbers(&one, "o=6 c=6 p=3 q=2");
    ir_case_written(&one, "b=4 y=5 x=4 c=6");
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 6 + 5 + 36 - 2);
    ir_case_init(&one, &arena, seed, "convolution_backward_weights", attributes);
    ir_case_numbers(&one, "b=4 c=6 y=5 x=4");
    ir_case_numbers(&one, y);
    ir_case_written(&one, "c=6 o=6 p=3 q=2");
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 6 + 5 + 36 - 2);
  }
}

/* Groups are a dimension that both have and nothing is summed over; a convolution of each channel by itself. */
static void test_grouped_convolution(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "convolution", "over=c, window=x, kernel=p, padding=1");
  ir_case_numbers(&one, "b=2 g=4 c=2 x=5");
  ir_case_numbers(&one, "g=4 o=3 c=2 p=3");
  assert_int_equal(ir_case_check_ways(&one, 1e-13), 6 + 4 + 36 - 2);
  ir_case_check_gradients(&one, 1e-8);
  ir_case_init(&one, &arena, seed, "convolution", "window=x, kernel=p, padding=1");
  ir_case_numbers(&one, "b=4 c=4 x=5");
  ir_case_numbers(&one, "c=4 p=3");
  assert_int_equal(ir_case_check_ways(&one, 1e-13), 5 + 3 + 25);
  ir_case_check_gradients(&one, 1e-8);
}

static void test_pooling(void **state) {
  (void)state;
  static const char *const rows[] = {"max_pool", "average_pool", "average_pool"};
  for (int i = 0; i < 3 * N_SLIDING; i++) {
    const char *attributes = attributes_of(
        i / N_SLIDING == 2 ? "window=(y, x), size=3x2, inside=1" : "window=(y, x), size=3x2", sliding[i % N_SLIDING]);
    ir_case one;
    ir_case_init(&one, &arena, seed, rows[i / N_SLIDING], attributes);
    ir_case_numbers(&one, "b=4 y=5 x=4 c=6");
    int32_t ways = i < N_SLIDING ? 3 : 4; /* a mean may be of a partial sum */
    assert_int_equal(ir_case_check_ways(&one, 1e-14), ways + ways - 1 + ways * ways - 1);
    ir_case_check_gradients(&one, 1e-7);
    const char *y = pl_arena_printf(&arena, "y=%d x=%d c=6 b=4", heights[i % N_SLIDING], widths[i % N_SLIDING]);
    ir_case_init(&one, &arena, seed, i < N_SLIDING ? "max_pool_backward" : "average_pool_backward", attributes);
    if (i < N_SLIDING) ir_case_numbers(&one, "b=4 c=6 y=5 x=4");
    ir_case_numbers(&one, y);
    if (i >= N_SLIDING) ir_case_written(&one, "b=4 c=6 y=5 x=4");
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 4 + 3 + 16 - 1);
  }
}

static void test_batch_norm(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "batch_norm", "over=(b, y, x), epsilon=0.01");
  ir_case_numbers(&one, "b=3 r=4 c=6 y=2 x=2");
  ir_case_numbers(&one, "c=6");
  ir_case_numbers(&one, "c=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-13), 3 + 2 + 8);
  ir_case_check_gradients(&one, 1e-7);
  ir_case_init(&one, &arena, seed, "batch_norm_backward", "over=(b, y, x), epsilon=0.01");
  ir_case_numbers(&one, "b=3 r=4 c=6 y=2 x=2");
  ir_case_numbers(&one, "c=6");
  ir_case_numbers(&one, "y=2 x=2 b=3 r=4 c=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-12), 4 + 3 + 15);
}

static void test_concatenate(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "concatenate", "over=c");
  ir_case_numbers(&one, "b=4 c=2 y=6");
  ir_case_numbers(&one, "c=4 y=6 b=4");
  ir_case_numbers(&one, "b=4 c=2 y=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 4 + 3 + 15);
  ir_case_check_gradients(&one, 1e-8);
}

static void test_part_and_pad(void **state) {
  (void)state;
  static const char *const rows[] = {"part", "pad"}, *const of[] = {"b=4 c=6 y=2", "b=4 c=3 y=2"};
  for (int i = 0; i < 2; i++) {
    ir_case one;
    ir_case_init(&one, &arena, seed, rows[i], "over=c, first=2");
    ir_case_numbers(&one, of[i]);
    ir_case_written(&one, of[1 - i]);
    assert_int_equal(ir_case_check_ways(&one, 1e-14), 4 + 2 + 15);
    ir_case_check_gradients(&one, 1e-8);
  }
}

static void test_split_and_join(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "split", "from=s, to=(y, s)");
  ir_case_numbers(&one, "b=4 s=18 c=2");
  ir_case_written(&one, "s=3 c=2 y=6 b=4");
  /* the same, a partial sum, b, s with y, c; 4 devices do not divide y */
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 5 + 3 + 25 - 2);
  ir_case_check_gradients(&one, 1e-8);
  ir_case_init(&one, &arena, seed, "join", "from=(y, x), to=x");
  ir_case_numbers(&one, "x=3 b=4 y=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 4 + 3 + 16 - 1);
  ir_case_check_gradients(&one, 1e-8);
}

int main(void) {
  seed = test_seed(12);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_convolution, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_grouped_convolution, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pooling, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_batch_norm, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_concatenate, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_part_and_pad, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_split_and_join, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
