/* What the benches share: a clock, small runs for the tests, and the lines from which tests/bench/run.sh makes its
 * table.
 *
 * A bench prints what it likes, and for each figure that is worth following one line
 *
 *   ratio | what | against what | median | lowest to highest, samples
 *
 * of samples that were taken in turns in this one run, so that both sides saw the same machine. bench_end() prints the
 * closing line; a bench that does not reach it has failed. With --small among its arguments a bench does the same on
 * inputs that take a second or two: the tests run that, to see that it works, not to measure. */
#ifndef PL_TESTS_SUPPORT_BENCH_H
#define PL_TESTS_SUPPORT_BENCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench {
  const char *name;
  bool is_small;
  uint32_t n_ratios;
} bench;

double bench_cpu_s(void);  /* CPU time of this process: others on the machine do not count */
double bench_wall_s(void); /* for what runs threads or children */

/* Takes --small out of the arguments. */
bench bench_begin(const char *name, int *argc, char **argv);

/* The line of one figure; sorts the n >= 1 samples. Texts must not hold '|' or a line break. */
void bench_ratio(bench *b, const char *what, const char *against, double *samples, uint32_t n);

/* For what has no spread: counts, and sums over a whole run. */
void bench_figure(bench *b, const char *what, const char *against, double ratio);

/* Prints the closing line; the exit status of the program: 1 if it gave no figure. */
int bench_end(const bench *b);

#endif
