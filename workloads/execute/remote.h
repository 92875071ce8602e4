/* Ops that move values, on one device of many: what they send and what they make of what comes. Internal to
 * workloads/execute/. */
#ifndef PL_WORKLOADS_EXECUTE_REMOTE_H
#define PL_WORKLOADS_EXECUTE_REMOTE_H

#include "workloads/execute/executor_internal.h"

/* all_reduce, reduce_scatter, all_gather, all_to_all, shift; the output is there, zeroed. */
pl_code pl_remote_collective(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error);
/* send, receive, sum_classes. */
pl_code pl_remote_mail(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                       pl_error *error);

/* Devices that differ from this one along the axes of the op's `over` only; *at: where it stands. In scratch. */
pl_code pl_remote_group(pl_execution *own, const pl_ir_op *op, pl_peer_group *group, uint32_t *at, pl_error *error);
/* Whether numbers of this type travel as fp32. */
bool pl_remote_is_narrow(const pl_execution *own, const pl_ir_type *type);
/* What comes from the device `by` places before along the ring of `group`, for what this one sends; channel 0. */
pl_code pl_remote_turn(pl_execution *own, const pl_peer_group *group, uint32_t at, int64_t by, const pl_ir_tensor *from,
                       pl_ir_tensor *to, pl_error *error);

#endif
