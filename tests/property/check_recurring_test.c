/* Lists that recur are checked with fewer microbatches (workloads/language/ir_check_recurring.c): of random lists of
 * pipelines the verdict and the message are those of the check of all of them. Each list does each of its passes once a
 * period, in an order and with delays of its own, so that many wait for each other, some only far from the beginning.
 *
 * What that check looks at has a bound that rests on an argument. Here it is asked of the lists themselves: those that
 * wait for each other do so with as many microbatches as lists have outside of their phases and one period more, less
 * than the bound; with a third of that some no longer do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_recurrence.h"
#include "workloads/passes/program_of.h"

static const char tiny[] = "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":8,\"n_head\":2,\"n_positions\":4,"
                           "\"vocab_size\":12}";

static void make(const char *text, int32_t n_microbatches, pl_arena *arena, pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  pl_strategy strategy;
  pl_job job = {.gbs = n_microbatches, .seq = 4, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_code code = pl_model_parse("tiny.json", tiny, sizeof tiny - 1, arena, &model, &error);
  if (code == PL_OK) code = pl_strategy_parse(text, &model, arena, &strategy, &error);
  pl_strategy_adopt(&strategy, &job);
  if (code == PL_OK) code = pl_strategy_assign(&strategy, &model, &job, NULL, arena, &error);
  if (code == PL_OK) code = pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, module, &error);
  if (code != PL_OK) fail_msg("%s: %s", text, error.message);
}

/* A pass of a list: so many periods behind the first. */
typedef struct pass {
  pl_ir_step step;
  int32_t delay;
} pass;

enum { MOST_PASSES = 8 };

/* Forward passes of later chunks rather later, and backward passes behind them, in reverse; not always. */
static int32_t delay_of(uint64_t *random, const pl_ir_class *class, int32_t chunk, bool backward, int32_t pp,
                        int32_t far) {
  int32_t chunks = class->n_chunks, stage = class->chunks[0].chunk % pp;
  int32_t along = backward ? (2 * chunks - chunk) * pp - stage - 1 : chunk * pp + stage;
  int32_t usual = chunks > 1 ? along : backward ? pp - stage - 1 : 0; /* of one chunk as 1F1B has it */
  int32_t made = far * usual;
  if (random_below(random, 4) == 0) made += (int32_t)random_below(random, 4 * (uint32_t)far) - far;
  return made < 0 ? 0 : made;
}

static void exchange(pass *a, pass *b) {
  const pass kept = *a;
  *a = *b;
  *b = kept;
}

static void draw_list(uint64_t *random, int32_t n_microbatches, int32_t pp, int32_t far, pl_ir_class *class) {
  pass passes[MOST_PASSES];
  int32_t n = 0, latest = 0;
  for (int32_t c = 0; c < class->n_chunks; c++)
    for (int kind = PL_IR_STEP_F; kind <= PL_IR_STEP_B; kind++) {
      pass *made = &passes[n++];
      *made = (pass){.step = {.kind = (uint8_t)kind, .chunk = class->chunks[c].chunk},
                     .delay = delay_of(random, class, c, kind == PL_IR_STEP_B, pp, far)};
      if (made->delay > latest) latest = made->delay;
    }
  if (random_below(random, 2) == 0)
    exchange(&passes[random_below(random, (uint32_t)n)], &passes[random_below(random, (uint32_t)n)]);
  class->n_steps = 0;
  for (int32_t period = 0; period < n_microbatches + latest; period++)
    for (int32_t p = 0; p < n; p++) {
      int32_t microbatch = period - passes[p].delay;
      if (microbatch < 0 || microbatch >= n_microbatches) continue;
      class->steps[class->n_steps] = passes[p].step;
      class->steps[class->n_steps++].microbatch = microbatch;
    }
}

typedef struct tally {
  int right, stuck, other, spared, freed;
} tally;

/* The lists that come of this random number. */
static void draw(uint64_t *random, int32_t n_microbatches, int32_t pp, pl_ir_module *module) {
  int32_t far = (int32_t)random_between(random, 1, 4); /* from each other are what wait for each other */
  module->n_microbatches = n_microbatches;
  for (int32_t c = 0; c < module->n_classes; c++)
    draw_list(random, n_microbatches, pp, far, &module->classes[c]);
}

static bool is_stuck(const pl_error *error) {
  return strstr(error->message, "deadlock") != NULL;
}

static bool are_stuck(uint64_t random, int32_t n_microbatches, int32_t pp, pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  draw(&random, n_microbatches, pp, module);
  return pl_ir_check(module, &error) != PL_OK && is_stuck(&error);
}

static void check_lists(uint64_t *random, const char *text, int32_t pp, tally *seen) {
  pl_arena arena;
  pl_ir_module module;
  pl_ir_recurrence recurrence;
  pl_error whole = PL_ERROR_INIT, fewer = PL_ERROR_INIT;
  int32_t m = 8 * (int32_t)random_between(random, 8, 40);
  pl_arena_init(&arena, 0);
  make(text, m, &arena, &module);
  const uint64_t drawn = *random;
  draw(random, m, pp, &module);
  assert_true(pl_ir_recurrence_find(&module, 0, &arena, &recurrence));
  pl_code code = pl_ir_check(&module, &whole);
  if (pl_ir_check_recurring(&module, &recurrence, false, &fewer) != code || strcmp(whole.message, fewer.message) != 0)
    fail_msg("%s, %d microbatches: \"%s\", and by what recurs \"%s\"", text, m, whole.message, fewer.message);
  seen->right += code == PL_OK;
  seen->stuck += is_stuck(&whole);
  seen->other += code != PL_OK && !is_stuck(&whole);
  seen->spared += recurrence.n_phases == 1;
  if (is_stuck(&whole) && recurrence.n_phases == 1) {
    int32_t few = recurrence.filling + recurrence.round;
    if (few < m && !are_stuck(drawn, few, pp, &module))
      fail_msg("%s: %d microbatches wait for each other, %d do not", text, m, few);
    seen->freed += !are_stuck(drawn, few / 3 > 0 ? few / 3 : 1, pp, &module);
  }
  pl_arena_release(&arena);
}

static void verdicts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int32_t pp;
  } pipelines[] = {{"pp=2,dp=1,tmp=1,mbs=1", 2},
                   {"pp=4,dp=1,tmp=1,mbs=1", 4},
                   {"pp=8,dp=1,tmp=1,mbs=1", 8},
                   {"pp=2,dp=1,tmp=1,mbs=1,schedule=interleaved,vpp=2", 2},
                   {"pp=4,dp=1,tmp=1,mbs=1,schedule=interleaved,vpp=2", 4}};
  uint64_t random = test_seed(20261127);
  tally seen = {0};
  for (uint64_t i = 0; i < test_cases(600); i++)
    check_lists(&random, pipelines[i % 5].text, pipelines[i % 5].pp, &seen);
  printf(
      "%d right, %d that wait for each other, %d of them not if they are short, %d wrong in another way; %d recur in "
      "one phase\n",
      seen.right, seen.stuck, seen.freed, seen.other, seen.spared);
  if (test_number("PACELINE_CASES", 0) == 0) assert_true(seen.right > 20 && seen.stuck > 20 && seen.freed > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
