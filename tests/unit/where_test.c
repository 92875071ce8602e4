/* Conditions on result rows: what they mean, and where their errors point. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "search/command/where.h"

/* One row: pp 4, tmp 8, fits, schedule 1f1b, iter_time_s 2.5, mfu NaN, status oom, digest ab.., candidate 17. */
static pl_where_value get(void *context, uint32_t column) {
  (void)context;
  if (column == pl_result_n_columns) return (pl_where_value){.number = 17};
  const char *name = pl_result_columns[column].name;
  if (strcmp(name, "pp") == 0) return (pl_where_value){.number = 4};
  if (strcmp(name, "tmp") == 0) return (pl_where_value){.number = 8};
  if (strcmp(name, "fits") == 0) return (pl_where_value){.number = 1};
  if (strcmp(name, "iter_time_s") == 0) return (pl_where_value){.number = 2.5};
  if (strcmp(name, "mfu") == 0) return (pl_where_value){.number = (double)NAN};
  if (strcmp(name, "status") == 0) return (pl_where_value){.number = PL_RESULT_OOM};
  if (strcmp(name, "schedule") == 0) return (pl_where_value){.text = "1f1b", .length = 4};
  if (strcmp(name, "run_digest") == 0) return (pl_where_value){.text = "ab00000000000000", .length = 16};
  return (pl_where_value){0};
}

static void holds_or_not(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool holds;
  } cases[] = {
      {"fits and tmp<=8", true},
      {"fits and tmp<8", false},
      {"tmp=8", true},
      {"sp", false},
      {"not sp", true},
      {"not not fits", true},
      {"true", true},
      {"false or fits", true},
      {"sp or sp and fits", false},
      {"fits or sp and sp", true}, /* and binds tighter */
      {"(fits or sp) and sp", false},
      {"not sp and fits", true},
      {"not (sp or fits)", false},
      {"schedule == '1f1b'", true},
      {"schedule != \"gpipe\"", true},
      {"schedule < '1f1c'", true},
      {"schedule == '1f1'", false},
      {"'1f1b' == schedule", true},
      {"run_digest == 'ab00000000000000'", true},
      {"status == 'oom'", true},
      {"'done' = status", false},
      {"status == 2", true},
      {"candidate >= 17", true},
      {"pp * tmp == 32", true},
      {"pp + tmp * 2 - 1 == 19", true},
      {"16 / pp / 2 == 2", true},
      {"-pp < -3", true},
      {"iter_time_s > 2.4e0 and iter_time_s < .26e1", true},
      {"mfu < 1 or mfu >= 1 or mfu == mfu", false}, /* NaN */
      {"mfu != 0", true},
      {"mfu", false},
      {"1/0 > 5", true},
      {"\tfits\n", true},
  };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_where *where;
    pl_error error = PL_ERROR_INIT;
    if (pl_where_take(cases[i].text, pl_result_column_list, &arena, &where, &error) != PL_OK)
      fail_msg("%s: %s", cases[i].text, error.message);
    if (pl_where_holds(where, get, NULL) != cases[i].holds) fail_msg("%s: expected %d", cases[i].text, cases[i].holds);
  }
  pl_arena_release(&arena);
}

static void points_at_the_mistake(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "column 1"},
      {"fits and", "column 9"},
      {"fits tmp", "column 6"},
      {"(fits", "column 6"},
      {"fits)", "column 5"},
      {"tmp <= ", "column 8"},
      {"tmp << 8", "column 6"},
      {"tmp < 8 < 9", "column 9"},
      {"tmpp == 8", "near: tmp"},
      {"iter_time < 3", "near: iter_time_s"},
      {"schedule == 3", "column 13"},
      {"schedule", "column 1"},
      {"schedule and fits", "column 1"},
      {"schedule == '1f1b", "column 13"},
      {"-schedule == 3", "column 2"},
      {"tmp == '8'", "column 8"},
      {"status == 'lost'", "'pending', 'done', 'oom', 'failed'"},
      {"tmp == 0x8", "hexadecimal"},
      {"tmp == 8x", "column 9"},
      {"tmp == 1.2.3", "column 11"},
      {"fits & tmp", "column 6"},
      {"\xff", "column 1"},
  };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_where *where;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_where_take(cases[i].text, pl_result_column_list, &arena, &where, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i].message) == NULL) fail_msg("%s: %s", cases[i].text, error.message);
  }
  pl_arena_release(&arena);
}

static void refuses_depth_and_length(void **state) {
  (void)state;
  char text[8192];
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t kind = 0; kind < 3; kind++) {
    pl_where *where;
    pl_error error = PL_ERROR_INIT;
    size_t n = 0;
    for (int i = 0; i < 800; i++)
      n += (size_t)sprintf(text + n, "%s", kind == 1 ? "not " : kind == 0 ? "(" : "-");
    strcpy(text + n, "pp");
    assert_int_equal(pl_where_take(text, pl_result_column_list, &arena, &where, &error), PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "nested too deeply"));
  }
  size_t n = (size_t)sprintf(text, "pp");
  for (int i = 0; i < 1000; i++)
    n += (size_t)sprintf(text + n, "+pp");
  pl_where *where;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_where_take(text, pl_result_column_list, &arena, &where, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "too long"));
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(holds_or_not),
      cmocka_unit_test(points_at_the_mistake),
      cmocka_unit_test(refuses_depth_and_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
