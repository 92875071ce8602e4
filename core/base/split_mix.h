/* SplitMix64 (Steele, Lea and Flood 2014, figure 15): passes BigCrush, and any seed will do. */
#ifndef PL_CORE_SPLIT_MIX_H
#define PL_CORE_SPLIT_MIX_H

#include <stdint.h>

/* The next number; `*state` is a seed to begin with. */
static inline uint64_t pl_split_mix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#endif
