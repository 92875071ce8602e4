/* A training with a host that is a launch queue ahead of the device (workloads/memory/stage_replay.h) against the same
 * without: it holds more, never needs less, and on some devices does not get through where the other does. Without a
 * host that is ahead there is no difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/replayed_stage.h"
#include "workloads/memory/stage_replay.h"

static pl_framework replayed(bool records) {
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  if (pl_framework_load("nanotron", &arena, &framework, &error) != PL_OK) fail_msg("%s", error.message);
  assert_true(framework.memory.allocator == PL_ALLOCATOR_CACHING && framework.memory.records_streams);
  framework.memory.records_streams = records;
  return framework;
}

static pl_replayed_memory replay(const char *text, const pl_framework *framework, double limit_bytes) {
  pl_model model = load_model("workloads/models", "llama-3.2-1b", &arena);
  const pl_job job = {.gbs = 256, .seq = 4096, .dtype = PL_DTYPE_BF16, .flash = true, .framework = framework};
  return replay_stage(&model, &job, NULL, text, 0, limit_bytes, &arena);
}

enum { LIMITS = 40 };

/* On how many of the devices from a third more than is held, where there is enough, down to the tensors' peak the two
 * differ. */
static int differences(const char *text, const pl_framework *with, const pl_framework *without) {
  const pl_replayed_memory enough = replay(text, without, 0);
  int n = 0;
  assert_true(enough.reserved > enough.peak);
  for (int i = 0; i <= LIMITS; i++) {
    double most = 4 * enough.reserved / 3, limit_bytes = most + (enough.peak - most) * i / LIMITS;
    const pl_replayed_memory a = replay(text, with, limit_bytes), b = replay(text, without, limit_bytes);
    assert_true(a.full || !b.full);
    assert_true(i > 0 || (a.reserved >= b.reserved && a.peak == b.peak)); /* there is enough */
    n += a.full != b.full || a.reserved != b.reserved;
  }
  return n;
}

static void a_host_that_is_ahead_needs_no_less(void **state) {
  (void)state;
  const pl_framework with = replayed(true), without = replayed(false);
  assert_true(differences("pp=1,dp=1,tmp=4,mbs=4,sp=1,assign=uniform", &with, &without) > 0);
  assert_true(differences("pp=2,dp=1,tmp=2,mbs=16,sp=1,assign=uniform", &with, &without) > 0);
}

/* Some devices are too small for the one and not for the other. */
static void less_gets_through(void **state) {
  (void)state;
  const pl_framework with = replayed(true), without = replayed(false);
  const char *text = "pp=1,dp=1,tmp=4,mbs=4,sp=1,assign=uniform";
  const pl_replayed_memory enough = replay(text, &without, 0);
  int n = 0;
  for (int i = 0; i <= LIMITS; i++) {
    double limit_bytes = enough.reserved + (enough.peak - enough.reserved) * i / LIMITS;
    n += replay(text, &with, limit_bytes).full && !replay(text, &without, limit_bytes).full;
  }
  assert_true(n > 0);
}

static void nothing_else_changes(void **state) {
  (void)state;
  const pl_framework with = replayed(true), without = replayed(false);
  /* No tensor group: no collective touches an activation. */
  assert_int_equal(differences("pp=2,dp=1,tmp=1,mbs=2,assign=uniform", &with, &without), 0);
  pl_framework waits = replayed(true);
  waits.launch.host_window = PL_HOST_KERNEL;
  assert_int_equal(differences("pp=1,dp=1,tmp=8,mbs=8,sp=1,assign=uniform", &waits, &without), 0);
  pl_framework checked = replayed(true);
  checked.launch.collective_rank_s = 1e-6;
  assert_int_equal(differences("pp=1,dp=1,tmp=8,mbs=8,sp=1,assign=uniform", &checked, &without), 0);
  pl_framework close = replayed(true);
  close.launch.ops_ahead = 0;
  assert_int_equal(differences("pp=1,dp=1,tmp=8,mbs=8,sp=1,assign=uniform", &close, &without), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_host_that_is_ahead_needs_no_less, set_up, tear_down),
      cmocka_unit_test_setup_teardown(less_gets_through, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_else_changes, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
