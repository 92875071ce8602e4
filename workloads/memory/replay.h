/* The state of a replay of a stage's training against an allocator (workloads/memory/stage_replay.h), and its parts:
 * the tensors themselves (this file's take and give), what is there before the first step and what the optimizer makes
 * (replay_update.c), parameters that are gathered and gradients on their way (replay_units.c), passes of blocks
 * (replay_passes.c). Internal to workloads/memory.
 */
#ifndef PL_WORKLOADS_REPLAY_H
#define PL_WORKLOADS_REPLAY_H

#include "workloads/memory/caching_allocator.h"
#include "workloads/memory/pass_requests.h"
#include "workloads/program/program.h"

enum {
  PL_REPLAY_WAITING = 1 << 14, /* that wait for the device, at most: what more comes is given back at once */
  PL_REPLAY_GATHERED = 18      /* of a block at a time, at most: as often as its passes gather of it */
};
#define PL_REPLAY_BORROWED (PL_NONE - 1) /* of a tensor: it lies in a buffer that stays */

/* Streams that make tensors: what one frees serves no other. */
enum { PL_REPLAY_COMPUTES = 0, PL_REPLAY_GATHERS, PL_REPLAY_REDUCES };

/* A weight of the stage. */
typedef struct pl_held_weight {
  double elements, share; /* of it, and of its optimizer's state on this rank */
} pl_held_weight;

/* The tensors of one block and microbatch that have memory. */
typedef struct pl_kept_block {
  uint32_t *held; /* allocator's block by tensor of the block program; PL_NONE: none */
} pl_kept_block;

/* Parameters of a block that ZeRO-3 has gathered: as they came, and copied out of that. */
typedef struct pl_gathered_unit {
  uint32_t came[PL_REPLAY_GATHERED], n_came;
  uint32_t *copied; /* by tensor of the block; NULL: none so far */
} pl_gathered_unit;

/* Freed by the host, marked by a collective: it comes free when the device has passed the launch. */
typedef struct pl_waiting_block {
  uint32_t held;
  int64_t launch;
} pl_waiting_block;

/* Grows as it needs. */
typedef struct pl_replay_list {
  uint32_t *held;
  uint32_t n, room;
} pl_replay_list;

typedef struct pl_replay {
  const pl_program *program;
  const pl_stage_program *stage;
  const pl_framework *framework;
  pl_arena *arena;
  pl_caching_allocator allocator;
  pl_kept_block *kept;       /* microbatch x block of the model */
  pl_replay_list of_pass;    /* gradients that are there until the pass is over */
  pl_replay_list pending[2]; /* until they are reduced: of all but experts, of experts */
  pl_replay_list of_step;    /* until the optimizer has stepped */
  pl_held_weight *weights;
  uint32_t n_weights, weights_room;
  pl_training_state bytes;
  double made_bytes; /* per element of a gradient as its product makes it */
  struct {
    uint32_t held;
    double size_bytes;
  } gathered[2];                /* buffers that stay: of activations, of gradients */
  pl_gathered_unit (*units)[2]; /* by block of the model; of all but experts, of experts */
  uint32_t last_come;           /* what was gathered last in a forward pass, until the next is copied */
  uint32_t last_reduced;        /* what a unit's gradients were copied to, until the next unit's are */
  bool *stays;                  /* by block of the model: gathered, it stays for the backward pass */
  bool begins;                  /* the pass is of an iteration's first microbatch */
  int64_t n_launches, n_ahead;  /* ops so far, and how many of them the device lags behind; 0: nothing waits */
  pl_waiting_block *waiting;    /* a ring of PL_REPLAY_WAITING */
  uint32_t first_waiting, n_waiting;
  bool keeps_gathered; /* the framework does, in buffers that stay */
  pl_pass_requests requests[PL_MODEL_CLASSES_MAX][PL_PASS_COUNT];
  int64_t peak_bytes, occupied_bytes;
  bool failed;
} pl_replay;

static inline const pl_block_program *pl_replay_block(const pl_replay *replay, int32_t block) {
  return &replay->program->blocks[pl_model_block_class(replay->program->model, block)];
}

/* Of a parameter, or of whatever has as many elements. */
double pl_replay_elements(const pl_tensor *tensor);

/* What is asked for, and given back: now, or, where a collective has marked it and the device lags, later. */
uint32_t pl_replay_take(pl_replay *replay, uint32_t stream, double size_bytes);
void pl_replay_give(pl_replay *replay, uint32_t *held);
void pl_replay_let_go(pl_replay *replay, uint32_t *held, bool marked);
/* A tensor that lives for a moment. */
void pl_replay_use(pl_replay *replay, uint32_t stream, double size_bytes);
/* One more of a list: a tensor that is there already, or a new one; all of them back. */
void pl_replay_append(pl_replay *replay, pl_replay_list *list, uint32_t held);
void pl_replay_add(pl_replay *replay, pl_replay_list *list, uint32_t stream, double size_bytes);
void pl_replay_clear(pl_replay *replay, pl_replay_list *list);
/* What waits for the device, since the host waits for it: of a pl_caching_allocator.settle. */
void pl_replay_settle(void *replay);

/* ---- replay_update.c ---- */

/* Weights, masters, gradients that stay, buckets. */
void pl_replay_take_state(pl_replay *replay);
/* The optimizer's step, and gradients that do not stay given up; the first makes the moments. */
void pl_replay_step(pl_replay *replay, bool first);

/* ---- replay_units.c ---- */

/* Which blocks stay gathered from the forward to the backward pass of `chunk`. */
void pl_replay_find_stays(pl_replay *replay, int32_t chunk);
/* A GATHER, COPY or REDUCE of a pass. */
void pl_replay_communicate(pl_replay *replay, const pl_instruction *instruction);
/* The block has run in that pass: its parameters go, unless they stay. */
void pl_replay_reshard(pl_replay *replay, int32_t block, bool backward);
/* Whether gradients are a tensor each, made by an iteration's first backward passes, not buffers that stay. */
bool pl_replay_stands_alone(const pl_replay *replay);
/* A product has made a weight's gradient, which `held` is; or it lies in the buffer that `tensor` is. */
void pl_replay_keep_product(pl_replay *replay, const pl_tensor *tensor, uint32_t *held);
/* A gradient has been added to its buffer. */
void pl_replay_keep_sum(pl_replay *replay, const pl_tensor *buffer);
/* The block's gradients that no product makes: of vectors, and of tables, which lookups make as a whole. */
void pl_replay_keep_others(pl_replay *replay, const pl_block_program *block);

/* ---- replay_passes.c ---- */

/* A step of the stage's schedule; `last`: it is of the last microbatch. */
void pl_replay_run(pl_replay *replay, const pl_schedule_step *step, bool last);
/* A forward and a backward pass that run beside each other, block by block in turns; `last`: the backward one. */
void pl_replay_run_pair(pl_replay *replay, const pl_schedule_step *forward, const pl_schedule_step *backward,
                        bool last);

#endif
