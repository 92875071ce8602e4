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

/* What is chosen along a row: k of all, or of those in the best of some groups of neighbours. */
typedef struct choice {
  counted along;
  int64_t k, groups, chosen_groups, best;
} choice;

static choice choice_of(const pl_ir_op *op, const pl_ir_tensor *in, pl_ir_name over) {
  return (choice){.along = counted_of(in, over),
                  .k = pl_ir_integer_of(op, "k", 1),
                  .groups = pl_ir_integer_of(op, "groups", 1),
                  .chosen_groups = pl_ir_integer_of(op, "chosen_groups", 1),
                  .best = pl_ir_integer_of(op, "best", 1)};
}

/* How many of the places first, first + 1 ... come before place i: larger ones, and equal ones further in front. */
static int64_t before(const double *row, const choice *of, int64_t first, int64_t n, int64_t i) {
  int64_t count = 0;
  for (int64_t j = first; j < first + n; j++) {
    double other = row[j * of->along.step], own = row[i * of->along.step];
    count += other > own || (other == own && j < i);
  }
  return count;
}

/* Sum of a group's `best` largest. */
static double score(const double *row, const choice *of, int64_t group) {
  int64_t n = of->along.extent / of->groups;
  double sum = 0;
  for (int64_t i = group * n; i < (group + 1) * n; i++)
    if (before(row, of, group * n, n, i) < of->best) sum += row[i * of->along.step];
  return sum;
}

static bool is_open(const double *row, const choice *of, int64_t group) {
  double own = of->chosen_groups < of->groups ? score(row, of, group) : 0;
  int64_t better = 0;
  for (int64_t g = 0; of->chosen_groups < of->groups && g < of->groups; g++) {
    double other = score(row, of, g);
    better += other > own || (other == own && g < group);
  }
  return better < of->chosen_groups;
}

/* Among the k largest of what its row may choose from; of equal ones those that come first. */
static bool is_chosen(const double *row, const choice *of, int64_t i) {
  int64_t n = of->along.extent / of->groups, count = 0;
  if (!is_open(row, of, i / n)) return false;
  for (int64_t group = 0; group < of->groups && count < of->k; group++)
    if (is_open(row, of, group)) count += before(row, of, group * n, n, i);
  return count < of->k;
}

static double chosen_sum(const double *row, const choice *of) {
  double sum = 0;
  for (int64_t i = 0; i < of->along.extent; i++)
    if (is_chosen(row, of, i)) sum += row[i * of->along.step];
  return sum;
}

pl_code pl_ir_compute_top_k(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = &computing->inputs[0], *out = &computing->outputs[0];
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  const choice of = choice_of(computing->op, in, over);
  const counted along = of.along;
  bool normalise = pl_ir_integer_of(computing->op, "normalise", 0) != 0;
  const pl_ir_type rows = pl_ir_type_without_dim(&in->type, over);
  pl_ir_walk walk = pl_ir_walk_over(rows.rank, rows.dims, 1, (const pl_ir_tensor *[]){in});
  do {
    const double *row = &in->data[walk.at[0]];
    double *to = &out->data[walk.at[0]], sum = normalise ? chosen_sum(row, &of) : 1;
    for (int64_t i = 0; i < along.extent; i++)
      if (is_chosen(row, &of, i)) to[i * along.step] = pl_ir_rounded(computing, row[i * along.step] / sum);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

/* Of w_i = p_i / sum of the chosen p: dp_i = (dw_i - sum_j w_j dw_j) / sum. */
pl_code pl_ir_compute_top_k_backward(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = &computing->inputs[0], *weights = &computing->inputs[1], *gradient = &computing->inputs[2];
  pl_ir_name over = pl_ir_one_name_of(computing->op, "over");
  const choice of = choice_of(computing->op, in, over);
  const counted along = of.along;
  int64_t w_step = pl_ir_tensor_step(weights, over), dw_step = pl_ir_tensor_step(gradient, over);
  bool normalise = pl_ir_integer_of(computing->op, "normalise", 0) != 0;
  const pl_ir_type rows = pl_ir_type_without_dim(&in->type, over);
  pl_ir_walk walk = pl_ir_walk_over(rows.rank, rows.dims, 3, (const pl_ir_tensor *[]){in, weights, gradient});
  do {
    const double *row = &in->data[walk.at[0]], *w = &weights->data[walk.at[1]], *dw = &gradient->data[walk.at[2]];
    double *dp = &computing->outputs[0].data[walk.at[0]];
    double sum = normalise ? chosen_sum(row, &of) : 1, mean = 0;
    for (int64_t i = 0; normalise && i < along.extent; i++)
      mean += w[i * w_step] * dw[i * dw_step];
    for (int64_t i = 0; i < along.extent; i++)
      if (is_chosen(row, &of, i)) dp[i * along.step] = pl_ir_rounded(computing, (dw[i * dw_step] - mean) / sum);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}
