/* Programs with one mistake: what proofs are worth is how many of these they find. An op that moves, waits, scales or
 * adds up, or a step of a class's list, is left out, doubled or misplaced.
 *
 *   subject                      left out                     doubled               misplaced
 *   collective                   its value is its operand     on what it gave       along another axis, or of another
 *                                                                                   value of the same type
 *   send, sum_classes            not there                    again                 to, with another class
 *   receive (awaits what comes)  zeros, without waiting       again                 from another class
 *   scale                        its value is its operand     on what it gave       of another value of the same type
 *   accumulate                   not there                    again                 of another parameter
 *   step F, B, W                 not there                    again                 forward last, the others first
 *   place of fewer microbatches  not there                    again                 with one microbatch more
 */
#ifndef PL_TESTS_SUPPORT_MUTATION_H
#define PL_TESTS_SUPPORT_MUTATION_H

#include "workloads/language/ir_module.h"

typedef enum mutation { LEAVE_OUT = 0, DOUBLE, MISPLACE, N_MUTATIONS } mutation;
extern const char *const mutation_names[N_MUTATIONS];

bool mutation_is_subject(const pl_ir_op *op);
/* module->functions[f] becomes a copy in `arena` with the mistake at op `at`. False: there is no such mistake (no other
 * axis, class or value), and the module is as it was. */
bool mutation_of_op(pl_ir_module *module, int32_t f, int32_t at, mutation kind, pl_arena *arena);
/* class->steps becomes a copy in `arena`. */
void mutation_of_step(pl_ir_class *class, int32_t at, mutation kind, pl_arena *arena);

/* module->fewer becomes a copy in `arena`. */
void mutation_of_fewer(pl_ir_module *module, int32_t at, mutation kind, pl_arena *arena);

#endif
