/* Rows of attention and tokens on random operands: every layout that the table allows computes on parts what the whole
 * is, and derivatives are what differences say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"
#include "tests/support/random.h"

static uint64_t seed = 1;

typedef struct attention_case {
  const char *attributes;
  bool positions;
} attention_case;

static const attention_case attention_cases[] = {
    {"", false},
    {"scale=0.3, p=0.4, seed=5", false},
    {"causal=1", true},
    {"causal=1, window=3, scale=0.7", true},
    {"window=2", true},
    {"causal=1, p=0.3, seed=9", true},
    {"causal=1, blocks=2", true},
    {"causal=1, alibi=(g, r)", true},
    {"alibi=g, slope=0.5, window=3", true},
};
enum { N_ATTENTION = sizeof(attention_cases) / sizeof(attention_cases[0]) };

/* q, k, v and positions; s and t are one permuted sequence. */
static void attention_operands(ir_case *one, const attention_case *of, bool large) {
  ir_case_numbers(one, large ? "b=4 s=6 g=4 r=6 d=3" : "b=2 s=4 g=2 r=2 d=3");
  ir_case_numbers(one, large ? "b=4 t=6 g=4 d=3" : "b=2 t=4 g=2 d=3");
  ir_case_numbers(one, large ? "t=6 b=4 g=4 e=4" : "t=4 b=2 g=2 e=2"); /* another order, too */
  if (!of->positions) return;
  const double *s = ir_case_permutation(one, large ? "s=6" : "s=4");
  double *t = ir_case_permutation(one, large ? "t=6" : "t=4");
  for (int i = 0; i < (large ? 6 : 4); i++)
    t[i] = s[i];
}

static void backward_case(ir_case *one, const attention_case *of, bool with_dlse) {
  ir_case forward;
  ir_case_init(&forward, &arena, seed, "attention", of->attributes);
  attention_operands(&forward, of, true);
  ir_case_compute(&forward);
  ir_case_init(one, &arena, seed, "attention_backward", of->attributes);
  attention_operands(one, of, true);
  double *y = ir_case_numbers(one, "b=4 s=6 g=4 r=6 e=4");
  for (int i = 0; i < 4 * 6 * 4 * 6 * 4; i++)
    y[i] = forward.answer[0][i];
  double *lse = ir_case_numbers(one, "b=4 s=6 g=4 r=6");
  for (int i = 0; i < 4 * 6 * 4 * 6; i++)
    lse[i] = forward.answer[1][i];
  ir_case_numbers(one, "b=4 s=6 g=4 r=6 e=4");
  if (with_dlse) ir_case_numbers(one, "s=6 b=4 g=4 r=6");
}

static void test_attention_in_parts(void **state) {
  (void)state;
  for (int i = 0; i < N_ATTENTION; i++) {
    ir_case one;
    ir_case_init(&one, &arena, seed, "attention", attention_cases[i].attributes);
    attention_operands(&one, &attention_cases[i], true);
    /* the same, b, s, g, r: 5 ways on 2, all but b and g on 3, and 5 * 5 on 2 x 2 but for b, g, s, r twice where 4 does
     * not divide: s and r */
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 5 + 3 + 25 - 2);
  }
}

static void test_attention_backward_in_parts(void **state) {
  (void)state;
  for (int i = 0; i < N_ATTENTION; i++)
    for (int with_dlse = 0; with_dlse < 2; with_dlse++) {
      ir_case one;
      backward_case(&one, &attention_cases[i], with_dlse);
      /* also t, and e unless the log-sum-exp's gradient would be added once per part */
      int32_t ways = 7 - with_dlse;
      assert_int_equal(ir_case_check_ways(&one, 1e-12), ways + 4 + ways * ways - 3);
    }
}

static void test_attention_gradients(void **state) {
  (void)state;
  for (int i = 0; i < N_ATTENTION; i++) {
    ir_case one;
    ir_case_init(&one, &arena, seed, "attention", attention_cases[i].attributes);
    attention_operands(&one, &attention_cases[i], false);
    ir_case_check_gradients(&one, 1e-8);
  }
}

static void test_attention_merge(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "attention_merge", "");
  ir_case_numbers(&one, "b=6 s=4 e=3");
  ir_case_numbers(&one, "b=6 s=4");
  ir_case_numbers(&one, "e=3 s=4 b=6");
  ir_case_numbers(&one, "s=4 b=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 3 + 2 + 8);
  ir_case_check_gradients(&one, 1e-8);
  ir_case_init(&one, &arena, seed, "attention_merge_backward", "");
  for (int i = 0; i < 8; i++)
    ir_case_numbers(&one, i % 2 == 0 ? "b=6 s=4 e=3" : "b=6 s=4");
  assert_int_equal(ir_case_check_ways(&one, 1e-13), 3 + 2 + 8);
}

static void test_embedding(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "embedding", "over=v");
  ir_case_integers(&one, "b=4 s=6", 12);
  ir_case_numbers(&one, "v=12 h=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 6 + 5 + 36 - 2);
  ir_case_check_gradients(&one, 1e-8);
  ir_case_init(&one, &arena, seed, "embedding_backward", "over=v");
  ir_case_integers(&one, "b=4 s=6", 12);
  ir_case_numbers(&one, "s=6 b=4 h=6");
  ir_case_written(&one, "v=12 h=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 6 + 5 + 36 - 2);
  ir_case_init(&one, &arena, seed, "embedding_backward", "over=v");
  ir_case_integers(&one, "b=4 s=6", 12);
  ir_case_numbers(&one, "b=4 s=6 h=6");
  ir_case_written(&one, "h=6 v=12");
  ir_case_check_gradients(&one, 1e-8);
}

static void test_pick_and_place(void **state) {
  (void)state;
  ir_case one;
  ir_case_init(&one, &arena, seed, "pick", "over=v");
  ir_case_numbers(&one, "b=4 v=12 s=6");
  ir_case_integers(&one, "s=6 b=4", 12);
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 5 + 4 + 25 - 1);
  ir_case_check_gradients(&one, 1e-8);
  ir_case_init(&one, &arena, seed, "place", "over=v");
  ir_case_numbers(&one, "b=4 s=6");
  ir_case_integers(&one, "b=4 s=6", 12);
  ir_case_written(&one, "b=4 v=12 s=6");
  assert_int_equal(ir_case_check_ways(&one, 1e-14), 5 + 4 + 25 - 1);
  ir_case_check_gradients(&one, 1e-8);
}

static void test_rotary(void **state) {
  (void)state;
  static const char *const attributes[] = {"over=d", "over=d, base=100, share=0.5", "over=d, inverse=1"};
  for (int i = 0; i < 3; i++) {
    ir_case one;
    ir_case_init(&one, &arena, seed, "rotary", attributes[i]);
    ir_case_numbers(&one, "b=4 s=6 d=8 g=4");
    ir_case_permutation(&one, "s=6");
    assert_int_equal(ir_case_check_ways(&one, 1e-14), 5 + 3 + 25 - 1);
    ir_case_check_gradients(&one, 1e-8);
  }
}

static void test_top_k(void **state) {
  (void)state;
  static const char *const attributes[] = {"over=x, k=1", "over=x, k=2", "over=x, k=2, normalise=1",
                                           "over=x, k=4, normalise=1",
                                           "over=x, k=2, normalise=1, groups=2, chosen_groups=1, best=2"};
  for (int i = 0; i < 5; i++) {
    ir_case one;
    ir_case_init(&one, &arena, seed, "top_k", attributes[i]);
    ir_case_between(&one, "b=4 x=4 s=6", 0.01, 1);
    assert_int_equal(ir_case_check_ways(&one, 1e-14), 3 + 2 + 8);
    ir_case_check_gradients(&one, 1e-7);
    double *chosen = one.answer[0];
    ir_case_init(&one, &arena, seed, "top_k_backward", attributes[i]);
    ir_case_between(&one, "b=4 x=4 s=6", 0.01, 1);
    double *weights = ir_case_numbers(&one, "b=4 x=4 s=6");
    for (int j = 0; j < 96; j++)
      weights[j] = chosen[j];
    ir_case_numbers(&one, "s=6 x=4 b=4");
    assert_int_equal(ir_case_check_ways(&one, 1e-13), 4 + 3 + 15);
  }
}

int main(void) {
  seed = test_seed(11);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_attention_in_parts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_attention_backward_in_parts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_attention_gradients, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_attention_merge, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_embedding, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pick_and_place, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_rotary, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_top_k, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
