/* See search/method/domino.h. Backtracking over the first free cell: every tiling covers it with one of the rectangles,
 * in an order that is drawn; the steps are bounded, since nearly all meshes tile at once and what does not may take
 * long to show it. */
#include "search/method/domino.h"

#include "core/base/multiple.h"
#include "core/base/split_mix.h"

#include <string.h>

enum { MOST_SHAPES = 32, STEPS_PER_CELL = 64 };

typedef struct shape {
  int32_t height, width;
} shape;

/* One rectangle that lies on the mesh. */
typedef struct tile {
  int32_t cell;
  uint32_t tried; /* shapes, by bit */
  int32_t shape;
} tile;

typedef struct tiling {
  pl_domino_mesh mesh;
  shape shapes[MOST_SHAPES];
  int32_t n_shapes;
  uint8_t *taken; /* per cell, column * rows + row */
  tile *tiles;
  int32_t n_tiles;
} tiling;

uint64_t pl_domino_draw(uint64_t *state) {
  return pl_split_mix(state);
}

pl_domino_mesh pl_domino_mesh_of(const pl_cluster *cluster) {
  uint32_t rows = 0, n = cluster->n_devices;
  for (uint32_t i = 0; i < cluster->n_nodes; i++)
    rows = (uint32_t)pl_common_divisor(cluster->nodes[i].n_devices, rows);
  if (rows <= 1)
    for (uint32_t side = 1; side * side <= n; side++)
      if (n % side == 0) rows = side;
  PL_ASSERT(rows > 0); /* a cluster has a device */
  return (pl_domino_mesh){(int32_t)rows, (int32_t)(n / rows)};
}

static void add_shape(tiling *t, int32_t height, int32_t width) {
  if (height > t->mesh.rows || width > t->mesh.columns || t->n_shapes == MOST_SHAPES) return;
  for (int32_t i = 0; i < t->n_shapes; i++)
    if (t->shapes[i].height == height && t->shapes[i].width == width) return;
  t->shapes[t->n_shapes++] = (shape){height, width};
}

static void list_shapes(tiling *t, int32_t tmp, int32_t dp) {
  add_shape(t, tmp, dp);
  add_shape(t, dp, tmp);
  if (t->n_shapes > 0) return;
  for (int32_t height = 1; height <= t->mesh.rows; height++)
    if (tmp * dp % height == 0) add_shape(t, height, tmp * dp / height);
}

static bool is_free(const tiling *t, int32_t cell, const shape *s) {
  int32_t row = cell % t->mesh.rows, column = cell / t->mesh.rows;
  if (row + s->height > t->mesh.rows || column + s->width > t->mesh.columns) return false;
  for (int32_t c = column; c < column + s->width; c++)
    for (int32_t r = row; r < row + s->height; r++)
      if (t->taken[c * t->mesh.rows + r]) return false;
  return true;
}

static void mark(tiling *t, int32_t cell, const shape *s, bool taken) {
  for (int32_t c = 0; c < s->width; c++)
    memset(t->taken + cell + c * t->mesh.rows, taken, (size_t)s->height);
}

/* Lays a shape that has not been tried yet on the last tile's cell. */
static bool lay(tiling *t, uint64_t *random) {
  tile *last = &t->tiles[t->n_tiles - 1];
  int32_t start = (int32_t)pl_domino_draw_below(random, (uint32_t)t->n_shapes);
  for (int32_t i = 0; i < t->n_shapes; i++) {
    int32_t s = (start + i) % t->n_shapes;
    if (last->tried & 1u << s || !is_free(t, last->cell, &t->shapes[s])) continue;
    last->tried |= 1u << s;
    last->shape = s;
    mark(t, last->cell, &t->shapes[s], true);
    return true;
  }
  return false;
}

static int32_t next_free(const tiling *t, int32_t cell) {
  int32_t n = t->mesh.rows * t->mesh.columns;
  while (cell < n && t->taken[cell])
    cell++;
  return cell;
}

static bool tile_all(tiling *t, uint64_t *random) {
  int32_t n = t->mesh.rows * t->mesh.columns;
  t->tiles[t->n_tiles++] = (tile){.cell = 0};
  for (int64_t step = 0; step < (int64_t)n * STEPS_PER_CELL; step++) {
    if (lay(t, random)) {
      int32_t cell = next_free(t, t->tiles[t->n_tiles - 1].cell);
      if (cell == n) return true;
      t->tiles[t->n_tiles++] = (tile){.cell = cell};
      continue;
    }
    if (--t->n_tiles == 0) return false;
    const tile *before = &t->tiles[t->n_tiles - 1];
    mark(t, before->cell, &t->shapes[before->shape], false);
  }
  return false;
}

static void write_tile(const tiling *t, const tile *own, uint32_t *devices) {
  const shape *s = &t->shapes[own->shape];
  uint32_t n = 0;
  for (int32_t c = 0; c < s->width; c++)
    for (int32_t r = 0; r < s->height; r++)
      devices[n++] = (uint32_t)(own->cell + c * t->mesh.rows + r);
}

bool pl_domino_tile(const pl_domino_mesh *mesh, int32_t tmp, int32_t dp, uint64_t *random, pl_arena *arena,
                    uint32_t *devices) {
  int32_t n = mesh->rows * mesh->columns;
  if (n % (tmp * dp) != 0) return false;
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  tiling t = {.mesh = *mesh, .taken = PL_TAKE(arena, uint8_t, n), .tiles = PL_TAKE(arena, tile, n / (tmp * dp) + 1)};
  if (arena->failed) return false;
  list_shapes(&t, tmp, dp);
  bool found = t.n_shapes > 0 && tile_all(&t, random);
  for (int32_t i = 0; found && i < t.n_tiles; i++)
    write_tile(&t, &t.tiles[i], devices + (ptrdiff_t)i * tmp * dp);
  pl_arena_release_to(arena, scratch);
  return found;
}
