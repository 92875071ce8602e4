/* Tensors and names of a block that is noted by its kernels (launched_block.h). Internal to
 * workloads/lower/launched_*.c. */
#ifndef PL_WORKLOADS_LAUNCHED_TENSORS_H
#define PL_WORKLOADS_LAUNCHED_TENSORS_H

#include "workloads/block/block_tape.h"
#include "workloads/language/ir_routing.h"
#include "workloads/lower/block_function.h"

enum { PL_LAUNCHED_PATHS = 128, PL_LAUNCHED_HELD = 12 };

/* What a path, or the seed of a dropout, stands for. */
typedef struct pl_launched_entry {
  const char *path;
  int64_t seed;
  uint32_t tensor;
} pl_launched_entry;

typedef struct pl_launched_table {
  pl_launched_entry entries[PL_LAUNCHED_PATHS];
  int32_t n;
} pl_launched_table;

typedef struct pl_launching {
  const pl_block_function *block;
  const pl_ir_module *kernels;
  pl_ir_routing routing;
  pl_tape *tape;
  pl_arena *scratch;
  /* Of the pass: its function; per value its tensor (PL_NONE: none) and the last op that reads it (n_ops: it is handed
   * back); per op whether it makes a forward value again, and whether the gradient of the input is made from it. */
  const pl_ir_function *f;
  bool backward;
  uint32_t *tensor;
  int32_t *last;
  const bool *again;
  const uint8_t *times; /* per value: how many times as large as it says (workloads/fuse/kernel_wider.h); NULL: once */
  bool *for_inputs;
  bool *idle;   /* per op: nothing that is launched needs it */
  bool *picked; /* per value: of rows that were picked, or made of them */
  pl_launched_table parameters, buffers, kept, masks;
  uint32_t held[PL_LAUNCHED_HELD]; /* what the caller's variables hold */
  int32_t n_held;
  uint32_t unread[PL_LAUNCHED_HELD]; /* kept, and read by no op */
  int32_t n_unread;
  uint32_t scattered[PL_LAUNCHED_HELD]; /* by the forward pass, in its order; how many a pass has asked for again */
  int32_t n_scattered, n_asked;
  bool copies;      /* queries, keys and values, on their way to attention */
  double unsharded; /* elements of gradients that go to their reduction in a tensor of their own */
} pl_launching;

/* `kernels` are of one sequence a rank: the same of as many as a microbatch has, in every type. What they do is shared.
 * False: no memory. */
bool pl_launching_scale(const pl_ir_module *kernels, int64_t mbs, pl_arena *scratch, pl_ir_module *scaled);

/* ---- tensors ---- */
/* What a device has of a value of the pass; nothing of integers. */
double pl_launching_bytes(const pl_launching *own, int32_t value);
/* What is added to a buffer, perhaps cast: the gradient of a parameter. */
bool pl_launching_is_of_parameter(const pl_launching *own, int32_t value);
/* A tensor for it; PL_NONE: it takes none. */
uint32_t pl_launching_make(pl_launching *own, int32_t value, const char *name);
/* The value in one allocation with what is in `tensor`, which grows. */
uint32_t pl_launching_beside(pl_launching *own, uint32_t tensor, int32_t value);
/* Of an op that nothing is launched for: what it gives is what it reads first. */
void pl_launching_share(pl_launching *own, int32_t op);
/* Whether an op behind `op` reads what is in the tensor. */
bool pl_launching_is_read_later(const pl_launching *own, uint32_t tensor, int32_t op);

void pl_launching_keep(pl_launching *own, const char *path, uint32_t tensor);
uint32_t pl_launching_kept(const pl_launching *own, const char *path);
/* Of a dropout among what is launched: the same in every pass. */
uint32_t pl_launching_mask(pl_launching *own, const pl_ir_launched_ops *of, const pl_ir_op *dropout, const char *name);

/* Parameters of the forward pass that are one tensor: weights and biases of products that are one kernel, vectors of a
 * norm. Before anything is launched. */
void pl_launching_find_packs(pl_launching *own);
uint32_t pl_launching_parameter_of(pl_launching *own, const pl_ir_op *param);
uint32_t pl_launching_parameter(const pl_launching *own, const char *path); /* PL_NONE: there is none */
/* The buffer that microbatches add the gradient of the parameter into. */
uint32_t pl_launching_buffer(pl_launching *own, const char *path);

/* ---- names (launched_names.c), literals all ---- */
const char *pl_launching_name(const pl_launching *own, int32_t op);
const char *pl_launching_bias_name(const pl_launching *own, int32_t op); /* NULL: none of its own */
const char *pl_launching_value_name(const pl_launching *own, int32_t value, const char *otherwise);
const char *pl_launching_parameter_name(const pl_launching *own, const char *path);
const char *pl_launching_collective_name(const pl_launching *own, int32_t op);

#endif
