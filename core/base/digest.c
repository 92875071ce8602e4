/* See core/base/digest.h. */
#include "core/base/digest.h"

#include <stdio.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the state of a hash that comes in pieces, without malloc */
#include <xxhash.h>

void pl_digest_init(pl_digest *digest) {
  digest->value = 0;
}

void pl_digest_bytes(pl_digest *digest, const void *bytes, size_t size) {
  digest->value = pl_hash_bytes(bytes, size, digest->value);
}

void pl_digest_pieces(pl_digest *digest, pl_digest_next *next, void *context) {
  XXH64_state_t state;
  const void *bytes;
  XXH64_reset(&state, digest->value);
  for (size_t size; (size = next(context, &bytes)) > 0;)
    XXH64_update(&state, bytes, size);
  digest->value = XXH64_digest(&state);
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
