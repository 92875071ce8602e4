/* pl_route_spec: how a point-to-point flow shares (see netmodel/flow/networks.h).
 *
 * RTT is the rule of SimGrid's CM02 model (Velho et al., "On the validity of flow-level TCP network models for grid and
 * cloud simulations", TOMACS 2013; parameters as of SimGrid 3.32 with network/model:CM02 and latency-factor 1): a
 * flow's share is inversely proportional to its latency, and its rate bounded by the TCP window over the round trip.
 * Latencies are those of the cluster, in ticks: a platform whose latencies are not multiples of 2^-40 s shares by the
 * rounded ones, which differ by at most half a tick per link from what SimGrid itself uses.
 *
 * Where flows of different latencies meet on a FATPIPE link that binds, SimGrid has no rule to follow: if capacity *
 * latency rounds below capacity / (1 / latency) it bounds each flow on its own, else it stops all of them at the level
 * of the quickest. (Two flows on a FATPIPE of 100 MB/s, latencies x and 3 x: the slower gets 33 MB/s for x = 1.8 us and
 * 100 MB/s for 1.9 us.) Here a FATPIPE link always bounds each flow on its own. */
#include <math.h>

#include "netmodel/flow/networks.h"

static const double tcp_gamma_bytes = 4194304.0; /* SimGrid's network/TCP-gamma */

/* Sorted by link. A shared link that is crossed twice counts twice; a FATPIPE link bounds each crossing on its own. */
static void insert_use(const pl_cluster *cluster, pl_link_use *uses, uint32_t *count, uint32_t link) {
  uint32_t at = *count;
  for (uint32_t i = 0; i < *count; i++)
    if (uses[i].link == link) {
      if (cluster->links[link].policy == PL_LINK_SHARED) uses[i].weight += 1;
      return;
    }
  for (; at > 0 && uses[at - 1].link > link; at--)
    uses[at] = uses[at - 1];
  uses[at] = (pl_link_use){.link = link, .weight = 1};
  (*count)++;
}

/* A FATPIPE link bounds each flow whatever the others do: it is part of the cap. */
static uint32_t fold_fatpipes(const pl_cluster *cluster, pl_link_use *uses, uint32_t count, double *cap_Bps) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    const pl_link *link = &cluster->links[uses[i].link];
    if (link->policy == PL_LINK_FATPIPE) {
      *cap_Bps = fmin(*cap_Bps, link->capacity_Bps / uses[i].weight);
    } else {
      uses[kept++] = uses[i];
    }
  }
  return kept;
}

pl_code pl_route_spec(const pl_cluster *cluster, pl_sharing sharing, uint32_t source, uint32_t destination,
                      pl_arena *arena, pl_link_use **uses, pl_transfer_spec *spec, pl_error *error) {
  pl_route route;
  PL_TRY(pl_cluster_route(cluster, source, destination, &route, error));
  pl_link_use *list = PL_TAKE(arena, pl_link_use, route.n_links);
  if (list == NULL) return pl_fail_memory(error, "a route's links");
  uint32_t count = 0;
  for (uint32_t i = 0; i < route.n_links; i++)
    insert_use(cluster, list, &count, route.links[i]);
  *spec = (pl_transfer_spec){.rate_cap_Bps = INFINITY,
                             .share_weight = 1,
                             .latency = route.latency,
                             .source = source,
                             .destination = destination};
  double latency_s = pl_ticks_to_s(route.latency);
  if (sharing == PL_SHARING_RTT && latency_s > 0) {
    spec->share_weight = 1 / latency_s;
    spec->rate_cap_Bps = tcp_gamma_bytes / (2 * latency_s);
  }
  spec->n_uses = fold_fatpipes(cluster, list, count, &spec->rate_cap_Bps);
  *uses = list;
  return PL_OK;
}
