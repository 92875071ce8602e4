/* Schedules that a file lists: any text is either refused with one message that says where, or every stage of it runs
 * every pass once, and its steps can be told. */
#include <stdint.h>
#include <string.h>

#include "workloads/strategy/listed_schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stage(const pl_strategy *strategy, int32_t stage) {
  const pl_schedule schedule = pl_schedule_of(strategy, strategy->listed->n_microbatches, stage);
  pl_schedule_cursor cursor = {0};
  int64_t n_of[PL_STEP_KIND_COUNT] = {0}, n_last = 0;
  for (int64_t i = pl_schedule_n_steps(&schedule); i-- > 0;) {
    const pl_schedule_step step = pl_schedule_next(&schedule, &cursor);
    n_of[step.kind]++;
    n_last += step.last;
  }
  PL_ASSERT(n_of[PL_STEP_FORWARD] == schedule.n_passes && n_last == schedule.vpp);
  PL_ASSERT(n_of[PL_STEP_BACKWARD] + n_of[PL_STEP_INPUTS] == schedule.n_passes);
  PL_ASSERT(n_of[PL_STEP_INPUTS] == n_of[PL_STEP_WEIGHTS]);
  int32_t most = pl_schedule_in_flight(&schedule), allowed = strategy->listed->most_held;
  PL_ASSERT(most > 0 && (allowed == 0 || most <= allowed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  char *text = pl_arena_take(&arena, size + 1, 1);
  PL_ASSERT(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0';
  const pl_listed_schedule *listed = NULL;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_listed_schedule_parse("fuzz.txt", text, size, &arena, &listed, &error);
  PL_ASSERT(code == error.code);
  if (code != PL_OK) {
    PL_ASSERT(code == PL_BAD_INPUT && strncmp(error.message, "fuzz.txt:", 9) == 0);
  } else {
    const pl_strategy strategy = {
        .pp = listed->pp, .vpp = listed->vpp, .schedule = PL_SCHEDULE_LISTED, .listed = listed};
    for (int32_t stage = 0; stage < listed->pp; stage++)
      check_stage(&strategy, stage);
  }
  pl_arena_release(&arena);
  return 0;
}
