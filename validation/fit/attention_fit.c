/* Fit of fused attention; see validation/fit/kernel_fit.h and, for the curve, workloads/cost/attention_cost.h.
 *
 * Forward: one efficiency per head size in the table, prologue, tail and overhead, all positive and therefore fitted as
 * logarithms; where the calls also filled a cache, the passes over keys and values which that took, which are left out
 * of the profile because training has no such cache. The tiles are those of four common geometries that fit best.
 * Backward, where the table has rows of it: ratio, prologue, overhead, with the forward's figures held fixed. Calls
 * under 30 us and sequences under 256 count a fifth: launch jitter, and not what training runs.
 */
#include <math.h>
#include <string.h>

#include "validation/fit/fit_table.h"
#include "validation/fit/kernel_residuals.h"
#include "validation/statistics/nelder_mead.h"
#include "workloads/cost/attention_cost.h"
#include "workloads/ir/op.h"

enum { COLUMNS = 13, FORWARD_FIXED = 4, EVALUATIONS = 4000 };

static const double LONGEST_TAIL = 2; /* of a mean block: a causal mask's longest blocks come last */

typedef struct call {
  pl_attention_shape shape;
  double keys_values_bytes; /* of the cache that it filled */
  double time_s, multiprocessors;
  pl_attention_kernel kernel;
  bool held_out;
} call;

typedef struct problem {
  const call *calls;
  uint32_t n_calls;
  pl_attention_kernel kernel;
  bool backward, cached;
  double peak_flops, bandwidth_Bps;
  pl_attention_profile profile;
} problem;

/* ---- reading ---- */

static pl_code read_call(const pl_csv *csv, uint32_t row, const uint32_t *column, call *c, pl_error *error) {
  static const char *const kernels[] = {"flash1", "flash2", "flash3", "cudnn"};
  static const char *const passes[] = {"forward", "backward"}, *const masks[] = {"causal", "full"};
  double value[COLUMNS] = {0};
  uint32_t kernel, pass, mask;
  PL_TRY(pl_fit_choice(csv, row, column[2], kernels, 4, &kernel, error));
  PL_TRY(pl_fit_choice(csv, row, column[3], passes, 2, &pass, error));
  PL_TRY(pl_fit_choice(csv, row, column[4], masks, 2, &mask, error));
  PL_TRY(pl_fit_number(csv, row, column[1], 1, &value[1], error));
  for (uint32_t i = 5; i < COLUMNS; i++)
    PL_TRY(pl_fit_number(csv, row, column[i], i == 5 || i == 11 ? 0 : i == 12 ? 1e-3 : 1, &value[i], error));
  double window = value[5], batch = value[6], seq = value[7], heads = batch * value[8], kv = batch * value[9];
  double size = value[10], pairs = mask == 1 ? seq * seq : seq * seq / 2;
  if (mask == 0 && window > 0 && window < seq) pairs = seq * window - window * window / 2;
  double passes_over = pass == 1 ? 4 : 2; /* q, o (and their gradients); k, v (and theirs) */
  *c = (call){.shape = {.heads = heads,
                        .queries = seq,
                        .keys = seq,
                        .head_size = size,
                        .pairs = pairs,
                        .bytes = 2 * passes_over * size * seq * (heads + kv) + 4 * heads * seq,
                        .backward = pass == 1},
              .keys_values_bytes = value[11] > 0 ? 4 * size * seq * kv : 0,
              .time_s = 1e-6 * value[12],
              .multiprocessors = value[1],
              .kernel = (pl_attention_kernel)(kernel + PL_ATTENTION_FLASH1),
              .held_out = pl_fit_holds_out(csv, row, column[12])};
  return PL_OK;
}

static pl_code read_calls(const pl_csv *csv, const char *device, call *calls, uint32_t *n_calls, pl_error *error) {
  static const char *const names[COLUMNS] = {"device",    "multiprocessors", "kernel", "pass",  "mask",
                                             "window",    "batch",           "seq",    "heads", "kv_heads",
                                             "head_size", "cached",          "time_us"};
  uint32_t column[COLUMNS];
  for (uint32_t i = 0; i < COLUMNS; i++)
    PL_TRY(pl_fit_column(csv, names[i], &column[i], error));
  *n_calls = 0;
  for (uint32_t row = 0; row < csv->n_rows; row++)
    if (strcmp(pl_csv_cell(csv, row, column[0]), device) == 0)
      PL_TRY(read_call(csv, row, column, &calls[(*n_calls)++], error));
  return *n_calls > 0 ? PL_OK : pl_fit_no_rows(csv, device, error);
}

/* ---- the curve and its loss ---- */

static bool belongs(const problem *p, const call *c) {
  return c->kernel == p->kernel && c->shape.backward == p->backward;
}

static double predict(const problem *p, const pl_attention_profile *profile, double cache_copies, const call *c) {
  pl_attention_time time = pl_attention_time_of(profile, p->peak_flops, p->bandwidth_Bps, &c->shape);
  return fmax(time.compute_s, time.memory_s) + time.helpers_s + time.overhead_s +
         cache_copies * c->keys_values_bytes / p->bandwidth_Bps;
}

/* Variables: forward, efficiencies, prologue, tail, overhead in us, cache copies; backward, ratio, prologue, overhead.
 * Logarithms of all. */
static double unpack(const problem *p, const double *x, pl_attention_profile *profile) {
  *profile = p->profile;
  if (p->backward) {
    profile->backward_ratio = exp(x[0]);
    profile->backward_prologue_keys = exp(x[1]);
    profile->backward_overhead_s = 1e-6 * exp(x[2]);
    return 0;
  }
  uint32_t n = profile->n_head_sizes;
  for (uint32_t i = 0; i < n; i++)
    profile->efficiency[i] = fmin(exp(x[i]), 1);
  profile->prologue_keys = exp(x[n]);
  profile->tail = fmin(exp(x[n + 1]), LONGEST_TAIL);
  profile->overhead_s = 1e-6 * exp(x[n + 2]);
  return p->cached ? exp(x[n + 3]) : 0;
}

static double loss(const double *x, void *context) {
  const problem *p = context;
  pl_attention_profile profile;
  double cache_copies = unpack(p, x, &profile), sum = 0, weights = 0;
  for (uint32_t i = 0; i < p->n_calls; i++) {
    const call *c = &p->calls[i];
    if (!belongs(p, c) || c->held_out) continue;
    double weight = c->time_s >= 30e-6 && c->shape.queries >= 256 ? 1 : 0.2;
    sum += weight * fabs(log(predict(p, &profile, cache_copies, c) / c->time_s));
    weights += weight;
  }
  return sum / weights;
}

/* ---- fitting ---- */

static uint32_t count(const problem *p, bool held_out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_calls; i++)
    n += belongs(p, &p->calls[i]) && p->calls[i].held_out == held_out;
  return n;
}

/* Ascending head sizes of the rows that are fitted. */
static pl_code list_head_sizes(problem *p, const pl_csv *csv, pl_error *error) {
  pl_attention_profile *profile = &p->profile;
  for (uint32_t i = 0; i < p->n_calls; i++) {
    const call *c = &p->calls[i];
    if (!belongs(p, c) || c->held_out) continue;
    profile->multiprocessors = c->multiprocessors;
    p->cached |= c->keys_values_bytes > 0;
    uint32_t k = 0;
    while (k < profile->n_head_sizes && profile->head_size[k] < c->shape.head_size)
      k++;
    if (k < profile->n_head_sizes && profile->head_size[k] == c->shape.head_size) continue;
    if (profile->n_head_sizes == PL_HEAD_SIZES)
      return pl_fail(error, PL_BAD_INPUT, "%s: more than %d head sizes for the kernel %s", csv->name, PL_HEAD_SIZES,
                     pl_attention_kernel_name(p->kernel));
    memmove(&profile->head_size[k + 1], &profile->head_size[k],
            (profile->n_head_sizes - k) * sizeof *profile->head_size);
    profile->head_size[k] = c->shape.head_size;
    profile->n_head_sizes++;
  }
  return PL_OK;
}

static double minimise(problem *p, double *x, uint32_t n) {
  pl_nelder_mead(loss, p, x, n, 0.3, 1e-9, EVALUATIONS);
  return pl_nelder_mead(loss, p, x, n, 0.1, 1e-9, EVALUATIONS); /* again, in case the simplex collapsed early */
}

static void fit_forward(problem *p, pl_attention_fit *fit) {
  static const double tiles[][2] = {{128, 64}, {128, 128}, {256, 64}, {256, 128}};
  uint32_t sizes = p->profile.n_head_sizes, n = sizes + FORWARD_FIXED - (p->cached ? 0 : 1);
  double best = INFINITY;
  for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
    double x[PL_NELDER_MEAD_VARIABLES];
    for (uint32_t i = 0; i < sizes; i++)
      x[i] = log(0.6);
    x[sizes] = log(60);
    x[sizes + 1] = log(0.5);
    x[sizes + 2] = log(8);
    x[sizes + 3] = log(1);
    p->profile.query_tile = tiles[t][0];
    p->profile.key_tile = tiles[t][1];
    double value = minimise(p, x, n);
    if (value >= best) continue;
    best = value;
    fit->cache_copies = unpack(p, x, &fit->profile);
  }
  fit->n_parameters = n + 1;
}

static void fit_backward(problem *p, pl_attention_fit *fit) {
  double x[3] = {log(2.8), log(60), log(15)};
  p->profile = fit->profile;
  minimise(p, x, 3);
  unpack(p, x, &fit->profile);
  fit->n_parameters += 3;
  fit->has_backward = true;
}

/* Without rows: those of the base profile's kernel of this name, else what the backward's five products and their extra
 * pass over the queries cost on GPUs that have been timed (README: 2.6 to 3.2). */
static void take_backward(const pl_device_profile *base, pl_attention_fit *fit) {
  pl_attention_profile *profile = &fit->profile;
  const pl_attention_profile *known = pl_attention_choose(base, profile->kernel);
  bool same = known != NULL && known->kernel == profile->kernel;
  profile->backward_ratio = same ? known->backward_ratio : 2.9;
  profile->backward_prologue_keys = same ? known->backward_prologue_keys : profile->prologue_keys;
  profile->backward_overhead_s = same ? known->backward_overhead_s : 2 * profile->overhead_s;
}

static pl_fit_error errors_of(const problem *p, const pl_attention_fit *fit, bool held_out, bool long_only,
                              double *scratch) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_calls; i++) {
    const call *c = &p->calls[i];
    if (!belongs(p, c) || c->held_out != held_out) continue;
    if (long_only && (c->time_s < 100e-6 || c->shape.queries < 512)) continue;
    scratch[n++] = fabs(predict(p, &fit->profile, fit->cache_copies, c) / c->time_s - 1);
  }
  return pl_fit_error_of(scratch, n);
}

static void report(problem *p, pl_attention_fit *fit, double *scratch) {
  for (int pass = 0; pass < 2; pass++) {
    p->backward = pass == 1;
    fit->fitted[pass] = errors_of(p, fit, false, false, scratch);
    fit->held_out[pass] = errors_of(p, fit, true, false, scratch);
    fit->held_out_long[pass] = errors_of(p, fit, true, true, scratch);
  }
}

static pl_code fit_kernel(problem *p, const pl_csv *csv, const pl_device_profile *base, pl_attention_fit *fit,
                          double *scratch, pl_error *error) {
  p->profile = (pl_attention_profile){.kernel = p->kernel};
  p->backward = p->cached = false;
  PL_TRY(list_head_sizes(p, csv, error));
  fit_forward(p, fit);
  p->backward = true;
  if (count(p, false) > 0)
    fit_backward(p, fit);
  else
    take_backward(base, fit);
  report(p, fit, scratch);
  return PL_OK;
}

pl_code pl_attention_fit_take(const pl_csv *csv, const pl_device_profile *base, pl_arena *arena,
                              const pl_attention_fit **fits, uint32_t *n_fits, pl_error *error) {
  call *calls = PL_TAKE(arena, call, csv->n_rows);
  double *scratch = PL_TAKE(arena, double, csv->n_rows);
  pl_attention_fit *list = PL_TAKE(arena, pl_attention_fit, PL_ATTENTION_KERNEL_COUNT);
  if (calls == NULL || scratch == NULL || list == NULL) return pl_fail_memory(error, "a fit of attention");
  double peak = fmax(base->peak_flops[PL_DTYPE_BF16], base->peak_flops[PL_DTYPE_FP16]);
  if (peak <= 0)
    return pl_fail(error, PL_BAD_INPUT, "%s has no 16-bit peak: attention cannot be fitted to it", base->name);
  problem p = {.calls = calls, .peak_flops = peak, .bandwidth_Bps = base->bandwidth_Bps * base->bandwidth_efficiency};
  PL_TRY(read_calls(csv, base->name, calls, &p.n_calls, error));
  *fits = list;
  *n_fits = 0;
  for (int kernel = PL_ATTENTION_FLASH1; kernel < PL_ATTENTION_KERNEL_COUNT; kernel++) {
    p.kernel = (pl_attention_kernel)kernel;
    p.backward = false;
    if (count(&p, false) == 0) continue;
    list[*n_fits] = (pl_attention_fit){.cache_copies = 0};
    PL_TRY(fit_kernel(&p, csv, base, &list[(*n_fits)++], scratch, error));
  }
  return PL_OK;
}

/* ---- residuals ---- */

static bool has_calls(const pl_csv *csv, const char *device, pl_attention_kernel kernel, bool backward) {
  uint32_t name = pl_csv_column(csv, "device"), pass = pl_csv_column(csv, "pass"),
           column = pl_csv_column(csv, "kernel");
  for (uint32_t row = 0; row < csv->n_rows; row++)
    if (strcmp(pl_csv_cell(csv, row, name), device) == 0 &&
        strcmp(pl_csv_cell(csv, row, column), pl_attention_kernel_name(kernel)) == 0 &&
        strcmp(pl_csv_cell(csv, row, pass), backward ? "backward" : "forward") == 0)
      return true;
  return false;
}

/* As workloads/cost/op_cost.h has it without a curve. */
static double roofline_s(const pl_device_profile *device, double peak_flops, const call *c) {
  double products = 4 * c->shape.heads * c->shape.head_size * (c->shape.backward ? PL_ATTENTION_BACKWARD_FLOPS : 1);
  double compute_s = products * c->shape.pairs / (peak_flops * device->attention_efficiency);
  return fmax(compute_s, c->shape.bytes / (device->bandwidth_Bps * device->bandwidth_efficiency)) +
         device->launch_overhead_s;
}

static void add_calls(const problem *p, const pl_device_profile *device, const pl_attention_profile *curve,
                      double cache_copies, pl_residual_pool *pool) {
  enum { LEAST_SEQUENCE = 512 };
  const double least_s = 100e-6;
  for (uint32_t i = 0; i < p->n_calls; i++) {
    const call *c = &p->calls[i];
    if (!belongs(p, c) || !c->held_out || c->time_s < least_s || c->shape.queries < LEAST_SEQUENCE) continue;
    double cache_s = cache_copies * c->keys_values_bytes / p->bandwidth_Bps;
    pl_residual_pool_add(pool, c->time_s,
                         curve != NULL ? predict(p, curve, cache_copies, c)
                                       : roofline_s(device, p->peak_flops, c) + cache_s);
  }
  pl_residual_pool_close_group(pool);
}

static bool is_mate(const pl_device_profile *a, const pl_device_profile *b) {
  return strcmp(a->architecture, b->architecture) == 0;
}

pl_code pl_attention_residuals(const pl_csv *csv, const pl_device_profile *device, const pl_device_profile *const *from,
                               uint32_t n_from, pl_arena *arena, const pl_attention_pools *pools, pl_error *error) {
  const pl_attention_fit *fits;
  uint32_t n_fits;
  PL_TRY(pl_attention_fit_take(csv, device, arena, &fits, &n_fits, error));
  call *calls = PL_TAKE(arena, call, csv->n_rows);
  if (calls == NULL) return pl_fail_memory(error, "the residuals of attention");
  problem p = {.calls = calls,
               .peak_flops = fmax(device->peak_flops[PL_DTYPE_BF16], device->peak_flops[PL_DTYPE_FP16]),
               .bandwidth_Bps = device->bandwidth_Bps * device->bandwidth_efficiency};
  PL_TRY(read_calls(csv, device->name, calls, &p.n_calls, error));
  for (uint32_t f = 0; f < 2 * n_fits; f++) {
    const pl_attention_fit *fit = &fits[f / 2];
    p.kernel = fit->profile.kernel;
    p.backward = f % 2 == 1;
    add_calls(&p, device, &fit->profile, fit->cache_copies, pools->fitted);
    add_calls(&p, device, NULL, fit->cache_copies, pools->roofline);
    for (uint32_t i = 0; i < n_from; i++) {
      const pl_attention_profile *curve = pl_attention_choose(from[i], p.kernel);
      if (curve == NULL || curve->kernel != p.kernel || !is_mate(device, from[i])) continue;
      if (!has_calls(csv, from[i]->name, p.kernel, p.backward)) continue;
      add_calls(&p, device, curve, fit->cache_copies, pools->transferred);
    }
  }
  return PL_OK;
}
