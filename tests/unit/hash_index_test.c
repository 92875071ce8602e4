/* The hash index: everything put in is found, equal hashes give all their records, growth keeps them, no memory leaves
 * it as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/hash_index.h"
#include "tests/support/random.h"

enum { RECORDS = 1000 };

typedef struct record {
  uint64_t hash;
  uint32_t n_seen;
} record;

/* Few different hashes, all in a corner of the table: many records under each, long probes. */
static void finds_every_record_once(void **state) {
  (void)state;
  uint64_t random = test_seed(5);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_hash_index index = {0};
  record *records = PL_TAKE(&arena, record, RECORDS);
  for (uint32_t i = 0; i < RECORDS; i++) {
    records[i].hash = random_below(&random, 50) | (uint64_t)random_below(&random, 2) << 40;
    assert_true(pl_hash_index_put(&index, records[i].hash, &records[i], &arena));
  }
  assert_int_equal(index.count, RECORDS);
  assert_true(index.n_slots >= 2 * RECORDS);
  for (uint64_t hash = 0; hash < 100; hash++) {
    uint64_t wanted = hash % 50 | (hash / 50) << 40;
    uint32_t probe = 0;
    for (const record *found; (found = pl_hash_index_find(&index, wanted, &probe)) != NULL;) {
      assert_true(found->hash == wanted);
      records[found - records].n_seen++;
    }
  }
  for (uint32_t i = 0; i < RECORDS; i++)
    assert_int_equal(records[i].n_seen, 1);
  pl_arena_release(&arena);
}

static void empty_has_nothing(void **state) {
  (void)state;
  pl_hash_index index = {0};
  uint32_t probe = 0;
  assert_null(pl_hash_index_find(&index, 7, &probe));
}

static void no_memory_changes_nothing(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_hash_index index = {0};
  record one = {.hash = 3};
  arena.fail_after = 0;
  assert_false(pl_hash_index_put(&index, 3, &one, &arena));
  assert_int_equal(index.count, 0);
  arena.fail_after = -1;
  assert_true(pl_hash_index_put(&index, 3, &one, &arena));
  while (2 * index.count < index.n_slots)
    assert_true(pl_hash_index_put(&index, 10 + index.count, &one, &arena));
  uint32_t count = index.count;
  arena.fail_after = 0;
  assert_false(pl_hash_index_put(&index, 9, &one, &arena));
  assert_int_equal(index.count, count);
  uint32_t probe = 0;
  assert_ptr_equal(pl_hash_index_find(&index, 3, &probe), &one);
  pl_arena_release(&arena);
}

static void room_is_made_at_once(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_hash_index index = {0};
  record one = {.hash = 3};
  assert_true(pl_hash_index_put(&index, 3, &one, &arena));
  uint32_t n_slots = index.n_slots;
  arena.fail_after = 0;
  assert_false(pl_hash_index_expect(&index, RECORDS, &arena));
  assert_true(index.n_slots == n_slots && pl_hash_index_expect(&index, 1, &arena)); /* there already */
  arena.fail_after = -1;
  assert_true(pl_hash_index_expect(&index, RECORDS, &arena));
  assert_true(index.n_slots >= 2 * RECORDS && index.count == 1);
  arena.fail_after = 0; /* no more is taken */
  while (index.count < RECORDS)
    assert_true(pl_hash_index_put(&index, 10 + index.count, &one, &arena));
  uint32_t probe = 0;
  assert_ptr_equal(pl_hash_index_find(&index, 3, &probe), &one);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_every_record_once),
      cmocka_unit_test(empty_has_nothing),
      cmocka_unit_test(no_memory_changes_nothing),
      cmocka_unit_test(room_is_made_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
