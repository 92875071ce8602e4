/* Digests (xxHash64) of inputs and runs: equal input gives equal digest on any machine of the same endianness. */
#ifndef PL_CORE_DIGEST_H
#define PL_CORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct pl_digest {
  uint64_t value; /* chained: each update hashes its bytes with the previous value as seed */
} pl_digest;

void pl_digest_init(pl_digest *digest);
void pl_digest_bytes(pl_digest *digest, const void *bytes, size_t size);
void pl_digest_text(pl_digest *digest, const char *text);
void pl_digest_u64(pl_digest *digest, uint64_t value);
void pl_digest_f64(pl_digest *digest, double value); /* by bit pattern, -0.0 as 0.0 */
uint64_t pl_hash_bytes(const void *bytes, size_t size, uint64_t seed);

/* Of many things that come in no order: the digest is that of the sum of their summands, modulo 2^64. Where the hash of
 * one of them is another, so is the sum, for numbers are made odd; where two have changed places, too, but by chance.
 */
static inline uint64_t pl_digest_summand(uint32_t number, uint64_t hash) {
  return hash * (2 * (uint64_t)number + 1);
}
/* A hash of two numbers (the multipliers and last steps of Murmur's); some 2 ns. */
static inline uint64_t pl_hash_pair(int64_t a, int64_t b) {
  uint64_t word = (uint64_t)a * 0x9e3779b97f4a7c15u + (uint64_t)b * 0xc2b2ae3d27d4eb4fu;
  word = (word ^ word >> 32) * 0xff51afd7ed558ccdu;
  word = (word ^ word >> 29) * 0xc4ceb9fe1a85ec53u;
  return word ^ word >> 32;
}

enum { PL_DIGEST_TEXT_BYTES = 17 };
const char *pl_digest_format(uint64_t value, char text[PL_DIGEST_TEXT_BYTES]); /* 16 hex digits */

#endif
