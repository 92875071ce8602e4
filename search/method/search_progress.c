/* See search/method/search_progress.h. */
#include "search/method/search_progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

double pl_search_gap(const pl_search_outcome *outcome, const pl_result_row *best) {
  if (best == NULL) return (double)NAN;
  return fmax(best->iter_time_s / outcome->account.bound_s - 1, isnan(outcome->account.bound_s) ? (double)NAN : 0);
}

/* Simulations that are left at most: of the candidates, or of the budget. */
static double left(const pl_search_progress *progress, const pl_search_outcome *outcome) {
  const pl_search_account *account = &outcome->account;
  double most = progress->budget > 0 ? (double)progress->budget : (double)INFINITY;
  double away = (double)(account->bounded_away + account->memory_away);
  if (account->enumerated > 0) most = fmin(most, (double)account->enumerated - away);
  return most - outcome->n_rows;
}

void pl_search_progress_report(pl_search_progress *progress, const pl_search_outcome *outcome,
                               const pl_result_row *best, double elapsed_s) {
  if (elapsed_s - progress->last_s < fmin(fmax(1, elapsed_s / 6), 60)) return;
  progress->last_s = elapsed_s;
  double rate = outcome->n_computed / elapsed_s, ahead = left(progress, outcome);
  fprintf(stderr, "paceline search: %u simulated, %.0f per s", outcome->n_rows, rate);
  if (outcome->account.enumerated > 0) fprintf(stderr, ", of %" PRIu64 " candidates", outcome->account.enumerated);
  if (isfinite(ahead) && rate > 0) fprintf(stderr, ", at most %.0f s left", ahead / rate);
  double gap = pl_search_gap(outcome, best);
  if (best != NULL) fprintf(stderr, "; best so far %.4g s", best->iter_time_s);
  if (!isnan(gap)) fprintf(stderr, ", %.1f %% above the bound", 100 * gap);
  fputc('\n', stderr);
  if (best != NULL && best->search->found != progress->best) {
    progress->best = best->search->found;
    fprintf(stderr, "paceline search: %s\n", pl_search_strategy(best->search));
  }
}
