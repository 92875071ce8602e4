/* Conditions on result rows: no text crashes the parser, and whatever it takes can be evaluated. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "search/command/where.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pl_where_value get(void *context, uint32_t column) {
  (void)context;
  if (column == pl_result_n_columns) return (pl_where_value){.number = 3};
  switch (pl_result_columns[column].type) {
  case PL_COLUMN_i32:
  case PL_COLUMN_i64:
  case PL_COLUMN_f64:
    return (pl_where_value){.number = column};
  case PL_COLUMN_u64:
  case PL_COLUMN_text:
    break;
  }
  return (pl_where_value){.text = "gpipe", .length = 5};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[5000];
  size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
  memcpy(text, data, length);
  text[length] = '\0';
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_where *where;
  if (pl_where_take(text, pl_result_column_list, &arena, &where, &error) == PL_OK)
    (void)pl_where_holds(where, get, NULL);
  pl_arena_release(&arena);
  return 0;
}
