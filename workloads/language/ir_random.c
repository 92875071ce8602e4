/* See workloads/language/ir_random.h. */
#include "workloads/language/ir_random.h"

#include "core/base/hash_index.h"

double pl_ir_hash_uniform(uint64_t seed, uint64_t iteration, int32_t microbatch, uint64_t index) {
  uint64_t hash = pl_hash_word(0, seed);
  hash = pl_hash_word(hash, iteration);
  hash = pl_hash_word(hash, (uint64_t)microbatch);
  hash = pl_hash_word(hash, index);
  hash = pl_hash_word(hash, 0); /* once more: neighbouring places differ in all bits */
  return (double)(hash >> 11) * 0x1p-53;
}

double pl_ir_dropout_factor(const pl_ir_computing *computing, double p, uint64_t seed, uint64_t index) {
  return pl_ir_hash_uniform(seed, computing->iteration, computing->microbatch, index) < p ? 0 : 1 / (1 - p);
}
