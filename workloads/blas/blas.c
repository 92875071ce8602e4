/* See workloads/blas/blas.h. */
#include "workloads/blas/blas.h"

#include <cblas.h>

void pl_blas_multiply_double(int rows, int depth, int columns, const double *a, const double *b, double *c) {
  openblas_set_num_threads(1);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, 1, a, depth, b, columns, 0, c, columns);
}

void pl_blas_multiply_single(int rows, int depth, int columns, const float *a, const float *b, float *c) {
  openblas_set_num_threads(1);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, 1, a, depth, b, columns, 0, c, columns);
}
