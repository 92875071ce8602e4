/* The k-th allocation of the scan and of the outline fails, for every k: an error, never a crash, and success once
 * there is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform_outline.h"
#include "netmodel/platform_scan.h"

#define PLATFORM "tests/unit/platforms/two-nodes.xml"

static void test_scan(void **state) {
  (void)state;
  static const char name[] = PLATFORM;
  char text[8192];
  FILE *file = fopen(name, "r");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  for (int64_t k = 0;; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_platform_scan scan;
    pl_error error = PL_ERROR_INIT;
    pl_code code = pl_platform_scan_text(name, text, size, NULL, &arena, &scan, &error);
    assert_int_equal(code, error.code);
    pl_arena_release(&arena);
    if (code == PL_OK) {
      assert_true(k > 5);
      return;
    }
    assert_int_equal(code, PL_NO_MEMORY);
  }
}

static void check_outline(const char *path, uint32_t n_zones) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  pl_code code = PL_NO_MEMORY;
  for (int64_t k = 0; code == PL_NO_MEMORY; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_outline outline;
    error = PL_ERROR_INIT;
    code = pl_platform_outline_take(platform, &arena, &outline, &error);
    assert_int_equal(code, error.code);
    if (code == PL_OK) assert_int_equal(outline.n_zones, n_zones);
    pl_arena_release(&arena);
  }
  assert_int_equal(code, PL_OK);
  pl_platform_destroy(platform);
}

static void test_outline(void **state) {
  (void)state;
  check_outline(PLATFORM, 3);
}

/* With CPU sockets, of two models. */
static void test_outline_with_sockets(void **state) {
  (void)state;
  check_outline("platforms/amp-hetero-cluster.xml", 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan), cmocka_unit_test(test_outline),
                                     cmocka_unit_test(test_outline_with_sockets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
