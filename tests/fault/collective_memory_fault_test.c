/* Groups and both forms of every collective when the k-th take of the arena fails, for every k: one clean status, an
 * empty result, nothing leaked; and how many takes each may cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "tests/support/collective_profile.h"
#include "tests/support/synthetic_cluster.h"

static const uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
enum { N_MEMBERS = 16 };

static void group_survives(synthetic_wiring wiring, const pl_collective_profile *profile, int64_t budget) {
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 2, .wiring = wiring});
  int64_t takes = 0;
  for (;; takes++) {
    pl_arena arena;
    pl_error error = PL_ERROR_INIT;
    pl_collective_options options = {.profile = profile};
    pl_collective_group *group;
    pl_arena_init(&arena, 0);
    arena.fail_after = takes;
    pl_code code = pl_collective_group_take(cluster, members, N_MEMBERS, &options, &arena, &group, &error);
    assert_true((code == PL_OK) == (group != NULL));
    pl_arena_release(&arena);
    if (code == PL_OK) break;
    assert_int_equal(code, PL_NO_MEMORY);
    assert_int_equal(error.code, PL_NO_MEMORY);
  }
  assert_in_range(takes, 1, budget);
  synthetic_cluster_release(cluster);
}

static void groups(void **unused) {
  (void)unused;
  pl_arena memory;
  pl_arena_init(&memory, 0);
  for (int tuned = 0; tuned < 2; tuned++) {
    const pl_collective_profile *profile = tuned ? shipped_collective_profile(&memory) : NULL;
    group_survives(SYNTHETIC_NVSWITCH, profile, 40);
    group_survives(SYNTHETIC_PCIE, profile, 40);
    group_survives(SYNTHETIC_CUBE_MESH, profile, 816); /* one trial usage per choice of ring and entry */
  }
  pl_arena_release(&memory);
}

/* Returns the code of the fluid (chunks = 0) or chunked form with `takes` takes left, and checks that failure leaves
 * nothing. */
static pl_code lower(const pl_collective_group *group, int kind, uint32_t chunks, int64_t takes) {
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_fluid_collective fluid = {0};
  pl_chunked_collective chunked = {0};
  pl_arena_init(&arena, 0);
  arena.fail_after = takes;
  pl_code code = chunks == 0
                     ? pl_collective_fluid(group, (pl_collective_kind)kind, 1e6, &arena, &fluid, &error)
                     : pl_collective_chunked(group, (pl_collective_kind)kind, 1e6, chunks, &arena, &chunked, &error);
  pl_arena_release(&arena);
  if (code != PL_OK) {
    assert_int_equal(code, PL_NO_MEMORY);
    assert_int_equal(error.code, PL_NO_MEMORY);
    assert_true(fluid.spec.n_uses == 0 && fluid.next == NULL && chunked.n_steps == 0 && chunked.steps == NULL);
  }
  return code;
}

static void forms(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 2});
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int choice = 0; choice < 2 * PL_ALGORITHM_COUNT; choice++) {
    pl_collective_options options = {.algorithm = (pl_collective_algorithm)(choice / 2),
                                     .profile = choice % 2 ? shipped_collective_profile(&arena) : NULL};
    pl_collective_group *group;
    assert_int_equal(pl_collective_group_take(cluster, members, N_MEMBERS, &options, &arena, &group, NULL), PL_OK);
    for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++)
      for (uint32_t chunks = 0; chunks <= 2; chunks++) {
        int64_t takes = 0;
        while (lower(group, kind, chunks, takes) != PL_OK)
          takes++;
        assert_in_range(takes, 0, 400);
      }
  }
  pl_arena_release(&arena);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
