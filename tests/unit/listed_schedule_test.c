/* Schedules that a file lists: what is read, and one message with file, line and column for everything that is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/strategy/listed_schedule.h"

static pl_code parse(const char *text, pl_arena *arena, const pl_listed_schedule **listed, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_listed_schedule_parse("s.txt", text, strlen(text), arena, listed, error);
}

static void a_file_is_read(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_listed_schedule *own;
  pl_error error;
  static const char text[] = "# a comment\n\n chunks loop \n0: F0.0 F0.1 B0.0 # here too\r\n1: F0.0 BW0.0\n"
                             "0:\tW0.0 BW0.1\n1: F0.1 BW0.1";
  if (parse(text, &arena, &own, &error) != PL_OK) fail_msg("%s", error.message);
  assert_true(own->pp == 2 && own->vpp == 1 && own->n_microbatches == 2 && own->splits && !own->is_v);
  assert_true(own->n_steps[0] == 5 && own->n_steps[1] == 4);
  static const pl_schedule_step first[] = {{.kind = PL_STEP_FORWARD},
                                           {.kind = PL_STEP_FORWARD, .microbatch = 1},
                                           {.kind = PL_STEP_INPUTS},
                                           {.kind = PL_STEP_WEIGHTS},
                                           {.kind = PL_STEP_BACKWARD, .last = true, .microbatch = 1}};
  for (int i = 0; i < 5; i++) {
    const pl_schedule_step *step = &own->steps[0][i];
    assert_true(step->kind == first[i].kind && step->last == first[i].last && step->chunk == first[i].chunk &&
                step->microbatch == first[i].microbatch);
  }
  const pl_strategy strategy = {.pp = 2, .vpp = 1, .schedule = PL_SCHEDULE_LISTED, .listed = own};
  const pl_schedule schedule = pl_schedule_of(&strategy, 2, 0);
  assert_int_equal(pl_schedule_n_steps(&schedule), 5);
  assert_int_equal(pl_schedule_in_flight(&schedule), 2);
  assert_int_equal(pl_schedule_phases(&schedule, (pl_schedule_phase[PL_SCHEDULE_PHASES]){{0}}), 0);
  assert_true(pl_strategy_splits_backward(&strategy) && !pl_schedule_recurs(&strategy));
  pl_arena_release(&arena);
}

static void chunks_of_a_v(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_listed_schedule *own;
  pl_error error;
  if (parse("chunks v\nholds 2\n0: F0.0 F1.0 BW1.0 BW0.0\n1: F0.0 F1.0 BW1.0 BW0.0\n", &arena, &own, &error) != PL_OK)
    fail_msg("%s", error.message);
  const pl_strategy strategy = {.pp = 2, .vpp = 2, .schedule = PL_SCHEDULE_LISTED, .listed = own};
  assert_true(pl_strategy_is_v(&strategy) && !own->splits && own->most_held == 2);
  static const int32_t chunks[2][2] = {{0, 3}, {1, 2}};
  for (int32_t stage = 0; stage < 2; stage++)
    for (int32_t chunk = 0; chunk < 2; chunk++) {
      assert_int_equal(pl_strategy_chunk_at(&strategy, stage, chunk), chunks[stage][chunk]);
      assert_int_equal(pl_strategy_stage_of(&strategy, chunks[stage][chunk]), stage);
      assert_int_equal(pl_strategy_place_of(&strategy, chunks[stage][chunk]), chunk);
    }
  pl_arena_release(&arena);
}

static void what_is_wrong_is_said_where_it_is(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "s.txt:1:1: no pass is listed; write e.g. 0: F0.0 BW0.0"},
      {"F0.0\n", "s.txt:1:1: 'F0.0' begins no line; write the number of a stage"},
      {"0: F0.0\n  X: F0.0\n", "s.txt:2:3: 'X:' begins no line"},
      {"0 : F0.0\n", "s.txt:1:1: '0' begins no line"},
      {"0: F0.0 G0.0\n", "s.txt:1:9: 'G0.0' is no pass; write F, B, W or BW, the chunk"},
      {"0: F0.0 F0\n", "s.txt:1:9: 'F0' is no pass"},
      {"0: F0.0 F0.1x\n", "s.txt:1:9: 'F0.1x' is no pass"},
      {"0: F0.-1\n", "s.txt:1:4: 'F0.-1' is no pass"},
      {"0: F0.99999999999999999999\n", "s.txt:1:4: 'F0.99999999999999999999' is no pass"},
      {"0: F70000.0\n", "s.txt:1:4: 'F70000.0' is no pass"},
      {"0: F0.0 BW0.0\nchunks v\n", "s.txt:2:1: 'chunks' stands behind the first pass"},
      {"chunks w\n", "s.txt:1:8: 'w' cannot stand behind chunks; write `chunks loop` or `chunks v`"},
      {"chunks\n", "s.txt:1:7: '' cannot stand behind chunks"},
      {"holds 0\n", "s.txt:1:7: '0' cannot stand behind holds; write `holds N`, N from 1"},
      {"holds 3 4\n", "s.txt:1:9: '4' cannot stand behind holds"},
      {"0: F0.0 BW0.0\n999: F0.0\n", "s.txt:1:4: F0.0 of stage 0: the file lists only 3 passes"},
      {"0: F0.1000 BW0.0\n", "s.txt:1:4: F0.1000 of stage 0: the file lists only 2 passes"},
      {"chunks v\n0: F0.0 BW0.0\n", "s.txt:2:9: the stages have 1 chunks; `chunks v` means 2"},
      {"0: F0.0 F0.1 BW0.0\n", "s.txt:1:14: the file ends after 3 passes; 1 stages of 1 chunks and 2 microbatches have "
                               "at least 4"},
      {"0: F0.0 BW0.0\n1: F0.0 F0.0\n", "s.txt:2:9: F0.0 is there twice"},
      {"0: F0.0 BW0.0 W0.0\n", "s.txt:1:15: W0.0 is there twice, in whole or in part; B and W are the halves of BW"},
      {"0: F0.0 B0.0\n", "s.txt:1:9: stage 0 ends here without W0.0"},
      {"0: F0.0 F0.1 BW0.0 F0.2 BW0.1 B0.2\n", "s.txt:1:31: stage 0 ends here without W0.2"},
      {"0: BW0.0 F0.0\n", "s.txt:1:4: BW0.0 needs F0.0 of its stage, which is not before it"},
      {"0: F0.0 W0.0 B0.0\n", "s.txt:1:9: W0.0 needs B0.0 of its stage, which is not before it"},
      {"0: F0.0 BW0.0 F0.1 BW0.1\n1: F0.1 F0.0 BW0.0 BW0.1\n",
       "s.txt:1:9: deadlock: BW0.0 waits for ever for BW0.0 of stage 1"},
      {"chunks v\n0: F0.0 F1.0 BW1.0 BW0.0\n1: F1.0 F0.0 BW1.0 BW0.0\n",
       "s.txt:2:9: deadlock: F1.0 waits for ever for F1.0 of stage 1"},
      {"0: F0.0 F0.1 BW0.0 BW0.1\n1: F0.1 F0.0 BW0.0 BW0.1\n",
       "s.txt:2:4: F0.1 comes before F0.0, but stage 0 sends what they take in the other order"},
      {"0: F0.0 F0.1 BW0.1 BW0.0\n1: F0.0 F0.1 BW0.0 BW0.1\n", "s.txt:1:14: BW0.1 comes before BW0.0, but stage 1"},
      {"holds 1\n0: F0.0 F0.1 BW0.0 BW0.1\n", "s.txt:2:9: with F0.1 stage 0 holds more than the 1 passes of `holds`"},
      {"0: F0.0 \x01\n", "s.txt:1:9"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    const pl_listed_schedule *own;
    pl_error error;
    pl_code code = parse(cases[i].text, &arena, &own, &error);
    if (code != PL_BAD_INPUT || strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
      fail_msg("%s\n  gives: %d %s\n  wanted: %s", cases[i].text, (int)code, error.message, cases[i].message);
    pl_arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_is_read), cmocka_unit_test(chunks_of_a_v),
                                     cmocka_unit_test(what_is_wrong_is_said_where_it_is)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
