/* Arrays put into another order where they stand, and given back as they are done with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/permutation.h"
#include "core/base/split_mix.h"

typedef struct thing {
  uint64_t value;
  uint8_t more[13];
} thing;

static void test_permute(void **state) {
  (void)state;
  enum { MOST = 1000 };
  static thing things[MOST];
  static uint32_t order[MOST], kept[MOST];
  uint64_t seed = 1;
  for (uint32_t n = 0; n <= MOST; n = n * 3 / 2 + 1) {
    for (uint32_t k = 0; k < n; k++) {
      things[k] = (thing){.value = k};
      things[k].more[12] = (uint8_t)k;
      order[k] = k;
    }
    for (uint32_t k = n; k > 1; k--) {
      uint32_t other = (uint32_t)(pl_split_mix(&seed) % k), was = order[k - 1];
      order[k - 1] = order[other];
      order[other] = was;
    }
    for (uint32_t k = 0; k < n; k++)
      kept[k] = order[k];
    pl_permute(things, n, sizeof *things, order);
    for (uint32_t k = 0; k < n; k++) {
      assert_int_equal(things[k].value, kept[k]);
      assert_int_equal(things[k].more[12], (uint8_t)kept[k]);
    }
  }
}

/* Only what lies within [from, to) may change, and only in large pieces. */
static void test_give_back(void **state) {
  (void)state;
  enum { N = 1 << 17 };
  uint32_t *array = malloc(N * sizeof *array);
  assert_non_null(array);
  for (uint32_t k = 0; k < N; k++)
    array[k] = k;
  size_t from = pl_give_back(array, sizeof *array, 0, 100);
  assert_int_equal(from, 0);
  assert_int_equal(array[7], 7);
  from = pl_give_back(array, sizeof *array, 0, N / 2 + 3);
  assert_int_equal(from, N / 2 + 3);
  for (uint32_t k = N / 2 + 3; k < N; k++)
    assert_int_equal(array[k], k);
  free(array);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_permute), cmocka_unit_test(test_give_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
