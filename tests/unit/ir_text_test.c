/* Programs as text: what is read is what was written, canonical text, and every kind of error of the reader with its
 * place. What a program means is checked in ir_check_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

static pl_code parse(const char *text, pl_ir_module *module, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_ir_parse("t", text, strlen(text), &arena, module, error);
}

static char *printed(const pl_ir_module *module) {
  char *text;
  size_t size;
  FILE *stream = open_memstream(&text, &size);
  assert_non_null(stream);
  pl_ir_print(stream, module);
  assert_int_equal(fclose(stream), 0);
  return text;
}

/* ---- what is right ---- */

static const char every_statement[] = /* in canonical text */
    "plir 1 distributed \"every statement\"\n"
    "mesh pp=2, dp=2, tp=2\n"
    "microbatches 3\n"
    "\n"
    "func @layer(%x: bf16[b=8/dp, s=4, h=16], %g.1: bf16[h=16]) {\n"
    "  %w = param \"mlp.up\"() : bf16[h=16, f=64/tp]\n"
    "  %y = product(%x, %w) {over=h} : bf16[b=8/dp, s=4, f=64/tp]  # column split\n"
    "  %v = param \"mlp.down\"() : bf16[f=64/tp, h=16]\n"
    "  %z = product(%y, %v) {over=(f), order=(b, s, h)} : bf16[b=8/dp, s=4, h=16] partial(tp)\n"
    "  %r = all_reduce(%z) {over=tp} : bf16[b=8/dp, s=4, h=16]\n"
    "  %d = dropout(%r) {p=0.1, seed=-7} : bf16[b=8/dp, s=4, h=16]\n"
    "  %e = scale(%d) {by=1e-05} : bf16[b=8/dp, s=4, h=16]\n"
    "  %t = scale(%e) {by=2.0} : bf16[b=8/dp, s=4, h=16]\n"
    "  keep \"y \\\"\\\\\\x0a\\xe2\\x80\\xa8\\xff\"(%y)\n"
    "  return %t, %y\n"
    "}\n"
    "\n"
    "func @main() {\n"
    "  %x = receive() {from=b, tag=\"x\"} : bf16[b=8/dp, s=4, h=16]\n"
    "  %g = param \"g\"() : bf16[h=16]\n"
    "  %x1, %y1 = call @layer \"h.0\"(%x, %g) : bf16[b=8/dp, s=4, h=16], bf16[b=8/dp, s=4, f=64/tp]\n"
    "  %x2, %y2 = call @layer(%x1, %g) : bf16[b=8/dp, s=4, h=16], bf16[b=8/dp, s=4, f=64/tp]\n"
    "  %m = maximum(%y2) {over=f} : bf16[b=8/dp, s=4] maximum(tp)\n"
    "  %o = sum(%y2) {over=(b, s, f)} : bf16[] partial(dp, tp)\n"
    "  loss(%o)\n"
    "}\n"
    "\n"
    "class a at pp=0, dp=1 {\n"
    "  chunk 0 forward @main backward @main weights @main\n"
    "  chunk 1\n"
    "  steps F0.0 B0.0 W0.0 F0.1 F10.20\n"
    "  update @main\n"
    "}\n"
    "\n"
    "class b {\n"
    "  steps\n"
    "}\n";

/* `over=(f)` is read as `over=f` and written so. */
static void what_is_written_is_what_was_read(void **state) {
  (void)state;
  pl_ir_module module, again;
  pl_error error;
  if (parse(every_statement, &module, &error) != PL_OK) fail_msg("%s", error.message);
  char *text = printed(&module), *wanted = strdup(every_statement);
  char *names = strstr(wanted, "over=(f)");
  memcpy(names, "over=f", 6);
  memmove(names + 6, names + 8, strlen(names + 8) + 1);
  assert_string_equal(text, wanted);
  assert_int_equal(parse(text, &again, &error), PL_OK);
  assert_true(pl_ir_module_equal(&module, &again));
  free(text);
  free(wanted);
}

static void all_of_it_is_there(void **state) {
  (void)state;
  pl_ir_module m;
  pl_error error;
  assert_int_equal(parse(every_statement, &m, &error), PL_OK);
  assert_string_equal(m.name, "every statement");
  assert_string_equal(m.source, "t");
  assert_int_equal(m.level, PL_IR_DISTRIBUTED);
  assert_int_equal(m.mesh.n_axes, 3);
  assert_int_equal(m.n_microbatches, 3);
  const pl_ir_function *layer = m.functions[pl_ir_function_find(&m, "layer")];
  assert_int_equal(layer->n_arguments, 2);
  const pl_ir_op *product = &layer->ops[1];
  assert_string_equal(product->reason, "column split");
  assert_int_equal(product->place.line, 7);
  assert_int_equal(product->place.column, 8);
  const pl_ir_value *y = &layer->values[product->first_output];
  assert_int_equal(y->type.on[2], 2);
  assert_int_equal(y->type.on[1], 0);
  assert_int_equal(y->type.on[0], PL_IR_SAME);
  const pl_ir_op *keep = &layer->ops[8];
  assert_string_equal(keep->path, "y \"\\\n\xe2\x80\xa8\xff");
  assert_int_equal(pl_ir_integer_of(&layer->ops[5], "seed", 0), -7);
  assert_true(pl_ir_real_of(&layer->ops[6], "by", 0) == 1e-5);
  assert_int_equal(layer->n_results, 2);
  assert_int_equal(m.classes[0].at[1], 1);
  assert_int_equal(m.classes[0].at[2], PL_IR_NONE);
  assert_int_equal(m.classes[0].steps[4].chunk, 10);
  assert_int_equal(m.classes[0].steps[4].microbatch, 20);
  assert_int_equal(m.classes[0].steps[4].place.column, 29);
  assert_int_equal(m.classes[0].chunks[1].forward, PL_IR_NONE);
}

/* Lines go on in brackets and behind commas and colons; comments anywhere; \r\n; types that follow are left out. */
static void text_may_be_written_otherwise(void **state) {
  (void)state;
  static const char free_text[] =
      "# a program\r\n\r\n plir 1 model m # here\r\nmicrobatches 1\r\n"
      "func @f(\r\n  %x:\r\n fp32[b=2,\r\n   h=3 ], # the first\r\n %y: fp32[h=3]) { # f\r\n"
      "\r\n  %a = add(%x,\r\n %y)\r\n %b\t=scale( %a ){ by\r\n = 2 }:\r\n fp32[b=2,h=3]\r\n"
      "\r\n%c,\r\n%d = call @g(%b) # r\r\n} # end";
  static const char other_text[] = "plir 1 model m\nmicrobatches 1\nfunc @g(%x: fp32[b=2, h=3]) {\n return %x, %x\n}\n"
                                   "func @f(%x: fp32[b=2, h=3], %y: fp32[h=3]) {\n%a = add(%x, %y) : fp32[b=2, h=3]\n"
                                   "%b = scale(%a) {by=2} : fp32[b=2, h=3]\n"
                                   "%c, %d = call @g(%b) : fp32[b=2, h=3], fp32[b=2, h=3]\n}\n";
  char text[2048];
  snprintf(text, sizeof text, "%s", free_text);
  char *f = strstr(text, "func @f");
  snprintf(f, sizeof text - (size_t)(f - text), "func @g(%%x: fp32[b=2, h=3]) {\n return %%x, %%x\n}\n%s",
           strstr(free_text, "func @f"));
  pl_ir_module a, b;
  pl_error error;
  if (parse(text, &a, &error) != PL_OK) fail_msg("%s", error.message);
  if (parse(other_text, &b, &error) != PL_OK) fail_msg("%s", error.message);
  assert_true(pl_ir_module_equal(&a, &b));
  assert_string_equal(a.functions[1]->ops[2].reason, "r");
}

/* Types that are left out lie as their operands let them. */
static void layouts_follow_from_operands(void **state) {
  (void)state;
  static const char text[] = "plir 1 distributed m\nmesh dp=2, tp=2\n"
                             "func @f(%x: fp32[b=4/dp, h=8/tp], %w: fp32[h=8/tp, f=2]) {\n"
                             "%y = product(%x, %w) {over=h}\n%z = relu(%x)\n%s = scale(%y) {by=1}\n}\n";
  pl_ir_module m;
  pl_error error;
  char type[PL_IR_TYPE_TEXT_BYTES];
  if (parse(text, &m, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_ir_value *values = m.functions[0]->values;
  assert_string_equal(pl_ir_type_text(&m.mesh, &values[2].type, type), "fp32[b=4/dp, f=2] partial(tp)");
  assert_string_equal(pl_ir_type_text(&m.mesh, &values[3].type, type), "fp32[b=4/dp, h=8/tp]");
  assert_string_equal(pl_ir_type_text(&m.mesh, &values[4].type, type), "fp32[b=4/dp, f=2] partial(tp)");
}

static void no_line_is_long(void **state) {
  (void)state;
  char text[8192];
  size_t used = (size_t)snprintf(text, sizeof text, "plir 1 model m\nfunc @f(");
  for (int i = 0; i < 40; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%%argument_%d: fp32[batch=2, sequence=3, hidden=4]",
                             i > 0 ? ", " : "", i);
  used += (size_t)snprintf(text + used, sizeof text - used,
                           ") {\n}\nfunc @g(%%x: fp32[batch=2, sequence=3, hidden=4]) "
                           "{\ncall @f(");
  for (int i = 0; i < 40; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%%x", i > 0 ? ", " : "");
  snprintf(text + used, sizeof text - used, ")\nreturn %%x\n}\n");
  pl_ir_module m, again;
  pl_error error;
  if (parse(text, &m, &error) != PL_OK) fail_msg("%s", error.message);
  char *out = printed(&m);
  for (const char *line = out, *end; *line != '\0'; line = end + 1) {
    end = strchr(line, '\n');
    assert_true(end - line <= 120);
  }
  assert_int_equal(parse(out, &again, &error), PL_OK);
  assert_true(pl_ir_module_equal(&m, &again));
  free(out);
}

static void names_and_reasons(void **state) {
  (void)state;
  pl_ir_module m, again;
  pl_error error;
  pl_ir_module_init(&m, &arena, "a", PL_IR_MODEL);
  pl_ir_function *f = pl_ir_function_add(&m, "f");
  pl_ir_type type = pl_ir_type_of(PL_IR_F32, 1, &(pl_ir_dim){pl_ir_name_of("h"), 4});
  int32_t x = pl_ir_argument(&m, f, "x", &type);
  const char *names[] = {"x", "x.3", "x", "x", "y"}; /* x.2, x.3, x.4, x.5 */
  for (int i = 0; i < 5; i++)
    pl_ir_op_add(&m, f,
                 &(pl_ir_making){.row = pl_ir_row_of("relu"),
                                 .n_inputs = 1,
                                 .inputs = &x,
                                 .n_outputs = 1,
                                 .output_names = &names[i],
                                 .output_types = &type,
                                 .callee = PL_IR_NONE,
                                 .reason = i == 4 ? "because\nof that" : NULL});
  assert_string_equal(f->values[1].name, "x.2");
  assert_string_equal(f->values[2].name, "x.3");
  assert_string_equal(f->values[3].name, "x.4");
  assert_string_equal(f->values[4].name, "x.5");
  assert_int_equal(pl_ir_value_find(f, "x.4"), 3);
  assert_int_equal(pl_ir_value_find(f, "x.6"), PL_IR_NONE);
  char *text = printed(&m);
  assert_non_null(strstr(text, "%y = relu(%x) : fp32[h=4]  # because\\nof that\n"));
  assert_int_equal(parse(text, &again, &error), PL_OK);
  assert_true(pl_ir_module_equal(&m, &again));
  again.functions[0]->ops[2].inputs = &(int32_t){1};
  assert_false(pl_ir_module_equal(&m, &again));
  free(text);
}

/* ---- what is wrong ---- */

typedef struct wrong {
  const char *text, *message; /* text: a whole program, or what stands behind HEAD; message: behind "t:" */
} wrong;

#define HEAD "plir 1 distributed m\nmesh dp=2, tp=4\n"
#define F    HEAD "func @f(%x: fp32[b=2, h=4]) {\n"

static const wrong wrongs[] = {
    {"", "1:1: the file ends here, where 'plir 1 LEVEL NAME', with which a program begins, should stand"},
    {"func @f() {}", "1:1: 'func' stands here, where 'plir 1 LEVEL NAME', with which a program begins, should stand"},
    {"plir 2 model m\n", "1:6: 2 is out of range: the version of the language is from 1 to 1"},
    {"plir 1 modle m\n",
     "1:8: 'modle' stands here, where the level (model, training, distributed or kernels) should stand"},
    {"plir 1 model\n", "1:13: the line ends here, where the program's name (a name, or any \"text\") should stand"},
    {"plir 1 model m n\n", "1:16: 'n' stands here, where the end of the line should stand"},
    {HEAD "mesh pp=2\n", "3:1: a program has one mesh; this is the second"},
    {"plir 1 model m\nfunc @f() {\n}\nmesh pp=2\n", "4:1: the mesh stands in front of all functions"},
    {"plir 1 model m\nmesh a=2, a=3\n", "2:11: axis a stands in the mesh twice"},
    {"plir 1 model m\nmesh a=0\n", "2:8: 0 is out of range: the number of devices along an axis is from 1 to 1048576"},
    {"plir 1 model m\nmesh a=1024, b=2048\n", "2:16: the mesh would have 2097152 devices; at most 1048576"},
    {"plir 1 model m\nmesh a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1\n", "2:38: a mesh has at most 8 axes"},
    {HEAD "microbatches 1 at ep=0\n", "3:19: 'ep' is not an axis of the mesh; there are: dp, tp"},
    {HEAD "microbatches 1 at dp=9\n", "3:22: 9 is out of range: a coordinate on this axis is from 0 to 1"},
    {HEAD "microbatches 1 at dp=1, dp=0\n", "3:25: axis dp is given twice: devices are at one coordinate"},
    {HEAD "microbatches 0\n", "3:14: 0 is out of range: the number of microbatches is from 1 to 2147483647"},
    {HEAD "function @f() {\n}\n", "3:1: 'function' stands here, where 'framework', 'mesh', 'devices', 'microbatches', "
                                  "'func' or 'class' should stand"},
    {HEAD "func f() {\n}\n", "3:6: 'f' stands here, where the function's name (@name) should stand"},
    {F "}\nfunc @f() {\n}\n", "5:6: function @f is there already, in line 3"},
    {HEAD "func @f(%x: fp32[], %x: fp32[]) {\n}\n", "3:21: %x is an argument of @f twice"},
    {F "", "4:1: the file ends here, where an op, 'return' or '}' should stand"},
    {F "%y = frobnicate(%x)\n}\n",
     "4:6: 'frobnicate' is not an op; there are: input, param, keep, kept, call, kernel, accum*"},
    {F "%y = prodct(%x, %x)\n}\n", "4:6: 'prodct' is not an op; did you mean 'product'?"},
    {F "%y = relu(%z)\n}\n", "4:11: %z is used before it is made in @f; there are: x"},
    {F "%hidden = relu(%x)\n%z = relu(%hiden)\n}\n",
     "5:11: %hiden is used before it is made in @f; did you mean 'hidden'?"},
    {F "%y = relu(%y)\n}\n", "4:11: %y is used before it is made in @f; there are: x"},
    {F "%x = relu(%x)\n}\n", "4:1: %x is made twice in @f: a value is assigned once"},
    {F "%y, %y = relu(%x)\n}\n", "4:5: %y is made twice in @f: a value is assigned once"},
    {F "%y = relu(%x, )\n}\n", "4:15: ')' stands here, where a value (%name) should stand"},
    {F "%y = relu(%x\n%z = relu(%x)\n}\n", "5:1: '%z' stands here, where ',' and a value, or ')' should stand"},
    {F "%y relu(%x)\n}\n", "4:4: 'relu' stands here, where ',' and a value, or '=' and an op should stand"},
    {F "%y = relu(%x) : fp33[b=2]\n}\n", "4:17: 'fp33' is not an element type; did you mean 'fp32'?"},
    {F "%y = relu(%x) : fp32(b=2)\n}\n",
     "4:21: '(' stands here, where '[' and the dimensions ([] of a single number) should stand"},
    {F "%y = relu(%x) : fp32[b=0]\n}\n", "4:24: 0 is out of range: an extent is from 1 to 9007199254740992"},
    {F "%y = relu(%x) : fp32[b=2, b=2]\n}\n", "4:27: dimension b stands in this type twice"},
    {F "%y = relu(%x) : fp32[b=2/pd]\n}\n", "4:26: 'pd' is not an axis of the mesh; there are: dp, tp"},
    {F "%y = relu(%x) : fp32[b=2/dp, h=4/dp]\n}\n",
     "4:34: axis dp stands in this type twice: a value lies one way along an axis"},
    {F "%y = relu(%x) : fp32[b=8/tp/dp]\n}\n",
     "4:29: axes stand in the order of the mesh, outermost first: /dp before /tp"},
    {F "%y = relu(%x) : fp32[b=2] partial(dp) maximum(dp)\n}\n",
     "4:47: axis dp stands in this type twice: a value lies one way along an axis"},
    {F "%y = relu(%x) : fp32[a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1]\n}\n", "4:54: a value has at most 8 dimensions"},
    {F "%y = relu(%x) : fp32[], fp32[]\n}\n", "4:25: one type too many: this op gives 1 value"},
    {F "%y, %z = relu(%x) : fp32[]\n}\n", "4:27: 1 type for 2 values"},
    {F "%y = param \"w\"()\n}\n", "4:6: the type of what param gives must be written behind it: ... : bf16[b=8, h=64]"},
    {F "%y = all_reduce(%x) {over=dp}\n}\n",
     "4:6: how the result of all_reduce lies must be written behind it: ... : bf16[b=8/dp]"},
    {F "%y = relu(%x, %x)\n}\n", "4:6: relu has 2 operands; it takes 1"},
    {F "%y = sum(%x) {over=q}\n}\n", "4:6: *q*"},
    {F "%y = scale(%x) {by=1, by=2}\n}\n", "4:23: attribute by is given twice"},
    {F "%y = scale(%x) {by=}\n}\n",
     "4:20: '}' stands here, where the attribute's value (a number, a name, (names) or \"text\") should stand"},
    {F "%y = scale(%x) {by=1 2}\n}\n", "4:22: '2' stands here, where ',' and an attribute, or '}' should stand"},
    {F "%y = scale(%x) {by=1e999}\n}\n", "4:20: 1e999 is out of range"},
    {F "%y = scale(%x) {by=9223372036854775808}\n}\n", "4:20: 9223372036854775808 is out of range"},
    {F "%y = scale(%x) {by=0x10}\n}\n", "4:20: '0x10' is neither a number nor a name"},
    {F "%y = scale(%x) {by=1.2.3}\n}\n", "4:20: '1.2.3' is neither a number nor a name"},
    {F "%y = call @g(%x)\n}\n", "4:11: no function @g stands above; there are: f"},
    {F "keep \"a\\q\"(%x)\n}\n", "4:8: this escape is none of \\\" \\\\ \\n \\t and \\x01 to \\xff"},
    {F "keep \"a\\x00\"(%x)\n}\n", "4:8: this escape is none of \\\" \\\\ \\n \\t and \\x01 to \\xff"},
    {F "keep \"a(%x)\n}\n", "4:6: this string has no end: \" is missing behind it"},
    {F "%y = relu(%)\n}\n",
     "4:11: a name must stand directly behind '%': letters, digits, '_' and '.', no digit first"},
    {F "%y = relu(%x) ;\n}\n", "4:15: ';' begins nothing here: *"},
    {F "\"\xc3\xa4\xc3\xb6\" ;\n}\n",
     "4:1: '\"\xc3\xa4\xc3\xb6\"' stands here, where an op, 'return' or '}' should stand"},
    {F "%y = relu(%x) # \xc3\xa4\n \xe2\x82\xac\n}\n", "5:2: '\xe2\x82\xac' begins nothing here: *"},
    {F "return %x\n%y = relu(%x)\n}\n",
     "5:1: '%y' stands here, where '}', since 'return' ends a function, should stand"},
    {F "%y = relu(%x) : fp32[b_12345678901234567890123=2]\n}\n",
     "4:22: 'b_12345678901234567890123' is too long: this kind of name has at most 23 letters"},
    {F "}\nclass a at pp=0 {\n}\n", "5:12: 'pp' is not an axis of the mesh; there are: dp, tp"},
    {F "}\nclass a at dp=2 {\n}\n", "5:15: 2 is out of range: a coordinate on this axis is from 0 to 1"},
    {F "}\nclass a at dp=1, dp=0 {\n}\n", "5:18: axis dp is given twice: a class is at one coordinate"},
    {F "}\nclass a {\n}\n", "6:1: '}' stands here, where 'chunk' or 'steps' and a list such as F0.0 B0.0 should stand"},
    {F "}\nclass a {\nsteps\n}\nclass a {\nsteps\n}\n", "8:7: class a is there already"},
    {F "}\nclass a {\nchunk 0 forward @g\nsteps\n}\n", "6:17: no function @g stands above; there are: f"},
    {F "}\nclass a {\nchunk 0 sideways @f\nsteps\n}\n", "6:9: 'sideways' stands here, where 'forward', 'backward' or "
                                                        "'weights' and a function, or 'microbatches' should stand"},
    {F "}\nclass a {\nchunk 0 forward @f forward @f\nsteps\n}\n", "6:20: 'forward' is given twice"},
    {F "}\nclass a {\nsteps F0.0 G0.0\n}\n", "6:12: 'G0.0' stands here, where a step (F, B or W with chunk and "
                                             "microbatch: F0.0), 'update' or '}' should stand"},
    {F "}\nclass a {\nsteps F0\n}\n", "6:7: 'F0' stands here, where a step *"},
    {F "}\nclass a {\nsteps F0.99999999999\n}\n", "6:7: 'F0.99999999999' stands here, where a step *"},
    {F "}\nclass a {\nsteps F0.0\nupdate @f\nF0.1\n}\n", "8:1: 'F0.1' stands here, where '}' should stand"},
    {"plir 1 model m\nfunc @f\x01() {\n}\n", "2:8: control character 0x01"},
    {"plir 1 model m\nfunc @f\xff() {\n}\n", "2:8: byte 0xff is not UTF-8"},
};

/* `wanted` may end in '*', and begin with a place and '*'. */
static bool fits(const char *message, const char *wanted) {
  const char *star = strchr(wanted, '*');
  if (star == NULL) return strcmp(message, wanted) == 0;
  if (strncmp(message, wanted, (size_t)(star - wanted)) != 0) return false;
  const char *last = strrchr(wanted, '*');
  char middle[64];
  snprintf(middle, sizeof middle, "%.*s", last > star ? (int)(last - star) - 1 : 0, star + 1);
  return strstr(message + (star - wanted), middle) != NULL;
}

static void each_error_has_its_place(void **state) {
  (void)state;
  int n_others = 0;
  for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
    pl_ir_module module;
    pl_error error;
    pl_code code = parse(wrongs[i].text, &module, &error);
    if (code != PL_BAD_INPUT || strncmp(error.message, "t:", 2) != 0 || !fits(error.message + 2, wrongs[i].message))
      n_others++,
          print_error("case %zu:\n%s\nsays   %s\nwanted t:%s\n", i, wrongs[i].text, error.message, wrongs[i].message);
  }
  assert_int_equal(n_others, 0);
}

/* ---- the line and the caret ---- */

static char *shown(const char *text, pl_ir_place place) {
  char *out;
  size_t size;
  FILE *stream = open_memstream(&out, &size);
  assert_non_null(stream);
  pl_ir_source_show(stream, text, strlen(text), place);
  assert_int_equal(fclose(stream), 0);
  return out;
}

static void a_caret_shows_the_place(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  pl_ir_place place;
  pl_fail(&error, PL_BAD_INPUT, "a:b.plir:12:7: wrong");
  assert_true(pl_ir_error_place(&error, "a:b.plir", &place));
  assert_int_equal(place.line, 12);
  assert_int_equal(place.column, 7);
  assert_false(pl_ir_error_place(&error, "a", &place));
  assert_false(pl_ir_error_place(&error, "b.plir", &place));
  char *text = shown("one\n\t\xc3\xa4x = y\r\nthree", (pl_ir_place){2, 5});
  assert_string_equal(text, "    2 |  \xc3\xa4x = y\n      |     ^\n");
  free(text);
  char line[301];
  memset(line, 'x', 300);
  line[300] = '\0';
  line[199] = '!';
  text = shown(line, (pl_ir_place){1, 200});
  size_t second = strcspn(text, "\n") + 1;
  assert_int_equal(text[strcspn(text + second, "^")], '!');
  assert_true(strlen(text) < 300);
  free(text);
  text = shown("one\n", (pl_ir_place){3, 1});
  assert_string_equal(text, "");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_is_what_was_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(all_of_it_is_there, set_up, tear_down),
      cmocka_unit_test_setup_teardown(text_may_be_written_otherwise, set_up, tear_down),
      cmocka_unit_test_setup_teardown(layouts_follow_from_operands, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_line_is_long, set_up, tear_down),
      cmocka_unit_test_setup_teardown(names_and_reasons, set_up, tear_down),
      cmocka_unit_test_setup_teardown(each_error_has_its_place, set_up, tear_down),
      cmocka_unit_test(a_caret_shows_the_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
