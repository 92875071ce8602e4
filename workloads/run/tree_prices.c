/* See workloads/run/tree_prices.h. */
#include "workloads/run/tree_prices.h"

#include "workloads/compile/mesh_prices.h"

pl_collective_options pl_program_collectives(const pl_simulate_options *options) {
  return (pl_collective_options){
      .sharing = options->sharing, .algorithm = options->algorithm, .profile = options->collective_profile};
}

pl_code pl_tree_prices_adopt(pl_strategy_tree *tree, const pl_cluster *cluster, const pl_simulate_options *options,
                             bool tells, pl_arena *arena, pl_error *error) {
  const pl_collective_options collectives = pl_program_collectives(options);
  pl_mesh_prices *prices = PL_TAKE(arena, pl_mesh_prices, 1);
  if (prices == NULL) return pl_fail_memory(error, "prices of collectives");
  pl_mesh_prices_init(prices, cluster, &collectives, arena);
  prices->prices.tells = tells;
  tree->prices = &prices->prices;
  return PL_OK;
}
