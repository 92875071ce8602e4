/* Launch files: the first byte says the form; whatever follows is read, or refused with one message, and what was read
 * makes a strategy or another message. */
#include <stdint.h>
#include <string.h>

#include "workloads/launch/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"fuzz.sh", "fuzz.toml", "fuzz.yaml", "fuzz.json"};
  if (size == 0) return 0;
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_launch launch;
  pl_error error = PL_ERROR_INIT;
  char *text = pl_arena_take(&arena, size, 1);
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  pl_code code = pl_launch_parse(names[data[0] % 4], text, size - 1, &arena, &launch, &error);
  PL_ASSERT(code == error.code && (code == PL_OK || error.message[0] != '\0'));
  const char *made;
  if (code == PL_OK) code = pl_launch_model_text(&launch, &arena, &made, &error);
  if (code == PL_OK) code = pl_launch_strategy(&launch, 64, 24, &arena, &made, &error);
  PL_ASSERT(code == error.code);
  pl_arena_release(&arena);
  return 0;
}
