/* Random models, of two layers, and random shards of their blocks. */
#ifndef PL_TESTS_SUPPORT_RANDOM_BLOCK_H
#define PL_TESTS_SUPPORT_RANDOM_BLOCK_H

#include "tests/support/random.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

/* A power of two up to 2^highest. */
static inline int64_t random_power(uint64_t *state, uint32_t highest) {
  return INT64_C(1) << random_below(state, highest + 1);
}

static inline bool random_coin(uint64_t *state) {
  return random_below(state, 2) == 1;
}

/* Dense. Heads, key-value heads, ffn and vocabulary divide by 16; everything else is free. */
pl_model random_block_model(uint64_t *state);
pl_block_shard random_block_shard(uint64_t *state);

#endif
