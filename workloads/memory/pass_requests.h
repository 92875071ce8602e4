/* What a pass of a block asks of an allocator of memory, in order: made once of the walk over its lifetimes, and gone
 * through for every microbatch and every block of the class, where the walk itself, with all that has no memory of its
 * own, was a third of a replay. Internal to workloads/memory.
 */
#ifndef PL_WORKLOADS_PASS_REQUESTS_H
#define PL_WORKLOADS_PASS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "workloads/ir/op.h"

typedef enum pl_request_kind {
  PL_REQUEST_TAKE,    /* the first op of the pass that touches a tensor is about to run */
  PL_REQUEST_PRODUCT, /* a product has made a weight's gradient: its tensor, or, where it is nobody's, the buffer's */
  PL_REQUEST_ADDED,   /* a kernel has added one to its buffer */
  PL_REQUEST_GIVE     /* the last op that touches a tensor which does not outlive the pass has run */
} pl_request_kind;

typedef struct pl_request {
  double size_bytes; /* to take: of what the tensor holds */
  uint32_t tensor;
  uint32_t n_launches; /* ops of the pass that have run by then */
  uint8_t kind;
  bool remade;   /* to take: it is there in part, and made again; */
  bool held;     /*   it comes and goes; */
  bool gathered; /*   a collective of the tensor group gathers it */
  bool marked;   /* to give: a collective of the pass has touched it */
} pl_request;

typedef struct pl_pass_requests {
  pl_request *all; /* NULL: not made yet */
  uint32_t n, n_ops;
} pl_pass_requests;

/* False: the arena has no memory. Cost: linear in the ops. */
bool pl_pass_requests_take(const pl_block_program *block, pl_block_pass pass, pl_arena *arena,
                           pl_pass_requests *requests);

/* Whether a tensor may have memory in a replay: it comes and goes, or is handed from block to block. */
bool pl_tensor_may_be_held(const pl_block_program *block, uint32_t tensor);

#endif
