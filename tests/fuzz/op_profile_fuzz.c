/* Op profiles: any bytes give positive, finite times of known blocks, or one message. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "workloads/cost/op_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_op_profile profile;
  pl_error error = PL_ERROR_INIT;
  if (pl_op_profile_parse("fuzz.csv", (const char *)data, size, &arena, &profile, &error) == PL_OK) {
    PL_ASSERT(profile.n_times >= 1);
    for (uint32_t i = 0; i < profile.n_times; i++) {
      const pl_pass_time *time = &profile.times[i];
      PL_ASSERT(time->time_s > 0 && isfinite(time->time_s) && time->n_rows >= 1 && strlen(time->device) > 0);
      PL_ASSERT(time->tmp >= 1 && time->mbs >= 1 && time->hidden >= 1 && time->seq >= 1);
      PL_ASSERT((unsigned)time->block < PL_BLOCK_KIND_COUNT && (unsigned)time->dtype < PL_DTYPE_COUNT);
    }
  } else {
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.csv") == error.message);
  }
  pl_arena_release(&arena);
  return 0;
}
