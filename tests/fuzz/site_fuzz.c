/* Sites: what is accepted can be asked what it says of any configuration; what is refused has a message that begins
 * with the file. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "workloads/run/site_file.h"
#include "workloads/run/site_interval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in document_fuzz.c: libfyaml loses a little on some malformed input. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void check_site(const pl_site *site) {
  static const pl_configuration at = {.number = {16, 1e9, 1024, 1, 4, 1, 1, 1, 1},
                                      .name = {"T4", "megatron-lm-1.1.5", "fp16", "none"}};
  const double x[PL_SITE_COUNT] = {0.5, 0.2};
  const pl_remaining remaining = pl_remaining_at(site->remains, &at);
  PL_ASSERT(remaining.variance >= 0 && remaining.likeness >= 0 && remaining.likeness <= 1);
  double half = pl_site_half_width(site, x, &remaining);
  PL_ASSERT(half >= 0 && !isnan(half));
  for (uint32_t i = 0; site->remains != NULL && i < site->remains->n; i++)
    for (int k = 0; k < PL_LIKENESS_N_NAMES; k++)
      PL_ASSERT(site->remains->points[i].name[k] != NULL && site->remains->points[i].number[k] >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_site site;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_site_parse("fuzz", (const char *)data, size, &arena, &site, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK)
    check_site(&site);
  else
    PL_ASSERT(code == PL_BAD_INPUT && strncmp(error.message, "fuzz:", 5) == 0);
  pl_arena_release(&arena);
  return 0;
}
