/* Tokens of experts moved in PyTorch ops: what each way of Megatron Core's reads, writes and keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/op_list.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

enum { TOKENS = 1024, WIDTH = 4096, EXPERTS = 8, TOP = 2 };

static pl_block_program take(int permutation, int experts, int32_t ep, int32_t tmp, bool recompute) {
  static pl_framework steps;
  steps = pl_framework_ideal;
  steps.kernels.permutation = permutation;
  steps.kernels.experts = experts;
  const pl_block_shard shard = {.tmp = tmp,
                                .etp = tmp,
                                .sp = tmp > 1,
                                .ep = ep,
                                .mbs = 1,
                                .seq = TOKENS,
                                .dtype = PL_DTYPE_BF16,
                                .flash = true,
                                .recompute = recompute ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NONE,
                                .framework = &steps};
  pl_model model = load_model("workloads/models", "mixtral-8x7b", &arena);
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, PL_BLOCK_EXPERT_LAYER, &shard, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  return program;
}

/* Counted over the operators that PyTorch 1.13 runs for these lines of Megatron Core (gathered: core_v0.6.0; indexed:
 * core_v0.8.0; weighted: core_v0.10.0; scattered: core_v0.15.0), less what the kernels that are there move: T + P at
 * either end, 2 P for each sorting. Tokens are there in two rows each: P = 2 T, in bytes. */
typedef struct expected {
  const char *name;
  int permutation, experts;
  double forward, backward, sorted_forward, sorted_backward; /* in P; of one device, and of two that exchange */
  bool keeps;
} expected;

static const expected all[] = {
    /* gather 2; zeros and copied 3, scattered 2, weighed 2, zeros and copied 3 T, added P + 2 T less the P + T that are
     * there. Back: weighed 3 + 2 + 1, gathered 2; zeros 1, added 3; zeros T, added P + 2 T. */
    {"gathered", PL_PERMUTATION_GATHERED, PL_EXPERTS_GROUPED, 2 + 7 + 4 / 2., 8 + 4 + 2 / 2., 5 + 4 / 2.,
     6 + 2 + 2 / 2., true},
    /* zeros 1, copied 2, weighed 2; of answers that are sorted zeros 1, and a sum of one 2. Back: T, P, P and P, P, 2
     * P; zeros T and added 2 T less T; where sorted zeros 1, added 3 less 2. */
    {"indexed", PL_PERMUTATION_INDEXED, PL_EXPERTS_GROUPED, 5, 5 + 1 / 2. + 2 / 2., 5 + 3, 5 + 1 / 2. + 2 + 2 / 2.,
     true},
    {"weighted", PL_PERMUTATION_WEIGHTED, PL_EXPERTS_GROUPED, 2 + 2 / 2., 6 + 2 / 2., 2 + 2 / 2., 6 + 2 / 2., true},
    {"scattered", PL_PERMUTATION_SCATTERED, PL_EXPERTS_GROUPED, 2 / 2., 2 / 2., 2 / 2., 2 / 2., false},
    /* Of n experts: zeros and copies 3. Back n copies of all and of each a copy, zeros and a copy; n cuts' zeros, their
     * copies, n - 1 sums. Two devices have 4 each. */
    {"sliced", PL_PERMUTATION_FUSED, PL_EXPERTS_SLICED, 3, 2 * 8 + 5 + 8 + 2 + 3 * 7, 3, 2 * 4 + 5 + 4 + 2 + 3 * 3,
     false},
    {"joined", PL_PERMUTATION_FUSED, PL_EXPERTS_JOINED, 2, 2, 2, 2, false}};

/* A sum that stands for one reading writes a number for each token and expert: 2 bytes, of which there are few. */
static void assert_passes(const char *name, double moved, double passes) {
  const double p = 2.0 * TOP * TOKENS * WIDTH, numbers = 2.0 * EXPERTS * TOKENS * 4;
  if (moved < passes * p || moved > passes * p + numbers)
    fail_msg("%s: %.3f P instead of %.3f", name, moved / p, passes);
}

static void move_what_the_sources_say(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    for (int32_t ep = 1; ep <= 2; ep++)
      for (int recompute = 0; recompute <= 1; recompute++) {
        pl_block_program one = take(PL_PERMUTATION_FUSED, PL_EXPERTS_GROUPED, ep, 1, recompute),
                         many = take(all[i].permutation, all[i].experts, ep, 1, recompute);
        double forward = ep == 1 ? all[i].forward : all[i].sorted_forward,
               backward = ep == 1 ? all[i].backward : all[i].sorted_backward;
        assert_passes(all[i].name, op_list_bytes(&many.forward) - op_list_bytes(&one.forward), forward);
        assert_passes(all[i].name, op_list_bytes(&many.backward) - op_list_bytes(&one.backward),
                      backward + (recompute ? forward : 0));
        double kept = all[i].keeps && !recompute ? 2.0 * TOP * TOKENS * WIDTH : 0;
        assert_true(many.saved_bytes - one.saved_bytes == kept);
      }
}

static double gathered_bytes(const pl_op_list *list) {
  double bytes = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    if (list->ops[i].kind == PL_OP_COLLECTIVE && list->ops[i].collective == PL_ALL_GATHER)
      bytes += list->ops[i].size_bytes;
  return bytes;
}

/* Over a tensor group each token is gathered once, and spread on every rank: a reading and a writing more. */
static void gather_tokens_once(void **state) {
  (void)state;
  pl_block_program one = take(PL_PERMUTATION_FUSED, PL_EXPERTS_GROUPED, 1, 8, false),
                   many = take(PL_PERMUTATION_GATHERED, PL_EXPERTS_GROUPED, 1, 8, false);
  const double t = 2.0 * TOKENS * WIDTH;
  assert_true(gathered_bytes(&one.forward) - gathered_bytes(&many.forward) == (TOP - 1) * t);
  assert_true(gathered_bytes(&one.backward) - gathered_bytes(&many.backward) == (TOP - 1) * t);
  assert_passes("forward", op_list_bytes(&many.forward) - op_list_bytes(&one.forward), 1 + 7 + 5 / 2.);
  assert_passes("backward", op_list_bytes(&many.backward) - op_list_bytes(&one.backward), 7 + 4 + 3 / 2.);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(move_what_the_sources_say, set_up, tear_down),
      cmocka_unit_test_setup_teardown(gather_tokens_once, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
