/* See workloads/compile/ir_transfers.h. */
#include "workloads/compile/ir_transfers.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/host_memory.h"

typedef struct known_group {
  pl_collective_group *group;
  const uint32_t *members;
  uint32_t n;
  bool sends_alone;
} known_group;

typedef struct known_spec {
  const known_group *group;
  pl_collective_kind kind;
  double size_bytes, progress_bytes;
  uint32_t spec;
} known_spec;

void pl_ir_transfers_init(pl_ir_transfers *transfers, const pl_cluster *cluster, const pl_collective_options *options,
                          pl_arena *arena) {
  *transfers = (pl_ir_transfers){.cluster = cluster, .options = options, .arena = arena};
}

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "the transfers of the program");
}

static uint64_t hash_of(const uint32_t *members, uint32_t n) {
  uint64_t hash = pl_hash_word(1, n);
  for (uint32_t i = 0; i < n; i++)
    hash = pl_hash_word(hash, members[i]);
  return hash;
}

static bool knows_group(const pl_ir_transfers *own, const uint32_t *members, uint32_t n, bool sends_alone,
                        const known_group **found) {
  uint32_t probe = 0;
  uint64_t hash = hash_of(members, n);
  const known_group *known;
  while ((known = (const known_group *)pl_hash_index_find(&own->groups, hash, &probe)) != NULL)
    if (known->n == n && known->sends_alone == sends_alone &&
        memcmp(known->members, members, n * sizeof(*members)) == 0) {
      *found = known;
      return true;
    }
  return false;
}

static pl_code add_group(pl_ir_transfers *own, const uint32_t *members, uint32_t n, bool sends_alone,
                         const known_group **found, pl_error *error) {
  pl_collective_options options = *own->options;
  options.sends_alone = sends_alone;
  known_group *made = PL_TAKE(own->arena, known_group, 1);
  const uint32_t *copy = PL_COPY(own->arena, uint32_t, members, n);
  if (made == NULL || copy == NULL) return no_memory(error);
  *made = (known_group){.members = copy, .n = n, .sends_alone = sends_alone};
  PL_TRY(pl_collective_group_take(own->cluster, copy, n, &options, own->arena, &made->group, error));
  if (!pl_hash_index_put(&own->groups, hash_of(members, n), made, own->arena)) return no_memory(error);
  *found = made;
  return PL_OK;
}

/* The array with room for `more` behind the `n`; itself where there is no memory, which the arena knows. */
static void *widened(pl_ir_transfers *own, void *array, uint32_t n, uint32_t more, size_t size, uint32_t *room) {
  if (more <= *room - n) return array;
  void *wider = pl_arena_take(own->arena, ((size_t)n + more) * size, _Alignof(max_align_t));
  if (wider == NULL) return array;
  if (n > 0) memcpy(wider, array, n * size);
  *room = n + more;
  return wider;
}

bool pl_ir_transfers_expect(pl_ir_transfers *own, uint32_t n) {
  enum { USES = 4 }; /* of a transfer, at least */
  own->specs = (pl_transfer_spec *)widened(own, own->specs, own->n_specs, n, sizeof *own->specs, &own->room_specs);
  own->sent = (pl_ir_sent *)widened(own, own->sent, own->n_specs, n, sizeof *own->sent, &own->room_sent);
  own->uses = (pl_link_use *)widened(own, own->uses, own->n_uses, USES * n, sizeof *own->uses, &own->room_uses);
  return !own->arena->failed;
}

static pl_code add_spec(pl_ir_transfers *own, const pl_fluid_collective *fluid, const pl_ir_sent *is, uint32_t *spec,
                        pl_error *error) {
  uint32_t n_uses = fluid->spec.n_uses;
  void *specs = pl_arena_grown(own->arena, own->specs, own->n_specs, 1, sizeof(pl_transfer_spec), &own->room_specs);
  void *uses = pl_arena_grown(own->arena, own->uses, own->n_uses, n_uses, sizeof(pl_link_use), &own->room_uses);
  void *sent = pl_arena_grown(own->arena, own->sent, own->n_specs, 1, sizeof(pl_ir_sent), &own->room_sent);
  if (own->arena->failed) return no_memory(error);
  own->sent = (pl_ir_sent *)sent;
  own->sent[own->n_specs] = *is;
  own->specs = (pl_transfer_spec *)specs;
  own->uses = (pl_link_use *)uses;
  own->specs[own->n_specs] = fluid->spec;
  own->specs[own->n_specs].first_use = own->n_uses;
  if (n_uses > 0) memcpy(own->uses + own->n_uses, fluid->uses, n_uses * sizeof(pl_link_use));
  own->n_uses += n_uses;
  *spec = own->n_specs++;
  return PL_OK;
}

/* The devices of the cluster, taken if they are others; NULL: no memory. */
static const uint32_t *placed(const pl_ir_transfers *own, const uint32_t *members, uint32_t n) {
  if (own->places == NULL) return members;
  uint32_t *made = PL_TAKE(own->arena, uint32_t, n + 1);
  for (uint32_t i = 0; i < n && made != NULL; i++)
    made[i] = own->places[members[i]];
  return made;
}

double pl_ir_transfers_bytes(const pl_ir_transfers *own, bool of_tokens, const uint32_t *members, uint32_t n,
                             double size_bytes) {
  if (!of_tokens || own->tokens.k == 0) return size_bytes;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  const uint32_t *devices = placed(own, members, n);
  if (devices == NULL) return size_bytes; /* the arena knows */
  uint32_t n_nodes = pl_cluster_count_nodes(own->cluster, devices, n);
  pl_arena_release_to(own->arena, mark);
  return size_bytes * pl_token_copies_sent(&own->tokens, n_nodes);
}

pl_code pl_ir_transfers_collective(pl_ir_transfers *own, pl_collective_kind kind, const uint32_t *members, uint32_t n,
                                   double size_bytes, uint32_t *spec, double *progress_bytes, pl_error *error) {
  const known_group *group = NULL;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  const uint32_t *devices = placed(own, members, n);
  if (devices == NULL) return no_memory(error);
  bool sends_alone = kind == PL_SEND && n == 2, is_known = knows_group(own, devices, n, sends_alone, &group);
  if (is_known) pl_arena_release_to(own->arena, mark);
  if (!is_known) PL_TRY(add_group(own, devices, n, sends_alone, &group, error));
  uint64_t bits;
  memcpy(&bits, &size_bytes, sizeof(bits));
  uint64_t hash = pl_hash_word(pl_hash_word(pl_hash_word(2, (uint64_t)(uintptr_t)group), (uint64_t)kind), bits);
  uint32_t probe = 0;
  const known_spec *known;
  while ((known = (const known_spec *)pl_hash_index_find(&own->known, hash, &probe)) != NULL)
    if (known->group == group && known->kind == kind && known->size_bytes == size_bytes) {
      *spec = known->spec;
      *progress_bytes = known->progress_bytes;
      return PL_OK;
    }
  pl_fluid_collective fluid;
  PL_TRY(pl_collective_fluid(group->group, kind, size_bytes, own->arena, &fluid, error));
  PL_TRY(pl_fluid_collective_merge(own->cluster, own->arena, &fluid, error));
  const pl_ir_sent is = {.group = group->group,
                         .kind = kind,
                         .size_bytes = size_bytes,
                         .members = group->members,
                         .n_members = group->n,
                         .n_alike = 1};
  PL_TRY(add_spec(own, &fluid, &is, spec, error));
  *progress_bytes = fluid.progress_bytes;
  known_spec *made = PL_TAKE(own->arena, known_spec, 1);
  if (made == NULL) return no_memory(error);
  *made = (known_spec){group, kind, size_bytes, fluid.progress_bytes, *spec};
  return pl_hash_index_put(&own->known, hash, made, own->arena) ? PL_OK : no_memory(error);
}

pl_code pl_ir_transfers_host(pl_ir_transfers *own, uint32_t device, bool out, uint32_t *spec, pl_error *error) {
  uint32_t place = own->places != NULL ? own->places[device] : device;
  pl_fluid_collective flow = {0};
  pl_link_use *uses;
  if (own->host_specs == NULL) own->host_specs = PL_TAKE(own->arena, uint32_t, 2 * (size_t)own->cluster->n_devices);
  if (own->host_specs == NULL) return no_memory(error);
  uint32_t *known = &own->host_specs[2 * (size_t)place + (out ? 0 : 1)];
  *spec = *known - 1;
  if (*known != 0) return PL_OK;
  PL_TRY(pl_route_spec(own->cluster, own->options->sharing, out ? place : PL_HOST_MEMORY, out ? PL_HOST_MEMORY : place,
                       own->arena, &uses, &flow.spec, error));
  flow.spec.source = flow.spec.destination = PL_NONE;
  flow.uses = uses;
  uint32_t *member = PL_TAKE(own->arena, uint32_t, 1);
  if (member == NULL) return no_memory(error);
  *member = place;
  const pl_ir_sent is = {.group = NULL, .members = member, .n_members = 1, .n_alike = 1};
  PL_TRY(add_spec(own, &flow, &is, spec, error));
  *known = *spec + 1;
  return PL_OK;
}

double pl_ir_transfers_alone_s(const pl_ir_transfers *own, uint32_t spec, double progress_bytes) {
  const pl_transfer_spec *is = &own->specs[spec];
  double rate = is->rate_cap_Bps;
  for (uint32_t i = 0; i < is->n_uses; i++) {
    const pl_link_use *use = &own->uses[is->first_use + i];
    rate = fmin(rate, own->cluster->links[use->link].capacity_Bps / use->weight);
  }
  return pl_ticks_to_s(is->latency) + (progress_bytes > 0 ? progress_bytes / rate : 0);
}

pl_code pl_ir_transfers_table(const pl_ir_transfers *own, pl_transfer_table *table, pl_error *error) {
  double *capacity = PL_TAKE(own->arena, double, own->cluster->n_links);
  uint8_t *policy = PL_TAKE(own->arena, uint8_t, own->cluster->n_links);
  if (capacity == NULL || policy == NULL) return no_memory(error);
  for (uint32_t i = 0; i < own->cluster->n_links; i++) {
    capacity[i] = own->cluster->links[i].capacity_Bps;
    policy[i] = own->cluster->links[i].policy;
  }
  *table = (pl_transfer_table){.link_capacity_Bps = capacity,
                               .link_policy = policy,
                               .n_links = own->cluster->n_links,
                               .specs = own->specs,
                               .n_specs = own->n_specs,
                               .uses = own->uses,
                               .n_uses = own->n_uses};
  return PL_OK;
}
