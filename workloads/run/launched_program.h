/* What devices launch for a program (workloads/fuse/kernels.h): made of a job's distributed program. */
#ifndef PL_WORKLOADS_LAUNCHED_PROGRAM_H
#define PL_WORKLOADS_LAUNCHED_PROGRAM_H

#include "core/cluster/cluster.h"
#include "workloads/framework/job.h"
#include "workloads/ir/model.h"
#include "workloads/language/ir_module.h"
#include "workloads/strategy/strategy.h"
#include "workloads/tree/tree_plan.h"

/* Kernels of a distributed program under the framework (NULL: ideal), on whatever devices. */
pl_code pl_program_kernels(const pl_ir_module *module, const pl_framework *framework, pl_arena *arena,
                           pl_ir_module *made, pl_error *error);
/* The same for a cluster. As it is stays a program of another level, and one for devices whose profile was measured op
 * by op (programs). */
pl_code pl_program_launched(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                            pl_arena *arena, pl_ir_module *made, pl_error *error);

/* The framework's profile with what a tuple says of gradients' reductions (overlap=), which is stronger: the program
 * does not say it. In `arena`, or the same. NULL: no memory. */
const pl_framework *pl_framework_of_tuple(const pl_framework *framework, const pl_strategy *strategy, pl_arena *arena);
/* What a printed program is to say of who launches it: the framework that was chosen (NULL: none) and what the tuple
 * says otherwise than its profile, which alone is said of ideal. */
pl_ir_launcher pl_launcher_of(const char *choice, const pl_framework *framework, const pl_strategy *strategy);
/* The profile with what a program says besides, which is stronger. In `arena`, or the same. NULL: no memory. */
const pl_framework *pl_framework_of_launcher(const pl_framework *framework, const pl_ir_launcher *launcher,
                                             pl_arena *arena);
/* The model as the framework holds it on `tmp` tensor ranks: its vocabulary is padded to a multiple. */
pl_model pl_model_held(const pl_model *model, const pl_framework *framework, int64_t tmp);
/* The same by a plan, whose leaf that cuts parameters into most parts counts. */
pl_model pl_model_held_by_plan(const pl_model *model, const pl_framework *framework, const pl_tree_plan *plan);
/* The program of a tree, as pl_program_of_tree makes it, of the model as it is held by it: `model` becomes that. One
 * plan serves both, unless the vocabulary is padded. */
pl_code pl_program_of_tree_held(pl_model *model, const pl_job *job, const pl_strategy_tree *tree, pl_ir_level level,
                                pl_arena *arena, pl_tree_plan *plan, pl_ir_module *module, pl_error *error);

#endif
