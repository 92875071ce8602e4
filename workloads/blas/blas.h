/* Matrix products by OpenBLAS, in a shared library of its own, paceline_blas, which alone links it and which programs
 * open when they multiply numbers (core/system/library.h), as `verify` and `run` do: OpenBLAS starts a thread per core
 * and 12 M instructions when it is loaded, and with libquadmath, which it brings along, glibc formats every number the
 * slow way.
 *
 * Sums in one order, whatever the machine: OpenBLAS' number of threads is state of the whole process, and each of these
 * sets it to one. */
#ifndef PL_WORKLOADS_BLAS_H
#define PL_WORKLOADS_BLAS_H

#include <stdint.h>

#define PL_BLAS_LIBRARY "libpaceline_blas.so"

/* c = a b: a [rows, depth] times b [depth, columns], row by row. */
void pl_blas_multiply_double(int rows, int depth, int columns, const double *a, const double *b, double *c);
void pl_blas_multiply_single(int rows, int depth, int columns, const float *a, const float *b, float *c);

#endif
