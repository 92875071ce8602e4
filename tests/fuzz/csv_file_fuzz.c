/* CSV files: no bytes crash the reader, and every cell of what it takes can be read as text and number. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "validation/csv_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_csv_file csv;
  if (pl_csv_file_parse("fuzz.csv", (const char *)data, size, &arena, &csv, &error) == PL_OK)
    for (uint32_t row = 0; row < csv.n_rows; row++)
      for (uint32_t column = 0; column < csv.n_columns; column++) {
        double number;
        int64_t integer;
        (void)pl_csv_file_number(&csv, row, (int)column, -INFINITY, INFINITY, &number, &error);
        (void)pl_csv_file_integer(&csv, row, (int)column, INT64_MIN, INT64_MAX, &integer, &error);
      }
  pl_arena_release(&arena);
  return 0;
}
