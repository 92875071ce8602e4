/* The check of programs in its parts. Internal to ir_check*.c, ir_inside.c and ir_flow*.c (ir_check.h is for everybody
 * else). */
#ifndef PL_WORKLOADS_IR_CHECKING_H
#define PL_WORKLOADS_IR_CHECKING_H

#include "workloads/language/ir_check.h"
#include "workloads/language/ir_check_op.h"
#include "workloads/language/ir_piece.h"

typedef struct pl_ir_checking {
  const pl_ir_module *module;
  pl_arena *scratch;
  pl_error *error;
  pl_hash_index class_names; /* of records `const pl_ir_class` */
  int64_t *n_expanded;       /* by function: ops behind all calls */
  bool is_made;              /* by passes, which are believed: ops are what they write */
} pl_ir_checking;

/* PL_BAD_INPUT with where: file and place, else function and op (`function`, `op` may be NULL). */
pl_code pl_ir_check_fail(const pl_ir_checking *checking, pl_ir_place place, const pl_ir_function *function,
                         const pl_ir_op *op, const char *format, ...) __attribute__((format(printf, 5, 6)));
pl_code pl_ir_check_no_memory(const pl_ir_checking *checking);
/* "line 12", or "op 3 of @f"; for a second place in a message. */
enum { PL_IR_WHERE_BYTES = 128 };
const char *pl_ir_where(const pl_ir_function *function, const pl_ir_op *op, char text[PL_IR_WHERE_BYTES]);
int32_t pl_ir_class_find(const pl_ir_checking *checking, pl_ir_name name); /* PL_IR_NONE = none */

pl_code pl_ir_check_functions(pl_ir_checking *checking);
pl_code pl_ir_check_classes(pl_ir_checking *checking); /* steps, and where they are */
pl_code pl_ir_check_fewer(pl_ir_checking *checking);   /* devices with fewer microbatches than others */
pl_code pl_ir_check_state(pl_ir_checking *checking);
pl_code pl_ir_check_flow(pl_ir_checking *checking);

/* ---- ops behind calls ---- */

/* Goes through a function, picked op by picked op, and into what it calls, with the path in front of what is inside. */
enum { PL_IR_DEPTH_MAX = 64 };
/* The ops of a function that somebody asks for, calls that lead to some of them included. */
typedef struct pl_ir_picked {
  const int32_t *ops;
  int32_t n;
} pl_ir_picked;

typedef struct pl_ir_frame {
  const pl_ir_function *function;
  const pl_ir_picked *picked;
  int32_t at; /* of what is picked */
  size_t prefix_length;
  pl_ir_piece piece;
} pl_ir_frame;

/* Calls of classes' own functions that are as others but for their paths (ir_check_alike.c). */
typedef struct pl_ir_alike {
  struct search *search;
} pl_ir_alike;

/* By what is picked. NULL: no memory. */
const pl_ir_alike *pl_ir_check_alike(const pl_ir_checking *checking, const pl_ir_picked *picked);
/* Whether another one, which is not, holds what this call does. */
bool pl_ir_is_spoken_for(const pl_ir_alike *alike, const pl_ir_op *call);

typedef struct pl_ir_inside {
  const pl_ir_module *module;
  const pl_ir_picked *picked; /* by function */
  const pl_ir_alike *alike;   /* calls that are spoken for are passed over; NULL: none */
  pl_ir_frame frames[PL_IR_DEPTH_MAX];
  int32_t depth;
  char prefix[PL_IR_TEXT_MAX + 2]; /* "decoder.h.3." or "" */
  char path[PL_IR_TEXT_MAX + 1];
  char kept[PL_IR_TEXT_MAX + 32];
} pl_ir_inside;

/* Of every function what this predicate says of its rows: one look at each op, however often its function is called.
 * NULL: no memory. pl_ir_check_functions has passed. */
const pl_ir_picked *pl_ir_inside_pick(const pl_ir_checking *checking, bool (*is_asked)(const pl_ir_row *row));
/* `function` PL_IR_NONE: no ops. */
void pl_ir_inside_begin(pl_ir_inside *walk, const pl_ir_module *module, const pl_ir_picked *picked, int32_t function);
/* The next picked op that is no call, NULL behind the last one; its function is walk->frames[walk->depth - 1].function.
 */
const pl_ir_op *pl_ir_inside_next(pl_ir_inside *walk);
/* The whole path of this op, ended by NUL; valid until the next call. */
const char *pl_ir_inside_path(pl_ir_inside *walk, const pl_ir_op *op);
/* The same of what is kept: a piece of the samples has its own, "h.3.norm1 of piece 2". */
const char *pl_ir_inside_kept(pl_ir_inside *walk, const pl_ir_op *op);

#endif
