/* Functions of blocks that are kept from one shard to the next give the programs that functions made anew give: for
 * models one after another, under shards that differ in what layouts depend on and in what they do not, with room for
 * many functions and for one. PACELINE_CASES is shards per model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/support/block_cases.h"
#include "tests/support/random.h"
#include "workloads/lower/block_functions.h"

static uint64_t digest_of(const pl_model *model, const pl_block_program *blocks) {
  pl_digest digest;
  pl_digest_init(&digest);
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    block_program_digest(&digest, &blocks[c]);
  return digest.value;
}

/* The same shard, or one that may lie the same way. */
static pl_block_shard varied(uint64_t *random, const pl_model *model, const pl_framework *framework,
                             const pl_block_shard *last) {
  pl_block_shard shard = block_cases_shard(random, model, framework);
  if (last->tmp == 0 || random_below(random, 2) == 0) return shard;
  pl_block_shard alike = shard;
  alike.tmp = last->tmp;
  alike.ep = last->ep;
  alike.cp = last->cp;
  alike.sp = last->sp;
  alike.cp_gather = last->cp_gather;
  alike.seq = last->seq;
  alike.dtype = last->dtype;
  alike.flash = last->flash;
  alike.recompute = last->recompute;
  alike.framework = last->framework;
  alike.fp8 = alike.fp4 = false;
  return alike;
}

static void keep(size_t room, uint64_t *n_found, uint64_t *n_made) {
  static block_cases cases;
  uint64_t random = test_seed(1122), n_cases = test_number("PACELINE_CASES", 12), n = 0;
  pl_arena arena;
  pl_block_functions functions;
  pl_arena_init(&arena, 0);
  pl_block_functions_init(&functions, room);
  block_cases_load(&cases, &arena);
  for (uint32_t m = 0; m < cases.n_models; m++) {
    const pl_model *model = &cases.models[m];
    pl_block_shard shard = {0};
    for (uint64_t i = 0; i < n_cases; i++) {
      pl_arena_mark mark = pl_arena_mark_here(&arena);
      const pl_framework *framework = &cases.frameworks[random_below(&random, cases.n_frameworks)];
      const pl_block_program *kept, *anew;
      pl_error error = PL_ERROR_INIT, other = PL_ERROR_INIT;
      shard = varied(&random, model, framework, &shard);
      pl_code code = pl_block_functions_programs(&functions, model, &shard, NULL, &arena, &kept, &error);
      assert_int_equal(pl_block_programs_take(model, &shard, &arena, &anew, &other), code);
      if (code == PL_OK && digest_of(model, kept) != digest_of(model, anew)) {
        block_shard_print(&shard);
        fail_msg("%s: not what functions made anew give", model->name);
      }
      if (code != PL_OK) assert_string_equal(error.message, other.message);
      n += code == PL_OK;
      pl_arena_release_to(&arena, mark);
    }
  }
  *n_found = functions.n_found;
  *n_made = functions.n_made;
  assert_int_equal(*n_found + *n_made, n);
  pl_block_functions_release(&functions);
  pl_arena_release(&arena);
}

static void kept_functions_give_what_new_ones_give(void **state) {
  (void)state;
  uint64_t n_found, n_made, n_found_in_less, n_made_in_less;
  keep((size_t)1 << 23, &n_found, &n_made);
  keep(1, &n_found_in_less, &n_made_in_less);
  printf("%llu found, %llu made\n", (unsigned long long)n_found, (unsigned long long)n_made);
  assert_true(n_found > 20 && n_made > 20);
  assert_int_equal(n_found_in_less, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kept_functions_give_what_new_ones_give)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
