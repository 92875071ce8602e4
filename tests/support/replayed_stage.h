/* What PyTorch's allocator holds of a stage's training (workloads/memory/stage_replay.h), for a test, which ends
 * when it cannot be said.
 */
#ifndef PL_TESTS_SUPPORT_REPLAYED_STAGE_H
#define PL_TESTS_SUPPORT_REPLAYED_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/memory/stage_replay.h"

/* `text` is a strategy, `cluster` what its layers are assigned for (NULL: alike devices); limit_bytes: what the device
 * leaves the allocator, 0: no limit. Memory from `own`. */
static inline pl_replayed_memory replay_stage(const pl_model *model, const pl_job *job, const pl_cluster *cluster,
                                              const char *text, int32_t stage, double limit_bytes, pl_arena *own) {
  pl_strategy strategy;
  pl_program program;
  pl_replayed_memory memory = {0};
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, model, own, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, model, job, cluster, own, &error) != PL_OK ||
      pl_program_take(model, job, &strategy, own, &program, &error) != PL_OK ||
      pl_stage_replay(&program, stage, limit_bytes, own, &memory, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return memory;
}

#endif
