/* What a fork (core/engine/engine_fork.h) keeps of the run of a rolled graph: dates that are still looked at, sums over
 * rows, and accounts. Part of the engine's own state.
 */
#ifndef PL_CORE_ENGINE_FORK_ROLLED_H
#define PL_CORE_ENGINE_FORK_ROLLED_H

#include "core/engine/engine_running.h"
#include "core/graph/graph_heads.h"

enum { PL_KEPT_ALIGN = 64 }; /* of what a fork copies */

typedef struct pl_rolled_kept {
  pl_dates dates;
  pl_running_account spent;
} pl_rolled_kept;

/* NULL: no memory. `graph`: that of the run, which stays. */
pl_rolled_kept *pl_rolled_keep(const pl_engine *engine, const pl_graph *graph);
/* Some task of the row has finished. */
static inline bool pl_rolled_has_finished(const pl_rolled_kept *kept, uint32_t row) {
  return kept->dates.sums[row].n > 0;
}
/* To the heads of engine->graph, which are alike; its run has not begun. Without memory arena->failed is set. */
void pl_rolled_move(pl_engine *engine, const pl_rolled_kept *kept, const pl_graph_heads *from,
                    const pl_graph_heads *to);

#endif
