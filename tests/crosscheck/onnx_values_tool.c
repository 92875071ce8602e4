/* Runs the training program of an ONNX file once, with the file's weights and inputs that stand as doubles in
 * FOLDER/NAME.f64:
 *
 *   onnx_values_tool MODEL.onnx FOLDER BATCH SEQ
 *
 * Prints `loss VALUE` and, for every weight, `gradient INDEX NAME` with NAME that of the file; its elements are written
 * to FOLDER/gradient.INDEX.f64. For tests/crosscheck/onnx_torch.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/execute/data.h"
#include "workloads/execute/executor.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/onnx/onnx_program.h"
#include "workloads/passes/program_of.h"

typedef struct tool {
  pl_onnx_weights *weights;
  const char *folder;
} tool;

static pl_code weight(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error) {
  PL_TRY(pl_onnx_weights_read(((tool *)context)->weights, path, n, whole, given, error));
  return *given ? PL_OK : pl_fail(error, PL_BAD_INPUT, "no weight for '%s'", path);
}

static FILE *open_in(const char *folder, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.f64", folder, name);
  return fopen(path, mode);
}

static pl_code input(void *context, const char *name, int64_t n, double *whole, bool *given, pl_error *error) {
  FILE *file = open_in(((tool *)context)->folder, name, "rb");
  *given = file != NULL;
  if (file == NULL) return PL_OK;
  bool all = fread(whole, sizeof(double), (size_t)n, file) == (size_t)n;
  fclose(file);
  return all ? PL_OK : pl_fail(error, PL_BAD_INPUT, "%s.f64 has fewer than %lld numbers", name, (long long)n);
}

static pl_code write_gradients(const tool *own, const pl_execution *execution, pl_error *error) {
  const char *path;
  for (int32_t i = 0; (path = pl_execution_path(execution, PL_EXECUTION_GRADIENT, i)) != NULL; i++) {
    pl_ir_type type;
    char name[32];
    double *whole = pl_execution_whole(execution, PL_EXECUTION_GRADIENT, path, &type, NULL);
    snprintf(name, sizeof(name), "gradient.%d", i);
    FILE *file = open_in(own->folder, name, "wb");
    if (whole == NULL || file == NULL) return pl_fail(error, PL_IO, "cannot write %s", name);
    fwrite(whole, sizeof(double), (size_t)pl_ir_type_elements(&type), file);
    fclose(file);
    free(whole);
    printf("gradient %d %s\n", i, pl_onnx_weights_source(own->weights, path));
  }
  return PL_OK;
}

static pl_code run(char **argv, pl_arena *arena, pl_error *error) {
  pl_model model;
  pl_ir_module module;
  pl_execution *execution;
  const pl_job job = {.gbs = atoll(argv[3]), .seq = atoll(argv[4]), .dtype = PL_DTYPE_FP32, .flash = true};
  tool own = {.folder = argv[2]};
  PL_TRY(pl_model_load_any(argv[1], arena, &model, error));
  PL_TRY(pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, &module, error));
  PL_TRY(pl_ir_check(&module, error));
  PL_TRY(pl_onnx_weights_open(model.program.onnx, &own.weights, error));
  const pl_data_source source = {.parameter = weight, .input = input, .context = &own};
  const pl_execution_options options = {.seed = 1, .iterations = 1, .source = &source};
  PL_TRY(pl_execute(&module, &options, &execution, error));
  printf("loss %.17g\n", pl_execution_loss(execution, 0));
  pl_code code = write_gradients(&own, execution, error);
  pl_execution_destroy(execution);
  pl_onnx_weights_destroy(own.weights);
  return code;
}

int main(int argc, char **argv) {
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  if (argc != 5) return 2;
  pl_arena_init(&arena, 0);
  pl_code code = run(argv, &arena, &error);
  pl_arena_release(&arena);
  if (code != PL_OK) fprintf(stderr, "%s\n", error.message);
  return pl_code_exit_status(code);
}
