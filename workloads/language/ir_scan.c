/* See workloads/language/ir_scan.h. Token by token, as the equations stand there: chunks are for the kernels' cost
 * alone. Operands are laid out as [heads and samples, s, width] first, what heads share once for each. */
#include "workloads/language/ir_scan.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_arrange.h"

enum { OPERANDS_MAX = 7 };

typedef struct scan {
  const pl_ir_computing *computing;
  pl_ir_scan_dims dims;
  int64_t heads, tokens, own, state; /* here */
  pl_ir_tensor order[OPERANDS_MAX];  /* of each operand, spread over all heads */
  const double *in[OPERANDS_MAX];    /* the same with data */
  double *out[OPERANDS_MAX];         /* gradients of the operands before dy, or the answer */
  double *states;                    /* [tokens + 1, own * state] of one head, backward */
} scan;

/* ---- operands ---- */

static void push_named(pl_ir_tensor *order, const pl_ir_tensor *inputs, int32_t n, pl_ir_name name) {
  for (int32_t i = 0; i < n; i++) {
    int32_t at = pl_ir_type_find(&inputs[i].type, name);
    if (at < 0) continue;
    pl_ir_order_push(order, &inputs[i], at);
    return;
  }
}

/* Heads, then s, own and state where the operand has them. */
static void set_order(scan *of, int32_t k) {
  const pl_ir_tensor *inputs = of->computing->inputs, *rate = &inputs[of->dims.rate];
  const pl_ir_name rest[] = {of->dims.s.name, of->dims.own.name, of->dims.state.name};
  of->order[k] = pl_ir_order_empty();
  of->heads = 1;
  for (int32_t i = 0; i < rate->type.rank; i++) {
    if (pl_ir_name_equal(rate->type.dims[i].name, of->dims.s.name)) continue;
    pl_ir_order_push(&of->order[k], rate, i);
    of->heads *= rate->extent[i];
  }
  for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
    if (pl_ir_type_find(&inputs[k].type, rest[i]) >= 0)
      push_named(&of->order[k], inputs, of->computing->op->n_inputs, rest[i]);
}

static int64_t extent_of(const scan *of, pl_ir_name name) {
  for (int32_t i = 0; i < of->computing->op->n_inputs; i++) {
    const pl_ir_tensor *tensor = &of->computing->inputs[i];
    int32_t at = pl_ir_type_find(&tensor->type, name);
    if (at >= 0) return tensor->extent[at];
  }
  return 1;
}

static pl_code begin(scan *of, const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_op *op = computing->op;
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX);
  *of = (scan){.computing = computing};
  for (int32_t i = 0; i < op->n_inputs; i++)
    types[i] = computing->inputs[i].type;
  PL_TRY(pl_ir_scan_dims_of(op, types, &of->dims, error));
  of->tokens = extent_of(of, of->dims.s.name);
  of->own = extent_of(of, of->dims.own.name);
  of->state = extent_of(of, of->dims.state.name);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    set_order(of, i);
    double *to = PL_TAKE(computing->scratch, double, of->order[i].n);
    if (to == NULL) return pl_fail_memory(error, "a scan");
    pl_ir_arrange(&computing->inputs[i], &of->order[i], to);
    of->in[i] = to;
  }
  bool backward = op->n_inputs > of->dims.n_before;
  for (int32_t i = 0; backward && i < of->dims.n_before; i++) {
    of->out[i] = PL_TAKE(computing->scratch, double, of->order[i].n);
    if (of->out[i] == NULL) return pl_fail_memory(error, "a scan");
    memset(of->out[i], 0, (size_t)of->order[i].n * sizeof(double));
  }
  of->states = PL_TAKE(computing->scratch, double, (backward ? of->tokens + 1 : 1) * of->own * of->state);
  return of->states != NULL ? PL_OK : pl_fail_memory(error, "the states of a scan");
}

/* What heads share has the sum of their gradients. */
static void hand_back(const scan *of) {
  for (int32_t i = 0; i < of->dims.n_before; i++)
    pl_ir_arrange_sum(&of->order[i], of->out[i], &of->computing->outputs[i]);
}

/* ---- the state space ---- */

enum { X, STEP, RATE, INTO, FROM, SKIP, DY }; /* x, step, A, B, C, D */

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

/* The state behind token t from the one in front of it; may be the same. */
static void advance(const scan *of, int64_t head, int64_t t, const double *before, double *behind) {
  int64_t at = head * of->tokens + t;
  const double *x = of->in[X] + at * of->own, *into = of->in[INTO] + at * of->state;
  double step = of->in[STEP][at], decay = exp(step * of->in[RATE][head]);
  for (int64_t d = 0; d < of->own; d++)
    for (int64_t n = 0; n < of->state; n++)
      behind[d * of->state + n] = decay * before[d * of->state + n] + step * x[d] * into[n];
}

pl_code pl_ir_compute_state_space(const pl_ir_computing *computing, pl_error *error) {
  scan of;
  PL_TRY(begin(&of, computing, error));
  double *y = PL_TAKE(computing->scratch, double, of.order[X].n), *state = of.states;
  if (y == NULL) return pl_fail_memory(error, "a scan");
  for (int64_t head = 0; head < of.heads; head++) {
    memset(state, 0, (size_t)(of.own * of.state) * sizeof *state);
    for (int64_t t = 0; t < of.tokens; t++) {
      int64_t at = head * of.tokens + t;
      advance(&of, head, t, state, state);
      for (int64_t d = 0; d < of.own; d++)
        y[at * of.own + d] = dot(state + d * of.state, of.in[FROM] + at * of.state, of.state) +
                             of.in[SKIP][head] * of.in[X][at * of.own + d];
    }
  }
  pl_ir_arrange_sum(&of.order[X], y, &computing->outputs[0]);
  return PL_OK;
}

/* Token t's share of the gradients; g [own, state] is that of the state behind it, then of the one in front. */
static void back_one(const scan *of, int64_t head, int64_t t, double *g) {
  int64_t at = head * of->tokens + t, n_state = of->state;
  const double *before = of->states + t * of->own * n_state, *behind = before + of->own * n_state;
  const double *x = of->in[X] + at * of->own, *dy = of->in[DY] + at * of->own, *into = of->in[INTO] + at * n_state,
               *from = of->in[FROM] + at * n_state;
  double step = of->in[STEP][at], rate = of->in[RATE][head], decay = exp(step * rate);
  for (int64_t d = 0; d < of->own; d++) {
    of->out[SKIP][head] += dy[d] * x[d];
    of->out[X][at * of->own + d] += of->in[SKIP][head] * dy[d];
    for (int64_t n = 0; n < n_state; n++) {
      double *here = &g[d * n_state + n], decayed = decay * before[d * n_state + n];
      *here += dy[d] * from[n];
      of->out[FROM][at * n_state + n] += dy[d] * behind[d * n_state + n];
      of->out[X][at * of->own + d] += step * *here * into[n];
      of->out[INTO][at * n_state + n] += step * *here * x[d];
      of->out[STEP][at] += *here * (into[n] * x[d] + rate * decayed);
      of->out[RATE][head] += *here * step * decayed;
      *here *= decay;
    }
  }
}

pl_code pl_ir_compute_state_space_backward(const pl_ir_computing *computing, pl_error *error) {
  scan of;
  PL_TRY(begin(&of, computing, error));
  int64_t n = of.own * of.state;
  double *g = PL_TAKE(computing->scratch, double, n);
  if (g == NULL) return pl_fail_memory(error, "a scan");
  for (int64_t head = 0; head < of.heads; head++) {
    memset(of.states, 0, (size_t)n * sizeof *of.states);
    for (int64_t t = 0; t < of.tokens; t++)
      advance(&of, head, t, of.states + t * n, of.states + (t + 1) * n);
    memset(g, 0, (size_t)n * sizeof *g);
    for (int64_t t = of.tokens; t-- > 0;)
      back_one(&of, head, t, g);
  }
  hand_back(&of);
  return PL_OK;
}

/* ---- the delta rule ---- */

enum { Q, K, V, DECAY, BETA, DELTA_DY };

/* The state [state, own] in front of token t decayed (`decayed`, may be `before`), what is written (`delta`), and the
 * state behind it. */
static void write_one(const scan *of, int64_t head, int64_t t, const double *before, double *decayed, double *delta,
                      double *behind) {
  int64_t at = head * of->tokens + t, e = of->own;
  const double *k = of->in[K] + at * of->state;
  double decay = exp(of->in[DECAY][at]);
  for (int64_t i = 0; i < of->state * e; i++)
    decayed[i] = decay * before[i];
  for (int64_t j = 0; j < e; j++) {
    double known = 0;
    for (int64_t d = 0; d < of->state; d++)
      known += decayed[d * e + j] * k[d];
    delta[j] = of->in[BETA][at] * (of->in[V][at * e + j] - known);
  }
  for (int64_t d = 0; d < of->state; d++)
    for (int64_t j = 0; j < e; j++)
      behind[d * e + j] = decayed[d * e + j] + k[d] * delta[j];
}

pl_code pl_ir_compute_delta_rule(const pl_ir_computing *computing, pl_error *error) {
  scan of;
  PL_TRY(begin(&of, computing, error));
  int64_t e = of.own;
  double *y = PL_TAKE(computing->scratch, double, of.order[V].n), *delta = PL_TAKE(computing->scratch, double, e);
  if (y == NULL || delta == NULL) return pl_fail_memory(error, "a scan");
  memset(y, 0, (size_t)of.order[V].n * sizeof *y);
  for (int64_t head = 0; head < of.heads; head++) {
    memset(of.states, 0, (size_t)(of.state * e) * sizeof *of.states);
    for (int64_t t = 0; t < of.tokens; t++) {
      int64_t at = head * of.tokens + t;
      write_one(&of, head, t, of.states, of.states, delta, of.states);
      for (int64_t d = 0; d < of.state; d++)
        for (int64_t j = 0; j < e; j++)
          y[at * e + j] += of.states[d * e + j] * of.in[Q][at * of.state + d];
    }
  }
  pl_ir_arrange_sum(&of.order[V], y, &computing->outputs[0]);
  return PL_OK;
}

/* `spare`: decayed [state, own], delta, gradients of delta and of what was known [own]. */
static void delta_back_one(const scan *of, int64_t head, int64_t t, double *g, double *spare) {
  int64_t at = head * of->tokens + t, e = of->own, n = of->state * e;
  const double *before = of->states + t * n, *behind = before + n;
  const double *q = of->in[Q] + at * of->state, *k = of->in[K] + at * of->state, *dy = of->in[DELTA_DY] + at * e;
  double *decayed = spare, *delta = spare + n, *ddelta = delta + e, *dknown = ddelta + e;
  double decay = exp(of->in[DECAY][at]), beta = of->in[BETA][at];
  for (int64_t i = 0; i < n; i++)
    decayed[i] = decay * before[i];
  for (int64_t j = 0; j < e; j++) {
    double known = 0;
    ddelta[j] = 0;
    for (int64_t d = 0; d < of->state; d++) {
      known += decayed[d * e + j] * k[d];
      g[d * e + j] += q[d] * dy[j];
      of->out[Q][at * of->state + d] += behind[d * e + j] * dy[j];
      ddelta[j] += g[d * e + j] * k[d];
    }
    double error = of->in[V][at * e + j] - known;
    delta[j] = beta * error;
    dknown[j] = -beta * ddelta[j];
    of->out[BETA][at] += ddelta[j] * error;
    of->out[V][at * e + j] += beta * ddelta[j];
  }
  for (int64_t d = 0; d < of->state; d++)
    for (int64_t j = 0; j < e; j++) {
      double into = g[d * e + j] + k[d] * dknown[j]; /* of the decayed state */
      of->out[K][at * of->state + d] += g[d * e + j] * delta[j] + decayed[d * e + j] * dknown[j];
      of->out[DECAY][at] += into * decayed[d * e + j];
      g[d * e + j] = decay * into;
    }
}

pl_code pl_ir_compute_delta_rule_backward(const pl_ir_computing *computing, pl_error *error) {
  scan of;
  PL_TRY(begin(&of, computing, error));
  int64_t n = of.own * of.state;
  double *g = PL_TAKE(computing->scratch, double, n), *spare = PL_TAKE(computing->scratch, double, n + 3 * of.own);
  if (g == NULL || spare == NULL) return pl_fail_memory(error, "a scan");
  for (int64_t head = 0; head < of.heads; head++) {
    memset(of.states, 0, (size_t)n * sizeof *of.states);
    for (int64_t t = 0; t < of.tokens; t++)
      write_one(&of, head, t, of.states + t * n, spare, spare + n, of.states + (t + 1) * n);
    memset(g, 0, (size_t)n * sizeof *g);
    for (int64_t t = of.tokens; t-- > 0;)
      delta_back_one(&of, head, t, g, spare);
  }
  hand_back(&of);
  return PL_OK;
}
