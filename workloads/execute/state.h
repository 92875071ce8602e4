/* What stays on the devices of a class between ops and functions: parameters, gradients, optimizer state, kept values.
 * Internal to workloads/execute/. */
#ifndef PL_WORKLOADS_EXECUTE_STATE_H
#define PL_WORKLOADS_EXECUTE_STATE_H

#include "core/base/hash_index.h"
#include "workloads/execute/holding.h"

typedef struct pl_kept {
  const char *key;
  pl_holding *holding; /* NULL: given back */
  int32_t kind;
  int32_t n_reads; /* of a kept value: how many ops are still to read it */
} pl_kept;

/* Empty when zeroed. Entries stay where they are. */
typedef struct pl_store {
  pl_hash_index index;
  pl_kept **entries;
  int32_t n_entries;
  uint32_t room;
} pl_store;

/* The entry of this kind and key; made, without a holding, if it is not there. NULL: no memory. */
pl_kept *pl_store_entry(pl_store *store, int32_t kind, const char *key, pl_arena *arena);
const pl_kept *pl_store_find(const pl_store *store, int32_t kind, const char *key);

#endif
