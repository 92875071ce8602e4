/* Tables of timings: no bytes crash the reader, and what it takes are shapes and times that can be computed with. */
#include <stddef.h>
#include <stdint.h>

#include "validation/fit/gemm_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const pl_gemm_filter everything = {.dtypes = (1u << PL_DTYPE_COUNT) - 1};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_csv csv;
  pl_gemm_samples samples;
  if (pl_csv_parse("fuzz.csv", (const char *)data, size, &arena, &csv, &error) == PL_OK &&
      pl_gemm_samples_take(&csv, 1, &everything, &arena, &samples, &error) == PL_OK)
    for (uint32_t i = 0; i < samples.n; i++) {
      const pl_gemm_shape *s = &samples.rows[i].shape;
      PL_ASSERT(s->batch > 0 && s->m >= PL_GEMM_LEAST_M && s->n > 0 && s->k > 0 && samples.rows[i].time_s > 0);
    }
  pl_arena_release(&arena);
  return 0;
}
