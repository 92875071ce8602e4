/* dPRO's folders: four texts, each behind a line of '#', give a valid rank or one message. */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/dpro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text[4] = {NULL};
  size_t length[4] = {0}, left = size;
  const char *at = (const char *)data;
  for (int k = 0; k < 4 && left > 0; k++) {
    const char *end = memmem(at, left, "\n#\n", 3);
    text[k] = at;
    length[k] = end != NULL ? (size_t)(end - at) : left;
    size_t taken = end != NULL ? length[k] + 3 : left;
    at += taken;
    left -= taken;
  }
  const pl_dpro_texts texts = {text[0], text[1], text[2], text[3], length[0], length[1], length[2], length[3]};
  pl_trace trace;
  pl_trace_init(&trace);
  pl_error error = PL_ERROR_INIT;
  if (pl_dpro_parse("fuzz", &texts, 0, NULL, -1, &trace, &error) == PL_OK)
    PL_ASSERT(pl_trace_is_valid(&trace));
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz:") == error.message);
  pl_trace_release(&trace);
  return 0;
}
