/* PyTorch's caching allocator: what its documentation says of sizes, and that blocks never overlap or get lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "core/cluster/cluster.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "workloads/memory/caching_allocator.h"

static const int64_t MiB = 1 << 20;

static void segments_have_the_sizes_of_the_notes(void **state) {
  (void)state;
  static const struct {
    int64_t size_bytes, segment_bytes;
  } rows[] = {{1, 2 << 20},         {1 << 20, 2 << 20},         {(1 << 20) + 1, 20 << 20}, {(10 << 20) - 512, 20 << 20},
              {10 << 20, 10 << 20}, {(10 << 20) + 1, 12 << 20}, {33 << 20, 34 << 20}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    pl_caching_allocator own;
    pl_caching_allocator_init(&own, &arena);
    uint32_t block = pl_caching_allocator_take(&own, 0, rows[i].size_bytes);
    assert_true(own.held_bytes == rows[i].segment_bytes && own.occupied_bytes == own.held_bytes);
    assert_true(own.used_bytes == rows[i].size_bytes);
    pl_caching_allocator_give(&own, block);
    assert_true(own.held_bytes == rows[i].segment_bytes && own.occupied_bytes == 0 && own.used_bytes == 0);
    assert_int_equal(pl_caching_allocator_take(&own, 0, rows[i].size_bytes), block); /* what is cached is used again */
    assert_true(own.held_bytes == rows[i].segment_bytes);
  }
}

/* Two blocks of 16 and 12 MiB: 10 MiB come out of the smaller one, its rest of 2 MiB is a block for 2 MiB, and what is
 * left of neither serves 20 MiB. */
static void the_smallest_fit_is_split_and_joined(void **state) {
  (void)state;
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  uint32_t large = pl_caching_allocator_take(&own, 0, 16 * MiB), less = pl_caching_allocator_take(&own, 0, 12 * MiB);
  pl_caching_allocator_give(&own, large);
  pl_caching_allocator_give(&own, less);
  assert_int_equal(pl_caching_allocator_take(&own, 0, 10 * MiB), less);
  uint32_t rest = pl_caching_allocator_take(&own, 0, 2 * MiB);
  assert_true(own.held_bytes == 28 * MiB && own.occupied_bytes == 12 * MiB);
  uint32_t more = pl_caching_allocator_take(&own, 0, 20 * MiB);
  assert_true(own.held_bytes == 48 * MiB);
  pl_caching_allocator_give(&own, rest);
  pl_caching_allocator_give(&own, less);
  pl_caching_allocator_give(&own, more);
  assert_true(own.occupied_bytes == 0);
  pl_caching_allocator_take(&own, 0, 12 * MiB); /* whole again */
  pl_caching_allocator_take(&own, 0, 16 * MiB);
  assert_true(own.held_bytes == 48 * MiB && own.occupied_bytes == 28 * MiB);
  /* 15.5 MiB of 16: half a MiB is not worth a block, and goes with it */
  pl_caching_allocator_init(&own, &arena);
  pl_caching_allocator_give(&own, pl_caching_allocator_take(&own, 0, 16 * MiB));
  pl_caching_allocator_take(&own, 0, 31 * MiB / 2);
  pl_caching_allocator_take(&own, 0, MiB / 2);
  assert_true(own.held_bytes == 18 * MiB);
}

/* A device of 40 MiB: 16 and 12 are there, 20 more only when the free 16 has gone back; then nothing comes any more. */
static void a_full_device_gives_segments_back(void **state) {
  (void)state;
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  own.limit_bytes = 40 * MiB;
  uint32_t large = pl_caching_allocator_take(&own, 0, 16 * MiB);
  pl_caching_allocator_take(&own, 0, 12 * MiB);
  pl_caching_allocator_give(&own, large);
  assert_true(pl_caching_allocator_take(&own, 0, 20 * MiB) != PL_NONE);
  assert_true(own.held_bytes == 32 * MiB && own.most_held_bytes == 32 * MiB && !own.full);
  assert_int_equal(pl_caching_allocator_take(&own, 0, 10 * MiB), PL_NONE);
  assert_true(own.full && own.held_bytes == 32 * MiB);
  pl_caching_allocator_take(&own, 0, MiB / 2);
  assert_true(own.full); /* once and for all */
}

typedef struct waiting {
  pl_caching_allocator *allocator;
  uint32_t block;
} waiting;

static void give_waiting(void *context) {
  waiting *own = context;
  if (own->block != PL_NONE) pl_caching_allocator_give(own->allocator, own->block);
  own->block = PL_NONE;
}

/* What waits is given back when the device is full: a whole segment makes room for a new one, a part of a segment that
 * is in use does not, although it is large enough. */
static void what_waits_helps_as_whole_segments(void **state) {
  (void)state;
  for (int shared = 0; shared < 2; shared++) {
    pl_caching_allocator own;
    pl_caching_allocator_init(&own, &arena);
    own.limit_bytes = 40 * MiB;
    pl_caching_allocator_take(&own, 0, 16 * MiB);
    uint32_t large = pl_caching_allocator_take(&own, 0, 24 * MiB);
    if (shared) { /* the segment of 24 MiB again, in two */
      pl_caching_allocator_give(&own, large);
      large = pl_caching_allocator_take(&own, 0, 12 * MiB);
      pl_caching_allocator_take(&own, 0, 12 * MiB);
    }
    waiting held = {&own, large};
    own.settle = give_waiting;
    own.waiting = &held;
    uint32_t block = pl_caching_allocator_take(&own, 0, 12 * MiB);
    assert_true(held.block == PL_NONE);
    assert_true((block == PL_NONE) == (shared == 1) && own.full == (shared == 1));
  }
}

/* What one stream has freed serves no other, small or large. */
static void streams_share_nothing(void **state) {
  (void)state;
  for (int expandable = 0; expandable < 2; expandable++) {
    pl_caching_allocator own;
    pl_caching_allocator_init(&own, &arena);
    own.expandable = expandable;
    for (uint32_t stream = 0; stream < PL_ALLOCATOR_STREAMS; stream++) {
      int64_t before = own.held_bytes;
      pl_caching_allocator_give(&own, pl_caching_allocator_take(&own, stream, 20 * MiB));
      pl_caching_allocator_give(&own, pl_caching_allocator_take(&own, stream, 512));
      assert_true(own.held_bytes == before + 22 * MiB);
    }
    int64_t held_bytes = own.held_bytes;
    for (uint32_t stream = PL_ALLOCATOR_STREAMS; stream-- > 0;)
      pl_caching_allocator_take(&own, stream, 20 * MiB);
    assert_true(own.held_bytes == held_bytes);
    pl_caching_allocator_trim(&own); /* the small ones */
    assert_true(own.held_bytes == 20 * MiB * PL_ALLOCATOR_STREAMS);
  }
}

/* Pages of 20 MiB: 12 MiB take one, 12 more what is left of it and another, and what both leave is one block; without
 * expandable segments 24 MiB need another segment. */
static void segments_expand(void **state) {
  (void)state;
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  own.expandable = true;
  uint32_t first = pl_caching_allocator_take(&own, 0, 12 * MiB);
  assert_true(own.held_bytes == 20 * MiB);
  uint32_t second = pl_caching_allocator_take(&own, 0, 12 * MiB);
  assert_true(own.held_bytes == 40 * MiB);
  uint32_t third = pl_caching_allocator_take(&own, 0, 15 * MiB);
  assert_true(own.held_bytes == 40 * MiB && own.used_bytes == 39 * MiB);
  pl_caching_allocator_give(&own, first);
  pl_caching_allocator_give(&own, second);
  pl_caching_allocator_take(&own, 0, 24 * MiB);
  assert_true(own.held_bytes == 40 * MiB);
  pl_caching_allocator_give(&own, third);
  third = pl_caching_allocator_take(&own, 0, 17 * MiB); /* 16 are free at the end */
  assert_true(own.held_bytes == 60 * MiB && own.most_held_bytes == 60 * MiB);
  pl_caching_allocator_give(&own, third);
  /* A block that memory can be put behind is the last one to be cut into: the hole of 2 MiB in front is too small for
   * 3, and of two that are large enough the inner one is taken. */
  pl_caching_allocator_init(&own, &arena);
  own.expandable = true;
  first = pl_caching_allocator_take(&own, 0, 10 * MiB);
  pl_caching_allocator_take(&own, 0, 5 * MiB); /* 5 are left at the end */
  pl_caching_allocator_give(&own, first);
  pl_caching_allocator_take(&own, 0, 4 * MiB); /* of the 10 */
  pl_caching_allocator_take(&own, 0, 5 * MiB);
  assert_true(own.held_bytes == 20 * MiB);
  pl_caching_allocator_take(&own, 0, 25 * MiB); /* the 5 at the end and one page more */
  assert_true(own.held_bytes == 40 * MiB);
}

/* 30 and 10 MiB in two pages. Of the 30 one page can be given up, its addresses and the 10 free ones behind them are
 * too few for 40, which go behind the end; 30 more get the page back. */
static void pages_are_given_up(void **state) {
  (void)state;
  for (int64_t limit = 60; limit <= 80; limit += 20) {
    pl_caching_allocator own;
    pl_caching_allocator_init(&own, &arena);
    own.expandable = true;
    own.limit_bytes = limit * MiB;
    uint32_t large = pl_caching_allocator_take(&own, 0, 30 * MiB);
    pl_caching_allocator_take(&own, 0, 10 * MiB);
    pl_caching_allocator_give(&own, large);
    if (limit > 60) pl_caching_allocator_trim(&own);
    assert_true(pl_caching_allocator_take(&own, 0, 40 * MiB) != PL_NONE);
    assert_true(own.held_bytes == 60 * MiB && own.most_held_bytes == 60 * MiB && !own.full);
    large = pl_caching_allocator_take(&own, 0, 30 * MiB);
    assert_true((large == PL_NONE) == (limit == 60) && own.full == (limit == 60));
    assert_true(own.held_bytes == (limit == 60 ? 60 : 80) * MiB);
  }
}

static void lose_nothing(bool expandable, int64_t limit_bytes) {
  uint64_t random = test_seed(20250219);
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  own.expandable = expandable;
  own.limit_bytes = limit_bytes;
  enum { BLOCKS = 64 };
  uint32_t held[BLOCKS];
  int64_t size_bytes[BLOCKS] = {0}, used_bytes = 0;
  for (int i = 0; i < 20000; i++) {
    uint32_t which = random_below(&random, BLOCKS);
    if (size_bytes[which] > 0) {
      pl_caching_allocator_give(&own, held[which]);
      used_bytes -= size_bytes[which];
      size_bytes[which] = 0;
    } else {
      size_bytes[which] = (int64_t)1 << random_between(&random, 4, 25);
      size_bytes[which] += (int64_t)random_below(&random, 4096);
      held[which] = pl_caching_allocator_take(&own, which % PL_ALLOCATOR_STREAMS, size_bytes[which]);
      assert_true(held[which] != PL_NONE);
      used_bytes += size_bytes[which];
      for (uint32_t j = 0; j < BLOCKS; j++)
        assert_true(j == which || size_bytes[j] == 0 || held[j] != held[which]);
    }
    assert_true(own.used_bytes == used_bytes && own.used_bytes <= own.occupied_bytes);
    assert_true(own.occupied_bytes <= own.held_bytes && own.held_bytes <= own.most_held_bytes);
    assert_true(own.held_bytes % (2 * MiB) == 0 && (limit_bytes == 0 || own.held_bytes <= limit_bytes));
    if (random_below(&random, 500) == 0) pl_caching_allocator_trim(&own);
  }
  for (uint32_t j = 0; j < BLOCKS; j++)
    if (size_bytes[j] > 0) pl_caching_allocator_give(&own, held[j]);
  assert_true(own.used_bytes == 0 && own.occupied_bytes == 0);
  int64_t cached_bytes = own.held_bytes;
  pl_caching_allocator_take(&own, 0, 2 * MiB); /* everything is joined: the largest segment is whole */
  assert_true(own.held_bytes == cached_bytes);
  pl_caching_allocator_trim(&own);
  assert_true(own.held_bytes == 20 * MiB || (!expandable && own.held_bytes < cached_bytes));
}

static void nothing_is_lost(void **state) {
  (void)state;
  for (int expandable = 0; expandable < 2; expandable++) {
    lose_nothing(expandable, 0);
    lose_nothing(expandable, expandable ? 768 * MiB : 1200 * MiB); /* often short of it, never for good */
  }
}

/* Against a search through all of them: the smallest that is large enough, of equal ones the one put in last. */
static void free_blocks_are_found_as_by_looking_at_all(void **state) {
  (void)state;
  enum { MOST = 300, SIZES = 250 };
  pl_free_blocks free = {.n_sizes = 0};
  struct {
    int64_t size_bytes;
    uint32_t put; /* when; 0: it is not in */
  } all[MOST] = {{0}};
  uint64_t random = test_seed(7);
  for (uint32_t i = 1; i < 20000; i++) {
    uint32_t which = random_below(&random, MOST), best = PL_NONE;
    assert_true(pl_free_blocks_reserve(&free, MOST, &arena));
    if (all[which].put > 0) {
      pl_free_blocks_remove(&free, all[which].size_bytes, which);
      all[which].put = 0;
    } else {
      all[which].size_bytes = 512 * (int64_t)random_between(&random, 1, which % 2 > 0 ? SIZES : 40); /* often equal */
      all[which].put = i;
      pl_free_blocks_put(&free, all[which].size_bytes, which);
    }
    int64_t size_bytes = 512 * (int64_t)random_between(&random, 1, SIZES + 1);
    for (uint32_t j = 0; j < MOST; j++)
      if (all[j].put > 0 && all[j].size_bytes >= size_bytes &&
          (best == PL_NONE || all[j].size_bytes < all[best].size_bytes ||
           (all[j].size_bytes == all[best].size_bytes && all[j].put > all[best].put)))
        best = j;
    uint32_t found = pl_free_blocks_find(&free, size_bytes);
    assert_int_equal(found < free.n_sizes ? free.first[found] : PL_NONE, best);
    if (best == PL_NONE || random_below(&random, 3) > 0) continue;
    assert_int_equal(pl_free_blocks_remove_at(&free, found), best);
    all[best].put = 0;
  }
}

/* In place of one that is removed another is put, the same or not, alone with its size or not: as one after the other.
 */
static void free_blocks_are_replaced_as_by_removing_and_putting(void **state) {
  (void)state;
  enum { MOST = 60, SIZES = 25 };
  pl_free_blocks free = {.n_sizes = 0}, plain = {.n_sizes = 0};
  int64_t all_bytes[MOST] = {0}; /* 0: it is not in */
  uint64_t random = test_seed(11);
  assert_true(pl_free_blocks_reserve(&free, MOST, &arena) && pl_free_blocks_reserve(&plain, MOST, &arena));
  for (uint32_t i = 0; i < 20000; i++) {
    uint32_t which = random_below(&random, MOST), by = random_below(&random, MOST);
    int64_t by_bytes = 512 * (int64_t)random_between(&random, 1, SIZES);
    if (all_bytes[which] > 0 && (by == which || all_bytes[by] == 0)) {
      pl_free_blocks_replace(&free, all_bytes[which], which, by_bytes, by);
      pl_free_blocks_remove(&plain, all_bytes[which], which);
      pl_free_blocks_put(&plain, by_bytes, by);
      all_bytes[which] = 0;
      all_bytes[by] = by_bytes;
    } else if (all_bytes[which] == 0 && i % 4 == 0) {
      pl_free_blocks_put(&free, by_bytes, which);
      pl_free_blocks_put(&plain, by_bytes, which);
      all_bytes[which] = by_bytes;
    } else if (all_bytes[which] > 0 && i % 4 == 1) {
      pl_free_blocks_remove(&free, all_bytes[which], which);
      pl_free_blocks_remove(&plain, all_bytes[which], which);
      all_bytes[which] = 0;
    }
    assert_int_equal(free.n_sizes, plain.n_sizes);
    for (uint32_t at = 0; at < free.n_sizes; at++) {
      assert_true(free.sizes_bytes[at] == plain.sizes_bytes[at]);
      uint32_t block = free.first[at], other = plain.first[at];
      for (; block != PL_NONE && block == other; other = plain.neighbours[other].behind)
        block = free.neighbours[block].behind;
      assert_true(block == PL_NONE && other == PL_NONE);
    }
  }
}

/* What is the same but for where it lies is equal; what will be handed out in another order, joined with something
 * else, or given back by another name is not. */
static void states_are_what_later_requests_depend_on(void **state) {
  (void)state;
  pl_memory_state before = {.n = 0}, after = {.n = 0}, none = {.n = 0};
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  uint32_t a = pl_caching_allocator_take(&own, 0, 16 * MiB), b = pl_caching_allocator_take(&own, 0, 16 * MiB);
  uint32_t held[2] = {pl_caching_allocator_take(&own, 0, 4 * MiB), pl_caching_allocator_take(&own, 0, 4 * MiB)};
  uint32_t wall = pl_caching_allocator_take(&own, 0, 4 * MiB);
  assert_true(wall != PL_NONE);
  pl_caching_allocator_give(&own, a);
  pl_caching_allocator_give(&own, b);
  pl_caching_allocator_state(&own, held, 2, &before);
  assert_true(pl_memory_states_equal(&before, &before) && !pl_memory_states_equal(&before, &none));
  a = pl_caching_allocator_take(&own, 0, 16 * MiB);
  b = pl_caching_allocator_take(&own, 0, 16 * MiB);
  pl_caching_allocator_give(&own, b);
  pl_caching_allocator_state(&own, held, 2, &after);
  assert_false(pl_memory_states_equal(&before, &after)); /* one of them is in use */
  pl_caching_allocator_give(&own, a);
  pl_caching_allocator_state(&own, held, 2, &after);
  assert_true(pl_memory_states_equal(&before, &after)); /* whole segments that have changed places */
  const uint32_t changed[2] = {held[1], held[0]};
  pl_caching_allocator_state(&own, changed, 2, &after);
  assert_false(pl_memory_states_equal(&before, &after)); /* the one beside what stays goes first */
  pl_caching_allocator_state(&own, held, 2, &before);
  pl_caching_allocator_give(&own, held[0]);
  pl_caching_allocator_give(&own, held[1]);
  const uint32_t again[2] = {pl_caching_allocator_take(&own, 0, 4 * MiB), pl_caching_allocator_take(&own, 0, 4 * MiB)};
  pl_caching_allocator_state(&own, again, 2, &after);
  assert_true(pl_memory_states_equal(&before, &after));
  pl_caching_allocator_give(&own, again[0]);
  const uint32_t left[1] = {again[1]};
  pl_caching_allocator_state(&own, left, 1, &after);
  pl_caching_allocator_state(&own, NULL, 0, &before);
  assert_false(pl_memory_states_equal(&before, &after)); /* what stays is another thing than what may go */
  own.limit_bytes = own.held_bytes;
  pl_caching_allocator_take(&own, 0, 64 * MiB);
  pl_caching_allocator_state(&own, left, 1, &after);
  assert_true(own.full && !pl_memory_states_equal(&after, &after));
}

/* Two free blocks of one size, each beside another that may be given back: which comes first says what is joined. */
static void states_say_what_is_beside_what(void **state) {
  (void)state;
  pl_memory_state one = {.n = 0}, other = {.n = 0};
  pl_caching_allocator own;
  pl_caching_allocator_init(&own, &arena);
  uint32_t a = pl_caching_allocator_take(&own, 0, 16 * MiB), held[2] = {pl_caching_allocator_take(&own, 0, 8 * MiB)};
  uint32_t rest = pl_caching_allocator_take(&own, 0, 8 * MiB); /* 4 MiB are left over behind it */
  held[1] = pl_caching_allocator_take(&own, 0, 8 * MiB);
  uint32_t behind = pl_caching_allocator_take(&own, 0, 8 * MiB);
  assert_true(a != PL_NONE && own.held_bytes == 56 * MiB);
  pl_caching_allocator_give(&own, rest);
  pl_caching_allocator_give(&own, behind);
  pl_caching_allocator_state(&own, held, 2, &one);
  rest = pl_caching_allocator_take(&own, 0, 12 * MiB);
  behind = pl_caching_allocator_take(&own, 0, 12 * MiB);
  pl_caching_allocator_give(&own, rest);
  pl_caching_allocator_give(&own, behind);
  pl_caching_allocator_state(&own, held, 2, &other);
  assert_false(pl_memory_states_equal(&one, &other));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(segments_have_the_sizes_of_the_notes),
      cmocka_unit_test(the_smallest_fit_is_split_and_joined),
      cmocka_unit_test(a_full_device_gives_segments_back),
      cmocka_unit_test(what_waits_helps_as_whole_segments),
      cmocka_unit_test(streams_share_nothing),
      cmocka_unit_test(segments_expand),
      cmocka_unit_test(pages_are_given_up),
      cmocka_unit_test(nothing_is_lost),
      cmocka_unit_test(free_blocks_are_found_as_by_looking_at_all),
      cmocka_unit_test(free_blocks_are_replaced_as_by_removing_and_putting),
      cmocka_unit_test(states_are_what_later_requests_depend_on),
      cmocka_unit_test(states_say_what_is_beside_what),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
