/* The heap of the flow network: order, re-keying, batches in and out, against a plain sorted model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <cmocka.h>

#include "netmodel/flow/flow_heap.h"
#include "tests/support/random.h"

enum { SLOTS = 6000 };

static int by_task(const void *a, const void *b) {
  uint32_t x = ((const pl_flow_event *)a)->task, y = ((const pl_flow_event *)b)->task;
  return (x > y) - (x < y);
}

/* Few distinct times, so that large parts fall due together; tasks are scattered over the whole range. */
static void batches(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20269);
  for (uint32_t round = 0; round < 30; round++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_flow_heap heap = {.few_at = -1};
    static pl_ticks time_of[SLOTS];
    static uint32_t task_of[SLOTS];
    uint32_t n = random_between(&state, 1, SLOTS), n_times = random_between(&state, 1, round % 2 ? 4 : 4000), left = n;
    for (uint32_t slot = 0; slot < n; slot++) {
      assert_true(pl_flow_heap_reserve(&heap, (slot | 63) + 1, &arena));
      task_of[slot] = (slot + 1) * (round % 3 ? UINT32_C(2654435761) : 1); /* odd: distinct */
      time_of[slot] = random_below(&state, n_times);
      pl_flow_heap_set(&heap, slot, task_of[slot], time_of[slot]);
    }
    for (uint32_t k = random_below(&state, n); k-- > 0;) {
      uint32_t slot = random_below(&state, n);
      time_of[slot] = random_below(&state, n_times);
      pl_flow_heap_set(&heap, slot, task_of[slot], time_of[slot]);
    }
    assert_true(pl_flow_heap_is_valid(&heap));
    for (uint32_t slot = 0; slot < n; slot += 3)
      pl_flow_heap_put(&heap, slot, task_of[slot], time_of[slot] += 1);
    pl_flow_heap_order(&heap);
    assert_true(pl_flow_heap_is_valid(&heap));
    while (left > 0) {
      pl_ticks now = pl_flow_heap_next(&heap);
      static pl_flow_event should[SLOTS];
      uint32_t n_due = 0;
      for (uint32_t slot = 0; slot < n; slot++)
        if (time_of[slot] == now) should[n_due++] = (pl_flow_event){.time = now, .task = task_of[slot], .slot = slot};
      assert_true(n_due > 0);
      qsort(should, n_due, sizeof *should, by_task);
      pl_flow_event event;
      for (uint32_t i = 0; i < n_due; i++) {
        assert_true(pl_flow_heap_take_due(&heap, now, &event));
        assert_true(event.time == now && event.task == should[i].task && event.slot == should[i].slot);
      }
      assert_false(pl_flow_heap_take_due(&heap, now, &event));
      assert_true(pl_flow_heap_is_valid(&heap));
      left -= n_due;
    }
    pl_arena_release(&arena);
  }
}

/* Queue, bag and heap turn into each other: random single events, batches, removals and draws, also at the tick that is
 * being drawn. */
static void forms(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20270);
  enum { FEW = 200 };
  uint32_t seen[3] = {0};
  for (uint32_t round = 0; round < 200; round++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_flow_heap heap = {.few_at = -1};
    pl_ticks time_of[FEW], now = 0;
    assert_true(pl_flow_heap_reserve(&heap, FEW, &arena));
    for (uint32_t slot = 0; slot < FEW; slot++)
      time_of[slot] = PL_TICKS_NEVER;
    for (uint32_t step = 0; step < 300; step++) {
      uint32_t kind = random_below(&state, 8), slot = random_below(&state, FEW);
      pl_ticks later = now + random_below(&state, round % 2 ? 5 : 500);
      if (kind < 4) {
        pl_flow_heap_set(&heap, slot, slot, time_of[slot] = later);
      } else if (kind == 4) {
        pl_flow_heap_remove(&heap, slot);
        time_of[slot] = PL_TICKS_NEVER;
      } else if (kind == 5) {
        for (uint32_t i = slot; i < FEW; i += 2) {
          time_of[i] = now + random_below(&state, 50);
          pl_flow_heap_put(&heap, i, i, time_of[i]);
        }
        pl_flow_heap_order(&heap);
      }
      assert_true(pl_flow_heap_is_valid(&heap));
      seen[heap.form]++;
      if (kind < 6) continue;
      now = PL_TICKS_NEVER;
      for (uint32_t i = 0; i < FEW; i++)
        now = time_of[i] < now ? time_of[i] : now;
      assert_true(pl_flow_heap_next(&heap) == now);
      pl_flow_event event;
      for (uint32_t drawn = 0; pl_flow_heap_take_due(&heap, now, &event); drawn++) {
        assert_true(event.time == now && time_of[event.slot] == now);
        time_of[event.slot] = PL_TICKS_NEVER;
        if (drawn < 3) pl_flow_heap_set(&heap, event.slot, event.slot, time_of[event.slot] = now + drawn % 2);
      }
      for (uint32_t i = 0; i < FEW; i++)
        assert_true(time_of[i] > now || now == PL_TICKS_NEVER);
      now = now == PL_TICKS_NEVER ? 0 : now;
    }
    pl_arena_release(&arena);
  }
  assert_true(seen[PL_FLOW_HEAP] > 0 && seen[PL_FLOW_QUEUE] > 0 && seen[PL_FLOW_BAG] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches), cmocka_unit_test(forms)};
  return cmocka_run_group_tests_name("flow_heap", tests, NULL, NULL);
}
