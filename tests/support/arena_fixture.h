/* The arena of a test program: set_up and tear_down are for cmocka, around each test or around all. */
#ifndef PL_TESTS_SUPPORT_ARENA_FIXTURE_H
#define PL_TESTS_SUPPORT_ARENA_FIXTURE_H

#include "core/base/arena.h"

static pl_arena arena;

static int set_up(void **state) {
  (void)state;
  pl_arena_init(&arena, 0);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  pl_arena_release(&arena);
  return 0;
}

#endif
