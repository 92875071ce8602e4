/* See workloads/block/block_lifetimes.h. */
#include "workloads/block/block_lifetimes.h"

#include "core/base/status.h"

bool pl_tensor_comes_and_goes(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_ACTIVATION || tensor->kind == PL_TENSOR_MASK || tensor->kind == PL_TENSOR_SIGNS ||
         tensor->kind == PL_TENSOR_GRADIENT;
}

static bool outlives(const pl_lifetime_tensors *of, pl_block_pass pass, uint32_t tensor) {
  const pl_tensor *own = &of->tensors[tensor];
  if (pass == PL_PASS_FORWARD) return tensor == of->output || own->saved;
  return tensor == of->input_gradient || (pass == PL_PASS_INPUTS && own->waits);
}

void pl_lifetimes_walk(const pl_lifetime_tensors *of, pl_block_pass pass, const pl_op *ops, uint32_t n_ops,
                       const pl_lifetime_visitor *visitor, void *own) {
  uint32_t last[PL_TAPE_TENSORS] = {0}, tensors[PL_OP_TENSORS];
  bool touched[PL_TAPE_TENSORS] = {false};
  PL_ASSERT(of->n_tensors <= PL_TAPE_TENSORS);
  for (uint32_t i = 0; i < n_ops; i++)
    for (uint32_t j = pl_op_tensors(&ops[i], tensors); j-- > 0;)
      last[tensors[j]] = i;
  for (uint32_t i = 0; i < n_ops; i++) {
    uint32_t n = pl_op_tensors(&ops[i], tensors);
    for (uint32_t j = 0; j < n; j++) {
      visitor->touch(own, &ops[i], tensors[j], !touched[tensors[j]]);
      touched[tensors[j]] = true;
    }
    visitor->run(own, &ops[i]);
    for (uint32_t j = 0; j < n; j++)
      if (last[tensors[j]] == i && !outlives(of, pass, tensors[j])) visitor->give_back(own, tensors[j]);
  }
}

/* ---- sums of bytes ---- */

typedef struct live_bytes {
  const pl_tensor *tensors;
  bool alive[PL_TAPE_TENSORS];
  bool remakes; /* with first readers, what was not kept */
  double now, peak;
} live_bytes;

static void count(void *own, const pl_op *op, uint32_t tensor, bool first) {
  live_bytes *live = own;
  const pl_tensor *touched = &live->tensors[tensor];
  (void)op;
  if (first && live->remakes && touched->saved) live->now += touched->remade_bytes;
  if (live->alive[tensor] || !pl_tensor_comes_and_goes(touched)) return;
  live->alive[tensor] = true;
  live->now += pl_tensor_held_bytes(touched);
}

static void note_peak(void *own, const pl_op *op) {
  live_bytes *live = own;
  (void)op;
  if (live->now > live->peak) live->peak = live->now;
}

static void discount(void *own, uint32_t tensor) {
  live_bytes *live = own;
  if (!live->alive[tensor]) return;
  live->alive[tensor] = false;
  live->now -= pl_tensor_held_bytes(&live->tensors[tensor]);
}

double pl_tape_peak(const pl_tape *tape, pl_block_pass pass, const pl_op *ops, uint32_t n_ops) {
  static const pl_lifetime_visitor visitor = {.touch = count, .run = note_peak, .give_back = discount};
  const pl_lifetime_tensors of = {tape->tensors, tape->n_tensors, tape->output, tape->input_gradient};
  bool begins_backward = pass == PL_PASS_BACKWARD || pass == PL_PASS_INPUTS;
  uint32_t given = pass == PL_PASS_FORWARD ? tape->input : begins_backward ? tape->output_gradient : PL_NONE;
  live_bytes live = {.tensors = tape->tensors, .remakes = begins_backward};
  for (uint32_t i = 0; i < tape->n_tensors; i++)
    live.alive[i] = begins_backward ? tape->tensors[i].saved : pass == PL_PASS_WEIGHTS && tape->tensors[i].waits;
  if (given != PL_NONE) {
    live.alive[given] = true;
    live.now = live.peak = pl_tensor_held_bytes(&tape->tensors[given]);
  }
  pl_lifetimes_walk(&of, pass, ops, n_ops, &visitor, &live);
  return live.peak;
}
