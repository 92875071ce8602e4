/* One case and more for each row of the op table that computes values. Dimensions have names of one letter; a case
 * draws their extents. */
#ifndef PL_TESTS_SUPPORT_IR_SPECS_H
#define PL_TESTS_SUPPORT_IR_SPECS_H

#include "tests/support/ir_case.h"

typedef struct ir_spec {
  const char *row, *attributes;
  /* "bsh": numbers of those dimensions, away from zero; "+bsh": above zero; "*bsh": up to six; "#bs<v": ids below the
   * extent of v; "bSh": six more places of s; "b x=2": that extent of x. */
  const char *operands[IR_CASE_OPERANDS];
  const char *written; /* dimensions of the result of a row whose type is written down */
} ir_spec;

extern const ir_spec ir_specs[]; /* one without a row ends them */

/* Computed once. */
void ir_spec_case(const ir_spec *spec, uint64_t *random, pl_arena *arena, ir_case *one);

#endif
