/* Random numbers of the tests: splitmix64 (Steele, Lea and Flood, OOPSLA 2014), one word of state in the caller's
 * hands.
 *
 * A random test takes its seed from test_seed(), which prints it and accepts PACELINE_SEED, so that any failure can be
 * run again. Not two draws among the arguments of one call or the initialisers of one struct: compilers differ in which
 * comes first, and a seed would mean another case with each. */
#ifndef PL_TESTS_SUPPORT_RANDOM_H
#define PL_TESTS_SUPPORT_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `fallback` unless the environment says PACELINE_SEED=NUMBER; printed either way. */
static inline uint64_t test_seed(uint64_t fallback) {
  const char *text = getenv("PACELINE_SEED");
  uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : fallback;
  printf("PACELINE_SEED=%llu\n", (unsigned long long)seed);
  return seed;
}

/* What the environment says a random test should do otherwise: PACELINE_CASES and the like. */
static inline uint64_t test_number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
enum { TEST_IS_SANITIZED = 1 };
#else
enum { TEST_IS_SANITIZED = 0 };
#endif

/* How many random cases: PACELINE_CASES, else `n`, of which a sanitizer is shown a quarter: there a case costs five to
 * twenty times as much, and what it looks for is in nearly every one. */
static inline uint64_t test_cases(uint64_t n) {
  return test_number("PACELINE_CASES", TEST_IS_SANITIZED ? (n + 3) / 4 : n);
}

static inline uint64_t random_u64(uint64_t *state) {
  uint64_t word = *state += UINT64_C(0x9E3779B97F4A7C15);
  word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
  return word ^ (word >> 31);
}

/* Uniform in [0, n); n >= 1. The bias of the multiplication is below 2^-32. */
static inline uint32_t random_below(uint64_t *state, uint32_t n) {
  return (uint32_t)(((random_u64(state) >> 32) * (uint64_t)n) >> 32);
}

/* Uniform in [lowest, highest]. */
static inline uint32_t random_between(uint64_t *state, uint32_t lowest, uint32_t highest) {
  return lowest + random_below(state, highest - lowest + 1);
}

/* A divisor of n, 1 <= n, each as likely as the others. */
static inline int32_t random_divisor(uint64_t *state, int32_t n) {
  int32_t divisor;
  do
    divisor = (int32_t)random_between(state, 1, (uint32_t)n);
  while (n % divisor != 0);
  return divisor;
}

/* Uniform in [0, 1). */
static inline double random_unit(uint64_t *state) {
  return (double)(random_u64(state) >> 11) * 0x1p-53;
}

/* Log-uniform in [lowest, highest): sizes and rates over decades. */
static inline double random_log(uint64_t *state, double lowest, double highest) {
  return lowest * pow(highest / lowest, random_unit(state));
}

#endif
