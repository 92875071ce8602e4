/* See workloads/language/ir_attention.h. Operands are copied into dense [batch, rows or keys, width] first, so that the
 * loops are the equations. */
#include "workloads/language/ir_attention.h"

#include <math.h>

#include "workloads/language/ir_mask.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_random.h"
#include "workloads/language/ir_walk.h"

/* A query row as the mask sees it. */
typedef struct query {
  int64_t block, position, place; /* place: of its first pair among all pairs of the whole value */
  double slope;                   /* by which its scores fall per position that a key is away; 0: they do not */
} query;

typedef struct attention {
  double n_pairs; /* of queries and keys of the whole value */
  const pl_ir_computing *computing;
  pl_ir_attention_dims dims;
  int64_t n_batch, n_rows, n_keys, d, e; /* local */
  double scale, p;
  uint64_t seed;
  pl_ir_mask mask;
  query *queries;         /* [n_batch, n_rows] */
  int64_t *key_block;     /* [n_keys] */
  int64_t *key_position;  /* [n_keys] */
  double *q, *k, *v;      /* [n_batch, n_rows or n_keys, d or e] */
  double *scores, *spare; /* [n_keys] */
} attention;

/* ---- dense copies ---- */

static int32_t dense_dims(const attention *of, bool of_keys, const pl_ir_dim *last, pl_ir_dim *dims) {
  int32_t n = 0;
  for (int32_t i = 0; i < of->dims.n_batch; i++)
    dims[n++] = of->dims.batch[i];
  for (int32_t i = 0; !of_keys && i < of->dims.n_rows; i++)
    dims[n++] = of->dims.rows[i];
  if (of_keys) dims[n++] = of->dims.t;
  if (last != NULL) dims[n++] = *last;
  return n;
}

static double *dense(attention *of, const pl_ir_tensor *tensor, bool of_keys, const pl_ir_dim *last) {
  pl_ir_dim dims[PL_IR_RANK_MAX];
  int32_t n = dense_dims(of, of_keys, last, dims);
  double *copy = PL_TAKE(of->computing->scratch, double, tensor->n);
  if (copy == NULL) return NULL;
  pl_ir_walk walk = pl_ir_walk_over(n, dims, 1, &tensor);
  int64_t i = 0;
  do
    copy[i++] = tensor->data[walk.at[0]];
  while (pl_ir_walk_next(&walk));
  return copy;
}

static void undense(attention *of, const double *from, bool of_keys, const pl_ir_dim *last, pl_ir_tensor *tensor) {
  pl_ir_dim dims[PL_IR_RANK_MAX];
  int32_t n = dense_dims(of, of_keys, last, dims);
  pl_ir_walk walk = pl_ir_walk_over(n, dims, 1, (const pl_ir_tensor *[]){tensor});
  int64_t i = 0;
  do
    tensor->data[walk.at[0]] = pl_ir_rounded(of->computing, from[i++]);
  while (pl_ir_walk_next(&walk));
}

/* ---- what the mask and the dropout need ---- */

/* Pairs are counted in the order of q's dimensions, then t; s and t by their positions, so that a sequence in another
 * order drops the same pairs. */
static int64_t place_of(const attention *of, const pl_ir_tensor *q, const pl_ir_walk *walk, int64_t position) {
  int64_t place = 0;
  for (int32_t i = 0; i < q->type.rank; i++) {
    const pl_ir_dim *dim = &q->type.dims[i];
    if (pl_ir_name_equal(dim->name, of->dims.d.name)) continue;
    int64_t index = 0;
    int32_t n = 0;
    pl_ir_dim dims[PL_IR_RANK_MAX];
    n = dense_dims(of, false, NULL, dims);
    for (int32_t w = 0; w < n; w++)
      if (pl_ir_name_equal(dims[w].name, dim->name)) index = walk->origin[w] + walk->index[w];
    if (of->dims.has_positions && pl_ir_name_equal(dim->name, of->dims.s.name)) index = position;
    place = place * dim->extent + index;
  }
  return place * of->dims.t.extent;
}

/* 0: the op has no penalties. */
static double slope_at(const attention *of, const pl_ir_dim *dims, int32_t n_dims, const pl_ir_walk *walk) {
  const pl_ir_attribute *heads = pl_ir_attribute_find(of->computing->op, "alibi");
  int64_t head = 0, n_heads = 1;
  if (heads == NULL) return 0;
  for (int32_t i = 0; i < heads->n_names; i++)
    for (int32_t w = 0; w < n_dims; w++) {
      if (!pl_ir_name_equal(dims[w].name, heads->names[i])) continue;
      head = head * dims[w].extent + walk->origin[w] + walk->index[w];
      n_heads *= dims[w].extent;
    }
  return pl_ir_alibi_slope(head, n_heads) * pl_ir_real_of(of->computing->op, "slope", 1);
}

static void set_queries(attention *of, const pl_ir_tensor *q, const pl_ir_tensor *positions) {
  pl_ir_dim dims[PL_IR_RANK_MAX];
  int32_t n = dense_dims(of, false, NULL, dims), s = -1;
  for (int32_t i = 0; of->dims.has_positions && i < n; i++)
    if (pl_ir_name_equal(dims[i].name, of->dims.s.name)) s = i;
  int64_t blocks = pl_ir_integer_of(of->computing->op, "blocks", 1), i = 0;
  pl_ir_walk walk = pl_ir_walk_over(n, dims, 1, &q);
  do {
    query *one = &of->queries[i++];
    if (s >= 0) {
      one->position = (int64_t)positions->data[walk.index[s]];
      one->block = (walk.origin[s] + walk.index[s]) / (of->dims.s.extent / blocks);
    }
    one->place = place_of(of, q, &walk, one->position);
    one->slope = slope_at(of, dims, n, &walk);
  } while (pl_ir_walk_next(&walk));
}

static void set_keys(attention *of, const pl_ir_tensor *k, const pl_ir_tensor *positions) {
  int64_t origin = k->origin[pl_ir_type_find(&k->type, of->dims.t.name)];
  int64_t blocks = pl_ir_integer_of(of->computing->op, "blocks", 1);
  for (int64_t j = 0; j < of->n_keys; j++) {
    of->key_position[j] = positions != NULL ? (int64_t)positions->data[j] : origin + j;
    of->key_block[j] = (origin + j) / (of->dims.t.extent / blocks);
  }
}

static int64_t extent_of(const pl_ir_tensor *tensor, pl_ir_name dim) {
  return tensor->extent[pl_ir_type_find(&tensor->type, dim)];
}

static pl_code begin(attention *of, const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_op *op = computing->op;
  const pl_ir_tensor *in = computing->inputs;
  pl_arena *scratch = computing->scratch;
  pl_ir_type types[5];
  for (int32_t k = 0; k < pl_ir_attention_n_before(op); k++)
    types[k] = in[k].type;
  *of = (attention){.computing = computing, .n_batch = 1, .n_rows = 1};
  PL_TRY(pl_ir_attention_dims_of(op, types, &of->dims, error));
  for (int32_t i = 0; i < of->dims.n_batch; i++)
    of->n_batch *= extent_of(&in[0], of->dims.batch[i].name);
  for (int32_t i = 0; i < of->dims.n_rows; i++)
    of->n_rows *= extent_of(&in[0], of->dims.rows[i].name);
  of->n_keys = extent_of(&in[1], of->dims.t.name);
  of->d = extent_of(&in[0], of->dims.d.name);
  of->e = extent_of(&in[2], of->dims.e.name);
  of->scale = pl_ir_real_of(op, "scale", 1 / sqrt((double)of->dims.d.extent));
  of->p = pl_ir_real_of(op, "p", 0);
  of->seed = (uint64_t)pl_ir_integer_of(op, "seed", 0);
  of->mask = pl_ir_mask_of(op);
  of->n_pairs = pl_ir_type_elements(&in[0].type) / (double)of->dims.d.extent * (double)of->dims.t.extent;
  of->q = dense(of, &in[0], false, &of->dims.d);
  of->k = dense(of, &in[1], true, &of->dims.d);
  of->v = dense(of, &in[2], true, &of->dims.e);
  of->queries = PL_TAKE(scratch, query, of->n_batch * of->n_rows);
  of->key_block = PL_TAKE(scratch, int64_t, of->n_keys);
  of->key_position = PL_TAKE(scratch, int64_t, of->n_keys);
  of->scores = PL_TAKE(scratch, double, of->n_keys);
  of->spare = PL_TAKE(scratch, double, of->n_keys);
  if (scratch->failed) return pl_fail_memory(error, "attention");
  set_queries(of, &in[0], of->dims.has_positions ? &in[3] : NULL);
  set_keys(of, &in[1], of->dims.has_positions ? &in[4] : NULL);
  return PL_OK;
}

static bool is_seen(const attention *of, const query *one, int64_t key) {
  return one->block == of->key_block[key] && pl_ir_mask_sees(&of->mask, one->position, of->key_position[key]);
}

static double kept(const attention *of, const query *one, int64_t key) {
  if (of->p == 0) return 1;
  return pl_ir_dropout_factor(of->computing, of->p, of->seed, (uint64_t)(one->place + of->key_position[key]),
                              of->n_pairs, of->computing->inputs[0].type.dims[0].extent);
}

/* ---- loops ---- */

static double dot(const attention *of, const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum = pl_ir_rounded(of->computing, sum + a[i] * b[i]);
  return sum;
}

static void add_times(const attention *of, double factor, const double *from, int64_t n, double *to) {
  for (int64_t i = 0; i < n; i++)
    to[i] = pl_ir_rounded(of->computing, to[i] + factor * from[i]);
}

static double score_of(const attention *of, const query *one, int64_t key, double product) {
  double away = fabs((double)(one->position - of->key_position[key]));
  return pl_ir_rounded(of->computing, of->scale * product - one->slope * away);
}

/* scale q k, less the penalties, into `scores`, -infinity where the row does not see the key; returns the largest. */
static double score(const attention *of, int64_t batch, int64_t row) {
  const query *one = &of->queries[batch * of->n_rows + row];
  const double *q = &of->q[(batch * of->n_rows + row) * of->d], *k = &of->k[batch * of->n_keys * of->d];
  double most = -INFINITY;
  for (int64_t j = 0; j < of->n_keys; j++) {
    of->scores[j] = is_seen(of, one, j) ? score_of(of, one, j, dot(of, q, &k[j * of->d], of->d)) : -INFINITY;
    most = fmax(most, of->scores[j]);
  }
  return most;
}

/* y of one row, which is zero before; returns its log-sum-exp, -infinity when it sees nothing. */
static double attend(const attention *of, int64_t batch, int64_t row, double *y) {
  double most = score(of, batch, row), sum = 0;
  if (most == -INFINITY) return most;
  for (int64_t j = 0; j < of->n_keys; j++)
    sum = pl_ir_rounded(of->computing, sum + exp(of->scores[j] - most));
  double lse = pl_ir_rounded(of->computing, most + log(sum));
  const query *one = &of->queries[batch * of->n_rows + row];
  for (int64_t j = 0; j < of->n_keys; j++) {
    if (of->scores[j] == -INFINITY) continue;
    double weight = pl_ir_rounded(of->computing, exp(of->scores[j] - lse) * kept(of, one, j));
    add_times(of, weight, &of->v[(batch * of->n_keys + j) * of->e], of->e, y);
  }
  return lse;
}

pl_code pl_ir_compute_attention(const pl_ir_computing *computing, pl_error *error) {
  attention of;
  PL_TRY(begin(&of, computing, error));
  double *y = PL_TAKE(computing->scratch, double, of.n_batch *of.n_rows *of.e);
  double *lse = PL_TAKE(computing->scratch, double, of.n_batch *of.n_rows);
  if (y == NULL || lse == NULL) return pl_fail_memory(error, "attention");
  for (int64_t batch = 0; batch < of.n_batch; batch++)
    for (int64_t row = 0; row < of.n_rows; row++) {
      int64_t i = batch * of.n_rows + row;
      lse[i] = attend(&of, batch, row, &y[i * of.e]);
    }
  undense(&of, y, false, &of.dims.e, &computing->outputs[0]);
  undense(&of, lse, false, NULL, &computing->outputs[1]);
  return PL_OK;
}

typedef struct gradients {
  const double *y, *lse, *dy, *dlse; /* dlse NULL: none */
  double *dq, *dk, *dv;
} gradients;

static void attend_backward(const attention *of, int64_t batch, int64_t row, const gradients *to) {
  int64_t i = batch * of->n_rows + row;
  const query *one = &of->queries[i];
  const double *dy = &to->dy[i * of->e];
  double delta = dot(of, dy, &to->y[i * of->e], of->e) - (to->dlse != NULL ? to->dlse[i] : 0);
  score(of, batch, row);
  for (int64_t j = 0; j < of->n_keys; j++) {
    if (of->scores[j] == -INFINITY) continue;
    int64_t key = batch * of->n_keys + j;
    double p = pl_ir_rounded(of->computing, exp(of->scores[j] - to->lse[i])), mask = kept(of, one, j);
    double dp = mask * dot(of, dy, &of->v[key * of->e], of->e);
    double ds = pl_ir_rounded(of->computing, of->scale * p * (dp - delta));
    add_times(of, ds, &of->k[key * of->d], of->d, &to->dq[i * of->d]);
    add_times(of, ds, &of->q[i * of->d], of->d, &to->dk[key * of->d]);
    add_times(of, p * mask, dy, of->e, &to->dv[key * of->e]);
  }
}

pl_code pl_ir_compute_attention_backward(const pl_ir_computing *computing, pl_error *error) {
  attention of;
  PL_TRY(begin(&of, computing, error));
  int32_t n = pl_ir_attention_n_before(computing->op);
  const pl_ir_tensor *in = &computing->inputs[n];
  pl_arena *scratch = computing->scratch;
  const gradients to = {.y = dense(&of, &in[0], false, &of.dims.e),
                        .lse = dense(&of, &in[1], false, NULL),
                        .dy = dense(&of, &in[2], false, &of.dims.e),
                        .dlse = n + 3 < computing->op->n_inputs ? dense(&of, &in[3], false, NULL) : NULL,
                        .dq = PL_TAKE(scratch, double, of.n_batch *of.n_rows *of.d),
                        .dk = PL_TAKE(scratch, double, of.n_batch *of.n_keys *of.d),
                        .dv = PL_TAKE(scratch, double, of.n_batch *of.n_keys *of.e)};
  if (scratch->failed) return pl_fail_memory(error, "the backward pass of attention");
  for (int64_t batch = 0; batch < of.n_batch; batch++)
    for (int64_t row = 0; row < of.n_rows; row++)
      attend_backward(&of, batch, row, &to);
  undense(&of, to.dq, false, &of.dims.d, &computing->outputs[0]);
  undense(&of, to.dk, true, &of.dims.d, &computing->outputs[1]);
  undense(&of, to.dv, true, &of.dims.e, &computing->outputs[2]);
  return PL_OK;
}

/* ---- joining pieces ---- */

/* e^(l - of both); a piece that sees nothing weighs nothing. */
static double weight_of(const pl_ir_computing *computing, double l, double both) {
  return l == -INFINITY ? 0 : pl_ir_rounded(computing, exp(l - both));
}

/* The dimension that only the answers have. */
static pl_ir_dim value_dim(const pl_ir_tensor *in) {
  int32_t i = 0;
  while (pl_ir_type_find(&in[1].type, in[0].type.dims[i].name) >= 0)
    i++;
  return in[0].type.dims[i];
}

static pl_ir_walk walk_rows(const pl_ir_computing *computing) {
  const pl_ir_tensor *in = computing->inputs, *tensors[PL_IR_WALK_TENSORS];
  for (int32_t k = 0; k < computing->op->n_inputs; k++)
    tensors[k] = &in[k];
  return pl_ir_walk_over(in[1].type.rank, in[1].type.dims, computing->op->n_inputs, tensors);
}

pl_code pl_ir_compute_attention_merge(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = computing->inputs;
  const pl_ir_dim e = value_dim(in);
  int64_t n = extent_of(&in[0], e.name), step = pl_ir_tensor_step(&in[0], e.name);
  int64_t step2 = pl_ir_tensor_step(&in[2], e.name);
  pl_ir_walk walk = walk_rows(computing);
  do {
    double l1 = in[1].data[walk.at[1]], l2 = in[3].data[walk.at[3]], most = fmax(l1, l2);
    double both = most == -INFINITY ? most : most + log(exp(l1 - most) + exp(l2 - most));
    both = pl_ir_rounded(computing, both);
    double w1 = weight_of(computing, l1, both), w2 = weight_of(computing, l2, both);
    const double *y1 = &in[0].data[walk.at[0]], *y2 = &in[2].data[walk.at[2]];
    double *y = &computing->outputs[0].data[walk.at[0]];
    computing->outputs[1].data[walk.at[1]] = both;
    for (int64_t k = 0; k < n; k++)
      y[k * step] = pl_ir_rounded(computing, w1 * y1[k * step] + w2 * y2[k * step2]);
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}

pl_code pl_ir_compute_attention_merge_backward(const pl_ir_computing *computing, pl_error *error) {
  (void)error;
  const pl_ir_tensor *in = computing->inputs;
  pl_ir_tensor *out = computing->outputs;
  const pl_ir_dim e = value_dim(in);
  int64_t n = extent_of(&in[0], e.name), step = pl_ir_tensor_step(&in[4], e.name);
  int64_t dy_step = pl_ir_tensor_step(&in[6], e.name);
  pl_ir_walk walk = walk_rows(computing);
  do {
    const double *y = &in[4].data[walk.at[4]], *dy = &in[6].data[walk.at[6]];
    for (int piece = 0; piece < 4; piece += 2) {
      const double *own = &in[piece].data[walk.at[piece]];
      int64_t own_step = pl_ir_tensor_step(&in[piece], e.name);
      double weight = weight_of(computing, in[piece + 1].data[walk.at[piece + 1]], in[5].data[walk.at[5]]);
      double sum = computing->op->n_inputs == 8 ? in[7].data[walk.at[7]] : 0;
      for (int64_t k = 0; k < n; k++) {
        sum = pl_ir_rounded(computing, sum + dy[k * dy_step] * (own[k * own_step] - y[k * step]));
        out[piece].data[walk.at[piece] + k * own_step] = pl_ir_rounded(computing, weight * dy[k * dy_step]);
      }
      out[piece + 1].data[walk.at[piece + 1]] = pl_ir_rounded(computing, weight * sum);
    }
  } while (pl_ir_walk_next(&walk));
  return PL_OK;
}
