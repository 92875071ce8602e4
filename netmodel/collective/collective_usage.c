/* From hops to links, and lists of steps.
 *
 * A hop is one member sending to the next: a point-to-point flow over the links of its route. Weights count crossings,
 * so they are small integers and their sums are exact in double, whatever the order of addition: that is what lets a
 * folded network equal the unfolded one bit for bit.
 *
 * Few uses are a list, merged by sorting whenever it is full, which needs no second structure. Those of thousands of
 * devices, about as many as the cluster has links, are added up in an array over all links: sorting them took a third
 * of the time of compiling 4,096 GPUs. Both end sorted by link as the interface promises. */
#include <string.h>

#include "netmodel/collective/collective_internal.h"

enum { LEAST_CAPACITY = 16, FEW_USES = 24, MANY_USES = 256 };
static const double most_steps = 134217728.0; /* 2^27 */

pl_code pl_usage_begin(pl_usage_builder *builder, const pl_cluster *cluster, uint32_t expected, pl_arena *arena,
                       pl_error *error) {
  *builder = (pl_usage_builder){.cluster = cluster, .arena = arena, .rate_cap_Bps = INFINITY};
  if (expected >= MANY_USES && expected >= cluster->n_links / 8) {
    builder->weight_of = PL_TAKE(arena, double, cluster->n_links);
    return builder->weight_of != NULL ? PL_OK : pl_fail_memory(error, "the links of a collective");
  }
  builder->capacity = expected < LEAST_CAPACITY ? LEAST_CAPACITY : expected;
  builder->uses = pl_arena_take(arena, builder->capacity * sizeof *builder->uses, _Alignof(pl_link_use));
  return builder->uses != NULL ? PL_OK : pl_fail_memory(error, "the links of a collective");
}

static void swap(pl_link_use *a, pl_link_use *b) {
  pl_link_use kept = *a;
  *a = *b;
  *b = kept;
}

static void insert_each(pl_link_use *uses, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    pl_link_use use = uses[i];
    uint32_t at = i;
    for (; at > 0 && uses[at - 1].link > use.link; at--)
      uses[at] = uses[at - 1];
    uses[at] = use;
  }
}

/* By link, in whatever order within one. Some 25 uses at a time, hundreds of thousands of them in a search: qsort,
 * which calls for every comparison, was a twelfth of it. */
static void sort_by_link(pl_link_use *uses, uint32_t n) {
  while (n > FEW_USES) {
    uint32_t low = 0, high = n - 1, middle = n / 2;
    if (uses[middle].link < uses[low].link) swap(&uses[middle], &uses[low]);
    if (uses[high].link < uses[low].link) swap(&uses[high], &uses[low]);
    if (uses[high].link < uses[middle].link) swap(&uses[high], &uses[middle]);
    uint32_t pivot = uses[middle].link;
    for (;; low++, high--) { /* what is equal stops both, so that many equal ones are halved, too */
      while (uses[low].link < pivot)
        low++;
      while (uses[high].link > pivot)
        high--;
      if (low >= high) break;
      swap(&uses[low], &uses[high]);
    }
    if (low < n - low) {
      sort_by_link(uses, low);
      uses += low;
      n -= low;
    } else {
      sort_by_link(uses + low, n - low);
      n = low;
    }
  }
  insert_each(uses, n);
}

static void merge(pl_usage_builder *builder) {
  pl_link_use *uses = builder->uses;
  sort_by_link(uses, builder->n_uses);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < builder->n_uses; i++) {
    if (kept > 0 && uses[kept - 1].link == uses[i].link) {
      uses[kept - 1].weight += uses[i].weight;
    } else {
      uses[kept++] = uses[i];
    }
  }
  builder->n_uses = kept;
}

static pl_code make_room(pl_usage_builder *builder, pl_error *error) {
  merge(builder);
  if (builder->n_uses <= builder->capacity / 2) return PL_OK;
  pl_link_use *uses =
      pl_arena_take(builder->arena, 2 * (size_t)builder->capacity * sizeof *uses, _Alignof(pl_link_use));
  if (uses == NULL) return pl_fail_memory(error, "the links of a collective");
  memcpy(uses, builder->uses, builder->n_uses * sizeof *uses);
  builder->uses = uses;
  builder->capacity *= 2;
  return PL_OK;
}

static pl_code add_use(pl_usage_builder *builder, uint32_t link, double weight, pl_error *error) {
  if (builder->weight_of != NULL) {
    builder->weight_of[link] += weight;
    return PL_OK;
  }
  if (builder->n_uses == builder->capacity) PL_TRY(make_room(builder, error));
  builder->uses[builder->n_uses++] = (pl_link_use){.link = link, .weight = weight};
  return PL_OK;
}

static uint32_t crossings(const pl_route *route, uint32_t link) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < route->n_links; i++)
    count += route->links[i] == link;
  return count;
}

static void bound(pl_usage_builder *builder, const pl_route *route, uint32_t link) {
  double cap_Bps = builder->cluster->links[link].capacity_Bps / crossings(route, link);
  if (cap_Bps < builder->rate_cap_Bps) builder->rate_cap_Bps = cap_Bps;
}

pl_code pl_usage_hop(pl_usage_builder *builder, uint32_t source, uint32_t destination, uint32_t times,
                     pl_ticks *latency, pl_error *error) {
  pl_route route;
  PL_TRY(pl_cluster_route(builder->cluster, source, destination, &route, error));
  if (route.latency > builder->slowest_hop) builder->slowest_hop = route.latency;
  if (latency != NULL) *latency = route.latency;
  const pl_link *links = builder->cluster->links;
  double *weight_of = builder->weight_of, weight = times;
  for (uint32_t i = 0; i < route.n_links; i++) {
    uint32_t link = route.links[i];
    if (links[link].policy == PL_LINK_FATPIPE)
      bound(builder, &route, link);
    else if (weight_of != NULL)
      weight_of[link] += weight;
    else
      PL_TRY(add_use(builder, link, weight, error));
  }
  return PL_OK;
}

pl_code pl_usage_add(pl_usage_builder *builder, const pl_usage *usage, uint32_t shift, uint32_t times,
                     pl_error *error) {
  if (usage->slowest_hop > builder->slowest_hop) builder->slowest_hop = usage->slowest_hop;
  builder->rate_cap_Bps = fmin(builder->rate_cap_Bps, usage->rate_cap_Bps);
  for (uint32_t i = 0; i < usage->n_uses; i++)
    PL_TRY(add_use(builder, usage->uses[i].link + shift, times * usage->uses[i].weight, error));
  return PL_OK;
}

/* The array's links as a list. */
static pl_code list_uses(pl_usage_builder *builder, pl_error *error) {
  const double *weight_of = builder->weight_of;
  uint32_t n_links = builder->cluster->n_links, n = 0;
  for (uint32_t link = 0; link < n_links; link++)
    n += weight_of[link] > 0;
  pl_link_use *uses = pl_arena_take(builder->arena, n * sizeof *uses, _Alignof(pl_link_use));
  if (uses == NULL) return pl_fail_memory(error, "the links of a collective");
  builder->uses = uses;
  builder->n_uses = n;
  for (uint32_t link = 0; link < n_links; link++)
    if (weight_of[link] > 0) *uses++ = (pl_link_use){.link = link, .weight = weight_of[link]};
  return PL_OK;
}

pl_code pl_usage_end(pl_usage_builder *builder, pl_usage *usage, pl_error *error) {
  if (builder->weight_of != NULL)
    PL_TRY(list_uses(builder, error));
  else
    merge(builder);
  const pl_link_use *uses = builder->uses;
  const pl_link *links = builder->cluster->links;
  double rate_Bps = builder->rate_cap_Bps;
  for (uint32_t i = 0; i < builder->n_uses; i++) {
    double own_Bps = links[uses[i].link].capacity_Bps / uses[i].weight;
    rate_Bps = own_Bps < rate_Bps ? own_Bps : rate_Bps;
  }
  *usage = (pl_usage){.uses = uses,
                      .n_uses = builder->n_uses,
                      .rate_cap_Bps = builder->rate_cap_Bps,
                      .rate_Bps = rate_Bps,
                      .slowest_hop = builder->slowest_hop};
  return PL_OK;
}

/* ---- steps ---- */

pl_code pl_steps_begin(pl_step_builder *builder, double expected_steps, pl_arena *arena, pl_error *error) {
  *builder = (pl_step_builder){.arena = arena};
  if (!(expected_steps <= most_steps))
    return pl_fail(
        error, PL_UNSUPPORTED,
        "a chunked collective of %.0f steps is beyond the limit of %.0f; use fluid collectives or fewer chunks",
        expected_steps, most_steps);
  builder->step_capacity = (uint32_t)expected_steps + LEAST_CAPACITY;
  builder->dependency_capacity = 2 * builder->step_capacity;
  builder->steps = pl_arena_take(arena, builder->step_capacity * sizeof *builder->steps, _Alignof(pl_collective_step));
  builder->dependencies = pl_arena_take(arena, builder->dependency_capacity * sizeof(uint32_t), _Alignof(uint32_t));
  if (builder->steps == NULL || builder->dependencies == NULL)
    return pl_fail_memory(error, "the steps of a chunked collective");
  return PL_OK;
}

static void *doubled(pl_arena *arena, const void *old, uint32_t *capacity, size_t size, size_t align) {
  void *memory = pl_arena_take(arena, 2 * (size_t)*capacity * size, align);
  if (memory == NULL) return NULL;
  memcpy(memory, old, *capacity * size);
  *capacity *= 2;
  return memory;
}

pl_code pl_steps_single(pl_step_builder *builder, uint32_t source, uint32_t destination, double size_bytes,
                        pl_ticks latency, pl_error *error) {
  if (builder->n_steps == builder->step_capacity) {
    void *memory = doubled(builder->arena, builder->steps, &builder->step_capacity, sizeof *builder->steps,
                           _Alignof(pl_collective_step));
    if (memory == NULL) return pl_fail_memory(error, "the steps of a chunked collective");
    builder->steps = memory;
  }
  builder->steps[builder->n_steps++] = (pl_collective_step){.source = source,
                                                            .destination = destination,
                                                            .size_bytes = size_bytes,
                                                            .latency = latency,
                                                            .first_dependency = builder->n_dependencies};
  return PL_OK;
}

pl_code pl_steps_latency(pl_step_builder *builder, uint32_t source, uint32_t destination, pl_ticks latency,
                         pl_error *error) {
  builder->latency = latency;
  return pl_steps_single(builder, source, destination, 0, builder->latency_with_bytes ? 0 : latency, error);
}

pl_code pl_steps_bytes(pl_step_builder *builder, double size_bytes, uint32_t previous, uint32_t *step,
                       pl_error *error) {
  uint32_t latency = builder->n_steps - 1, source = builder->steps[latency].source;
  uint32_t destination = builder->steps[latency].destination;
  pl_ticks with_bytes = builder->latency_with_bytes ? builder->latency : 0;
  PL_TRY(pl_steps_single(builder, source, destination, size_bytes, with_bytes, error));
  if (step != NULL) *step = latency + 1;
  PL_TRY(pl_steps_after(builder, latency, error));
  return pl_steps_after(builder, previous, error);
}

pl_code pl_steps_after(pl_step_builder *builder, uint32_t step, pl_error *error) {
  if (step == PL_NONE) return PL_OK;
  if (builder->n_dependencies == builder->dependency_capacity) {
    void *memory = doubled(builder->arena, builder->dependencies, &builder->dependency_capacity, sizeof(uint32_t),
                           _Alignof(uint32_t));
    if (memory == NULL) return pl_fail_memory(error, "the steps of a chunked collective");
    builder->dependencies = memory;
  }
  PL_DEBUG_ASSERT(step + 1 < builder->n_steps);
  builder->dependencies[builder->n_dependencies++] = step;
  builder->steps[builder->n_steps - 1].n_dependencies++;
  return PL_OK;
}
