/* Fits the figures of a collective profile to measured collectives.
 *
 * Entry by entry: those inside nodes on the rows of one node, then those between nodes with the former fixed. An
 * entry's figures start from those of the entry that it is `like` (else from NCCL 2.10.3's published constants and
 * plain guesses) and move by a pattern search, one figure at a time and in a fixed order, on the mean of
 * min(|ln(predicted / measured)|, 1), to which each system contributes by the root of its number of rows, and rows of 1
 * MiB and more twice. A figure that no row feels stays where it started. Deterministic: no random numbers, no time
 * limit.
 *
 * Where no row measures an entry's exchange of pairs (all-to-all, send), it takes the ring's rates, the start of its
 * step, and a step of an eighth of the ring's, which is what they are to each other on NVSwitch.
 */
#ifndef PL_VALIDATION_COLLECTIVE_FIT_H
#define PL_VALIDATION_COLLECTIVE_FIT_H

#include <stdio.h>

#include "validation/fit/collective_rows.h"

typedef struct pl_entry_fit {
  const char *name;
  uint32_t n_rows, n_figures; /* rows fitted; figures that some row feels */
  double median_pct;          /* absolute error over the rows fitted */
} pl_entry_fit;

/* `profile`'s entries, which `rows` point at, are rewritten: figures with four digits and provenance. `fits` (one per
 * entry, inside first) from `arena`. Cost: 50,000 to 500,000 evaluations of an entry's rows, seconds in all. */
pl_code pl_collective_fit(pl_wiring *inside, uint32_t n_inside, pl_wiring *between, uint32_t n_between,
                          const pl_collective_rows *rows, pl_arena *arena, pl_entry_fit **fits, pl_error *error);

/* Median, 90th percentile and mean (bias) of the relative errors in per cent, by role, system, op and size band, as
 * Markdown tables. */
pl_code pl_collective_report(FILE *stream, const pl_collective_rows *rows, pl_arena *arena, pl_error *error);

#endif
