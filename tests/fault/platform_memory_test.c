/* The k-th allocation of the scan, of the tree of zones and of the outline fails, for every k: an error, never a crash,
 * and success once there is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform_scan.h"
#include "netmodel/platform/zone_tree.h"
#include "netmodel/show/platform_outline.h"

#define PLATFORM "tests/unit/platforms/two-nodes.xml"

enum { TEXT_BYTES = 1 << 16 };

static size_t read_platform(char text[TEXT_BYTES]) {
  FILE *file = fopen(PLATFORM, "r");
  assert_non_null(file);
  size_t size = fread(text, 1, TEXT_BYTES, file);
  fclose(file);
  return size;
}

static void test_scan(void **state) {
  (void)state;
  static const char name[] = PLATFORM;
  static char text[TEXT_BYTES];
  size_t size = read_platform(text);
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

/* The tree of zones, its Floyd tables and a route. */
static void test_tree(void **state) {
  (void)state;
  static char text[TEXT_BYTES];
  size_t size = read_platform(text);
  for (int64_t k = 0;; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_zone_tree *tree = pl_zone_tree_take(size, &arena);
    const pl_platform_sink sink = tree != NULL ? pl_zone_tree_sink(tree) : (pl_platform_sink){0};
    pl_platform_scan scan;
    pl_error error = PL_ERROR_INIT;
    pl_code code = PL_NO_MEMORY;
    if (tree != NULL) code = pl_platform_scan_text(PLATFORM, text, size, &sink, &arena, &scan, &error);
    bool is_good = code == PL_OK && pl_zone_tree_finish(tree) == NULL;
    if (is_good) {
      uint32_t links[8], n_links;
      char message[64];
      assert_int_equal(pl_zone_tree_route(tree, 0, 3, links, 8, &n_links, message, sizeof message), PL_SHIM_OK);
      assert_int_equal(n_links, 3);
      assert_true(k > 50);
    }
    assert_true(code == PL_OK || code == PL_NO_MEMORY);
    pl_arena_release(&arena);
    if (is_good) return;
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan), cmocka_unit_test(test_tree),
                                     cmocka_unit_test(test_outline), cmocka_unit_test(test_outline_with_sockets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
