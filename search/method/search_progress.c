/* See search/method/search_progress.h. */
#include "search/method/search_progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/base/units.h"

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
  if (!pl_progress_is_due(&progress->line, elapsed_s)) return;
  char text[640] = "", time[PL_UNIT_TEXT_BYTES];
  FILE *stream = fmemopen(text, sizeof text, "w");
  if (stream == NULL) return;
  double rate = outcome->n_computed / elapsed_s, ahead = left(progress, outcome), gap = pl_search_gap(outcome, best);
  fprintf(stream, "paceline search: %u", outcome->n_rows);
  if (outcome->account.enumerated > 0) fprintf(stream, " of %" PRIu64, outcome->account.enumerated);
  fprintf(stream, " strategies simulated, %.0f per second", rate);
  if (isfinite(ahead) && rate > 0) fprintf(stream, ", at most %.0f s left", ahead / rate);
  if (best != NULL) fprintf(stream, "; best so far %s", pl_format_time(best->iter_time_s, time));
  if (!isnan(gap)) fprintf(stream, ", nothing is more than %.1f %% faster", 100 * gap / (1 + gap));
  if (best != NULL && (best->search->found != progress->best || pl_progress_on_terminal())) {
    progress->best = best->search->found;
    fprintf(stream, ": %s", pl_search_strategy(best->search));
  }
  fclose(stream);
  pl_progress_say(&progress->line, text);
}
