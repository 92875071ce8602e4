/* What reads platform files before SimGrid: whatever the bytes, the scan ends with devices that have names, types and
 * lines, or with a message that begins with the file. The copy that SimGrid would get says the same as the file, and a
 * tree of zones that calls itself good answers for every pair of its first hosts. (What SimGrid makes of accepted
 * files, and that it is the same: tests/fault/platform_load_test.c, in children.) */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netmodel/platform/platform_copy.h"
#include "netmodel/platform/platform_scan.h"
#include "netmodel/platform/zone_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HOSTS = 8, LINKS = 64, EXPANDED_MAX = 4096 };

static bool is_printable_message(const pl_error *error) {
  for (const char *c = error->message; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
  return strncmp(error->message, "fuzz:", 5) == 0;
}

static void check_routes(const pl_zone_tree *tree) {
  pl_shim_parts parts;
  pl_zone_tree_parts(tree, &parts);
  uint32_t n = parts.n_hosts < HOSTS ? parts.n_hosts : HOSTS;
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++) {
      uint32_t links[LINKS], n_links;
      char message[256] = "";
      if (a == b) continue;
      pl_shim_status status = pl_zone_tree_route(tree, a, b, links, LINKS, &n_links, message, sizeof message);
      PL_ASSERT(status == PL_SHIM_OK || status == PL_SHIM_REFUSED || status == PL_SHIM_TOO_SMALL);
      PL_ASSERT((status == PL_SHIM_REFUSED) == (message[0] != '\0') && (status != PL_SHIM_OK || n_links > 0));
      for (uint32_t i = 0; status == PL_SHIM_OK && i < n_links; i++)
        PL_ASSERT(links[i] < parts.n_links && parts.links[links[i]].name != NULL);
    }
}

/* The copy scans to the same devices in the same lines. */
static void check_copy(const char *text, size_t size, const pl_platform_scan *scan, pl_arena *arena) {
  int file;
  char path[PL_COPY_PATH_BYTES];
  struct stat status;
  pl_error error = PL_ERROR_INIT;
  PL_ASSERT(pl_platform_copy_open("fuzz", text, size, arena, &file, path, &error) == PL_OK);
  PL_ASSERT(fstat(file, &status) == 0);
  char *copy = malloc((size_t)status.st_size + 1);
  PL_ASSERT(copy != NULL && pread(file, copy, (size_t)status.st_size, 0) == status.st_size);
  pl_platform_scan again;
  PL_ASSERT(pl_platform_scan_text("fuzz", copy, (size_t)status.st_size, NULL, arena, &again, &error) == PL_OK);
  PL_ASSERT(again.n_devices == scan->n_devices);
  for (uint32_t i = 0; i < scan->n_devices; i++) {
    const pl_scanned_device *a = &scan->devices[i], *b = &again.devices[i];
    PL_ASSERT(a->line == b->line && strcmp(a->type, b->type) == 0 && (a->host == NULL) == (b->host == NULL));
    PL_ASSERT(a->host == NULL || strcmp(a->host, b->host) == 0);
  }
  free(copy);
  close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_platform_scan scan;
  pl_error error = PL_ERROR_INIT;
  pl_zone_tree *tree = pl_zone_tree_take(size, &arena);
  PL_ASSERT(tree != NULL);
  const pl_platform_sink sink = pl_zone_tree_sink(tree);
  pl_code code = pl_platform_scan_text("fuzz", (const char *)data, size, &sink, &arena, &scan, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    if (pl_zone_tree_finish(tree) == NULL) check_routes(tree);
    if (size < EXPANDED_MAX) check_copy((const char *)data, size, &scan, &arena);
    for (uint32_t i = 0; i < scan.n_devices; i++) {
      PL_ASSERT(scan.devices[i].type[0] != '\0' && scan.devices[i].line > 0);
      if (scan.devices[i].host != NULL) PL_ASSERT(pl_platform_scan_line(&scan, scan.devices[i].host) > 0);
    }
  } else {
    PL_ASSERT(scan.n_devices == 0 && is_printable_message(&error));
  }
  pl_arena_release(&arena);
  return 0;
}
