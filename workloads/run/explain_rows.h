/* The rows of an explanation's tables, for one device: sums by kind, computing ops and communication, sorted by what
 * they take of the iteration. */
#ifndef PL_WORKLOADS_EXPLAIN_ROWS_H
#define PL_WORKLOADS_EXPLAIN_ROWS_H

#include "workloads/run/explanation.h"

/* Computing by the kind of op, then communication by its role, then the bubble; together the iteration time. */
typedef struct pl_explain_kind {
  const char *name;   /* "gemm" ... "optimizer", "tensor communication" ... "bubble" */
  const char *column; /* the name of its time where it has a column of its own: "gemm_s", "tensor_comm_s", "bubble_s" */
  bool computes;
  uint64_t calls;
  double flops, bytes;  /* computing: all calls */
  pl_ticks alone, time; /* computing: time is run; communication: exposed */
  pl_ticks hidden;      /* communication */
} pl_explain_kind;

typedef struct pl_explain_row {
  const pl_explained_op *op;
  const pl_explained_time *time;
  pl_explained_group group; /* communication that the device has a part in (time->group_class) */
} pl_explain_row;

typedef struct pl_explain_rows {
  uint32_t device_class;
  int32_t stage;
  const pl_explain_kind *kinds; /* those that are not all zero, and bubble */
  uint32_t n_kinds;
  const pl_explain_row *compute; /* by decreasing time */
  uint32_t n_compute;
  const pl_explain_row *communication; /* by decreasing exposed, then run */
  uint32_t n_communication;
} pl_explain_rows;

/* Memory from `arena`. */
pl_code pl_explain_rows_take(const pl_explanation *explanation, uint32_t device_class, pl_arena *arena,
                             pl_explain_rows *rows, pl_error *error);

/* "gemm", "optimizer", "other" */
const char *pl_explained_kind_name(const pl_explained_op *op);
/* "tensor", "data", "pipeline", "embedding" */
const char *pl_family_role_name(pl_family_kind kind);

#endif
