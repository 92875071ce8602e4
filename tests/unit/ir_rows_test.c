/* Rows of the op table: values against plain loops over named indices and against numbers written down, shapes and what
 * is said of operands that do not fit, layouts of collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/ir_specs.h"

/* ---- values ---- */

typedef struct indices {
  int64_t of[128]; /* by letter */
} indices;

static double *element(const pl_ir_type *type, double *data, const indices *index) {
  int64_t i = 0;
  for (int32_t k = 0; k < type->rank; k++)
    i = i * type->dims[k].extent + index->of[(int)type->dims[k].name.text[0]];
  return &data[i];
}

/* Of operand or result k at these indices. */
static double in(ir_case *one, int32_t k, const indices *index) {
  return *element(&one->in[k], one->data[k], index);
}

static double out(ir_case *one, int32_t k, const indices *index) {
  return *element(&one->out[k], one->answer[k], index);
}

static int64_t extent_of(const ir_case *one, char letter) {
  const pl_ir_name name = pl_ir_name_of((const char[]){letter, '\0'});
  for (int32_t k = 0; k < one->op.n_inputs + one->op.n_outputs; k++) {
    const pl_ir_type *type = k < one->op.n_inputs ? &one->in[k] : &one->out[k - one->op.n_inputs];
    int32_t dim = pl_ir_type_find(type, name);
    if (dim >= 0) return type->dims[dim].extent;
  }
  return 0;
}

/* All indices of these letters, one after the other, from zeros. */
static bool next(const ir_case *one, const char *letters, indices *index) {
  for (size_t i = strlen(letters); i-- > 0;) {
    int letter = letters[i];
    if (++index->of[letter] < extent_of(one, letters[i])) return true;
    index->of[letter] = 0;
  }
  return false;
}

static void compute(ir_case *one, const ir_spec *spec, uint64_t seed) {
  uint64_t random = seed;
  ir_spec_case(spec, &random, &arena, one);
}

static void assert_near(double is, double should) {
  if (!(fabs(is - should) <= 1e-12 * (1 + fabs(should)))) fail_msg("%.17g instead of %.17g", is, should);
}

static void test_product(void **state) {
  (void)state;
  ir_case own;
  compute(&own, &(ir_spec){.row = "product", .operands = {"bsgd", "tbdg"}, .attributes = "over=(d), order=(b,g,s,t)"},
          1);
  indices index = {{0}};
  do {
    double sum = 0;
    for (index.of['d'] = 0; index.of['d'] < extent_of(&own, 'd'); index.of['d']++)
      sum += in(&own, 0, &index) * in(&own, 1, &index);
    assert_near(out(&own, 0, &index), sum);
  } while (next(&own, "bgst", &index));
  /* Without an order: dimensions of a, then b's own. */
  ir_case natural;
  compute(&natural, &(ir_spec){.row = "product", .operands = {"bsgd", "tbdg"}, .attributes = "over=d"}, 1);
  const char expected[] = "bsgt";
  double flops = 2 * (double)extent_of(&natural, 'd');
  assert_int_equal(natural.out[0].rank, 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(natural.out[0].dims[i].name.text[0], expected[i]);
    flops *= (double)natural.out[0].dims[i].extent;
  }
  assert_true(pl_ir_row_at(natural.op.row)->flops(&natural.op, natural.in, natural.out) == flops);
}

/* Computes once more, otherwise. */
static pl_ir_tensor again(ir_case *one, pl_ir_computing how) {
  const pl_ir_mesh none = {0};
  pl_ir_tensor inputs[IR_CASE_OPERANDS], made = ir_tensor(&arena, &none, &one->out[0], 0);
  for (int32_t k = 0; k < one->op.n_inputs; k++) {
    inputs[k] = ir_tensor(&arena, &none, &one->in[k], 0);
    inputs[k].data = one->data[k];
  }
  how.op = &one->op;
  how.inputs = inputs;
  how.outputs = &made;
  how.scratch = &arena;
  assert_int_equal(pl_ir_row_at(one->op.row)->compute(&how, NULL), PL_OK);
  return made;
}

/* In fp32: what a sum in single precision gives, and never what one in double does. */
static void test_product_in_single_precision(void **state) {
  (void)state;
  ir_case own;
  compute(&own, &(ir_spec){.row = "product", .operands = {"bd", "dh"}, .attributes = "over=(d)"}, 5);
  pl_ir_tensor single = again(&own, (pl_ir_computing){.single = true});
  double off = 0;
  for (int64_t i = 0; i < single.n; i++) {
    assert_true(single.data[i] == (double)(float)single.data[i]);
    off = fmax(off, fabs(single.data[i] - own.answer[0][i]));
  }
  assert_true(off > 0 && off < 1e-5);
}

static double added(double a, double b) {
  return a + b;
}
static double subtracted(double a, double b) {
  return a - b;
}
static double multiplied(double a, double b) {
  return a * b;
}
static double divided(double a, double b) {
  return a / b;
}

static void test_broadcast(void **state) {
  (void)state;
  static const struct {
    const char *row;
    double (*f)(double a, double b);
  } rows[] = {{"add", added}, {"subtract", subtracted}, {"multiply", multiplied}, {"divide", divided}};
  for (int i = 0; i < 4; i++) {
    ir_case own;
    compute(&own, &(ir_spec){.row = rows[i].row, .operands = {"bsh", "+hb"}}, (uint64_t)i);
    indices index = {{0}};
    do
      assert_near(out(&own, 0, &index), rows[i].f(in(&own, 0, &index), in(&own, 1, &index)));
    while (next(&own, "bsh", &index));
  }
}

static void test_sum_and_maximum(void **state) {
  (void)state;
  ir_case sum, maximum;
  compute(&sum, &(ir_spec){.row = "sum", .operands = {"bsht"}, .attributes = "over=(b,h)"}, 1);
  compute(&maximum, &(ir_spec){.row = "maximum", .operands = {"bsht"}, .attributes = "over=(b,h)"}, 1);
  indices index = {{0}};
  do {
    double total = 0, most = -INFINITY;
    do {
      total += in(&sum, 0, &index);
      most = fmax(most, in(&maximum, 0, &index));
    } while (next(&sum, "bh", &index));
    assert_near(out(&sum, 0, &index), total);
    assert_near(out(&maximum, 0, &index), most);
  } while (next(&sum, "st", &index));
}

static void test_what_only_moves_elements(void **state) {
  (void)state;
  ir_case spread, renamed;
  compute(&spread, &(ir_spec){.row = "spread", .operands = {"sh"}, .written = "hbst"}, 1);
  indices index = {{0}};
  do
    assert_true(out(&spread, 0, &index) == in(&spread, 0, &index));
  while (next(&spread, "hbst", &index));
  compute(&renamed, &(ir_spec){.row = "rename", .operands = {"bsh"}, .attributes = "from=s, to=t"}, 1);
  assert_string_equal(renamed.out[0].dims[1].name.text, "t");
  assert_memory_equal(renamed.answer[0], renamed.data[0], (size_t)pl_ir_type_elements(&renamed.in[0]) * sizeof(double));
}

/* At 1 and -2, from the functions' definitions. */
static void test_functions(void **state) {
  (void)state;
  static const struct {
    const char *row;
    double at_1, at_minus_2;
  } rows[] = {{"gelu", 0.841191990608276, -0.045402305912225},
              {"silu", 0.731058578630005, -0.238405844044235},
              {"relu", 1, 0},
              {"tanh", 0.761594155955765, -0.964027580075817},
              {"exp", 2.718281828459045, 0.135335283236613},
              {"reciprocal", 1, -0.5}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    ir_case own;
    compute(&own, &(ir_spec){.row = rows[i].row, .operands = {"b"}}, 1);
    own.data[0][0] = 1, own.data[0][1] = -2;
    ir_case_compute(&own);
    assert_true(fabs(own.answer[0][0] - rows[i].at_1) < 1e-14);
    assert_true(fabs(own.answer[0][1] - rows[i].at_minus_2) < 1e-14);
  }
  ir_case own;
  compute(&own, &(ir_spec){.row = "log", .operands = {"+b"}}, 1);
  assert_near(own.answer[0][0], log(own.data[0][0]));
}

/* Zeros in about the share p, the rest scaled, another mask for another seed, iteration and microbatch, the same for
 * the same. */
static void test_dropout(void **state) {
  (void)state;
  const ir_spec spec = {.row = "dropout", .operands = {"bshdt"}, .attributes = "p=0.25, seed=7"};
  ir_case own;
  compute(&own, &spec, 3);
  int64_t n_zero = 0, n = (int64_t)pl_ir_type_elements(&own.in[0]);
  for (int64_t i = 0; i < n; i++) {
    if (own.answer[0][i] != 0) assert_near(own.answer[0][i], own.data[0][i] / 0.75);
    n_zero += own.answer[0][i] == 0;
  }
  assert_true(fabs((double)n_zero / (double)n - 0.25) < 3 * sqrt(0.25 * 0.75 / (double)n));
  size_t bytes = (size_t)n * sizeof(double);
  const pl_ir_tensor first = again(&own, (pl_ir_computing){0});
  const pl_ir_tensor same = again(&own, (pl_ir_computing){0});
  const pl_ir_tensor iteration = again(&own, (pl_ir_computing){.iteration = 1});
  const pl_ir_tensor microbatch = again(&own, (pl_ir_computing){.turn.microbatch = 1});
  assert_memory_equal(same.data, first.data, bytes);
  assert_memory_not_equal(iteration.data, first.data, bytes);
  assert_memory_not_equal(microbatch.data, first.data, bytes);
}

static void test_softmax(void **state) {
  (void)state;
  ir_case own, large;
  compute(&own, &(ir_spec){.row = "softmax", .operands = {"bvs"}, .attributes = "over=(v)"}, 1);
  indices index = {{0}};
  do {
    double sum = 0;
    for (index.of['v'] = 0; index.of['v'] < extent_of(&own, 'v'); index.of['v']++)
      sum += exp(in(&own, 0, &index));
    for (index.of['v'] = 0; index.of['v'] < extent_of(&own, 'v'); index.of['v']++)
      assert_near(out(&own, 0, &index), exp(in(&own, 0, &index)) / sum);
    index.of['v'] = 0;
  } while (next(&own, "bs", &index));
  compute(&large, &(ir_spec){.row = "softmax", .operands = {"v"}, .attributes = "over=(v)"}, 1);
  large.data[0][0] = 1e6; /* its exp is none that a double holds */
  ir_case_compute(&large);
  assert_near(large.answer[0][0], 1);
}

static void test_norms(void **state) {
  (void)state;
  ir_case layer, rms;
  compute(&layer,
          &(ir_spec){.row = "layer_norm", .operands = {"bhs", "h", "h"}, .attributes = "over=(h), epsilon=0.01"}, 1);
  compute(&rms, &(ir_spec){.row = "rms_norm", .operands = {"bhs", "h"}, .attributes = "over=(h), epsilon=0.01"}, 1);
  indices index = {{0}};
  double n = (double)extent_of(&layer, 'h');
  do {
    double mean = 0, variance = 0, squares = 0;
    for (index.of['h'] = 0; index.of['h'] < extent_of(&layer, 'h'); index.of['h']++) {
      mean += in(&layer, 0, &index) / n;
      squares += pow(in(&rms, 0, &index), 2) / n;
    }
    for (index.of['h'] = 0; index.of['h'] < extent_of(&layer, 'h'); index.of['h']++)
      variance += pow(in(&layer, 0, &index) - mean, 2) / n;
    for (index.of['h'] = 0; index.of['h'] < extent_of(&layer, 'h'); index.of['h']++) {
      assert_near(out(&layer, 0, &index),
                  (in(&layer, 0, &index) - mean) / sqrt(variance + 0.01) * in(&layer, 1, &index) +
                      in(&layer, 2, &index));
      assert_near(out(&rms, 0, &index), in(&rms, 0, &index) / sqrt(squares + 0.01) * in(&rms, 1, &index));
    }
    index.of['h'] = 0;
  } while (next(&layer, "bs", &index));
}

/* From zero states, at the iteration of ir_case_compute: the fourth. */
static void test_optimizers(void **state) {
  (void)state;
  ir_case adam, sgd;
  compute(&adam,
          &(ir_spec){.row = "adam",
                     .operands = {"hf", "fh", "hf", "+hf"},
                     .attributes = "rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-3"},
          1);
  size_t bytes = (size_t)pl_ir_type_elements(&adam.in[0]) * sizeof(double);
  memset(adam.data[2], 0, bytes);
  memset(adam.data[3], 0, bytes);
  ir_case_compute(&adam);
  compute(&sgd, &(ir_spec){.row = "sgd", .operands = {"hf", "fh"}, .attributes = "rate=0.1"}, 1);
  indices index = {{0}};
  do {
    double g = in(&adam, 1, &index);
    double m = 0.1 * g / (1 - pow(0.9, 4)), v = 0.05 * g * g / (1 - pow(0.95, 4));
    assert_near(out(&adam, 0, &index), in(&adam, 0, &index) - 0.1 * m / (sqrt(v) + 1e-3));
    assert_near(out(&adam, 1, &index), 0.1 * g);
    assert_near(out(&adam, 2, &index), 0.05 * g * g);
    assert_near(out(&sgd, 0, &index), in(&sgd, 0, &index) - 0.1 * in(&sgd, 1, &index));
  } while (next(&adam, "hf", &index));
}

/* Parts of what is cut on another dimension already: the values of those places. */
static void test_cut(void **state) {
  (void)state;
  pl_ir_mesh mesh = {.n_axes = 2, .axes = {{pl_ir_name_of("p"), 2}, {pl_ir_name_of("q"), 3}}};
  const pl_ir_dim dims[] = {{pl_ir_name_of("b"), 4}, {pl_ir_name_of("s"), 6}, {pl_ir_name_of("h"), 3}};
  pl_ir_type from = pl_ir_type_of(PL_IR_F32, 3, dims), to;
  from.on[0] = 0;
  to = from;
  to.on[1] = 1;
  const pl_ir_name dim = pl_ir_name_of("s"), over = pl_ir_name_of("q");
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_names("dim", 1, &dim)};
  const pl_ir_op op = {
      .row = (uint16_t)pl_ir_row_of("cut"), .n_inputs = 1, .n_outputs = 1, .n_attributes = 2, .attributes = attributes};
  assert_int_equal(pl_ir_layout_check(&mesh, &op, &from, &to, NULL), PL_OK);
  for (uint32_t device = 0; device < 6; device++) {
    pl_ir_tensor whole = ir_tensor(&arena, &mesh, &from, device), part = ir_tensor(&arena, &mesh, &to, device);
    for (int64_t i = 0; i < whole.n; i++)
      whole.data[i] = (double)(whole.origin[0] * 18 + i); /* its place in the whole */
    const pl_ir_computing computing = {.op = &op, .inputs = &whole, .outputs = &part, .scratch = &arena};
    assert_int_equal(pl_ir_row_at(op.row)->compute(&computing, NULL), PL_OK);
    for (int64_t i = 0; i < part.n; i++) {
      int64_t b = part.origin[0] + i / 6, s = part.origin[1] + i / 3 % 2, h = i % 3;
      assert_true(part.data[i] == (double)((b * 6 + s) * 3 + h));
    }
  }
}

/* ---- what is said ---- */

/* "b8 s4" */
static pl_ir_type type_of(const char *text, pl_ir_element element) {
  pl_ir_dim dims[PL_IR_RANK_MAX];
  int32_t rank = 0;
  for (const char *p = text; *p != '\0'; rank++) {
    char *end;
    dims[rank].name = pl_ir_name_of((const char[]){*p, '\0'});
    dims[rank].extent = strtol(p + 1, &end, 10);
    p = *end == ' ' ? end + 1 : end;
  }
  return pl_ir_type_of(element, rank, dims);
}

static pl_ir_op op_of(const char *row, int32_t n_inputs, int32_t n_attributes, const pl_ir_attribute *attributes) {
  return (pl_ir_op){.row = (uint16_t)pl_ir_row_of(row),
                    .n_inputs = (uint16_t)n_inputs,
                    .n_outputs = 1,
                    .n_attributes = (uint16_t)n_attributes,
                    .attributes = attributes};
}

static void assert_says(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, const char *message) {
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_ir_row_at(op->row)->infer(op, inputs, outputs, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, message);
}

static void test_operands_that_do_not_fit_are_told(void **state) {
  (void)state;
  pl_ir_type out[IR_CASE_OPERANDS];
  const pl_ir_name h = pl_ir_name_of("h"), s = pl_ir_name_of("s");
  const pl_ir_attribute over_h = pl_ir_names("over", 1, &h);
  pl_ir_op product = op_of("product", 2, 1, &over_h), add = op_of("add", 2, 0, NULL);
  pl_ir_type in[3] = {type_of("b8 s4 h64", PL_IR_F32), type_of("h32 f8", PL_IR_F32)};
  assert_says(
      &product, in, out,
      "operand 1 of product has h=64 and operand 2 has h=32: a dimension that both have needs one extent (rename "
      "it where they are not the same)");
  in[1] = type_of("f8", PL_IR_F32);
  assert_says(&product, in, out, "over=h of product is no dimension of operand 2, which is [f=8]");
  in[1] = type_of("h64 f8", PL_IR_BF16);
  assert_says(&product, in, out, "operand 2 of product is bf16 and operand 1 is fp32: cast one of them");
  in[1] = type_of("h64 f8", PL_IR_I32);
  assert_says(&product, in, out, "operand 2 of product is i32, which cannot be computed with");
  assert_says(&add, (pl_ir_type[]){in[0], type_of("h64 f8", PL_IR_F32)}, out,
              "operand 2 of add has dimension f=8, which operand 1, [b=8, s=4, h=64], lacks");
  assert_says(&add, (pl_ir_type[]){in[0], type_of("s3", PL_IR_F32)}, out,
              "operand 1 of add has s=4 and operand 2 has s=3: a dimension that both have needs one extent (rename it "
              "where they are not the same)");
  const pl_ir_attribute names[] = {pl_ir_names("from", 1, &s), pl_ir_names("to", 1, &h)};
  pl_ir_op rename = op_of("rename", 1, 2, names);
  assert_says(&rename, in, out, "operand 1 of rename has a dimension h already: [b=8, s=4, h=64]");
  pl_ir_op loss = op_of("loss", 1, 0, NULL);
  assert_says(&loss, in, out,
              "operand 1 of loss is [b=8, s=4, h=64], and a loss is one number: sum over its dimensions");
  pl_ir_op spread = op_of("spread", 1, 0, NULL);
  out[0] = type_of("b8 s4 h63", PL_IR_F32);
  assert_says(&spread, in, out, "operand 1 of spread has h=64 and the result has h=63");
}

/* ---- layouts of collectives ---- */

static const pl_ir_mesh *mesh_2_by_3(pl_ir_mesh *mesh) {
  *mesh = (pl_ir_mesh){.n_axes = 2, .axes = {{pl_ir_name_of("dp"), 2}, {pl_ir_name_of("tp"), 3}}};
  return mesh;
}

static void assert_layout(const char *row, const pl_ir_attribute *attributes, int32_t n_attributes, const int8_t *from,
                          const int8_t *to, const char *message) {
  pl_ir_mesh mesh;
  pl_error error = PL_ERROR_INIT;
  pl_ir_op op = op_of(row, 1, n_attributes, attributes);
  pl_ir_type in = type_of("b12 s12", PL_IR_F32), out = in;
  memcpy(in.on, from, 2);
  memcpy(out.on, to, 2);
  pl_code code = pl_ir_layout_check(mesh_2_by_3(&mesh), &op, &in, &out, &error);
  assert_string_equal(error.message, message != NULL ? message : "");
  assert_int_equal(code, message != NULL ? PL_BAD_INPUT : PL_OK);
}

enum { SAME = PL_IR_SAME, PARTIAL = PL_IR_PARTIAL, MAXIMUM = PL_IR_MAXIMUM, B = 0, S = 1 };
#define ON(dp, tp)                                                                                                     \
  (const int8_t[]) {                                                                                                   \
    dp, tp                                                                                                             \
  }

static void test_layouts_of_collectives(void **state) {
  (void)state;
  const pl_ir_name dp = pl_ir_name_of("dp"), tp = pl_ir_name_of("tp"), b = pl_ir_name_of("b"), s = pl_ir_name_of("s");
  const pl_ir_name both[] = {dp, tp}, none = pl_ir_name_of("cp");
  const pl_ir_attribute reduce = pl_ir_names("over", 1, &tp), unknown = pl_ir_names("over", 1, &none);
  const pl_ir_attribute reduce_both = pl_ir_names("over", 2, both);
  assert_layout("all_reduce", &reduce, 1, ON(B, PARTIAL), ON(B, SAME), NULL);
  assert_layout("all_reduce", &reduce, 1, ON(B, MAXIMUM), ON(B, SAME), NULL);
  assert_layout("all_reduce", &reduce_both, 1, ON(PARTIAL, PARTIAL), ON(SAME, SAME), NULL);
  assert_layout("all_reduce", &reduce, 1, ON(B, SAME), ON(B, SAME),
                "operand 1 of all_reduce is the same along axis tp and needs to be a partial sum");
  assert_layout("all_reduce", &reduce_both, 1, ON(PARTIAL, MAXIMUM), ON(SAME, SAME),
                "operand 1 of all_reduce is a partial sum along axis dp and needs to be a partial maximum");
  assert_layout("all_reduce", &reduce, 1, ON(B, PARTIAL), ON(SAME, SAME),
                "the result of all_reduce is the same along axis dp and needs to be cut on b, as its operand is");
  assert_layout("all_reduce", &unknown, 1, ON(B, PARTIAL), ON(B, SAME), "over=cp of all_reduce is no axis of the mesh");

  const pl_ir_attribute scatter[] = {reduce, pl_ir_names("dim", 1, &s)};
  const pl_ir_attribute outer[] = {pl_ir_names("over", 1, &dp), pl_ir_names("dim", 1, &s)};
  assert_layout("reduce_scatter", scatter, 2, ON(S, PARTIAL), ON(S, S), NULL);
  assert_layout(
      "reduce_scatter", outer, 2, ON(PARTIAL, S), ON(S, S),
      "reduce_scatter over dp of dimension s, which axis tp, further right in the mesh, cuts too: parts along "
      "dp are no neighbours");
  assert_layout("reduce_scatter", scatter, 2, ON(SAME, MAXIMUM), ON(SAME, S),
                "operand 1 of reduce_scatter is a partial maximum along axis tp and needs to be a partial sum");
  assert_layout("all_gather", scatter, 2, ON(S, S), ON(S, SAME), NULL);
  assert_layout("all_gather", outer, 2, ON(S, S), ON(SAME, S),
                "all_gather over dp of dimension s, which axis tp, further right in the mesh, cuts too: parts along dp "
                "are no neighbours");
  assert_layout("cut", scatter, 2, ON(SAME, SAME), ON(SAME, S), NULL);
  assert_layout("cut", scatter, 2, ON(SAME, PARTIAL), ON(SAME, S),
                "operand 1 of cut is a partial sum along axis tp and needs to be the same");

  const pl_ir_attribute turn[] = {reduce, pl_ir_names("from", 1, &s), pl_ir_names("to", 1, &b)};
  assert_layout("all_to_all", turn, 3, ON(B, S), ON(B, B), NULL);
  assert_layout("all_to_all", turn, 3, ON(B, B), ON(B, S),
                "operand 1 of all_to_all is cut on b along axis tp and needs to be cut on s");
  const pl_ir_attribute by[] = {reduce, pl_ir_integer("by", 1)};
  assert_layout("shift", by, 2, ON(B, S), ON(B, S), NULL);
  assert_layout("shift", by, 2, ON(B, S), ON(B, SAME),
                "the result of shift is the same along axis tp and needs to be cut on s, as its operand is");
}

static void test_layouts_of_state(void **state) {
  (void)state;
  assert_layout("accumulate", NULL, 0, ON(PARTIAL, S), ON(SAME, SAME), NULL);
  assert_layout("store", NULL, 0, ON(PARTIAL, S), ON(SAME, SAME),
                "operand 1 of store is a partial sum along axis dp: it can only be cut or the same");
  assert_layout("accumulate", NULL, 0, ON(SAME, MAXIMUM), ON(SAME, SAME),
                "operand 1 of accumulate is a partial maximum along axis tp: all_reduce it before");
  assert_layout("keep", NULL, 0, ON(MAXIMUM, PARTIAL), ON(SAME, SAME), NULL);
}

/* A partial sum and a bias that every device has: it would be added once per device. */
static void test_a_bias_behind_a_partial_sum_is_told(void **state) {
  (void)state;
  pl_ir_mesh mesh;
  pl_error error = PL_ERROR_INIT;
  pl_ir_type in[] = {type_of("b12 s12", PL_IR_F32), type_of("s12", PL_IR_F32)}, out = in[0];
  in[0].on[1] = out.on[1] = PL_IR_PARTIAL;
  pl_ir_op op = op_of("add", 2, 0, NULL);
  assert_int_equal(pl_ir_layout_check(mesh_2_by_3(&mesh), &op, in, &out, &error), PL_BAD_INPUT);
  assert_string_equal(error.message,
                      "operand 2 of add is the same along axis tp, where the others need it to be a partial sum");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_product, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_product_in_single_precision, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_broadcast, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sum_and_maximum, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_only_moves_elements, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_functions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_dropout, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_softmax, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_norms, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_optimizers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_operands_that_do_not_fit_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_layouts_of_collectives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_layouts_of_state, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_bias_behind_a_partial_sum_is_told, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
