/* Routes between devices, resolved once and then read by any number of threads without a lock.
 *
 * A hash table from (source, destination) to a record that never moves. Readers load the table's address and probe it
 * with acquire loads; a miss takes the one mutex, looks again, asks the resolver (SimGrid, which is single-threaded
 * anyway) and publishes the record with a release store of its key. A full table is replaced by one of twice the size;
 * readers may still be in the old one, so old tables live as long as the cache (together they are as large as the
 * newest). Rejected: sharded locks (misses are serialised by SimGrid all the same, and hits are then a locked
 * instruction each instead of none) and a dense n x n array (16,384 devices: 2 GiB).
 */
#ifndef PL_NETMODEL_ROUTE_CACHE_H
#define PL_NETMODEL_ROUTE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/cluster/cluster.h"

enum { PL_ROUTE_LINKS_MAX = 256 };

/* Writes the links of the route in crossing order, at most PL_ROUTE_LINKS_MAX, and their number. Called under the
 * cache's mutex, from any thread. */
typedef pl_code (*pl_route_resolver)(void *context, uint32_t source, uint32_t destination, uint32_t *links,
                                     uint32_t *n_links, pl_error *error);

typedef struct pl_route_cache pl_route_cache;

/* `links` (for the latencies) and `context` must outlive the cache. NULL: no memory. */
pl_route_cache *pl_route_cache_create(pl_route_resolver resolve, void *context, const pl_link *links,
                                      uint32_t n_devices);
void pl_route_cache_destroy(pl_route_cache *cache);

/* The `route` function of pl_cluster. Thread-safe; the route's links stay valid until destroy. Failed routes are not
 * remembered. Cost: a hit 10 to 50 ns (cache misses of the processor), a miss the resolver's plus about 100 ns. */
pl_code pl_route_cache_get(void *cache, uint32_t source, uint32_t destination, pl_route *route, pl_error *error);

/* Whether there is a route. It is not kept: a check of a platform asks for tens of thousands that nobody asks for
 * again, among which those that are would be found late (cache misses of the processor). */
pl_code pl_route_cache_check(pl_route_cache *cache, uint32_t source, uint32_t destination, pl_error *error);

/* Routes held, and bytes of memory held for them. */
size_t pl_route_cache_count(pl_route_cache *cache);
size_t pl_route_cache_bytes(pl_route_cache *cache);

#endif
