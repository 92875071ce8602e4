/* What this machine takes for the ops of programs and for moving data between ranks, measured by running programs:
 * small training steps of the kinds of models there are, every rank the same at the same time, and programs that do
 * nothing but exchange. So all that an op costs here is in its time: the kernel, its memory, its conversions. */
#ifndef PL_SEARCH_MEASURE_MACHINE_H
#define PL_SEARCH_MEASURE_MACHINE_H

#include "core/base/arena.h"
#include "netmodel/collective/collective.h"
#include "search/parallel/interrupt.h"
#include "search/parallel/ranks.h"

/* An op as some program has it. */
typedef struct pl_op_sample {
  int32_t row; /* workloads/language/ir_table.h */
  double flops, bytes, time_s;
} pl_op_sample;

typedef struct pl_move_sample {
  pl_collective_kind kind;
  uint32_t n;        /* ranks of a group; all groups at once */
  double size_bytes; /* as netmodel/collective/collective.h counts */
  double time_s;
} pl_move_sample;

typedef struct pl_machine_samples {
  pl_op_sample *ops;
  pl_move_sample *moves;
  uint32_t n_ops, n_moves, room_ops, room_moves;
} pl_machine_samples;

/* Collective; rank 0 has the samples. `thorough`: more sizes, three times as long (a minute or so). */
pl_code pl_measure_machine(MPI_Comm comm, bool single, bool thorough, pl_interrupt *interrupt, pl_arena *arena,
                           pl_machine_samples *samples, pl_error *error);

#endif
