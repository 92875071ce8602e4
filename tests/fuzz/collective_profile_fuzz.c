/* Collective profiles: what is accepted has figures that price anything; what is refused has a message that begins with
 * the file. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "netmodel/collective/collective_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in document_fuzz.c: libfyaml loses a little on some malformed input. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void check_price(const pl_wiring *inside, const pl_wiring *between) {
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++) {
    const pl_tuned_work work = {.algorithm = (pl_tuned)algorithm,
                                .latency_us = 1,
                                .inside_steps = 3,
                                .between_steps = 2,
                                .inside_us = 10,
                                .between_us = between != NULL ? 20 : 0,
                                .nic_us = between != NULL ? 15 : 0,
                                .nic_GBps = 25};
    pl_tuned_time time = pl_tuned_time_of(inside, between, &work);
    PL_ASSERT(isinf(time.latency_us) || (time.latency_us >= 1 && time.transfer_us >= 10 && isfinite(time.transfer_us)));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_collective_profile profile;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_collective_profile_parse("fuzz", (const char *)data, size, &arena, &profile, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    for (uint32_t i = 0; i < profile.n_inside; i++)
      check_price(&profile.inside[i], profile.n_between > 0 ? &profile.between[0] : NULL);
  } else {
    PL_ASSERT(strncmp(error.message, "fuzz:", 5) == 0);
  }
  pl_arena_release(&arena);
  return 0;
}
