/* Vectors of doubles. */
#ifndef PL_CORE_VECTORS_H
#define PL_CORE_VECTORS_H

#include <stdint.h>

/* The sum of the products of their elements, in their order. */
static inline double pl_dot(const double *a, const double *b, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

#endif
