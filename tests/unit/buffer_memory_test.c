/* What ZeRO-3 has gathered and not let go of, and its buckets, in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/memory/buffer_memory.h"

/* Of 1000 that are counted each is used twice on the way there and back, thrice with recomputation, and the unit across
 * the limit is whole; without a limit those under way are all there is. */
static void each_is_counted_as_often_as_it_is_used(void **state) {
  (void)state;
  pl_framework framework = pl_framework_ideal;
  framework.gathers.gathers_ahead = true;
  assert_true(pl_kept_gathered(&framework, 30, false) == 60);
  framework.gathers.reuse_parameters = 1000;
  assert_true(pl_kept_gathered(&framework, 30, false) == 1000.0 / 2 + 30);
  assert_true(pl_kept_gathered(&framework, 30, true) == 1000.0 / 3 + 30);
  assert_true(pl_kept_gathered(&framework, 3000, true) == 6000);
  framework.gathers.gathers_ahead = false;
  assert_true(pl_kept_gathered(&framework, 3000, true) == 1000.0 / 3 + 3000);
}

/* 2 bytes a gradient and 100 to a bucket of 200 bytes, of blocks of 40 and a rank with 1,000. */
static void a_bucket_is_laid_out_anew(void **state) {
  (void)state;
  pl_framework framework = pl_framework_ideal;
  pl_buffer_facts facts = {.framework = &framework,
                           .bytes = {.gradient_bytes = 2, .gathered_bytes = 2, .reduced_bytes = 2},
                           .made_bytes = 2,
                           .bucket_bytes = 200,
                           .zero = 2,
                           .shares = true,
                           .parameters = 1000,
                           .largest_parameters = 20,
                           .largest_block = 40,
                           .largest_pair = 80};
  assert_true(pl_unsharded_bytes(&facts) == 200);
  framework.memory.copies_scattered = true;
  assert_true(pl_unsharded_bytes(&facts) == 400);
  facts.zero = 1;
  assert_true(pl_unsharded_bytes(&facts) == 0);
  facts.zero = 3;
  framework.gathers.reuse_parameters = 300;
  assert_true(pl_unsharded_bytes(&facts) == 400 + 2 * (300.0 / 2 + 40));
  facts.recomputes = true;
  assert_true(pl_unsharded_bytes(&facts) == 400 + 2 * (300.0 / 3 + 40));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_is_counted_as_often_as_it_is_used),
      cmocka_unit_test(a_bucket_is_laid_out_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
