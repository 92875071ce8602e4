/* The sweep with an evaluation of our own: candidates that fail become rows and are reported, a disk that fills up
 * midway stops every rank with a message, and what is missing is computed on resume. One rank, as under ctest. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search/results/results_file.h"
#include "search/results/results_reader.h"
#include "search/run/sweep.h"

typedef struct fixture {
  pl_arena arena;
  pl_model model;
  pl_job job;
  pl_space space;
  pl_provenance provenance;
  int32_t *status;
  char path[64];
} fixture;

/* Time = index + 1 seconds, odd ones do not fit, every seventh fails. */
static pl_code evaluate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                        pl_result_row *row, pl_error *error) {
  (void)context;
  (void)space;
  (void)worker;
  if (index % 7 == 3) return pl_fail(error, PL_NO_MEMORY, "candidate %u is too much", index);
  row->iter_time_s = index + 1.0;
  if (row->features != NULL) row->features[0] = index;
  row->status = index % 2 ? PL_RESULT_OOM : PL_RESULT_DONE;
  return PL_OK;
}

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  pl_arena_init(&f->arena, 0);
  f->model = (pl_model){
      .n_layers = 8, .width.hidden = 8, .width.ffn_hidden = 16, .attention.n_heads = 8, .attention.n_kv_heads = 8};
  f->job = (pl_job){.gbs = 16, .seq = 8};
  pl_space_choices choices;
  pl_space_choices_init(&choices);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_space_take(&f->model, &f->job, 8, &choices, NULL, &f->arena, &f->space, &error), PL_OK);
  f->status = PL_TAKE(&f->arena, int32_t, f->space.n_candidates);
  pl_provenance_text(&f->provenance, "command", "a test", false);
  pl_provenance_integer(&f->provenance, "gbs", 16, true);
  pl_provenance_number(&f->provenance, "bucket_bytes", 25e6, true);
  strcpy(f->path, "/tmp/paceline-sweep-XXXXXX");
  int file = mkstemp(f->path);
  assert_true(file >= 0);
  close(file);
  assert_int_equal(pl_results_create(f->path, &f->provenance, f->space.n_candidates, true, &error), PL_OK);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  unlink(f->path);
  pl_arena_release(&f->arena);
  free(f);
  return 0;
}

static pl_code run(fixture *f, int64_t fail_after, pl_sweep_outcome *outcome, pl_error *error) {
  const pl_sweep sweep = {.space = &f->space,
                          .path = f->path,
                          .status = f->status,
                          .evaluate = evaluate,
                          .n_threads = 3,
                          .n_stages = f->provenance.n_stages,
                          .fail_after = fail_after};
  return pl_sweep_run(&sweep, MPI_COMM_WORLD, outcome, error);
}

static pl_results_summary summary_of(fixture *f) {
  pl_results_reader *reader;
  pl_results_summary summary;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_results_reader_create(f->path, &reader, &error), PL_OK);
  assert_int_equal(pl_results_reader_summarise(reader, &f->arena, &summary, &error), PL_OK);
  pl_results_reader_destroy(reader);
  return summary;
}

static void failed_candidates_are_rows(void **state) {
  fixture *f = *state;
  pl_sweep_outcome outcome;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(run(f, -1, &outcome, &error), PL_OK);
  uint32_t n = f->space.n_candidates;
  assert_int_equal(outcome.n_computed, n);
  assert_int_equal(outcome.n_failed, (n + 3) / 7);
  assert_int_equal(outcome.first_failed, 3);
  assert_string_equal(outcome.first_message, "candidate 3 is too much");
  pl_results_summary summary = summary_of(f);
  assert_int_equal(summary.n_by_status[PL_RESULT_FAILED], (n + 3) / 7);
  assert_int_equal(summary.n_by_status[PL_RESULT_PENDING], 0);
  assert_int_equal(summary.best, 0);
}

static void a_disk_that_fills_up_is_an_error_and_can_be_resumed(void **state) {
  fixture *f = *state;
  pl_sweep_outcome outcome;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(run(f, 4 * pl_result_n_columns - 1, &outcome, &error),
                   PL_IO); /* at the status of the fourth block */
  assert_non_null(strstr(error.message, "cannot be written"));
  pl_results_summary summary = summary_of(f);
  uint32_t n = f->space.n_candidates, pending = summary.n_by_status[PL_RESULT_PENDING];
  assert_true(pending > 0 && pending < n && n - pending == outcome.n_computed);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_results_check_resume(f->path, &f->provenance, n, f->status, &error), PL_OK);
  assert_int_equal(run(f, -1, &outcome, &error), PL_OK);
  assert_int_equal(outcome.n_computed, pending);
  assert_int_equal(summary_of(f).n_by_status[PL_RESULT_PENDING], 0);
}

/* The features are written in front of the status: a row that has one has the other. */
static void features_are_whole_where_the_status_is(void **state) {
  fixture *f = *state;
  uint32_t n = f->space.n_candidates, n_writes = pl_result_n_columns + PL_N_FEATURES + PL_N_STAGE_FEATURES;
  pl_sweep_outcome outcome;
  pl_error error = PL_ERROR_INIT;
  f->provenance.n_stages = 3;
  assert_int_equal(pl_results_check_resume(f->path, &f->provenance, n, f->status, &error), PL_BAD_INPUT);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_results_create(f->path, &f->provenance, n, true, &error), PL_OK);
  assert_int_equal(run(f, 2 * n_writes + PL_N_FEATURES + 2, &outcome, &error), PL_IO); /* among the third's stages */
  uint32_t pending = summary_of(f).n_by_status[PL_RESULT_PENDING];
  assert_true(pending > 0 && pending < n && n - pending == outcome.n_computed);
  for (int round = 0; round < 2; round++) {
    pl_results_reader *reader;
    void *values, *statuses;
    error = PL_ERROR_INIT;
    assert_int_equal(pl_results_reader_create(f->path, &reader, &error), PL_OK);
    assert_true(pl_results_reader_has_features(reader));
    const pl_column_info *first = &pl_result_columns[PL_RESULT_FIRST_FEATURE];
    assert_int_equal(pl_results_reader_column(reader, first, &f->arena, &values, &error), PL_OK);
    assert_int_equal(pl_results_reader_column(reader, pl_result_column("status"), &f->arena, &statuses, &error), PL_OK);
    for (uint32_t i = 0; i < n; i++) {
      int32_t status = ((const int32_t *)statuses)[i];
      double value = ((const double *)values)[i];
      if (status == PL_RESULT_FAILED) assert_true(isnan(value));
      if (status == PL_RESULT_DONE || status == PL_RESULT_OOM) assert_true(value == i);
    }
    pl_results_reader_destroy(reader);
    if (round > 0) break;
    assert_int_equal(pl_results_check_resume(f->path, &f->provenance, n, f->status, &error), PL_OK);
    assert_int_equal(run(f, -1, &outcome, &error), PL_OK);
    assert_int_equal(outcome.n_computed, pending);
  }
}

static void another_run_is_not_resumed(void **state) {
  fixture *f = *state;
  uint32_t n = f->space.n_candidates;
  pl_provenance other = {0};
  pl_provenance_text(&other, "command", "another", false);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_results_check_resume(f->path, &other, n, f->status, &error), PL_OK); /* the command may differ */
  pl_provenance_number(&other, "bucket_bytes", 26e6, true);
  assert_int_equal(pl_results_check_resume(f->path, &other, n, f->status, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "bucket_bytes"));
  error = PL_ERROR_INIT;
  assert_int_equal(pl_results_check_resume(f->path, &f->provenance, n + 1, f->status, &error), PL_BAD_INPUT);
}

int main(int argc, char **argv) {
  /* As the parallel tests of the command: a machine with few cores, perhaps root. */
  setenv("OMPI_MCA_btl", "self,vader", 0);
  MPI_Init(&argc, &argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(failed_candidates_are_rows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_disk_that_fills_up_is_an_error_and_can_be_resumed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(features_are_whole_where_the_status_is, set_up, tear_down),
      cmocka_unit_test_setup_teardown(another_run_is_not_resumed, set_up, tear_down),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  MPI_Finalize();
  return failed;
}
