/* Pipeline schedules: every pass once, in an order that can run, as the papers draw it, with their activation counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/strategy/schedule.h"

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
  pl_schedule_step *steps = PL_TAKE(&own->arena, pl_schedule_step, n_steps(own));
  assert_non_null(steps);
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  assert_int_equal(pl_schedule_n_steps(&schedule), n_steps(own));
  pl_schedule_cursor cursor = {0};
  for (int64_t i = 0; i < n_steps(own); i++)
    steps[i] = pl_schedule_next(&schedule, &cursor);
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
  const pl_schedule_step *steps = steps_of(own, stage);
  int32_t held = 0, most = 0;
  for (int64_t i = 0; i < n_steps(own); i++) {
    held += steps[i].backward ? -1 : 1;
    if (held > most) most = held;
  }
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  assert_int_equal(pl_schedule_in_flight(&schedule), most);
  return most;
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

/* ---- what recurs ---- */

static bool same_step(const pl_schedule_step *a, const pl_schedule_step *b, int32_t later) {
  return a->backward == b->backward && a->last == b->last && a->chunk == b->chunk &&
         (a->microbatch + later == b->microbatch);
}

static void marks_the_last_backward_of_each_chunk(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = steps_of(own, stage);
  bool later[8] = {false}; /* by chunk: a backward pass comes behind */
  for (int64_t i = n_steps(own); i-- > 0;) {
    assert_int_equal(steps[i].last, steps[i].backward && !later[steps[i].chunk]);
    if (steps[i].backward) later[steps[i].chunk] = true;
  }
}

/* Inside a phase a step is the one a period before it, and none is a last one. */
static void recurs_inside_phases(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = steps_of(own, stage);
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  pl_schedule_phase phases[PL_SCHEDULE_PHASES];
  int n = pl_schedule_phases(&schedule, phases);
  for (int p = 0; p < n; p++) {
    assert_true(phases[p].from >= 0 && phases[p].from <= phases[p].to && phases[p].to <= n_steps(own));
    assert_true(p == 0 || phases[p].from >= phases[p - 1].to);
    for (int64_t i = phases[p].from; i < phases[p].to; i++)
      assert_false(steps[i].last);
    for (int64_t i = phases[p].from; i + phases[p].period < phases[p].to; i++)
      assert_true(same_step(&steps[i], &steps[i + phases[p].period], phases[p].microbatches));
  }
}

/* The schedule of more microbatches is this one with periods put in anywhere inside its phases: the kinds and chunks of
 * the passes say where each of its steps is in this one. */
static void longer_ones_have_more_periods(pipeline *own, pipeline *longer, int32_t stage) {
  const pl_schedule_step *few = steps_of(own, stage), *many = steps_of(longer, stage);
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  pl_schedule_phase phases[PL_SCHEDULE_PHASES];
  int n = pl_schedule_phases(&schedule, phases);
  for (int p = 0; p < n; p++)
    if (phases[p].to - phases[p].from < phases[p].period) return; /* too short to recur */
  int64_t more = 0, at = 0;                                       /* steps put in so far */
  for (int p = 0; p < n; p++) {
    int64_t put_in = (int64_t)(longer->m - own->m) / abs(phases[p].microbatches) * phases[p].period;
    for (; at < phases[p].to; at++) /* as it was, up to the end of the phase */
      assert_true(few[at].backward == many[at + more].backward && few[at].chunk == many[at + more].chunk &&
                  !many[at + more].last);
    for (int64_t i = 0; i < put_in; i++) {
      const pl_schedule_step *step = &many[at + more + i], *before = step - phases[p].period;
      assert_true(same_step(before, step, phases[p].microbatches));
    }
    more += put_in;
  }
  for (; at < n_steps(own); at++)
    assert_true(few[at].backward == many[at + more].backward && few[at].chunk == many[at + more].chunk &&
                few[at].last == many[at + more].last);
  assert_int_equal(at + more, n_steps(longer));
}

static void most_of_a_schedule_recurs(void **state) {
  (void)state;
  for (int kind = PL_SCHEDULE_GPIPE; kind <= PL_SCHEDULE_INTERLEAVED; kind++)
    for (int32_t pp = 1; pp <= 5; pp++)
      for (int32_t vpp = 1; vpp <= 3; vpp++)
        for (int32_t m = 1; m <= 15; m++)
          for (int32_t more = 0; more <= 12; more++) {
            bool interleaved = kind == PL_SCHEDULE_INTERLEAVED;
            if (interleaved ? vpp < 2 || pp < 2 || m % pp != 0 || more % pp != 0 : vpp > 1) continue;
            pipeline own = make((pl_schedule_kind)kind, pp, vpp, m);
            pipeline longer = make((pl_schedule_kind)kind, pp, vpp, m + more);
            for (int32_t stage = 0; stage < pp; stage++) {
              marks_the_last_backward_of_each_chunk(&own, stage);
              recurs_inside_phases(&own, stage);
              longer_ones_have_more_periods(&own, &longer, stage);
            }
            pl_arena_release(&own.arena);
            pl_arena_release(&longer.arena);
          }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pass_runs_once_in_an_order_that_can_run),
      cmocka_unit_test(gpipe_and_1f1b_as_drawn),
      cmocka_unit_test(interleaved_as_drawn),
      cmocka_unit_test(activations_in_flight),
      cmocka_unit_test(most_of_a_schedule_recurs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
