/* The distributed program of one candidate: ONE instruction list per pipeline stage (its devices differ only in their
 * group roles), over block programs that are derived once per block kind. Collectives are ops. As small as the number
 * of stages, whatever the number of GPUs.
 *
 * A stage runs its schedule's steps; a step is a pass over the blocks of one chunk; a pass is a list of instructions:
 *   block     run the forward or backward ops of one block (tensor-parallel collectives are among its ops);
 *   reduce    start a gradient collective of the data-parallel group on the gradient stream;
 *   gather    start gathering a block's parameters (ZeRO-3) on the gradient stream;
 *   await     wait for the oldest gather not yet awaited;
 *   copy      copy what was gathered into place, one kernel per rank that it came from, or per rank and tensor;
 *   assemble  gather the activation that came in shares from the previous stage (its gradient, from the next one) over
 *             the tensor group. With job->split_sends and tensor parallelism without sequence parallelism each rank
 * sends 1/t of what all of them hold (Narayanan et al. 2021, section 4.1); with sequence parallelism it holds no more
 * than that. After the last step come the epilogue's instructions: what is left to reduce, the tied embedding's
 * all-reduce between first and last stage, the optimizer, and the gather of updated parameters (ZeRO-1 and 2).
 *
 * All communicators of one kind at one stage form a family: they run the same ops on different devices. Replica r of
 * a stage is context rank r % cp of data rank r / cp; rank t of its tensor group has the flat index r * tmp + t, by
 * which consecutive ep ranks share the experts of a layer, and those of equal index modulo ep hold the same ones.
 */
#ifndef PL_WORKLOADS_PROGRAM_H
#define PL_WORKLOADS_PROGRAM_H

#include <stdio.h>

#include "netmodel/collective/collective.h"
#include "workloads/ir/model.h"
#include "workloads/strategy/schedule.h"
#include "workloads/strategy/strategy.h"

typedef enum pl_family_kind {
  PL_FAMILY_TENSOR = 0,
  PL_FAMILY_DATA, /* ranks that hold the same weights: data and context ranks; those that share one copy of them */
  PL_FAMILY_DOWN, /* activations to the next stage; `stage` sends. With chunks the last stage sends to the first. */
  PL_FAMILY_UP,   /* activation gradients to the previous stage; `stage` sends */
  PL_FAMILY_EMBEDDING,   /* tied embedding: its stage and the head's */
  PL_FAMILY_CONTEXT,     /* ranks that share a sequence */
  PL_FAMILY_EXPERT,      /* ranks that share the experts of a layer */
  PL_FAMILY_EXPERT_DATA, /* ranks that hold the same experts; none where they are those that hold the same of all else
                          */
  PL_FAMILY_HEADS,       /* tensor ranks that share key-value heads, unless that are all of the tensor group */
  PL_FAMILY_COPIES,      /* ranks that hold the same share of different copies; none where there is one copy */
  /* Of the chunks on the way back of a V, which are on a wire of their own: activations to the previous stage, their
   * gradients to the next; `stage` sends. */
  PL_FAMILY_DOWN_2,
  PL_FAMILY_UP_2,
  PL_FAMILY_KIND_COUNT
} pl_family_kind;

typedef struct pl_communication {
  pl_collective_kind kind;
  double size_bytes; /* as netmodel/collective/collective.h defines it */
} pl_communication;

typedef struct pl_family {
  pl_family_kind kind;
  int32_t stage;
  uint32_t n_groups, group_size;
  const uint32_t *members; /* [n_groups][group_size] devices of the cluster */
  const pl_communication *ops;
  uint32_t n_ops;
} pl_family;

typedef enum pl_instruction_kind {
  PL_INSTRUCTION_BLOCK = 0,
  PL_INSTRUCTION_REDUCE,
  PL_INSTRUCTION_GATHER,
  PL_INSTRUCTION_AWAIT,
  PL_INSTRUCTION_COPY, /* what was gathered for `block` (pl_framework.copies_gathered), or rank by rank
                          (copies_per_rank); for block -1 what was updated, rank by rank and tensor by tensor
                          (copies_per_tensor) */
  PL_INSTRUCTION_ASSEMBLE,
  PL_INSTRUCTION_EMBEDDING,
  PL_INSTRUCTION_OPTIMIZER
} pl_instruction_kind;

typedef struct pl_instruction {
  uint8_t kind;
  bool backward;
  uint8_t half;  /* of the backward pass: 0 the whole, 1 for inputs, 2 for weights */
  bool across;   /* REDUCE: of the family of the copies */
  bool experts;  /* REDUCE, GATHER, AWAIT and COPY: of the expert-data family instead of the data family */
  int32_t block; /* of the model; BLOCK, GATHER and COPY */
  uint32_t op;   /* of the data (REDUCE, GATHER), tensor (ASSEMBLE) or embedding family */
} pl_instruction;

typedef struct pl_pass {
  const pl_instruction *instructions;
  uint32_t n;
} pl_pass;

typedef struct pl_stage_program {
  int32_t stage;
  const pl_schedule *schedules; /* program->n_schedules: what it does for each number of microbatches */
  /* per chunk of this stage (vpp entries) */
  const pl_pass *forward, *backward,
      *last_backward; /* last_backward: of the last microbatch, with the gradient reductions; the same instructions as
                         backward where there are none */
  /* The halves of the backward pass, where the schedule has them apart (NULL otherwise), and the second with the
   * reductions. */
  const pl_pass *inputs, *weights, *last_weights;
  /* What a chunk sends after forward / backward: op of this stage's family pl_program_wire; PL_NONE: nothing. */
  const uint32_t *send_down, *send_up;
  pl_pass epilogue;
  double
      parameters; /* held by one rank of the stage before ZeRO sharding (a tied head apart from its embedding counts) */
  double expert_parameters; /* of these: reduced and sharded over the expert-data family; 0 where there is none such */
  double largest_block_parameters; /* ZeRO-3's gather buffer */
  double largest_parameters;       /* of one tensor */
  uint32_t n_tensors;              /* of parameters */
} pl_stage_program;

/* ---- training state with Adam: one convention for memory, communication and time (workloads/PRECISION.md;
 * Rajbhandari et al. 2020, section 3.1) ---- */
typedef struct pl_training_state {
  double parameter_bytes, gradient_bytes, optimizer_bytes; /* per parameter, kept */
  double cast_bytes;           /* 16-bit copies of fp32 weights (PL_WEIGHTS_FP32): sharded where the weights are */
  double gathered_bytes;       /* of a parameter as it is computed with and as it travels */
  double reduced_bytes;        /* of a gradient as it travels */
  double extra_gradient_bytes; /* kept beside the gradients: copies in buckets, 16-bit ones of the last pass */
  double pass_gradient_bytes;  /* from the backward pass of its block to the end of that of the microbatch: 16-bit
                                  gradients that are added then */
  double update_bytes;         /* per parameter that the optimizer owns, while it runs: its fp32 gradient */
  double update_traffic_bytes; /* read and written by the optimizer, per parameter that it owns */
  double whole_traffic_bytes;  /* read and written in a step per parameter that is held, around the reduction */
} pl_training_state;
/* With data parallelism or without: buckets are only there to be reduced. */
pl_training_state pl_training_state_of(const pl_job *job, int32_t dp);

typedef struct pl_program {
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  int32_t n_microbatches; /* of the data-parallel replica that has most */
  /* Replicas with as many microbatches share a schedule: one, or as many as the split has numbers. */
  int32_t n_schedules;
  const int32_t *schedule_of;               /* per data rank */
  const pl_block_program *blocks;           /* by pl_model_block_class */
  const struct pl_measured_block *measured; /* blocks as the job's op profile measured them */
  uint32_t n_measured;
  const pl_stage_program *stages; /* pp */
  const pl_family *families;
  uint32_t n_families;
  pl_training_state training; /* of its ranks */
  /* Per stage the family of each kind as seen by its devices; PL_NONE = none. */
  uint32_t (*family_of)[PL_FAMILY_KIND_COUNT];
} pl_program;

/* `strategy` has boundaries and passed pl_strategy_check. Memory from `arena`. O(stages * (blocks + steps)). */
pl_code pl_program_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_arena *arena,
                        pl_program *program, pl_error *error);

/* The same of blocks (by class) that somebody has taken, of the strategy's shard and in memory that outlives the
 * program.
 */
pl_code pl_program_of_blocks_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                  const pl_block_program *blocks, pl_arena *arena, pl_program *program,
                                  pl_error *error);
/* The program without what is large: families have no members, stages no schedules; everything else is the same.
 * `blocks` (by class) are those of the strategy's shard, in memory that outlives the program. What bounds are computed
 * from. In two steps: after the first the program says what stages hold and send, enough for their memory; the second
 * writes the passes. O(stages + blocks + dp). */
typedef struct pl_program_making pl_program_making;
pl_code pl_program_outline_begin(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                 const pl_block_program *blocks, pl_arena *arena, pl_program *program,
                                 pl_program_making **making, pl_error *error);
pl_code pl_program_making_finish(pl_program_making *making);
/* A part of the second step, which does it where nobody has: all passes but the last backward ones. Of an outline they
 * stay for strategies that pl_program_outline_again brings, as long as neither reduces with every pass (ZeRO 2, 3). */
pl_code pl_program_making_plain(pl_program_making *making);
/* The outline as it was after the first step, of a strategy that differs from its own in ZeRO and overlap, neither of
 * which the first step asks for. What was taken from the arena since may be given back before, but for what
 * pl_program_making_plain took. O(families). */
void pl_program_outline_again(pl_program_making *making, const pl_strategy *strategy, pl_error *error);
/* Members of one group of a family, also of an outline: as many as its group_size. O(ranks of a stage). */
void pl_program_group_members(const pl_program *program, const pl_family *family, int32_t group, uint32_t *members);
/* Members of a family's first group that are in the node of its first one, also of an outline; of pairs 1. Ranks are
 * looked at until all of that node were, and no more than a few nodes' worth of them. */
uint32_t pl_program_group_neighbours(const pl_cluster *cluster, const pl_program *program, const pl_family *family);

/* Whether expert gradients are reduced over other ranks than all others: the experts are spread, or tensor ranks, which
 * split all else, hold the same ones. */
bool pl_program_has_expert_data(const pl_model *model, const pl_strategy *strategy);
/* Of REDUCE, GATHER, AWAIT and COPY. */
pl_family_kind pl_instruction_family(const pl_instruction *instruction);
/* How gradients are reduced. */
pl_collective_kind pl_program_reduction(const pl_program *program);
/* Ranks over which ZeRO shards the state of experts (`experts`) or of all else. */
double pl_program_shards(const pl_program *program, bool experts);
/* Parameters of a stage that one of its ranks updates. */
double pl_program_owned_parameters(const pl_program *program, int32_t stage);
/* Read and written for a step per gradient that a rank keeps, around their reduction. Those that are shared among ranks
 * (ZeRO 2 and 3) are reduced as they come, in the backward pass: of them buffers are cleared and nothing else. */
double pl_program_whole_traffic(const pl_job *job, const pl_strategy *strategy);
/* Read and written by a rank of the stage for its step: by the optimizer, of what it owns, and around the reduction. */
double pl_program_update_traffic(const pl_program *program, int32_t stage);

/* Index of the schedule of a replica (a context rank of a data rank). */
static inline int32_t pl_program_schedule(const pl_program *program, int32_t replica) {
  return program->schedule_of[replica / pl_strategy_cp(program->strategy)];
}

/* Which group of a family the device of (replica, tensor rank) belongs to. */
int32_t pl_program_group(const pl_program *program, pl_family_kind kind, int32_t replica, int32_t tensor);
/* The family that runs collectives inside blocks for a group. */
pl_family_kind pl_program_family_kind(pl_group_role role);

/* Stage to which `stage` sends activations (DOWN) or their gradients (UP); the pipeline is a ring when it has several
 * chunks. */
int32_t pl_program_receiver(const pl_program *program, pl_family_kind kind, int32_t stage);
int32_t pl_program_sender(const pl_program *program, pl_family_kind kind, int32_t stage);
/* The family by which `chunk` of a stage sends its output, or (`backward`) its input's gradient. */
pl_family_kind pl_program_wire(const pl_strategy *strategy, bool backward, int32_t chunk);
static inline bool pl_family_is_wire(pl_family_kind kind) {
  return kind == PL_FAMILY_DOWN || kind == PL_FAMILY_UP || kind == PL_FAMILY_DOWN_2 || kind == PL_FAMILY_UP_2;
}
/* Which pass of a block an instruction is of. */
static inline pl_block_pass pl_instruction_pass(const pl_instruction *instruction) {
  return (pl_block_pass)(instruction->backward + instruction->half);
}

/* Gradients that are reduced at a time: the job's bucket. One bucket of all of them is for gradients that are kept
 * whole; where each rank keeps a share (ZeRO 2 and 3), every block's are reduced when they are there: 0. FSDP's are of
 * a unit, which may be the whole model. */
double pl_program_bucket_bytes(const pl_program *program);
/* How long the program's gradients live: what its framework says, where there is one microbatch and one backward pass
 * of it; else the sums over microbatches, or chunks, have to stay. */
pl_gradient_life pl_program_gradient_life(const pl_program *program);
/* Of gradients that do not stay: what the backward pass of a block leaves until the pass is over; and what a rank of
 * the stage then has for the optimizer's step. Bytes; 0 where gradients stay. */
double pl_program_made_gradient_bytes(const pl_program *program, int32_t block);
double pl_program_stepped_gradient_bytes(const pl_program *program, int32_t stage);

/* Prints the program: per stage its blocks' ops (identical blocks once, with a count), schedule and epilogue. */
void pl_program_print(FILE *stream, const pl_program *program);

#endif
