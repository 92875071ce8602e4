/* What a pass of your own is: a shared object with the symbol `paceline_pass`, for `paceline optimize --pass FILE.so`.
 *
 * A round: `propose` gets a view of the step as it is planned so far and fills in changes, at most `most`; they are
 * made together and replayed. Kept is what makes the step shorter; the next round's view shows it. It returns how many
 * changes there are; 0 ends the pass. Nothing that it is given is valid after it has returned.
 *
 *   #include "pass_interface.h"
 *   static uint32_t propose(const paceline_view *view, uint32_t round, paceline_change *changes, uint32_t most) {
 *     if (round + 1 >= view->n_tensors) return 0;
 *     changes[0] = (paceline_change){PACELINE_JOIN_TENSOR, round + 1, 1};
 *     return 1;
 *   }
 *   const paceline_pass_interface paceline_pass = {PACELINE_PASS_VERSION, "pairs", "gradients two by two", propose};
 *
 *   cc -shared -fPIC -I PREFIX/include/paceline -o pairs.so pairs.c
 *
 * This header needs nothing but the C library. An object of another version is refused. It runs in Paceline's process,
 * with all of its rights: load none that you do not trust.
 */
#ifndef PACELINE_PASS_INTERFACE_H
#define PACELINE_PASS_INTERFACE_H

#include <stdint.h>

#define PACELINE_PASS_VERSION 1

/* A gradient, or a bucket if the job had buckets. In the order in which they are ready, chain by chain. */
typedef struct paceline_tensor {
  const char *name;
  int64_t size_bytes;    /* -1: not recorded */
  uint32_t chain;        /* only neighbours of one chain can be joined */
  uint32_t pieces;       /* of the bucket that it is in */
  uint32_t is_joined;    /* with the tensor before it */
  double ready_s, end_s; /* of its bucket, from the start of the step */
} paceline_tensor;

/* An op of computing; ranks that are alike do it alike. None are shown unless op-fusion is among the passes. */
typedef struct paceline_op {
  const char *name;
  double duration_s;     /* as recorded, of the first rank that does it */
  uint32_t can_fuse;     /* it follows the op before it on its stream */
  uint32_t is_fused;     /* with the op before it */
  uint32_t makes_tensor; /* index of a tensor that waits for it; UINT32_MAX: none */
} paceline_op;

typedef struct paceline_view {
  uint32_t n_tensors, n_ops;
  const paceline_tensor *tensors;
  const paceline_op *ops;
  double step_s;
} paceline_view;

typedef enum paceline_change_kind {
  PACELINE_JOIN_TENSOR = 0, /* subject: a tensor; value 1: with the one before it, 0: not */
  PACELINE_CUT_TENSOR,      /* subject: a tensor; value: pieces of its bucket, 1 to 64 */
  PACELINE_FUSE_OP          /* subject: an op; value 1: with the one before it, 0: not */
} paceline_change_kind;

typedef struct paceline_change {
  uint32_t kind; /* paceline_change_kind */
  uint32_t subject, value;
} paceline_change;

typedef struct paceline_pass_interface {
  uint32_t version; /* PACELINE_PASS_VERSION */
  const char *name, *summary;
  uint32_t (*propose)(const paceline_view *view, uint32_t round, paceline_change *changes, uint32_t most);
} paceline_pass_interface;

#endif
