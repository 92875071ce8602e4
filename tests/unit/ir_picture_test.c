/* Rows of pictures: numbers worked out by hand, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"

enum { B = 2, C = 3, Y = 7, X = 6, O = 4, P = 3, Q = 2 };

static double picture(const ir_case *one, int b, int c, int y, int x) {
  return y < 0 || y >= Y || x < 0 || x >= X ? 0 : one->data[0][((b * C + c) * Y + y) * X + x];
}

/* Stride 2 x 1, one zero in front of rows and two of columns: 4 x 9. */
static void test_convolution_is_its_sum(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 3, "convolution", "over=c, window=(y, x), kernel=(p, q), stride=2x1, padding=1x2");
  ir_case_numbers(&one, "b=2 c=3 y=7 x=6");
  ir_case_numbers(&one, "o=4 c=3 p=3 q=2");
  ir_case_compute(&one);
  const pl_ir_type expected = ir_type("b=2 o=4 y=4 x=9");
  assert_true(pl_ir_type_equal(&one.out[0], &expected));
  for (int b = 0; b < B; b++)
    for (int o = 0; o < O; o++)
      for (int i = 0; i < 4 * 9; i++) {
        double sum = 0;
        for (int k = 0; k < C * P * Q; k++)
          sum += picture(&one, b, k / (P * Q), i / 9 * 2 - 1 + k / Q % P, i % 9 - 2 + k % Q) *
                 one.data[1][o * C * P * Q + k];
        assert_true(fabs(one.answer[0][(b * O + o) * 36 + i] - sum) < 1e-14);
      }
  assert_true(pl_ir_row_at(one.op.row)->flops(&one.op, one.in, one.out) == 2.0 * B * O * 36 * C * P * Q);
}

static void test_pooling(void **state) {
  (void)state;
  static const double x[] = {1, 5, 5, -2, -3, 4};
  ir_case one;
  ir_case_init(&one, &arena, 1, "max_pool", "window=x, size=3, stride=2, padding=1");
  ir_case_set(ir_case_numbers(&one, "x=6"), 6, x);
  ir_case_compute(&one);
  ir_case_expect(&one, 3, (double[]){5, 5, 4});
  ir_case_init(&one, &arena, 1, "max_pool_backward", "window=x, size=3, stride=2, padding=1");
  ir_case_set(ir_case_numbers(&one, "x=6"), 6, x);
  ir_case_set(ir_case_numbers(&one, "x=3"), 3, (double[]){1, 2, 4});
  ir_case_compute(&one);
  ir_case_expect(&one, 6, (double[]){0, 3, 0, 0, 0, 4}); /* of equal ones the first */
  ir_case_init(&one, &arena, 1, "average_pool", "window=x, size=3, stride=2, padding=1");
  ir_case_set(ir_case_numbers(&one, "x=6"), 6, x);
  ir_case_compute(&one);
  ir_case_expect(&one, 3, (double[]){2, 8.0 / 3, -1.0 / 3});
  ir_case_init(&one, &arena, 1, "average_pool", "window=x, size=3, stride=2, padding=1, inside=1");
  ir_case_set(ir_case_numbers(&one, "x=6"), 6, x);
  ir_case_compute(&one);
  ir_case_expect(&one, 3, (double[]){3, 8.0 / 3, -1.0 / 3});
}

static void test_batch_norm(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "batch_norm", "over=(b, y), epsilon=0");
  ir_case_set(ir_case_numbers(&one, "b=2 c=2 y=1"), 4, (double[]){1, 10, 3, 30});
  ir_case_set(ir_case_numbers(&one, "c=2"), 2, (double[]){2, 5});
  ir_case_set(ir_case_numbers(&one, "c=2"), 2, (double[]){7, 0});
  ir_case_compute(&one);
  ir_case_expect(&one, 4, (double[]){5, -5, 9, 5});
}

/* The picture in windows and back, as TransGAN has it: s = (rows, columns) of 4 x 2 becomes 2 windows of 2 x 2. */
static void test_partition_of_a_picture(void **state) {
  (void)state;
  ir_case rows, join;
  ir_case_init(&rows, &arena, 1, "split", "from=s, to=(n, y, x)");
  ir_case_set(ir_case_numbers(&rows, "s=8"), 8, (double[]){0, 1, 2, 3, 4, 5, 6, 7});
  ir_case_written(&rows, "x=2 n=2 y=2");
  ir_case_compute(&rows);
  ir_case_expect(&rows, 8, (double[]){0, 2, 4, 6, 1, 3, 5, 7});
  ir_case_init(&join, &arena, 1, "join", "from=(y, x), to=t");
  ir_case_set(ir_case_numbers(&join, "x=2 n=2 y=2"), 8, rows.answer[0]);
  ir_case_compute(&join);
  const pl_ir_type expected = ir_type("n=2 t=4");
  assert_true(pl_ir_type_equal(&join.out[0], &expected));
  ir_case_expect(&join, 8, (double[]){0, 1, 2, 3, 4, 5, 6, 7});
}

static void refuse(const char *row, const char *attributes, const char *first, const char *second, const char *written,
                   const char *message) {
  ir_case one;
  pl_error error;
  ir_case_init(&one, &arena, 1, row, attributes);
  ir_case_numbers(&one, first);
  if (second != NULL) ir_case_numbers(&one, second);
  if (written != NULL) ir_case_written(&one, written);
  assert_string_equal(ir_case_refused(&one, &error), message);
}

/* n operands that are too large to be there: of a million times the first extent. */
static void refuse_type(const char *row, const char *attributes, const char *dims, uint16_t n, const char *message) {
  ir_case one;
  pl_error error = PL_ERROR_INIT;
  ir_case_init(&one, &arena, 1, row, attributes);
  one.op.n_inputs = n;
  for (int i = 0; i < n; i++) {
    one.in[i] = ir_type(dims);
    one.in[i].dims[0].extent *= 1000000;
  }
  assert_int_equal(pl_ir_row_at(one.op.row)->infer(&one.op, one.in, one.out, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, message);
}

static void test_refuses(void **state) {
  (void)state;
  refuse("convolution", "over=c, window=x, kernel=p, stride=2x", "c=2 x=5", "o=3 c=2 p=3", NULL,
         "stride=\"2x\" of convolution: one number from 1 to 1048576, or 1 of them, as in \"2x1\"");
  refuse("convolution", "over=c, window=x, kernel=p, stride=0", "c=2 x=5", "o=3 c=2 p=3", NULL,
         "stride=\"0\" of convolution: one number from 1 to 1048576, or 1 of them, as in \"2x1\"");
  refuse("convolution", "over=c, window=(y, x), kernel=p", "c=2 y=5 x=5", "o=3 c=2 p=3", NULL,
         "convolution has 2 dimensions in 'window' and 1 in 'kernel'");
  refuse("convolution", "over=c, window=x, kernel=p", "c=2 x=5", "o=3 c=2 p=6", NULL,
         "x=5 is smaller than the window of convolution, which reaches over 6");
  refuse("max_pool", "window=x, size=3, padding=3", "c=2 x=5", NULL, NULL,
         "max_pool pads x by more than a window less one, 2: there are results that see nothing");
  refuse("convolution", "over=c, window=x, kernel=p", "c=2 x=5", "o=3 c=2 p=3 x=5", NULL,
         "weights of convolution have dimension x, which is the other's alone");
  refuse("convolution_backward_data", "over=c, window=x, kernel=p", "o=3 x=4", "o=3 c=2 p=3", "c=2 x=5",
         "the gradient that convolution_backward_data is given is [o=3, x=4]; it is to be [o=3, x=3]");
  refuse("average_pool_backward", "window=x, size=3", "c=2 x=4", NULL, "c=2 x=5",
         "the gradient that average_pool_backward is given is [c=2, x=4]; it is to be [c=2, x=3]");
  refuse("batch_norm_backward", "over=b, epsilon=0.1", "b=2 c=3", "b=2", NULL,
         "operand 2 of batch_norm_backward has dimension b, which is normalised over");
  refuse("concatenate", "over=c", "b=2 c=3", "b=3 c=3", NULL,
         "operand 2 of concatenate is [b=3, c=3]: but for c it is to be like operand 1, [b=2, c=3]");
  refuse("split", "from=s, to=(y, x)", "s=8", NULL, "y=2 x=3",
         "split of [s=8] and [y=2, x=3]: s, and nothing else, is made of the dimensions `to` names");
  refuse("join", "from=(y, x), to=c", "y=2 x=3 c=2", NULL, NULL, "operand 1 of join has a dimension c already");
  refuse_type("concatenate", "over=c", "c=2000000000 y=1", 8, "concatenate makes dimension c too large to count");
  refuse_type("join", "from=(c, y), to=s", "c=2000000000 y=2000000000", 1, "join makes dimension s too large to count");
  refuse_type("max_pool", "window=(c, y), size=1", "c=2000000000 y=2000000000", 1,
              "the picture of max_pool has more points than can be counted");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_convolution_is_its_sum, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pooling, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_batch_norm, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_partition_of_a_picture, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
