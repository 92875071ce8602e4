/* Packed numbers: what comes out is what went in, small ones take one byte, any no more than ten, and two are the same
 * if and only if their numbers are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/base/packed.h"
#include "tests/support/random.h"

enum { MOST = 300 };

/* Of any size and sign, those of few bits as often as those of many. */
static uint64_t random_word(uint64_t *random) {
  uint64_t word = random_u64(random) >> random_u64(random) % 64;
  return random_u64(random) % 2 == 0 ? word : -word;
}

static void assert_round_trip(const pl_packed *packed, const uint64_t *words, size_t n) {
  uint64_t read[MOST];
  pl_packed_read(packed, read, n);
  if (n > 0) assert_memory_equal(read, words, n * sizeof *words);
}

static void numbers_come_back(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_packed packed = {.n = 0}, other = {.n = 0};
  for (uint64_t at = 0; at < test_cases(2000); at++) {
    uint64_t words[MOST];
    size_t n = random_u64(&random) % MOST;
    for (size_t i = 0; i < n; i++)
      words[i] = random_word(&random);
    assert_true(pl_packed_fill(&packed, words, n, &arena));
    assert_true(packed.n >= n && packed.n <= 10 * n);
    assert_round_trip(&packed, words, n);
    assert_true(pl_packed_fill(&other, words, n, &arena));
    assert_true(pl_packed_same(&packed, &other));
    if (n == 0) continue;
    words[random_u64(&random) % n] ^= UINT64_C(1) << random_u64(&random) % 64;
    assert_true(pl_packed_fill(&other, words, n, &arena));
    assert_false(pl_packed_same(&packed, &other));
  }
  pl_arena_release(&arena);
}

static void the_ends_of_the_range(void **state) {
  (void)state;
  static const uint64_t words[] = {
      0, 1, 63, 64, UINT64_MAX, -(uint64_t)64, -(uint64_t)65, INT64_MAX, (uint64_t)INT64_MIN};
  static const uint32_t n_bytes[] = {1, 1, 1, 2, 1, 1, 2, 10, 10};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t at = 0; at < sizeof words / sizeof *words; at++) {
    pl_packed packed = {.n = 0};
    assert_true(pl_packed_fill(&packed, &words[at], 1, &arena));
    assert_int_equal(packed.n, n_bytes[at]);
    assert_round_trip(&packed, &words[at], 1);
  }
  pl_arena_release(&arena);
}

/* What is packed again takes the place of what was there if it fits. */
static void memory_serves_again(void **state) {
  (void)state;
  uint64_t words[MOST];
  pl_arena arena;
  pl_arena_init(&arena, 0);
  memset(words, 0x5a, sizeof words);
  pl_packed packed = {.n = 0};
  assert_true(pl_packed_fill(&packed, words, MOST, &arena));
  size_t used = pl_arena_used_bytes(&arena);
  for (size_t n = MOST; n > 0; n--)
    assert_true(pl_packed_fill(&packed, words, n, &arena));
  assert_int_equal(pl_arena_used_bytes(&arena), used);
  arena.fail_after = 0;
  pl_packed none = {.n = 0};
  assert_false(pl_packed_fill(&none, words, MOST, &arena));
  assert_int_equal(none.n, 0);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_back),
      cmocka_unit_test(the_ends_of_the_range),
      cmocka_unit_test(memory_serves_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
