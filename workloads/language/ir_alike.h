/* Which lists of a program are alike: stages of a pipeline that run as many layers of the same kind call the same
 * functions, under other paths, and hear from and tell other classes. What is found in the passes of one of them holds
 * for the passes of the others. */
#ifndef PL_WORKLOADS_IR_ALIKE_H
#define PL_WORKLOADS_IR_ALIKE_H

#include "workloads/language/ir_module.h"

/* Per class the first one that it is like; itself: it is like none before it. NULL: no memory. In memory of `arena`.
 *
 * Classes are alike if their functions, chunk by chunk, are calls of the same functions, which tell no class anything,
 * between sends and receives, over the same values of the same types; and if the paths of calls correspond one to one,
 * in all functions of the class together, so that what one finds under a path the other finds under its like. Steps may
 * differ: they are passes in another order. O(ops + classes^2). */
const int32_t *pl_ir_alike_take(const pl_ir_module *module, pl_arena *arena);

/* A send or receive of a class. */
typedef struct pl_ir_telling {
  bool sends;
  const char *other, *tag; /* the class that it is to, or from */
} pl_ir_telling;

/* That of `class` which corresponds to this one of the class that it is like; NULL: there is none. */
const pl_ir_op *pl_ir_alike_op(const pl_ir_module *module, const pl_ir_class *like, const pl_ir_class *class,
                               const pl_ir_telling *telling);

#endif
