/* The column table describes the row: no gap, no overlap, no name twice, status last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/cluster/cluster.h"
#include "core/cluster/device_profile.h"
#include "core/graph/result.h"

/* Texts have sizes of their own: short words, and layer boundaries. */
static bool has_its_size(const pl_column_info *column) {
  switch (column->type) {
  case PL_COLUMN_i32:
    return column->size == 4;
  case PL_COLUMN_i64:
  case PL_COLUMN_f64:
  case PL_COLUMN_u64:
    return column->size == 8;
  case PL_COLUMN_text:
    return column->size == (strcmp(column->name, "assign") == 0 ? 512 : 16);
  }
  return false;
}

static void columns_cover_the_row(void **state) {
  (void)state;
  uint32_t end = 0;
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    const pl_column_info *column = &pl_result_columns[c];
    assert_true(has_its_size(column));
    assert_true(column->offset >= end && column->offset - end < 8); /* only padding between */
    end = column->offset + column->size;
  }
  assert_true(end <= offsetof(pl_result_row, features) && offsetof(pl_result_row, features) - end < 8);
}

static void names(void **state) {
  (void)state;
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    assert_ptr_equal(pl_result_column(pl_result_columns[c].name), &pl_result_columns[c]);
    assert_true(strlen(pl_result_columns[c].description) > 0);
  }
  assert_string_equal(pl_result_columns[pl_result_n_columns - 1].name, "status");
  assert_int_equal(pl_result_column("iter_time_s")->offset, offsetof(pl_result_row, iter_time_s));
  assert_string_equal(pl_result_column("peak_mem_bytes")->unit, "B");
  assert_int_equal(pl_result_column("assign")->type, PL_COLUMN_text);
  assert_null(pl_result_column("nonsense"));
  assert_null(pl_result_column(""));
}

static void names_of_types_and_links(void **state) {
  (void)state;
  static const double sizes[PL_DTYPE_COUNT] = {4, 4, 2, 2, 1, 0.5625};
  for (int d = 0; d < PL_DTYPE_COUNT; d++) {
    assert_int_equal(pl_dtype_from_name(pl_dtype_name((pl_dtype)d)), d);
    assert_true(pl_dtype_bytes((pl_dtype)d) == sizes[d]);
  }
  assert_int_equal(pl_dtype_from_name("fp64"), -1);
  assert_int_equal(pl_dtype_from_name("bfloat16"), -1); /* our own files spell types our way */
  assert_int_equal(pl_dtype_from_alias("torch.bfloat16"), PL_DTYPE_BF16);
  assert_int_equal(pl_dtype_from_alias("Half"), PL_DTYPE_FP16);
  assert_int_equal(pl_dtype_from_alias("BF16"), PL_DTYPE_BF16);
  assert_int_equal(pl_dtype_from_alias("float64"), -1);
  assert_int_equal(pl_dtype_from_alias(""), -1);
  assert_string_equal(pl_link_kind_name(PL_LINK_NVLINK), "nvlink");
  assert_string_equal(pl_link_kind_name(PL_LINK_FABRIC), "fabric");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_cover_the_row), cmocka_unit_test(names),
                                     cmocka_unit_test(names_of_types_and_links)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
