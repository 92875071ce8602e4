/* How far measured collectives lie from what the shipped collective profile says, on rows that no fit has seen, by kind
 * of wiring and below and from 1 MiB; each system counts the same.
 *
 * Inside nodes with NVLink a machine is a product, and other sizes on the machines fitted count as well as systems that
 * were kept out. PCIe boxes and networks are built one by one: only systems that were kept out count, as a user's own
 * is one. Unpriced: all systems, by the rates and latencies of the wires alone.
 */
#ifndef PL_VALIDATION_COLLECTIVE_RESIDUALS_H
#define PL_VALIDATION_COLLECTIVE_RESIDUALS_H

#include "workloads/run/residuals.h"

/* Fills the entries nvlink_*, pcie_*, network_* and ideal from `folder`/collectives.csv.gz. */
pl_code pl_collective_residuals_take(const char *folder, pl_arena *arena, pl_residuals *residuals, pl_error *error);

#endif
