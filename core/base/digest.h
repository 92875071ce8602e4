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
/* What pl_digest_bytes makes of all pieces in one array. `next` gives one after another, each until the next call; 0
 * bytes: there are no more. */
typedef size_t pl_digest_next(void *context, const void **bytes);
void pl_digest_pieces(pl_digest *digest, pl_digest_next *next, void *context);
void pl_digest_text(pl_digest *digest, const char *text);
void pl_digest_u64(pl_digest *digest, uint64_t value);
void pl_digest_f64(pl_digest *digest, double value); /* by bit pattern, -0.0 as 0.0 */
uint64_t pl_hash_bytes(const void *bytes, size_t size, uint64_t seed);

enum { PL_DIGEST_TEXT_BYTES = 17 };
const char *pl_digest_format(uint64_t value, char text[PL_DIGEST_TEXT_BYTES]); /* 16 hex digits */

#endif
