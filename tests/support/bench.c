/* See tests/support/bench.h. */
#include "tests/support/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double bench_cpu_s(void) {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_wall_s(void) {
  return seconds_of(CLOCK_MONOTONIC);
}

bench bench_begin(const char *name, int *argc, char **argv) {
  bench b = {.name = name};
  int kept = 1;
  for (int i = 1; i < *argc; i++)
    if (strcmp(argv[i], "--small") == 0)
      b.is_small = true;
    else
      argv[kept++] = argv[i];
  *argc = kept;
  argv[kept] = NULL;
  return b;
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

void bench_ratio(bench *b, const char *what, const char *against, double *samples, uint32_t n) {
  qsort(samples, n, sizeof *samples, by_value);
  double median = 0.5 * (samples[(n - 1) / 2] + samples[n / 2]);
  printf("ratio | %s | %s | %.3g | %.3g to %.3g, %u samples\n", what, against, median, samples[0], samples[n - 1], n);
  b->n_ratios++;
}

void bench_figure(bench *b, const char *what, const char *against, double ratio) {
  printf("ratio | %s | %s | %.3g | -\n", what, against, ratio);
  b->n_ratios++;
}

int bench_end(const bench *b) {
  printf("%s: %u ratios%s\n", b->name, b->n_ratios, b->is_small ? ", of a small run" : "");
  return b->n_ratios > 0 ? 0 : 1;
}
