/* How near the lower bounds (search/bound/lower_bound.h) come to what is simulated, and what one costs: a sample of a
 * space, by kind of strategy, as ratios of bound to simulated time; and how many strategies that do not fit it knew.
 *
 *   lower_bound_bench [PLATFORM.xml MODEL.json GBS SEQ [SAMPLES [FRAMEWORK]]]     (default: every candidate, ideal)
 *
 * Without arguments 500 candidates of GPT-3 175B on 16 DGX A100; run from the repository. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/bound/lower_bound.h"
#include "search/run/space_session.h"
#include "tests/support/bench.h"

enum { KINDS = 8 };

typedef struct sample {
  double ratio;
  int kind;
} sample;

static const char *const kind_names[KINDS] = {"all",  "pp = 1, zero 0-1", "pp = 1, zero 2-3", "gpipe",
                                              "1f1b", "interleaved",      "tmp = 1",          "tmp > 8"};

static void stop_on(const pl_error *error) {
  if (error->code == PL_OK) return;
  fprintf(stderr, "lower_bound_bench: %s\n", error->message);
  exit(pl_code_exit_status(error->code));
}

static bool is_of_kind(const pl_strategy *s, int kind) {
  switch (kind) {
  case 1:
    return s->pp == 1 && s->zero <= 1;
  case 2:
    return s->pp == 1 && s->zero >= 2;
  case 3:
  case 4:
  case 5:
    return s->pp > 1 && (int)s->schedule == kind - 3;
  case 6:
    return s->tmp == 1;
  case 7:
    return s->tmp > 8;
  default:
    return true;
  }
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void print_kind(bench *b, int kind, double *ratios, uint32_t n) {
  if (n == 0) return;
  qsort(ratios, n, sizeof *ratios, by_value);
  printf("%-18s %6u  %.3f %.3f %.3f %.3f %.3f\n", kind_names[kind], n, ratios[0], ratios[n / 10], ratios[n / 2],
         ratios[n * 9 / 10], ratios[n - 1]);
  if (kind == 0) bench_ratio(b, "lower bound", "simulated time", ratios, n);
}

int main(int argc, char **argv) {
  static char *defaults[] = {"", "platforms/dgx-a100-16.xml", "workloads/models/gpt3-175b.json", "1536", "2048", "500"};
  bench b = bench_begin("lower_bound_bench", &argc, argv);
  if (argc > 1 && argc < 5)
    return fprintf(stderr, "lower_bound_bench [PLATFORM MODEL GBS SEQ [SAMPLES [FRAMEWORK]]]\n"), 2;
  if (argc == 1) {
    if (b.is_small) defaults[3] = "64", defaults[5] = "20";
    argc = sizeof defaults / sizeof *defaults;
    argv = defaults;
  }
  MPI_Init(NULL, NULL);
  pl_error error = PL_ERROR_INIT;
  pl_space_session session;
  pl_job_options options;
  pl_space_options of_space;
  pl_space space;
  pl_space_session_init(&session);
  pl_job_options_init(&options);
  pl_space_options_init(&of_space, &error);
  options.platform_path = argv[1];
  options.model_path = argv[2];
  options.job.gbs = atoll(argv[3]);
  options.job.seq = atoll(argv[4]);
  options.framework_choice = argc > 6 ? argv[6] : NULL;
  pl_space_session_load(&session, &options, &of_space, &error);
  stop_on(&error);
  const pl_evaluation *e = &session.evaluation;
  pl_evaluate_space(e, &of_space.choices, &session.arena, &space, &error);
  stop_on(&error);
  uint32_t n = argc > 5 ? (uint32_t)atoi(argv[5]) : space.n_candidates;
  if (n > space.n_candidates) n = space.n_candidates;
  pl_lower_bounds *bounds = pl_lower_bounds_take(e->cluster, e->model, e->job, e->options, &session.arena);
  double *ratios[KINDS];
  uint32_t count[KINDS] = {0}, unsound = 0, oom = 0, known_oom = 0, wrong_oom = 0;
  for (int k = 0; k < KINDS; k++)
    ratios[k] = calloc(n, sizeof(double));
  pl_worker worker;
  pl_worker_init(&worker);
  double bound_s = 0, assign_s = 0, simulate_s = 0;
  for (uint32_t i = 0; i < n; i++) {
    pl_strategy strategy;
    pl_lower_bound bound;
    pl_result_row row = {.features = NULL};
    pl_arena_reset(&worker.arena);
    double start = bench_cpu_s();
    pl_space_strategy(&space, (uint32_t)((uint64_t)i * space.n_candidates / n), &strategy);
    pl_strategy_assign(&strategy, e->model, e->job, e->cluster, &worker.arena, &error);
    double assigned = bench_cpu_s();
    pl_lower_bound_of(bounds, &strategy, &bound, &error);
    stop_on(&error);
    double bounded = bench_cpu_s();
    if (pl_evaluate_strategy(e, &strategy, &worker, &row, &error) != PL_OK) {
      error = PL_ERROR_INIT;
      continue;
    }
    simulate_s += bench_cpu_s() - bounded;
    bound_s += bounded - assigned;
    assign_s += assigned - start;
    oom += !row.fits;
    known_oom += !row.fits && bound.shortfall_bytes > 0;
    double ratio = bound.time_s / row.iter_time_s;
    bool bad_memory = row.fits && bound.shortfall_bytes > 0;
    wrong_oom += bad_memory;
    unsound += ratio > 1;
    char text[512];
    pl_strategy_format(&strategy, e->model, text, sizeof text);
    if (ratio > 1 || bad_memory) printf("UNSOUND %.6f %s short by %.0f\n", ratio, text, bound.shortfall_bytes);
    if (getenv("LOOSE") != NULL && ratio < atof(getenv("LOOSE")))
      printf("%.3f of %.4f s: %.120s bubble %.3f tensor %.3f data %.3f pipe %.3f\n", ratio, row.iter_time_s, text,
             row.bubble_s, row.tensor_comm_s, row.data_comm_s, row.pipeline_comm_s);
    for (int k = 0; k < KINDS; k++)
      if (bound.shortfall_bytes <= 0 && is_of_kind(&strategy, k)) ratios[k][count[k]++] = ratio;
  }
  printf("bound / simulated   n     min   p10  median  p90  max\n");
  for (int k = 0; k < KINDS; k++)
    print_kind(&b, k, ratios[k], count[k]);
  bench_figure(&b, "a lower bound", "a simulation", bound_s / simulate_s);
  bench_figure(&b, "assigning layers", "a simulation", assign_s / simulate_s);
  printf("%u do not fit, of which %u are known to; unsound: %u times, %u memory\n", oom, known_oom, unsound, wrong_oom);
  for (int k = 0; k < KINDS; k++)
    free(ratios[k]);
  pl_worker_release(&worker);
  pl_lower_bounds_release(bounds);
  pl_space_session_release(&session);
  MPI_Finalize();
  return bench_end(&b) | (unsound + wrong_oom > 0);
}
