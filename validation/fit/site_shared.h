/* How much sites of one owner have in common (validation/fit/site_relatives.h), told by the runs of many owners. */
#ifndef PL_VALIDATION_SITE_SHARED_H
#define PL_VALIDATION_SITE_SHARED_H

#include "validation/fit/site_rows.h"

/* The shares, of tenths with at least one left for each site's own, that make the runs of all sources but `without`
 * (UINT32_MAX: all) most likely: from `start` (NULL: nothing shared) a tenth goes from one to another or to and from
 * what is each one's own, whichever helps most, until none does. Of a site with more than 30 runs each counts less. */
pl_code pl_site_shared_take(const pl_site_rows *rows, uint32_t without, const pl_site *prior, const double *start,
                            pl_arena *arena, double shared[PL_SITE_KINDS], pl_error *error);

#endif
