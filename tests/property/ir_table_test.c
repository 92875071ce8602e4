/* All rows of the op table on random operands. Layouts: for every way along an axis that the table allows
 * (pl_ir_ways_of), computing on the parts of 2 or 3 devices, or of 2 x 2, and putting the results together gives the
 * whole; every way that it does not allow gives something else, so that a dimension that should be opaque, a sum that
 * is none and a partial operand of what is not linear are found out. Derivatives: central differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_specs.h"
#include "tests/support/random.h"

enum { CASES = 12, WAYS_MAX = 64 };

static void test_every_row_with_values_has_a_case(void **state) {
  (void)state;
  for (int32_t i = 0; i < pl_ir_n_rows(); i++) {
    const pl_ir_row *row = pl_ir_row_at(i);
    bool found = row->compute == NULL || strcmp(row->name, "cut") == 0; /* unit/ir_rows_test.c */
    for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++)
      found = found || strcmp(spec->row, row->name) == 0;
    if (!found) fail_msg("tests/support/ir_specs.c has no case of %s", row->name);
  }
}

static void test_every_way_that_is_allowed_is_right(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  int32_t n_tried = 0;
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++)
    for (int i = 0; i < CASES; i++) {
      ir_case one;
      pl_arena_reset(&arena);
      ir_spec_case(spec, &random, &arena, &one);
      n_tried += ir_case_check_ways(&one, 1e-11);
    }
  printf("%d layouts\n", n_tried);
}

/* Sums of some thousand terms: 2^-24 each, and what exp makes of it. */
static void test_single_precision_is_near(void **state) {
  (void)state;
  uint64_t random = test_seed(4);
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++) {
    ir_case one;
    pl_error error = PL_ERROR_INIT;
    double *exact[IR_CASE_OPERANDS];
    pl_arena_reset(&arena);
    ir_spec_case(spec, &random, &arena, &one);
    memcpy(exact, one.answer, sizeof(exact));
    assert_int_equal(ir_case_run(&one, &arena, true, &error), PL_OK);
    for (int32_t k = 0; k < one.op.n_outputs; k++)
      for (int64_t i = 0; i < (int64_t)pl_ir_type_elements(&one.out[k]); i++)
        if (one.answer[k][i] != exact[k][i] &&
            !(fabs(one.answer[k][i] - exact[k][i]) <= 3e-5 * (1 + fabs(exact[k][i]))))
          fail_msg("%s: %.17g in single precision, %.17g in double", spec->row, one.answer[k][i], exact[k][i]);
  }
}

/* ---- what is not allowed ---- */

/* A way, and whether results that lack what is cut are candidates for a maximum where the row says terms of a sum, or
 * the other way round. */
typedef struct thought {
  pl_ir_way way;
  bool turned;
} thought;

static bool uses(const ir_case *one, pl_ir_name dim) {
  bool used = false;
  for (int32_t k = 0; k < one->op.n_inputs; k++)
    used = used || pl_ir_type_find(&one->in[k], dim) >= 0;
  for (int32_t k = 0; k < one->op.n_outputs; k++)
    used = used || pl_ir_type_find(&one->out[k], dim) >= 0;
  return used;
}

/* Everything that one might think of: each operand, or all, partial; each dimension cut. */
static int32_t thoughts_of(const ir_case *one, thought thoughts[WAYS_MAX]) {
  int32_t n = 0;
  for (int32_t i = -1; i < one->op.n_inputs; i++)
    thoughts[n++] = (thought){.way = {.kind = PL_IR_PARTIAL, .partial = (int8_t)i}};
  for (char letter = 'a'; letter <= 'z'; letter++) {
    pl_ir_name dim = pl_ir_name_of((const char[]){letter, '\0'});
    for (int turned = 0; uses(one, dim) && turned < 2; turned++)
      thoughts[n++] = (thought){.way = {.kind = 0, .dim = dim}, .turned = turned};
  }
  return n;
}

/* False: it cannot be, or ids would be partial. */
static bool lay(ir_case *one, const pl_ir_mesh *mesh, const thought *of) {
  if (!ir_case_lay(one, mesh, 0, &of->way)) return false;
  bool turned = false;
  for (int32_t k = 0; of->turned && k < one->op.n_outputs; k++) {
    int8_t *on = &one->out[k].on[0];
    turned = turned || *on == PL_IR_PARTIAL || *on == PL_IR_MAXIMUM;
    *on = *on == PL_IR_PARTIAL ? PL_IR_MAXIMUM : *on == PL_IR_MAXIMUM ? PL_IR_PARTIAL : *on;
  }
  for (int32_t k = 0; k < one->op.n_inputs; k++)
    if (one->in[k].element == PL_IR_I32 && one->in[k].on[0] == PL_IR_PARTIAL) return false;
  return turned == of->turned;
}

static const char *thought_text(const thought *of, char text[64]) {
  const pl_ir_way *way = &of->way;
  if (way->kind == 0) {
    (void)snprintf(text, 64, "cut on %s%s", way->dim.text, of->turned ? ", turned" : "");
  } else if (way->partial < 0) {
    (void)snprintf(text, 64, "all operands partial");
  } else {
    (void)snprintf(text, 64, "operand %d partial", way->partial + 1);
  }
  return text;
}

/* Right, and not allowed. */
static const char *const not_said[][2] = {
    /* Parameters are never sums of terms. */
    {"rms_norm", "operand 2 partial"},
    {"sgd", "all operands partial"},
    /* Linear in q and in v; which of them is a sum of terms is said of the first alone. */
    {"delta_rule_scan", "operand 3 partial"},
    /* Linear in the last operand but one, or in two together, where the gradient of the log-sum-exp stands behind. */
    {"attention_backward", "operand 6 partial"},
    {"attention_merge_backward", "operand 7 partial"},
    /* Two results would be sums of terms, and heads are never cut inside. */
    {"attention_merge_backward", "cut on e"},
    /* All parts find the same log-sum-exp, which is also the largest of them. */
    {"attention", "cut on e, turned"},
    {"attention_merge", "cut on e, turned"},
};

static bool is_listed(const char *row, const char *way) {
  for (size_t i = 0; i < sizeof(not_said) / sizeof(not_said[0]); i++)
    if (strcmp(not_said[i][0], row) == 0 && strcmp(not_said[i][1], way) == 0) return true;
  return false;
}

/* Whether the thought gives something else in one of the cases; `n_tried`: of how many, those left out that are
 * allowed. */
static bool is_found_out(const ir_spec *spec, int32_t index, int32_t *n_tried, uint64_t *random) {
  *n_tried = 0;
  for (int i = 0; i < 2 * CASES; i++) {
    ir_case one;
    thought thoughts[WAYS_MAX];
    pl_arena_reset(&arena);
    ir_spec_case(spec, random, &arena, &one);
    (void)thoughts_of(&one, thoughts);
    const pl_ir_mesh mesh = {.n_axes = 1, .axes = {{pl_ir_name_of("x"), 2 + i % 2}}};
    if (!lay(&one, &mesh, &thoughts[index])) continue;
    if (pl_ir_layout_check(&mesh, &one.op, one.in, one.out, NULL) == PL_OK) continue;
    (*n_tried)++;
    if (ir_case_differs(&one, &mesh, 1e-6) != NULL) return true;
  }
  return false;
}

static void test_every_way_that_is_not_allowed_is_wrong(void **state) {
  (void)state;
  uint64_t random = test_seed(2);
  int32_t n_found = 0, n_missed = 0;
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++) {
    ir_case one;
    thought thoughts[WAYS_MAX];
    char text[64];
    ir_spec_case(spec, &random, &arena, &one);
    for (int32_t i = 0, n = thoughts_of(&one, thoughts); i < n; i++) {
      int32_t n_tried;
      bool found = is_found_out(spec, i, &n_tried, &random);
      n_found += found;
      if (found || n_tried == 0 || is_listed(spec->row, thought_text(&thoughts[i], text))) continue;
      printf("%s, %s: is right, and not allowed\n", spec->row, thought_text(&thoughts[i], text));
      n_missed++;
    }
  }
  printf("%d ways that are not allowed were found out\n", n_found);
  assert_int_equal(n_missed, 0);
}

static void test_derivatives_are_those_of_differences(void **state) {
  (void)state;
  uint64_t random = test_seed(3);
  for (const ir_spec *spec = ir_specs; spec->row != NULL; spec++) {
    ir_case one;
    pl_arena_reset(&arena);
    ir_spec_case(spec, &random, &arena, &one);
    bool large = one.op.n_inputs > 3; /* attention: its own test */
    if (pl_ir_row_at(one.op.row)->derive != NULL && !large) ir_case_check_gradients(&one, 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_every_row_with_values_has_a_case, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_every_way_that_is_allowed_is_right, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_single_precision_is_near, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_every_way_that_is_not_allowed_is_wrong, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_derivatives_are_those_of_differences, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
