/* See validation/command/calibrate_sites.h. */
#include "validation/command/calibrate_sites.h"

#include <math.h>
#include <stdio.h>

#include "core/system/command.h"
#include "core/system/output_file.h"
#include "validation/fit/leave_runs_out.h"
#include "validation/fit/site_prior.h"
#include "validation/fit/site_relatives.h"
#include "workloads/run/site_file.h"

static void print_prior(const pl_site *prior) {
  printf("figure             factor on time   80 %% of sites\n");
  for (int i = 0; i < PL_SITE_COUNT; i++) {
    double sd = sqrt(prior->covariance[i][i]), mean = prior->mean[i], half = PL_SITE_HALF * sd;
    if (i == PL_SITE_step)
      printf("%-18s %12.3f s   0 to %.3f s\n", pl_site_figure_names[i], mean, mean + half);
    else
      printf("%-18s %14.2f   %.2f to %.2f\n", pl_site_figure_names[i], exp(mean), exp(mean - half), exp(mean + half));
  }
}

static void print_leaving(const char *what, const pl_leaving *leaving, bool suggests) {
  printf("\n%s: %u of %d configurations and more\n", what, leaving->n_groups, PL_LEAVE_LEAST);
  printf("runs known          median%%  mean%%  covered%%%s\n",
         suggests ? "      suggested: median%  mean%  covered%" : "");
  for (int i = 0; i < PL_LEAVE_SIZES; i++) {
    const pl_left_out *random = &leaving->random[i], *suggested = &leaving->suggested[i];
    printf("%-19u %7.1f %6.1f %9.0f", pl_leave_sizes[i], random->median_pct, random->mape_pct, random->coverage_pct);
    if (pl_leave_sizes[i] > 0 && suggests)
      printf("                 %7.1f %6.1f %9.0f", suggested->median_pct, suggested->mape_pct, suggested->coverage_pct);
    putchar('\n');
  }
}

static pl_code store(const pl_calibrate_sites *options, const pl_site *prior, pl_error *error) {
  if (options->output == NULL) return PL_OK;
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, options->output, options->force, error));
  pl_site_write(file.stream, prior,
                "how sites differ, before any run of one's own: written by 'paceline calibrate --sites' "
                "(workloads/run/site_file.h)");
  PL_TRY(pl_output_file_close(&file, PL_OK, error));
  pl_command_print_written(options->output, NULL);
  return PL_OK;
}

static pl_code calibrate(const pl_calibrate_sites *options, pl_arena *arena, pl_error *error) {
  pl_csv csv;
  pl_site_rows rows;
  pl_site prior;
  pl_leaving by_site, by_source, by_relatives;
  if (options->output != NULL) {
    PL_TRY(pl_command_refuse_input(options->output, options->rows, error));
    PL_TRY(pl_output_file_check(options->output, options->force, error));
  }
  PL_TRY(pl_csv_load(options->rows, arena, &csv, error));
  PL_TRY(pl_site_rows_take(&csv, arena, &rows, error));
  PL_TRY(pl_site_prior_take(&rows, UINT32_MAX, NULL, arena, &prior, error));
  PL_TRY(pl_site_shared_take(&rows, UINT32_MAX, &prior, arena, &prior.shared, error));
  PL_TRY(pl_leave_runs_out(&rows, PL_LEAVE_BY_SITE, &prior, arena, &by_site, error));
  PL_TRY(pl_leave_runs_out(&rows, PL_LEAVE_BY_RELATIVES, &prior, arena, &by_relatives, error));
  PL_TRY(pl_leave_runs_out(&rows, PL_LEAVE_BY_SOURCE, &prior, arena, &by_source, error));
  printf("%u measured configurations of %u sites of %u sources\n\n", rows.n, rows.n_sites, rows.n_sources);
  print_prior(&prior);
  printf("of the variance, sites of one source share %12.1f\n", prior.shared);
  print_leaving("sites (one GPU, software and precision of one source)", &by_site, true);
  print_leaving("sources, so many runs of each of their sites (but one)", &by_relatives, false);
  print_leaving("sources, whatever they ran on, as if each were one site", &by_source, true);
  return store(options, &prior, error);
}

pl_code pl_calibrate_sites_run(const pl_calibrate_sites *options, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate(options, &arena, error);
  pl_arena_release(&arena);
  return code;
}
