/* Random models, jobs and strategies for tests that hold for any program. The same state of `random` gives the same
 * program; what cannot be made aborts the test program. */
#ifndef PL_TESTS_SUPPORT_RANDOM_PROGRAM_H
#define PL_TESTS_SUPPORT_RANDOM_PROGRAM_H

#include "core/cluster/cluster.h"
#include "workloads/framework/framework.h"
#include "workloads/ir/model.h"
#include "workloads/strategy/strategy.h"

/* Dense, with experts in every layer, or with latent attention, shared experts and one dense layer. */
void random_program_model(uint64_t *random, pl_arena *arena, pl_model *model);
/* For `devices` of them. False: the model has too few layers for it. */
bool random_program_strategy(uint64_t *random, int32_t devices, const pl_model *model, pl_job *job,
                             pl_strategy *strategy, pl_arena *arena);
/* For all or some of the devices, which the placement or its absence chooses. */
bool random_program_placed(uint64_t *random, const pl_cluster *cluster, const pl_model *model, pl_job *job,
                           pl_strategy *strategy, pl_arena *arena);
/* Of ideal and those that are shipped the one at `index`, counted around. */
const pl_framework *random_program_framework(uint32_t index, pl_arena *arena);

#endif
