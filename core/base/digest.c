/* See core/base/digest.h. */
#include "core/base/digest.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

void pl_digest_init(pl_digest *digest) {
  digest->value = 0;
}

void pl_digest_bytes(pl_digest *digest, const void *bytes, size_t size) {
  digest->value = pl_hash_bytes(bytes, size, digest->value);
}

/* The terminating NUL is hashed too, so that "ab","c" and "a","bc" differ. */
void pl_digest_text(pl_digest *digest, const char *text) {
  pl_digest_bytes(digest, text, strlen(text) + 1);
}

void pl_digest_u64(pl_digest *digest, uint64_t value) {
  pl_digest_bytes(digest, &value, sizeof value);
}

void pl_digest_f64(pl_digest *digest, double value) {
  uint64_t bits;
  value += 0.0; /* -0.0 + 0.0 = 0.0; nothing else changes */
  memcpy(&bits, &value, sizeof bits);
  pl_digest_u64(digest, bits);
}

uint64_t pl_hash_bytes(const void *bytes, size_t size, uint64_t seed) {
  return XXH64(bytes, size, seed);
}

const char *pl_digest_format(uint64_t value, char text[PL_DIGEST_TEXT_BYTES]) {
  snprintf(text, PL_DIGEST_TEXT_BYTES, "%016llx", (unsigned long long)value);
  return text;
}
