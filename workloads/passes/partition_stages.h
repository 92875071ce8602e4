/* The stages of a pipeline while a program is cut for them. Internal to workloads/passes/partition*.c. */
#ifndef PL_WORKLOADS_PARTITION_STAGES_H
#define PL_WORKLOADS_PARTITION_STAGES_H

#include "workloads/layout/laying.h"
#include "workloads/tree/tree_plan.h"

typedef struct pl_stages {
  pl_partitioning *own;
  const pl_tree_plan *plan;
  bool tied;     /* somebody else reads the embedding's table: a tied head, multi-token prediction */
  int32_t other; /* the stage of those that do, where it is another than the embedding's; else that one */
  int32_t n_chunks;
  bool twice;    /* there are two copies of the model: stage s has the parts s and pp - 1 - s */
  bool mirrored; /* the second of them is written */
} pl_stages;

/* Chunk of the module that a call is of: by its instance; of a call without one by the first module of its callee. */
int32_t pl_stages_chunk_of_call(const pl_stages *own, const pl_ir_module *from, const pl_ir_op *call);
int32_t pl_stages_stage_of(const pl_stages *own, int32_t chunk);
int32_t pl_stages_stage_of_module(const pl_stages *own, const char *name);
pl_ir_name pl_stages_class_name(int32_t stage);

/* The update function of a stage (partition_update.c): the calls of `update` whose modules are there. */
pl_code pl_stages_update(pl_stages *own, int32_t update, int32_t stage, int32_t *function, pl_error *error);

#endif
