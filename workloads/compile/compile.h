/* Compiler: from a program and its communication plan to the execution graph.
 *
 * Each device class is unrolled over its schedule's steps (replicas may have different numbers of microbatches); those
 * of one tensor-parallel group that run in step (a crew) are unrolled together. What a pass does is compiled once per
 * crew and chunk into pieces (segments of compute with the communication that nobody can interleave with, and the
 * points where other communication starts or is awaited), then emitted for every microbatch. Members of a communicator
 * meet by counting: every participant runs the communicator's ops in the same order, so the k-th arrival of each is the
 * same task.
 *
 * Fused: a pass is one task wherever the plan allows. Unfused: one task per op.
 */
#ifndef PL_WORKLOADS_COMPILE_H
#define PL_WORKLOADS_COMPILE_H

#include "core/cluster/lanes.h"
#include "core/graph/graph.h"
#include "workloads/compile/communication.h"
#include "workloads/compile/origins.h"
#include "workloads/lower/block_cache.h"
#include "workloads/memory/stage_memory.h"

typedef struct pl_compile_options {
  bool fuse;
  bool chunked;
  uint32_t chunks; /* pieces of each step's message when chunked */
  pl_sharing sharing;
  pl_stream_policy streams;
  bool names;             /* give tasks and parts names (for timelines) */
  bool shares_passes;     /* stages whose passes are alike share segments and what these were made from: nobody asks of
                             which stage or block a part is */
  bool no_overlap_factor; /* ignore the profiles' gamma */
  pl_origins *origins;    /* says what parts and tasks were made from; NULL = nobody asks */
  pl_block_cache *blocks; /* of which the program's blocks are; NULL = none */
  /* Microbatches, of every replica, that are left to the engine to leap over (core/engine/engine.h); whole periods of
   * the schedule. 0: none. */
  int32_t leapt;
} pl_compile_options;

typedef struct pl_compiled {
  pl_graph graph;
  /* Bytes of progress over the run, with what is leapt over, per transfer class of the plan (NULL when chunked). */
  const double *transfer_bytes;
  /* A lane per crew, its steps those of the schedule and the epilogue. n_more: periods that are left out. */
  pl_lanes lanes;
  uint64_t n_more;
  /* Per lane the step with which the last backward pass of a chunk begins, the first of these: up to there strategies
   * that differ in what becomes of gradients alone make the same (core/graph/graph_heads.h). */
  const uint32_t *tails;
} pl_compiled;

/* Whether NCCL's collectives of the tensor group run beside products, from which they take multiprocessors;
 * userbuffers, where they are used, are not NCCL's. */
bool pl_compile_crowds_products(const pl_job *job, const pl_strategy *strategy);

pl_code pl_compile(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                   const pl_compile_options *options, pl_arena *arena, pl_compiled *compiled, pl_error *error);

#endif
