/* Numbers in few bytes: those near zero, of either sign, take one, and any takes no more than ten. What is packed alike
 * is alike, so packed numbers are compared as bytes. For what is kept often and read seldom.
 */
#ifndef PL_CORE_PACKED_H
#define PL_CORE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"

typedef struct pl_packed {
  uint8_t *bytes;
  uint32_t n, room; /* bytes */
} pl_packed;

/* In place of what was there; memory from `arena` where the room does not do. False: no memory, and nothing is packed.
 */
bool pl_packed_fill(pl_packed *packed, const uint64_t *words, size_t n, pl_arena *arena);
/* The first `n` of what was packed, which were no fewer. */
void pl_packed_read(const pl_packed *packed, uint64_t *words, size_t n);
bool pl_packed_same(const pl_packed *a, const pl_packed *b);

#endif
