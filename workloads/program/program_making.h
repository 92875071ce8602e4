/* What the files that make a program share: the program while it is made. program_families.c finds the groups of
 * devices that communicate and collects their ops, program_passes.c writes the instructions of the passes, program.c
 * puts the stages together.
 */
#ifndef PL_WORKLOADS_PROGRAM_MAKING_H
#define PL_WORKLOADS_PROGRAM_MAKING_H

#include "workloads/program/program.h"

/* What a stage holds for each block of a class. */
typedef struct pl_held_class {
  bool is_known;
  double parameters, expert_parameters, largest_parameters;
  uint32_t n_tensors;
} pl_held_class;

/* What a family had after a step of an outline. */
typedef struct pl_family_start {
  pl_communication *ops;
  uint32_t n_ops, capacity;
} pl_family_start;

struct pl_program_making {
  pl_program *program;
  pl_arena *arena;
  pl_family *families;
  pl_communication **ops; /* per family: what families[].ops points to, and how many it holds */
  uint32_t *capacity;
  bool outline;                           /* without members and schedules */
  const pl_held_class *held;              /* by class */
  pl_stage_program *stages;               /* the program's */
  bool has_plain;                         /* all passes but the last backward ones are there */
  bool keeps_plain;                       /* these are the same with any ZeRO that does not reduce every time */
  pl_family_start *starts, *plain_starts; /* of an outline, per family: at first, and with these passes */
  pl_error *error;
};

const pl_block_program *pl_making_block(const pl_program *program, int32_t block);

/* The op of this kind and size of a family, added if it is new; out of memory is seen by the arena's flag. */
uint32_t pl_making_op(pl_program_making *state, uint32_t family, pl_collective_kind kind, double size_bytes);
/* Keeps what the families of an outline have (NULL: no memory), and puts it back. */
pl_family_start *pl_making_note_starts(pl_program_making *state);
void pl_making_start_again(pl_program_making *state, const pl_family_start *starts);
/* Whether the head holds the embedding's table on a stage of its own. */
bool pl_making_splits_tied_embedding(const pl_program *program);
pl_code pl_making_families(pl_program_making *state);
/* The ops of the families inside a stage are those of the blocks that the stage holds. */
void pl_making_block_collectives(pl_program_making *state, int32_t stage, const pl_block_program *program);

/* `reduces`: gradients are reduced as they come. */
pl_code pl_making_pass(pl_program_making *state, int32_t stage, int32_t chunk, pl_block_pass which, bool reduces,
                       pl_pass *made);
pl_code pl_making_epilogue(pl_program_making *state, pl_stage_program *own);
/* Parameters that a stage holds for a block, in all and of experts: a tied head apart from its embedding has a copy of
 * the table. */
double pl_making_held_parameters(const pl_program *program, int32_t block);
double pl_making_held_experts(const pl_program *program, int32_t block);
/* Bytes of the activation behind block boundary `boundary` of the chunks, on one rank; its gradient has as many. */
double pl_making_crossing_bytes(const pl_program *program, int32_t boundary);
/* Whether a tensor rank sends only its share of an activation. */
bool pl_making_splits_sends(const pl_program *program);

#endif
