/* Which layers hold experts, as Megatron's --moe-layer-freq says it in Python: "([0]*3+[1]*58)", "[1, 0]*12",
 * "[0,1,1]"; 1 where a layer holds experts. */
#ifndef PL_WORKLOADS_EXPERT_LAYERS_H
#define PL_WORKLOADS_EXPERT_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

enum { PL_EXPERT_LAYERS_MAX = 4096 };

/* The number of dense layers in front; behind them layer i holds experts where i mod step is the phase. False: it is no
 * such list, or says what these cannot. */
bool pl_expert_layers_read(const char *list, int64_t *n_dense, int64_t *step, int64_t *phase);

#endif
