/* Every file in platforms/devices: readable, named as it calls itself, with figures in a sane order and an origin for
 * each of them, and the speed that platform files give its hosts is its dense 16-bit peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/units.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/make/node_kind.h"
#include "netmodel/platform/platform.h"

enum { PATH_BYTES = 512, TEXT_BYTES = 262144 };

static void check_figures(const pl_device_profile *p) {
  assert_true(p->memory_bytes > 10e9 && p->memory_bytes < 300e9);
  assert_true(p->reserved_bytes > 0 && p->reserved_bytes < 0.2 * p->memory_bytes);
  assert_true(p->bandwidth_Bps > 100e9 && p->bandwidth_Bps < 10e12);
  assert_true(p->peak_flops[PL_DTYPE_FP32] > 1e12 && p->peak_flops[PL_DTYPE_FP16] >= p->peak_flops[PL_DTYPE_FP32]);
  assert_true(p->peak_flops[PL_DTYPE_BF16] == 0 || p->peak_flops[PL_DTYPE_BF16] == p->peak_flops[PL_DTYPE_FP16]);
  assert_true(p->peak_flops[PL_DTYPE_FP8] == 0 || p->peak_flops[PL_DTYPE_FP8] >= 1.9 * p->peak_flops[PL_DTYPE_BF16]);
  assert_true(p->compute_efficiency >= 0.3 && p->compute_efficiency < 1);
  assert_true(p->attention_efficiency >= 0.1 && p->attention_efficiency <= p->compute_efficiency);
  assert_true(p->bandwidth_efficiency >= 0.3 && p->bandwidth_efficiency < 1);
  assert_true(p->launch_overhead_s > 0 && p->launch_overhead_s < 1e-4);
  assert_true(p->overlap_compute >= 0 && p->overlap_compute < 1 && p->overlap_communication >= 0 &&
              p->overlap_communication < 1);
}

static void check_speed(const pl_device_profile *p) {
  const char *speed = pl_device_speed(p->name);
  pl_error error = PL_ERROR_INIT;
  double speed_flops = 0;
  if (speed == NULL) fail_msg("netmodel/make/node_kind.c has no speed for %s", p->name);
  assert_int_equal(pl_parse_flops(speed, "speed", &speed_flops, &error), PL_OK);
  assert_true(speed_flops == p->peak_flops[PL_DTYPE_FP16]);
}

static void check_provenance(const char *path) {
  static const char *const keys[] = {"memory",
                                     "reserved",
                                     "bandwidth",
                                     "peak_flops",
                                     "efficiency.compute",
                                     "efficiency.attention",
                                     "efficiency.bandwidth",
                                     "launch_overhead",
                                     "overlap"};
  char text[TEXT_BYTES] = "", quoted[64];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  const char *provenance = strstr(text, "\"provenance\": {");
  assert_non_null(provenance);
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    snprintf(quoted, sizeof quoted, "\"%s\": \"", keys[i]);
    if (strstr(provenance, quoted) == NULL) fail_msg("%s: no provenance of %s", path, keys[i]);
  }
}

static void test_profiles(void **state) {
  (void)state;
  DIR *dir = opendir("platforms/devices");
  assert_non_null(dir);
  uint32_t n = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    char path[PATH_BYTES];
    size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
    snprintf(path, sizeof path, "platforms/devices/%s", entry->d_name);
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_device_profile profile;
    pl_error error = PL_ERROR_INIT;
    if (pl_device_profile_load(path, &arena, &profile, &error) != PL_OK) fail_msg("%s", error.message);
    assert_int_equal(strlen(profile.name), length - 5);
    assert_memory_equal(profile.name, entry->d_name, length - 5);
    check_figures(&profile);
    check_speed(&profile);
    check_provenance(path);
    pl_arena_release(&arena);
    n++;
  }
  closedir(dir);
  for (uint32_t i = 0; pl_device_name_at(i) != NULL; i++)
    n--;
  assert_int_equal(n, 0); /* one file per known device */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
