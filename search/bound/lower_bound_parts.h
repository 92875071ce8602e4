/* What lower bounds are made of, kept from strategy to strategy. Internal to search/bound/lower_bound*.c. */
#ifndef PL_SEARCH_LOWER_BOUND_PARTS_H
#define PL_SEARCH_LOWER_BOUND_PARTS_H

#include "core/base/hash_index.h"
#include "netmodel/collective/topology_cache.h"
#include "search/bound/lower_bound.h"
#include "workloads/lower/block_cache.h"
#include "workloads/program/program.h"

enum {
  PL_BOUND_FORWARD = 0,
  PL_BOUND_BACKWARD,
  PL_BOUND_PASSES,
  PL_BOUND_CHAINS = 8,
  PL_BOUND_PROFILES = 64,
  PL_BOUND_RECENT = 256
};

/* ---- blocks under one shard ---- */

/* Collectives of a block's pass that computing waits for. */
typedef struct pl_bound_collective {
  pl_family_kind family;
  pl_collective_kind kind;
  double size_bytes;
  int32_t count;
} pl_bound_collective;

enum { PL_BOUND_COLLECTIVES = 24 };

typedef struct pl_bound_pass {
  const pl_ticks *compute; /* per profile of the cluster */
  double host_s;           /* to launch it */
  pl_bound_collective collectives[PL_BOUND_COLLECTIVES];
  uint32_t n_collectives;
} pl_bound_pass;

typedef struct pl_bound_blocks {
  pl_block_shard shard;
  pl_block_program *programs; /* by class of the model */
  pl_bound_pass (*passes)[PL_BOUND_PASSES];
} pl_bound_blocks;

/* ---- communicators under one placement ---- */

/* The devices of one replica and tensor rank, stage by stage: what each of them does follows one after another. Times
 * of different ranks must not be mixed: ranks of a tensor group meet at its collectives only, so that the slow device
 * of one and the slow send of another need not add up. */
typedef struct pl_bound_chain {
  int32_t replica, tensor;
  const uint32_t *profiles;                             /* per stage, of the cluster */
  pl_collective_group *(*groups)[PL_FAMILY_KIND_COUNT]; /* per stage, NULL = none; NULL: not made yet */
} pl_bound_chain;

/* How long a collective takes alone. */
typedef struct pl_bound_time {
  const pl_collective_group *group; /* NULL: none */
  pl_collective_kind kind;
  double size_bytes;
  pl_ticks ticks;
} pl_bound_time;

typedef struct pl_bound_layout {
  int32_t pp, dp, tmp, cp, ep, etp, shard, head_stage; /* head_stage: with a copy of the embedding; 0: there is none */
  bool is_ring;                                        /* chunks: the last stage sends to the first, or it is a V */
  bool is_v;                                           /* of stages */
  char order[5];
  uint32_t n_chains; /* that are looked at: the first of those on unlike devices */
  pl_bound_chain chains[PL_BOUND_CHAINS];
  const uint64_t *profiles; /* per stage: bits of the profiles of all its devices, below PL_BOUND_PROFILES */
  pl_hash_index times;      /* of collectives on these groups: pl_bound_time */
  pl_arena *arena;
} pl_bound_layout;

/* ---- what strategies share that differ in ZeRO and overlap only ---- */

/* Neighbours in a space do: the outline that was made last stays until one comes that differs in more. */
typedef struct pl_bound_frame {
  bool is_kept;
  pl_strategy key;         /* of the strategies, without what may differ and without boundaries */
  const int32_t *boundary; /* a copy */
  const pl_bound_blocks *blocks;
  pl_program program;
  pl_program_making *making;
  pl_bound_layout *layout;
  const double *passes_bytes; /* per stage; 0 where tasks do not run in order */
  int32_t memory_zero;        /* ZeRO that `memory` is of; -1: none yet */
  pl_lower_bound memory;
  pl_arena_mark mark; /* in the scratch arena: what is behind it is of one strategy */
} pl_bound_frame;

struct pl_lower_bounds {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_simulate_options *options;
  pl_collective_options collectives;
  pl_arena *arena;
  pl_arena scratch; /* of the frame and, behind that, of one bound */
  pl_bound_frame frame;
  pl_hash_index blocks, layouts;
  pl_topology_cache topology; /* groups of layouts that stay: many layouts have the same ones */
  /* Of the layouts' times those asked for last: strategies ask for the same again and again. */
  pl_bound_time recent[PL_BOUND_RECENT];
  pl_block_functions functions;
};

/* Of the strategy's shard; made if it is new. */
pl_code pl_bound_blocks_find(pl_lower_bounds *bounds, const pl_strategy *strategy, const pl_bound_blocks **blocks,
                             pl_error *error);
/* Of the strategy's placement; `program` is an outline of it. With a placement or a split of its own it is made anew,
 * in the scratch arena. */
pl_code pl_bound_layout_find(pl_lower_bounds *bounds, const pl_program *program, pl_bound_layout **layout,
                             pl_error *error);
/* Makes the groups of the layout's chains if they are not there: those of a placement where nothing fits never are. */
pl_code pl_bound_layout_find_groups(pl_lower_bounds *bounds, const pl_program *program, pl_bound_layout *layout,
                                    pl_error *error);
/* A collective alone on its links. `group` NULL: 0. */
pl_code pl_bound_collective_ticks(pl_lower_bounds *bounds, pl_bound_layout *layout, pl_collective_group *group,
                                  pl_collective_kind kind, double size_bytes, pl_ticks *ticks, pl_error *error);

/* The frame of the strategy, with its program begun: the one that is there, or a new one. */
pl_code pl_bound_frame_find(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_error *error);

/* The passes that stay with the frame are there. */
pl_code pl_bound_frame_passes(pl_lower_bounds *bounds);

/* The factor that simulations of the strategy have from what remains at the site; 1: none. */
double pl_bound_remains(const pl_lower_bounds *bounds, const pl_strategy *strategy);

/* Fills shortfall_bytes and stage of `bound`, of the strategy of the frame. */
void pl_bound_memory(pl_lower_bounds *bounds, pl_lower_bound *bound);

#endif
