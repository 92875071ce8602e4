/* Digests: the published xxHash64 values, chaining, and what must and must not make a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/base/digest.h"

static void published_values(void **state) {
  (void)state;
  assert_true(pl_hash_bytes("", 0, 0) == 0xef46db3751d8e999u); /* the specification's value of the empty input */
  assert_true(pl_hash_bytes("abc", 3, 0) == 0x44bc2cf5ad770999u);
}

static uint64_t of_texts(const char *a, const char *b) {
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_text(&digest, a);
  pl_digest_text(&digest, b);
  return digest.value;
}

static uint64_t of_double(double value) {
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_f64(&digest, value);
  return digest.value;
}

static void chaining(void **state) {
  (void)state;
  assert_true(of_texts("ab", "c") == of_texts("ab", "c"));
  assert_true(of_texts("ab", "c") != of_texts("a", "bc"));
  assert_true(of_texts("a", "b") != of_texts("b", "a"));
  assert_true(of_texts("a", "c") != of_texts("b", "c")); /* what came before counts */
  assert_true(of_texts("a", "c") == pl_hash_bytes("c", 2, pl_hash_bytes("a", 2, 0)));
  assert_true(of_texts("a", "") != of_texts("", "a"));
}

static void doubles(void **state) {
  (void)state;
  assert_true(of_double(0.0) == of_double(-0.0));
  assert_true(of_double(1.0) != of_double(1.0 + 0x1p-52));
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_u64(&digest, 0x3ff0000000000000u);
  assert_true(of_double(1.0) == digest.value);
}

static void text(void **state) {
  (void)state;
  char buffer[PL_DIGEST_TEXT_BYTES];
  assert_string_equal(pl_digest_format(0xabc, buffer), "0000000000000abc");
  assert_string_equal(pl_digest_format(UINT64_MAX, buffer), "ffffffffffffffff");
}

/* Sums: of runs of up to a hundred pairs, one of which is another, two of which have changed places, or all of which
 * are one place further. */
static uint64_t sum_of(const int64_t (*pairs)[2], uint32_t n, uint32_t first) {
  uint64_t sum = 0;
  for (uint32_t at = n; at-- > 0;)
    sum += pl_digest_summand(first + at, pl_hash_pair(pairs[at][0], pairs[at][1]));
  return sum;
}

static void sums(void **state) {
  (void)state;
  enum { MOST = 100 };
  int64_t pairs[MOST][2];
  for (uint32_t at = 0; at < MOST; at++) {
    pairs[at][0] = at * 1000;
    pairs[at][1] = at * 1000 + 1000;
  }
  for (uint32_t n = 2; n <= MOST; n++) {
    uint64_t whole = sum_of(pairs, n, 0);
    assert_true(whole != sum_of(pairs, n - 1, 0) && whole != sum_of(pairs, n, 1));
    for (uint32_t at = 0; at + 1 < n; at++) {
      pairs[at][1]++;
      assert_true(whole != sum_of(pairs, n, 0));
      pairs[at][1]--;
      int64_t swap[2] = {pairs[at][0], pairs[at][1]};
      memcpy(pairs[at], pairs[at + 1], sizeof swap);
      memcpy(pairs[at + 1], swap, sizeof swap);
      assert_true(whole != sum_of(pairs, n, 0));
      memcpy(pairs[at + 1], pairs[at], sizeof swap);
      memcpy(pairs[at], swap, sizeof swap);
    }
    assert_true(whole == sum_of(pairs, n, 0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published_values), cmocka_unit_test(chaining),
                                     cmocka_unit_test(doubles), cmocka_unit_test(text), cmocka_unit_test(sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
