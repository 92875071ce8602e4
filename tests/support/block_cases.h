/* Blocks of the shipped models under random shards and the shipped frameworks: for tests that compare or freeze
 * programs of blocks. */
#ifndef PL_TESTS_SUPPORT_BLOCK_CASES_H
#define PL_TESTS_SUPPORT_BLOCK_CASES_H

#include "core/base/digest.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

enum { BLOCK_CASE_FRAMEWORKS = 64, BLOCK_CASE_MODELS = 128 };

typedef struct block_cases {
  pl_framework frameworks[BLOCK_CASE_FRAMEWORKS]; /* the first is the ideal one */
  pl_model models[BLOCK_CASE_MODELS];
  uint32_t n_frameworks, n_models;
} block_cases;

/* All in `arena`; fails the test where one cannot be read. Sorted by name. */
void block_cases_load(block_cases *cases, pl_arena *arena);
/* A shard; some are not for this model (pl_block_check_shard and pl_block_class_program_take say so). */
pl_block_shard block_cases_shard(uint64_t *random, const pl_model *model, const pl_framework *framework);
/* A model of transformer layers with some of its traits turned: families that are not among the shipped ones. Its
 * parameters are not counted anew. */
pl_model block_cases_turned(uint64_t *random, const pl_model *model);
/* Of everything that a program says. */
void block_program_digest(pl_digest *digest, const pl_block_program *program);
void block_shard_print(const pl_block_shard *shard);

#endif
