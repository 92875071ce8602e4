/* Which entries of the collective profile the groups of a run have, by role: what `simulate` says of them. */
#ifndef PL_WORKLOADS_COLLECTIVE_ENTRIES_H
#define PL_WORKLOADS_COLLECTIVE_ENTRIES_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "workloads/compile/communication.h"

typedef struct pl_collective_entry {
  const char *role;             /* "tensor", "data" ... */
  const char *inside, *between; /* names; both NULL: ideal */
} pl_collective_entry;

enum { PL_COLLECTIVE_ENTRIES_MAX = 24 };

typedef struct pl_collective_entries {
  pl_collective_entry entries[PL_COLLECTIVE_ENTRIES_MAX]; /* each once, in the order of the groups */
  uint32_t n;
  bool more; /* than there is room for */
} pl_collective_entries;

/* Names are the profile's. None without a profile. O(groups). */
pl_collective_entries pl_collective_entries_of(const pl_program *program, const pl_communication_plan *plan,
                                               const pl_collective_profile *profile);

/* "tensor nvswitch-nvlink3; data nvswitch-nvlink3 + infiniband-hdr" */
void pl_collective_entries_print(FILE *stream, const pl_collective_entries *entries);
/* "collective_entries": [{"role": ..., "inside": ..., "between": ...}] */
void pl_collective_entries_json(pl_json *json, const pl_collective_entries *entries);

#endif
