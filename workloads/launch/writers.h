/* One writer per form. Internal to workloads/launch. */
#ifndef PL_WORKLOADS_LAUNCH_WRITERS_H
#define PL_WORKLOADS_LAUNCH_WRITERS_H

#include "workloads/launch/launch_write.h"

pl_code pl_launch_write_megatron(FILE *stream, const pl_launched *launched, pl_error *error);
pl_code pl_launch_write_nemo(FILE *stream, const pl_launched *launched, pl_error *error);
pl_code pl_launch_write_torchtitan(FILE *stream, const pl_launched *launched, pl_error *error);
pl_code pl_launch_write_deepspeed(FILE *stream, const pl_launched *launched, pl_error *error);

/* What all of Megatron's kin share: layers in equal stages, 1F1B or interleaved, no recomputation of every other
 * product, ranks in one of two orders. */
pl_code pl_launch_check_megatron(const pl_launched *launched, pl_error *error);
/* Refuses whatever lies in the memory of the host. */
pl_code pl_launch_check_host(const pl_launched *launched, pl_error *error);
/* Whether the model is one that arguments can say: PL_UNSUPPORTED with its model_type. */
pl_code pl_launch_check_model(const pl_model *model, pl_error *error);

#endif
