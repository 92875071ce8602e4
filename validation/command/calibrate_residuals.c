/* See validation/command/calibrate_residuals.h. */
#include "validation/command/calibrate_residuals.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/system/output_file.h"
#include "core/text/json_writer.h"
#include "validation/fit/collective_residuals.h"
#include "validation/fit/fit_table.h"
#include "validation/fit/kernel_residuals.h"
#include "validation/fit/training_residuals.h"

/* Two hosts are known: milliseconds of host time that the 13 forward and 25 backward ops of an eager layer took at
 * least (eth-easl/sailor@cf2c8e3cc53c, on A100 and on GH200; workloads/frameworks/ has their mean). A third host lies
 * within t * s * sqrt(1 + 1/2) of them, t = 3.078 for one degree of freedom. */
static void take_host(pl_residuals *residuals) {
  static const double layer_ms[2] = {1.21 + 1.73, 0.92 + 1.17};
  double s = log(layer_ms[0] / layer_ms[1]) / sqrt(2);
  residuals->half[PL_RESIDUAL_host] = 3.078 * s * sqrt(1.5);
  residuals->provenance[PL_RESIDUAL_host] =
      "host time of an eager layer's ops on two hosts, 2.94 and 2.09 ms (eth-easl/sailor@cf2c8e3cc53c); 80 % of third "
      "ones by Student's t";
  residuals->half[PL_RESIDUAL_overlap] = 1;
  residuals->provenance[PL_RESIDUAL_overlap] = "no measurement of the overlap factor was found (device profiles take "
                                               "Proteus's values): between nothing and twice "
                                               "what is predicted";
}

typedef struct session {
  const pl_calibrate_residuals *options;
  pl_arena arena;
  pl_residuals residuals;
  pl_measured tables[2];
  pl_csv known;
  pl_cases cases;
  pl_error *error;
} session;

static pl_code take_training(session *own) {
  static const char *const names[2] = {"mosaicml_mpt.csv", "vocab_parallelism.csv"};
  const pl_case_options options = {.n_threads = (uint32_t)omp_get_max_threads(), .residuals = &own->residuals};
  for (int i = 0; i < 2; i++) {
    const char *path = pl_arena_printf(&own->arena, "%s/%s", own->options->folder, names[i]);
    if (path == NULL) return pl_fail_memory(own->error, "a file name");
    PL_TRY(pl_measured_load(path, &own->arena, &own->tables[i], own->error));
    PL_TRY(pl_measured_refuse_defects(&own->tables[i], own->error));
  }
  PL_TRY(pl_row_known_load(&own->arena, &own->known, own->error));
  PL_TRY(pl_cases_take(own->tables, 2, &own->arena, &own->cases, own->error));
  PL_TRY(pl_cases_express(&own->cases, &own->known, &options, &own->arena, own->error));
  PL_TRY(pl_cases_simulate(&own->cases, &options, &own->arena, own->error));
  return pl_training_residuals_take(&own->cases, &own->arena, &own->residuals, own->error);
}

static void print(const pl_residuals *residuals) {
  printf("| residual | half-width of ln(measured / predicted) | from |\n|---|--:|---|\n");
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    printf("| %s | %.3g | %s |\n", pl_residual_names[i], residuals->half[i], residuals->provenance[i]);
  printf("\ncentre %+.3g; seen:", residuals->centre);
  for (uint32_t i = 0; i < residuals->n_seen; i++)
    printf("%s %s", i > 0 ? "," : "", residuals->seen[i]);
  putchar('\n');
}

static void write_json(FILE *stream, const pl_residuals *residuals) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(
      &json, "about",
      "what calibration leaves over, written by 'paceline calibrate --residuals validation/calibration': "
      "80 % of ln(measured / predicted) lies within the half-widths (workloads/run/residuals.h)");
  pl_json_key(&json, "residuals");
  pl_json_open_object(&json);
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++) {
    pl_json_key(&json, pl_residual_names[i]);
    pl_json_open_object(&json);
    pl_json_put_number(&json, "half_width", residuals->half[i]);
    pl_json_put_string(&json, "provenance", residuals->provenance[i]);
    pl_json_close_object(&json);
  }
  pl_json_close_object(&json);
  pl_json_put_number(&json, "centre", residuals->centre);
  pl_json_key(&json, "seen");
  pl_json_open_array(&json);
  for (uint32_t i = 0; i < residuals->n_seen; i++)
    pl_json_string(&json, residuals->seen[i]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}

static pl_code store(const session *own) {
  const char *path = own->options->output;
  if (path == NULL) return PL_OK;
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, own->options->force, own->error));
  write_json(file.stream, &own->residuals);
  return pl_output_file_close(&file, PL_OK, own->error);
}

static pl_code run(session *own) {
  const pl_calibrate_residuals *options = own->options;
  if (options->output != NULL) PL_TRY(pl_output_file_check(options->output, options->force, own->error));
  take_host(&own->residuals);
  PL_TRY(pl_kernel_residuals_take(options->folder, &own->arena, &own->residuals, own->error));
  PL_TRY(pl_collective_residuals_take(options->folder, &own->arena, &own->residuals, own->error));
  for (int i = 0; i < PL_RESIDUAL_run; i++)
    own->residuals.half[i] = pl_fit_rounded(own->residuals.half[i]);
  PL_TRY(take_training(own));
  own->residuals.half[PL_RESIDUAL_run] = pl_fit_rounded(own->residuals.half[PL_RESIDUAL_run]);
  own->residuals.half[PL_RESIDUAL_source] = pl_fit_rounded(own->residuals.half[PL_RESIDUAL_source]);
  own->residuals.centre = pl_fit_rounded(own->residuals.centre);
  print(&own->residuals);
  return store(own);
}

pl_code pl_calibrate_residuals_run(const pl_calibrate_residuals *options, pl_error *error) {
  session own = {.options = options, .error = error};
  pl_arena_init(&own.arena, 0);
  pl_code code = run(&own);
  pl_arena_release(&own.arena);
  return code;
}
