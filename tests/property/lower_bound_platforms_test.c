/* A sample of the spaces of every platform that is shipped, with its collective profile: no strategy is simulated
 * faster than its lower bound, and bound-and-prune finds the best time of a whole space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "search/method/method_space.h"
#include "tests/support/bound_subject.h"
#include "tests/support/random.h"
#include "workloads/command/job_options.h"
#include "workloads/import/model_file.h"

enum { PLATFORM_SAMPLE = 120 };

static int is_platform(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && strcmp(dot, ".xml") == 0;
}

static void load_job(bound_subject *own, pl_job_options *options, pl_platform *platform, const char *path) {
  pl_error error = PL_ERROR_INIT;
  pl_job_options_init(options);
  options->platform_path = path;
  options->model_path = "workloads/models/gpt2-345m.json";
  options->job.gbs = 32;
  if (pl_model_load(options->model_path, &own->arena, &own->model, &error) != PL_OK ||
      pl_job_options_adopt(options, &own->model, &own->arena, &error) != PL_OK ||
      pl_job_options_complete(options, &own->model, pl_platform_cluster(platform), &error) != PL_OK)
    fail_msg("%s: %s", path, error.message);
  own->job = options->job;
  own->options = options->simulate;
}

static void check_platform(uint64_t *random, const char *path, uint32_t *n_all, uint32_t *n_bound) {
  pl_platform *platform = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  bound_subject own;
  pl_job_options options;
  pl_space space;
  bound_subject_init(&own, pl_platform_cluster(platform));
  load_job(&own, &options, platform, path);
  assert_true(bound_subject_space(&own, &space));
  bound_subject_check(&own, random, &space, TEST_IS_SANITIZED ? PLATFORM_SAMPLE / 4 : PLATFORM_SAMPLE, true);
  /* The whole of a smaller space. */
  assert_int_equal(pl_int_set_parse("2,4", "mbs", 1, 8, &own.choices.mbs, &error), PL_OK);
  assert_int_equal(pl_int_set_parse("0,3", "zero", 0, 3, &own.choices.zero, &error), PL_OK);
  own.choices.recomputes = 1;
  own.choices.sp = 1;
  bound_subject_compare_searches(&own, n_all, n_bound);
  print_message("%-36s tightest %.4f\n", path, own.tightest);
  assert_int_equal(own.n_above, 0);
  bound_subject_release(&own);
  pl_platform_destroy(platform);
}

static void bounds_hold_on_shipped_platforms(void **state) {
  (void)state;
  uint64_t random = test_seed(20261);
  uint32_t n_all = 0, n_bound = 0;
  struct dirent **entries;
  int n = scandir("platforms", &entries, is_platform, alphasort);
  assert_true(n > 5);
  for (int i = 0; i < n; i++) {
    char path[300];
    snprintf(path, sizeof path, "platforms/%s", entries[i]->d_name);
    check_platform(&random, path, &n_all, &n_bound);
    free(entries[i]);
  }
  free(entries);
  print_message("searches: %u of %u simulated\n", n_bound, n_all);
  assert_true(n_bound < n_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold_on_shipped_platforms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
