/* What the files of the executor share. Internal to workloads/execute/. */
#ifndef PL_WORKLOADS_EXECUTOR_INTERNAL_H
#define PL_WORKLOADS_EXECUTOR_INTERNAL_H

#include "workloads/execute/executor.h"
#include "workloads/execute/state.h"
#include "workloads/language/ir_fewer.h"

/* Kinds of entries beside those that users ask for. */
enum { PL_EXECUTION_KEPT = PL_EXECUTION_STATE + 1, PL_EXECUTION_MAIL };
enum { PL_FRAMES_MAX = 64 };

/* Rows that the executor does itself. */
typedef enum pl_special {
  PL_SPECIAL_NONE = 0,
  PL_SPECIAL_INPUT,
  PL_SPECIAL_PARAM,
  PL_SPECIAL_KEEP,
  PL_SPECIAL_KEPT,
  PL_SPECIAL_CALL,
  PL_SPECIAL_ACCUMULATE,
  PL_SPECIAL_GRADIENT,
  PL_SPECIAL_STATE,
  PL_SPECIAL_STORE,
  PL_SPECIAL_LOSS,
  PL_SPECIAL_SEND,
  PL_SPECIAL_RECEIVE,
  PL_SPECIAL_SUM_CLASSES,
  PL_SPECIAL_KERNEL, /* runs as a call */
  PL_SPECIAL_COUNT
} pl_special;

typedef struct pl_frame {
  const pl_ir_function *function;
  int32_t index;       /* in the module */
  const int32_t *last; /* per value: the last op that reads it; n_ops: handed back */
  int32_t next;        /* op */
  int32_t call;        /* op of the frame below that called */
  const char *prefix;
  pl_ir_piece piece;
  pl_holding **values;
} pl_frame;

/* The devices of a class and where they are in their list. */
typedef struct pl_member {
  const pl_ir_class *class;
  pl_crew crew;        /* of devices that are in this process */
  const uint32_t *all; /* devices of the class, rising */
  uint32_t position;   /* with peers: of this process's device among them */
  pl_store store;
  pl_store reads; /* n_reads of what a microbatch keeps, by chunk, piece and path */
  pl_frame frames[PL_FRAMES_MAX];
  int32_t n_frames, step, microbatch, chunk;
  pl_ir_turn *turns; /* per device of the crew, in this step */
  bool *absent;      /* per device of the crew: it passes over this step; NULL: nobody ever does */
  int32_t *n_sums;   /* sum_classes done in this iteration */
  bool finished, blocked;
} pl_member;

/* Data of an iteration, made in front of it, in the order of its use. */
typedef struct pl_early_input {
  const pl_ir_op *op;
  const pl_ir_function *function;
  pl_ir_turn turn;
  pl_ir_piece piece;
  pl_holding *holding;
} pl_early_input;

struct pl_execution {
  const pl_ir_module *module;
  pl_execution_options options;
  pl_arena arena, scratch;
  uint8_t *special;   /* per row */
  int32_t **last;     /* per function */
  pl_member *members; /* per class */
  pl_store mail;
  pl_crew nobody; /* owner of mail */
  double *losses;
  int32_t iteration;
  const char **tags; /* of messages, each once */
  uint32_t sample_axes;
  /* timed: */
  int32_t n_ops;              /* of all functions */
  int32_t *first_op;          /* per function */
  double *op_s, *iteration_s; /* [iteration][op]; [iteration] */
  int32_t *op_runs;           /* [op], of all iterations */
  bool makes_early;           /* one device is here, so that its data come in one order */
  pl_early_input *inputs;
  uint32_t n_inputs, room_inputs, next_input;
};

/* executor_state.c: parameters, gradients, kept values, inputs, the loss. Fills the op's output, if it has one. */
pl_code pl_execution_run_state(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                               pl_error *error);
/* executor_mail.c: send, receive, sum_classes; m->blocked where it has to wait. */
pl_code pl_execution_run_mail(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                              pl_error *error);
/* executor_state.c: in front of an iteration. */
/* Of the class of that name; NULL: there is none. */
pl_member *pl_execution_member(const pl_execution *own, const char *name);
pl_code pl_execution_make_inputs(pl_execution *own, pl_member *m, pl_error *error);
/* executor_ring.c: ring_attention and its derivative, outputs zeroed. */
pl_code pl_execution_run_ring(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error);
/* prefix.path, without a dot where one of them is empty; NULL: no memory. */
const char *pl_execution_joined(pl_execution *own, const char *prefix, const char *path);
/* executor_state.c: what the instance was called in state that is kept for a step. */
void pl_execution_forget_kept(pl_member *m);
/* executor_kept.c: before anything runs; a value that is kept; one that has been read, perhaps for the last time. */
pl_code pl_execution_count_reads(pl_execution *own, pl_member *m, pl_error *error);
pl_code pl_execution_keep(pl_execution *own, pl_member *m, const pl_frame *f, const pl_ir_op *op, pl_kept *entry,
                          pl_error *error);
void pl_execution_let_go(pl_member *m, pl_kept *entry);
pl_code pl_execution_no_memory(pl_error *error);

#endif
