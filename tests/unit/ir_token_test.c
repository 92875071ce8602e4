/* Rows of tokens: numbers worked out by hand, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"

static void test_embedding(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "embedding", "over=v");
  ir_case_set(ir_case_integers(&one, "s=3", 1), 3, (double[]){2, 0, 2});
  ir_case_set(ir_case_numbers(&one, "h=2 v=3"), 6, (double[]){1, 2, 3, 10, 20, 30});
  ir_case_compute(&one);
  assert_int_equal(one.out[0].rank, 2);
  ir_case_expect(&one, 6, (double[]){3, 30, 1, 10, 3, 30});
  ir_case_init(&one, &arena, 1, "embedding_backward", "over=v");
  ir_case_set(ir_case_integers(&one, "s=3", 1), 3, (double[]){2, 0, 2});
  ir_case_set(ir_case_numbers(&one, "s=3 h=2"), 6, (double[]){1, 2, 3, 4, 5, 6});
  ir_case_written(&one, "v=3 h=2");
  ir_case_compute(&one);
  ir_case_expect(&one, 6, (double[]){3, 4, 0, 0, 6, 8});
}

/* Two tables, two bags of two ids each. */
static void test_bags_of_embeddings(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "embedding", "over=v, sum=l");
  ir_case_set(ir_case_integers(&one, "n=2 l=2", 1), 4, (double[]){0, 1, 1, 1});
  ir_case_set(ir_case_numbers(&one, "n=2 v=2"), 4, (double[]){1, 2, 10, 20});
  ir_case_compute(&one);
  assert_int_equal(one.out[0].rank, 1);
  ir_case_expect(&one, 2, (double[]){3, 40});
  ir_case_init(&one, &arena, 1, "embedding_backward", "over=v, sum=l");
  ir_case_set(ir_case_integers(&one, "n=2 l=2", 1), 4, (double[]){0, 1, 1, 1});
  ir_case_set(ir_case_numbers(&one, "n=2"), 2, (double[]){5, 7});
  ir_case_written(&one, "n=2 v=2");
  ir_case_compute(&one);
  ir_case_expect(&one, 4, (double[]){5, 5, 0, 14});
}

static void test_pick_and_place(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "pick", "over=v");
  ir_case_set(ir_case_numbers(&one, "s=2 v=3"), 6, (double[]){1, 2, 3, 4, 5, 6});
  ir_case_set(ir_case_integers(&one, "s=2", 1), 2, (double[]){1, 2});
  ir_case_compute(&one);
  ir_case_expect(&one, 2, (double[]){2, 6});
  ir_case_init(&one, &arena, 1, "place", "over=v");
  ir_case_set(ir_case_numbers(&one, "s=2"), 2, (double[]){7, 8});
  ir_case_set(ir_case_integers(&one, "s=2", 1), 2, (double[]){1, 2});
  ir_case_written(&one, "v=3 s=2");
  ir_case_compute(&one);
  ir_case_expect(&one, 6, (double[]){0, 0, 7, 0, 0, 8});
}

/* Four of five elements are turned, in pairs (0, 2) by the position and (1, 3) by a hundredth of it. */
static void test_rotary(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "rotary", "over=d, base=10000, share=0.8");
  ir_case_set(ir_case_numbers(&one, "s=2 d=5"), 10, (double[]){1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  ir_case_set(ir_case_integers(&one, "s=2", 1), 2, (double[]){0, 3});
  ir_case_compute(&one);
  double a = 3, b = 0.03;
  ir_case_expect(&one, 10,
                 (double[]){1, 2, 3, 4, 5, cos(a) - 3 * sin(a), 2 * cos(b) - 4 * sin(b), 3 * cos(a) + sin(a),
                            4 * cos(b) + 2 * sin(b), 5});
}

static void test_top_k(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, 1, "top_k", "over=x, k=2, normalise=1");
  ir_case_set(ir_case_numbers(&one, "s=2 x=4"), 8, (double[]){0.1, 0.3, 0.5, 0.1, 0.25, 0.25, 0.25, 0.25});
  ir_case_compute(&one);
  ir_case_expect(&one, 8, (double[]){0, 0.375, 0.625, 0, 0.5, 0.5, 0, 0}); /* of equal ones the first */
  ir_case_init(&one, &arena, 1, "top_k", "over=x, k=2, sparse=1, capacity=0.5, tokens=\"9e20,1,0,0\"");
  ir_case_set(ir_case_numbers(&one, "x=4"), 4, (double[]){0.1, 0.3, 0.5, 0.1});
  ir_case_compute(&one);
  ir_case_expect(&one, 4, (double[]){0, 0.3, 0.5, 0}); /* how many rows kernels have changes nothing */
}

/* Three groups of two: the last has the largest one (0.5), the second the largest sum (0.3 + 0.25). */
static void test_top_k_of_groups(void **state) {
  (void)state;
  static const struct {
    const char *attributes;
    double expected[6];
  } cases[] = {{"over=x, k=2, groups=3, chosen_groups=1", {0, 0, 0, 0, 0.5, 0}},
               {"over=x, k=2, groups=3, chosen_groups=1, best=2", {0, 0, 0.3, 0.25, 0, 0}},
               {"over=x, k=3, groups=3, chosen_groups=2, best=2", {0, 0, 0.3, 0.25, 0.5, 0}},
               {"over=x, k=3, groups=3, chosen_groups=3", {0.4, 0, 0.3, 0, 0.5, 0}},
               {"over=x, k=1, groups=6, chosen_groups=3", {0, 0, 0, 0, 0.5, 0}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ir_case one;
    ir_case_init(&one, &arena, 1, "top_k", cases[i].attributes);
    ir_case_set(ir_case_numbers(&one, "x=6"), 6, (double[]){0.4, 0.01, 0.3, 0.25, 0.5, 0});
    ir_case_compute(&one);
    ir_case_expect(&one, 6, cases[i].expected);
  }
}

static void test_refuses(void **state) {
  (void)state;
  ir_case one;
  pl_error error;
  ir_case_init(&one, &arena, 1, "embedding", "over=v");
  ir_case_integers(&one, "s=3", 1)[1] = 4;
  ir_case_numbers(&one, "v=4 h=2");
  assert_string_equal(ir_case_refused(&one, &error), "embedding: id 4 is outside of dimension 'v' with 4 elements");
  ir_case_init(&one, &arena, 1, "embedding", "over=v");
  ir_case_numbers(&one, "s=3");
  ir_case_numbers(&one, "v=4 h=2");
  assert_string_equal(ir_case_refused(&one, &error), "operand 1 of embedding is fp32; it is to be i32");
  ir_case_init(&one, &arena, 1, "embedding_backward", "over=v");
  ir_case_integers(&one, "s=3", 1);
  ir_case_numbers(&one, "s=3 h=2");
  ir_case_written(&one, "v=4 h=3");
  assert_string_equal(ir_case_refused(&one, &error), "result of embedding_backward is written as [h=3], and is [h=2]");
  ir_case_init(&one, &arena, 1, "pick", "over=v");
  ir_case_numbers(&one, "b=2 s=3 v=4");
  ir_case_integers(&one, "s=3", 1);
  assert_string_equal(ir_case_refused(&one, &error),
                      "operand 2 of pick is [s=3]; one id for each row of operand 1 is [b=2, s=3]");
  ir_case_init(&one, &arena, 1, "rotary", "over=d, share=0.5");
  ir_case_numbers(&one, "s=3 d=6");
  ir_case_integers(&one, "s=3", 1);
  assert_string_equal(ir_case_refused(&one, &error), "rotary turns 3 of d=6 elements: they come in pairs");
  ir_case_init(&one, &arena, 1, "top_k", "over=x, k=5");
  ir_case_numbers(&one, "s=3 x=4");
  assert_string_equal(ir_case_refused(&one, &error), "k=5 of top_k: it is from 1 to x=4");
  static const char *const groups[][2] = {
      {"over=x, k=2, groups=3", "groups=3 of top_k: it divides 4"},
      {"over=x, k=2, groups=2, chosen_groups=3",
       "chosen_groups=3 of top_k: it is at most groups=2, and so many groups of 2 hold k=2"},
      {"over=x, k=3, groups=2", "chosen_groups=1 of top_k: it is at most groups=2, and so many groups of 2 hold k=3"},
      {"over=x, k=2, groups=2, best=3", "best=3 of top_k: it is from 1 to the 2 of a group"},
      {"over=x, k=2, sparse=1, capacity=0.0", "capacity=0 of top_k: it is above 0, at most 1024"},
      {"over=x, k=2, sparse=1, load=0.5", "load=0.5 of top_k: it is from 1 to 1024"},
      {"over=x, k=2, load=2.0", "load of top_k: without sparse=1 all rows are there"},
      {"over=x, k=2, sparse=1, load=2.0, tokens=\"1,2,1,1\"",
       "load and tokens of top_k say the same: leave one of them out"},
      {"over=x, k=2, sparse=1, tokens=\"1,2,1\"", "tokens of top_k has 3 numbers: it is one for each of 4"},
      {"over=x, k=2, sparse=1, tokens=\"1,2,-1,1\"", "tokens of top_k: '-1' is no number of tokens"},
      {"over=x, k=2, sparse=1, tokens=\"1,inf,1,1\"", "tokens of top_k: 'inf' is no number of tokens"},
      {"over=x, k=2, sparse=1, tokens=\"1,two,1,1\"", "tokens of top_k: 'two' is no number of tokens"},
      {"over=x, k=2, sparse=1, tokens=\"0,0,0,0\"", "tokens of top_k: no expert has any tokens"}};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    ir_case_init(&one, &arena, 1, "top_k", groups[i][0]);
    ir_case_numbers(&one, "s=3 x=4");
    assert_string_equal(ir_case_refused(&one, &error), groups[i][1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_embedding, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_bags_of_embeddings, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pick_and_place, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_rotary, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_top_k, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_top_k_of_groups, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
