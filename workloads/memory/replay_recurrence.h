/* Where a replay does what it has done already: with nothing in flight, a microbatch that finds the memory as the one
 * before it found it does what that one did, and so do all behind it up to the last; and an iteration that finds it, at
 * its beginning or behind its first microbatch, as the one before found it there does what that one did. None of them
 * can reach a new peak, and they need not be run. (A stage with one microbatch in flight settles in the first of an
 * iteration.) Behind a pass nothing stays but what the lists of the replay
 * name; while gathered parameters do nothing is said to recur.
 *
 * A launch queue puts off what a pass gives back, so that nothing recurs there; with several microbatches in flight
 * they take turns in the same memory, and it recurs, if at all, after as many as there are.
 * Internal to workloads/memory. */
#ifndef PL_WORKLOADS_REPLAY_RECURRENCE_H
#define PL_WORKLOADS_REPLAY_RECURRENCE_H

#include "workloads/memory/memory_state.h"
#include "workloads/memory/replay.h"

typedef struct pl_replay_recurrence {
  pl_memory_state at_beginning[2], behind_first[2]; /* of this iteration and the one before */
  pl_memory_state behind[2];                        /* the microbatch at hand, and the one before */
  int32_t iteration;
  uint32_t *named, n_named, named_room; /* blocks, for a moment */
} pl_replay_recurrence;

/* A new iteration begins. True: it does what the one before did, which was not the first. */
bool pl_replay_recurs(pl_replay_recurrence *recurrence, pl_replay *replay, int32_t iteration);
/* The passes of `microbatch` are over, and none of another has begun. True: what comes behind does what has been done:
 * `*whole`: the rest of the iteration, else the microbatches up to the last. Cost: linear in the free blocks. */
bool pl_replay_settles(pl_replay_recurrence *recurrence, pl_replay *replay, int32_t microbatch, bool *whole);

#endif
