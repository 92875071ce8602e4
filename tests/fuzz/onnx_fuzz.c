/* ONNX files: any bytes are either refused with one message that names the file, or are a model whose numbers make
 * sense. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "workloads/onnx/onnx_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_onnx_model model;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  pl_code code = pl_onnx_model_parse("fuzz.onnx", data, size, &arena, &model, &error);
  if (code != PL_OK) {
    PL_ASSERT(code == PL_BAD_INPUT || code == PL_UNSUPPORTED);
    PL_ASSERT(error.code == code && strstr(error.message, "fuzz.onnx") != NULL && strchr(error.message, '\n') == NULL);
  } else {
    PL_ASSERT(model.n_layers >= 1 && model.n_nodes >= 1 && model.n_functions >= 3);
    PL_ASSERT(isfinite(model.parameters) && model.parameters >= 1);
  }
  pl_arena_release(&arena);
  return 0;
}
