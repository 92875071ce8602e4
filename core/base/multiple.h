/* The least common multiple of two numbers above zero; modulo 2^64 where it has no room. */
#ifndef PL_CORE_MULTIPLE_H
#define PL_CORE_MULTIPLE_H

#include <stdint.h>

static inline uint64_t pl_common_multiple(uint64_t a, uint64_t b) {
  uint64_t divisor = a, rest = b;
  while (rest != 0) {
    uint64_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  return a / divisor * b;
}

#endif
