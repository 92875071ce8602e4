/* The first pass over platform files: whatever the bytes, it ends with devices that have names, types and lines, or
 * with a message that begins with the file. (What SimGrid makes of accepted files: tests/fuzz/platform_load_test.c.) */
#include <stdint.h>
#include <string.h>

#include "netmodel/platform_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_platform_scan scan;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_platform_scan_text("fuzz", (const char *)data, size, NULL, &arena, &scan, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    pl_platform_scan_sort(&scan, &arena);
    for (uint32_t i = 0; i < scan.n_devices; i++) {
      PL_ASSERT(scan.devices[i].type[0] != '\0' && scan.devices[i].line > 0);
      if (scan.devices[i].host != NULL) PL_ASSERT(pl_platform_scan_line(&scan, scan.devices[i].host) > 0);
    }
  } else {
    PL_ASSERT(scan.n_devices == 0 && strncmp(error.message, "fuzz:", 5) == 0);
  }
  pl_arena_release(&arena);
  return 0;
}
