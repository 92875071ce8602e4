/* See workloads/command/simulate_vary.h. */
#include "workloads/command/simulate_vary.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"
#include "workloads/assign/assign.h"

/* ---- simulate ---- */

static pl_code run_point(pl_job_session *session, pl_job_options *options, const pl_strategy *given,
                         const pl_cluster *cluster, pl_varied_run *run, pl_error *error) {
  pl_strategy strategy = *given;
  pl_simulate_report report;
  PL_TRY(pl_job_options_complete(options, &session->model, cluster, error));
  PL_TRY(pl_strategy_spread(&strategy, cluster->n_devices, error)); /* as on a platform written that way */
  PL_TRY(pl_strategy_check(&strategy, &session->model, &options->job, cluster->n_devices, error));
  PL_TRY(pl_assign(&strategy, &session->model, &options->job, cluster, &options->simulate, &session->arena, error));
  PL_TRY(pl_simulate(cluster, &session->model, &options->job, &strategy, &options->simulate, &session->arena, &report,
                     error));
  *run = (pl_varied_run){.platform_digest = cluster->digest, .row = report.row};
  return PL_OK;
}

pl_code pl_vary_simulate(pl_job_session *session, pl_job_options *options, const pl_strategy *strategy,
                         const pl_vary_grid *grid, pl_varied_run *runs, pl_error *error) {
  if (options->simulate.network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED, "--vary: SimGrid has the file's figures only; use --network flow");
  for (uint32_t p = 0; p < grid->n_points; p++) {
    pl_arena_mark mark = pl_arena_mark_here(&session->arena);
    const pl_cluster *cluster;
    pl_error cause = PL_ERROR_INIT;
    pl_code code = pl_vary_cluster_take(grid, p, session->cluster, &session->arena, &cluster, error);
    if (code != PL_OK) return code;
    code = run_point(session, options, strategy, cluster, &runs[p], &cause);
    pl_arena_release_to(&session->arena, mark);
    if (code == PL_OK) continue;
    char label[PL_VARY_LABEL_BYTES];
    pl_vary_format(grid, p, label, sizeof label);
    return pl_fail(error, code, "--vary %s: %s", label, cause.message);
  }
  return PL_OK;
}

/* ---- text ---- */

static void print_row(FILE *stream, int width, const char *label, const pl_result_row *row, double base_s) {
  char time[PL_UNIT_TEXT_BYTES], tokens[PL_UNIT_TEXT_BYTES], peak[PL_UNIT_TEXT_BYTES];
  bool is_long = row->iter_time_s >= 1;
  fprintf(stream, "%-*s  %8s %-2s  %7.3f  %10s  %6.1f  %9s%s\n", width, label,
          pl_format_figure(row->iter_time_s * (is_long ? 1 : 1e3), time), is_long ? "s" : "ms",
          row->iter_time_s / base_s, pl_format_figure(row->tokens_per_s, tokens), 100 * row->mfu,
          pl_format_bytes((double)row->peak_mem_bytes, peak), row->fits ? "" : "  OUT OF MEMORY");
}

void pl_vary_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *base,
                   const pl_vary_grid *grid, const pl_varied_run *runs) {
  char label[PL_VARY_LABEL_BYTES];
  int width = (int)strlen("variation");
  for (uint32_t p = 0; p < grid->n_points; p++) {
    int length = pl_vary_format(grid, p, label, sizeof label);
    if (length > width) width = length;
  }
  if (width >= (int)sizeof label) width = (int)sizeof label - 1;
  pl_simulate_subject_print(stream, subject);
  fprintf(stream, "\n%-*s  %11s  %7s  %10s  %6s  %9s\n", width, "variation", "iteration", "to base",
          pl_throughput_unit(base->row.samples_per_s, base->row.tokens_per_s), "MFU[%]", "peak mem.");
  print_row(stream, width, "as it is", &base->row, base->row.iter_time_s);
  for (uint32_t p = 0; p < grid->n_points; p++) {
    pl_vary_format(grid, p, label, sizeof label);
    print_row(stream, width, label, &runs[p].row, base->row.iter_time_s);
  }
  if (base->entries.n == 0) return;
  fprintf(stream, "\ncollectives as   ");
  pl_collective_entries_print(stream, &base->entries);
  fprintf(stream, ", in every variation\n");
}

/* ---- JSON ---- */

static void put_run(pl_json *json, const pl_vary_grid *grid, uint32_t point, const pl_varied_run *run, double base_s) {
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_open_object(json);
  pl_json_key(json, "variation");
  pl_json_open_object(json);
  for (uint32_t a = 0; a < grid->n_axes; a++)
    pl_json_put_string(json, grid->axes[a].name, pl_vary_value_at(grid, point, a)->text);
  pl_json_close_object(json);
  pl_json_put_string(json, "platform_digest", pl_digest_format(run->platform_digest, digest));
  pl_json_put_number(json, "ratio_to_base", run->row.iter_time_s / base_s);
  pl_simulate_row_json(json, &run->row);
  pl_json_close_object(json);
}

void pl_vary_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *base,
                  const pl_vary_grid *grid, const pl_varied_run *runs) {
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_simulate_subject_json(&json, subject, base);
  pl_json_put_string(&json, "platform_digest", pl_digest_format(subject->cluster->digest, digest));
  pl_collective_entries_json(&json, &base->entries);
  pl_json_key(&json, "variations");
  pl_json_open_array(&json);
  for (uint32_t p = 0; p < grid->n_points; p++)
    put_run(&json, grid, p, &runs[p], base->row.iter_time_s);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}
