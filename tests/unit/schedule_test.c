/* Pipeline schedules: every pass once, in an order that can run, as the papers draw it, with their activation counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/schedule.h"

typedef struct pipeline {
  pl_strategy strategy;
  int32_t m;
  pl_arena arena;
} pipeline;

static pipeline make(pl_schedule_kind schedule, int32_t pp, int32_t vpp, int32_t m) {
  pipeline own = {.strategy = {.pp = pp, .dp = 1, .tmp = 1, .mbs = 1, .vpp = vpp, .schedule = schedule}, .m = m};
  pl_arena_init(&own.arena, 0);
  return own;
}

static int64_t n_steps(const pipeline *own) {
  return 2 * (int64_t)own->strategy.vpp * own->m;
}

static const pl_schedule_step *steps_of(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = pl_schedule_take(&own->strategy, own->m, stage, &own->arena);
  assert_non_null(steps);
  return steps;
}

/* Runs all stages against each other: a pass waits for the one that feeds it, a stage does one thing at a time. False:
 * nobody can go on. */
static bool runs_to_the_end(pipeline *own) {
  int32_t pp = own->strategy.pp, n_chunks = pp * own->strategy.vpp;
  bool *done = PL_TAKE(&own->arena, bool, 2 * (size_t)n_chunks * (size_t)own->m); /* [backward][chunk][microbatch] */
  const pl_schedule_step **steps = PL_TAKE(&own->arena, const pl_schedule_step *, pp);
  int64_t *at = PL_TAKE(&own->arena, int64_t, pp), left = pp * n_steps(own);
  for (int32_t stage = 0; stage < pp; stage++)
    steps[stage] = steps_of(own, stage);
  while (left > 0) {
    int64_t before = left;
    for (int32_t stage = 0; stage < pp; stage++)
      for (; at[stage] < n_steps(own); at[stage]++, left--) {
        const pl_schedule_step *step = &steps[stage][at[stage]];
        int32_t chunk = step->chunk * pp + stage, m = own->m;
        bool *forward = done, *backward = done + (size_t)n_chunks * (size_t)m;
        if (!step->backward && chunk > 0 && !forward[(chunk - 1) * m + step->microbatch]) break;
        if (step->backward && !forward[chunk * m + step->microbatch]) return false; /* in-order: never possible */
        if (step->backward && chunk < n_chunks - 1 && !backward[(chunk + 1) * m + step->microbatch]) break;
        bool *own_pass = &(step->backward ? backward : forward)[chunk * m + step->microbatch];
        assert_false(*own_pass); /* once */
        *own_pass = true;
      }
    if (left == before) return false;
  }
  return true; /* n_steps passes, none twice: all of them */
}

static void every_pass_runs_once_in_an_order_that_can_run(void **state) {
  (void)state;
  for (int schedule = PL_SCHEDULE_GPIPE; schedule <= PL_SCHEDULE_INTERLEAVED; schedule++)
    for (int32_t pp = 1; pp <= 8; pp++)
      for (int32_t vpp = 1; vpp <= 4; vpp++)
        for (int32_t m = 1; m <= 24; m++) {
          bool interleaved = schedule == PL_SCHEDULE_INTERLEAVED;
          if (interleaved ? vpp < 2 || pp < 2 || m % pp != 0 : vpp > 1) continue; /* as pl_strategy_check */
          pipeline own = make((pl_schedule_kind)schedule, pp, vpp, m);
          if (!runs_to_the_end(&own))
            fail_msg("%s pp=%d vpp=%d m=%d", pl_schedule_names[(pl_schedule_kind)schedule], pp, vpp, m);
          pl_arena_release(&own.arena);
        }
}

/* "F1 F2 B1" with microbatches from 1; chunk c of a stage is the letter a, b ... behind the number. */
static void assert_sequence(pipeline *own, int32_t stage, const char *expected) {
  const pl_schedule_step *steps = steps_of(own, stage);
  char text[1024] = "";
  for (int64_t i = 0; i < n_steps(own); i++) {
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s%c%d", i == 0 ? "" : " ", steps[i].backward ? 'B' : 'F',
             steps[i].microbatch + 1);
    if (own->strategy.vpp > 1) snprintf(text + strlen(text), sizeof text - strlen(text), "%c", 'a' + steps[i].chunk);
  }
  assert_string_equal(text, expected);
}

/* Narayanan et al. 2021 (Megatron-LM SC21), figure 3 (GPipe; the backwards are drawn in forward order there, Huang et
 * al. 2019, figure 2c, run them in reverse) and figure 4 top (1F1B): four devices, eight microbatches. */
static void gpipe_and_1f1b_as_drawn(void **state) {
  (void)state;
  pipeline gpipe = make(PL_SCHEDULE_GPIPE, 4, 1, 4);
  for (int32_t stage = 0; stage < 4; stage++)
    assert_sequence(&gpipe, stage, "F1 F2 F3 F4 B4 B3 B2 B1");
  pl_arena_release(&gpipe.arena);
  pipeline own = make(PL_SCHEDULE_1F1B, 4, 1, 8);
  assert_sequence(&own, 0, "F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8");
  assert_sequence(&own, 1, "F1 F2 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 F8 B6 B7 B8");
  assert_sequence(&own, 2, "F1 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 F8 B7 B8");
  assert_sequence(&own, 3, "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8");
  pl_arena_release(&own.arena);
}

/* Figure 4 bottom: two chunks per device, dark and light. Device 1 starts 1-4 dark, 1-4 light, 5-7 dark before its
 * first backward ... */
static void interleaved_as_drawn(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_INTERLEAVED, 4, 2, 8);
  assert_sequence(&own, 0,
                  "F1a F2a F3a F4a F1b F2b F3b F4b F5a F6a F7a B1b F8a B2b F5b B3b F6b B4b F7b B1a F8b B2a B3a B4a "
                  "B5b B6b B7b B8b B5a B6a B7a B8a");
  assert_sequence(&own, 3,
                  "F1a F2a F3a F4a F1b B1b F2b B2b F3b B3b F4b B4b F5a B1a F6a B2a F7a B3a F8a B4a F5b B5b F6b B6b "
                  "F7b B7b F8b B8b B5a B6a B7a B8a");
  pl_arena_release(&own.arena);
}

static int32_t in_flight(pipeline *own, int32_t stage) {
  return pl_schedule_in_flight(steps_of(own, stage), n_steps(own));
}

static int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}

/* GPipe keeps m microbatches, 1F1B pp - stage of them (section 2.2.1), interleaving
 * 2 (pp - stage - 1) + (vpp - 1) pp + 1 passes of a chunk (its warm-up and the one in work); never more than there are.
 */
static void activations_in_flight(void **state) {
  (void)state;
  for (int32_t pp = 1; pp <= 6; pp++)
    for (int32_t m = 1; m <= 18; m++)
      for (int32_t stage = 0; stage < pp; stage++) {
        pipeline gpipe = make(PL_SCHEDULE_GPIPE, pp, 1, m), one = make(PL_SCHEDULE_1F1B, pp, 1, m);
        assert_int_equal(in_flight(&gpipe, stage), m);
        assert_int_equal(in_flight(&one, stage), smaller(pp - stage, m));
        pl_arena_release(&gpipe.arena);
        pl_arena_release(&one.arena);
        for (int32_t vpp = 2; pp > 1 && m % pp == 0 && vpp <= 3; vpp++) {
          pipeline own = make(PL_SCHEDULE_INTERLEAVED, pp, vpp, m);
          assert_int_equal(in_flight(&own, stage), smaller(2 * (pp - stage - 1) + (vpp - 1) * pp + 1, vpp * m));
          pl_arena_release(&own.arena);
        }
      }
}

static void no_memory_gives_null(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_1F1B, 4, 1, 8);
  own.arena.fail_after = 0;
  assert_null(pl_schedule_take(&own.strategy, own.m, 0, &own.arena));
  pl_arena_release(&own.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pass_runs_once_in_an_order_that_can_run),
      cmocka_unit_test(gpipe_and_1f1b_as_drawn),
      cmocka_unit_test(interleaved_as_drawn),
      cmocka_unit_test(activations_in_flight),
      cmocka_unit_test(no_memory_gives_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
