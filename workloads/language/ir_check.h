/* Whether a program makes sense, before anything runs it.
 *
 *   ops       of the table, with the operands, attributes and paths that their row asks for; values are made before
 *             they are used; types can lie on the mesh, are what the operands give, and lie as the op needs them
 *   state     a path has one type as a parameter, one as a gradient, one per slot of optimizer state, all of one shape,
 *             in all classes; what a function reads with `kept` its forward function keeps once, with that type
 *   classes   cover the mesh once; their functions hold nothing along an axis of which they have only a part
 *   steps     each chunk and microbatch forward once, backward once behind it, weights once behind that
 *   fewer     places with fewer microbatches are on the mesh, some device runs all; inside steps nothing meets along
 * the axes that they are places of, and data is cut along these order     all lists together come to their end: no
 * receive waits for what is never sent, no list for another that waits for it; what is sent is received, with the type
 * that it has
 */
#ifndef PL_WORKLOADS_IR_CHECK_H
#define PL_WORKLOADS_IR_CHECK_H

#include "workloads/language/ir_module.h"

enum {
  PL_IR_DEVICES_MAX = 1 << 20,
  PL_IR_EXPANDED_MAX = 1 << 22, /* ops behind all calls */
  PL_IR_MEETINGS_MAX = 1 << 23  /* sends, receives and sums over classes, over all steps */
};

/* PL_BAD_INPUT: the first thing that is wrong, as "FILE:LINE:COLUMN: what, and what would be valid", or, of a module
 * that no file was read for, with the function and the op. O(ops behind all calls + steps * their sends). */
pl_code pl_ir_check(const pl_ir_module *module, pl_error *error);

/* The same of a program that passes have made of one that was checked, or that Paceline wrote: that ops are of the
 * types that they say, and lie as they may, is left to debug and sanitizer builds, to `verify` and to the tests of the
 * passes. What hangs on what a user said is looked at: classes, steps, state by path, and that no list waits for ever.
 */
pl_code pl_ir_check_made(const pl_ir_module *module, pl_error *error);

/* The same where chunks of steps are of their classes, and of which it is known what recurs; `is_made`: as
 * pl_ir_check_made. O(steps outside of the phases * classes) instead of all of them. */
struct pl_ir_recurrence;
pl_code pl_ir_check_recurring(const pl_ir_module *module, const struct pl_ir_recurrence *recurrence, bool is_made,
                              pl_error *error);

#endif
