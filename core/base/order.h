/* Ascending, for qsort. */
#ifndef PL_CORE_ORDER_H
#define PL_CORE_ORDER_H

#include <stdint.h>

static inline int pl_by_double(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static inline int pl_by_int64(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static inline int pl_by_uint32(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

#endif
