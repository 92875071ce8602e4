/* nsys' databases: any bytes give valid ranks or one message. */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/nsys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t rank(void *context, const char *path, uint32_t place, uint32_t n) {
  (void)context;
  (void)path;
  return n < 1000 ? (int64_t)place : -1;
}

static uint32_t host(void *context, const char *path, int64_t number, uint32_t n) {
  (void)path;
  (void)number;
  (void)n;
  return pl_trace_name(context, "host", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&trace);
  const pl_nsys_names names = {rank, host, &trace};
  if (pl_nsys_parse("fuzz.sqlite", data, size, &names, &trace, &error) == PL_OK)
    PL_ASSERT(pl_trace_is_valid(&trace));
  else
    PL_ASSERT((error.code == PL_BAD_INPUT || error.code == PL_IO || error.code == PL_NO_MEMORY) &&
              strstr(error.message, "fuzz.sqlite:") == error.message);
  pl_trace_release(&trace);
  return 0;
}
