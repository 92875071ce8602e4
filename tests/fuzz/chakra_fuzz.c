/* Chakra traces: any bytes give a valid rank or one message; what was read is written, and read again as the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/chakra.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const pl_trace *trace) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  pl_error error = PL_ERROR_INIT;
  pl_trace again;
  pl_trace_init(&again);
  PL_ASSERT(file != NULL && pl_chakra_write(file, trace, 0, &error) == PL_OK && fclose(file) == 0);
  PL_ASSERT(pl_chakra_parse("again.et", (const uint8_t *)text, size, 0, NULL, &again, &error) == PL_OK);
  PL_ASSERT(again.n_ops == trace->n_ops && again.n_messages == trace->n_messages);
  for (uint32_t k = 0; k < trace->n_ops; k++)
    PL_ASSERT(again.ops[k].start_ns == trace->ops[k].start_ns && again.ops[k].duration_ns == trace->ops[k].duration_ns);
  pl_trace_release(&again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&trace);
  pl_code code = pl_chakra_parse("fuzz.et", data, size, 0, NULL, &trace, &error);
  if (code == PL_OK) {
    PL_ASSERT(pl_trace_is_valid(&trace));
    if (trace.ranks[0].number <= INT32_MAX) check_round_trip(&trace);
  } else {
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.et:") == error.message);
  }
  pl_trace_release(&trace);
  return 0;
}
