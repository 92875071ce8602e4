/* The plain format of traces: any bytes give a valid rank or one message. */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&trace);
  pl_code code = pl_plain_parse("fuzz.json", (const char *)data, size, &trace, &error);
  if (code == PL_OK)
    PL_ASSERT(pl_trace_is_valid(&trace));
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.json:") == error.message);
  pl_trace_release(&trace);
  return 0;
}
