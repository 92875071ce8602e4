/* Who communicates with whom, and what: see workloads/program/program_making.h. */
#include "workloads/program/program_making.h"

#include <string.h>

enum { FIRST_OPS = 8 };

const pl_block_program *pl_making_block(const pl_program *program, int32_t block) {
  return &program->blocks[pl_model_block_class(program->model, block)];
}

static bool grow_ops(pl_program_making *state, uint32_t family) {
  pl_family *own = &state->families[family];
  uint32_t capacity = own->n_ops == 0 ? FIRST_OPS : 2 * own->n_ops;
  pl_communication *bigger = pl_arena_take(state->arena, capacity * sizeof *bigger, _Alignof(pl_communication));
  if (bigger == NULL) return false;
  if (own->n_ops > 0) memcpy(bigger, own->ops, own->n_ops * sizeof *bigger);
  own->ops = state->ops[family] = bigger;
  state->capacity[family] = capacity;
  return true;
}

/* The op's index in the family; equal ops are one. Few as a rule: sizes come from six block kinds and sums over a
 * chunk; but uneven chunks may all have different sums. A failed arena is found at the end of pl_program_take. */
uint32_t pl_making_op(pl_program_making *state, uint32_t family, pl_collective_kind kind, double size_bytes) {
  pl_family *own = &state->families[family];
  for (uint32_t i = 0; i < own->n_ops; i++)
    if (own->ops[i].kind == kind && own->ops[i].size_bytes == size_bytes) return i;
  if (own->n_ops == state->capacity[family] && !grow_ops(state, family)) return 0;
  state->ops[family][own->n_ops] = (pl_communication){kind, size_bytes};
  return own->n_ops++;
}

pl_family_start *pl_making_note_starts(pl_program_making *state) {
  uint32_t n = state->program->n_families;
  pl_family_start *starts = pl_arena_take(state->arena, n * sizeof *starts, _Alignof(pl_family_start));
  for (uint32_t f = 0; starts != NULL && f < n; f++)
    starts[f] = (pl_family_start){state->ops[f], state->families[f].n_ops, state->capacity[f]};
  return starts;
}

void pl_making_start_again(pl_program_making *state, const pl_family_start *starts) {
  for (uint32_t f = 0; f < state->program->n_families; f++) {
    const pl_family_start *start = &starts[f];
    state->families[f].ops = state->ops[f] = start->ops;
    state->families[f].n_ops = start->n_ops;
    state->capacity[f] = start->capacity;
  }
}

bool pl_program_has_expert_data(const pl_model *model, const pl_strategy *strategy) {
  bool apart = strategy->tmp > 1 && !pl_strategy_cuts_experts(strategy);
  return model->moe.n_experts > 0 && (apart || pl_strategy_ep(strategy) > 1);
}

double pl_program_shards(const pl_program *program, bool experts) {
  const pl_strategy *strategy = program->strategy;
  return experts && pl_program_has_expert_data(program->model, strategy) ? pl_strategy_expert_replicas(strategy)
                                                                         : pl_strategy_sharers(strategy);
}

pl_family_kind pl_instruction_family(const pl_instruction *instruction) {
  if (instruction->across) return PL_FAMILY_COPIES;
  return instruction->experts ? PL_FAMILY_EXPERT_DATA : PL_FAMILY_DATA;
}

int32_t pl_program_receiver(const pl_program *program, pl_family_kind kind, int32_t stage) {
  int32_t pp = program->strategy->pp;
  return kind == PL_FAMILY_DOWN || kind == PL_FAMILY_UP_2 ? (stage + 1) % pp : (stage + pp - 1) % pp;
}

int32_t pl_program_sender(const pl_program *program, pl_family_kind kind, int32_t stage) {
  bool to_next = kind == PL_FAMILY_DOWN || kind == PL_FAMILY_UP_2;
  return pl_program_receiver(program, to_next ? PL_FAMILY_UP : PL_FAMILY_DOWN, stage);
}

pl_family_kind pl_program_wire(const pl_strategy *strategy, bool backward, int32_t chunk) {
  if (chunk == 1 && pl_strategy_is_v(strategy)) return backward ? PL_FAMILY_UP_2 : PL_FAMILY_DOWN_2;
  return backward ? PL_FAMILY_UP : PL_FAMILY_DOWN;
}

static int32_t stage_of_block(const pl_program *program, int32_t block) {
  int32_t chunk = 0;
  while (program->strategy->boundary[chunk + 1] <= block)
    chunk++;
  return pl_strategy_stage_of(program->strategy, chunk);
}

static int32_t head_stage(const pl_program *program) {
  return stage_of_block(program, pl_model_n_blocks(program->model) - 2);
}

bool pl_making_splits_tied_embedding(const pl_program *program) {
  return program->model->ends.tied_embeddings && head_stage(program) != 0;
}

/* Layers of unlike blocks have models of their own. */
static int32_t head_sharers(const pl_program *program) {
  const pl_model *model = program->model;
  int32_t sharers = model->unlike.parts == NULL ? pl_model_head_sharers(model, program->strategy->tmp) : 1;
  for (int32_t i = 0; model->unlike.parts != NULL && i < model->unlike.n_parts; i++) {
    const pl_model *part = model->unlike.parts[i].model;
    int32_t own = part != NULL ? pl_model_head_sharers(part, program->strategy->tmp) : 1;
    sharers = own > sharers ? own : sharers;
  }
  return sharers;
}

static bool family_exists(const pl_program *program, pl_family_kind kind, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  bool is_v = pl_strategy_is_v(strategy), ring = strategy->vpp > 1 && !is_v;
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return strategy->tmp > 1;
  case PL_FAMILY_HEADS:
    return head_sharers(program) > 1 && head_sharers(program) < strategy->tmp;
  case PL_FAMILY_DATA:
    return pl_strategy_sharers(strategy) > 1;
  case PL_FAMILY_COPIES:
    return pl_strategy_copies(strategy) > 1;
  case PL_FAMILY_CONTEXT:
    return strategy->cp > 1;
  case PL_FAMILY_EXPERT:
    return strategy->ep > 1;
  case PL_FAMILY_EXPERT_DATA:
    return pl_program_has_expert_data(program->model, strategy) && pl_strategy_expert_replicas(strategy) > 1;
  case PL_FAMILY_DOWN:
    return strategy->pp > 1 && (ring || stage < strategy->pp - 1);
  case PL_FAMILY_UP:
    return strategy->pp > 1 && (ring || stage > 0);
  case PL_FAMILY_DOWN_2:
    return is_v && stage > 0;
  case PL_FAMILY_UP_2:
    return is_v && stage < strategy->pp - 1;
  case PL_FAMILY_EMBEDDING:
    return stage == 0 && pl_making_splits_tied_embedding(program);
  case PL_FAMILY_KIND_COUNT:
    break;
  }
  return false;
}

/* Group number and position of the device of replica r and tensor rank t, whose flat index is r * tmp + t. */
typedef struct seat {
  int32_t group, position;
} seat;

static seat seat_of(const pl_program *program, pl_family_kind kind, int32_t r, int32_t t) {
  const pl_strategy *strategy = program->strategy;
  int32_t flat = r * strategy->tmp + t, cp = pl_strategy_cp(strategy), ep = pl_strategy_ep(strategy);
  int32_t sharers = pl_strategy_sharers(strategy), tmp = strategy->tmp;
  bool cuts = pl_strategy_cuts_experts(strategy);
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return (seat){r, t};
  case PL_FAMILY_HEADS:
    return (seat){flat / head_sharers(program), flat % head_sharers(program)};
  case PL_FAMILY_DATA:
    return (seat){r / sharers * strategy->tmp + t, r % sharers};
  case PL_FAMILY_COPIES:
    return (seat){r % sharers * strategy->tmp + t, r / sharers};
  case PL_FAMILY_CONTEXT:
    return (seat){r / cp * strategy->tmp + t, r % cp};
  case PL_FAMILY_EXPERT:
    return cuts ? (seat){r / ep * tmp + t, r % ep} : (seat){flat / ep, flat % ep};
  case PL_FAMILY_EXPERT_DATA:
    return cuts ? (seat){r % ep * tmp + t, r / ep} : (seat){flat % ep, flat / ep};
  default:
    return (seat){flat, 0};
  }
}

int32_t pl_program_group(const pl_program *program, pl_family_kind kind, int32_t replica, int32_t tensor) {
  return seat_of(program, kind, replica, tensor).group;
}

static int32_t group_size(const pl_program *program, pl_family_kind kind) {
  const pl_strategy *strategy = program->strategy;
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return strategy->tmp;
  case PL_FAMILY_HEADS:
    return head_sharers(program);
  case PL_FAMILY_DATA:
    return pl_strategy_sharers(strategy);
  case PL_FAMILY_COPIES:
    return pl_strategy_copies(strategy);
  case PL_FAMILY_CONTEXT:
    return pl_strategy_cp(strategy);
  case PL_FAMILY_EXPERT:
    return pl_strategy_ep(strategy);
  case PL_FAMILY_EXPERT_DATA:
    return pl_strategy_expert_replicas(strategy);
  default:
    return 2;
  }
}

static bool is_pair(pl_family_kind kind) {
  return pl_family_is_wire(kind) || kind == PL_FAMILY_EMBEDDING;
}

/* Where a pair's other end is. */
static int32_t other_stage(const pl_program *program, const pl_family *family) {
  return family->kind == PL_FAMILY_EMBEDDING ? head_stage(program)
                                             : pl_program_receiver(program, family->kind, family->stage);
}

/* The member that (r, t) is of its group, and the other of a pair. */
static void seat_member(const pl_program *program, const pl_rank_strides *strides, const pl_family *family,
                        int32_t other, int32_t r, int32_t t, uint32_t *group, int32_t position) {
  const pl_strategy *strategy = program->strategy;
  group[position] = pl_strategy_device_of_rank(strategy, pl_rank_at(strides, family->stage, r, t));
  if (is_pair(family->kind)) group[1] = pl_strategy_device_of_rank(strategy, pl_rank_at(strides, other, r, t));
}

static void fill_members(const pl_program *program, pl_family *family, uint32_t *members) {
  const pl_strategy *strategy = program->strategy;
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  int32_t other = other_stage(program, family);
  for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
    for (int32_t t = 0; t < strategy->tmp; t++) {
      const seat own = seat_of(program, family->kind, r, t);
      seat_member(program, &strides, family, other, r, t, &members[(size_t)own.group * family->group_size],
                  own.position);
    }
}

void pl_program_group_members(const pl_program *program, const pl_family *family, int32_t group, uint32_t *members) {
  const pl_strategy *strategy = program->strategy;
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  int32_t other = other_stage(program, family);
  for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
    for (int32_t t = 0; t < strategy->tmp; t++) {
      const seat own = seat_of(program, family->kind, r, t);
      if (own.group == group) seat_member(program, &strides, family, other, r, t, members, own.position);
    }
}

uint32_t pl_program_group_neighbours(const pl_cluster *cluster, const pl_program *program, const pl_family *family) {
  enum { NODES_MOST = 8 };
  const pl_strategy *strategy = program->strategy;
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  uint32_t n = 0, seen = 0, node = PL_NONE, looked_at = 0;
  if (is_pair(family->kind)) return 1;
  for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
    for (int32_t t = 0; t < strategy->tmp; t++) {
      uint32_t device = pl_strategy_device_of_rank(strategy, pl_rank_at(&strides, family->stage, r, t));
      if (node == PL_NONE) node = cluster->devices[device].node; /* rank (0, 0) is in the first group */
      bool beside = cluster->devices[device].node == node;
      n += beside && seat_of(program, family->kind, r, t).group == 0;
      seen += beside;
      uint32_t of_node = cluster->nodes[node].n_devices;
      if (seen == of_node || ++looked_at == NODES_MOST * of_node) return n;
    }
  return n;
}

static pl_code make_family(pl_program_making *state, pl_family_kind kind, int32_t stage) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  uint32_t index = program->n_families++, n_ranks = (uint32_t)(pl_strategy_replicas(strategy) * strategy->tmp);
  pl_family *family = &state->families[index];
  *family = (pl_family){.kind = kind, .stage = stage, .group_size = (uint32_t)group_size(program, kind)};
  state->ops[index] = NULL;
  state->capacity[index] = 0;
  family->n_groups = is_pair(kind) ? n_ranks : n_ranks / family->group_size;
  if (!state->outline) {
    uint32_t *members = PL_TAKE(state->arena, uint32_t, (size_t)family->n_groups * family->group_size);
    if (members == NULL) return pl_fail_memory(state->error, "the communicators");
    fill_members(program, family, members);
    family->members = members;
  }
  program->family_of[stage][kind] = index;
  if (kind == PL_FAMILY_EMBEDDING) program->family_of[head_stage(program)][kind] = index;
  return PL_OK;
}

pl_code pl_making_families(pl_program_making *state) {
  pl_program *program = state->program;
  uint32_t most = (uint32_t)program->strategy->pp * PL_FAMILY_KIND_COUNT;
  state->families = pl_arena_take(state->arena, most * sizeof *state->families, _Alignof(pl_family));
  state->ops = pl_arena_take(state->arena, most * sizeof *state->ops, _Alignof(pl_communication *));
  state->capacity = pl_arena_take(state->arena, most * sizeof *state->capacity, _Alignof(uint32_t));
  program->family_of =
      pl_arena_take(state->arena, sizeof(uint32_t[PL_FAMILY_KIND_COUNT]) * (size_t)program->strategy->pp, 8);
  if (state->arena->failed) return pl_fail_memory(state->error, "the communicators");
  memset(program->family_of, 0xff, sizeof(uint32_t[PL_FAMILY_KIND_COUNT]) * (size_t)program->strategy->pp);
  for (int32_t stage = 0; stage < program->strategy->pp; stage++)
    for (int kind = 0; kind < PL_FAMILY_KIND_COUNT; kind++)
      if (family_exists(program, (pl_family_kind)kind, stage)) PL_TRY(make_family(state, (pl_family_kind)kind, stage));
  program->families = state->families;
  return PL_OK;
}

pl_family_kind pl_program_family_kind(pl_group_role role) {
  return role == PL_GROUP_CONTEXT  ? PL_FAMILY_CONTEXT
         : role == PL_GROUP_EXPERT ? PL_FAMILY_EXPERT
         : role == PL_GROUP_HEADS  ? PL_FAMILY_HEADS
                                   : PL_FAMILY_TENSOR;
}

void pl_making_block_collectives(pl_program_making *state, int32_t stage, const pl_block_program *program) {
  const pl_op_list lists[2] = {program->forward, program->backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++) {
      const pl_op *op = &lists[pass].ops[i];
      if (op->kind != PL_OP_COLLECTIVE) continue;
      uint32_t family = state->program->family_of[stage][pl_program_family_kind((pl_group_role)op->group)];
      if (family != PL_NONE) pl_making_op(state, family, (pl_collective_kind)op->collective, op->size_bytes);
    }
}
