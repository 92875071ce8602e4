/* Time of one op on one device type: the profile's table entry if there is one, else the roofline. */
#ifndef PL_WORKLOADS_OP_COST_H
#define PL_WORKLOADS_OP_COST_H

#include "core/device_profile.h"
#include "workloads/op.h"

typedef enum pl_cost_source { PL_COST_TABLE = 0, PL_COST_ROOFLINE } pl_cost_source;
typedef enum pl_cost_bound { PL_BOUND_COMPUTE = 0, PL_BOUND_MEMORY, PL_BOUND_LAUNCH } pl_cost_bound;

typedef struct pl_op_time {
  double time_s;
  pl_cost_source source;
  pl_cost_bound bound;
} pl_op_time;

/* Compute ops only (collectives are the network's). */
pl_op_time pl_op_cost(const pl_device_profile *profile, const pl_op *op);
/* Optimizer step over `parameters` local parameters (Adam, mixed precision): memory bound. */
pl_op_time pl_optimizer_cost(const pl_device_profile *profile, double parameters, double bytes_per_parameter);

#endif
