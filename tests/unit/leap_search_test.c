/* How many microbatches the attempts to leap play, one after the other, when none of them finds that its state comes
 * back: from few to all, and never more in one attempt than its memory allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/run/leap.h"

static const pl_engine_result nothing = {.n_phases = 1}, lags = {.n_phases = 1, .lag = 0.01};

/* `lagging` bit per attempt, from the first one on: its lanes lag. */
static void assert_attempts(const pl_leap_outlook *outlook, uint32_t lagging, const int32_t *played, int n) {
  pl_leap_search search = pl_leap_search_of(outlook, true);
  for (int at = 0; at < n; at++) {
    assert_int_equal(search.played, played[at]);
    assert_int_equal(search.leapt, outlook->fewest - played[at]);
    assert_int_equal(search.leapt % search.round, 0);
    if (at + 1 < n) pl_leap_search_go_on(&search, (lagging >> at & 1) != 0 ? &lags : &nothing);
  }
  assert_int_equal(search.leapt, 0); /* the last attempt is the whole */
}

#define ASSERT_ATTEMPTS(outlook, lagging, ...)                                                                         \
  do {                                                                                                                 \
    const int32_t wanted[] = {__VA_ARGS__};                                                                            \
    assert_attempts((outlook), (lagging), wanted, (int)(sizeof wanted / sizeof *wanted));                              \
  } while (0)

/* GPT-3 175B over 32 stages in three chunks each: 98 microbatches fill it, settle and come back, in rounds of 32. */
static void rounds_are_added_before_they_are_doubled(void **state) {
  (void)state;
  const pl_leap_outlook outlook = {.recurs = true, .fewest = 3072, .round = 32, .filling = 32};
  ASSERT_ATTEMPTS(&outlook, 0, 128, 160, 256, 512, 1024, 3072);
  ASSERT_ATTEMPTS(&outlook, 1, 128, 160, 256, 512, 1024, 3072);
  ASSERT_ATTEMPTS(&outlook, 7, 128, 160, 256, 3072); /* the added round is no second attempt to lag in */
}

/* 64 stages of 1F1B. */
static void lanes_that_lag_are_given_much_longer_once(void **state) {
  (void)state;
  pl_leap_outlook outlook = {.recurs = true, .fewest = 24576, .round = 1, .filling = 64};
  ASSERT_ATTEMPTS(&outlook, 7, 68, 136, 544, 24576);
  ASSERT_ATTEMPTS(&outlook, 3, 68, 136, 544, 24576);
  ASSERT_ATTEMPTS(&outlook, 5, 68, 136, 272, 544, 24576);
  outlook.fewest = 3072; /* of which 544 are more than a sixth */
  ASSERT_ATTEMPTS(&outlook, 3, 68, 136, 3072);
}

/* Whatever the batch. */
static void no_attempt_takes_more_than_its_memory(void **state) {
  (void)state;
  for (int32_t filling = 2; filling <= 128; filling *= 2) {
    const pl_leap_outlook outlook = {.recurs = true, .fewest = 1 << 20, .round = 1, .filling = filling};
    pl_leap_search search = pl_leap_search_of(&outlook, true);
    int n_attempts = 1;
    for (; search.leapt > 0; pl_leap_search_go_on(&search, &nothing), n_attempts++)
      assert_true((int64_t)search.played * search.settling <= 40000);
    assert_in_range(n_attempts, 3, 14);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounds_are_added_before_they_are_doubled),
      cmocka_unit_test(lanes_that_lag_are_given_much_longer_once),
      cmocka_unit_test(no_attempt_takes_more_than_its_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
