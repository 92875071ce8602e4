/* See validation/fit/collective_fit.h. */
#include "validation/fit/collective_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"

enum { MOST_FIGURES = 64, ROUNDS = 60, ROUNDS_AFTER_KICK = 12 };

/* Loss per figure and unit of |ln(value / start)|: what rows hardly feel stays near where it started. */
static const double inertia = 0.002;

typedef struct figure {
  double *value;
  double first; /* where it started */
  double lowest, highest;
  double step; /* of the logarithm */
  bool felt;
} figure;

typedef struct entry_problem {
  pl_wiring *wiring;
  bool inside;
  const pl_collective_row **rows;
  double *weights;
  uint32_t n_rows;
  figure figures[MOST_FIGURES];
  uint32_t n_figures;
} entry_problem;

/* ---- the rows of an entry ---- */

static bool belongs(const pl_collective_row *row, const pl_wiring *wiring, bool inside) {
  if (row->role != PL_ROW_FIT) return false;
  return inside ? row->weighing.inside == wiring && row->weighing.between == NULL : row->weighing.between == wiring;
}

static pl_code gather(entry_problem *problem, const pl_collective_rows *rows, pl_arena *arena, pl_error *error) {
  problem->rows = PL_TAKE(arena, const pl_collective_row *, rows->n);
  problem->weights = PL_TAKE(arena, double, rows->n);
  if (arena->failed) return pl_fail_memory(error, "a fit");
  for (uint32_t i = 0; i < rows->n; i++)
    if (belongs(&rows->rows[i], problem->wiring, problem->inside)) problem->rows[problem->n_rows++] = &rows->rows[i];
  for (uint32_t i = 0; i < problem->n_rows; i++) {
    uint32_t of_system = 0;
    for (uint32_t k = 0; k < problem->n_rows; k++)
      of_system += problem->rows[k]->system == problem->rows[i]->system;
    problem->weights[i] = (problem->rows[i]->size_bytes >= 1 << 20 ? 2 : 1) / sqrt(of_system);
  }
  return PL_OK;
}

static double loss_of(const entry_problem *problem) {
  double sum = 0, weights = 0;
  for (uint32_t i = 0; i < problem->n_rows; i++) {
    double error = fabs(log(pl_collective_row_us(problem->rows[i]) / problem->rows[i]->measured_us));
    sum += problem->weights[i] * fmin(error, 1);
    weights += problem->weights[i];
  }
  sum /= weights;
  for (uint32_t i = 0; i < problem->n_figures; i++)
    sum += inertia * fabs(log(*problem->figures[i].value / problem->figures[i].first));
  return sum;
}

/* ---- figures ---- */

static void add_figure(entry_problem *problem, double *value, double lowest, double highest) {
  PL_ASSERT(problem->n_figures < MOST_FIGURES);
  *value = fmin(fmax(*value, lowest), highest);
  problem->figures[problem->n_figures++] =
      (figure){.value = value, .first = *value, .lowest = lowest, .highest = highest, .step = 0.5};
}

/* LL is the protocol of no start in rings and trees: its start is the launch. Ramps are for Simple, whose pipeline has
 * the large pieces. */
static void list_figures(entry_problem *problem) {
  pl_wiring *wiring = problem->wiring;
  add_figure(problem, &wiring->launch_us, 0.1, 1e4);
  if (problem->inside) add_figure(problem, &wiring->local, 0.01, 2);
  if (isfinite(wiring->limit_GBps)) add_figure(problem, &wiring->limit_GBps, 0.1, 1e3);
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++)
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++) {
      pl_protocol_cost *cost = &wiring->cost[algorithm][protocol];
      if (!cost->known) continue;
      if (protocol != PL_PROTOCOL_LL || algorithm != PL_TUNED_RING) add_figure(problem, &cost->start_us, 0.01, 1e4);
      add_figure(problem, &cost->step_us, 0.01, 1e4);
      add_figure(problem, &cost->rate, 1e-3, 1);
      if (protocol == PL_PROTOCOL_SIMPLE) add_figure(problem, &cost->ramp, 0.01, 100);
    }
}

/* NCCL 2.10.3's latencies per step and start by protocol (src/graph/tuning.cc); rates, ramps and launches are guesses.
 */
static void start_from_constants(pl_wiring *wiring, bool inside) {
  static const double ring_step[PL_PROTOCOL_COUNT] = {0.47, 1.9, 3.4}, net_step[PL_PROTOCOL_COUNT] = {2.7, 4.0, 9.6},
                      tree_step[PL_PROTOCOL_COUNT] = {5.0, 8.5, 28}, start[PL_PROTOCOL_COUNT] = {0, 6.4, 4.8},
                      rate[PL_PROTOCOL_COUNT] = {0.5, 0.7, 0.8}, ramp[PL_PROTOCOL_COUNT] = {0, 0, 1};
  wiring->launch_us = inside ? 3.6 : 10;
  wiring->local = inside ? 0.4 : 0;
  if (isfinite(wiring->limit_GBps)) wiring->limit_GBps = 6;
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++)
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++) {
      pl_protocol_cost *cost = &wiring->cost[algorithm][protocol];
      if (!cost->known) continue;
      *cost = (pl_protocol_cost){.known = true,
                                 .start_us = start[protocol],
                                 .step_us = inside                       ? ring_step[protocol]
                                            : algorithm == PL_TUNED_TREE ? tree_step[protocol]
                                                                         : net_step[protocol],
                                 .rate = rate[protocol],
                                 .ramp = ramp[protocol]};
      if (algorithm != PL_TUNED_NVLS) continue; /* slow to start, and more than half of the port's rate */
      cost->start_us = 25;
      cost->rate = 0.6;
    }
}

static void start_from(pl_wiring *wiring, const pl_wiring *like) {
  wiring->launch_us = like->launch_us;
  if (wiring->local > 0 || like->local > 0) wiring->local = like->local;
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++)
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++)
      if (wiring->cost[algorithm][protocol].known && like->cost[algorithm][protocol].known)
        wiring->cost[algorithm][protocol] = like->cost[algorithm][protocol];
}

static pl_code start(pl_wiring *wirings, uint32_t index, bool inside, pl_error *error) {
  pl_wiring *wiring = &wirings[index];
  start_from_constants(wiring, inside);
  if (wiring->like == NULL) return PL_OK;
  for (uint32_t i = 0; i < index; i++)
    if (strcmp(wirings[i].name, wiring->like) == 0) {
      start_from(wiring, &wirings[i]);
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "entry '%s' is like '%s', which is no earlier entry of its list", wiring->name,
                 wiring->like);
}

/* ---- the search ---- */

static bool try_value(entry_problem *problem, figure *own, double factor, double *best) {
  double before = *own->value;
  *own->value = fmin(fmax(before * factor, own->lowest), own->highest);
  double loss = loss_of(problem);
  if (loss < *best - 1e-9) {
    *best = loss;
    return true;
  }
  *own->value = before;
  return false;
}

static double search(entry_problem *problem, int rounds) {
  double best = loss_of(problem), largest = 1;
  for (uint32_t i = 0; i < problem->n_figures; i++)
    problem->figures[i].step = 0.5;
  for (int round = 0; round < rounds && largest > 1e-3; round++) {
    largest = 0;
    for (uint32_t i = 0; i < problem->n_figures; i++) {
      figure *own = &problem->figures[i];
      bool better = try_value(problem, own, exp(own->step), &best) || try_value(problem, own, exp(-own->step), &best);
      own->step = better ? fmin(own->step * 1.3, 1.5) : own->step * 0.6;
      largest = fmax(largest, own->step);
    }
  }
  return best;
}

static void copy_values(entry_problem *problem, double *values, bool back) {
  for (uint32_t i = 0; i < problem->n_figures; i++)
    *(back ? problem->figures[i].value : &values[i]) = back ? values[i] : *problem->figures[i].value;
}

/* A search of one figure at a time stops in valleys between two of them (launch against step), and where one algorithm
 * hides another. So each figure in turn is kicked, the others follow, and what is better stays. */
static void fit_entry(entry_problem *problem) {
  static const double kicks[] = {3, 1.0 / 3, 1.5, 1 / 1.5};
  double kept[MOST_FIGURES] = {0}, best = search(problem, ROUNDS);
  for (uint32_t i = 0; i < problem->n_figures; i++)
    for (size_t k = 0; k < sizeof kicks / sizeof *kicks; k++) {
      figure *own = &problem->figures[i];
      copy_values(problem, kept, false);
      *own->value = fmin(fmax(*own->value * kicks[k], own->lowest), own->highest);
      double loss = search(problem, ROUNDS_AFTER_KICK);
      if (loss < best - 1e-6) {
        best = loss;
      } else {
        copy_values(problem, kept, true);
      }
    }
  search(problem, ROUNDS);
}

/* Figures that change some prediction when they change. */
static void find_felt(entry_problem *problem) {
  for (uint32_t i = 0; i < problem->n_figures; i++) {
    figure *own = &problem->figures[i];
    double before = *own->value;
    for (uint32_t k = 0; k < problem->n_rows && !own->felt; k++) {
      double predicted_us = pl_collective_row_us(problem->rows[k]);
      *own->value = before * 0.9;
      own->felt = pl_collective_row_us(problem->rows[k]) != predicted_us;
      *own->value = before;
    }
  }
}

static double rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.4g", value);
  return strtod(text, NULL);
}

static bool measures_pairs(const entry_problem *problem) {
  for (uint32_t i = 0; i < problem->n_rows; i++)
    if (problem->rows[i]->kind == PL_ALL_TO_ALL || problem->rows[i]->kind == PL_SEND) return true;
  return false;
}

static void pairs_like_rings(pl_wiring *wiring, bool inside) {
  for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++) {
    pl_protocol_cost *pairs = &wiring->cost[PL_TUNED_DIRECT][protocol];
    const pl_protocol_cost *ring = &wiring->cost[PL_TUNED_RING][protocol];
    if (!pairs->known || !ring->known) continue;
    *pairs = *ring;
    pairs->step_us = ring->step_us / 8;
    if (!inside) pairs->start_us += ring->step_us;
  }
}

/* Linear between neighbours; `values` sorted. */
static double quantile(const double *values, uint32_t n, double q) {
  double at = q * (n - 1);
  uint32_t below = (uint32_t)at;
  return below + 1 < n ? values[below] + (at - below) * (values[below + 1] - values[below]) : values[n - 1];
}

static pl_code describe(entry_problem *problem, pl_arena *arena, pl_entry_fit *fit, pl_error *error) {
  double *errors = PL_TAKE(arena, double, problem->n_rows + 1);
  char *systems = pl_arena_printf(arena, "%s", "");
  if (errors == NULL || systems == NULL) return pl_fail_memory(error, "a fit");
  fit->name = problem->wiring->name;
  fit->n_rows = problem->n_rows;
  find_felt(problem);
  for (uint32_t i = 0; i < problem->n_figures; i++)
    fit->n_figures += problem->figures[i].felt;
  for (uint32_t i = 0; i < problem->n_rows; i++) {
    const pl_collective_row *row = problem->rows[i];
    errors[i] = 100 * fabs(pl_collective_row_us(row) / row->measured_us - 1);
    if (i > 0 && problem->rows[i - 1]->system == row->system) continue;
    systems = pl_arena_printf(arena, "%s%s%s", systems, systems[0] ? ", " : "", row->system);
    if (systems == NULL) return pl_fail_memory(error, "a fit");
  }
  const char *like = problem->wiring->like != NULL ? problem->wiring->like : "NCCL 2.10.3's constants";
  const char *text = pl_arena_printf(arena, "not measured: as %s", like);
  if (problem->n_rows > 0) {
    qsort(errors, problem->n_rows, sizeof *errors, pl_by_double);
    fit->median_pct = quantile(errors, problem->n_rows, 0.5);
    text = pl_arena_printf(arena,
                           "%u figures fitted by paceline calibrate to %u rows of %s; median error on them %.1f %%; "
                           "started from %s%s",
                           fit->n_figures, fit->n_rows, systems, fit->median_pct, like,
                           measures_pairs(problem) ? "" : "; pairs (direct) not measured: from its ring");
  }
  problem->wiring->provenance = text;
  return text != NULL ? PL_OK : pl_fail_memory(error, "a fit");
}

/* Figures that somebody chose, of an entry that no row is of, are kept. */
static bool is_by_hand(const pl_wiring *wiring) {
  return wiring->provenance != NULL && strncmp(wiring->provenance, "by hand:", strlen("by hand:")) == 0;
}

static pl_code fit_list(pl_wiring *wirings, uint32_t n, bool inside, const pl_collective_rows *rows, pl_arena *arena,
                        pl_entry_fit *fits, pl_error *error) {
  for (uint32_t i = 0; i < n; i++) {
    entry_problem problem = {.wiring = &wirings[i], .inside = inside};
    const pl_wiring given = wirings[i];
    PL_TRY(start(wirings, i, inside, error));
    PL_TRY(gather(&problem, rows, arena, error));
    if (problem.n_rows > 0) {
      list_figures(&problem);
      fit_entry(&problem);
      for (uint32_t k = 0; k < problem.n_figures; k++)
        *problem.figures[k].value = rounded(*problem.figures[k].value);
      if (!measures_pairs(&problem)) pairs_like_rings(&wirings[i], inside);
    }
    PL_TRY(describe(&problem, arena, &fits[i], error));
    if (problem.n_rows == 0 && is_by_hand(&given)) wirings[i] = given;
  }
  return PL_OK;
}

pl_code pl_collective_fit(pl_wiring *inside, uint32_t n_inside, pl_wiring *between, uint32_t n_between,
                          const pl_collective_rows *rows, pl_arena *arena, pl_entry_fit **fits, pl_error *error) {
  *fits = PL_TAKE(arena, pl_entry_fit, n_inside + n_between + 1);
  if (*fits == NULL) return pl_fail_memory(error, "a fit");
  PL_TRY(fit_list(inside, n_inside, true, rows, arena, *fits, error));
  return fit_list(between, n_between, false, rows, arena, *fits + n_inside, error);
}

/* ---- the report ---- */

static const char *const role_names[PL_ROW_ROLE_COUNT] = {
    [PL_ROW_FIT] = "fitted", [PL_ROW_KEPT_SIZE] = "size kept out", [PL_ROW_KEPT_SYSTEM] = "system kept out"};

typedef struct selection {
  int role, kind, band; /* -1: any */
  const char *system;   /* NULL: any */
} selection;

static bool is_selected(const pl_collective_row *row, const selection *which) {
  int band = row->size_bytes >= 1 << 20;
  return (which->role < 0 || which->role == (int)row->role) && (which->kind < 0 || which->kind == (int)row->kind) &&
         (which->band < 0 || which->band == band) && (which->system == NULL || which->system == row->system);
}

/* "rows | median | p90 | bias |"; nothing without rows. */
static bool print_errors(FILE *stream, const char *label, const pl_collective_rows *rows, const selection *which,
                         double *errors) {
  uint32_t n = 0;
  double bias = 0;
  for (uint32_t i = 0; i < rows->n; i++) {
    if (!is_selected(&rows->rows[i], which)) continue;
    double error = 100 * (pl_collective_row_us(&rows->rows[i]) / rows->rows[i].measured_us - 1);
    bias += error;
    errors[n++] = fabs(error);
  }
  if (n == 0) return false;
  qsort(errors, n, sizeof *errors, pl_by_double);
  fprintf(stream, "%s | %s | %u | %.1f | %.1f | %+.1f |\n", label, which->band == 1 ? "1 MiB and more" : "below 1 MiB",
          n, quantile(errors, n, 0.5), quantile(errors, n, 0.9), bias / n);
  return true;
}

/* Every system that was kept out counts once, with its median. */
static void print_per_system(FILE *stream, const pl_collective_rows *rows, int band, double *errors, double *medians) {
  uint32_t n_systems = 0;
  for (uint32_t i = 0; i < rows->n; i++) {
    const char *system = rows->rows[i].system;
    uint32_t n = 0;
    if (i > 0 && rows->rows[i - 1].system == system) continue;
    for (uint32_t k = 0; k < rows->n; k++) {
      const pl_collective_row *row = &rows->rows[k];
      if (is_selected(row, &(selection){PL_ROW_KEPT_SYSTEM, -1, band, system}))
        errors[n++] = 100 * fabs(pl_collective_row_us(row) / row->measured_us - 1);
    }
    if (n == 0) continue;
    qsort(errors, n, sizeof *errors, pl_by_double);
    medians[n_systems++] = quantile(errors, n, 0.5);
  }
  if (n_systems == 0) return;
  qsort(medians, n_systems, sizeof *medians, pl_by_double);
  fprintf(stream, "| systems kept out, each by its median | %s | %u | %.1f | %.1f | |\n",
          band == 1 ? "1 MiB and more" : "below 1 MiB", n_systems, quantile(medians, n_systems, 0.5),
          quantile(medians, n_systems, 0.9));
}

pl_code pl_collective_report(FILE *stream, const pl_collective_rows *rows, pl_arena *arena, pl_error *error) {
  double *errors = PL_TAKE(arena, double, rows->n + 1);
  double *medians = PL_TAKE(arena, double, rows->n + 1);
  if (arena->failed) return pl_fail_memory(error, "a report");
  fprintf(stream, "| rows | size | n | median %% | p90 %% | bias %% |\n|---|---|---|---|---|---|\n");
  for (int role = 0; role < PL_ROW_ROLE_COUNT; role++)
    for (int band = 1; band >= 0; band--) {
      char label[64];
      snprintf(label, sizeof label, "| %s", role_names[role]);
      print_errors(stream, label, rows, &(selection){role, -1, band, NULL}, errors);
    }
  for (int band = 1; band >= 0; band--)
    print_per_system(stream, rows, band, errors, medians);
  fprintf(stream,
          "\n| system | role | op | size | n | median %% | p90 %% | bias %% |\n|---|---|---|---|---|---|---|---|\n");
  const char *last = NULL;
  for (uint32_t i = 0; i < rows->n; i++) {
    const char *system = rows->rows[i].system;
    if (system == last) continue;
    last = system;
    for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++)
      for (int band = 1; band >= 0; band--)
        for (int role = 0; role < PL_ROW_ROLE_COUNT; role++) {
          char label[160];
          snprintf(label, sizeof label, "| %s | %s | %s", system, role_names[role],
                   pl_collective_name((pl_collective_kind)kind));
          print_errors(stream, label, rows, &(selection){role, kind, band, system}, errors);
        }
  }
  return PL_OK;
}
