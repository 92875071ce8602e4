/* See workloads/language/ir_token.h. A cut table: ids outside a device's part give zero there, so that the parts'
 * answers add up to the whole. */
#include "workloads/language/ir_token.h"

#include <inttypes.h>
#include <math.h>

#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_walk.h"

/* A dimension that ids count along, in the part of a tensor that is here. */
typedef struct counted {
  int64_t extent, origin, whole, step;
  const char *name;
} counted;

static counted counted_of(const pl_ir_tensor *tensor, pl_ir_name dim) {
  int32_t i = pl_ir_type_find(&tensor->type, dim);
  return (counted){.extent = tensor->extent[i],
                   .origin = tensor->origin[i],
                   .whole = tensor->type.dims[i].extent,
                   .step = pl_ir_tensor_step(tensor, dim),
                   .name = tensor->type.dims[i].name.text};
}

/* Where id's element lies from the beginning of its row; -1: on another device. */
static pl_code find_id(const pl_ir_computing *computing, const counted *along, double id, int64_t *offset,
                       pl_error *error) {
  if (!(id >= 0 && id < (double)along->whole))
    return pl_fail(error, PL_BAD_INPUT, "%s: id %.17g is outside of dimension '%s' with %" PRId64 " elements",
                   pl_ir_op_name(computing->op), id, along->name, along->whole);
  int64_t index = (int64_t)id;
  bool here = index >= along->origin && index < along->origin + along->extent;
  *offset = here ? (index - along->origin) * along->step : -1;
  return PL_OK;
}

/* The dimensions of `type`, and those of the ids that are summed over. */
static pl_ir_type and_summed(const pl_ir_op *op, const pl_ir_type *type, const pl_ir_type *ids) {
  pl_ir_type all = *type;
  for (int32_t i = 0; i < ids->rank; i++)
    if (pl_ir_op_has_name(op, "sum", ids->dims[i].name)) all.dims[all.rank++] = ids->dims[i];
  return all;
}

/* out = the element of each row of `source` that its id names, added up where several do. */
static pl_code gather(const pl_ir_computing *computing, const pl_ir_tensor *source, const pl_ir_tensor *ids,
                      pl_error *error) {
  const pl_ir_tensor *out = &computing->outputs[0];
  const counted along = counted_of(source, pl_ir_one_name_of(computing->op, "over"));
  const pl_ir_type all = and_summed(computing->op, &out->type, &ids->type);
  pl_ir_walk walk = pl_ir_walk_over(all.rank, all.dims, 3, (const pl_ir_tensor *[]){out, ids, source});
  do {
    int64_t offset = -1;
    PL_TRY(find_id(computing, &along, ids->data[walk.at[1]], &offset, error));
    if (offset < 0) continue;
    double *sum = &out->data[walk.at[0]];
    *sum = pl_ir_rounded(computing, *sum + source->data[walk.at[2] + offset]);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

/* Adds each element of `from` to the element of the result that its id names. */
static pl_code scatter(const pl_ir_computing *computing, const pl_ir_tensor *from, const pl_ir_tensor *ids,
                       pl_error *error) {
  const pl_ir_tensor *out = &computing->outputs[0];
  const counted along = counted_of(out, pl_ir_one_name_of(computing->op, "over"));
  const pl_ir_type all = and_summed(computing->op, &from->type, &ids->type);
  pl_ir_walk walk = pl_ir_walk_over(all.rank, all.dims, 3, (const pl_ir_tensor *[]){from, ids, out});
  do {
    int64_t offset = -1;
    PL_TRY(find_id(computing, &along, ids->data[walk.at[1]], &offset, error));
    if (offset < 0) continue;
    double *sum = &out->data[walk.at[2] + offset];
    *sum = pl_ir_rounded(computing, *sum + from->data[walk.at[0]]);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

pl_code pl_ir_compute_embedding(const pl_ir_computing *computing, pl_error *error) {
  return gather(computing, &computing->inputs[1], &computing->inputs[0], error);
}

pl_code pl_ir_compute_pick(const pl_ir_computing *computing, pl_error *error) {
  return gather(computing, &computing->inputs[0], &computing->inputs[1], error);
}

pl_code pl_ir_compute_embedding_backward(const pl_ir_computing *computing, pl_error *error) {
  return scatter(computing, &computing->inputs[1], &computing->inputs[0], error);
}

pl_code pl_ir_compute_place(const pl_ir_computing *computing, pl_error *error) {
  return scatter(computing, &computing->inputs[0], &computing->inputs[1], error);
}

/* ---- rotary ---- */

int64_t pl_ir_rotary_turned(const pl_ir_op *op, int64_t extent) {
  return (int64_t)llround(pl_ir_real_of(op, "share", 1) * (double)extent);
}

static double *frequencies(const pl_ir_computing *computing, int64_t n) {
  double *frequency = PL_TAKE(computing->scratch, double, n / 2);
  double base = pl_ir_real_of(computing->op, "base", 10000);
  double sign = pl_ir_integer_of(computing->op, "inverse", 0) != 0 ? -1 : 1;
  for (int64_t i = 0; frequency != NULL && i < n / 2; i++)
    frequency[i] = sign * pow(base, -2 * (double)i / (double)n);
  return frequency;
}

pl_code pl_ir_compute_rotary(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_tensor *x = &computing->inputs[0], *positions = &computing->inputs[1], *out = &computing->outputs[0];
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  PL_TRY(pl_ir_tensor_is_whole(computing, x, over, error));
  const counted along = counted_of(x, over);
  int64_t n = pl_ir_rotary_turned(computing->op, along.whole);
  const double *frequency = frequencies(computing, n);
  if (frequency == NULL) return pl_fail_memory(error, "the frequencies of a rotary encoding");
  const pl_ir_type rows = pl_ir_type_without_dim(&x->type, over);
  pl_ir_walk walk = pl_ir_walk_over(rows.rank, rows.dims, 2, (const pl_ir_tensor *[]){x, positions});
  do {
    const double *from = &x->data[walk.at[0]];
    double *to = &out->data[walk.at[0]]; /* of the same shape */
    for (int64_t i = 0; i < n / 2; i++) {
      double angle = positions->data[walk.at[1]] * frequency[i];
      double c = pl_ir_rounded(computing, cos(angle)), s = pl_ir_rounded(computing, sin(angle));
      double a = from[i * along.step], b = from[(i + n / 2) * along.step];
      to[i * along.step] = pl_ir_rounded(computing, a * c - b * s);
      to[(i + n / 2) * along.step] = pl_ir_rounded(computing, b * c + a * s);
    }
    for (int64_t i = n; i < along.extent; i++)
      to[i * along.step] = from[i * along.step];
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

/* ---- top_k ---- */

/* Among the k largest of its row; of equal ones those that come first. */
static bool is_chosen(const double *row, const counted *along, int64_t i, int64_t k) {
  int64_t before = 0;
  for (int64_t j = 0; j < along->extent && before < k; j++) {
    double other = row[j * along->step], own = row[i * along->step];
    before += other > own || (other == own && j < i);
  }
  return before < k;
}

static double chosen_sum(const double *row, const counted *along, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < along->extent; i++)
    if (is_chosen(row, along, i, k)) sum += row[i * along->step];
  return sum;
}

pl_code pl_ir_compute_top_k(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = &computing->inputs[0], *out = &computing->outputs[0];
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  const counted along = counted_of(in, over);
  int64_t k = pl_ir_integer_of(computing->op, "k", 1);
  bool normalise = pl_ir_integer_of(computing->op, "normalise", 0) != 0;
  const pl_ir_type rows = pl_ir_type_without_dim(&in->type, over);
  pl_ir_walk walk = pl_ir_walk_over(rows.rank, rows.dims, 1, (const pl_ir_tensor *[]){in});
  do {
    const double *row = &in->data[walk.at[0]];
    double *to = &out->data[walk.at[0]], sum = normalise ? chosen_sum(row, &along, k) : 1;
    for (int64_t i = 0; i < along.extent; i++)
      if (is_chosen(row, &along, i, k)) to[i * along.step] = pl_ir_rounded(computing, row[i * along.step] / sum);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

/* Of w_i = p_i / sum of the chosen p: dp_i = (dw_i - sum_j w_j dw_j) / sum. */
pl_code pl_ir_compute_top_k_backward(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = &computing->inputs[0], *weights = &computing->inputs[1], *gradient = &computing->inputs[2];
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  const counted along = counted_of(in, over);
  int64_t w_step = pl_ir_tensor_step(weights, over), dw_step = pl_ir_tensor_step(gradient, over);
  int64_t k = pl_ir_integer_of(computing->op, "k", 1);
  bool normalise = pl_ir_integer_of(computing->op, "normalise", 0) != 0;
  const pl_ir_type rows = pl_ir_type_without_dim(&in->type, over);
  pl_ir_walk walk = pl_ir_walk_over(rows.rank, rows.dims, 3, (const pl_ir_tensor *[]){in, weights, gradient});
  do {
    const double *row = &in->data[walk.at[0]], *w = &weights->data[walk.at[1]], *dw = &gradient->data[walk.at[2]];
    double *dp = &computing->outputs[0].data[walk.at[0]];
    double sum = normalise ? chosen_sum(row, &along, k) : 1, mean = 0;
    for (int64_t i = 0; normalise && i < along.extent; i++)
      mean += w[i * w_step] * dw[i * dw_step];
    for (int64_t i = 0; i < along.extent; i++)
      if (is_chosen(row, &along, i, k)) dp[i * along.step] = pl_ir_rounded(computing, (dw[i * dw_step] - mean) / sum);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}
