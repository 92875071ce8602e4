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

#include "workloads/strategy/listed_schedule.h"

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

/* As pl_strategy_check. */
static bool is_valid(int kind, int32_t pp, int32_t vpp, int32_t m) {
  const pl_strategy strategy = {.schedule = (pl_schedule_kind)kind};
  if (kind == PL_SCHEDULE_INTERLEAVED) return vpp >= 2 && pp >= 2 && m % pp == 0;
  if (kind == PL_SCHEDULE_BREADTH_FIRST) return vpp >= 2 && pp >= 2;
  if (kind == PL_SCHEDULE_DUALPIPE_V && m < 2 * pp) return false;
  if (pl_strategy_is_v(&strategy)) return vpp == 2 && pp >= 2;
  return vpp == 1 && (pp >= 2 || !pl_strategy_splits_backward(&strategy));
}

static int64_t n_steps(const pipeline *own, int32_t stage) {
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  return pl_schedule_n_steps(&schedule);
}

static const pl_schedule_step *steps_of(pipeline *own, int32_t stage) {
  int64_t n = n_steps(own, stage);
  pl_schedule_step *steps = PL_TAKE(&own->arena, pl_schedule_step, n);
  assert_non_null(steps);
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  pl_schedule_cursor cursor = {0};
  for (int64_t i = 0; i < n; i++)
    steps[i] = pl_schedule_next(&schedule, &cursor);
  return steps;
}

/* The rule written out, as a file would list it. */
static pl_listed_schedule list_of(pipeline *own) {
  int32_t pp = own->strategy.pp;
  const pl_schedule_step **steps = PL_TAKE(&own->arena, const pl_schedule_step *, pp);
  int64_t *n = PL_TAKE(&own->arena, int64_t, pp);
  assert_true(steps != NULL && n != NULL);
  for (int32_t stage = 0; stage < pp; stage++) {
    steps[stage] = steps_of(own, stage);
    n[stage] = n_steps(own, stage);
  }
  return (pl_listed_schedule){.pp = pp,
                              .vpp = own->strategy.vpp,
                              .n_microbatches = own->m,
                              .is_v = pl_strategy_is_v(&own->strategy),
                              .steps = steps,
                              .n_steps = n};
}

static void every_pass_runs_once_in_an_order_that_can_run(void **state) {
  (void)state;
  for (int kind = 0; kind < PL_SCHEDULE_DUALPIPE; kind++)
    for (int32_t pp = 1; pp <= 8; pp++)
      for (int32_t vpp = 1; vpp <= 4; vpp++)
        for (int32_t m = 1; m <= 24; m++) {
          if (!is_valid(kind, pp, vpp, m)) continue;
          pipeline own = make((pl_schedule_kind)kind, pp, vpp, m);
          const pl_listed_schedule list = list_of(&own);
          const pl_schedule_fault fault = pl_schedule_check(&list, &own.arena);
          if (fault.kind != PL_SCHEDULE_SOUND)
            fail_msg("%s pp=%d vpp=%d m=%d: fault %d at step %ld of stage %d", pl_schedule_names[kind], pp, vpp, m,
                     (int)fault.kind, (long)fault.at, fault.stage);
          pl_arena_release(&own.arena);
        }
}

/* "F1 F2 B1" with microbatches from 1; chunk c of a stage is the letter a, b ... behind the number. */
static void assert_sequence(pipeline *own, int32_t stage, const char *expected) {
  const pl_schedule_step *steps = steps_of(own, stage);
  char text[1024] = "";
  bool splits = pl_strategy_splits_backward(&own->strategy);
  for (int64_t i = 0; i < n_steps(own, stage); i++) {
    size_t length = strlen(text);
    const char *name = pl_step_name((pl_step_kind)steps[i].kind);
    snprintf(text + length, sizeof text - length, "%s%s%d", i == 0 ? "" : " ",
             splits           ? name
             : name[0] == 'F' ? "F"
                              : "B",
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

/* DistIR's tests (Santhanam et al. 2021): stages f0 b0 on one device and f1 b1 on the other, two microbatches. */
static void fifo_as_pinned(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_FIFO, 2, 1, 2), one = make(PL_SCHEDULE_1F1B, 2, 1, 2);
  for (int32_t stage = 0; stage < 2; stage++)
    assert_sequence(&own, stage, "F1 F2 B1 B2");
  assert_sequence(&one, 0, "F1 F2 B1 B2");
  assert_sequence(&one, 1, "F1 B1 F2 B2");
  pl_arena_release(&own.arena);
  pl_arena_release(&one.arena);
}

/* Lamy-Poirier 2023, figure 4: all microbatches of a chunk, then the next chunk; backwards likewise, last chunk first.
 */
static void breadth_first_as_drawn(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_BREADTH_FIRST, 2, 2, 3);
  for (int32_t stage = 0; stage < 2; stage++)
    assert_sequence(&own, stage, "F1a F2a F3a F1b F2b F3b B1b B2b B3b B1a B2a B3a");
  pl_arena_release(&own.arena);
}

/* Qi et al. 2023, figure 3: ZB-H1 and ZB-H2, four devices, eight microbatches. */
static void zero_bubble_as_drawn(void **state) {
  (void)state;
  pipeline one = make(PL_SCHEDULE_ZB_H1, 4, 1, 8), two = make(PL_SCHEDULE_ZB_H2, 4, 1, 8);
  assert_sequence(&one, 0, "F1 F2 F3 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 F8 B5 W5 B6 W6 B7 W7 B8 W8");
  assert_sequence(&one, 1, "F1 F2 F3 B1 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 F8 B6 W5 B7 W6 B8 W7 W8");
  assert_sequence(&one, 2, "F1 F2 B1 F3 B2 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 F8 B7 W5 B8 W6 W7 W8");
  assert_sequence(&one, 3, "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8");
  assert_sequence(&two, 0, "F1 F2 F3 F4 F5 F6 F7 B1 W1 F8 B2 W2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7 B8 W8");
  assert_sequence(&two, 3, "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 W1 F8 B8 W2 W3 W4 W5 W6 W7 W8");
  pl_arena_release(&one.arena);
  pl_arena_release(&two.arena);
}

/* Qi et al. 2023, section 6: the first stage has the first and the last chunk, the last stage turns each microbatch
 * round. */
static void zero_bubble_v_as_drawn(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_ZB_V, 2, 2, 4);
  assert_sequence(&own, 0,
                  "F1a F2a F3a F1b B1b W1b F2b B2b W2b F4a B1a W1a F3b B3b W3b B2a W2a F4b B4b W4b B3a W3a B4a W4a");
  assert_sequence(&own, 1,
                  "F1a F1b F2a F2b B1b W1b F3a B1a W1a F3b B2b W2b F4a B2a W2a F4b B3b W3b B3a B4b B4a W3a W4b W4a");
  pl_arena_release(&own.arena);
}

/* DeepSeek-AI's DualPipe, dualpipe.py, with a stage and its mirror image as one: its steps 1 to 8 on ranks 0 and 1 of
 * two, five microbatches of each direction. */
static void dualpipe_as_published(void **state) {
  (void)state;
  pipeline own = make(PL_SCHEDULE_DUALPIPE_V, 2, 2, 5);
  assert_sequence(&own, 0,
                  "F1a F2a F3a F1b B1b W1b F2b F4a BW2b F3b BW1a F5a BW3b F4b BW2a BW4b F5b BW3a BW5b B4a W4a B5a W5a");
  assert_sequence(&own, 1,
                  "F1a F1b F2a F2b F3a BW1b F3b BW1a F4a BW2b F4b BW2a F5a BW3b F5b BW3a BW4b BW4a B5b B5a W5b W5a");
  pl_arena_release(&own.arena);
}

/* Two copies: ranks r and pp - 1 - r run the published steps of one stage, each with the direction that comes in at its
 * own end as the first; the microbatches of the second copy come behind those of the first. A chunk's passes are each
 * there once, and PP + 1 of them are held (DeepSeek-V3, table 2). */
static void dualpipe_of_two_copies(void **state) {
  (void)state;
  for (int32_t pp = 2; pp <= 8; pp += 2)
    for (int32_t m = 2 * pp; m <= 2 * pp + 6; m += 2)
      for (int32_t stage = 0; stage < pp; stage++) {
        const pl_strategy both = {.schedule = PL_SCHEDULE_DUALPIPE, .pp = pp, .vpp = 1};
        const pl_strategy one = {.schedule = PL_SCHEDULE_DUALPIPE_V, .pp = pp / 2, .vpp = 2};
        bool mirrored = stage >= pp / 2;
        pl_schedule schedule = pl_schedule_of(&both, m, stage);
        pl_schedule published = pl_schedule_of(&one, m / 2, mirrored ? pp - 1 - stage : stage);
        pl_schedule_cursor cursor = {0}, published_cursor = {0};
        int32_t passes[PL_STEP_KIND_COUNT][2] = {{0}};
        int64_t n = pl_schedule_n_steps(&published);
        assert_int_equal(pl_schedule_n_steps(&schedule), n);
        for (int64_t i = 0; i < n; i++) {
          pl_schedule_step is = pl_schedule_next(&schedule, &cursor);
          pl_schedule_step should = pl_schedule_next(&published, &published_cursor);
          assert_int_equal(is.kind, should.kind);
          assert_int_equal(is.chunk, mirrored ? 1 - should.chunk : should.chunk);
          assert_int_equal(is.microbatch, should.microbatch + (is.chunk == 1 ? m / 2 : 0));
          passes[is.kind][is.chunk]++;
        }
        for (int32_t chunk = 0; chunk < 2; chunk++) {
          assert_int_equal(passes[PL_STEP_FORWARD][chunk], m / 2);
          assert_int_equal(passes[PL_STEP_BACKWARD][chunk] + passes[PL_STEP_INPUTS][chunk], m / 2);
          assert_int_equal(passes[PL_STEP_BACKWARD][chunk] + passes[PL_STEP_WEIGHTS][chunk], m / 2);
        }
        assert_int_equal(pl_schedule_in_flight(&schedule), pp + 1);
        assert_int_equal(pl_strategy_chunk_at(&both, stage, 1), 2 * pp - 1 - stage);
      }
}

/* ---- pairs ---- */

static pipeline make_pairs(int32_t pp, int32_t vpp, int32_t m) {
  pipeline own = make(pp > 1 ? PL_SCHEDULE_INTERLEAVED : PL_SCHEDULE_1F1B, pp, vpp, m);
  own.strategy.ep = 2;
  own.strategy.ep_overlap = true;
  return own;
}

/* Megatron Core's combined 1F1B: one forward pass more ahead, then pairs. */
static void pairs_as_megatron_runs_them(void **state) {
  (void)state;
  pipeline own = make_pairs(1, 1, 4);
  assert_sequence(&own, 0, "F1 F2 B1 F3 B2 F4 B3 B4"); /* combined_1f1b.py, phases 0 to 4 */
  const pl_schedule_step *steps = steps_of(&own, 0);
  for (int i = 0; i < 8; i++)
    assert_int_equal(steps[i].joined, i == 1 || i == 3 || i == 5);
  pl_arena_release(&own.arena);
  pipeline two = make_pairs(2, 2, 4);
  assert_sequence(&two, 0, "F1a F2a F1b F2b F3a F4a B1b F3b B2b F4b B1a B2a B3b B4b B3a B4a");
  assert_sequence(&two, 1, "F1a F2a F1b F2b B1b F3a B2b F4a B1a F3b B2a F4b B3b B4b B3a B4a");
  pl_arena_release(&two.arena);
}

/* Chunk `chunk` of the model, microbatch by microbatch: forward and backward passes that are over. */
typedef struct progress {
  bool done[2][64][32];
} progress;

static bool may_begin(const progress *so_far, const pl_schedule_step *step, int32_t chunk, int32_t n_chunks) {
  bool is_last = chunk == n_chunks - 1;
  if (step->kind == PL_STEP_FORWARD) return chunk == 0 || so_far->done[0][chunk - 1][step->microbatch];
  return so_far->done[0][chunk][step->microbatch] && (is_last || so_far->done[1][chunk + 1][step->microbatch]);
}

/* Both passes of a pair have all that they receive before either begins, and neither hands anything on before both are
 * over: no stage waits for ever, and no more are held than one beyond those without pairs. */
static void pairs_can_run(void **state) {
  (void)state;
  for (int32_t pp = 1; pp <= 6; pp++)
    for (int32_t vpp = pp > 1 ? 2 : 1; vpp <= (pp > 1 ? 4 : 1); vpp++)
      for (int32_t m = pp; m <= 4 * pp; m += pp) {
        pipeline own = make_pairs(pp, vpp, m);
        const pl_schedule_step *steps[8];
        int64_t at[8] = {0}, n = n_steps(&own, 0);
        progress so_far = {{{{false}}}};
        for (int32_t s = 0; s < pp; s++)
          steps[s] = steps_of(&own, s);
        int64_t n_left = n * pp, before = n_left + 1, n_pairs = 0;
        while (n_left > 0 && n_left < before) {
          before = n_left;
          for (int32_t s = 0; s < pp; s++) {
            if (at[s] == n) continue;
            const pl_schedule_step *first = &steps[s][at[s]];
            int32_t n_joined = first->joined ? 2 : 1;
            bool may = true;
            for (int32_t i = 0; i < n_joined; i++)
              may = may &&
                    may_begin(&so_far, &first[i], pl_strategy_chunk_at(&own.strategy, s, first[i].chunk), pp * vpp);
            if (!may) continue;
            for (int32_t i = 0; i < n_joined; i++)
              so_far.done[first[i].kind != PL_STEP_FORWARD][pl_strategy_chunk_at(&own.strategy, s, first[i].chunk)]
                         [first[i].microbatch] = true;
            if (n_joined == 2) assert_int_equal(first[1].kind, PL_STEP_BACKWARD);
            n_pairs += n_joined - 1;
            at[s] += n_joined;
            n_left -= n_joined;
          }
        }
        if (n_left > 0) fail_msg("pp=%d vpp=%d m=%d: %ld steps never run", pp, vpp, m, (long)n_left);
        for (int32_t s = 0; s < pp; s++) {
          const pl_schedule schedule = pl_schedule_of(&own.strategy, m, s);
          n_pairs -= schedule.n_passes - schedule.ahead;
        }
        assert_int_equal(n_pairs, 0); /* every pass that is not ahead is in one */
        pl_arena_release(&own.arena);
      }
}

static int32_t in_flight(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = steps_of(own, stage);
  int32_t held = 0, most = 0;
  for (int64_t i = 0; i < n_steps(own, stage); i++) {
    held += steps[i].kind == PL_STEP_FORWARD;
    held -= pl_step_makes_weights(&steps[i]);
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

/* Qi et al. 2023, section 3: ZB-H1 holds what 1F1B holds on its first stage, ZB-H2 2 pp - 1 microbatches, on every
 * stage; section 6: ZB-V pp microbatches, which are 2 pp chunks. */
static void zero_bubble_in_flight(void **state) {
  (void)state;
  for (int32_t pp = 2; pp <= 6; pp++)
    for (int32_t m = 1; m <= 18; m++)
      for (int32_t stage = 0; stage < pp; stage++) {
        pipeline h1 = make(PL_SCHEDULE_ZB_H1, pp, 1, m), h2 = make(PL_SCHEDULE_ZB_H2, pp, 1, m);
        pipeline v = make(PL_SCHEDULE_ZB_V, pp, 2, m);
        assert_int_equal(in_flight(&h1, stage), smaller(pp, m));
        assert_int_equal(in_flight(&h2, stage), smaller(2 * pp - 1, m));
        assert_true(in_flight(&v, stage) <= smaller(2 * pp, 2 * m));
        if (m >= 2 * pp) assert_int_equal(in_flight(&v, stage), 2 * pp);
        pl_arena_release(&h1.arena);
        pl_arena_release(&h2.arena);
        pl_arena_release(&v.arena);
      }
}

/* ---- what recurs ---- */

static bool same_step(const pl_schedule_step *a, const pl_schedule_step *b, int32_t later) {
  return a->kind == b->kind && a->last == b->last && a->chunk == b->chunk && (a->microbatch + later == b->microbatch);
}

static void marks_the_last_backward_of_each_chunk(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = steps_of(own, stage);
  bool later[8] = {false}; /* by chunk: a backward pass comes behind */
  for (int64_t i = n_steps(own, stage); i-- > 0;) {
    bool makes = pl_step_makes_weights(&steps[i]);
    assert_int_equal(steps[i].last, makes && !later[steps[i].chunk]);
    if (makes) later[steps[i].chunk] = true;
  }
}

/* Inside a phase a step is the one a period before it, and none is a last one. */
static void recurs_inside_phases(pipeline *own, int32_t stage) {
  const pl_schedule_step *steps = steps_of(own, stage);
  const pl_schedule schedule = pl_schedule_of(&own->strategy, own->m, stage);
  pl_schedule_phase phases[PL_SCHEDULE_PHASES];
  int n = pl_schedule_phases(&schedule, phases);
  for (int p = 0; p < n; p++) {
    assert_true(phases[p].from >= 0 && phases[p].from <= phases[p].to && phases[p].to <= n_steps(own, stage));
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
      assert_true(few[at].kind == many[at + more].kind && few[at].chunk == many[at + more].chunk &&
                  !many[at + more].last);
    for (int64_t i = 0; i < put_in; i++) {
      const pl_schedule_step *step = &many[at + more + i], *before = step - phases[p].period;
      assert_true(same_step(before, step, phases[p].microbatches));
    }
    more += put_in;
  }
  for (; at < n_steps(own, stage); at++)
    assert_true(few[at].kind == many[at + more].kind && few[at].chunk == many[at + more].chunk &&
                few[at].last == many[at + more].last);
  assert_int_equal(at + more, n_steps(longer, stage));
}

static void check_recurrence_of(pipeline own, pipeline longer) {
  int32_t pp = own.strategy.pp;
  for (int32_t stage = 0; stage < pp; stage++) {
    marks_the_last_backward_of_each_chunk(&own, stage);
    recurs_inside_phases(&own, stage);
    if (pl_schedule_recurs(&own.strategy)) longer_ones_have_more_periods(&own, &longer, stage);
  }
  pl_arena_release(&own.arena);
  pl_arena_release(&longer.arena);
}

static void check_recurrence(int kind, int32_t pp, int32_t vpp, int32_t m, int32_t more) {
  check_recurrence_of(make((pl_schedule_kind)kind, pp, vpp, m), make((pl_schedule_kind)kind, pp, vpp, m + more));
}

static void pairs_recur(void **state) {
  (void)state;
  for (int32_t pp = 1; pp <= 4; pp++)
    for (int32_t vpp = pp > 1 ? 2 : 1; vpp <= (pp > 1 ? 3 : 1); vpp++)
      for (int32_t m = pp; m <= 5 * pp; m += pp)
        for (int32_t more = 0; more <= 3 * pp; more += pp) {
          pipeline own = make_pairs(pp, vpp, m), longer = make_pairs(pp, vpp, m + more);
          for (int32_t stage = 0; stage < pp; stage++) {
            const pl_schedule schedule = pl_schedule_of(&own.strategy, m, stage);
            pl_schedule_phase phases[PL_SCHEDULE_PHASES];
            assert_int_equal(pl_schedule_phases(&schedule, phases), 1);
            assert_int_equal((phases[0].from - schedule.ahead) % 2, 0); /* no period cuts a pair in two */
            assert_int_equal(phases[0].period % 2, 0);
            in_flight(&own, stage);
          }
          check_recurrence_of(own, longer);
        }
}

static void most_of_a_schedule_recurs(void **state) {
  (void)state;
  for (int kind = 0; kind < PL_SCHEDULE_DUALPIPE; kind++)
    for (int32_t pp = 1; pp <= 5; pp++)
      for (int32_t vpp = 1; vpp <= 3; vpp++)
        for (int32_t m = 1; m <= 15; m++)
          for (int32_t more = 0; more <= 12; more++)
            if (is_valid(kind, pp, vpp, m) && is_valid(kind, pp, vpp, m + more))
              check_recurrence(kind, pp, vpp, m, more);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pass_runs_once_in_an_order_that_can_run),
      cmocka_unit_test(gpipe_and_1f1b_as_drawn),
      cmocka_unit_test(interleaved_as_drawn),
      cmocka_unit_test(fifo_as_pinned),
      cmocka_unit_test(breadth_first_as_drawn),
      cmocka_unit_test(zero_bubble_as_drawn),
      cmocka_unit_test(zero_bubble_v_as_drawn),
      cmocka_unit_test(dualpipe_as_published),
      cmocka_unit_test(dualpipe_of_two_copies),
      cmocka_unit_test(pairs_as_megatron_runs_them),
      cmocka_unit_test(pairs_can_run),
      cmocka_unit_test(pairs_recur),
      cmocka_unit_test(activations_in_flight),
      cmocka_unit_test(zero_bubble_in_flight),
      cmocka_unit_test(most_of_a_schedule_recurs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
