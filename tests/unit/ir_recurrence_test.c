/* What recurs in the step lists of programs: of every schedule the lists without some microbatches are those of the
 * program that has so many fewer, and lists that only look as if they recurred are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/tiny_models.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_recurrence.h"
#include "workloads/language/ir_text.h"
#include "workloads/memory/program_memory.h"
#include "workloads/passes/program_of.h"

static const char gpt2[] = TINY_GPT2;

static void make(const char *text, int32_t n_microbatches, pl_arena *arena, pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  pl_strategy strategy;
  pl_job job = {.seq = 16, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_code code = pl_model_parse("gpt2", gpt2, strlen(gpt2), arena, &model, &error);
  if (code == PL_OK) code = pl_strategy_parse(text, &model, arena, &strategy, &error);
  job.gbs = (int64_t)n_microbatches * strategy.dp * strategy.mbs;
  pl_strategy_adopt(&strategy, &job);
  if (code == PL_OK) code = pl_strategy_assign(&strategy, &model, &job, NULL, arena, &error);
  if (code == PL_OK) code = pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, module, &error);
  if (code == PL_OK) code = pl_ir_check(module, &error);
  if (code != PL_OK) fail_msg("%s: %s", text, error.message);
}

static bool same_lists(const pl_ir_module *a, const pl_ir_module *b) {
  if (a->n_microbatches != b->n_microbatches || a->n_classes != b->n_classes) return false;
  for (int32_t c = 0; c < a->n_classes; c++) {
    const pl_ir_class *one = &a->classes[c], *other = &b->classes[c];
    if (one->n_steps != other->n_steps) return false;
    for (int32_t s = 0; s < one->n_steps; s++)
      if (one->steps[s].kind != other->steps[s].kind || one->steps[s].chunk != other->steps[s].chunk ||
          one->steps[s].microbatch != other->steps[s].microbatch)
        return false;
  }
  return true;
}

/* Phases of the shorter lists are where those of the program of fewer microbatches are. */
static bool same_phases(const pl_ir_played *played, const pl_ir_recurrence *fewer) {
  if (played->n_phases != fewer->n_phases) return false;
  for (int32_t c = 0; c < played->module.n_classes; c++)
    for (int p = 0; p < played->n_phases; p++)
      if (played->period[p] != fewer->period[p] || played->phases[c][p].from != fewer->phases[c][p].from ||
          played->phases[c][p].to != fewer->phases[c][p].to)
        return false;
  return true;
}

/* What is held at most is the same whether periods are counted once or one by one. */
static void same_memory(const char *text, const pl_ir_module *whole, const pl_ir_recurrence *recurrence,
                        pl_arena *arena) {
  const pl_device_profile profile = {.memory_bytes = 1e9};
  const pl_device devices[64] = {{.profile = 0}};
  const pl_cluster cluster = {.devices = devices, .n_devices = 64, .profiles = &profile, .n_profiles = 1};
  pl_error error = PL_ERROR_INIT;
  pl_class_memory *once, *all;
  assert_int_equal(pl_program_memory_take(&cluster, whole, NULL, recurrence, arena, &once, &error), PL_OK);
  assert_int_equal(pl_program_memory_take(&cluster, whole, NULL, NULL, arena, &all, &error), PL_OK);
  for (int32_t c = 0; c < whole->n_classes; c++)
    if (once[c].peak != all[c].peak || once[c].values != all[c].values || once[c].host != all[c].host ||
        all[c].values == 0)
      fail_msg("%s: %s holds %g bytes, not %g", text, whole->classes[c].name, once[c].peak, all[c].peak);
}

static void check_schedule(const char *text, int32_t n_phases, int32_t round) {
  enum { WHOLE = 48 };
  pl_arena arena;
  pl_ir_module whole, fewer;
  pl_ir_recurrence recurrence, of_fewer;
  pl_arena_init(&arena, 0);
  make(text, WHOLE, &arena, &whole);
  assert_true(pl_ir_recurrence_find(&whole, PL_IR_CARRIED_PERIODS, &arena, &recurrence));
  if (recurrence.n_phases != n_phases || recurrence.round != round || recurrence.fewest != WHOLE)
    fail_msg("%s: %d phases, %d microbatches a period", text, recurrence.n_phases, recurrence.round);
  same_memory(text, &whole, &recurrence, &arena);
  for (int32_t leapt = round; leapt <= WHOLE - recurrence.filling - round; leapt += round) {
    pl_ir_played played;
    bool is_possible = false;
    assert_true(pl_ir_recurrence_shorten(&whole, &recurrence, leapt, &arena, &played, &is_possible));
    assert_true(is_possible && played.n_more == (uint64_t)(leapt / round));
    make(text, WHOLE - leapt, &arena, &fewer);
    assert_true(pl_ir_recurrence_find(&fewer, PL_IR_CARRIED_PERIODS, &arena, &of_fewer));
    if (!same_lists(&played.module, &fewer)) fail_msg("%s without %d microbatches: other lists", text, leapt);
    if (of_fewer.n_phases > 0 && !same_phases(&played, &of_fewer)) fail_msg("%s: other phases", text);
  }
  pl_ir_played played;
  bool is_possible = true;
  assert_true(pl_ir_recurrence_shorten(&whole, &recurrence, WHOLE - round, &arena, &played, &is_possible));
  assert_false(is_possible);
  pl_arena_release(&arena);
}

static void schedules(void **state) {
  (void)state;
  check_schedule("pp=1,dp=2,tmp=1,mbs=1", 1, 1);
  check_schedule("pp=4,dp=2,tmp=1,mbs=1", 1, 1);
  check_schedule("pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe", 2, 1);
  check_schedule("pp=2,dp=1,tmp=1,mbs=1,schedule=fifo", 2, 1);
  check_schedule("pp=2,dp=1,tmp=1,mbs=1,schedule=interleaved,vpp=2", 1, 2);
  check_schedule("pp=4,dp=1,tmp=1,mbs=1,schedule=zb-h1", 1, 1);
  check_schedule("pp=4,dp=1,tmp=1,mbs=1,schedule=zb-h2", 1, 1);
  check_schedule("pp=2,dp=1,tmp=1,mbs=1,schedule=zb-v,vpp=2", 1, 1);
  check_schedule("pp=2,dp=1,tmp=1,mbs=1,schedule=dualpipe-v,vpp=2", 1, 1);
}

/* ---- lists by hand ---- */

/* Two classes of one chunk each, without messages; their steps are given. */
static void read_lists(const char *first, const char *second, const char *fewer, pl_arena *arena,
                       pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  char text[8192];
  int n = snprintf(text, sizeof text,
                   "plir 1 distributed byhand\nmesh pp=2, dp=2\nmicrobatches 24\n%sfunc @f() {\n  %%c = constant() "
                   "{value=0.0} : fp32[]\n}\nfunc @b() {\n  %%c = constant() {value=0.0} : fp32[]\n}\n"
                   "class one at pp=0 {\n  chunk 0 forward @f backward @b\n  steps %s\n}\n"
                   "class two at pp=1 {\n  chunk 1 forward @f backward @b\n  steps %s\n}\n",
                   fewer, first, second);
  assert_true(n < (int)sizeof text);
  pl_code code = pl_ir_parse("byhand", text, (size_t)n, arena, module, &error);
  if (code == PL_OK) code = pl_ir_check(module, &error);
  if (code != PL_OK) fail_msg("%s", error.message);
}

/* So many forwards ahead, then in turn; `odd`: in one of the turns the backward comes first. */
static const char *in_turn(char *text, size_t size, int32_t chunk, int32_t ahead, int32_t odd) {
  int at = 0;
  for (int32_t f = 0, b = 0; b < 24;) {
    bool forward = f < 24 && f - b <= ahead;
    if (f - 1 == odd && forward && b < f - 1) { /* takes its turn later */
      at += snprintf(text + at, size - (size_t)at, "B%d.%d ", chunk, b++);
      odd = -1;
    }
    at += forward ? snprintf(text + at, size - (size_t)at, "F%d.%d ", chunk, f++)
                  : snprintf(text + at, size - (size_t)at, "B%d.%d ", chunk, b++);
  }
  return text;
}

static int phases_of(const char *first, const char *second, const char *fewer, pl_ir_recurrence *recurrence,
                     pl_arena *arena) {
  pl_ir_module module;
  read_lists(first, second, fewer, arena, &module);
  assert_true(pl_ir_recurrence_find(&module, PL_IR_CARRIED_PERIODS, arena, recurrence));
  return recurrence->n_phases;
}

static void lists_by_hand(void **state) {
  (void)state;
  char one[2048], two[2048];
  pl_ir_recurrence found;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  in_turn(two, sizeof two, 1, 0, -1);
  assert_int_equal(phases_of(in_turn(one, sizeof one, 0, 2, -1), two, "", &found, &arena), 1);
  assert_int_equal(found.period[0], 2);
  assert_int_equal(found.phases[0][0].from, 2 + 2 * PL_IR_CARRIED_PERIODS);
  /* Every device runs the first 18: the phase ends with them. */
  uint32_t to = found.phases[0][0].to;
  assert_int_equal(phases_of(one, two, "microbatches 18 at dp=1\n", &found, &arena), 1);
  assert_int_equal(found.fewest, 18);
  assert_true(found.phases[0][0].to + 2 * 6 <= to + 2);
  /* An exception in the middle; classes of which one runs by halves; one that goes backwards where the other does not.
   */
  assert_int_equal(phases_of(in_turn(one, sizeof one, 0, 2, 12), two, "", &found, &arena), 0);
  assert_int_equal(phases_of(in_turn(one, sizeof one, 0, 23, -1), two, "", &found, &arena), 0);
  assert_int_equal(phases_of(one, in_turn(two, sizeof two, 1, 23, -1), "", &found, &arena), 2);
  int at = 0;
  for (int32_t f = 0; f < 24; f++)
    at += snprintf(one + at, sizeof one - (size_t)at, "F0.%d ", f);
  for (int32_t b = 24; b-- > 0;)
    at += snprintf(one + at, sizeof one - (size_t)at, "B0.%d ", b);
  assert_int_equal(phases_of(one, two, "", &found, &arena), 0);
  pl_arena_release(&arena);
}

/* One period of each phase stands for those that are left out. */
static void times(void **state) {
  (void)state;
  pl_arena arena;
  pl_ir_module module;
  pl_ir_recurrence recurrence;
  pl_ir_played played;
  bool is_possible = false;
  pl_arena_init(&arena, 0);
  make("pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe", 32, &arena, &module);
  assert_true(pl_ir_recurrence_find(&module, PL_IR_CARRIED_PERIODS, &arena, &recurrence));
  assert_true(pl_ir_recurrence_shorten(&module, &recurrence, 20, &arena, &played, &is_possible) && is_possible);
  for (int32_t c = 0; c < played.module.n_classes; c++) {
    uint64_t sum = 0;
    for (int32_t s = 0; s < played.module.classes[c].n_steps; s++)
      sum += pl_ir_played_times(&played, c, s);
    assert_int_equal(sum, module.classes[c].n_steps);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schedules), cmocka_unit_test(lists_by_hand),
                                     cmocka_unit_test(times)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
