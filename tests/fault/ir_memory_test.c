/* Programs as text: the k-th allocation of the reader fails, for every k: it says so and nothing else happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/system/text_file.h"
#include "workloads/language/ir_text.h"

static void every_allocation_fails_once(void **state) {
  (void)state;
  char *text;
  size_t size;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(
      pl_text_file_load(PACELINE_SOURCE_DIR "/workloads/programs/mlp-2-stages.plir", 1 << 20, &text, &size, &error),
      PL_OK);
  int64_t k = 0;
  for (pl_code code = PL_NO_MEMORY; code != PL_OK; k++) {
    pl_arena arena;
    pl_ir_module module;
    pl_arena_init(&arena, 1 << 12);
    arena.fail_after = k;
    error = PL_ERROR_INIT;
    code = pl_ir_parse("t", text, size, &arena, &module, &error);
    if (code != PL_OK && (code != PL_NO_MEMORY || error.code != PL_NO_MEMORY))
      fail_msg("allocation %lld: %s", (long long)k, error.message);
    pl_arena_release(&arena);
  }
  print_message("%lld allocations\n", (long long)k - 1);
  assert_true(k > 100);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
