/* Reference executor: runs a program with values. Every device of the mesh holds what its layouts say, collectives and
 * sends move it, and what a device does not hold it cannot read: a program that leaves out a collective computes
 * something else, or stops. In fp64, or in fp32 with every result rounded.
 *
 * A class is one list that its devices run together, op by op; classes go on side by side until all are done, or none
 * can go on (a deadlock, which is an error that names the waiting ops).
 *
 * After every op devices that should hold the same are compared (`tolerance`): a layout that says more than is true is
 * found where it is made.
 */
#ifndef PL_WORKLOADS_EXECUTOR_H
#define PL_WORKLOADS_EXECUTOR_H

#include "workloads/execute/holding.h"
#include "workloads/execute/peers.h"

typedef struct pl_execution_options {
  uint64_t seed;
  int32_t iterations; /* at least 1: optimizer steps */
  bool single;        /* fp32 */
  double tolerance;   /* of values that should be the same, relative to their largest element; 0: not compared */
  const struct pl_data_source *source; /* of weights and inputs (data.h); NULL: all are made from the seed */
  const pl_peers *peers;       /* this process runs one device of the mesh, others the others; NULL: all are here */
  bool timed;                  /* pl_execution_op_s, pl_execution_iteration_s */
  void (*progress)(void *own); /* called with peers->own behind every op; NULL: not */
} pl_execution_options;

typedef struct pl_execution pl_execution;

/* Runs a program that pl_ir_check has passed. On success *execution is to be destroyed by the caller; on failure it is
 * NULL. Errors name function, op and line. With peers what is held whole
 * (pl_execution_whole) is not to be had. */
pl_code pl_execute(const pl_ir_module *module, const pl_execution_options *options, pl_execution **execution,
                   pl_error *error);
void pl_execution_destroy(pl_execution *execution);

/* Seconds of an iteration, from where all devices have met to the end of this one's list. */
double pl_execution_iteration_s(const pl_execution *execution, int32_t iteration);
/* Seconds of op `op` of a function in an iteration, all its instances and microbatches together; data of the iteration
 * (`input`) is made in front of it, but for the first one. Calls have what they call and no time of their own. */
double pl_execution_op_s(const pl_execution *execution, int32_t iteration, int32_t function, int32_t op);
/* How often it ran in an iteration. */
int32_t pl_execution_op_runs(const pl_execution *execution, int32_t function, int32_t op);

/* Sum of what `loss` ops were given, by iteration; with peers this device's share, which add up over all devices. */
double pl_execution_loss(const pl_execution *execution, int32_t iteration);
/* Most bytes of values, state included, that a device of a class held at once; as wide as their types say. */
double pl_execution_peak_bytes(const pl_execution *execution, int32_t class_index);

typedef enum pl_execution_kind {
  PL_EXECUTION_PARAMETER = 0,
  PL_EXECUTION_GRADIENT,
  PL_EXECUTION_STATE
} pl_execution_kind;
/* State of this kind, by first use; `path` NULL ends them. State of an optimizer is path:slot. */
const char *pl_execution_path(const pl_execution *execution, pl_execution_kind kind, int32_t index);
/* The whole value; a gradient (of the last iteration) is the sum over classes that have one. `type` (may be NULL) is
 * that of the class that has it first. Memory from malloc, for the caller to free; NULL: there is none, or no memory.
 * *differs: how far holders that should hold the same are apart, classes included (gradients: inside a class). */
double *pl_execution_whole(const pl_execution *execution, pl_execution_kind kind, const char *path, pl_ir_type *type,
                           double *differs);

#endif
