/* Perfetto's files: any bytes give valid ranks or one message. */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/perfetto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&trace);
  if (pl_perfetto_parse("fuzz.json", (const char *)data, size, &trace, &error) == PL_OK)
    PL_ASSERT(trace.n_ranks > 0);
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.json:") == error.message);
  bool sorted = error.code == PL_OK;
  for (uint32_t r = 1; r < trace.n_ranks; r++)
    sorted = sorted && trace.ranks[r - 1].number < trace.ranks[r].number; /* import sorts them */
  if (sorted) PL_ASSERT(pl_trace_is_valid(&trace));
  pl_trace_release(&trace);
  return 0;
}
