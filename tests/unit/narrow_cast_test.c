/* Casts in front of products in NVFP4: what they read and write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

static double cast_bytes(const pl_framework *framework, bool fp4) {
  const pl_block_shard shard = {.tmp = 1,
                                .mbs = 1,
                                .seq = 1024,
                                .dtype = PL_DTYPE_BF16,
                                .fp8 = true,
                                .fp4 = fp4,
                                .flash = true,
                                .framework = framework};
  pl_model model = load_model("workloads/models", "llama-2-7b", &arena);
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  double sum = 0;
  if (pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  const pl_op_list lists[] = {program.forward, program.backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++)
      if (strstr(lists[pass].ops[i].name, "cast") != NULL) sum += lists[pass].ops[i].bytes;
  return sum;
}

/* Inputs of four products, 3 h + f wide, and gradients, 5 h + 2 f: in fp8 with delayed scaling 2 bytes are read and two
 * copies of 1 are written, with current scaling 2 more are read. In NVFP4 three times 2 are read, for the largest
 * element, one copy and the other, and two copies of half a byte with a scale of one for 16 are written, whatever the
 * scaling of fp8. */
static void casts_read_three_times(void **state) {
  (void)state;
  const double h = 4096, f = 11008, elements = 1024 * (8 * h + 3 * f);
  pl_framework delayed = pl_framework_ideal, current = pl_framework_ideal;
  current.kernels.fp8_scaling = PL_FP8_CURRENT;
  assert_true(cast_bytes(&delayed, false) == (2 + 2) * elements);
  assert_true(cast_bytes(&current, false) == (2 + 2 + 2) * elements);
  assert_true(fabs(cast_bytes(&delayed, true) / elements - (3 * 2 + 2 * (0.5 + 1.0 / 16))) < 1e-12);
  assert_true(cast_bytes(&current, true) == cast_bytes(&delayed, true));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(casts_read_three_times, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
