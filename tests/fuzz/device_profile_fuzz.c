/* Device profiles: what is accepted has sane figures and sorted ops; what is refused has a message that begins with the
 * file. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "netmodel/device/device_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in document_fuzz.c: libfyaml loses a little on some malformed input. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void check_profile(const pl_device_profile *p) {
  PL_ASSERT(p->name[0] != '\0' && p->architecture[0] != '\0');
  PL_ASSERT(p->memory_bytes > p->reserved_bytes && p->reserved_bytes >= 0 && isfinite(p->memory_bytes));
  PL_ASSERT(p->bandwidth_Bps > 0 && p->launch_overhead_s >= 0);
  PL_ASSERT(p->compute_efficiency > 0 && p->compute_efficiency <= 1);
  PL_ASSERT(p->attention_efficiency > 0 && p->bandwidth_efficiency > 0);
  PL_ASSERT(p->overlap_compute >= 0 && p->overlap_communication >= 0);
  for (uint32_t i = 0; i < p->n_ops; i++) {
    PL_ASSERT(p->ops[i].time_s > 0);
    if (i > 0) PL_ASSERT(strcmp(p->ops[i - 1].kind, p->ops[i].kind) <= 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_device_profile profile;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_device_profile_parse("fuzz", (const char *)data, size, &arena, &profile, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK)
    check_profile(&profile);
  else
    PL_ASSERT(strncmp(error.message, "fuzz:", 5) == 0);
  pl_arena_release(&arena);
  return 0;
}
