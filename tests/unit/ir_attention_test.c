/* Attention's rows against loops written out here, pieces of a ring, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_case.h"
#include "workloads/language/ir_random.h"

enum { B = 2, S = 4, G = 2, R = 3, D = 5, E = 3 };
#define Q_DIMS "b=2 s=4 g=2 r=3 d=5"
#define K_DIMS "b=2 t=4 g=2 d=5"
#define V_DIMS "b=2 t=4 g=2 e=3"
#define Y_DIMS "b=2 s=4 g=2 r=3 e=3"
#define L_DIMS "b=2 s=4 g=2 r=3"

typedef struct mask_rule {
  bool causal;
  int window;
  double p;
  bool alibi; /* of G * R = 6 heads: four slopes of four heads, then the 1st and 3rd of eight (Press et al. 2022) */
} mask_rule;

static const double slopes[G * R] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8};

/* Weight with which row (b, s, g, r) sees key t before normalising; 0: it does not. */
static double weight(const ir_case *one, const mask_rule *rule, int b, int s, int g, int r, int t) {
  const double *q = one->data[0], *k = one->data[1];
  int away = (int)one->data[3][s] - (int)one->data[4][t];
  if (rule->causal && away < 0) return 0;
  if (rule->window > 0 && (away >= rule->window || -away >= rule->window)) return 0;
  double score = 0;
  for (int d = 0; d < D; d++)
    score += q[(((b * S + s) * G + g) * R + r) * D + d] * k[((b * S + t) * G + g) * D + d];
  return exp(score / sqrt(D) - (rule->alibi ? slopes[g * R + r] * abs(away) : 0));
}

static double kept(const ir_case *one, const mask_rule *rule, int b, int s, int g, int r, int t) {
  if (rule->p == 0) return 1;
  int place = (((b * S + (int)one->data[3][s]) * G + g) * R + r) * S + (int)one->data[4][t];
  /* microbatch 1 goes on where microbatch 0 ended */
  return pl_ir_hash_uniform(7, 3, (uint64_t)(B * G * R * S * S + place)) < rule->p ? 0 : 1 / (1 - rule->p);
}

static void compare_row(const ir_case *one, const mask_rule *rule, int b, int s, int g, int r) {
  double sum = 0, y[E] = {0};
  for (int t = 0; t < S; t++) {
    double own = weight(one, rule, b, s, g, r, t);
    sum += own;
    for (int e = 0; e < E; e++)
      y[e] += own * kept(one, rule, b, s, g, r, t) * one->data[2][((b * S + t) * G + g) * E + e];
  }
  int row = ((b * S + s) * G + g) * R + r;
  assert_true(fabs(one->answer[1][row] - log(sum)) < 1e-14);
  for (int e = 0; e < E; e++)
    assert_true(fabs(one->answer[0][row * E + e] - y[e] / sum) < 1e-14);
}

static void operands(ir_case *one, uint64_t seed, const char *attributes) {
  ir_case_init(one, &arena, seed, "attention", attributes);
  ir_case_numbers(one, Q_DIMS);
  ir_case_numbers(one, K_DIMS);
  ir_case_numbers(one, V_DIMS);
  ir_case_permutation(one, "s=4");
  ir_case_permutation(one, "t=4");
}

static void test_equals_loops(void **state) {
  (void)state;
  static const struct {
    const char *attributes;
    mask_rule rule;
  } cases[] = {{"", {0}},
               {"causal=1", {.causal = true}},
               {"causal=1, window=2", {.causal = true, .window = 2}},
               {"window=3", {.window = 3}},
               {"causal=1, p=0.5, seed=7", {.causal = true, .p = 0.5}},
               {"causal=1, alibi=(g, r)", {.causal = true, .alibi = true}},
               {"alibi=(g, r)", {.alibi = true}}};
  for (int i = 0; i < 7; i++) {
    ir_case one;
    operands(&one, (uint64_t)i, cases[i].attributes);
    ir_case_compute(&one);
    for (int row = 0; row < B * S * G * R; row++)
      compare_row(&one, &cases[i].rule, row / (S * G * R), row / (G * R) % S, row / R % G, row % R);
  }
}

/* Another order of the same sequence gives the same answers in that order, dropout included. */
static void test_order_does_not_matter(void **state) {
  (void)state;
  ir_case in_order, other;
  operands(&in_order, 5, "causal=1, window=3, p=0.25, seed=7");
  operands(&other, 5, "causal=1, window=3, p=0.25, seed=7");
  static const int order[S] = {2, 0, 3, 1}; /* place i holds token order[i] */
  for (int i = 0; i < S; i++) {
    in_order.data[3][i] = in_order.data[4][i] = i;
    other.data[3][i] = other.data[4][i] = order[i];
  }
  for (int b = 0; b < B; b++)
    for (int i = 0; i < S; i++) {
      for (int j = 0; j < G * R * D; j++)
        other.data[0][(b * S + i) * G * R * D + j] = in_order.data[0][(b * S + order[i]) * G * R * D + j];
      for (int j = 0; j < G * D; j++)
        other.data[1][(b * S + i) * G * D + j] = in_order.data[1][(b * S + order[i]) * G * D + j];
      for (int j = 0; j < G * E; j++)
        other.data[2][(b * S + i) * G * E + j] = in_order.data[2][(b * S + order[i]) * G * E + j];
    }
  ir_case_compute(&in_order);
  ir_case_compute(&other);
  for (int b = 0; b < B; b++)
    for (int i = 0; i < S; i++)
      for (int j = 0; j < G * R * E; j++)
        assert_true(fabs(other.answer[0][(b * S + i) * G * R * E + j] -
                         in_order.answer[0][(b * S + order[i]) * G * R * E + j]) < 1e-14);
}

/* ---- pieces ---- */

static void copy(double *to, const double *from, int n) {
  for (int i = 0; i < n; i++)
    to[i] = from[i];
}

/* Operand k of `from`, whose t comes second, rolled by n: what `shift` does to a value that is cut on t. */
static void roll(const ir_case *from, int k, int n, double *to) {
  int width = k == 1 ? G * D : G * E, batches = k == 4 ? 1 : B;
  if (k == 4) width = 1;
  for (int b = 0; b < batches; b++)
    for (int t = 0; t < S; t++)
      copy(&to[(b * S + (t + n) % S) * width], &from->data[k][(b * S + t) * width], width);
}

static void piece_operands(ir_case *piece, const ir_case *whole, int shifted) {
  ir_case_numbers(piece, Q_DIMS);
  copy(piece->data[0], whole->data[0], B * S * G * R * D);
  roll(whole, 1, shifted, ir_case_numbers(piece, K_DIMS));
  roll(whole, 2, shifted, ir_case_numbers(piece, V_DIMS));
  copy(ir_case_integers(piece, "s=4", S), whole->data[3], S);
  roll(whole, 4, shifted, ir_case_integers(piece, "t=4", S));
}

/* On two devices, everything cut on s or t, as a ring has it. */
static void check_ring_layout(ir_case *piece) {
  const pl_ir_mesh mesh = {.n_axes = 1, .axes = {{pl_ir_name_of("cp"), 2}}};
  for (int i = 0; i < piece->op.n_inputs + piece->op.n_outputs; i++) {
    pl_ir_type *type = i < piece->op.n_inputs ? &piece->in[i] : &piece->out[i - piece->op.n_inputs];
    int32_t s = pl_ir_type_find(type, pl_ir_name_of("s"));
    type->on[0] = (int8_t)(s >= 0 ? s : pl_ir_type_find(type, pl_ir_name_of("t")));
  }
  pl_error error = PL_ERROR_INIT;
  if (pl_ir_layout_check(&mesh, &piece->op, piece->in, piece->out, &error) != PL_OK) fail_msg("%s", error.message);
  ir_case_check_layout(piece, &mesh, 1e-13);
}

static void check_backward_pieces(const ir_case *whole, const double *y, const double *lse) {
  ir_case full;
  ir_case_init(&full, &arena, 8, "attention_backward", "causal=1, p=0.25, seed=7");
  piece_operands(&full, whole, 0);
  copy(ir_case_numbers(&full, Y_DIMS), y, B * S * G * R * E);
  copy(ir_case_numbers(&full, L_DIMS), lse, B * S * G * R);
  double *dy = ir_case_numbers(&full, Y_DIMS);
  ir_case_compute(&full);
  double dq[B * S * G * R * D] = {0}, dk[B * S * G * D] = {0}, dv[B * S * G * E] = {0};
  for (int shifted = 0; shifted < S; shifted += 2) {
    ir_case piece;
    ir_case_init(&piece, &arena, 8, "attention_backward", "causal=1, p=0.25, seed=7, blocks=2");
    piece_operands(&piece, whole, shifted);
    copy(ir_case_numbers(&piece, Y_DIMS), y, B * S * G * R * E);
    copy(ir_case_numbers(&piece, L_DIMS), lse, B * S * G * R);
    copy(ir_case_numbers(&piece, Y_DIMS), dy, B * S * G * R * E);
    ir_case_compute(&piece);
    check_ring_layout(&piece);
    for (int i = 0; i < B * S * G * R * D; i++)
      dq[i] += piece.answer[0][i];
    for (int i = 0; i < B * S; i++) {
      int home = i / S * S + (i + S - shifted) % S;
      for (int j = 0; j < G * D; j++)
        dk[home * G * D + j] += piece.answer[1][i * G * D + j];
      for (int j = 0; j < G * E; j++)
        dv[home * G * E + j] += piece.answer[2][i * G * E + j];
    }
  }
  for (int i = 0; i < B * S * G * R * D; i++)
    assert_true(fabs(dq[i] - full.answer[0][i]) < 1e-14);
  for (int i = 0; i < B * S * G * D; i++)
    assert_true(fabs(dk[i] - full.answer[1][i]) < 1e-14);
  for (int i = 0; i < B * S * G * E; i++)
    assert_true(fabs(dv[i] - full.answer[2][i]) < 1e-14);
}

/* A causal sequence in the order 0 3 1 2 on a ring of two: pieces forward and merged are the whole, and so are their
 * backward passes. The first half sees nothing of some pieces: log-sum-exps are -infinity there. */
static void test_ring_of_pieces(void **state) {
  (void)state;
  ir_case whole, merge;
  operands(&whole, 8, "causal=1, p=0.25, seed=7");
  static const double order[S] = {0, 3, 1, 2};
  for (int k = 3; k < 5; k++)
    copy(whole.data[k], order, S);
  ir_case_compute(&whole);
  ir_case_init(&merge, &arena, 8, "attention_merge", "");
  bool some_see_nothing = false;
  for (int shifted = 0; shifted < S; shifted += 2) {
    ir_case piece;
    ir_case_init(&piece, &arena, 8, "attention", "causal=1, p=0.25, seed=7, blocks=2");
    piece_operands(&piece, &whole, shifted);
    ir_case_compute(&piece);
    check_ring_layout(&piece);
    copy(ir_case_numbers(&merge, Y_DIMS), piece.answer[0], B * S * G * R * E);
    copy(ir_case_numbers(&merge, L_DIMS), piece.answer[1], B * S * G * R);
    for (int i = 0; i < B * S * G * R; i++)
      some_see_nothing |= piece.answer[1][i] == -INFINITY;
  }
  assert_true(some_see_nothing);
  ir_case_compute(&merge);
  for (int i = 0; i < B * S * G * R * E; i++)
    assert_true(fabs(merge.answer[0][i] - whole.answer[0][i]) < 1e-14);
  for (int i = 0; i < B * S * G * R; i++)
    assert_true(fabs(merge.answer[1][i] - whole.answer[1][i]) < 1e-14);
  check_backward_pieces(&whole, merge.answer[0], merge.answer[1]);
}

/* ---- what is refused ---- */

static void refuse(const char *attributes, const char *q, const char *k, const char *v, bool positions,
                   const char *message) {
  ir_case one;
  pl_error error;
  ir_case_init(&one, &arena, 1, "attention", attributes);
  ir_case_numbers(&one, q);
  ir_case_numbers(&one, k);
  ir_case_numbers(&one, v);
  if (positions) ir_case_integers(&one, "s=4", 4);
  if (positions) ir_case_integers(&one, "t=4", 4);
  assert_string_equal(ir_case_refused(&one, &error), message);
}

static void test_refuses(void **state) {
  (void)state;
  refuse("", "s=4 d=5", "t=4 d=6", "t=4 e=3", false,
         "dimension 'd' of operand 1 of attention is 5, that of operand 2 6");
  refuse("", "s=4 d=5", "t=4 d=5", "t=4", false, "operand 3 of attention has 0 dimensions of its own; it is one");
  refuse("", "s=4 d=5 c=2", "t=4 d=5 c=2", "t=4 e=3", false,
         "operands 1 and 2 of attention share 2 dimensions that operand 3 lacks; it is one");
  refuse("", "s=4 d=5", "t=4 d=5 g=2", "t=4 e=3", false,
         "operand 2 of attention has dimension 'g', which operands 1 and 3 lack");
  refuse("causal=1", "s=4 d=5", "t=4 d=5", "t=4 e=3", false,
         "attention with causal needs the positions of queries and keys behind its operand 3");
  refuse("alibi=g", "s=4 g=2 d=5", "t=4 g=2 d=5", "t=4 g=2 e=3", false,
         "attention with alibi needs the positions of queries and keys behind its operand 3");
  refuse("alibi=s", "s=4 g=2 d=5", "t=4 g=2 d=5", "t=4 g=2 e=3", true,
         "'s' of alibi is no dimension of operand 1 of attention that could count heads");
  refuse("p=1", "s=4 d=5", "t=4 d=5", "t=4 e=3", false, "'p' of attention is 1; it is from 0 to below 1");
  refuse("blocks=3", "s=4 d=5", "t=4 d=5", "t=4 e=3", true,
         "3 'blocks' of attention do not divide 's' = 4 and 't' = 4");
}

static void refuse_layout(const pl_ir_mesh *mesh, int k_axis, int8_t k_on, const char *message) {
  ir_case one;
  pl_error error = PL_ERROR_INIT;
  operands(&one, 1, "blocks=2");
  ir_case_compute(&one);
  for (int i = 0; i < 7; i++) { /* s or t */
    pl_ir_type *type = i < 5 ? &one.in[i] : &one.out[i - 5];
    for (int axis = 0; axis < mesh->n_axes; axis++)
      type->on[axis] = (int8_t)(i == 3 || i == 4 ? 0 : 1);
  }
  one.in[1].on[k_axis] = k_on;
  assert_int_equal(pl_ir_layout_check(mesh, &one.op, one.in, one.out, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, message);
}

static void test_refuses_layouts_of_pieces(void **state) {
  (void)state;
  const pl_ir_mesh two = {.n_axes = 1, .axes = {{pl_ir_name_of("cp"), 2}}};
  const pl_ir_mesh four = {.n_axes = 2, .axes = {{pl_ir_name_of("a"), 2}, {pl_ir_name_of("b"), 2}}};
  refuse_layout(&two, 0, PL_IR_SAME,
                "operand 3 of attention is cut on t along axis cp, where the others need it to be the same");
  refuse_layout(&four, 0, 1,
                "attention: queries and keys cut over axis b are not the same whole blocks; 'blocks' is 2, and axes "
                "that cut only one of them come behind it");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_equals_loops, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_order_does_not_matter, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_ring_of_pieces, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refuses_layouts_of_pieces, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
