/* Domino tilings of the devices: AMP's randomised device placement (Li et al. 2022, section 6.3, figure 5).
 *
 * The devices are a mesh whose columns are (parts of) nodes, so that vertical neighbours have the fast links. It is
 * tiled with rectangles of tmp x dp devices, upright or lying; each is a pipeline stage. Inside a rectangle ranks run
 * down the columns, tensor ranks first: upright, its columns are the tensor groups and its rows the data-parallel ones.
 * Where a rectangle of these sides does not fit the mesh either way, any of the same area that does. */
#ifndef PL_SEARCH_DOMINO_H
#define PL_SEARCH_DOMINO_H

#include "core/base/arena.h"
#include "core/cluster/cluster.h"

/* Device of (row, column) is column * rows + row: a column is never on two nodes. */
typedef struct pl_domino_mesh {
  int32_t rows, columns;
} pl_domino_mesh;

/* Rows: the greatest common divisor of the nodes' sizes; of nodes of one device each the largest divisor of their
 * number that is not above its root. */
pl_domino_mesh pl_domino_mesh_of(const pl_cluster *cluster);

/* A random tiling, from column to column and down each, stages in this order. devices[stage * tmp * dp + replica * tmp
 * + tensor]; scratch from `arena`, given back. `*random` is the state of SplitMix64. False, with nothing written: tmp *
 * dp does not divide the mesh, no tiling was found in 64 steps per device, or (arena->failed) there is no memory. */
bool pl_domino_tile(const pl_domino_mesh *mesh, int32_t tmp, int32_t dp, uint64_t *random, pl_arena *arena,
                    uint32_t *devices);

/* The next number of a state, and one that is uniform in [0, n). */
uint64_t pl_domino_draw(uint64_t *state);
static inline uint32_t pl_domino_draw_below(uint64_t *state, uint32_t n) {
  return (uint32_t)((pl_domino_draw(state) >> 32) * n >> 32);
}

#endif
