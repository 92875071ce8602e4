/* What calibration leaves over: how far measured times lie from predicted ones, by what the prediction is made of, on
 * measurements that no fit has seen. Prediction intervals (workloads/run/interval.h) are composed of it.
 *
 * A file, workloads/residuals.json; `paceline calibrate --residuals` makes it from calibration data alone.
 * validation/INTERVALS.md derives the figures. All are half-widths of ln(measured / predicted): 80 % of the
 * residuals lie between minus and plus the figure.
 */
#ifndef PL_WORKLOADS_RESIDUALS_H
#define PL_WORKLOADS_RESIDUALS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

/* clang-format off */
/* X(name). _fitted: by a curve fitted on this device, on rows kept out of the fit; _transferred: by that of another
 * device; _roofline: by no curve. _small: below 1 MiB. */
#define PL_RESIDUALS(X) \
  X(gemm_transferred) X(gemm_roofline) \
  X(attention_fitted) X(attention_transferred) X(attention_roofline) \
  X(kernel_fitted) X(kernel_transferred) X(kernel_roofline) \
  X(host) X(overlap) \
  X(nvlink_small) X(nvlink_large) X(pcie_small) X(pcie_large) X(network_small) X(network_large) X(ideal) \
  X(run) X(source)
/* clang-format on */

typedef enum pl_residual {
#define PL_RESIDUAL_ENUM(name) PL_RESIDUAL_##name,
  PL_RESIDUALS(PL_RESIDUAL_ENUM)
#undef PL_RESIDUAL_ENUM
      PL_RESIDUAL_COUNT
} pl_residual;

extern const char *const pl_residual_names[PL_RESIDUAL_COUNT]; /* "gemm_transferred" */

/* What every interval of Paceline is meant to cover. */
#define PL_INTERVAL_SHARE 0.8

typedef struct pl_residuals {
  double half[PL_RESIDUAL_COUNT];
  const char *provenance[PL_RESIDUAL_COUNT];
  double centre;           /* ln(measured / predicted) that runs had which calibration may use, in the middle */
  const char *const *seen; /* what these runs had in common with others, as pl_aspects names it */
  uint32_t n_seen;
  uint64_t digest; /* of all of it that intervals depend on */
} pl_residuals;

/* The file that comes with Paceline, or the one that PACELINE_RESIDUALS names. Strings from `arena`. A mistake is one
 * message with file, line and value. */
pl_code pl_residuals_load(pl_arena *arena, pl_residuals *residuals, pl_error *error);
/* The same from memory; `name` stands for the path in messages. */
pl_code pl_residuals_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_residuals *residuals,
                           pl_error *error);
bool pl_residuals_have_seen(const pl_residuals *residuals, const char *aspect);

#endif
