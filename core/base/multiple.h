/* The greatest common divisor of two numbers, and their least common multiple. */
#ifndef PL_CORE_MULTIPLE_H
#define PL_CORE_MULTIPLE_H

#include <stdint.h>

/* Of a number and 0 the number. */
static inline uint64_t pl_common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Of numbers above zero; modulo 2^64 where it has no room. */
static inline uint64_t pl_common_multiple(uint64_t a, uint64_t b) {
  return a / pl_common_divisor(a, b) * b;
}

#endif
