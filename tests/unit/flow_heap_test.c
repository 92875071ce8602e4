/* The heap of the flow network: order, re-keying, batches in and out, against a plain sorted model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <cmocka.h>

#include "netmodel/flow_heap.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches)};
  return cmocka_run_group_tests_name("flow_heap", tests, NULL, NULL);
}
