/* See validation/command/calibrate_sites.h. */
#include "validation/command/calibrate_sites.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "core/system/command.h"
#include "core/system/output_file.h"
#include "validation/fit/leave_runs_out.h"
#include "validation/fit/site_memory.h"
#include "workloads/run/site_file.h"

enum { N_LARGEST = 14 };

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

static void print_remains(const pl_site *prior) {
  const pl_site_remains *remains = prior->remains;
  printf("of the variance, sites of one source share %12.2f\n", prior->shared);
  printf("what figures leave, standard deviation %15.1f %%; a third of it, it, three times it: %.2f %.2f %.2f\n",
         100 * remains->sd, remains->scale_weight[0], remains->scale_weight[1], remains->scale_weight[2]);
  printf("reaches, in powers of e:  ");
  for (int axis = 0; axis < PL_LIKENESS_N_NUMBERS; axis++)
    printf(" %s %.1f", pl_likeness_names[axis], remains->likeness.length[axis]);
  printf("\nlikeness of another:      ");
  for (int axis = PL_LIKENESS_N_NUMBERS; axis < PL_LIKENESS_COUNT; axis++)
    printf(" %s %.2f", pl_likeness_names[axis], exp(-0.5 / pow(remains->likeness.length[axis], 2)));
  putchar('\n');
}

static void print_leaving(const char *what, const pl_leaving *leaving, bool suggests) {
  printf("\n%s: %u of %d configurations and more (%u of them with a choice)\n", what, leaving->n_groups, PL_LEAVE_LEAST,
         leaving->n_choosing);
  printf("runs known  median%%  mean%%  covered%%  regret%% (without)%s\n",
         suggests ? "  suggested: median%  mean%  covered%  regret% (without)" : "");
  for (int i = 0; i < PL_LEAVE_SIZES; i++) {
    const pl_left_out *random = &leaving->random[i], *suggested = &leaving->suggested[i];
    printf("%-11u %7.1f %6.1f %9.0f %8.1f %9.1f", pl_leave_sizes[i], random->median_pct, random->mape_pct,
           random->coverage_pct, random->regret_pct, random->regret_without_pct);
    if (pl_leave_sizes[i] > 0 && suggests)
      printf("             %7.1f %6.1f %9.0f %8.1f %9.1f", suggested->median_pct, suggested->mape_pct,
             suggested->coverage_pct, suggested->regret_pct, suggested->regret_without_pct);
    putchar('\n');
  }
}

static pl_code print_peaks(const pl_site_rows *rows, const pl_site *prior, const pl_site *priors, pl_arena *arena,
                           pl_error *error) {
  printf(
      "\nmemory beside tensors, of a site +- %.1f GiB, of a run around its site's +- %.1f (as known as by %.1f peaks)\n"
      "peaks known  sites  mean error%%  without  covered%%\n",
      prior->memory_sd_bytes / (1 << 30), prior->memory_scatter_bytes / (1 << 30), prior->memory_degrees);
  for (int i = 1; i < PL_LEAVE_SIZES; i++) {
    pl_peaks_left_out left;
    PL_TRY(pl_site_memory_leave_out(rows, priors, pl_leave_sizes[i], arena, &left, error));
    printf("%-12u %5u %12.1f %8.1f %9.0f\n", left.n_known, left.n_sites, left.with_pct, left.without_pct,
           left.coverage_pct);
  }
  return PL_OK;
}

static void print_largest(const pl_site_rows *rows, const pl_leaving *relatives, const pl_leaving *sources) {
  printf("\nthe largest errors with %d runs%31s  without  of each site  of all  suggested of all\n", PL_LEAVE_OF_EACH,
         "");
  for (uint32_t i = 0; i < relatives->n_groups && i < N_LARGEST; i++) {
    const pl_left_out_one *one = &relatives->groups[i], *all = sources->groups;
    while (all->source != one->source)
      all++;
    printf("%-46.46s (%4u runs) %8.1f %13.1f %7.1f %17.1f\n", rows->source_names[one->source], one->n_configurations,
           one->without_pct, one->random_pct, all->random_pct, all->suggested_pct);
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
  pl_site_prior *search;
  pl_site prior;
  const pl_site *priors;
  pl_leaving leaving[3];
  uint32_t n_threads = (uint32_t)omp_get_max_threads();
  if (options->output != NULL) {
    PL_TRY(pl_command_refuse_input(options->output, options->rows, error));
    PL_TRY(pl_output_file_check(options->output, options->force, error));
  }
  PL_TRY(pl_csv_load(options->rows, arena, &csv, error));
  PL_TRY(pl_site_rows_take(&csv, arena, &rows, error));
  PL_TRY(pl_site_prior_prepare(&rows, arena, &search, error));
  PL_TRY(pl_site_prior_take(search, UINT32_MAX, n_threads, arena, &prior, error));
  PL_TRY(pl_leave_priors_take(&rows, search, n_threads, arena, &priors, error));
  for (int by = 0; by < 3; by++)
    PL_TRY(pl_leave_runs_out(&rows, (pl_leave_by)by, priors, arena, &leaving[by], error));
  printf("%u measured configurations of %u sites of %u sources\n\n", rows.n, rows.n_sites, rows.n_sources);
  print_prior(&prior);
  print_remains(&prior);
  print_leaving("sites (one GPU, software and precision of one source)", &leaving[PL_LEAVE_BY_SITE], true);
  print_leaving("sources, so many runs of each of their sites (but one)", &leaving[PL_LEAVE_BY_RELATIVES], false);
  print_leaving("sources, so many runs of all of them", &leaving[PL_LEAVE_BY_SOURCE], true);
  PL_TRY(print_peaks(&rows, &prior, priors, arena, error));
  print_largest(&rows, &leaving[PL_LEAVE_BY_RELATIVES], &leaving[PL_LEAVE_BY_SOURCE]);
  return store(options, &prior, error);
}

pl_code pl_calibrate_sites_run(const pl_calibrate_sites *options, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate(options, &arena, error);
  pl_arena_release(&arena);
  return code;
}
