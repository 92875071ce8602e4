/* See validation/command/calibrate_suggest.h. */
#include "validation/command/calibrate_suggest.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "search/method/methods.h"
#include "search/method/search.h"
#include "search/run/space_session.h"
#include "validation/fit/site_posterior.h"
#include "workloads/assign/assign.h"
#include "workloads/run/site_file.h"
#include "workloads/run/site_interval.h"

/* The best are what is to be known well; what could be run are these and others drawn by chance, of which none takes
 * much longer. */
enum { N_BEST = 12, N_OTHERS = 48, SEARCH_BUDGET = 2000 };
static const double SLOWEST = 3;

typedef struct session {
  const pl_calibrate_suggest *options;
  pl_space_session base;
  pl_job_options job;
  pl_space_options space;
  pl_site prior;
  pl_site_run runs[N_BEST + N_OTHERS];
  double times_s[N_BEST + N_OTHERS];
  const char *strategies[N_BEST + N_OTHERS];
  uint32_t n, n_best;
  pl_error *error;
} session;

static pl_code check(const pl_calibrate_suggest *o, pl_error *error) {
  if (o->n > PL_SUGGEST_MOST) return pl_fail(error, PL_BAD_INPUT, "--suggest: at most %d runs", PL_SUGGEST_MOST);
  if (o->platform == NULL || o->model == NULL || o->gbs == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "--suggest needs to know what for: --platform P --model M --gbs N (and --framework F)");
  return PL_OK;
}

static pl_code load(session *own) {
  const pl_calibrate_suggest *o = own->options;
  pl_job_options_init(&own->job);
  own->job.platform_path = o->platform;
  own->job.model_path = o->model;
  own->job.framework_choice = o->framework;
  own->job.job.gbs = o->gbs;
  own->job.job.seq = o->seq;
  own->job.origin.seq_is_given = o->seq > 0;
  pl_space_options_init(&own->space, own->error);
  PL_TRY(pl_job_options_check(&own->job, own->error));
  PL_TRY(pl_site_load_prior(&own->base.arena, &own->prior, own->error));
  PL_TRY(pl_space_session_load(&own->base, &own->job, &own->space, own->error));
  if (!pl_evaluates_programs(&own->base.evaluation)) return PL_OK;
  return pl_fail(own->error, PL_UNSUPPORTED,
                 "%s: an ONNX file is simulated as a program, which nothing is calibrated for by whole runs",
                 own->job.model_path);
}

static pl_code search(session *own, const pl_method *method, uint32_t budget, uint32_t n_top,
                      pl_search_outcome *outcome) {
  const pl_search_problem problem = {.cluster = own->base.evaluation.cluster,
                                     .model = &own->base.model,
                                     .job = &own->job.job,
                                     .options = &own->job.simulate,
                                     .choices = &own->space.choices,
                                     .seed = 1,
                                     .n_top = n_top,
                                     .budget = budget};
  const pl_search run = {.problem = &problem,
                         .method = method,
                         .budget_s = INFINITY,
                         .n_top = n_top,
                         .n_threads = (uint32_t)omp_get_max_threads()};
  return pl_search_run(&run, PL_ALONE, &own->base.arena, outcome, own->error);
}

static bool is_known(const session *own, const pl_result_row *row) {
  for (uint32_t i = 0; i < own->n; i++)
    if (own->times_s[i] == row->iter_time_s) return true; /* the same run, or one that would tell the same */
  return false;
}

static pl_code add(session *own, const pl_result_row *row) {
  const pl_evaluation *e = &own->base.evaluation;
  pl_strategy strategy;
  if (is_known(own, row)) return PL_OK;
  own->strategies[own->n] = row->search->strategy.text;
  PL_TRY(pl_strategy_parse(own->strategies[own->n], e->model, &own->base.arena, &strategy, own->error));
  PL_TRY(pl_strategy_check(&strategy, e->model, e->job, e->cluster->n_devices, own->error));
  PL_TRY(pl_assign(&strategy, e->model, e->job, e->cluster, e->options, &own->base.arena, own->error));
  PL_TRY(pl_site_sensitivities_take(e->cluster, e->model, e->job, &strategy, e->options, row->iter_time_s,
                                    &own->base.arena, own->runs[own->n].x, own->error));
  own->runs[own->n].at = pl_configuration_of(e->cluster->profiles[0].name, pl_configuration_size(e->model, e->job->seq),
                                             e->job, &strategy);
  own->times_s[own->n++] = row->iter_time_s;
  return PL_OK;
}

static pl_code gather(session *own) {
  pl_search_outcome best, others;
  PL_TRY(search(own, pl_method_find(PL_SEARCH_DEFAULT_METHOD), SEARCH_BUDGET, N_BEST, &best));
  if (best.n_top == 0)
    return pl_fail(own->error, PL_BAD_INPUT, "no strategy for %s fits in memory; paceline search says what would help",
                   own->options->model);
  for (uint32_t i = 0; i < best.n_top; i++)
    PL_TRY(add(own, &best.top[i]));
  own->n_best = own->n;
  PL_TRY(search(own, &pl_method_random, 4 * N_OTHERS, N_OTHERS, &others));
  for (uint32_t i = 0; i < others.n_top; i++)
    if (others.top[i].iter_time_s <= SLOWEST * best.top[0].iter_time_s) PL_TRY(add(own, &others.top[i]));
  return PL_OK;
}

/* Of the best strategy, with the scatter that is usual. */
static double half_pct(const session *own, double variance) {
  return 100 * (exp(pl_site_half_of(&own->prior, variance)) - 1);
}

/* variance[i]: of the best strategy's time when the runs up to i are known. */
static void print(const session *own, const uint32_t *chosen, const double *variance, uint32_t n) {
  char time[PL_UNIT_TEXT_BYTES];
  printf("best strategy %s, +- %.0f %% before any run of this site (80 %%)\n", pl_format_time(own->times_s[0], time),
         half_pct(own, pl_site_together(&own->prior, &own->runs[0], &own->runs[0])));
  for (uint32_t i = 0; i < n; i++)
    printf("run %u: --strategy %s\n  predicted %s; then +- %.0f %%\n", i + 1, own->strategies[chosen[i]],
           pl_format_time(own->times_s[chosen[i]], time), half_pct(own, variance[i]));
  printf(
      "Put what they took into a table (validation/README.md), then: paceline calibrate --runs TABLE -o site.json\n");
}

static pl_code suggest(session *own) {
  uint32_t chosen[PL_SUGGEST_MOST], n;
  double variance[PL_SUGGEST_MOST];
  PL_TRY(check(own->options, own->error));
  PL_TRY(load(own));
  PL_TRY(gather(own));
  PL_TRY(pl_site_suggest(&own->prior, own->runs, own->n, own->n_best, (uint32_t)own->options->n, &own->base.arena,
                         chosen, variance, &n, own->error));
  print(own, chosen, variance, n);
  return PL_OK;
}

pl_code pl_calibrate_suggest_run(const pl_calibrate_suggest *options, pl_error *error) {
  session own = {.options = options, .error = error};
  pl_space_session_init(&own.base);
  pl_code code = suggest(&own);
  pl_space_session_release(&own.base);
  return code;
}
