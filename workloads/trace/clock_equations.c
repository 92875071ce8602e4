/* See workloads/trace/clock_equations.h.
 *
 * A date on the common clock is linear in the two unknowns of its host. An observation is the difference of two such
 * dates that should be a constant: 0 for ends, the family's own mean for transfers, which is taken out of the equations
 * family by family (a family has two hosts, hence four unknowns). A violated constraint counts as an observation of 0
 * with 30 times the weight until it holds. */
#include "workloads/trace/clock_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/order.h"

enum { ITERATIONS = 40, LEAST_FAMILY = 3 };

static const double drift_prior_ns_per_s = 1e5; /* 100 ppm */
static const double offset_prior_ns = 1e6;      /* around the first estimate, where nothing says more */
static const double least_scale_ns = 20;        /* dates of profilers are no finer */

/* later - earlier, of two hosts' dates. */
typedef struct difference {
  uint32_t later, earlier;   /* clocks */
  double value_ns;           /* by the first estimates */
  double later_s, earlier_s; /* since the middle */
  uint32_t family;           /* transfers; observations of one family stand together */
} difference;

/* A message between hosts; those of one family (hosts and size) stand together. */
typedef struct clock_transfer {
  uint32_t low, high, family_low, family_high; /* clocks */
  bool up;                                     /* from low to high */
  int64_t size_bytes;
  uint32_t send, receive;
} clock_transfer;

typedef struct equations {
  const pl_trace *trace;
  const pl_trace_meetings *meetings;
  pl_trace_clocks *clocks;
  difference *ends, *transfers, *bounds; /* bounds: must not be negative */
  clock_transfer *all, *chosen;
  uint32_t n_ends, n_transfers, n_bounds, n_all;
  double *matrix, *right, *scratch, *mean;
  uint32_t n; /* unknowns: 2 per clock but the first */
  /* Robust weights know many solutions; from the widest spread downwards they find the one that most agree with. */
  double widest_ends_ns, widest_transfers_ns;
} equations;

static double now(const pl_trace_clocks *clocks, uint32_t clock, double since_s) {
  const pl_trace_clock *c = &clocks->clocks[clock];
  return c->more_ns + c->drift_ns_per_s * since_s;
}

static double residual(const pl_trace_clocks *clocks, const difference *d) {
  return d->value_ns + now(clocks, d->later, d->later_s) - now(clocks, d->earlier, d->earlier_s);
}

/* ---- observations ---- */

typedef struct dated {
  uint32_t clock;
  int64_t ns; /* by the first estimate, since the middle */
} dated;

static dated date_of(const equations *own, uint32_t op, bool end) {
  const pl_trace_op *o = &own->trace->ops[op];
  uint32_t rank = pl_trace_rank_of(own->trace, op), clock = own->clocks->clock_of_rank[rank];
  int64_t at = own->trace->ranks[rank].epoch_ns + own->clocks->clocks[clock].offset_ns - own->clocks->middle_ns;
  return (dated){clock, at + o->start_ns + (end ? o->duration_ns : 0)};
}

static difference between(dated later, dated earlier) {
  return (difference){.later = later.clock,
                      .earlier = earlier.clock,
                      .value_ns = (double)(later.ns - earlier.ns),
                      .later_s = (double)later.ns * 1e-9,
                      .earlier_s = (double)earlier.ns * 1e-9};
}

/* Ends against that of the first member; of the members of a host the latest. One bound: the first end and the last
 * start that stand on different hosts. */
static void observe_collective(equations *own, uint32_t m) {
  const pl_trace_meeting *meeting = &own->meetings->meetings[m];
  bool together = pl_trace_ends_together(own->trace, own->meetings, m);
  if (meeting->n < 2) return;
  dated pivot = date_of(own, own->meetings->ops[meeting->first], true);
  dated start = date_of(own, own->meetings->ops[meeting->first], false), end = pivot;
  for (uint32_t k = 1; k < meeting->n; k++) {
    dated other = date_of(own, own->meetings->ops[meeting->first + k], true);
    dated begun = date_of(own, own->meetings->ops[meeting->first + k], false);
    if (together && other.clock != pivot.clock) {
      own->clocks->clocks[other.clock].n_ties++;
      own->ends[own->n_ends++] = between(other, pivot);
    }
    if (begun.ns > start.ns) start = begun;
    if (other.ns < end.ns) end = other;
  }
  if (start.clock != end.clock && together) own->bounds[own->n_bounds++] = between(end, start);
}

/* Where sizes are not recorded, what is called alike up to a '~' is of one size: chunks of a tensor, or its pieces. */
static int64_t size_of(const equations *own, uint32_t op) {
  const pl_trace_message *message = &own->trace->messages[own->trace->ops[op].message];
  if (message->size_bytes >= 0 || message->tag == PL_NONE) return message->size_bytes;
  const char *tag = own->trace->names[message->tag];
  return -2 - (int64_t)(pl_hash_bytes(tag, strcspn(tag, "~"), 0) >> 2);
}

static int by_family(const void *a_, const void *b_) {
  const clock_transfer *a = a_, *b = b_;
  if (a->low != b->low) return a->low < b->low ? -1 : 1;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes ? -1 : 1;
  return a->send < b->send ? -1 : a->send > b->send;
}

/* Both directions between two hosts are one family, which fixes the offset between them. Where messages go one way only
 * (a ring of hosts) nothing but the constraints would: those of one size are one family over all such pairs. */
static void merge_one_way(clock_transfer *all, uint32_t n) {
  for (uint32_t k = 0, end; k < n; k = end) {
    bool up = false, down = false;
    for (end = k; end < n && all[end].low == all[k].low && all[end].high == all[k].high; end++) {
      up |= all[end].up;
      down |= !all[end].up;
    }
    for (uint32_t t = k; t < end && !(up && down); t++)
      all[t].family_low = all[t].family_high = PL_NONE;
    for (uint32_t t = k; t < end && up && down; t++) {
      all[t].family_low = all[t].low;
      all[t].family_high = all[t].high;
    }
  }
  for (uint32_t k = 0; k < n; k++) {
    all[k].low = all[k].family_low;
    all[k].high = all[k].family_high;
  }
  qsort(all, n, sizeof *all, by_family);
}

static bool sender_is_last(const equations *own, const clock_transfer *t) {
  dated sent = date_of(own, t->send, false), posted = date_of(own, t->receive, false);
  difference since = between(sent, posted);
  return residual(own->clocks, &since) > 0;
}

/* The receive went on for most of what the send took, so what it waited for was the message's flight. */
static bool waits_for_flight(const equations *own, const clock_transfer *t) {
  return own->trace->ops[t->receive].duration_ns > own->trace->ops[t->send].duration_ns / 2;
}

/* By the clocks as they are now: the transfers whose sender was last. Where the receiver was last, its library may have
 * taken in a part before, or may have made the sender wait: such transfers count only where a direction has no others.
 */
static uint32_t choose(const equations *own, clock_transfer *chosen) {
  uint32_t n = 0;
  for (uint32_t k = 0, end; k < own->n_all; k = end) {
    uint32_t last[2] = {0, 0};
    for (end = k; end < own->n_all && own->all[end].low == own->all[k].low && own->all[end].high == own->all[k].high;
         end++)
      last[own->all[end].up] += sender_is_last(own, &own->all[end]);
    for (uint32_t t = k; t < end; t++)
      if (last[own->all[t].up] >= LEAST_FAMILY ? sender_is_last(own, &own->all[t])
                                               : waits_for_flight(own, &own->all[t]))
        chosen[n++] = own->all[t];
  }
  return n;
}

static void observe_transfers(equations *own) {
  uint32_t family = 0;
  clock_transfer *chosen = own->chosen;
  uint32_t n = choose(own, chosen);
  merge_one_way(chosen, n);
  own->n_transfers = 0;
  for (uint32_t k = 0, end; k < n; k = end, family++) {
    for (end = k + 1; end < n && chosen[end].low == chosen[k].low && chosen[end].high == chosen[k].high &&
                      chosen[end].size_bytes == chosen[k].size_bytes;)
      end++;
    for (uint32_t t = k; end - k >= LEAST_FAMILY && t < end; t++) {
      difference d = between(date_of(own, chosen[t].receive, true), date_of(own, chosen[t].send, false));
      d.family = family;
      own->transfers[own->n_transfers++] = d;
    }
  }
}

static bool observe(equations *own) {
  for (uint32_t m = 0; m < own->meetings->n; m++) {
    const pl_trace_meeting *meeting = &own->meetings->meetings[m];
    if (!meeting->is_transfer) {
      observe_collective(own, m);
    } else if (meeting->n == 2) {
      uint32_t send = own->meetings->ops[meeting->first], receive = own->meetings->ops[meeting->first + 1];
      dated sent = date_of(own, send, false), done = date_of(own, receive, true);
      uint32_t a = sent.clock, b = done.clock;
      if (a == b) continue;
      own->bounds[own->n_bounds++] = between(done, sent);
      own->all[own->n_all++] =
          (clock_transfer){a < b ? a : b, a < b ? b : a, PL_NONE, PL_NONE, a < b, size_of(own, send), send, receive};
    }
  }
  qsort(own->all, own->n_all, sizeof *own->all, by_family);
  return true;
}

/* ---- normal equations ---- */

/* Row of a difference: at most four unknowns and their coefficients. The first clock has none. */
typedef struct sparse_row {
  uint32_t at[4];
  double coefficient[4];
  int n;
} sparse_row;

static void put(sparse_row *row, uint32_t clock, double since_s, double sign) {
  if (clock == 0) return;
  row->at[row->n] = 2 * (clock - 1);
  row->coefficient[row->n++] = sign;
  row->at[row->n] = 2 * (clock - 1) + 1;
  row->coefficient[row->n++] = sign * since_s;
}

static sparse_row row_of(const difference *d) {
  sparse_row row = {.n = 0};
  put(&row, d->later, d->later_s, 1);
  put(&row, d->earlier, d->earlier_s, -1);
  return row;
}

static void add_row(equations *own, const sparse_row *row, double value, double weight) {
  for (int i = 0; i < row->n; i++) {
    for (int j = 0; j < row->n; j++)
      own->matrix[(size_t)row->at[i] * own->n + row->at[j]] += weight * row->coefficient[i] * row->coefficient[j];
    own->right[row->at[i]] -= weight * row->coefficient[i] * value;
  }
}

static double median(double *values, uint32_t n) {
  qsort(values, n, sizeof *values, pl_by_double);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Robust standard deviation around `centre`. */
static double spread(double *values, uint32_t n, double centre) {
  for (uint32_t k = 0; k < n; k++)
    values[k] = fabs(values[k] - centre);
  return 1.4826 * median(values, n);
}

static double rms(const double *values, uint32_t n) {
  double sum = 0;
  for (uint32_t k = 0; k < n; k++)
    sum += values[k] * values[k];
  return sqrt(sum / n);
}

/* The scale of the weights: the residuals' own, but not yet below the widest, which halves with every use. */
static double weight_scale(double scale_ns, double rms_ns, double *widest_ns) {
  *widest_ns = *widest_ns < 0 ? 2 * rms_ns : *widest_ns / 2;
  return fmax(fmax(scale_ns, *widest_ns), least_scale_ns);
}

static double cauchy(double residual_ns, double scale_ns) {
  double x = residual_ns / (2 * scale_ns);
  return 1 / (scale_ns * scale_ns * (1 + x * x));
}

static void add_ends(equations *own) {
  if (own->n_ends == 0) return;
  for (uint32_t k = 0; k < own->n_ends; k++)
    own->scratch[k] = residual(own->clocks, &own->ends[k]);
  double all = rms(own->scratch, own->n_ends), scale = spread(own->scratch, own->n_ends, 0);
  own->clocks->end_residual_ns = scale;
  scale = weight_scale(scale, all, &own->widest_ends_ns);
  for (uint32_t k = 0; k < own->n_ends; k++) {
    double r = residual(own->clocks, &own->ends[k]);
    sparse_row row = row_of(&own->ends[k]);
    add_row(own, &row, r, cauchy(r, scale));
  }
}

/* The mean of a family, robust, and its transfers against it: sum over w (a - mean a)(a - mean a)^T. */
static void add_family(equations *own, uint32_t first, uint32_t end, double scale) {
  uint32_t n = end - first;
  for (uint32_t k = 0; k < n; k++)
    own->scratch[k] = residual(own->clocks, &own->transfers[first + k]);
  double centre = median(own->scratch, n), weights = 0, mean_value = 0;
  memset(own->mean, 0, own->n * sizeof *own->mean);
  for (uint32_t k = first; k < end; k++) {
    double r = residual(own->clocks, &own->transfers[k]), w = cauchy(r - centre, scale);
    sparse_row row = row_of(&own->transfers[k]);
    weights += w;
    mean_value += w * (r - centre);
    add_row(own, &row, r - centre, w);
    for (int i = 0; i < row.n; i++)
      own->mean[row.at[i]] += w * row.coefficient[i];
  }
  for (uint32_t i = 0; i < own->n; i++) {
    if (own->mean[i] == 0) continue;
    own->right[i] += own->mean[i] * mean_value / weights;
    for (uint32_t j = 0; j < own->n; j++)
      own->matrix[(size_t)i * own->n + j] -= own->mean[i] * own->mean[j] / weights;
  }
}

static void add_transfers(equations *own) {
  if (own->n_transfers == 0) return;
  uint32_t n = 0;
  for (uint32_t k = 0, end; k < own->n_transfers; k = end) { /* spread of all around their families' medians */
    for (end = k; end < own->n_transfers && own->transfers[end].family == own->transfers[k].family; end++)
      own->scratch[own->n_transfers + end - k] = residual(own->clocks, &own->transfers[end]);
    double centre = median(own->scratch + own->n_transfers, end - k);
    for (uint32_t t = k; t < end; t++)
      own->scratch[n++] = residual(own->clocks, &own->transfers[t]) - centre;
  }
  double all = rms(own->scratch, n), scale = spread(own->scratch, n, 0);
  own->clocks->transfer_residual_ns = scale;
  scale = weight_scale(scale, all, &own->widest_transfers_ns);
  for (uint32_t k = 0, end; k < own->n_transfers; k = end) {
    for (end = k; end < own->n_transfers && own->transfers[end].family == own->transfers[k].family;)
      end++;
    add_family(own, k, end, scale);
  }
}

static void add_bounds(equations *own) {
  for (uint32_t k = 0; k < own->n_bounds; k++) {
    double r = residual(own->clocks, &own->bounds[k]);
    sparse_row row = row_of(&own->bounds[k]);
    if (r < 0) add_row(own, &row, r, 30 / (least_scale_ns * least_scale_ns));
  }
}

/* In place: lower triangle of the Cholesky factor. False: not positive definite. */
static bool factorise(double *a, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double sum = a[(size_t)i * n + j];
      for (uint32_t k = 0; k < j; k++)
        sum -= a[(size_t)i * n + k] * a[(size_t)j * n + k];
      if (i == j && !(sum > 0)) return false;
      a[(size_t)i * n + j] = i == j ? sqrt(sum) : sum / a[(size_t)j * n + j];
    }
  return true;
}

static void solve(const double *a, uint32_t n, double *x) {
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = 0; k < i; k++)
      x[i] -= a[(size_t)i * n + k] * x[k];
    x[i] /= a[(size_t)i * n + i];
  }
  for (uint32_t i = n; i-- > 0;) {
    for (uint32_t k = i + 1; k < n; k++)
      x[i] -= a[(size_t)k * n + i] * x[k];
    x[i] /= a[(size_t)i * n + i];
  }
}

static void set_deviations(equations *own) {
  for (uint32_t i = 0; i < own->n; i++) { /* the diagonal of the inverse */
    memset(own->right, 0, own->n * sizeof *own->right);
    own->right[i] = 1;
    solve(own->matrix, own->n, own->right);
    pl_trace_clock *clock = &own->clocks->clocks[i / 2 + 1];
    *(i % 2 == 0 ? &clock->offset_sd_ns : &clock->drift_sd_ns_per_s) = sqrt(own->right[i]);
  }
}

static void assemble(equations *own) {
  observe_transfers(own);
  memset(own->matrix, 0, (size_t)own->n * own->n * sizeof *own->matrix);
  memset(own->right, 0, own->n * sizeof *own->right);
  for (uint32_t i = 0; i < own->n; i++) { /* what nothing ties stays where it is */
    const pl_trace_clock *clock = &own->clocks->clocks[i / 2 + 1];
    const double prior = i % 2 == 0 ? offset_prior_ns : drift_prior_ns_per_s;
    const sparse_row row = {{i}, {1}, 1};
    add_row(own, &row, i % 2 == 0 ? clock->more_ns : clock->drift_ns_per_s, 1 / (prior * prior));
  }
  add_ends(own);
  add_transfers(own);
  add_bounds(own);
}

/* Steps until they are below a picosecond over the recording. */
static bool iterate(equations *own) {
  for (int k = 0; k < ITERATIONS; k++) {
    assemble(own);
    if (!factorise(own->matrix, own->n)) return false;
    solve(own->matrix, own->n, own->right);
    double largest = 0;
    for (uint32_t i = 0; i < own->n; i++) {
      pl_trace_clock *clock = &own->clocks->clocks[i / 2 + 1];
      *(i % 2 == 0 ? &clock->more_ns : &clock->drift_ns_per_s) += own->right[i];
      if (fabs(own->right[i]) > largest) largest = fabs(own->right[i]);
    }
    bool narrow = own->widest_ends_ns < least_scale_ns && own->widest_transfers_ns < least_scale_ns;
    if (largest < 1e-3 && narrow) break;
  }
  set_deviations(own);
  return true;
}

static void judge(equations *own) {
  pl_trace_clocks *clocks = own->clocks;
  for (uint32_t k = 0; k < own->n_transfers; k++) {
    clocks->clocks[own->transfers[k].later].n_ties++;
    clocks->clocks[own->transfers[k].earlier].n_ties++;
  }
  clocks->n_ends = own->n_ends;
  clocks->n_transfers = own->n_transfers;
  clocks->n_constraints = own->n_bounds;
  for (uint32_t k = 0; k < own->n_bounds; k++) {
    double r = residual(clocks, &own->bounds[k]);
    if (r < -1) clocks->n_violated++;
    if (-r > clocks->worst_violation_ns) clocks->worst_violation_ns = -r;
  }
}

pl_code pl_trace_clocks_refine(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks,
                               pl_error *error) {
  uint32_t most = 0;
  for (uint32_t m = 0; m < meetings->n; m++)
    most += meetings->meetings[m].n;
  equations own = {.trace = trace,
                   .meetings = meetings,
                   .clocks = clocks,
                   .n = 2 * (clocks->n - 1),
                   .widest_ends_ns = -1,
                   .widest_transfers_ns = -1};
  own.ends = malloc((most + 1) * sizeof *own.ends);
  own.transfers = malloc((most + 1) * sizeof *own.transfers);
  own.bounds = malloc((most + 1) * sizeof *own.bounds);
  own.matrix = malloc(((size_t)own.n * own.n + 1) * sizeof *own.matrix);
  own.right = malloc((own.n + 1) * sizeof *own.right);
  own.mean = malloc((own.n + 1) * sizeof *own.mean);
  own.all = malloc((meetings->n + 1) * sizeof *own.all);
  own.chosen = malloc((meetings->n + 1) * sizeof *own.chosen);
  own.scratch = malloc((2 * (size_t)most + 1) * sizeof *own.scratch);
  bool good = own.ends != NULL && own.transfers != NULL && own.bounds != NULL && own.matrix != NULL &&
              own.right != NULL && own.mean != NULL && own.all != NULL && own.chosen != NULL && own.scratch != NULL &&
              observe(&own);
  pl_code code = good ? PL_OK : pl_fail_memory(error, "the clocks of a trace");
  if (good && !iterate(&own))
    code = pl_fail(error, PL_BAD_INPUT, "the clocks cannot be aligned: the messages' dates contradict each other");
  if (code == PL_OK) judge(&own);
  free(own.ends);
  free(own.transfers);
  free(own.bounds);
  free(own.matrix);
  free(own.right);
  free(own.scratch);
  free(own.mean);
  free(own.all);
  free(own.chosen);
  return code;
}
