/* See search/command/sweep_summary.h. Counts come from the file, so that they are right after --resume as well. */
#include "search/command/sweep_summary.h"

#include <inttypes.h>

#include "core/base/units.h"
#include "search/results/column_text.h"
#include "search/results/results_reader.h"
#include "search/run/remaining_rows.h"

typedef struct summary {
  const char *path;
  const pl_space *space;
  const pl_sweep_outcome *outcome;
  const pl_evaluation *evaluation;
  pl_results_summary counts;
  pl_result_row best;
} summary;

static void print_json(FILE *stream, const summary *s) {
  char reason[128];
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "file", s->path);
  pl_json_put_integer(&json, "candidates", s->counts.n_rows);
  pl_json_put_integer(&json, "simulated_now", s->outcome->n_computed);
  pl_json_put_integer(&json, "fit", s->counts.n_by_status[PL_RESULT_DONE]);
  pl_json_put_integer(&json, "out_of_memory", s->counts.n_by_status[PL_RESULT_OOM]);
  pl_json_put_boolean(&json, "skip_oom", s->outcome->skips_oom);
  pl_json_put_integer(&json, "failed", s->counts.n_by_status[PL_RESULT_FAILED]);
  pl_json_put_number(&json, "elapsed_s", s->outcome->elapsed_s);
  pl_json_key(&json, "dropped");
  pl_json_open_object(&json);
  for (int r = 0; r < PL_DROP_COUNT; r++) {
    if (s->space->dropped[r] == 0) continue;
    pl_space_format_reason(s->space, (pl_space_reason)r, reason, sizeof reason);
    pl_json_put_integer(&json, reason, (int64_t)s->space->dropped[r]);
  }
  pl_json_close_object(&json);
  pl_json_key(&json, "best");
  if (s->counts.best == UINT32_MAX) {
    pl_json_string(&json, NULL);
  } else {
    pl_json_open_object(&json);
    pl_json_put_integer(&json, "candidate", s->counts.best);
    pl_row_json(&json, &s->best);
    pl_remaining_rows_json(&json, s->evaluation, &s->best);
    pl_json_close_object(&json);
  }
  pl_json_close_object(&json);
}

static void print_best(FILE *stream, const summary *s) {
  const pl_result_row *row = &s->best;
  char figures[PL_ROW_FIGURES_BYTES], text[PL_TREE_TAKEN_BYTES];
  if (s->counts.best == UINT32_MAX) {
    bool refused = s->counts.n_by_status[PL_RESULT_OOM] == 0 && s->counts.n_by_status[PL_RESULT_FAILED] > 0;
    fprintf(stream, "best          none %s\n", refused ? "could be simulated" : "fits in memory");
    return;
  }
  pl_space_format_candidate(s->space, s->counts.best, text, sizeof text);
  fprintf(stream, "best          %s\n", pl_row_figures(row, figures));
  fprintf(stream, "              %s (candidate %u)\n", text, s->counts.best);
  if (s->space->trees != NULL)
    fprintf(stream, "              as a file: paceline strategy choose %s --take %s\n", s->space->trees->name, text);
}

static void print_text(FILE *stream, const summary *s) {
  char reason[128];
  const uint32_t *n = s->counts.n_by_status;
  fprintf(stream, "candidates    %u\n", s->counts.n_rows);
  for (int r = 0; r < PL_DROP_COUNT; r++) {
    if (s->space->dropped[r] == 0) continue;
    pl_space_format_reason(s->space, (pl_space_reason)r, reason, sizeof reason);
    fprintf(stream, "  dropped     %" PRIu64 ": %s\n", s->space->dropped[r], reason);
  }
  fprintf(stream, "simulated     %u in %.1f s (%.0f per s)\n", s->outcome->n_computed, s->outcome->elapsed_s,
          s->outcome->elapsed_s > 0 ? s->outcome->n_computed / s->outcome->elapsed_s : 0);
  if (s->outcome->n_computed != s->counts.n_rows)
    fprintf(stream, "  from before %u\n", s->counts.n_rows - s->outcome->n_computed);
  if (s->counts.best != UINT32_MAX && s->best.fits < 0)
    fprintf(stream, "  done        %u\n", n[PL_RESULT_DONE]);
  else
    fprintf(stream, "  fit         %u\n  out of mem. %u%s\n", n[PL_RESULT_DONE], n[PL_RESULT_OOM],
            s->outcome->skips_oom && n[PL_RESULT_OOM] > 0 ? ", not run (--skip-oom): memory, no times" : "");
  fprintf(stream, "  failed      %u\n", n[PL_RESULT_FAILED]);
  if (s->outcome->n_failed > 0)
    fprintf(stream, "  first failure, candidate %u: %s\n", s->outcome->first_failed, s->outcome->first_message);
  print_best(stream, s);
  if (s->counts.best != UINT32_MAX) pl_remaining_rows_print(stream, s->evaluation, &s->best, 1);
  if (s->evaluation->options->residuals == NULL)
    fputs("              no 80 % interval of the rows: at a site it takes seven more simulations of each, which "
          "'simulate --site'\n              does of one strategy\n",
          stream);
  fprintf(stream, "results       %s\n", s->path);
}

static pl_code read_file(summary *s, pl_results_reader *reader, pl_arena *arena, pl_error *error) {
  PL_TRY(pl_results_reader_summarise(reader, arena, &s->counts, error));
  return s->counts.best == UINT32_MAX ? PL_OK : pl_results_reader_row(reader, s->counts.best, &s->best, error);
}

pl_code pl_sweep_summary_print(FILE *stream, const char *path, const pl_space *space, const pl_sweep_outcome *outcome,
                               const pl_evaluation *evaluation, bool json, pl_arena *arena, uint32_t *n_fit,
                               uint32_t *n_failed, pl_error *error) {
  summary s = {.path = path, .space = space, .outcome = outcome, .evaluation = evaluation};
  pl_results_reader *reader;
  PL_TRY(pl_results_reader_create(path, &reader, error));
  pl_code code = read_file(&s, reader, arena, error);
  pl_results_reader_destroy(reader);
  PL_TRY(code);
  *n_fit = s.counts.n_by_status[PL_RESULT_DONE];
  *n_failed = s.counts.n_by_status[PL_RESULT_FAILED];
  if (stream != NULL) (json ? print_json : print_text)(stream, &s);
  return PL_OK;
}
