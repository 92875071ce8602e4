/* Chunked ops: every step of the algorithm is a point-to-point transfer on the route between two devices, between a
 * task that opens the op on all members' streams and one that closes it. Specs are made per pair of devices and latency
 * when first needed (a small open-addressing table). */
#include <string.h>

#include "workloads/compile/meeting.h"

typedef struct pair_slot {
  uint32_t source, destination, spec; /* spec PL_NONE: free */
} pair_slot;

struct pl_chunked_specs {
  pair_slot *slots;
  uint32_t n_slots; /* power of two */
  pl_transfer_spec *specs;
  pl_link_use **uses_of; /* per spec */
  uint32_t n_specs, capacity;
  double *link_capacity_Bps;
  uint8_t *link_policy;
};

static bool specs_resize(pl_meetings *meetings, pl_chunked_specs *own, uint32_t capacity) {
  pl_transfer_spec *specs = PL_TAKE(meetings->arena, pl_transfer_spec, capacity);
  pl_link_use **uses_of = PL_TAKE(meetings->arena, pl_link_use *, capacity);
  pair_slot *slots = PL_TAKE(meetings->arena, pair_slot, 2 * capacity);
  if (meetings->arena->failed) return false;
  for (uint32_t i = 0; i < 2 * capacity; i++)
    slots[i].spec = PL_NONE;
  for (uint32_t i = 0; i < own->n_slots; i++) {
    if (own->slots[i].spec == PL_NONE) continue;
    uint32_t at = (own->slots[i].source * 0x9e3779b1u ^ own->slots[i].destination * 0x85ebca77u) & (2 * capacity - 1);
    while (slots[at].spec != PL_NONE)
      at = (at + 1) & (2 * capacity - 1);
    slots[at] = own->slots[i];
  }
  if (own->n_specs > 0) {
    memcpy(specs, own->specs, own->n_specs * sizeof *specs);
    memcpy(uses_of, own->uses_of, own->n_specs * sizeof *uses_of);
  }
  own->specs = specs;
  own->uses_of = uses_of;
  own->slots = slots;
  own->n_slots = 2 * capacity;
  own->capacity = capacity;
  return true;
}

pl_chunked_specs *pl_chunked_specs_take(pl_meetings *meetings) {
  const pl_cluster *cluster = meetings->cluster;
  pl_chunked_specs *own = PL_TAKE(meetings->arena, pl_chunked_specs, 1);
  if (own == NULL || !specs_resize(meetings, own, 256)) return NULL;
  own->link_capacity_Bps = PL_TAKE(meetings->arena, double, cluster->n_links);
  own->link_policy = PL_TAKE(meetings->arena, uint8_t, cluster->n_links);
  if (meetings->arena->failed) return NULL;
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    own->link_capacity_Bps[l] = cluster->links[l].capacity_Bps;
    own->link_policy[l] = cluster->links[l].policy;
  }
  return own;
}

/* The step's route with the step's latency: the bytes of a message that cost none, and the latency of the message. */
static uint32_t spec_of(pl_meetings *meetings, const pl_collective_step *step) {
  pl_chunked_specs *own = meetings->chunked;
  uint32_t source = step->source, destination = step->destination;
  uint32_t at = (source * 0x9e3779b1u ^ destination * 0x85ebca77u) & (own->n_slots - 1);
  for (; own->slots[at].spec != PL_NONE; at = (at + 1) & (own->n_slots - 1))
    if (own->slots[at].source == source && own->slots[at].destination == destination &&
        own->specs[own->slots[at].spec].latency == step->latency)
      return own->slots[at].spec;
  if (own->n_specs == own->capacity) {
    if (!specs_resize(meetings, own, 2 * own->capacity)) return PL_NONE;
    return spec_of(meetings, step);
  }
  uint32_t spec = own->n_specs;
  meetings->code = pl_route_spec(meetings->cluster, meetings->options->sharing, source, destination, meetings->arena,
                                 &own->uses_of[spec], &own->specs[spec], meetings->error);
  if (meetings->code != PL_OK) return PL_NONE;
  own->specs[spec].latency = step->latency;
  own->slots[at] = (pair_slot){source, destination, spec};
  own->n_specs++;
  return spec;
}

/* The steps' tasks; false: no memory, or a route is missing. `is_last` marks those that nothing waits for. */
static bool emit_steps(pl_meetings *meetings, const pl_chunked_collective *chunked, uint32_t open,
                       const pl_task_text *text, uint32_t *tasks, bool *is_last) {
  for (uint32_t i = 0; i < chunked->n_steps; i++) {
    const pl_collective_step *step = &chunked->steps[i];
    uint32_t spec = spec_of(meetings, step);
    if (spec == PL_NONE) return false;
    tasks[i] = pl_graph_builder_transfer(meetings->builder, spec, step->size_bytes, text->category, NULL, 0, text->name,
                                         text->microbatch);
    is_last[i] = true;
    if (step->n_dependencies == 0) pl_graph_builder_edge(meetings->builder, open, tasks[i]);
    for (uint32_t d = 0; d < step->n_dependencies; d++) {
      uint32_t before = chunked->dependencies[step->first_dependency + d];
      pl_graph_builder_edge(meetings->builder, tasks[before], tasks[i]);
      is_last[before] = false;
    }
  }
  return true;
}

pl_meeting pl_chunked_emit(pl_meetings *meetings, const pl_group_class *class, uint32_t op, const pl_task_text *text) {
  const pl_family *family = &meetings->program->families[class->family];
  const uint32_t *streams = &meetings->streams[class->first_participant];
  pl_meeting made = {0, 0};
  pl_chunked_collective chunked;
  if (meetings->code != PL_OK || meetings->arena->failed) return made;
  meetings->code = pl_collective_chunked(
      class->channels, family->ops[op].kind,
      pl_communication_bytes(meetings->cluster, meetings->program, class->family, class->group, op),
      meetings->options->chunks, meetings->arena, &chunked, meetings->error);
  if (meetings->code != PL_OK) return made;
  uint32_t *tasks = PL_TAKE(meetings->arena, uint32_t, chunked.n_steps);
  bool *is_last = PL_TAKE(meetings->arena, bool, chunked.n_steps);
  if (meetings->arena->failed) return made;
  made.open = pl_graph_builder_delay(meetings->builder, 0, text->category, streams, class->n_participants, text->name,
                                     text->microbatch);
  if (!emit_steps(meetings, &chunked, made.open, text, tasks, is_last)) return made;
  made.close = pl_graph_builder_delay(meetings->builder, 0, text->category, streams, class->n_participants, text->name,
                                      text->microbatch);
  pl_graph_builder_edge(meetings->builder, made.open, made.close);
  for (uint32_t i = 0; i < chunked.n_steps; i++)
    if (is_last[i]) pl_graph_builder_edge(meetings->builder, tasks[i], made.close);
  return made;
}

void pl_chunked_table(const pl_meetings *meetings, pl_transfer_table *table) {
  pl_chunked_specs *own = meetings->chunked;
  uint32_t n_uses = 0;
  for (uint32_t i = 0; i < own->n_specs; i++)
    n_uses += own->specs[i].n_uses;
  pl_link_use *uses = PL_TAKE(meetings->arena, pl_link_use, n_uses);
  if (uses == NULL) return;
  n_uses = 0;
  for (uint32_t i = 0; i < own->n_specs; i++) {
    if (own->specs[i].n_uses > 0) memcpy(&uses[n_uses], own->uses_of[i], own->specs[i].n_uses * sizeof *uses);
    own->specs[i].first_use = n_uses;
    n_uses += own->specs[i].n_uses;
  }
  *table = (pl_transfer_table){.link_capacity_Bps = own->link_capacity_Bps,
                               .link_policy = own->link_policy,
                               .n_links = meetings->cluster->n_links,
                               .specs = own->specs,
                               .n_specs = own->n_specs,
                               .uses = uses,
                               .n_uses = n_uses};
}
