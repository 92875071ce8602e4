/* See search/command/search_summary.h. */
#include "search/command/search_summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "search/method/search_progress.h"
#include "search/results/column_text.h"
#include "search/run/remaining_rows.h"

static const pl_result_row *best_of(const pl_search_outcome *outcome) {
  return outcome->n_top > 0 ? &outcome->top[0] : NULL;
}

/* Rows behind the best that are nearer to it than the best moves for nothing. Below a millionth it is rounding. */
static uint32_t count_near(const pl_search_outcome *outcome, const pl_sensitivity *sensitivity) {
  const pl_result_row *best = best_of(outcome);
  double range_s = sensitivity->high_s - sensitivity->low_s;
  uint32_t n = 0;
  if (best == NULL || sensitivity->n_runs == 0 || range_s < 1e-6 * best->iter_time_s) return 0;
  while (n + 1 < outcome->n_top && outcome->top[n + 1].iter_time_s - best->iter_time_s < range_s)
    n++;
  return n;
}

/* ---- JSON ---- */

static void put_dropped(pl_json *json, const pl_space *space) {
  char reason[128];
  pl_json_key(json, "dropped");
  pl_json_open_object(json);
  for (int r = 0; space != NULL && r < PL_DROP_COUNT; r++) {
    if (space->dropped[r] == 0) continue;
    pl_space_format_reason(space, (pl_space_reason)r, reason, sizeof reason);
    pl_json_put_integer(json, reason, (int64_t)space->dropped[r]);
  }
  pl_json_close_object(json);
}

static void put_rows(pl_json *json, const pl_search_outcome *outcome) {
  pl_json_key(json, "top");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < outcome->n_top; i++) {
    pl_json_open_object(json);
    pl_row_json(json, &outcome->top[i]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

/* What bound_s holds for, and what is known beyond it. */
static void put_space(pl_json *json, const pl_search_account *account) {
  char space[512];
  pl_space_format(account->space, space, sizeof space);
  pl_json_put_string(json, "space", space);
  pl_json_put_integer(json, "placements", (int64_t)account->placed);
  pl_json_put_number(json, "bound_anywhere_s", account->anywhere_s > 0 ? account->anywhere_s : (double)NAN);
}

static void print_json(FILE *stream, const char *path, const char *method, const pl_search_outcome *outcome,
                       const pl_sensitivity *sensitivity, const pl_training_cost *cost,
                       const pl_evaluation *evaluation) {
  const pl_search_account *account = &outcome->account;
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "file", path);
  pl_json_put_string(&json, "method", method);
  pl_json_put_string(&json, "ended", pl_search_end_names[outcome->end]);
  pl_json_put_integer(&json, "candidates", (int64_t)account->enumerated);
  pl_json_put_integer(&json, "memory_away", (int64_t)account->memory_away);
  pl_json_put_integer(&json, "bounded_away", (int64_t)account->bounded_away);
  pl_json_put_integer(&json, "rows", outcome->n_rows);
  pl_json_put_integer(&json, "simulated_now", outcome->n_computed);
  pl_json_put_integer(&json, "fit", outcome->n_by_status[PL_RESULT_DONE]);
  pl_json_put_integer(&json, "out_of_memory", outcome->n_by_status[PL_RESULT_OOM]);
  pl_json_put_integer(&json, "failed", outcome->n_by_status[PL_RESULT_FAILED]);
  pl_json_put_number(&json, "bound_s", account->bound_s);
  if (account->space != NULL) put_space(&json, account);
  pl_json_put_number(&json, "gap", pl_search_gap(outcome, best_of(outcome)));
  pl_json_put_number(&json, "elapsed_s", outcome->elapsed_s);
  pl_sensitivity_json(&json, sensitivity);
  pl_json_put_integer(&json, "not_told_apart", count_near(outcome, sensitivity));
  if (outcome->n_top > 0) pl_training_cost_json(&json, cost, best_of(outcome)->tokens_per_s, evaluation->cluster);
  if (outcome->n_top > 0) pl_remaining_rows_json(&json, evaluation, best_of(outcome));
  put_dropped(&json, account->space);
  put_rows(&json, outcome);
  pl_json_close_object(&json);
}

/* ---- text ---- */

static void print_dropped(FILE *stream, const pl_space *space) {
  char reason[128];
  for (int r = 0; space != NULL && r < PL_DROP_COUNT; r++) {
    if (space->dropped[r] == 0) continue;
    pl_space_format_reason(space, (pl_space_reason)r, reason, sizeof reason);
    fprintf(stream, "  dropped     %" PRIu64 ": %s\n", space->dropped[r], reason);
  }
}

/* " (1 of 803)", " (1 of 2.5)". */
static void print_share(FILE *stream, uint64_t n_all, uint32_t n) {
  char ratio[32];
  snprintf(ratio, sizeof ratio, "%.1f", (double)n_all / n);
  size_t length = strlen(ratio);
  if (ratio[length - 1] == '0') ratio[length - 2] = '\0';
  fprintf(stream, " (1 of %s)", ratio);
}

static void print_counts(FILE *stream, const pl_search_outcome *outcome) {
  const pl_search_account *account = &outcome->account;
  const uint32_t *n = outcome->n_by_status;
  if (account->enumerated > 0) fprintf(stream, "candidates    %" PRIu64 "\n", account->enumerated);
  if (account->placed > 0) fprintf(stream, "  placements  %" PRIu64 " more\n", account->placed);
  print_dropped(stream, account->space);
  if (account->memory_away > 0) fprintf(stream, "  cannot fit  %" PRIu64 "\n", account->memory_away);
  if (account->bounded_away > 0) fprintf(stream, "  bounded     %" PRIu64 " away\n", account->bounded_away);
  fprintf(stream, "simulated     %u in %.1f s", outcome->n_rows, outcome->elapsed_s);
  if (account->enumerated > 0 && outcome->n_rows > 0) print_share(stream, account->enumerated, outcome->n_rows);
  fputc('\n', stream);
  if (outcome->n_computed != outcome->n_rows)
    fprintf(stream, "  from before %u\n", outcome->n_rows - outcome->n_computed);
  bool unknown = outcome->n_top > 0 && outcome->top[0].fits < 0;
  if (unknown)
    fprintf(stream, "  done        %u\n", n[PL_RESULT_DONE]);
  else
    fprintf(stream, "  fit         %u\n  out of mem. %u\n", n[PL_RESULT_DONE], n[PL_RESULT_OOM]);
  if (n[PL_RESULT_FAILED] == 0) return;
  fprintf(stream, "  failed      %u", n[PL_RESULT_FAILED]);
  if (outcome->first_failure[0] != '\0') fprintf(stream, "; the first: %s", outcome->first_failure);
  fputc('\n', stream); /* of rows from before the cause may be unknown */
}

static void print_row(FILE *stream, const char *label, const pl_result_row *row) {
  char figures[PL_ROW_FIGURES_BYTES];
  fprintf(stream, "%-13s %s (%" PRId64 ". simulation)\n              %s\n", label, pl_row_figures(row, figures),
          row->search->found, pl_search_strategy(row->search));
}

static void print_tree(FILE *stream, const pl_search_outcome *outcome) {
  const pl_space *space = outcome->account.space;
  if (space == NULL || space->trees == NULL || outcome->n_top == 0) return;
  fprintf(stream, "best's file   paceline strategy choose %s --take %s\n", space->trees->name,
          outcome->top[0].search->strategy.text);
}

static void print_best(FILE *stream, const pl_search_outcome *outcome) {
  char label[16], need[PL_UNIT_TEXT_BYTES], have[PL_UNIT_TEXT_BYTES];
  for (uint32_t i = 0; i < outcome->n_top; i++) {
    snprintf(label, sizeof label, i == 0 ? "best" : "%u.", i + 1);
    print_row(stream, label, &outcome->top[i]);
  }
  if (outcome->n_top > 0) return;
  bool refused = outcome->n_by_status[PL_RESULT_OOM] == 0 && outcome->n_by_status[PL_RESULT_FAILED] > 0;
  fprintf(stream, "best          none %s\n", refused ? "could be simulated" : "fits in memory");
  const pl_result_row *oom = outcome->nearest_oom;
  if (oom == NULL) return;
  fprintf(stream, "nearest       stage %d needs %s of %s\n              %s\n", oom->peak_stage,
          pl_format_bytes((double)oom->peak_mem_bytes, need), pl_format_bytes((double)oom->mem_capacity_bytes, have),
          pl_search_strategy(oom->search));
}

/* What of the placements is known; nothing is known of those that nobody ranked but what holds for all. */
static void print_placed(FILE *stream, const pl_search_account *account) {
  char time[PL_UNIT_TEXT_BYTES];
  if (account->anywhere_s > 0)
    fprintf(stream, "beyond        placed, cut and split in any other way none of them is faster than %s",
            pl_format_time(account->anywhere_s, time));
  if (account->anywhere_s > 0) fputs("; --method placement, --assign optimal and --order look further\n", stream);
}

static void print_near(FILE *stream, const pl_search_outcome *outcome, const pl_sensitivity *sensitivity) {
  uint32_t n = count_near(outcome, sensitivity);
  if (n == 0) return;
  fprintf(stream,
          "not told apart from the best: the %u behind it; the best itself moves by %.2g %% when bandwidths change by "
          "1 part in 10^9\n",
          n, 100 * (sensitivity->high_s - sensitivity->low_s) / best_of(outcome)->iter_time_s);
}

static void print_bound(FILE *stream, const pl_search_outcome *outcome) {
  const pl_search_account *account = &outcome->account;
  char time[PL_UNIT_TEXT_BYTES], space[512];
  double gap = pl_search_gap(outcome, best_of(outcome));
  if (isnan(gap)) return;
  if (gap > 0) {
    fprintf(stream, "bound         nothing that was not simulated is faster than %s; the best is %.2g %% above",
            pl_format_time(account->bound_s, time), 100 * gap);
  } else {
    fputs("bound         nothing that was not simulated is faster than the best", stream);
  }
  if (account->space != NULL) {
    pl_space_format(account->space, space, sizeof space);
    fprintf(stream, ", of %u strategies\n              with the devices in the order given, %s",
            account->space->n_candidates, space);
  }
  if (account->placed > 0)
    fprintf(stream,
            account->placed_all ? "\n              and of all %" PRIu64 " placements that were ranked"
                                : "\n              (%" PRIu64 " other placements were looked at, not all)",
            account->placed);
  if (outcome->n_by_status[PL_RESULT_FAILED] > 0) fputs(", those that failed apart", stream);
  fputc('\n', stream);
  print_placed(stream, account);
}

static void print_text(FILE *stream, const char *path, const char *method, const pl_search_outcome *outcome,
                       const pl_sensitivity *sensitivity, const pl_evaluation *evaluation) {
  fprintf(stream, "method        %s\n", method);
  print_counts(stream, outcome);
  if (outcome->end == PL_SEARCH_BUDGET) fputs("ended         the budget is spent\n", stream);
  if (outcome->end == PL_SEARCH_GAP) fputs("ended         as near to the bound as asked for\n", stream);
  print_best(stream, outcome);
  print_tree(stream, outcome);
  if (outcome->n_top > 0) pl_remaining_rows_print(stream, evaluation, outcome->top, outcome->n_top);
  print_near(stream, outcome, sensitivity);
  print_bound(stream, outcome);
  if (path != NULL) fprintf(stream, "results       %s\n", path);
}

void pl_search_summary_print(FILE *stream, const char *path, const char *method, const pl_search_outcome *outcome,
                             const pl_sensitivity *sensitivity, const pl_training_cost *cost,
                             const pl_evaluation *evaluation, bool json) {
  if (json) {
    print_json(stream, path, method, outcome, sensitivity, cost, evaluation);
  } else {
    print_text(stream, path, method, outcome, sensitivity, evaluation);
    if (outcome->n_top > 0)
      pl_training_cost_print(stream, 14, cost, best_of(outcome)->tokens_per_s, evaluation->cluster);
  }
}
