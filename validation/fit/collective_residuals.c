/* See validation/fit/collective_residuals.h. */
#include "validation/fit/collective_residuals.h"

#include <math.h>

#include "validation/fit/collective_rows.h"
#include "validation/fit/residual_pool.h"

typedef enum wiring_kind { NVLINK = 0, PCIE, NETWORK, KINDS } wiring_kind;

static wiring_kind kind_of(const pl_collective_row *row) {
  if (row->weighing.between != NULL) return NETWORK;
  return row->weighing.inside != NULL && row->weighing.inside->nvlink ? NVLINK : PCIE;
}

static double ideal_us(const pl_collective_row *row) {
  const pl_tuned_work *work = &row->weighing.works[row->weighing.chosen];
  return work->latency_us + fmax(work->inside_us, work->between_us);
}

static bool counts(const pl_collective_row *row, wiring_kind kind) {
  return kind_of(row) == kind && (row->role == PL_ROW_KEPT_SYSTEM || (row->role == PL_ROW_KEPT_SIZE && kind == NVLINK));
}

typedef struct pools {
  pl_residual_pool of[KINDS][2], ideal; /* below, from 1 MiB */
} pools;

static void add(const pl_collective_row *row, pools *p) {
  if (row->weighing.n_works == 0) return;
  bool large = row->size_bytes >= 1 << 20;
  wiring_kind kind = kind_of(row);
  if (counts(row, kind)) pl_residual_pool_add(&p->of[kind][large], row->measured_us, pl_collective_row_us(row));
  pl_residual_pool_add(&p->ideal, row->measured_us, ideal_us(row));
}

static void close_groups(pools *p) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int large = 0; large < 2; large++)
      pl_residual_pool_close_group(&p->of[kind][large]);
  pl_residual_pool_close_group(&p->ideal);
}

static pl_code keep(pl_residual_pool *pool, pl_residual residual, const char *what, pl_arena *arena,
                    pl_residuals *residuals, pl_error *error) {
  residuals->half[residual] = pl_residual_pool_quantile(pool, PL_INTERVAL_SHARE);
  residuals->provenance[residual] = pl_arena_printf(arena, "%s: %u rows of %u systems", what, pool->n, pool->n_groups);
  if (arena->failed) return pl_fail_memory(error, "the residuals");
  return pool->n > 0 ? PL_OK : pl_fail(error, PL_BAD_INPUT, "no collectives for %s", pl_residual_names[residual]);
}

pl_code pl_collective_residuals_take(const char *folder, pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  static const pl_residual names[KINDS][2] = {{PL_RESIDUAL_nvlink_small, PL_RESIDUAL_nvlink_large},
                                              {PL_RESIDUAL_pcie_small, PL_RESIDUAL_pcie_large},
                                              {PL_RESIDUAL_network_small, PL_RESIDUAL_network_large}};
  static const char *const about[KINDS] = {
      "collectives inside nodes with NVLink, sizes and systems kept out of the fit",
      "collectives inside nodes without NVLink, systems kept out of the fit",
      "collectives between nodes, systems kept out of the fit"};
  pl_collective_profile profile;
  pl_collective_rows rows;
  pools p = {.ideal = pl_residual_pool_in(arena)};
  const char *path, *table = pl_arena_printf(arena, "%s/collectives.csv.gz", folder);
  for (int kind = 0; kind < KINDS; kind++)
    p.of[kind][0] = p.of[kind][1] = pl_residual_pool_in(arena);
  if (table == NULL) return pl_fail_memory(error, "a file name");
  PL_TRY(pl_collective_profile_path(NULL, "", arena, &path, error));
  PL_TRY(pl_collective_profile_load(path, arena, &profile, error));
  PL_TRY(pl_collective_rows_load(table, NULL, &profile, arena, &rows, error));
  for (uint32_t i = 0; i < rows.n; i++) {
    if (i > 0 && rows.rows[i].system != rows.rows[i - 1].system) close_groups(&p);
    add(&rows.rows[i], &p);
  }
  close_groups(&p);
  for (int kind = 0; kind < KINDS; kind++)
    for (int large = 0; large < 2; large++)
      PL_TRY(keep(&p.of[kind][large], names[kind][large], about[kind], arena, residuals, error));
  return keep(&p.ideal, PL_RESIDUAL_ideal, "collectives by rates and latencies of the wires alone", arena, residuals,
              error);
}
