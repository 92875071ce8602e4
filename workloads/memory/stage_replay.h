/* What the allocator of a stage's devices holds: a training is replayed, tensor by tensor, against
 * workloads/memory/caching_allocator.h, from the making of the weights over the first iteration and the optimizer's
 * first step, whose state takes its place among what the passes have freed, until nothing new comes.
 *
 * Tensors that stay come first: a tensor per weight, one each for gradients in a buffer and all master weights,
 * buckets. Adam's moments are made in the first step, two per weight, and what a step takes while it runs and the
 * copies that a framework makes of gathered weights come and go there. Gradients of frameworks without buffers are
 * tensors that the first backward pass of an iteration makes and that go behind the step. ZeRO-3's units and what is
 * reduced come and go as the passes' instructions have it, in streams of their own (workloads/memory/replay_units.c).
 * Rejected: only the passes, the rest added to what they hold. It misses that the moments cut up the segments of freed
 * activations, so that the next iteration takes new ones.
 *
 * Where collectives mark what they touch (records_streams; workloads/run/launched_ahead.h says why) and the framework's
 * profile says so (replays_ahead), the host is a launch queue ahead: what waits for the device is given back when the
 * device is full, but other tensors have been put elsewhere in the meantime and cut up what then comes free. A host
 * that agrees with others on every collective (collective_rank_s) or waits for every kernel is not ahead. Of other
 * profiles what waits is reckoned beside the replay, and is in no verdict.
 */
#ifndef PL_WORKLOADS_STAGE_REPLAY_H
#define PL_WORKLOADS_STAGE_REPLAY_H

#include "workloads/program/program.h"

typedef struct pl_replayed_memory {
  double peak;     /* largest sum of tensors */
  double reserved; /* bytes of all segments at most, the libraries' workspace included */
  double stuck;    /* of these, beside the tensors in segments that one is in when their sum is largest: what the
                      allocator cannot give back then */
  bool full; /* the device does not suffice, even with every unused segment given back; `peak` is then what was had */
} pl_replayed_memory;

/* `limit_bytes`: what the device has for the allocator; 0: enough. Cost: the ops of some six times as many microbatches
 * as the stage has in flight; of one with one in flight a third of that (workloads/memory/replay_recurrence.h). */
pl_code pl_stage_replay(const pl_program *program, int32_t stage, double limit_bytes, pl_arena *arena,
                        pl_replayed_memory *memory, pl_error *error);

#endif
