/* See validation/fit/kernel_residuals.h. */
#include "validation/fit/kernel_residuals.h"

#include <math.h>
#include <string.h>

#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "validation/fit/fit_table.h"
#include "validation/fit/gemm_fit.h"
#include "validation/fit/gemm_section.h"
#include "validation/fit/residual_pool.h"
#include "workloads/cost/op_cost.h"

static const double LEAST_FLOPS = 1e9, LEAST_S = 100e-6;

enum { DEVICES = 10, MOST_DEVICES = 16 };
/* Which profile a table of products belongs to (validation/calibration/fit_gemm.sh). */
static const char *const tables[DEVICES][2] = {{"A100", "A100-SXM4-80GB"},
                                               {"H100", "H100-SXM5-80GB"},
                                               {"H200", "H200-SXM5-141GB"},
                                               {"B200", "B200"},
                                               {"GB200", "GB200"},
                                               {"V100", "V100-SXM2-32GB"},
                                               {"T4", "T4"},
                                               {"P100", "P100"},
                                               {"TitanXp", "TitanXp"},
                                               {"L40S", "L40S"}};

typedef struct taking {
  const char *folder;
  pl_profile_folders profiles;
  pl_arena *arena;
  pl_residuals *residuals;
  pl_error *error;
} taking;

/* False: there is no such profile. */
static bool has_profile(const taking *state, const char *name) {
  return pl_profile_folders_find(&state->profiles, name, state->arena) != NULL;
}

static pl_code load_profile(const taking *state, const char *name, pl_device_profile *profile) {
  const char *path = pl_profile_folders_find(&state->profiles, name, state->arena);
  if (path == NULL) return pl_fail(state->error, PL_BAD_INPUT, "no profile of %s", name);
  return pl_device_profile_load(path, state->arena, profile, state->error);
}

static pl_code keep(taking *state, pl_residual residual, pl_residual_pool *pool, const char *what) {
  if (state->arena->failed) return pl_fail_memory(state->error, "the residuals");
  if (pool->n == 0)
    return pl_fail(state->error, PL_BAD_INPUT, "%s: no rows for %s", state->folder, pl_residual_names[residual]);
  state->residuals->half[residual] = pl_residual_pool_quantile(pool, PL_INTERVAL_SHARE);
  state->residuals->provenance[residual] =
      pl_arena_printf(state->arena, "%s: %u rows in %u groups", what, pool->n, pool->n_groups);
  return state->residuals->provenance[residual] != NULL ? PL_OK : pl_fail_memory(state->error, "the residuals");
}

/* ---- products ---- */

static double gemm_time(const pl_device_profile *profile, const pl_gemm_shape *shape) {
  const pl_op op = pl_gemm_op_of(shape);
  return pl_op_cost(profile, &op).time_s;
}

/* `fitted`: only what the profile has fits for. */
static void add_products(const pl_gemm_samples *samples, const pl_device_profile *profile, bool fitted,
                         pl_residual_pool *pool) {
  for (uint32_t i = 0; i < samples->n; i++) {
    const pl_gemm_sample *s = &samples->rows[i];
    if (!pl_gemm_is_held_out(&s->shape) || pl_gemm_flops(&s->shape) < LEAST_FLOPS) continue;
    if (!(profile->peak_flops[s->shape.dtype] > 0)) continue;
    if (fitted && pl_gemm_fit_for(profile, s->shape.dtype) == NULL) continue;
    pl_residual_pool_add(pool, s->time_s, gemm_time(profile, &s->shape));
  }
  pl_residual_pool_close_group(pool);
}

static pl_code take_products(taking *state) {
  pl_residual_pool moved = pl_residual_pool_in(state->arena), bare = pl_residual_pool_in(state->arena);
  pl_device_profile devices[DEVICES];
  for (int d = 0; d < DEVICES; d++) {
    PL_TRY(load_profile(state, tables[d][1], &devices[d]));
    devices[d].sustained_compute = 0; /* the tables' products are too short for it */
  }
  for (int d = 0; d < DEVICES; d++) {
    const char *path = pl_arena_printf(state->arena, "%s/gemm_%s.csv.gz", state->folder, tables[d][0]);
    const pl_gemm_filter filter = {.dtypes = UINT32_MAX};
    pl_gemm_samples samples;
    if (path == NULL) return pl_fail_memory(state->error, "a file name");
    PL_TRY(pl_gemm_samples_load(&path, 1, &filter, state->arena, &samples, state->error));
    pl_device_profile own = devices[d];
    own.gemm.n_fits = own.n_ops = 0;
    add_products(&samples, &own, false, &bare);
    for (int from = 0; from < DEVICES; from++) {
      if (from == d || strcmp(devices[from].architecture, devices[d].architecture) != 0) continue;
      own = devices[d];
      PL_TRY(pl_gemm_section_transfer(&devices[d], &devices[from], state->arena, &own.gemm, state->error));
      add_products(&samples, &own, true, &moved);
    }
  }
  PL_TRY(keep(state, PL_RESIDUAL_gemm_transferred, &moved,
              "products of a device by the fits of another of its architecture"));
  return keep(state, PL_RESIDUAL_gemm_roofline, &bare, "products by one share of the peak");
}

/* ---- attention ---- */

static pl_code list_devices(const taking *state, const pl_csv *csv, const char **names, uint32_t *n) {
  uint32_t column;
  PL_TRY(pl_fit_column(csv, "device", &column, state->error));
  *n = 0;
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    const char *name = pl_csv_cell(csv, row, column);
    uint32_t i = 0;
    while (i < *n && strcmp(names[i], name) != 0)
      i++;
    if (i < *n || *n == MOST_DEVICES || !has_profile(state, name)) continue;
    names[(*n)++] = name;
  }
  return PL_OK;
}

/* A table of the folder, and the profiles of the devices in it that have one. */
static pl_code load_table(const taking *state, const char *name, pl_csv *csv, pl_device_profile *devices, uint32_t *n) {
  const char *names[MOST_DEVICES];
  const char *path = pl_arena_printf(state->arena, "%s/%s", state->folder, name);
  if (path == NULL) return pl_fail_memory(state->error, "a file name");
  PL_TRY(pl_csv_load(path, state->arena, csv, state->error));
  PL_TRY(list_devices(state, csv, names, n));
  for (uint32_t d = 0; d < *n; d++)
    PL_TRY(load_profile(state, names[d], &devices[d]));
  return PL_OK;
}

static pl_code take_attention(taking *state) {
  pl_residual_pool fitted = pl_residual_pool_in(state->arena), moved = fitted, bare = fitted;
  pl_device_profile devices[MOST_DEVICES];
  uint32_t n;
  pl_csv csv;
  PL_TRY(load_table(state, "attention.csv.gz", &csv, devices, &n));
  const pl_attention_pools pools = {&fitted, &moved, &bare};
  for (uint32_t d = 0; d < n; d++) {
    const pl_device_profile *from[MOST_DEVICES];
    uint32_t n_from = 0;
    for (uint32_t other = 0; other < n; other++)
      if (other != d) from[n_from++] = &devices[other];
    PL_TRY(pl_attention_residuals(&csv, &devices[d], from, n_from, state->arena, &pools, state->error));
  }
  PL_TRY(keep(state, PL_RESIDUAL_attention_fitted, &fitted, "calls of fused attention on devices with a curve for it"));
  PL_TRY(keep(state, PL_RESIDUAL_attention_transferred, &moved,
              "calls of fused attention by the curve that another device of the architecture has of the same kernel"));
  return keep(state, PL_RESIDUAL_attention_roofline, &bare, "calls of fused attention by one share of the peak");
}

/* ---- memory-bound kernels ---- */

/* One kind and pass; `efficiency` of the bandwidth. */
static pl_code add_kernels(const taking *state, const pl_csv *csv, const pl_device_profile *device, int kind, int pass,
                           double efficiency, double overhead_s, pl_residual_pool *pool) {
  static const char *const names[] = {"device", "kind", "pass", "bytes", "time_us"};
  static const char *const passes[] = {"forward", "backward"};
  uint32_t column[5];
  for (int i = 0; i < 5; i++)
    PL_TRY(pl_fit_column(csv, names[i], &column[i], state->error));
  for (uint32_t row = 0; efficiency > 0 && row < csv->n_rows; row++) {
    double bytes, time_us;
    if (strcmp(pl_csv_cell(csv, row, column[0]), device->name) != 0 ||
        strcmp(pl_csv_cell(csv, row, column[1]), pl_kernel_kind_name((pl_kernel_kind)kind)) != 0 ||
        strcmp(pl_csv_cell(csv, row, column[2]), passes[pass]) != 0)
      continue;
    PL_TRY(pl_fit_number(csv, row, column[3], 1, &bytes, state->error));
    PL_TRY(pl_fit_number(csv, row, column[4], 1e-3, &time_us, state->error));
    if (time_us < 1e6 * LEAST_S || !pl_fit_holds_out(csv, row, column[4])) continue;
    pl_residual_pool_add(pool, 1e-6 * time_us, overhead_s + bytes / (device->bandwidth_Bps * efficiency));
  }
  pl_residual_pool_close_group(pool);
  return PL_OK;
}

static bool is_measured(const pl_device_profile *device, int kind, int pass) {
  return device->kernels[kind][pass].held_out.n > 0;
}

static bool is_mate(const pl_device_profile *a, const pl_device_profile *b) {
  return strcmp(a->architecture, b->architecture) == 0;
}

static pl_code take_kernels(taking *state) {
  pl_residual_pool fitted = pl_residual_pool_in(state->arena), moved = fitted, bare = fitted;
  pl_device_profile devices[MOST_DEVICES];
  uint32_t n;
  pl_csv csv;
  PL_TRY(load_table(state, "kernels.csv.gz", &csv, devices, &n));
  for (int kind = 0; kind < PL_KERNEL_KIND_COUNT; kind++)
    for (int pass = 0; pass < 2; pass++)
      for (uint32_t d = 0; d < n; d++) {
        const pl_device_profile *device = &devices[d];
        PL_TRY(add_kernels(state, &csv, device, kind, pass, device->bandwidth_efficiency, device->launch_overhead_s,
                           &bare));
        bool has_mate = false;
        for (uint32_t from = 0; from < n; from++)
          has_mate |= from != d && is_measured(&devices[from], kind, pass) && is_mate(device, &devices[from]);
        for (uint32_t from = 0; from < n; from++) {
          const pl_kernel_profile *kernel = &devices[from].kernels[kind][pass];
          if (!is_measured(&devices[from], kind, pass)) continue;
          if (has_mate && from != d && !is_mate(device, &devices[from])) continue;
          PL_TRY(add_kernels(state, &csv, device, kind, pass, kernel->bandwidth_efficiency, kernel->overhead_s,
                             from == d ? &fitted : &moved));
        }
      }
  PL_TRY(keep(state, PL_RESIDUAL_kernel_fitted, &fitted, "memory-bound kernels on devices with a fit for them"));
  PL_TRY(keep(state, PL_RESIDUAL_kernel_transferred, &moved,
              "memory-bound kernels by the share of the bandwidth that the nearest other devices reach"));
  return keep(state, PL_RESIDUAL_kernel_roofline, &bare, "memory-bound kernels by one share of the bandwidth");
}

pl_code pl_kernel_residuals_take(const char *folder, pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  taking state = {.folder = folder, .arena = arena, .residuals = residuals, .error = error};
  PL_TRY(pl_profile_folders_take(NULL, "", arena, &state.profiles, error));
  PL_TRY(take_products(&state));
  PL_TRY(take_attention(&state));
  return take_kernels(&state);
}
