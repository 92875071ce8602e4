/* What the files of differentiation share. Internal to workloads/derive. */
#ifndef PL_WORKLOADS_BACKWARD_H
#define PL_WORKLOADS_BACKWARD_H

#include "workloads/derive/differentiate.h"
#include "workloads/language/ir_differ.h"

/* What has become of a function of the model program: functions of the training program, PL_IR_NONE = none. */
typedef struct pl_derived {
  int32_t forward, backward, weights;
  bool has_loss;      /* in it or in what it calls */
  bool has_arguments; /* its backward function takes some */
  bool is_bare;       /* called without an instance: names of what it keeps begin with its own */
  uint8_t recompute;  /* pl_recompute */
  const uint8_t *ops; /* per op of it: pl_recompute_of_op; NULL: all as the function */
  bool *gives;        /* per argument: whether `backward` gives its gradient */
} pl_derived;

typedef struct pl_backward_rows {
  int32_t param, input, constant, rename, keep, kept, call, accumulate, loss, maximum, dropout;
} pl_backward_rows;

typedef struct pl_backward_pass {
  const pl_ir_module *model;
  pl_ir_module *training;
  const pl_differentiate_options *options;
  pl_backward_rows rows;
  pl_derived *derived; /* per function of the model */
} pl_backward_pass;

/* Of an op of a draft that reads an argument that was kept. */
enum { PL_DRAFT_ARGUMENT = -2 };

/* The backward function of one function, in one piece and with ops that nobody needs: before it is cut and written
 * into the training program. */
typedef struct pl_draft {
  pl_backward_pass *pass;
  int32_t of; /* function of the model */
  pl_ir_differ differ;
  pl_ir_function function;
  int32_t *again;    /* per op of `function`: the forward op whose result it makes or reads again; PL_IR_NONE: none */
  bool *makes_again; /* per op of the forward function: decided beforehand (recompute.c) */
  bool *needed;      /* per op of the forward function: scratch of recompute.c */
  int32_t deriving;  /* the op whose derivative is written; PL_IR_NONE: none */
  int32_t room, *results; /* gradients of the arguments that are given, n_results of them */
  int32_t n_results;
} pl_draft;

/* recompute.c: which ops of the forward function are made again; and the `see` of ir_differ.h, whose context is the
 * draft. */
pl_code pl_recompute_decide(pl_draft *draft, pl_error *error);
int32_t pl_recompute_see(pl_ir_differ *differ, int32_t value);
/* Values that any function of the same instance can read again, at no cost: parameters, data, kept values ... */
bool pl_backward_is_reread(const pl_backward_rows *rows, const pl_ir_op *op);

/* recompute.c: of a part that is made again by itself, before the derivative of its last op: all of it, to that op,
 * whose result others have kept. False: no memory. */
bool pl_recompute_part(pl_draft *draft, int32_t op);
/* recompute.c: of a function that is made again, behind all derivatives: what a checkpoint makes though no derivative
 * reads it. False: no memory. */
bool pl_recompute_rest(pl_draft *draft);

/* backward_derive.c: fills the draft, whose forward function has been begun in the training program. */
pl_code pl_backward_derive(pl_draft *draft, pl_error *error);

/* backward_write.c: forward, backward and weights functions of the draft, into the training program. */
pl_code pl_backward_write(pl_draft *draft, pl_error *error);

/* optimizer.c: @f.update of every function with parameters, and @update, whose index is handed back. */
pl_code pl_optimizer_write(const pl_backward_pass *pass, int32_t main, int32_t *update, pl_error *error);

#endif
