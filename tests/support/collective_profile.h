/* The collective profile that comes with Paceline, for tests. */
#ifndef PL_TESTS_SUPPORT_COLLECTIVE_PROFILE_H
#define PL_TESTS_SUPPORT_COLLECTIVE_PROFILE_H

#include <stdio.h>
#include <stdlib.h>

#include "netmodel/collective/collective_profile.h"

static inline const pl_collective_profile *shipped_collective_profile(pl_arena *memory) {
  pl_error error = PL_ERROR_INIT;
  pl_collective_profile *profile = PL_TAKE(memory, pl_collective_profile, 1);
  if (profile != NULL &&
      pl_collective_profile_load("platforms/collectives/nccl.json", memory, profile, &error) == PL_OK)
    return profile;
  fprintf(stderr, "%s\n", error.message);
  abort();
}

#endif
