/* Arena: alignment, reuse, marks, overflow, and a failure of every single take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "tests/support/random.h"

static void takes_are_aligned_and_apart(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 256);
  unsigned char *previous_end = NULL;
  for (size_t i = 0; i < 500; i++) {
    size_t align = (size_t)1 << (i % 8), size = (i * 37) % 300;
    unsigned char *p = pl_arena_take(&arena, size, align);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % align, 0);
    memset(p, (int)i, size);
    if (previous_end != NULL) assert_true(p >= previous_end || p + size <= previous_end);
    previous_end = p + size;
  }
  assert_false(arena.failed);
  assert_true(pl_arena_held_bytes(&arena) >= pl_arena_used_bytes(&arena));
  pl_arena_release(&arena);
  pl_arena_release(&arena); /* twice is safe */
}

/* Every take keeps its bytes, whatever is taken after it. */
static void content_survives(void **state) {
  (void)state;
  enum { N = 2000 };
  pl_arena arena;
  pl_arena_init(&arena, 64);
  unsigned char *blocks[N];
  for (size_t i = 0; i < N; i++) {
    blocks[i] = pl_arena_take(&arena, 1 + i % 97, 1);
    memset(blocks[i], (int)(i % 251), 1 + i % 97);
  }
  for (size_t i = 0; i < N; i++)
    for (size_t b = 0; b < 1 + i % 97; b++)
      assert_int_equal(blocks[i][b], i % 251);
  pl_arena_release(&arena);
}

static void fill(pl_arena *arena) {
  for (size_t i = 0; i < 300; i++)
    assert_non_null(pl_arena_take(arena, (i * 911) % 5000, 16));
}

static void reset_reuses_what_is_held(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 1024);
  fill(&arena);
  size_t held = pl_arena_held_bytes(&arena);
  for (int candidate = 0; candidate < 50; candidate++) {
    pl_arena_reset(&arena);
    assert_int_equal(pl_arena_used_bytes(&arena), 0);
    fill(&arena);
  }
  assert_int_equal(pl_arena_held_bytes(&arena), held);
  pl_arena_release(&arena);
}

/* After one large candidate the memory of small ones; and takes go on as before. */
static void trim_gives_back_the_peak(void **state) {
  (void)state;
  enum { SMALL = 1 << 16, LARGE = 1 << 24 };
  pl_arena arena;
  pl_arena_init(&arena, 1024);
  pl_arena_trim(&arena, SMALL); /* of an empty one: nothing */
  for (int candidate = 0; candidate < 6; candidate++) {
    pl_arena_reset(&arena);
    pl_arena_trim(&arena, SMALL);
    assert_true(pl_arena_held_bytes(&arena) <= SMALL);
    memset(pl_arena_take(&arena, 100, 1), 1, 100);
    if (candidate % 2 == 0) memset(pl_arena_take(&arena, LARGE, 1), 1, LARGE);
    assert_true(pl_arena_held_bytes(&arena) <= SMALL + (candidate % 2 == 0 ? 2 * LARGE : 0));
  }
  pl_arena_reset(&arena);
  pl_arena_trim(&arena, 0);
  assert_int_equal(pl_arena_held_bytes(&arena), 0);
  assert_non_null(pl_arena_take(&arena, 1, 1));
  pl_arena_release(&arena);
}

static size_t resident_bytes(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file != NULL && fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* To the system, and not to malloc, which keeps blocks of a size that was freed before. */
static void what_is_trimmed_is_the_systems(void **state) {
  (void)state;
  enum { LARGE = 1 << 24, SMALL = 1 << 20 };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  size_t before = resident_bytes();
  if (before == 0 || TEST_IS_SANITIZED) skip();
  for (int candidate = 0; candidate < 4; candidate++) {
    memset(pl_arena_take(&arena, LARGE, 1), 1, LARGE);
    void *taken_since = malloc(SMALL); /* so that what lies below is not the end of the heap */
    assert_true(resident_bytes() >= before + LARGE);
    pl_arena_reset(&arena);
    pl_arena_trim(&arena, 0);
    assert_true(resident_bytes() < before + LARGE / 2);
    free(taken_since);
  }
  pl_arena_release(&arena);
}

static void marks_give_back_scratch_only(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 128);
  pl_arena_mark empty = pl_arena_mark_here(&arena);
  char *kept = pl_arena_strdup(&arena, "kept");
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  size_t used = pl_arena_used_bytes(&arena);
  char *scratch = pl_arena_take(&arena, 40, 1);
  fill(&arena); /* into later chunks */
  pl_arena_release_to(&arena, mark);
  assert_int_equal(pl_arena_used_bytes(&arena), used);
  assert_ptr_equal(pl_arena_take(&arena, 40, 1), scratch);
  size_t held = pl_arena_held_bytes(&arena);
  fill(&arena);
  assert_int_equal(pl_arena_held_bytes(&arena), held);
  assert_string_equal(kept, "kept");
  pl_arena_release_to(&arena, empty);
  assert_int_equal(pl_arena_used_bytes(&arena), 0);
  pl_arena_release(&arena);
}

/* A large block that was given serves later takes, aligned as they ask and one beside the other, until the arena is
 * reset or taken back; small takes, and those that do not fit, go where they went. */
static void given_blocks_are_taken_again(void **state) {
  (void)state;
  enum { BLOCK = 1 << 20, PIECE = 3 << 18, LARGE = 1 << 19 };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  unsigned char *block = pl_arena_take(&arena, BLOCK, 64);
  pl_arena_give(&arena, block, BLOCK);
  size_t used = pl_arena_used_bytes(&arena);
  unsigned char *first = pl_arena_take(&arena, PIECE - 100, 1);
  assert_true(first >= block && first + PIECE - 100 <= block + BLOCK);
  assert_int_equal(pl_arena_used_bytes(&arena), used);
  unsigned char *small = pl_arena_take(&arena, 100, 1);
  assert_true(small + 100 <= block || small >= block + BLOCK);
  unsigned char *large = pl_arena_take(&arena, LARGE, 1); /* does not fit beside the first */
  assert_true(large + LARGE <= block || large >= block + BLOCK);
  unsigned char *second = pl_arena_take(&arena, 1 << 17, 4096);
  assert_true(second >= first + PIECE - 100 && second + (1 << 17) <= block + BLOCK);
  assert_int_equal((uintptr_t)second % 4096, 0);
  pl_arena_give(&arena, second, 100); /* too small to keep account of */
  pl_arena_give(&arena, first, PIECE - 100);
  pl_arena_reset(&arena);
  assert_ptr_equal(pl_arena_take(&arena, 1 << 15, 64), block); /* and not what was given */
  assert_true((unsigned char *)pl_arena_take(&arena, 1 << 15, 64) >= block + (1 << 15));
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  pl_arena_give(&arena, pl_arena_take(&arena, 1 << 16, 64), 1 << 16);
  pl_arena_release_to(&arena, mark);
  unsigned char *one = pl_arena_take(&arena, 1 << 16, 64), *other = pl_arena_take(&arena, 1 << 16, 64);
  assert_true(other >= one + (1 << 16) || one >= other + (1 << 16));
  pl_arena_release(&arena);
}

/* A block that does not fit goes to the next chunk, and a later one that does to what was left. */
static void what_a_chunk_has_left_serves_large_blocks(void **state) {
  (void)state;
  enum { CHUNK = 1 << 20, LARGE = CHUNK - 1000, REST = CHUNK / 2, SMALL = 1000 };
  pl_arena arena;
  pl_arena_init(&arena, CHUNK);
  unsigned char *first = pl_arena_take(&arena, SMALL, 1);
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  for (int round = 0; round < 3; round++) {
    unsigned char *large = pl_arena_take(&arena, LARGE, 64);
    size_t held = pl_arena_held_bytes(&arena), used = pl_arena_used_bytes(&arena);
    unsigned char *rest = pl_arena_take(&arena, REST, 64), *other = pl_arena_take(&arena, REST, 64);
    assert_true(rest >= first + SMALL && rest + REST <= first + CHUNK);
    assert_true(other + REST <= first || other >= first + CHUNK); /* there is no room for two */
    assert_true(large >= first + CHUNK || large + LARGE <= first);
    assert_int_equal(pl_arena_held_bytes(&arena), held);
    assert_in_range(pl_arena_used_bytes(&arena), used + 2 * REST, used + 2 * REST + 128);
    memset(first, 1, SMALL);
    memset(large, 2, LARGE);
    memset(rest, 3, REST);
    memset(other, 4, REST);
    for (size_t at = 0; at < SMALL; at++)
      assert_int_equal(first[at], 1);
    assert_int_equal(large[0] + large[LARGE - 1], 4);
    assert_int_equal(rest[0] + rest[REST - 1], 6);
    pl_arena_release_to(&arena, mark);
    assert_ptr_equal(pl_arena_take(&arena, SMALL, 1), first + SMALL); /* what was left is taken in order again */
    pl_arena_release_to(&arena, mark);
  }
  pl_arena_take(&arena, LARGE, 64);
  pl_arena_take(&arena, REST, 64);
  pl_arena_release(&arena);
  assert_int_equal(pl_arena_used_bytes(&arena), 0);
}

static void zeroed_after_reuse(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  memset(pl_arena_take(&arena, 4096, 8), 0xff, 4096);
  pl_arena_reset(&arena);
  const uint64_t *zeros = PL_TAKE(&arena, uint64_t, 512);
  for (int i = 0; i < 512; i++)
    assert_int_equal(zeros[i], 0);
  pl_arena_release(&arena);
}

static void overflow_is_a_failure(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  assert_null(pl_arena_take_zeroed(&arena, SIZE_MAX / 2, 16, 8));
  assert_null(pl_arena_take_zeroed(&arena, SIZE_MAX / 8 + 2, 8, 8)); /* the product wraps to 8 */
  assert_true(arena.failed);
  pl_arena_reset(&arena);
  assert_false(arena.failed);
  assert_null(pl_arena_take(&arena, SIZE_MAX - 8, 64));
  assert_true(arena.failed);
  if (!TEST_IS_SANITIZED) { /* whose allocators end the program */
    pl_arena_reset(&arena);
    assert_null(pl_arena_take(&arena, SIZE_MAX / 8, 64)); /* no overflow, but the system has not as much */
    assert_true(arena.failed);
    unsigned char *after = pl_arena_take(&arena, (size_t)1 << 22, 64);
    assert_non_null(after);
    after[((size_t)1 << 22) - 1] = 1;
  }
  assert_non_null(pl_arena_take(&arena, 0, 1)); /* of size 0: valid, and the flag stays */
  assert_true(arena.failed);
  pl_arena_release(&arena);
}

/* A user that takes five things of all kinds; true when it got them all. */
static bool use(pl_arena *arena) {
  const char *name = pl_arena_strdup(arena, "node");
  const char *text = pl_arena_printf(arena, "%s%d", "nic", 3);
  const int *counts = PL_TAKE(arena, int, 10);
  void *big = pl_arena_take(arena, (size_t)1 << 21, 64);
  void *small = pl_arena_take(arena, 3, 1);
  if (text != NULL) assert_string_equal(text, "nic3");
  return name != NULL && text != NULL && counts != NULL && big != NULL && small != NULL;
}

static void the_kth_take_fails_for_every_k(void **state) {
  (void)state;
  pl_arena arena;
  for (int64_t k = 0; k < 5; k++) {
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    assert_false(use(&arena));
    assert_true(arena.failed);
    pl_arena_reset(&arena);
    assert_false(arena.failed);
    arena.fail_after = -1;
    assert_true(use(&arena));
    pl_arena_release(&arena);
  }
  pl_arena_init(&arena, 0);
  arena.fail_after = 5;
  assert_true(use(&arena));
  assert_false(arena.failed);
  pl_arena_release(&arena);
}

/* As printf formats them, by whichever way they go: names and integers, anything else, and texts on both sides of what
 * is formatted at once. */
static void texts_are_as_printf_makes_them(void **state) {
  (void)state;
  char expected[1024], longer[400];
  pl_arena arena;
  pl_arena_init(&arena, 0);
  static const int numbers[] = {0, 7, -1, 10, 2147483647, -2147483647 - 1};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf(expected, sizeof expected, "%s.%d", "h", numbers[i]);
    assert_string_equal(pl_arena_printf(&arena, "%s.%d", "h", numbers[i]), expected);
    snprintf(expected, sizeof expected, "%d%% of %5.2f, %s", numbers[i], 0.5, "x");
    assert_string_equal(pl_arena_printf(&arena, "%d%% of %5.2f, %s", numbers[i], 0.5, "x"), expected);
  }
  for (size_t length = 240; length < sizeof longer; length++) {
    memset(longer, 'a', length);
    longer[length] = '\0';
    snprintf(expected, sizeof expected, "/%s/%s", longer, "b");
    assert_string_equal(pl_arena_printf(&arena, "/%s/%s", longer, "b"), expected);
  }
  assert_string_equal(pl_arena_printf(&arena, "%s", ""), "");
  pl_arena_release(&arena);
}

/* Elements stay, what is behind them is zero, and a failure leaves array and room as they were. */
static void arrays_grow(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 128);
  uint32_t room = 0, n = 0, *items = NULL;
  for (uint32_t more = 0; n < 5000; more = (more + 1) % 7) {
    uint32_t *larger = pl_arena_grown(&arena, items, n, more, sizeof *items, &room);
    assert_non_null(larger);
    assert_true(room >= n + more);
    for (uint32_t i = 0; larger != items && i < room; i++)
      assert_int_equal(larger[i], i < n ? 3 * i : 0);
    items = larger;
    for (uint32_t i = 0; i < more; i++, n++)
      items[n] = 3 * n;
  }
  assert_ptr_equal(pl_arena_grown(&arena, items, n, room - n, sizeof *items, &room), items);
  uint32_t before = room;
  assert_null(pl_arena_grown(&arena, items, n, UINT32_MAX - n, 1, &room));
  assert_true(arena.failed);
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  arena.failed = false;
  arena.fail_after = 0;
  assert_null(pl_arena_grown(&arena, items, room, 1, sizeof *items, &room));
  assert_true(arena.failed);
  assert_int_equal(room, before);
  assert_int_equal(pl_arena_mark_here(&arena).used, mark.used);
  pl_arena_release(&arena);
}

/* What was taken last is longer where it lies, and zero behind what it holds though the memory was used before; once
 * something was taken behind it, it moves and leaves that alone. */
static void last_array_grows_in_place(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 1 << 12);
  memset(pl_arena_take(&arena, 1 << 12, 64), 0xff, 1 << 12);
  pl_arena_reset(&arena);
  uint32_t room = 0;
  uint32_t *items = pl_arena_grown(&arena, NULL, 0, 1, sizeof *items, &room), first_room = room;
  for (uint32_t i = 0; i < first_room; i++)
    items[i] = i;
  uint32_t *longer = pl_arena_grown(&arena, items, first_room, 1, sizeof *items, &room);
  assert_ptr_equal(longer, items);
  assert_true(room >= 2 * first_room);
  for (uint32_t i = 0; i < room; i++)
    assert_int_equal(longer[i], i < first_room ? i : 0);
  unsigned char *behind = pl_arena_take(&arena, 64, 1);
  assert_true(behind >= (unsigned char *)(longer + room));
  memset(behind, 0xab, 64);
  uint32_t *moved = pl_arena_grown(&arena, longer, room, 1, sizeof *items, &room);
  assert_ptr_not_equal(moved, longer);
  for (uint32_t i = 0; i < first_room; i++)
    assert_int_equal(moved[i], i);
  for (int i = 0; i < 64; i++)
    assert_int_equal(behind[i], 0xab);
  uint32_t *last = moved; /* in a chunk of which no room is left it moves, too */
  while ((moved = pl_arena_grown(&arena, last, room, 1, sizeof *items, &room)) == last)
    assert_true(room < 1 << 20);
  assert_int_equal(moved[first_room - 1], first_room - 1);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_are_aligned_and_apart),
      cmocka_unit_test(content_survives),
      cmocka_unit_test(reset_reuses_what_is_held),
      cmocka_unit_test(trim_gives_back_the_peak),
      cmocka_unit_test(what_is_trimmed_is_the_systems),
      cmocka_unit_test(marks_give_back_scratch_only),
      cmocka_unit_test(given_blocks_are_taken_again),
      cmocka_unit_test(what_a_chunk_has_left_serves_large_blocks),
      cmocka_unit_test(zeroed_after_reuse),
      cmocka_unit_test(overflow_is_a_failure),
      cmocka_unit_test(the_kth_take_fails_for_every_k),
      cmocka_unit_test(texts_are_as_printf_makes_them),
      cmocka_unit_test(arrays_grow),
      cmocka_unit_test(last_array_grows_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
