/* See validation/command/calibrate_runs.h. Gauss-Newton: the times are simulated with the site that was found so far,
 * the logarithms taken for linear around it, and the site found anew from the prior. */
#include "validation/command/calibrate_runs.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/output_file.h"
#include "validation/fit/site_memory.h"
#include "validation/fit/site_posterior.h"
#include "validation/rows/case.h"
#include "validation/rows/case_columns.h"
#include "workloads/run/site_file.h"
#include "workloads/run/site_interval.h"

enum { ROUNDS = 6 };
static const double SETTLED = 1e-3; /* of a figure's logarithm: then the next round would say the same */
/* Software publishes times and rates rounded, or of other steps: what differs more is not of one run. */
static const double CONTRADICTION = 1.25;
/* No published source is so far off; a time in milliseconds, or of an epoch, is. */
static const double IMPLAUSIBLE = 8;

typedef struct session {
  const pl_calibrate_runs *options;
  pl_arena arena;
  pl_measured table;
  pl_csv known;
  pl_cases cases;
  pl_case_options run;
  pl_site prior, site, elsewhere;
  double *first_s, *first_bytes; /* of each case, without a site */
  double *excess;                /* of those with a peak, what it is above that */
  uint32_t *parts, n_parts;      /* the site of each case, 0 is the one that is written; the others are its relatives */
  pl_site_run *runs;             /* of the cases that are learnt from */
  const pl_site_run **list;
  uint32_t n_learnt;
  pl_error *error;
} session;

/* ---- reading ---- */

/* Why a row is not simulated; of a bad cell without the class ("cell: ") that validate counts it in. */
static const char *reason_of(const pl_case *c) {
  return c->row->defect != NULL ? c->row->defect : c->reason;
}

static bool has_peak(const pl_case *c) {
  return c->reason == NULL && !c->crashed && c->measured_mem_bytes > 0;
}

/* A time and a rate of one row that are not of the same step: which of them holds nobody can know. */
static const char *contradiction_of(session *own, const pl_measured_row *row) {
  if (isnan(row->step_time_s) || isnan(row->tokens_per_s_per_gpu) || row->n_gpus < 1) return NULL;
  double by_rate = (double)row->gbs * (double)row->seq_len / (row->tokens_per_s_per_gpu * (double)row->n_gpus);
  if (fabs(log(row->step_time_s / by_rate)) <= log(CONTRADICTION)) return NULL;
  char said[PL_UNIT_TEXT_BYTES], follows[PL_UNIT_TEXT_BYTES];
  return pl_arena_printf(&own->arena,
                         "columns 'step_time_s' and 'tokens_per_s_per_gpu' contradict each other: %s said, %s from %g "
                         "tokens a second and GPU; correct one or leave it blank",
                         pl_format_time(row->step_time_s, said), pl_format_time(by_rate, follows),
                         row->tokens_per_s_per_gpu);
}

/* A peak that the GPU does not have; NULL: none. */
static const char *excess_of(session *own, const pl_case *c) {
  if (!has_peak(c) || !(c->measured_mem_bytes > c->device.memory_bytes)) return NULL;
  return pl_arena_printf(&own->arena, "column 'mem_gb': a peak of %g GiB, and %s has %g",
                         c->measured_mem_bytes / (1 << 30), c->device.n_kinds > 1 ? c->platform : c->device.name,
                         c->device.memory_bytes / (1 << 30));
}

/* Rows that cannot be of the run that they describe get their reason, once it is known what they ran on. */
static pl_code refuse_impossible(session *own) {
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    pl_case *c = &own->cases.cases[i];
    if (c->reason == NULL) c->reason = contradiction_of(own, c->row);
    if (c->reason == NULL) c->reason = excess_of(own, c);
  }
  return own->arena.failed ? pl_fail_memory(own->error, "the runs") : PL_OK;
}

static pl_code load(session *own) {
  const pl_calibrate_runs *options = own->options;
  pl_error *error = own->error;
  own->run = (pl_case_options){.n_threads = (uint32_t)omp_get_max_threads(),
                               .platform_path = options->platform,
                               .framework = options->framework,
                               .sensitivities = true};
  PL_TRY(pl_site_load_prior(&own->arena, &own->prior, error));
  PL_TRY(pl_row_known_load(&own->arena, &own->known, error));
  PL_TRY(pl_measured_load(options->rows, &own->arena, &own->table, error));
  PL_TRY(pl_cases_take(&own->table, 1, &own->arena, &own->cases, error));
  PL_TRY(pl_cases_express(&own->cases, &own->known, &own->run, &own->arena, error));
  own->first_s = PL_TAKE(&own->arena, double, own->cases.n_cases);
  own->first_bytes = PL_TAKE(&own->arena, double, own->cases.n_cases);
  own->excess = PL_TAKE(&own->arena, double, own->cases.n_cases);
  own->parts = PL_TAKE(&own->arena, uint32_t, own->cases.n_cases);
  own->runs = PL_TAKE(&own->arena, pl_site_run, own->cases.n_cases + 1);
  own->list = PL_TAKE(&own->arena, const pl_site_run *, own->cases.n_cases + 1);
  return own->arena.failed ? pl_fail_memory(error, "the runs") : PL_OK;
}

static pl_code check_learnt(const session *own) {
  const pl_cases *cases = &own->cases;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (pl_case_is_timed(&cases->cases[i]) || has_peak(&cases->cases[i])) return PL_OK;
  const pl_case *c = &cases->cases[0];
  const char *reason = reason_of(c);
  return pl_fail(own->error, PL_BAD_INPUT, "%s:%u: %s; no run of %s can be learnt from", c->row->file, c->row->line,
                 reason != NULL ? reason : "has neither a time nor a peak", own->options->rows);
}

/* ---- learning ---- */

/* One GPU, one software, one precision, as the rows name them. */
static bool is_alike(const pl_case *a, const pl_case *b) {
  return strcmp(a->row->gpu, b->row->gpu) == 0 && strcmp(a->row->framework, b->row->framework) == 0 &&
         strcmp(a->row->precision, b->row->precision) == 0;
}

/* The number of the site of case i among those of the cases before it; the first that is learnt from is the one. */
static uint32_t part_of(const session *own, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (pl_case_is_timed(&own->cases.cases[k]) && is_alike(&own->cases.cases[k], &own->cases.cases[i]))
      return own->parts[k];
  return own->n_parts;
}

static void find_parts(session *own) {
  own->n_parts = 0;
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    if (!pl_case_is_timed(&own->cases.cases[i])) continue;
    own->parts[i] = part_of(own, i);
    if (own->parts[i] == own->n_parts) own->n_parts++;
  }
}

/* There is one. */
static const pl_case *first_timed(const session *own) {
  const pl_case *first = own->cases.cases;
  while (!pl_case_is_timed(first))
    first++;
  return first;
}

/* By the names of profiles, as predictions at the site have them; what another site's rows name differently is told
 * apart as they name it. */
static pl_configuration configure(const session *own, uint32_t i) {
  const pl_case *c = &own->cases.cases[i], *first = first_timed(own);
  if (c->program != NULL) {
    pl_configuration alone = {.name = {c->row->gpu, c->program, c->row->precision, ""}};
    for (int k = 0; k < PL_LIKENESS_N_NUMBERS; k++)
      alone.number[k] = 1;
    return alone;
  }
  pl_configuration at =
      pl_configuration_of(pl_case_device(c), pl_configuration_size(c->model, c->job.seq), &c->job, &c->strategy);
  if (strcmp(c->row->framework, first->row->framework) != 0) at.name[1] = c->row->framework;
  if (strcmp(c->row->precision, first->row->precision) != 0) at.name[2] = c->row->precision;
  return at;
}

static pl_code learn_times(session *own) {
  own->n_learnt = 0;
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    const pl_case *c = &own->cases.cases[i];
    if (!pl_case_is_timed(c)) continue;
    pl_site_run *run = &own->runs[own->n_learnt];
    *run = (pl_site_run){.at = configure(own, i), .part = own->parts[i]};
    memcpy(run->x, c->sensitivity, sizeof run->x);
    run->y = log(c->measured_s * c->remains_factor / c->result.iter_time_s);
    for (int figure = 0; figure < PL_SITE_COUNT; figure++)
      run->y += own->site.mean[figure] * run->x[figure];
    own->list[own->n_learnt++] = run;
  }
  const pl_site before = own->site;
  pl_site_knowledge *knowledge;
  PL_TRY(pl_site_learn(&own->prior, own->list, own->n_learnt, &own->arena, &knowledge, own->error));
  PL_TRY(pl_site_posterior(knowledge, 0, &own->arena, &own->site, own->error));
  PL_TRY(pl_site_posterior(knowledge, UINT32_MAX, &own->arena, &own->elsewhere, own->error));
  own->site.shared = own->site.degrees = 0;
  own->site.memory_bytes = before.memory_bytes;
  own->site.memory_sd_bytes = before.memory_sd_bytes;
  own->site.memory_scatter_bytes = before.memory_scatter_bytes;
  own->site.memory_degrees = 0;
  own->site.n_peaks = before.n_peaks;
  return PL_OK;
}

/* Of the predictions without a site: what lies beside the tensors is added to them. */
static void learn_peaks(session *own) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < own->cases.n_cases; i++)
    if (has_peak(&own->cases.cases[i])) own->excess[n++] = own->cases.cases[i].measured_mem_bytes - own->first_bytes[i];
  pl_site_memory_learn(&own->prior, own->excess, n, &own->site);
}

static double moved_by(const pl_site *a, const pl_site *b) {
  double most = 0;
  for (int i = 0; i < PL_SITE_COUNT; i++)
    most = fmax(most, fabs(a->mean[i] - b->mean[i]));
  return most;
}

static pl_code simulate(session *own) {
  own->run.site = &own->site;
  return pl_cases_simulate(&own->cases, &own->run, &own->arena, own->error);
}

/* From no site at all, whose predictions are those that a user knows; to the last round's site, with its predictions.
 */
static pl_code learn(session *own) {
  own->site =
      (pl_site){.memory_sd_bytes = own->prior.memory_sd_bytes, .memory_scatter_bytes = own->prior.memory_scatter_bytes};
  PL_TRY(simulate(own));
  PL_TRY(refuse_impossible(own));
  PL_TRY(check_learnt(own));
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    own->first_s[i] = own->cases.cases[i].result.iter_time_s;
    own->first_bytes[i] = own->cases.cases[i].predicted_mem_bytes;
  }
  learn_peaks(own);
  find_parts(own);
  for (int round = 0; round < ROUNDS; round++) {
    const pl_site before = own->site;
    PL_TRY(learn_times(own));
    PL_TRY(simulate(own));
    if (moved_by(&before, &own->site) < SETTLED) break;
  }
  own->elsewhere.memory_bytes = own->site.memory_bytes;
  own->site.elsewhere = &own->elsewhere;
  return own->n_parts > 1 ? simulate(own) : PL_OK; /* relatives as they will be predicted */
}

/* ---- the report ---- */

static void print_figure(const session *own, int i) {
  double half = PL_SITE_HALF * sqrt(own->site.covariance[i][i]), mean = own->site.mean[i];
  double half_before = PL_SITE_HALF * sqrt(own->prior.covariance[i][i]), mean_before = own->prior.mean[i];
  double left = own->prior.covariance[i][i] > 0 ? half / half_before : 1;
  if (i == PL_SITE_step)
    printf("%-16s %8.3f s %9.3f to %.3f %14.3f to %.3f", pl_site_figure_names[i], mean, fmax(0, mean - half),
           mean + half, fmax(0, mean_before - half_before), mean_before + half_before);
  else
    printf("%-16s x%8.2f %10.2f to %.2f %15.2f to %.2f", pl_site_figure_names[i], exp(mean), exp(mean - half),
           exp(mean + half), exp(mean_before - half_before), exp(mean_before + half_before));
  printf("%9.0f %%\n", 100 * left);
}

/* Of a platform of several kinds a cell may name one, or none that is known by its name. */
static void print_other_gpu(const pl_case *c) {
  const char *named = pl_row_device_named(c->row->gpu);
  bool is_mixed = pl_row_gpu_is_mixed(c->row->gpu);
  if (c->plan.n_parts > 0 || (named == NULL && !is_mixed)) return;
  if (c->device.n_kinds > 1 && is_mixed) return;
  if (c->device.n_kinds > 1)
    printf("note: line %u is of '%s', and is predicted on %s, which has %u kinds of GPUs\n", c->row->line, c->row->gpu,
           c->platform, c->device.n_kinds);
  else if (is_mixed || strcmp(named, c->device.name) != 0)
    printf("note: line %u is of '%s', and is predicted on the platform's %s\n", c->row->line, c->row->gpu,
           c->device.name);
}

/* Software that no rule knows, said at the first row that names it. */
static void print_software(const session *own, uint32_t i) {
  const pl_case *c = &own->cases.cases[i];
  if (c->habits.is_named || pl_row_framework_is_known(c->row)) return;
  for (uint32_t k = 0; k < i; k++)
    if (strcmp(own->cases.cases[k].row->framework, c->row->framework) == 0) return;
  if (c->row->framework[0] == '\0')
    printf("note: line %u names no software, and is predicted as %s; --framework NAME says which\n", c->row->line,
           c->habits.framework);
  else
    printf("note: the software of line %u, '%s', is none that is known, and is predicted as %s; --framework NAME says "
           "which\n",
           c->row->line, c->row->framework, c->habits.framework);
}

static void print_run(const session *own, uint32_t i) {
  const pl_case *c = &own->cases.cases[i];
  char interval[PL_INTERVAL_TEXT_BYTES], measured[PL_UNIT_TEXT_BYTES], first[PL_UNIT_TEXT_BYTES],
      now[PL_UNIT_TEXT_BYTES];
  if (c->reason != NULL) {
    printf("%s:%u: not learnt from: %s\n", c->row->file, c->row->line, reason_of(c));
    return;
  }
  printf("%s:%u:", c->row->file, c->row->line);
  if (c->n_rows > 1) printf(" the median of %u rows that say the same:", c->n_rows);
  if (pl_case_is_timed(c))
    printf(" measured %s, without the site %s (%+.1f %%), with it %s (%+.1f %%; 80 %%: %s)",
           pl_format_time(c->measured_s, measured), pl_format_time(own->first_s[i], first),
           100 * (own->first_s[i] / c->measured_s - 1), pl_format_time(c->result.iter_time_s, now),
           100 * pl_case_error(c), pl_interval_format(&c->interval, interval));
  if (pl_case_is_timed(c) && own->site.remains != NULL)
    printf(", of which x%.3f is what the figures leave", c->remains_factor);
  if (has_peak(c))
    printf("%s peak %.1f GiB, without %.1f, with it %.1f", pl_case_is_timed(c) ? ";" : "",
           c->measured_mem_bytes / (1 << 30), own->first_bytes[i] / (1 << 30), c->predicted_mem_bytes / (1 << 30));
  putchar('\n');
  double apart = pl_case_is_timed(c) ? own->first_s[i] / c->measured_s : 1;
  if (apart > IMPLAUSIBLE || apart < 1 / IMPLAUSIBLE)
    printf("note: line %u is %.0f times as %s as without the site: is it the time of one step, in seconds?\n",
           c->row->line, fmax(apart, 1 / apart), apart > 1 ? "short" : "long");
  print_other_gpu(c);
  print_software(own, i);
}

/* What acts on a GPU, in software and precision that are not the site's. */
static void print_elsewhere(const session *own) {
  printf("on another GPU, in other software or precision:");
  for (int i = 0; i < PL_SITE_COUNT; i++) {
    double half = PL_SITE_HALF * sqrt(own->elsewhere.covariance[i][i]), mean = own->elsewhere.mean[i];
    if (i == PL_SITE_step)
      printf(" %s %.3f s (0 to %.3f)\n", pl_site_figure_names[i], fmax(0, mean), fmax(0, mean) + half);
    else
      printf(" %s x%.2f (%.2f to %.2f),", pl_site_figure_names[i], exp(mean), exp(mean - half), exp(mean + half));
  }
}

static double usual_half(const pl_site *site) {
  return pl_site_half_of(site, 0);
}

/* What the figures leave at each run, and how far that reaches: each axis' length as a factor. */
static void print_remains(const session *own) {
  const pl_site_remains *remains = own->site.remains;
  if (remains == NULL) {
    printf("what the figures leave at the runs: not asked, since the prior has nothing of it\n");
    return;
  }
  printf("what the figures leave: +- %.1f %% holds 80 %% far from all runs, no physics; a run is known to be half as "
         "much by another that differs by\n ",
         100 * (exp(PL_SITE_HALF * sqrt(pl_remains_variance(remains))) - 1));
  for (int axis = 0; axis < PL_LIKENESS_N_NUMBERS; axis++) {
    double factor = exp(remains->likeness.length[axis] * sqrt(2 * log(2)));
    printf(factor < 1000 ? " %s x%.0f" : " %s x1000 and more", pl_likeness_names[axis], factor);
  }
  printf("; of another");
  for (int axis = PL_LIKENESS_N_NUMBERS; axis < PL_LIKENESS_COUNT; axis++)
    printf(" %s by %.2f of it", pl_likeness_names[axis], exp(-0.5 / pow(remains->likeness.length[axis], 2)));
  putchar('\n');
  if (own->n_learnt > PL_SITE_RUNS)
    printf("note: figures and what remains are of %d of the %" PRIu32 " runs, evenly spaced\n", PL_SITE_RUNS,
           own->n_learnt);
  if (own->n_learnt > remains->n)
    printf("note: what remains is kept at %" PRIu32 " of the %" PRIu32 " runs, far from each other\n", remains->n,
           own->n_learnt);
}

/* A site has one GPU's name, by which it is known where its figures act. */
static void print_kinds(const session *own) {
  if (own->n_learnt == 0 || first_timed(own)->device.n_kinds < 2) return;
  printf(
      "note: the platform has %u kinds of GPUs, and the site goes by the first: its figures are those of wherever %s "
      "comes first\n",
      first_timed(own)->device.n_kinds, first_timed(own)->device.name);
}

static void print_relatives(const session *own) {
  if (own->n_parts < 2) return;
  const pl_case *first = first_timed(own);
  printf("note: runs of %" PRIu32
         " sites (one GPU, software and precision each); these figures are of '%s', '%s', '%s', "
         "the first's, of which the others tell what sites of one owner share; put another's runs "
         "first for its figures\n",
         own->n_parts, first->row->gpu, first->row->framework, first->row->precision);
}

static void print(const session *own) {
  printf("figures: time takes this factor, 80 %% interval; before any run of this site; what is left of the doubt\n");
  for (int i = 0; i < PL_SITE_COUNT; i++)
    print_figure(own, i);
  if (own->n_learnt > 0)
    print_elsewhere(own);
  else
    puts("note: no run has a time: figures are those of any site");
  printf("memory beside tensors: %+.2f GiB more than without a site (80 %%: +- %.2f, from %u peak%s), a run's +- %.2f "
         "around it\n",
         own->site.memory_bytes / (1 << 30), PL_SITE_HALF * own->site.memory_sd_bytes / (1 << 30), own->site.n_peaks,
         own->site.n_peaks == 1 ? "" : "s", PL_SITE_HALF * own->site.memory_scatter_bytes / (1 << 30));
  printf("scatter of runs around the figures: +- %.1f %% holds 80 %%; before any run +- %.1f %%\n",
         100 * (exp(usual_half(&own->site)) - 1), 100 * (exp(usual_half(&own->prior)) - 1));
  print_remains(own);
  putchar('\n');
  for (uint32_t i = 0; i < own->cases.n_cases; i++)
    print_run(own, i);
  print_relatives(own);
  print_kinds(own);
}

static pl_code run(session *own) {
  const pl_calibrate_runs *options = own->options;
  if (options->output != NULL) {
    PL_TRY(pl_command_refuse_input(options->output, options->rows, own->error));
    PL_TRY(pl_output_file_check(options->output, options->force, own->error));
  }
  PL_TRY(load(own));
  PL_TRY(learn(own));
  print(own);
  if (options->output == NULL) return PL_OK;
  const char *about = pl_arena_printf(&own->arena, "paceline calibrate --runs %s", options->rows);
  if (about == NULL) return pl_fail_memory(own->error, "the site");
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, options->output, options->force, own->error));
  pl_site_write(file.stream, &own->site, about);
  PL_TRY(pl_output_file_close(&file, PL_OK, own->error));
  pl_command_print_written(options->output, "--site of simulate, explain, sweep, search, validate");
  return PL_OK;
}

pl_code pl_calibrate_runs_run(const pl_calibrate_runs *options, pl_error *error) {
  session own = {.options = options, .error = error};
  pl_arena_init(&own.arena, 0);
  pl_code code = run(&own);
  pl_arena_release(&own.arena);
  return code;
}
