/* The peak of tensors on a device of a stage, from the program alone: what is resident, and what the schedule's passes
 * hold on top of it. As tasks of a device run in order it is what a simulation finds, to the byte, but where passes run
 * beside each other (pl_strategy_hides_tokens): then it is at least this. */
#ifndef PL_WORKLOADS_STAGE_PEAK_H
#define PL_WORKLOADS_STAGE_PEAK_H

#include "workloads/program/program.h"

/* `program` may be an outline. `in_order`: the stage's tasks run in the order of its one schedule; else only what is
 * resident, and the optimizer's step, count. O(blocks of the stage) of GPipe, FIFO, 1F1B and interleaved ones; of
 * others also O(steps) until they are steady. */
double pl_stage_peak_bytes(const pl_program *program, int32_t stage, bool in_order);
/* In two steps: what the passes of its one schedule hold, which ZeRO and overlap do not change, and the peak with that
 * or, with 0, of what is resident. */
double pl_stage_passes_bytes(const pl_program *program, int32_t stage);
double pl_stage_peak_of(const pl_program *program, int32_t stage, double passes_bytes);

#endif
