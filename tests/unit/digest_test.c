/* Digests: the published xxHash64 values, chaining, and what must and must not make a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

typedef struct cutting {
  const uint8_t *bytes;
  size_t size, at, step;
} cutting;

static size_t next_piece(void *context, const void **bytes) {
  cutting *own = context;
  size_t left = own->size - own->at, size = left < own->step ? left : own->step;
  *bytes = own->bytes + own->at;
  own->at += size;
  return size;
}

/* However the bytes are cut, and on top of what was hashed before. */
static void pieces(void **state) {
  (void)state;
  uint8_t bytes[1000];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (uint8_t)(i * 37 + i / 256);
  for (size_t size = 0; size <= sizeof bytes; size += 125)
    for (size_t step = 1; step < 300; step += 41) {
      pl_digest whole, cut;
      pl_digest_init(&whole);
      pl_digest_u64(&whole, 5);
      cut = whole;
      pl_digest_bytes(&whole, bytes, size);
      pl_digest_pieces(&cut, next_piece, &(cutting){.bytes = bytes, .size = size, .step = step});
      assert_true(whole.value == cut.value);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published_values), cmocka_unit_test(chaining),
                                     cmocka_unit_test(doubles), cmocka_unit_test(text), cmocka_unit_test(pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
