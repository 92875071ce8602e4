/* See workloads/run/sensitivity.h. One factor for all links, so that links that are alike stay alike and fold. */
#include "workloads/run/sensitivity.h"

#include <math.h>

#include "netmodel/platform/platform_vary.h"

static const char *const variation = "link:*.bandwidth=x0.999999999,x0.99999999925,x0.9999999995,x0.99999999975,"
                                     "x1.00000000025,x1.0000000005,x1.00000000075,x1.000000001";

pl_code pl_sensitivity_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_simulate_options *options, double predicted_s,
                            pl_arena *arena, pl_sensitivity *sensitivity, pl_error *error) {
  *sensitivity = (pl_sensitivity){.n_runs = PL_SENSITIVITY_RUNS, .low_s = predicted_s, .high_s = predicted_s};
  if (options->network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED, "--sensitivity: SimGrid has the file's figures only; use --network flow");
  if (cluster->n_links == 0) return PL_OK;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  const pl_simulate_options own = pl_simulate_options_quiet(options);
  pl_vary_grid grid;
  PL_TRY(pl_vary_grid_parse(&variation, 1, arena, &grid, error));
  PL_ASSERT(grid.n_points == PL_SENSITIVITY_RUNS);
  for (uint32_t point = 0; point < grid.n_points; point++) {
    pl_arena_mark run = pl_arena_mark_here(arena);
    const pl_cluster *varied;
    pl_simulate_report report;
    PL_TRY(pl_vary_cluster_take(&grid, point, cluster, arena, &varied, error));
    PL_TRY(pl_simulate(varied, model, job, strategy, &own, arena, &report, error));
    sensitivity->low_s = fmin(sensitivity->low_s, report.row.iter_time_s);
    sensitivity->high_s = fmax(sensitivity->high_s, report.row.iter_time_s);
    pl_arena_release_to(arena, run);
  }
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

void pl_sensitivity_print(FILE *stream, const pl_sensitivity *sensitivity, double predicted_s) {
  if (sensitivity->n_runs == 0) return;
  fprintf(stream, "sensitivity      %+.2g to %+.2g %%, with all bandwidths changed by up to 1 part in 10^9 (%u runs)\n",
          100 * (sensitivity->low_s / predicted_s - 1), 100 * (sensitivity->high_s / predicted_s - 1),
          sensitivity->n_runs);
}

void pl_sensitivity_json(pl_json *json, const pl_sensitivity *sensitivity) {
  if (sensitivity->n_runs == 0) return;
  pl_json_key(json, "sensitivity");
  pl_json_open_object(json);
  pl_json_put_integer(json, "n_runs", sensitivity->n_runs);
  pl_json_put_number(json, "bandwidth_change", 1e-9);
  pl_json_put_number(json, "iter_time_low_s", sensitivity->low_s);
  pl_json_put_number(json, "iter_time_high_s", sensitivity->high_s);
  pl_json_close_object(json);
}
