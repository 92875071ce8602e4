/* Kineto: any bytes give a valid rank or one message. */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/kineto_events.h"
#include "workloads/trace/clocks.h"
#include "workloads/trace/meetings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_kineto kineto = {.path = NULL};
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&trace);
  uint32_t host = pl_trace_name(&trace, "host", 4);
  pl_code code = pl_kineto_parse(&kineto, "fuzz.json", (const char *)data, size, &trace, &error);
  if (code == PL_OK) code = pl_kineto_add_rank(&kineto, 0, host, &trace, &error);
  pl_kineto_release(&kineto);
  if (code == PL_OK) {
    PL_ASSERT(pl_trace_is_valid(&trace));
    pl_trace_meetings meetings;
    pl_trace_clocks clocks;
    PL_ASSERT(pl_trace_meetings_make(&trace, &meetings, &error) == PL_OK); /* one rank cannot part */
    PL_ASSERT(pl_trace_clocks_make(&trace, &meetings, &clocks, &error) == PL_OK);
    pl_trace_clocks_release(&clocks);
    pl_trace_meetings_release(&meetings);
  } else {
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.json:") == error.message);
  }
  pl_trace_release(&trace);
  return 0;
}
