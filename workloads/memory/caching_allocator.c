/* See workloads/memory/caching_allocator.h. */
#include "workloads/memory/caching_allocator.h"

#include "core/cluster/cluster.h"

struct pl_memory_block {
  int64_t size_bytes, requested_bytes;
  int64_t at_bytes;        /* in an expandable segment: its address there */
  uint32_t before, behind; /* neighbours in the segment, PL_NONE at its ends */
  union {
    uint32_t next; /* in the list of unused entries */
    uint32_t name; /* in use: what its owner calls it; 0: it stays */
  };
  uint8_t pool;
  bool used;
  bool hole; /* addresses without memory */
};

static const int64_t MiB = 1 << 20;

void pl_caching_allocator_init(pl_caching_allocator *allocator, pl_arena *arena) {
  *allocator = (pl_caching_allocator){.unused = PL_NONE, .arena = arena};
  for (int pool = 0; pool < PL_ALLOCATOR_POOLS; pool++)
    allocator->segments[pool].first = allocator->segments[pool].last = PL_NONE;
}

static bool is_small(uint32_t pool) {
  return (pool & 1) != 0;
}

/* The size of a block on the list must not change. */
static void put_on_list(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  pl_free_blocks_put(&own->free_blocks[block->pool], block->size_bytes, index);
}

static void take_off_list(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  pl_free_blocks_remove(&own->free_blocks[block->pool], block->size_bytes, index);
}

/* All blocks may be free at once, so that giving one back cannot fail. */
static bool reserve_lists(pl_caching_allocator *own, uint32_t n) {
  for (uint32_t pool = 0; pool < own->n_pools; pool++)
    if (!pl_free_blocks_reserve(&own->free_blocks[pool], n, own->arena)) return false;
  return true;
}

static bool make_room(pl_caching_allocator *own) {
  pl_memory_block *blocks =
      pl_arena_grown(own->arena, own->blocks, own->n_blocks, 1, sizeof *own->blocks, &own->capacity);
  if (blocks == NULL) return false;
  own->blocks = blocks;
  return reserve_lists(own, own->n_blocks + 1);
}

static uint32_t new_entry(pl_caching_allocator *own) {
  uint32_t index = own->unused;
  if (index != PL_NONE) {
    own->unused = own->blocks[index].next;
    return index;
  }
  if (!make_room(own)) return PL_NONE;
  return own->n_blocks++;
}

static void drop_entry(pl_caching_allocator *own, uint32_t index) {
  own->blocks[index].next = own->unused;
  own->unused = index;
}

/* A free block without neighbours is a whole segment. */
static bool is_segment(const pl_memory_block *block) {
  return block->before == PL_NONE && block->behind == PL_NONE;
}

/* `behind` into `index`, which stays. */
static void join(pl_caching_allocator *own, uint32_t index, uint32_t behind) {
  pl_memory_block *block = &own->blocks[index], *gone = &own->blocks[behind];
  block->size_bytes += gone->size_bytes;
  block->behind = gone->behind;
  if (gone->behind != PL_NONE) own->blocks[gone->behind].before = index;
  if (own->segments[block->pool].last == behind) own->segments[block->pool].last = index;
  drop_entry(own, behind);
}

/* The first `size_bytes` stay `index`, the rest becomes another block, on no list; PL_NONE: no memory. */
static uint32_t cut(pl_caching_allocator *own, uint32_t index, int64_t size_bytes) {
  uint32_t rest = new_entry(own);
  if (rest == PL_NONE) return PL_NONE;
  pl_memory_block *block = &own->blocks[index];
  own->blocks[rest] = (pl_memory_block){.size_bytes = block->size_bytes - size_bytes,
                                        .at_bytes = block->at_bytes + size_bytes,
                                        .before = index,
                                        .behind = block->behind,
                                        .pool = block->pool,
                                        .hole = block->hole};
  if (block->behind != PL_NONE) own->blocks[block->behind].before = rest;
  if (own->segments[block->pool].last == index) own->segments[block->pool].last = rest;
  block->behind = rest;
  block->size_bytes = size_bytes;
  return rest;
}

/* ---- what nobody uses ---- */

/* The blocks of one size. */
static void trim_size(pl_caching_allocator *own, pl_free_blocks *free, uint32_t at) {
  for (uint32_t index = free->first[at], behind; index != PL_NONE; index = behind) {
    behind = free->neighbours[index].behind;
    if (!is_segment(&own->blocks[index])) continue;
    pl_free_blocks_remove(free, own->blocks[index].size_bytes, index);
    own->held_bytes -= own->blocks[index].size_bytes;
    drop_entry(own, index);
  }
}

static int64_t page_bytes(uint32_t pool) {
  return is_small(pool) ? 2 * MiB : 20 * MiB;
}

static int64_t pages_up(int64_t bytes, int64_t page) {
  return (bytes + page - 1) / page * page;
}

/* A hole at the end of a segment is not there. */
static void drop_last_hole(pl_caching_allocator *own, uint32_t pool) {
  uint32_t last = own->segments[pool].last, before = own->blocks[last].before;
  own->segments[pool].last = before;
  own->segments[pool].n_holes--;
  if (before != PL_NONE) own->blocks[before].behind = PL_NONE;
  if (before == PL_NONE) own->segments[pool].first = PL_NONE;
  drop_entry(own, last);
}

/* The whole pages of a free block that is on no list become a hole; what is left of it goes back on the list. The
 * block behind which the walk goes on. */
static uint32_t unmap(pl_caching_allocator *own, uint32_t index) {
  const pl_memory_block *block = &own->blocks[index];
  int64_t page = page_bytes(block->pool), end = block->at_bytes + block->size_bytes;
  int64_t from = pages_up(block->at_bytes, page), to = end / page * page;
  uint32_t rest = PL_NONE, hole = index;
  if (to <= from) {
    put_on_list(own, index);
    return index;
  }
  if (to < end) rest = cut(own, index, to - block->at_bytes);
  if (from > own->blocks[index].at_bytes) hole = cut(own, index, from - own->blocks[index].at_bytes);
  bool failed = hole == PL_NONE || (to < end && rest == PL_NONE); /* no memory for the books: everything stays */
  if (rest != PL_NONE) put_on_list(own, rest);
  if (hole != index) put_on_list(own, index);
  if (failed) {
    if (hole == index) put_on_list(own, index);
    return rest != PL_NONE ? rest : index;
  }
  own->blocks[hole].hole = true;
  own->segments[own->blocks[hole].pool].n_holes++;
  own->held_bytes -= to - from;
  uint32_t before = own->blocks[hole].before, behind = own->blocks[hole].behind;
  if (behind != PL_NONE && own->blocks[behind].hole) {
    own->segments[own->blocks[hole].pool].n_holes--;
    join(own, hole, behind);
  }
  if (before != PL_NONE && own->blocks[before].hole) {
    own->segments[own->blocks[hole].pool].n_holes--;
    join(own, before, hole);
    hole = before;
  }
  return rest != PL_NONE ? rest : hole;
}

static void trim_pages(pl_caching_allocator *own, uint32_t pool) {
  for (uint32_t index = own->segments[pool].first; index != PL_NONE; index = own->blocks[index].behind) {
    if (own->blocks[index].used || own->blocks[index].hole) continue;
    take_off_list(own, index);
    index = unmap(own, index);
  }
  uint32_t last = own->segments[pool].last;
  if (last != PL_NONE && own->blocks[last].hole) drop_last_hole(own, pool);
}

void pl_caching_allocator_trim(pl_caching_allocator *own) {
  for (uint32_t pool = 0; pool < own->n_pools; pool++) {
    if (own->expandable) {
      trim_pages(own, pool);
      continue;
    }
    for (uint32_t at = own->free_blocks[pool].n_sizes; at-- > 0;)
      trim_size(own, &own->free_blocks[pool], at);
  }
}

/* ---- new memory ---- */

/* The device has so much more; else nothing is handed out any more. */
static bool hold(pl_caching_allocator *own, int64_t bytes) {
  if (own->limit_bytes > 0 && own->held_bytes + bytes > own->limit_bytes) {
    own->full = true;
    return false;
  }
  own->held_bytes += bytes;
  if (own->held_bytes > own->most_held_bytes) own->most_held_bytes = own->held_bytes;
  return true;
}

static bool is_short_of(const pl_caching_allocator *own, int64_t bytes) {
  return own->limit_bytes > 0 && own->held_bytes + bytes > own->limit_bytes;
}

static void make_space(pl_caching_allocator *own) {
  if (own->settle != NULL) own->settle(own->waiting);
  pl_caching_allocator_trim(own);
}

/* Used by nobody, and on no list. */
static uint32_t new_segment(pl_caching_allocator *own, uint32_t pool, int64_t size_bytes) {
  int64_t segment_bytes = is_small(pool) ? 2 * MiB : size_bytes < 10 * MiB ? 20 * MiB : pages_up(size_bytes, 2 * MiB);
  if (is_short_of(own, segment_bytes)) make_space(own);
  uint32_t index = hold(own, segment_bytes) ? new_entry(own) : PL_NONE;
  if (index == PL_NONE) return PL_NONE;
  own->blocks[index] =
      (pl_memory_block){.size_bytes = segment_bytes, .before = PL_NONE, .behind = PL_NONE, .pool = (uint8_t)pool};
  return index;
}

static bool is_free(const pl_caching_allocator *own, uint32_t index) {
  return index != PL_NONE && !own->blocks[index].used && !own->blocks[index].hole;
}

/* Behind the last block of a segment: a free block of at least so many bytes, on no list, with what is free at its end.
 */
static uint32_t grow_segment(pl_caching_allocator *own, uint32_t pool, int64_t size_bytes) {
  uint32_t last = own->segments[pool].last;
  int64_t there = is_free(own, last) ? own->blocks[last].size_bytes : 0;
  int64_t more = pages_up(size_bytes - there, page_bytes(pool));
  if (!hold(own, more)) return PL_NONE;
  if (there > 0) {
    take_off_list(own, last);
    own->blocks[last].size_bytes += more;
    return last;
  }
  uint32_t index = new_entry(own);
  if (index == PL_NONE) return PL_NONE;
  int64_t at_bytes = last == PL_NONE ? 0 : own->blocks[last].at_bytes + own->blocks[last].size_bytes;
  own->blocks[index] = (pl_memory_block){
      .size_bytes = more, .at_bytes = at_bytes, .before = last, .behind = PL_NONE, .pool = (uint8_t)pool};
  if (last == PL_NONE) own->segments[pool].first = index;
  if (last != PL_NONE) own->blocks[last].behind = index;
  own->segments[pool].last = index;
  return index;
}

/* The first of blocks in a row, free ones and holes, that have room for the request without what would be new
 * addresses, and that begin with a hole or a free block in front of one; PL_NONE: none. */
static uint32_t find_holes(const pl_caching_allocator *own, uint32_t pool, int64_t size_bytes) {
  if (own->segments[pool].n_holes == 0) return PL_NONE;
  for (uint32_t index = own->segments[pool].first; index != PL_NONE; index = own->blocks[index].behind) {
    if (!own->blocks[index].hole) continue;
    uint32_t from = is_free(own, own->blocks[index].before) ? own->blocks[index].before : index;
    int64_t room = 0;
    for (uint32_t at = from; at != PL_NONE && !own->blocks[at].used && room < size_bytes; at = own->blocks[at].behind)
      room += own->blocks[at].size_bytes;
    if (room >= size_bytes) return from;
  }
  return PL_NONE;
}

/* A hole gets memory for so many bytes, at most its own, and is free then, on no list. False: no memory. */
static bool map(pl_caching_allocator *own, uint32_t index, int64_t size_bytes) {
  uint32_t pool = own->blocks[index].pool;
  int64_t bytes = pages_up(size_bytes, page_bytes(pool));
  if (bytes >= own->blocks[index].size_bytes)
    bytes = own->blocks[index].size_bytes;
  else if (cut(own, index, bytes) == PL_NONE)
    return false;
  else
    own->segments[pool].n_holes++;
  own->blocks[index].hole = false;
  own->segments[pool].n_holes--;
  return hold(own, bytes);
}

static uint32_t fill_holes(pl_caching_allocator *own, uint32_t from, int64_t size_bytes) {
  if (!own->blocks[from].hole)
    take_off_list(own, from);
  else if (!map(own, from, size_bytes))
    return PL_NONE;
  while (own->blocks[from].size_bytes < size_bytes) {
    uint32_t behind = own->blocks[from].behind;
    if (!own->blocks[behind].hole)
      take_off_list(own, behind);
    else if (!map(own, behind, size_bytes - own->blocks[from].size_bytes))
      return PL_NONE;
    join(own, from, behind);
  }
  uint32_t behind = own->blocks[from].behind;
  if (is_free(own, behind)) {
    take_off_list(own, behind);
    join(own, from, behind);
  }
  return from;
}

static uint32_t expand(pl_caching_allocator *own, uint32_t pool, int64_t size_bytes) {
  uint32_t last = own->segments[pool].last;
  int64_t there = is_free(own, last) ? own->blocks[last].size_bytes : 0;
  uint32_t from = find_holes(own, pool, size_bytes);
  /* What holes would take at most; of a request that finds no room for it the blocks are gone through anew. */
  if (is_short_of(own, pages_up(from != PL_NONE ? size_bytes : size_bytes - there, page_bytes(pool)))) {
    make_space(own);
    from = find_holes(own, pool, size_bytes);
  }
  return from != PL_NONE ? fill_holes(own, from, size_bytes) : grow_segment(own, pool, size_bytes);
}

/* ---- requests ---- */

/* Whether memory can be put behind a free block, so that it is the last one to be cut into. */
static bool can_grow(const pl_caching_allocator *own, uint32_t index) {
  uint32_t behind = own->blocks[index].behind;
  return own->expandable && (behind == PL_NONE || own->blocks[behind].hole);
}

/* What is left over behind a request is a block of its own. */
static bool is_worth_it(const pl_caching_allocator *own, uint32_t pool, int64_t rest_bytes) {
  bool fine = own->expandable || is_small(pool);
  return fine ? rest_bytes >= 512 : rest_bytes > MiB;
}

/* Taken off its list, in whose place what is left over comes; PL_NONE: none is large enough, or (`*failed`) the arena
 * has no memory for what is left over. */
static uint32_t take_smallest_fit(pl_caching_allocator *own, uint32_t pool, int64_t size_bytes, bool *failed) {
  pl_free_blocks *free = &own->free_blocks[pool];
  uint32_t at = pl_free_blocks_find(free, size_bytes);
  if (at == free->n_sizes) return PL_NONE;
  if (can_grow(own, free->first[at]) && at + 1 < free->n_sizes && !can_grow(own, free->first[at + 1])) at++;
  int64_t rest_bytes = free->sizes_bytes[at] - size_bytes;
  uint32_t index = free->first[at];
  if (!own->expandable && is_segment(&own->blocks[index])) own->occupied_bytes += own->blocks[index].size_bytes;
  if (!is_worth_it(own, pool, rest_bytes)) return pl_free_blocks_remove_at(free, at);
  uint32_t rest = cut(own, index, size_bytes);
  *failed = rest == PL_NONE;
  return *failed ? PL_NONE : pl_free_blocks_replace_at(free, at, rest_bytes, rest);
}

/* What is left over of new memory becomes a free block behind. */
static bool split(pl_caching_allocator *own, uint32_t index, int64_t size_bytes) {
  if (!is_worth_it(own, own->blocks[index].pool, own->blocks[index].size_bytes - size_bytes)) return true;
  uint32_t rest = cut(own, index, size_bytes);
  if (rest == PL_NONE) return false;
  put_on_list(own, rest);
  return true;
}

/* Its pools are there. */
static bool open_stream(pl_caching_allocator *own, uint32_t stream) {
  PL_ASSERT(stream < PL_ALLOCATOR_STREAMS);
  if (2 * stream + 2 <= own->n_pools) return true;
  own->n_pools = 2 * stream + 2;
  return reserve_lists(own, own->n_blocks);
}

/* Of a device that has more. */
static uint32_t take_new(pl_caching_allocator *own, uint32_t pool, int64_t size_bytes) {
  uint32_t index = own->expandable ? expand(own, pool, size_bytes) : new_segment(own, pool, size_bytes);
  if (index == PL_NONE) return PL_NONE;
  if (!own->expandable) own->occupied_bytes += own->blocks[index].size_bytes;
  return split(own, index, size_bytes) ? index : PL_NONE;
}

uint32_t pl_caching_allocator_take(pl_caching_allocator *own, uint32_t stream, int64_t requested_bytes) {
  int64_t size_bytes = requested_bytes < 512 ? 512 : (requested_bytes + 511) & ~(int64_t)511;
  uint32_t pool = 2 * stream + (size_bytes <= MiB);
  bool failed = false;
  if (own->full || !open_stream(own, stream)) return PL_NONE;
  uint32_t index = take_smallest_fit(own, pool, size_bytes, &failed);
  if (index == PL_NONE && !failed) index = take_new(own, pool, size_bytes);
  if (index == PL_NONE) return PL_NONE;
  if (own->expandable) own->occupied_bytes += own->blocks[index].size_bytes;
  own->blocks[index].used = true;
  own->blocks[index].requested_bytes = requested_bytes;
  own->used_bytes += requested_bytes;
  return index;
}

/* With its free neighbours, on its list: the block that they are now. */
static uint32_t join_free(pl_caching_allocator *own, uint32_t index) {
  pl_free_blocks *free = &own->free_blocks[own->blocks[index].pool];
  uint32_t behind = own->blocks[index].behind, before = own->blocks[index].before;
  if (is_free(own, before)) {
    int64_t before_bytes = own->blocks[before].size_bytes;
    if (is_free(own, behind)) {
      take_off_list(own, behind);
      join(own, index, behind);
    }
    join(own, before, index);
    pl_free_blocks_replace(free, before_bytes, before, own->blocks[before].size_bytes, before);
    return before;
  }
  if (is_free(own, behind)) {
    int64_t behind_bytes = own->blocks[behind].size_bytes;
    join(own, index, behind);
    pl_free_blocks_replace(free, behind_bytes, behind, own->blocks[index].size_bytes, index);
    return index;
  }
  put_on_list(own, index);
  return index;
}

void pl_caching_allocator_give(pl_caching_allocator *own, uint32_t index) {
  pl_memory_block *block = &own->blocks[index];
  PL_ASSERT(block->used);
  block->used = false;
  own->used_bytes -= block->requested_bytes;
  if (own->expandable) own->occupied_bytes -= block->size_bytes;
  index = join_free(own, index);
  if (!own->expandable && is_segment(&own->blocks[index])) own->occupied_bytes -= own->blocks[index].size_bytes;
}

/* ---- what it will do ---- */

static void name_all(pl_caching_allocator *own, const uint32_t *named, uint32_t n, bool names) {
  for (uint32_t i = 0; i < n; i++)
    if (named[i] < own->n_blocks) own->blocks[named[i]].name = names ? i + 1 : 0;
}

static const int64_t AT_END = -1, IS_FREE = -2;

/* Of a neighbour. */
static int64_t name_of(const pl_caching_allocator *own, uint32_t index) {
  return index == PL_NONE ? AT_END : own->blocks[index].used ? (int64_t)own->blocks[index].name : IS_FREE;
}

static void write_block(const pl_caching_allocator *own, uint32_t index, pl_memory_state *state) {
  const pl_memory_block *block = &own->blocks[index];
  const int64_t words[] = {block->used ? (int64_t)block->name : IS_FREE,
                           block->pool,
                           block->size_bytes,
                           own->expandable ? block->at_bytes : 0,
                           block->used ? block->requested_bytes : 0,
                           name_of(own, block->before),
                           name_of(own, block->behind)};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    pl_memory_state_add(state, own->arena, words[i]);
}

static void write_pool(const pl_caching_allocator *own, uint32_t pool, pl_memory_state *state) {
  const pl_free_blocks *free = &own->free_blocks[pool];
  uint32_t last = own->segments[pool].last;
  pl_memory_state_add(state, own->arena,
                      last == PL_NONE ? 0 : own->blocks[last].at_bytes + own->blocks[last].size_bytes);
  for (uint32_t at = 0; at < free->n_sizes; at++)
    for (uint32_t index = free->first[at]; index != PL_NONE; index = free->neighbours[index].behind)
      write_block(own, index, state);
}

void pl_caching_allocator_state(pl_caching_allocator *own, const uint32_t *named, uint32_t n_named,
                                pl_memory_state *state) {
  const int64_t totals[] = {own->held_bytes, own->occupied_bytes, own->used_bytes, n_named};
  state->n = 0;
  state->is_known = !own->full;
  name_all(own, named, n_named, true);
  for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
    pl_memory_state_add(state, own->arena, totals[i]);
  for (uint32_t i = 0; i < n_named; i++)
    if (named[i] < own->n_blocks)
      write_block(own, named[i], state);
    else
      pl_memory_state_add(state, own->arena, named[i]);
  for (uint32_t pool = 0; pool < own->n_pools; pool++) {
    if (own->segments[pool].n_holes > 0) state->is_known = false;
    write_pool(own, pool, state);
  }
  name_all(own, named, n_named, false);
}
