/* See validation/command/calibrate_suggest.h. */
#include "validation/command/calibrate_suggest.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/output_file.h"
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
                 "%s: %s is simulated as a program, which nothing is calibrated for by whole runs", own->job.model_path,
                 own->base.model.program.onnx != NULL ? "an ONNX file" : "a model of this family");
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

enum { HALF_BYTES = 24, MOST_PCT = 999 };

/* With the scatter that is usual. What sites add to a step may be many times one of milliseconds. */
static const char *half_text(const session *own, double variance, char text[HALF_BYTES]) {
  double pct = 100 * (exp(pl_site_half_of(&own->prior, variance)) - 1);
  snprintf(text, HALF_BYTES, pct > MOST_PCT ? "> %.0f %%" : "+- %.0f %%", fmin(pct, MOST_PCT));
  return text;
}

/* What to do with the table, as a shell takes it. */
static pl_code print_next(session *own) {
  const pl_calibrate_suggest *o = own->options;
  pl_arena *arena = &own->base.arena;
  const char *runs = pl_command_quote(o->output != NULL ? o->output : "runs.csv", arena);
  const char *platform = pl_command_quote(o->platform, arena);
  const char *framework = pl_command_quote(o->framework != NULL ? o->framework : "ideal", arena);
  if (arena->failed) return pl_fail_memory(own->error, "the suggestions");
  printf("paceline calibrate --runs %s --platform %s --framework %s -o site.json\n", runs, platform, framework);
  return PL_OK;
}

/* variance[i * n_best + k]: of the time of the best strategy k when the runs up to i are known. */
static pl_code print(session *own, const uint32_t *chosen, const double *variance, uint32_t n) {
  char time[PL_UNIT_TEXT_BYTES], before[HALF_BYTES], after[HALF_BYTES];
  printf("to be known well: the %" PRIu32
         " best strategies; predicted, 80 %% before any run of this site, after these %u\n",
         own->n_best, n);
  for (uint32_t k = 0; k < own->n_best; k++)
    printf("%10s  %9s  %9s  %s\n", pl_format_time(own->times_s[k], time),
           half_text(own, pl_site_together(&own->prior, &own->runs[k], &own->runs[k]), before),
           half_text(own, n > 0 ? variance[(n - 1) * own->n_best + k] : 0, after), own->strategies[k]);
  putchar('\n');
  for (uint32_t i = 0; i < n; i++)
    printf("run %u: --strategy %s\n  predicted %s; then %s on the best\n", i + 1, own->strategies[chosen[i]],
           pl_format_time(own->times_s[chosen[i]], time), half_text(own, variance[i * own->n_best], after));
  if (own->options->output == NULL)
    puts("-o runs.csv writes a table of them; put in what they took, in seconds, and their peaks, in GiB, then:");
  else
    printf("written to %s: put in what they took, in seconds, and their peaks, in GiB (or leave them empty), then:\n",
           own->options->output);
  PL_TRY(print_next(own));
  pl_job_origin_print(stdout, 14, &own->base.model, &own->job.job, &own->job.origin,
                      pl_job_narrow_share(&own->base.model, &own->job.job));
  return PL_OK;
}

/* ---- the table ---- */

static void put_cell(FILE *stream, const char *text) {
  fputc('"', stream);
  for (; *text != '\0'; text++)
    fprintf(stream, *text == '"' ? "\"\"" : "%c", *text);
  fputs("\",", stream);
}

/* As seen from wherever the table will lie. */
static void put_path(FILE *stream, const char *name) {
  char *path = realpath(name, NULL); /* NULL: of those that come with Paceline */
  put_cell(stream, path != NULL ? path : name);
  free(path);
}

/* Each kind, as a table names one: "T4 + V100-SXM2-16GB". */
static void put_gpus(FILE *stream, const pl_cluster *cluster) {
  fputc('"', stream);
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    fprintf(stream, "%s%s", p > 0 ? " + " : "", cluster->profiles[p].name);
  fputs("\",", stream);
}

static void write_table(const session *own, const uint32_t *chosen, uint32_t n, FILE *stream) {
  const pl_evaluation *e = &own->base.evaluation;
  fputs("model,model_file,strategy,seq_len,gbs,platform,gpu,n_gpus,framework,precision,step_time_s,mem_gb\n", stream);
  for (uint32_t i = 0; i < n; i++) {
    put_cell(stream, e->model->name);
    put_path(stream, own->options->model);
    put_cell(stream, own->strategies[chosen[i]]);
    fprintf(stream, "%" PRId64 ",%" PRId64 ",", e->job->seq, e->job->gbs);
    put_path(stream, own->options->platform);
    put_gpus(stream, e->cluster);
    fprintf(stream, "%" PRIu32 ",", e->cluster->n_devices);
    put_cell(stream, pl_framework_or_ideal(e->job->framework)->name);
    fprintf(stream, "%s,,\n", pl_configuration_precision(e->job));
  }
}

static pl_code store(const session *own, const uint32_t *chosen, uint32_t n) {
  const pl_calibrate_suggest *o = own->options;
  if (o->output == NULL) return PL_OK;
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, o->output, o->force, own->error));
  write_table(own, chosen, n, file.stream);
  return pl_output_file_close(&file, PL_OK, own->error);
}

static pl_code suggest(session *own) {
  uint32_t chosen[PL_SUGGEST_MOST], n;
  double variance[PL_SUGGEST_MOST * N_BEST];
  PL_TRY(check(own->options, own->error));
  if (own->options->output != NULL) PL_TRY(pl_output_file_check(own->options->output, own->options->force, own->error));
  PL_TRY(load(own));
  PL_TRY(gather(own));
  PL_TRY(pl_site_suggest(&own->prior, own->runs, own->n, own->n_best, (uint32_t)own->options->n, &own->base.arena,
                         chosen, variance, &n, own->error));
  PL_TRY(store(own, chosen, n));
  return print(own, chosen, variance, n);
}

pl_code pl_calibrate_suggest_run(const pl_calibrate_suggest *options, pl_error *error) {
  session own = {.options = options, .error = error};
  pl_space_session_init(&own.base);
  pl_code code = suggest(&own);
  pl_space_session_release(&own.base);
  return code;
}
