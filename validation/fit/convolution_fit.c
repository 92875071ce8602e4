/* See validation/fit/convolution_fit.h. */
#include "validation/fit/convolution_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/csv.h"
#include "validation/fit/fit_table.h"
#include "validation/statistics/nelder_mead.h"
#include "workloads/cost/convolution_cost.h"

enum { FEWEST_ROWS = 10, EVALUATIONS = 3000, N_VARIABLES = 6 };

typedef struct sample {
  pl_convolution_shape shape;
  double time_s, multiprocessors;
  uint32_t dtype, pass;
  bool held_out;
} sample;

typedef struct problem {
  const pl_device_profile *device;
  const sample *samples;
  uint32_t n_samples, dtype, pass;
  double tile_m, tile_n, multiprocessors;
} problem;

/* ---- the table ---- */

enum {
  BATCH = 0,
  CHANNELS,
  HEIGHT,
  WIDTH,
  FILTERS,
  FILTER_HEIGHT,
  FILTER_WIDTH,
  STRIDE,
  OUT_HEIGHT,
  OUT_WIDTH,
  N_EXTENTS
};

typedef struct columns {
  uint32_t device, multiprocessors, dtype, pass, time, extents[N_EXTENTS];
} columns;

static pl_code find_columns(const pl_csv *csv, columns *c, pl_error *error) {
  static const char *const extents[N_EXTENTS] = {[BATCH] = "batch",
                                                 [CHANNELS] = "channels",
                                                 [HEIGHT] = "height",
                                                 [WIDTH] = "width",
                                                 [FILTERS] = "filters",
                                                 [FILTER_HEIGHT] = "filter_height",
                                                 [FILTER_WIDTH] = "filter_width",
                                                 [STRIDE] = "stride",
                                                 [OUT_HEIGHT] = "out_height",
                                                 [OUT_WIDTH] = "out_width"};
  PL_TRY(pl_fit_column(csv, "device", &c->device, error));
  PL_TRY(pl_fit_column(csv, "multiprocessors", &c->multiprocessors, error));
  PL_TRY(pl_fit_column(csv, "dtype", &c->dtype, error));
  PL_TRY(pl_fit_column(csv, "pass", &c->pass, error));
  PL_TRY(pl_fit_column(csv, "time_us", &c->time, error));
  for (int i = 0; i < N_EXTENTS; i++)
    PL_TRY(pl_fit_column(csv, extents[i], &c->extents[i], error));
  return PL_OK;
}

/* The product and its traffic, as workloads/lower/backward_products.c makes them of a model's convolution. */
static pl_convolution_shape shape_of(const double e[N_EXTENTS], pl_convolution_pass pass, double element_bytes) {
  double in = e[BATCH] * e[CHANNELS] * e[HEIGHT] * e[WIDTH], out = e[BATCH] * e[FILTERS] * e[OUT_HEIGHT] * e[OUT_WIDTH];
  double taps = e[FILTER_HEIGHT] * e[FILTER_WIDTH], weights = e[CHANNELS] * taps * e[FILTERS];
  double points = e[BATCH] * e[OUT_HEIGHT] * e[OUT_WIDTH], depth = e[CHANNELS] * taps;
  pl_convolution_shape shape = {.m = points,
                                .n = e[FILTERS],
                                .k = depth,
                                .bytes = element_bytes * (in + weights + out),
                                .is_small = taps == 9 && e[FILTER_WIDTH] == 3 && e[STRIDE] == 1,
                                .aligned = fmod(e[CHANNELS], 8) == 0 && fmod(e[FILTERS], 8) == 0};
  if (pass == PL_CONVOLUTION_DATA) {
    shape.m = e[BATCH] * e[HEIGHT] * e[WIDTH];
    shape.n = e[CHANNELS];
    shape.k = fmax(floor(e[FILTERS] * taps / (e[STRIDE] * e[STRIDE])), 1);
  } else if (pass == PL_CONVOLUTION_WEIGHT) {
    shape.m = depth;
    shape.k = points;
  }
  return shape;
}

static pl_code read_sample(const pl_csv *csv, uint32_t row, const columns *c, sample *s, pl_error *error) {
  const char *dtypes[PL_DTYPE_COUNT], *passes[PL_CONVOLUTION_PASS_COUNT];
  double extents[N_EXTENTS], time_us;
  for (int i = 0; i < PL_DTYPE_COUNT; i++)
    dtypes[i] = pl_dtype_name((pl_dtype)i);
  for (int i = 0; i < PL_CONVOLUTION_PASS_COUNT; i++)
    passes[i] = pl_convolution_pass_name((pl_convolution_pass)i);
  *s = (sample){.held_out = pl_fit_holds_out(csv, row, c->time)};
  PL_TRY(pl_fit_choice(csv, row, c->dtype, dtypes, PL_DTYPE_COUNT, &s->dtype, error));
  PL_TRY(pl_fit_choice(csv, row, c->pass, passes, PL_CONVOLUTION_PASS_COUNT, &s->pass, error));
  PL_TRY(pl_fit_number(csv, row, c->multiprocessors, 1, &s->multiprocessors, error));
  PL_TRY(pl_fit_number(csv, row, c->time, 1e-3, &time_us, error));
  for (int i = 0; i < N_EXTENTS; i++)
    PL_TRY(pl_fit_number(csv, row, c->extents[i], 1, &extents[i], error));
  s->time_s = 1e-6 * time_us;
  s->shape = shape_of(extents, (pl_convolution_pass)s->pass, pl_dtype_bytes((pl_dtype)s->dtype));
  return PL_OK;
}

static pl_code read_samples(const pl_csv *csv, const pl_device_profile *device, sample *samples, uint32_t *n,
                            pl_error *error) {
  columns c;
  PL_TRY(find_columns(csv, &c, error));
  *n = 0;
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    if (strcmp(pl_csv_cell(csv, row, c.device), device->name) != 0) continue;
    sample *s = &samples[(*n)++];
    PL_TRY(read_sample(csv, row, &c, s, error));
    if (device->peak_flops[s->dtype] <= 0)
      return pl_csv_fail(csv, row, error, "%s has no peak for %s", device->name, pl_dtype_name((pl_dtype)s->dtype));
  }
  return *n > 0 ? PL_OK : pl_fit_no_rows(csv, device->name, error);
}

/* ---- the fit ---- */

static double logistic(double x) {
  return 1 / (1 + exp(-x));
}

/* Variables: both efficiencies, the share of the bandwidth, overhead in us, depth and share of waves, each through a
 * function that keeps it in its range. */
static pl_convolution_fit fit_of(const problem *p, const double *x) {
  return (pl_convolution_fit){.dtypes = 1u << p->dtype,
                              .pass = (pl_convolution_pass)p->pass,
                              .multiprocessors = p->multiprocessors,
                              .tile_m = p->tile_m,
                              .tile_n = p->tile_n,
                              .efficiency = fmax(logistic(x[0]), 1e-3),
                              .efficiency_3x3 = fmax(4 * logistic(x[1]), 1e-3),
                              .bandwidth_efficiency = fmax(logistic(x[2]), 1e-3),
                              .overhead_s = 1e-6 * exp(x[3]),
                              .depth = fmin(exp(x[4]), 65536),
                              .waves = logistic(x[5])};
}

static bool belongs(const problem *p, const sample *s, bool held_out) {
  return s->dtype == p->dtype && s->pass == p->pass && s->held_out == held_out;
}

static double predict(const problem *p, const pl_convolution_fit *fit, const sample *s) {
  pl_convolution_time time = pl_convolution_time_of(p->device, fit, (pl_dtype)p->dtype, &s->shape);
  return pl_convolution_seconds(&time);
}

static double loss(const double *x, void *context) {
  const problem *p = context;
  const pl_convolution_fit fit = fit_of(p, x);
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_samples; i++) {
    if (!belongs(p, &p->samples[i], false)) continue;
    sum += fabs(log(predict(p, &fit, &p->samples[i]) / p->samples[i].time_s));
    n++;
  }
  return sum / n;
}

static uint32_t count(const problem *p, bool held_out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_samples; i++)
    n += belongs(p, &p->samples[i], held_out);
  return n;
}

static void round_fit(pl_convolution_fit *fit) {
  double *const values[] = {&fit->efficiency, &fit->efficiency_3x3, &fit->bandwidth_efficiency,
                            &fit->overhead_s, &fit->depth,          &fit->waves};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
    *values[i] = pl_fit_rounded(*values[i]);
}

static pl_convolution_fit best_fit(problem *p) {
  static const double tiles[][2] = {{128, 128}, {128, 64}, {128, 32}, {64, 64}, {32, 32}};
  pl_convolution_fit best = {0};
  double least = INFINITY;
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
    double x[N_VARIABLES] = {0.4, -1.1, 0.8, 1.6, 3, 0};
    p->tile_m = tiles[i][0];
    p->tile_n = tiles[i][1];
    double value = pl_nelder_mead(loss, p, x, N_VARIABLES, 0.5, 1e-7, EVALUATIONS);
    value = fmin(value, pl_nelder_mead(loss, p, x, N_VARIABLES, 0.25, 1e-7, EVALUATIONS));
    if (value >= least) continue;
    least = value;
    best = fit_of(p, x);
  }
  round_fit(&best);
  return best;
}

static pl_fit_error errors_of(const problem *p, const pl_convolution_fit *fit, bool held_out, double *scratch) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_samples; i++)
    if (belongs(p, &p->samples[i], held_out))
      scratch[n++] = fabs(predict(p, fit, &p->samples[i]) / p->samples[i].time_s - 1);
  return pl_fit_error_of(scratch, n);
}

/* ---- the section ---- */

static void print_fit(FILE *out, const problem *p, const pl_convolution_fit *fit, pl_fit_error fitted,
                      pl_fit_error held_out) {
  fprintf(out,
          "convolution %s, %s: 7 parameters; tiles %g x %g, efficiency %.3g, %.3g of 3 x 3, %.3g of the bandwidth, "
          "overhead %.3g us, depth %.3g, waves %.3g\n",
          pl_dtype_name((pl_dtype)p->dtype), pl_convolution_pass_name(fit->pass), fit->tile_m, fit->tile_n,
          fit->efficiency, fit->efficiency_3x3, fit->bandwidth_efficiency, 1e6 * fit->overhead_s, fit->depth,
          fit->waves);
  pl_fit_print_error(out, "fitted", fitted);
  pl_fit_print_error(out, "held out", held_out);
}

static void put(pl_convolution_fit *list, uint32_t *n, const pl_convolution_fit *fit) {
  uint32_t at = 0;
  while (at < *n && !(list[at].pass == fit->pass && list[at].dtypes & fit->dtypes))
    at++;
  *n += at == *n;
  list[at] = *fit;
}

pl_code pl_convolution_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                                    pl_error *error) {
  enum { KINDS = PL_DTYPE_COUNT * PL_CONVOLUTION_PASS_COUNT };
  pl_csv csv;
  problem p = {.device = device};
  uint32_t n = device->n_convolutions;
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  sample *samples = PL_TAKE(arena, sample, csv.n_rows);
  double *scratch = PL_TAKE(arena, double, csv.n_rows);
  pl_convolution_fit *list = PL_TAKE(arena, pl_convolution_fit, n + KINDS);
  if (samples == NULL || scratch == NULL || list == NULL) return pl_fail_memory(error, "timings of convolutions");
  PL_TRY(read_samples(&csv, device, samples, &p.n_samples, error));
  if (n > 0) memcpy(list, device->convolutions, n * sizeof *list);
  p.samples = samples;
  p.multiprocessors = samples[0].multiprocessors;
  for (p.dtype = 0; p.dtype < PL_DTYPE_COUNT; p.dtype++)
    for (p.pass = 0; p.pass < PL_CONVOLUTION_PASS_COUNT; p.pass++) {
      if (count(&p, false) + count(&p, true) < FEWEST_ROWS) continue;
      pl_convolution_fit fit = best_fit(&p);
      pl_fit_error fitted = errors_of(&p, &fit, false, scratch), held_out = errors_of(&p, &fit, true, scratch);
      fit.held_out = pl_fit_held_out(held_out);
      print_fit(out, &p, &fit, fitted, held_out);
      put(list, &n, &fit);
    }
  if (n == 0) return pl_fail(error, PL_BAD_INPUT, "%s: a fit needs %d rows of one type and pass", path, FEWEST_ROWS);
  device->convolutions = list;
  device->n_convolutions = n;
  return PL_OK;
}

pl_code pl_convolution_section_transfer(pl_device_profile *device, const pl_device_profile *from, pl_arena *arena,
                                        pl_error *error) {
  if (from->n_convolutions == 0) return PL_OK;
  pl_convolution_fit *list = PL_TAKE(arena, pl_convolution_fit, from->n_convolutions);
  if (list == NULL) return pl_fail_memory(error, "the convolutions of a device profile");
  for (uint32_t i = 0; i < from->n_convolutions; i++) {
    list[i] = from->convolutions[i];
    list[i].multiprocessors = device->gemm.multiprocessors;
    list[i].held_out = (pl_held_out){0};
  }
  device->convolutions = list;
  device->n_convolutions = from->n_convolutions;
  return PL_OK;
}

static void write_fit(pl_json *json, const pl_convolution_fit *fit) {
  pl_json_open_object(json);
  pl_json_key(json, "dtypes");
  bool pretty = json->pretty;
  pl_json_open_array(json);
  json->pretty = false;
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (fit->dtypes & 1u << dtype) pl_json_string(json, pl_dtype_name((pl_dtype)dtype));
  pl_json_close_array(json);
  json->pretty = pretty;
  pl_json_put_string(json, "pass", pl_convolution_pass_name(fit->pass));
  pl_json_put_number(json, "multiprocessors", fit->multiprocessors);
  pl_json_key(json, "tile");
  pl_json_open_array(json);
  json->pretty = false;
  pl_json_number(json, fit->tile_m);
  pl_json_number(json, fit->tile_n);
  pl_json_close_array(json);
  json->pretty = pretty;
  pl_json_put_number(json, "efficiency", fit->efficiency);
  pl_json_put_number(json, "efficiency_3x3", fit->efficiency_3x3);
  pl_json_put_number(json, "bandwidth", fit->bandwidth_efficiency);
  pl_fit_put_us(json, "overhead", fit->overhead_s);
  pl_json_put_number(json, "depth", fit->depth);
  pl_json_put_number(json, "waves", fit->waves);
  pl_fit_put_held_out(json, "held_out", &fit->held_out);
  pl_json_close_object(json);
}

void pl_convolution_section_write(pl_json *json, const void *content) {
  const pl_device_profile *device = content;
  pl_json_open_array(json);
  for (uint32_t i = 0; i < device->n_convolutions; i++)
    write_fit(json, &device->convolutions[i]);
  pl_json_close_array(json);
}
