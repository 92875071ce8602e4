/* With SimGrid loaded and used, MPI is still Open MPI: libsimgrid's own MPI_* functions stay behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"

static pl_platform *load(void) {
  pl_platform *platform = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load("tests/unit/platforms/two-nodes.xml", NULL, &platform, &error) != PL_OK)
    fail_msg("%s", error.message);
  return platform;
}

static void test_version(void **state) {
  (void)state;
  pl_platform *platform = load();
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  assert_int_equal(MPI_Get_library_version(version, &length), MPI_SUCCESS);
  if (strncmp(version, "Open MPI", 8) != 0) fail_msg("MPI is '%s'", version);
  pl_platform_destroy(platform);
}

/* Initialised with a platform in memory, sums over the world, and the platform still answers. */
static void test_init(void **state) {
  (void)state;
  pl_platform *platform = load();
  assert_int_equal(MPI_Init(NULL, NULL), MPI_SUCCESS);
  int one = 1, sum = 0, size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  assert_int_equal(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
  assert_int_equal(sum, size);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_check(platform, &error), PL_OK);
  assert_int_equal(MPI_Finalize(), MPI_SUCCESS);
  pl_platform_destroy(platform);
}

/* The control: libsimgrid is really there, with an MPI_Init of its own. */
static void test_clash_is_real(void **state) {
  (void)state;
  void *simgrid = dlopen("libsimgrid.so.3.32", RTLD_LAZY | RTLD_NOLOAD);
  if (simgrid == NULL) skip(); /* another version than 3.32 */
  void *theirs = dlsym(simgrid, "MPI_Init");
  assert_non_null(theirs);
  int (*ours)(int *, char ***) = MPI_Init;
  assert_true(theirs != *(void **)&ours);
  dlclose(simgrid);
}

int main(void) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_version), cmocka_unit_test(test_clash_is_real),
                                     cmocka_unit_test(test_init)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
