/* What was taken for a case where its row says nothing: "vocab: 50257; schedule: 1f1b; ...", so that nothing is guessed
 * in silence. */
#ifndef PL_VALIDATION_ASSUME_H
#define PL_VALIDATION_ASSUME_H

#include "validation/rows/case.h"

/* Fills c->assumptions of a case that is expressed. */
pl_code pl_case_assume(pl_case *c, pl_arena *arena, pl_error *error);

#endif
