/* The event heap against a sorted reference under random pushes, re-keys, removals and pops; no memory; ties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/cluster/cluster.h"
#include "core/engine/event_heap.h"
#include "tests/support/random.h"

enum { SLOTS = 60 };

typedef struct reference {
  bool present[SLOTS];
  pl_event event[SLOTS];
} reference;

static uint32_t first_of(const reference *known) {
  uint32_t first = PL_NONE;
  for (uint32_t id = 0; id < SLOTS; id++) {
    const pl_event *event = &known->event[id];
    if (!known->present[id]) continue;
    if (first == PL_NONE || event->time < known->event[first].time ||
        (event->time == known->event[first].time && event->order < known->event[first].order))
      first = id;
  }
  return first;
}

static void equals_sorted_reference(void **state) {
  (void)state;
  uint64_t random = test_seed(11);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_event_heap heap;
  assert_true(pl_event_heap_init(&heap, SLOTS, &arena));
  reference known = {0};
  for (uint32_t step = 0; step < 60000; step++) {
    uint32_t id = random_below(&random, SLOTS), action = random_below(&random, 10);
    uint32_t first = first_of(&known);
    if (action < 6) { /* few dates, so that ties are common; orders are unique and unlike the slots */
      pl_event event = {.time = random_below(&random, 12), .order = (step % 1000) * SLOTS + id, .id = id};
      pl_event_heap_put(&heap, id, event.time, event.order);
      known.present[id] = true;
      known.event[id] = event;
    } else if (action < 8) {
      pl_event_heap_remove(&heap, id);
      known.present[id] = false;
    } else if (first != PL_NONE) {
      assert_int_equal(pl_event_heap_next(&heap), known.event[first].time);
      pl_event event = pl_event_heap_pop(&heap);
      assert_int_equal(event.id, first);
      assert_int_equal(event.order, known.event[first].order);
      known.present[first] = false;
    }
    if (step % 16 == 0) assert_true(pl_event_heap_is_valid(&heap));
  }
  pl_arena_release(&arena);
}

static void set_orders_ties_by_id(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_event_heap heap;
  assert_true(pl_event_heap_init(&heap, 4, &arena));
  assert_true(pl_event_heap_next(&heap) == PL_TICKS_NEVER);
  for (uint32_t id = 4; id-- > 0;)
    pl_event_heap_set(&heap, id, 7);
  pl_event_heap_set(&heap, 3, 5);
  const uint32_t expected[] = {3, 0, 1, 2};
  for (uint32_t at = 0; at < 4; at++)
    assert_int_equal(pl_event_heap_pop(&heap).id, expected[at]);
  assert_int_equal(heap.count, 0);
  pl_arena_release(&arena);
}

static void validity_sees_damage(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_event_heap heap;
  assert_true(pl_event_heap_init(&heap, 4, &arena));
  for (uint32_t id = 0; id < 4; id++)
    pl_event_heap_set(&heap, id, id);
  assert_true(pl_event_heap_is_valid(&heap));
  heap.events[3].time = -1;
  assert_false(pl_event_heap_is_valid(&heap));
  heap.events[3].time = 3;
  heap.position[2] = PL_NONE;
  assert_false(pl_event_heap_is_valid(&heap));
  pl_arena_release(&arena);
}

static void init_without_memory_fails(void **state) {
  (void)state;
  for (int64_t k = 0; k < 2; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_event_heap heap;
    assert_false(pl_event_heap_init(&heap, 8, &arena));
    pl_arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_sorted_reference),
      cmocka_unit_test(set_orders_ties_by_id),
      cmocka_unit_test(validity_sees_damage),
      cmocka_unit_test(init_without_memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
