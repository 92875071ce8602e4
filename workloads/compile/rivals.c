/* See workloads/compile/rivals.h. */
#include "workloads/compile/rivals.h"

#include "workloads/compile/host_floor.h"

typedef struct ownership {
  const pl_cluster *cluster;
  const pl_program *program;
  const uint32_t *marks; /* NULL: none */
  pl_group_class *classes;
  pl_communication_plan *plan;
  uint32_t *owner; /* per link class: the tensor group class on it, PL_NONE = none, SEVERAL = more than one */
} ownership;

#define SEVERAL (PL_NONE - 1)

static const pl_family *family_of(const ownership *state, uint32_t class) {
  return &state->program->families[state->classes[class].family];
}

static const pl_transfer_spec *spec_of(const ownership *state, uint32_t class, uint32_t op) {
  return &state->plan->table.specs[state->classes[class].first_op + op];
}

static void claim_links(ownership *state, uint32_t class) {
  for (uint32_t op = 0; op < family_of(state, class)->n_ops; op++) {
    const pl_transfer_spec *spec = spec_of(state, class, op);
    for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++) {
      uint32_t *owner = &state->owner[state->plan->table.uses[use].link];
      *owner = *owner == PL_NONE || *owner == class ? class : SEVERAL;
    }
  }
}

static bool owns_its_links(const ownership *state, uint32_t class) {
  for (uint32_t op = 0; op < family_of(state, class)->n_ops; op++) {
    const pl_transfer_spec *spec = spec_of(state, class, op);
    for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++)
      if (state->owner[state->plan->table.uses[use].link] != class) return false;
  }
  return true;
}

/* Whether the collectives of a slot take as long alone for one device class as for another: how late the host is
 * depends on it (workloads/compile/host_floor.h). */
static bool are_equally_long(const ownership *state, uint32_t a, uint32_t b, int slot) {
  const pl_communication_plan *plan = state->plan;
  uint32_t of_a = plan->device_classes[a].group_class[slot], of_b = plan->device_classes[b].group_class[slot];
  if (of_a == of_b || of_a == PL_NONE || of_b == PL_NONE) return of_a == of_b;
  const pl_lowered_op *ops_a = &plan->ops[state->classes[of_a].first_op];
  const pl_lowered_op *ops_b = &plan->ops[state->classes[of_b].first_op];
  for (uint32_t op = 0; op < family_of(state, of_a)->n_ops; op++)
    if (ops_a[op].alone_ticks != ops_b[op].alone_ticks) return false;
  return true;
}

/* All members run one stage's program, so those of one device profile and one mark take the same time for it, and their
 * hosts are equally late; unless they exchange heads in groups of unlike ways, and come back from there one by one. */
static bool are_alike(const ownership *state, uint32_t class) {
  const pl_communication_plan *plan = state->plan;
  const pl_participant *members = &plan->participants[state->classes[class].first_participant];
  const pl_device *devices = state->cluster->devices;
  uint32_t first = members[0].device_class, profile = devices[plan->device_classes[first].device].profile;
  bool has_host = !pl_host_is_in_time(state->program);
  for (uint32_t i = 1; i < state->classes[class].n_participants; i++) {
    uint32_t other = members[i].device_class;
    uint32_t device = plan->device_classes[other].device;
    if (devices[device].profile != profile) return false;
    if (plan->device_classes[other].group_class[PL_SLOT_HEADS] !=
        plan->device_classes[first].group_class[PL_SLOT_HEADS])
      return false;
    if (state->marks != NULL && state->marks[device] != state->marks[plan->device_classes[first].device]) return false;
    if (has_host && (!are_equally_long(state, first, other, PL_SLOT_CONTEXT) ||
                     !are_equally_long(state, first, other, PL_SLOT_EXPERT)))
      return false;
  }
  return true;
}

/* Devices whose segments `spec` disturbs, each once, appended to `rivals` when it is not NULL. */
static uint32_t disturbed_by(const ownership *state, const pl_transfer_spec *spec, uint32_t *seen, uint32_t stamp,
                             uint32_t *rivals) {
  uint32_t n = 0;
  for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++) {
    uint32_t class = state->owner[state->plan->table.uses[use].link];
    if (class >= SEVERAL || !state->classes[class].stays_inside) continue;
    uint32_t device = state->plan->participants[state->classes[class].first_participant].device_class;
    if (seen[device] == stamp) continue;
    seen[device] = stamp;
    if (rivals != NULL) rivals[n] = device;
    n++;
  }
  return n;
}

static pl_code list_rivals(ownership *state, pl_arena *arena, pl_error *error) {
  pl_communication_plan *plan = state->plan;
  uint32_t *offset = PL_TAKE(arena, uint32_t, plan->table.n_specs + 1);
  uint32_t *seen = PL_TAKE(arena, uint32_t, plan->n_device_classes);
  if (arena->failed) return pl_fail_memory(error, "the rivals");
  uint32_t stamp = 0;
  for (uint32_t class = 0; class < plan->n_group_classes; class ++)
    for (uint32_t op = 0; op < family_of(state, class)->n_ops; op++) {
      uint32_t spec = state->classes[class].first_op + op;
      bool inside = state->classes[class].stays_inside;
      offset[spec + 1] = inside ? 0 : disturbed_by(state, &plan->table.specs[spec], seen, ++stamp, NULL);
    }
  for (uint32_t spec = 0; spec < plan->table.n_specs; spec++)
    offset[spec + 1] += offset[spec];
  uint32_t *rivals = PL_TAKE(arena, uint32_t, offset[plan->table.n_specs]);
  if (rivals == NULL) return pl_fail_memory(error, "the rivals");
  for (uint32_t spec = 0; spec < plan->table.n_specs; spec++)
    if (offset[spec + 1] > offset[spec])
      disturbed_by(state, &plan->table.specs[spec], seen, ++stamp, &rivals[offset[spec]]);
  plan->rival_offset = offset;
  plan->rivals = rivals;
  return PL_OK;
}

pl_code pl_rivals_find(const pl_cluster *cluster, const pl_program *program, const uint32_t *marks,
                       pl_group_class *group_classes, pl_communication_plan *plan, pl_arena *arena, pl_error *error) {
  ownership state = {.cluster = cluster, .program = program, .marks = marks, .classes = group_classes, .plan = plan};
  state.owner = PL_TAKE(arena, uint32_t, plan->table.n_links);
  if (state.owner == NULL) return pl_fail_memory(error, "the owners of the links");
  for (uint32_t link = 0; link < plan->table.n_links; link++)
    state.owner[link] = PL_NONE;
  for (uint32_t class = 0; class < plan->n_group_classes; class ++)
    if (family_of(&state, class)->kind == PL_FAMILY_TENSOR) claim_links(&state, class);
  /* Where a pass runs beside another nothing stays inside: what a segment waits for, and what disturbs it, may be the
   * other pass's, and then its parts as tasks of their own tell another story. */
  bool may_stay = !pl_strategy_hides_tokens(program->strategy);
  for (uint32_t class = 0; class < plan->n_group_classes; class ++)
    group_classes[class].stays_inside = may_stay && family_of(&state, class)->kind == PL_FAMILY_TENSOR &&
                                        are_alike(&state, class) && owns_its_links(&state, class);
  return list_rivals(&state, arena, error);
}
