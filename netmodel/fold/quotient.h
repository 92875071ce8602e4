/* The quotient of a set of transfers under a fold: one transfer and one link per class, with the usage weights that
 * make it exact.
 *
 * The weight of transfer class T on link class L is the sum of the weights, on ONE link of L, of all transfers of T
 * that cross it: siblings move in step, so what they take together is what the class takes. Under the identity fold
 * this is the problem itself.
 *
 * pl_quotient_rivals then says which links can ever be contended. Transfers that share a stream are never under way
 * together
 * (`serial` names it), so a link is uncontended when one stream alone uses it, or when the fastest transfers of all its
 * streams fit together. Such a link only limits each of its transfers alone: it becomes part of their rate cap. A
 * transfer without contended links has no rival: it takes latency + bytes / cap, always.
 */
#ifndef PL_NETMODEL_QUOTIENT_H
#define PL_NETMODEL_QUOTIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/transfer.h"
#include "netmodel/fold/fold.h"

typedef struct pl_quotient_transfer {
  uint32_t first_use, n_uses;  /* into uses: contended links after pl_quotient_rivals, all links before */
  uint32_t first_full, n_full; /* into full_uses: all link classes that the transfer crosses */
  double rate_cap_Bps;         /* by the links that are not among the uses; INFINITY = none */
  uint32_t serial;             /* stream that its transfers take turns on */
} pl_quotient_transfer;

typedef struct pl_quotient {
  uint32_t n_links, n_transfers; /* classes */
  double *link_capacity_Bps;     /* per link class */
  uint8_t *link_policy;
  pl_quotient_transfer *transfers;
  pl_link_use *uses; /* link = link class */
  pl_link_use *full_uses;
  uint32_t n_uses;
} pl_quotient;

/* All links of `problem`'s uses must be SHARED (FATPIPE links are rate caps already). `serial` per transfer of the
 * problem; NULL: all 0. */
pl_code pl_quotient_take(const pl_fold_problem *problem, const pl_fold *fold, const double *link_capacity_Bps,
                         const uint32_t *serial, pl_arena *arena, pl_quotient *quotient, pl_error *error);
/* `rate_bound_Bps` per transfer class: no transfer of it ever goes faster (INFINITY allowed). */
pl_code pl_quotient_rivals(pl_quotient *quotient, const double *rate_bound_Bps, pl_arena *arena, pl_error *error);

/* Links that others imply, on the unfolded problem: a link whose transfers all cross, between them, a set of smaller
 * links that together cannot fill it (a leaf uplink that can carry the sum of its NICs, a PCIe switch behind a slower
 * NIC). Leaving them out before refinement keeps job shapes that straddle leaves from shattering the classes. Rewrites
 * transfers[].first_use/n_uses and uses in place (they only shrink). O(uses log links). */
pl_code pl_quotient_drop_implied_links(uint32_t n_links, const double *link_capacity_Bps, pl_fold_transfer *transfers,
                                       uint32_t n_transfers, pl_link_use *uses, pl_arena *arena, uint32_t *n_dropped,
                                       pl_error *error);

#endif
