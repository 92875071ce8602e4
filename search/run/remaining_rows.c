/* See search/run/remaining_rows.h. */
#include "search/run/remaining_rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_moved(const pl_evaluation *evaluation) {
  return evaluation->options->remains != NULL && evaluation->trees == NULL && pl_model_has_blocks(evaluation->model);
}

pl_remaining pl_remaining_of_row(const pl_evaluation *evaluation, const pl_result_row *row) {
  pl_strategy strategy = {
      .pp = row->pp, .dp = row->dp, .tmp = row->tmp, .cp = row->cp, .ep = row->ep, .vpp = row->vpp, .mbs = row->mbs};
  for (int i = 0; pl_recompute_names[i] != NULL; i++)
    if (strcmp(pl_recompute_names[i], row->recompute.text) == 0) strategy.recompute = (pl_recompute)i;
  const pl_configuration at =
      pl_configuration_of(evaluation->cluster->profiles[0].name,
                          pl_remains_size(evaluation->options->remains_size, evaluation->model, evaluation->job->seq),
                          evaluation->job, &strategy);
  return pl_remaining_at(evaluation->options->remains, &at);
}

void pl_remaining_rows_note(FILE *stream) {
  fputs(
      "site          times are multiplied by what its figures leave at its runs, where its file has that: a factor on\n"
      "              whole steps and no physics; 'simulate --site' says it of one strategy\n",
      stream);
}

static void take_names(const pl_evaluation *evaluation, const char *name[PL_SITE_NAMES]) {
  name[0] = evaluation->cluster->profiles[0].name;
  name[1] = pl_framework_or_ideal(evaluation->job->framework)->name;
  name[2] = pl_configuration_precision(evaluation->job);
}

static void print_stranger(FILE *stream, const pl_evaluation *evaluation) {
  char text[PL_STRANGE_TEXT_BYTES];
  const pl_site_remains *remains = evaluation->options->remains;
  const char *name[PL_SITE_NAMES];
  take_names(evaluation, name);
  if (pl_remains_strange(remains, name, text)[0] != '\0')
    fprintf(stream, "              not of the site: %s; %s\n", text,
            remains->is_elsewhere ? "figures are what sites of one owner share"
                                  : "its figures act all the same (a file of before: calibrate --runs)");
}

void pl_remaining_rows_print(FILE *stream, const pl_evaluation *evaluation, const pl_result_row *rows, uint32_t n) {
  char text[PL_REMAINING_TEXT_BYTES];
  const pl_site_remains *remains = evaluation->options->remains;
  if (remains == NULL) return;
  if (!is_moved(evaluation)) {
    fputs("site          by its figures alone: what they leave at its runs is known of strategies of transformers\n",
          stream);
    print_stranger(stream, evaluation);
    return;
  }
  pl_remaining one = pl_remaining_of_row(evaluation, &rows[0]);
  double low = one.mean, high = one.mean;
  fprintf(stream, "site          the best is %s\n", pl_remaining_format(&one, remains->n, text));
  for (uint32_t i = 1; i < n; i++) {
    one = pl_remaining_of_row(evaluation, &rows[i]);
    low = fmin(low, one.mean);
    high = fmax(high, one.mean);
  }
  if (n > 1) fprintf(stream, "              of the %" PRIu32 " here it is x%.3f to x%.3f\n", n, exp(low), exp(high));
  print_stranger(stream, evaluation);
}

void pl_remaining_rows_json(pl_json *json, const pl_evaluation *evaluation, const pl_result_row *row) {
  if (is_moved(evaluation)) {
    const pl_remaining remaining = pl_remaining_of_row(evaluation, row);
    const char *name[PL_SITE_NAMES];
    take_names(evaluation, name);
    pl_remaining_json(json, &remaining, evaluation->options->remains, name);
  }
}
