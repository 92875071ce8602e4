/* Measured collectives from a CSV file, each with what a collective profile weighs for it.
 *
 * Columns: op (all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send), n_gpus, size_bytes (of the full
 * buffer, as nccl-tests counts), time_us; optional: n_nodes (1), platform (a file beside the CSV file), members ("0 3":
 * devices of the platform; else the first n_gpus / n_nodes of its first n_nodes nodes), system (a name for reports) and
 * role: "fit", or "check" for systems that are kept out of the fit. Of the rows to fit every fourth, by a hash of
 * system, op, n_gpus and size, is kept out as well.
 */
#ifndef PL_VALIDATION_COLLECTIVE_ROWS_H
#define PL_VALIDATION_COLLECTIVE_ROWS_H

#include "core/base/arena.h"
#include "netmodel/collective/collective.h"

typedef enum pl_row_role { PL_ROW_FIT = 0, PL_ROW_KEPT_SIZE, PL_ROW_KEPT_SYSTEM, PL_ROW_ROLE_COUNT } pl_row_role;

typedef struct pl_collective_row {
  const char *system; /* equal systems have equal pointers */
  pl_collective_kind kind;
  pl_row_role role;
  uint32_t n_gpus, n_nodes, line;
  double size_bytes, measured_us;
  pl_collective_weighing weighing; /* its entries are those of the profile given */
} pl_collective_row;

typedef struct pl_collective_rows {
  pl_collective_row *rows;
  uint32_t n;
} pl_collective_rows;

/* Groups are made on each platform in turn, with `profile`; `platform` is for rows without one (NULL: such rows are an
 * error). Errors with file and line. Rows, strings and works in `arena`. */
pl_code pl_collective_rows_load(const char *path, const char *platform, const pl_collective_profile *profile,
                                pl_arena *arena, pl_collective_rows *rows, pl_error *error);

/* Time that the entries as they now are predict. */
double pl_collective_row_us(const pl_collective_row *row);

#endif
