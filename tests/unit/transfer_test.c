/* Solo rates and durations of transfers, and the predicate that guards the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "core/cluster/transfer.h"

static const double capacity[] = {100.0, 10.0, 60.0};
static const uint8_t policy[] = {PL_LINK_SHARED, PL_LINK_SHARED, PL_LINK_FATPIPE};
static const pl_link_use uses[] = {{0, 1.0}, {1, 1.0}, {0, 14.0}, {2, 2.0}};
static const pl_transfer_spec specs[] = {
    {0, 2, INFINITY, 1.0, 5, 0, 1},             /* the slow link binds: 10 B/s */
    {2, 2, INFINITY, 1.0, 0, PL_NONE, PL_NONE}, /* 100 / 14 B/s */
    {0, 1, 25.0, 1.0, 3, 0, 1},                 /* the cap binds */
    {0, 0, INFINITY, 1.0, 7, 0, 1},             /* only latency */
};
static const pl_transfer_table table = {capacity, policy, 3, specs, 4, uses, 4};

static void solo(void **state) {
  (void)state;
  assert_true(pl_transfer_solo_rate(&table, 0) == 10.0);
  assert_true(pl_transfer_solo_rate(&table, 1) == 100.0 / 14.0);
  assert_true(pl_transfer_solo_rate(&table, 2) == 25.0);
  assert_true(pl_transfer_solo_rate(&table, 3) == INFINITY);
  assert_int_equal(pl_transfer_solo_ticks(&table, 0, 20.0), 5 + 2 * (pl_ticks)PL_TICKS_PER_S);
  assert_int_equal(pl_transfer_solo_ticks(&table, 0, 0.0), 5);
  assert_int_equal(pl_transfer_solo_ticks(&table, 1, 50.0), 7 * (pl_ticks)PL_TICKS_PER_S);
  assert_int_equal(pl_transfer_solo_ticks(&table, 3, 1e9), 7);
  assert_int_equal(pl_transfer_solo_ticks(&table, 0, 1e300), PL_TICKS_MAX); /* saturates instead of wrapping */
}

static bool valid_with(pl_transfer_spec spec, const pl_link_use *with) {
  pl_transfer_table changed = table;
  changed.specs = &spec;
  changed.n_specs = 1;
  if (with != NULL) changed.uses = with;
  return pl_transfer_table_is_valid(&changed);
}

static void validity(void **state) {
  (void)state;
  assert_true(pl_transfer_table_is_valid(&table));
  pl_transfer_spec good = specs[0];
  assert_true(valid_with(good, NULL));
#define BROKEN(change)                                                                                                 \
  do {                                                                                                                 \
    pl_transfer_spec spec = good;                                                                                      \
    spec.change;                                                                                                       \
    assert_false(valid_with(spec, NULL));                                                                              \
  } while (0)
  BROKEN(first_use = 3);
  BROKEN(n_uses = 5);
  BROKEN(first_use = UINT32_MAX);
  BROKEN(rate_cap_Bps = 0.0);
  BROKEN(rate_cap_Bps = NAN);
  BROKEN(share_weight = 0.0);
  BROKEN(share_weight = INFINITY);
  BROKEN(latency = -1);
#undef BROKEN
  const pl_link_use twice[4] = {{1, 1.0}, {1, 1.0}, {0, 1.0}, {0, 1.0}};
  const pl_link_use apart[4] = {{1, 1.0}, {0, 1.0}, {1, 1.0}, {0, 1.0}};
  const pl_link_use beyond[4] = {{0, 1.0}, {3, 1.0}, {0, 1.0}, {0, 1.0}};
  const pl_link_use weightless[4] = {{0, 1.0}, {1, 0.0}, {0, 1.0}, {0, 1.0}};
  const pl_link_use unsorted[4] = {{2, 1.0}, {0, 1.0}, {1, 1.0}, {0, 1.0}};
  pl_transfer_spec three = good;
  three.n_uses = 3;
  assert_false(valid_with(good, twice));
  assert_false(valid_with(three, apart));
  assert_false(valid_with(good, beyond));
  assert_false(valid_with(good, weightless));
  assert_true(valid_with(three, unsorted));
  pl_transfer_table changed = table;
  const double dead[] = {100.0, 0.0, 60.0};
  changed.link_capacity_Bps = dead;
  assert_false(pl_transfer_table_is_valid(&changed));
  const uint8_t odd[] = {0, 2, 1};
  changed = table;
  changed.link_policy = odd;
  assert_false(pl_transfer_table_is_valid(&changed));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(solo), cmocka_unit_test(validity)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
