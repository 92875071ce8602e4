/* CSV: any bytes give a rectangular table of terminated cells or one message; numbers are finite. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/text/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const pl_csv *csv) {
  PL_ASSERT(csv->n_columns >= 1);
  for (uint32_t c = 0; c < csv->n_columns; c++)
    PL_ASSERT(pl_csv_column(csv, csv->header[c]) == c);
  for (uint32_t r = 0; r < csv->n_rows; r++) {
    PL_ASSERT(csv->lines[r] >= 1 && (r == 0 || csv->lines[r] > csv->lines[r - 1]));
    for (uint32_t c = 0; c < csv->n_columns; c++) {
      bool given;
      double value = -7;
      pl_error error = PL_ERROR_INIT;
      pl_code code = pl_csv_number(csv, r, c, &given, &value, &error);
      PL_ASSERT(given == (strlen(pl_csv_cell(csv, r, c)) > 0));
      PL_ASSERT(code == PL_OK ? isfinite(value) : strstr(error.message, "fuzz.csv:") == error.message);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  if (pl_csv_parse("fuzz.csv", (const char *)data, size, &arena, &csv, &error) == PL_OK)
    check(&csv);
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.csv:") == error.message);
  pl_arena_release(&arena);
  return 0;
}
