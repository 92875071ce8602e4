/* See workloads/language/ir_random.h. */
#include "workloads/language/ir_random.h"

#include "core/base/hash_index.h"

double pl_ir_hash_uniform(uint64_t seed, uint64_t iteration, uint64_t index) {
  uint64_t hash = pl_hash_word(0, seed);
  hash = pl_hash_word(hash, iteration);
  hash = pl_hash_word(hash, index);
  hash = pl_hash_word(hash, 0); /* once more: neighbouring places differ in all bits */
  return (double)(hash >> 11) * 0x1p-53;
}

double pl_ir_dropout_factor(const pl_ir_computing *computing, double p, uint64_t seed, uint64_t index, double n,
                            int64_t samples) {
  uint64_t before = (uint64_t)computing->turn.microbatch * (uint64_t)n;
  if (computing->piece.of > 1 || computing->turn.parts > 0) {
    uint64_t each = (uint64_t)n / (uint64_t)samples, sample = index / each;
    before = (uint64_t)pl_ir_piece_sample(computing->piece, computing->turn, samples, (int64_t)sample) * each;
    index -= sample * each;
  }
  return pl_ir_hash_uniform(seed, computing->iteration, before + index) < p ? 0 : 1 / (1 - p);
}

int64_t pl_ir_zigzag(int64_t at, int64_t n, int64_t ranks) {
  if (ranks <= 1 || n % (2 * ranks) != 0) return at;
  int64_t chunk = n / (2 * ranks), which = at / chunk, rank = which / 2;
  int64_t from = which % 2 == 0 ? rank : 2 * ranks - 1 - rank;
  return from * chunk + at % chunk;
}
