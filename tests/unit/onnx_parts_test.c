/* Parts of the ONNX reader: the wire format, repeats in a sequence, axes that are taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/text/wire.h"
#include "workloads/onnx/axes.h"
#include "workloads/onnx/repeats.h"

static void reads_fields_where_they_lie(void **state) {
  (void)state;
  static const uint8_t bytes[] = {0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i', 0x1d, 0x00, 0x00, 0x80, 0x3f};
  pl_wire_message wire = pl_wire_of(bytes, sizeof(bytes));
  pl_wire_field field;
  assert_true(pl_wire_next(&wire, &field) && field.number == 1 && field.value == 150);
  assert_true(pl_wire_next(&wire, &field) && field.number == 2 && field.size == 2 && field.data == bytes + 5);
  assert_true(pl_wire_next(&wire, &field) && pl_wire_float(field.value) == 1.0f);
  assert_false(pl_wire_next(&wire, &field) || wire.broken);
  for (size_t n = 1; n < sizeof(bytes); n++) { /* cut off inside of a field */
    wire = pl_wire_of(bytes, n);
    while (pl_wire_next(&wire, &field))
      ;
    assert_int_equal(wire.broken, n != 3 && n != 7);
  }
}

static void check_repeats(const char *text, const char *expected) {
  pl_arena arena;
  uint64_t signs[64];
  double weights[64];
  int32_t n = (int32_t)strlen(text), found;
  char made[200] = "";
  pl_arena_init(&arena, 0);
  for (int32_t i = 0; i < n; i++) {
    signs[i] = (uint64_t)text[i];
    weights[i] = text[i] == '.' ? 0 : 1;
  }
  const pl_repeat *repeats = pl_repeats_take(n, signs, weights, &arena, &found);
  for (int32_t i = 0; i < found; i++)
    snprintf(made + strlen(made), sizeof(made) - strlen(made), "%s%.*s*%d", i > 0 ? " " : "", repeats[i].period,
             text + repeats[i].first, repeats[i].count);
  assert_string_equal(made, expected);
  pl_arena_release(&arena);
}

static void finds_what_repeats(void **state) {
  (void)state;
  check_repeats("abcbcbcd", "a*1 bc*3 d*1");
  check_repeats("eamamamfh", "e*1 am*3 fh*1");
  check_repeats("namnamna", "na*1 mna*2"); /* as far back as it goes: what is over stands in front */
  check_repeats("sabbcddd", "sa*1 b*2 c*1 d*3");
  check_repeats("abcd", "abcd*1");
  check_repeats("....", "....*1"); /* nothing that weighs */
}

static void takes_axes_apart_for_both(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_axes axes = {.arena = &arena};
  pl_axis_list split = {0}, list = {0};
  int32_t whole = pl_axis_new(&axes, 768);
  split.leaf[split.n++] = pl_axis_new(&axes, 12);
  split.leaf[split.n++] = pl_axis_new(&axes, 64);
  assert_true(pl_axis_unite(&axes, whole, pl_axis_of(&axes, &split)));
  assert_true(pl_axis_leaves(&axes, whole, &list) && list.n == 2);
  assert_int_equal(axes.all[list.leaf[0]].extent, 12);
  assert_int_equal(pl_axis_find(&axes, list.leaf[1]), pl_axis_find(&axes, split.leaf[1]));
  int32_t three = pl_axis_new(&axes, 3), four = pl_axis_new(&axes, 4), rest = pl_axis_new(&axes, 4);
  pl_axis_list apart = {.n = 2, .leaf = {three, four}}, other = {.n = 2, .leaf = {rest, pl_axis_new(&axes, 3)}};
  assert_false(pl_axis_unite(&axes, pl_axis_of(&axes, &apart), pl_axis_of(&axes, &other))); /* 3 x 4 is not 4 x 3 */
  pl_arena_release(&arena);
}

static void keeps_copies_apart(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_axes axes = {.arena = &arena};
  int32_t s = pl_axis_new(&axes, 16), t = pl_axis_copy(&axes, s), mask = pl_axis_new(&axes, 16),
          v = pl_axis_new(&axes, 16);
  assert_false(pl_axis_unite(&axes, s, t));
  assert_true(pl_axis_unite(&axes, mask, t));
  assert_false(pl_axis_unite(&axes, mask, s));
  assert_true(pl_axis_unite(&axes, v, s));
  assert_false(pl_axis_unite(&axes, v, mask));
  const pl_axis_list lists[] = {{.n = 2, .leaf = {s, t}}};
  pl_axis_mark(&axes, s, PL_AXIS_TOKENS);
  pl_axes_name_all(&axes, 1, lists);
  assert_string_equal(pl_axis_name(&axes, v).text, "s");
  assert_string_equal(pl_axis_name(&axes, mask).text, "t");
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_fields_where_they_lie),
      cmocka_unit_test(finds_what_repeats),
      cmocka_unit_test(takes_axes_apart_for_both),
      cmocka_unit_test(keeps_copies_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
