/* See workloads/execute/data.h. */
#include "workloads/execute/data.h"

#include <math.h>
#include <string.h>

#include "core/base/hash_index.h"
#include "workloads/language/ir_random.h"

/* In [-1, 1). */
static double uniform(uint64_t hash) {
  return (double)(hash >> 11) * 0x1p-52 - 1;
}

/* Place in the whole value of element `i` of a part. */
static void place_of(const pl_ir_tensor *part, int64_t i, int64_t place[PL_IR_RANK_MAX]) {
  for (int32_t dim = part->type.rank - 1; dim >= 0; dim--) {
    place[dim] = part->origin[dim] + i % part->extent[dim];
    i /= part->extent[dim];
  }
}

void pl_data_part_of(const double *whole, pl_ir_tensor *part) {
  for (int64_t i = 0; i < part->n; i++) {
    int64_t place[PL_IR_RANK_MAX] = {0}, at = 0;
    place_of(part, i, place);
    for (int32_t dim = 0; dim < part->type.rank; dim++)
      at = at * part->type.dims[dim].extent + place[dim];
    part->data[i] = whole[at];
  }
}

void pl_data_parameter(uint64_t seed, const char *path, pl_ir_tensor *part) {
  uint64_t base = pl_hash_text(pl_hash_word(seed, 1), path);
  double extent = 1;
  for (int32_t i = 0; i < part->type.rank; i++)
    extent = fmax(extent, (double)part->type.dims[i].extent);
  /* Matrices as wide as their products stay of order one; vectors are scales and shifts near one. */
  double width = part->type.rank > 1 ? sqrt(3 / extent) : 0.25, centre = part->type.rank > 1 ? 0 : 1;
  for (int64_t i = 0; i < part->n; i++) {
    int64_t place[PL_IR_RANK_MAX] = {0};
    place_of(part, i, place);
    uint64_t hash = base;
    for (int32_t dim = 0; dim < part->type.rank; dim++)
      hash = pl_hash_word(hash, (uint64_t)place[dim]);
    part->data[i] = centre + width * uniform(pl_hash_word(hash, 2));
  }
}

/* Bucket of the distance from token s to token t (T5; transformers' _relative_position_bucket): half of the buckets for
 * small distances, one each, the rest logarithmic up to `most`. Both sides have half of them each; `causal`: one side
 * has all, and tokens behind s have the bucket behind these. */
static int64_t bucket_of(int64_t s, int64_t t, int64_t below, int64_t most, bool causal) {
  int64_t n = causal ? below - 1 : below / 2, first = !causal && t > s ? n : 0;
  if (causal && t > s) return n;
  int64_t distance = t > s ? t - s : s - t, exact = n / 2;
  if (distance < exact) return first + distance;
  int64_t large = exact + (int64_t)(log((double)distance / (double)exact) / log((double)most / (double)exact) *
                                    (double)(n - exact));
  return first + (large < n ? large : n - 1);
}

/* False: the input is another. */
static bool fill_buckets(const pl_ir_op *op, pl_ir_tensor *part) {
  bool causal = strcmp(op->path, "causal_buckets") == 0;
  int32_t s = pl_ir_type_find(&part->type, pl_ir_name_of("s")), t = pl_ir_type_find(&part->type, pl_ir_name_of("t"));
  int64_t below = pl_ir_integer_of(op, "below", 0), most = pl_ir_integer_of(op, "distance", 0);
  if ((!causal && strcmp(op->path, "buckets") != 0) || s < 0 || t < 0 || below < 4 || most <= below / 2) return false;
  int64_t ranks = pl_ir_integer_of(op, "zigzag", 1);
  for (int64_t i = 0; i < part->n; i++) {
    int64_t place[PL_IR_RANK_MAX] = {0};
    place_of(part, i, place);
    for (int32_t dim = 0; dim < part->type.rank; dim++)
      if (dim == s || dim == t) place[dim] = pl_ir_zigzag(place[dim], part->type.dims[dim].extent, ranks);
    part->data[i] = (double)bucket_of(place[s], place[t], below, most, causal);
  }
  return true;
}

/* Tokens of a square picture, row by row: the row of a table with one for each difference of places (Liu et al. 2021,
 * Swin, eq. 4). False: the input is another. */
static bool fill_differences(const pl_ir_op *op, pl_ir_tensor *part) {
  int32_t s = pl_ir_type_find(&part->type, pl_ir_name_of("s")), t = pl_ir_type_find(&part->type, pl_ir_name_of("t"));
  int64_t below = pl_ir_integer_of(op, "below", 0), across = llround(sqrt((double)below)), side = (across + 1) / 2;
  if (strcmp(op->path, "relative_positions") != 0 || s < 0 || t < 0 || across * across != below) return false;
  for (int64_t i = 0; i < part->n; i++) {
    int64_t place[PL_IR_RANK_MAX] = {0};
    place_of(part, i, place);
    int64_t down = place[s] / side - place[t] / side, right = place[s] % side - place[t] % side;
    part->data[i] = (double)((down + side - 1) * across + right + side - 1);
  }
  return true;
}

void pl_data_input(uint64_t seed, const pl_ir_op *op, int64_t iteration, pl_ir_turn turn, pl_ir_piece piece,
                   pl_ir_tensor *part) {
  int32_t b = pl_ir_type_find(&part->type, pl_ir_name_of("b")), s = pl_ir_type_find(&part->type, pl_ir_name_of("s"));
  int64_t below = pl_ir_integer_of(op, "below", 0), ranks = pl_ir_integer_of(op, "zigzag", 1);
  if (fill_buckets(op, part) || fill_differences(op, part)) return;
  bool positions = strcmp(op->path, "positions") == 0, integers = part->type.element == PL_IR_I32;
  uint64_t base = pl_hash_word(pl_hash_text(pl_hash_word(seed, 3), op->path), (uint64_t)iteration);
  for (int64_t i = 0; i < part->n; i++) {
    int64_t place[PL_IR_RANK_MAX] = {0};
    place_of(part, i, place);
    if (b >= 0) place[b] = pl_ir_piece_sample(piece, turn, part->type.dims[b].extent, place[b]);
    if (s >= 0) place[s] = pl_ir_zigzag(place[s], part->type.dims[s].extent, ranks);
    uint64_t hash = base;
    for (int32_t dim = 0; dim < part->type.rank; dim++)
      hash = pl_hash_word(hash, (uint64_t)place[dim]);
    hash = pl_hash_word(hash, 4);
    part->data[i] = positions && s >= 0 ? (double)place[s]
                    : below > 0         ? (double)(hash % (uint64_t)below)
                    : integers          ? 0
                                        : uniform(hash);
  }
}
