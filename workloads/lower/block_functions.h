/* Functions of the blocks of a model (block_function.h), kept from one shard to the next: most of what a shard says,
 * microbatch, recomputation, types of products, changes no layout, and making a function and its derivative takes ten
 * times what lowering them takes.
 */
#ifndef PL_WORKLOADS_BLOCK_FUNCTIONS_H
#define PL_WORKLOADS_BLOCK_FUNCTIONS_H

#include "workloads/lower/block_function.h"

struct pl_kept_functions;

typedef struct pl_block_functions {
  pl_arena arena;
  size_t most_bytes;
  const pl_model *model;          /* whose they are, as it was; NULL: none are kept */
  struct pl_kept_functions *kept; /* the newest first: few, looked through */
  uint64_t n_found, n_made;
} pl_block_functions;

/* Caller's storage; takes no memory yet. */
void pl_block_functions_init(pl_block_functions *functions, size_t most_bytes);
void pl_block_functions_release(pl_block_functions *functions); /* safe on a zeroed one */
/* To be called where a pointer to a model may have become another's. */
void pl_block_functions_forget(pl_block_functions *functions);

/* As pl_block_programs_take (block_program.h), from functions that are kept. Those are forgotten when they are of
 * another model or take more than the limit; what was made of them stays. `like`: programs of a shard that differs in
 * what is recomputed alone, whose blocks but the layers are taken as they are; NULL: there are none. */
pl_code pl_block_functions_programs(pl_block_functions *functions, const pl_model *model, const pl_block_shard *shard,
                                    const pl_block_program *like, pl_arena *arena, const pl_block_program **blocks,
                                    pl_error *error);

#endif
