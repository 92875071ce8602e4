/* The candidate space: counted by hand on small cases, and against a filter over the whole product on random ones. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/space/space.h"
#include "tests/support/random.h"

static const pl_model small_model = {
    .n_layers = 4, .width.hidden = 8, .width.ffn_hidden = 16, .attention.n_heads = 4, .attention.n_kv_heads = 4};

static pl_space_choices plain_choices(void) {
  pl_space_choices choices;
  pl_space_choices_init(&choices);
  choices.schedules = 1u << PL_SCHEDULE_1F1B;
  choices.recomputes = 1u << PL_RECOMPUTE_NONE;
  choices.sp = choices.overlap = 1;
  choices.recipes = 1u << PL_ASSIGN_UNIFORM;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("0", "--zero", 0, 3, &choices.zero, &error), PL_OK);
  return choices;
}

static pl_space space_of(const pl_model *model, const pl_job *job, uint32_t n_devices, const pl_space_choices *choices,
                         const pl_space_rules *rules, pl_arena *arena) {
  pl_space space;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_space_take(model, job, n_devices, choices, rules, arena, &space, &error), PL_OK);
  return space;
}

/* 4 devices, gbs 4: (pp, tmp, dp) is one of six; with mbs 1 to 4 the batch divides for 1 + 2 + 3 + 2 + 3 + 3 of 24. */
static void counts_degrees_and_microbatches(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_job job = {.gbs = 4, .seq = 8};
  pl_space_choices choices = plain_choices();
  pl_space space = space_of(&small_model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 14);
  assert_int_equal(space.dropped[PL_DROP_MBS], 10);
  char text[128];
  pl_space_format_reason(&space, PL_DROP_MBS, text, sizeof text);
  assert_string_equal(text, "mbs does not divide gbs 4 / dp");
  pl_arena_release(&arena);
}

/* 4 devices of a model with 4 experts, mbs 1: pp, tmp, cp and dp are the ordered factorings; ep divides both the
 * experts and dp cp tmp. Not asked for, cp is 1. */
static void context_only_when_asked_for_and_experts_where_they_are(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_job job = {.gbs = 4, .seq = 8, .flash = true};
  pl_space_choices choices = plain_choices();
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("1", "--mbs", 1, 8, &choices.mbs, &error), PL_OK);
  assert_int_equal(pl_int_set_parse("1", "--tmp", 1, 8, &choices.tmp, &error), PL_OK);
  pl_model model = small_model;
  model.attention.causal = true;
  model.moe.n_experts = 4;
  model.moe.expert_layer_step = 1;
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, 1 + 2 + 3); /* as below, cp 1 */
  model.moe.n_experts = 0;
  uint64_t before = space_of(&model, &job, 4, &choices, NULL, &arena).digest;
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, 3); /* pp dp */
  assert_int_equal(pl_int_set_parse("1-8", "--cp", 1, 8, &choices.cp, &error), PL_OK);
  pl_space space = space_of(&model, &job, 4, &choices, NULL, &arena);
  /* (pp, cp, dp): 6 of them; all chunks of 2 cp divide 8 */
  assert_int_equal(space.n_candidates, 6);
  assert_true(space.digest != before);
  for (uint32_t i = 0; i < space.n_candidates; i++) {
    const pl_candidate *c = &space.candidates[i];
    assert_int_equal(c->pp * c->cp * c->dp * c->tmp, 4);
    assert_int_equal(c->ep, 1);
  }
  model.moe.n_experts = 4;
  assert_int_equal(pl_int_set_parse("1-8", "--ep", 1, 8, &choices.ep, &error), PL_OK);
  space = space_of(&model, &job, 4, &choices, NULL, &arena);
  /* pp 4: ep 1; pp 2 (two of them): ep 1, 2; pp 1 (three): ep 1, 2, 4 */
  assert_int_equal(space.n_candidates, 1 + 2 * 2 + 3 * 3);
  assert_int_equal(space.dropped[PL_DROP_EXPERTS], 3); /* ep 3 */
  char text[160];
  pl_space_format_candidate(&space, space.n_candidates - 1, text, sizeof text);
  assert_non_null(strstr(text, "pp=4,dp=1,tmp=1,mbs=1"));
  pl_space_format_candidate(&space, 2, text, sizeof text);
  assert_non_null(strstr(text, "pp=1,dp=4,tmp=1,ep=4,mbs=1"));
  pl_arena_release(&arena);
}

/* One stage of 4 devices, 4 experts, sp on: ep is 1, 2 or 4, and with the experts cut over tmp what divides 4 / tmp. An
 * exchange there is may lie beside the other pass. */
static void cuts_experts_and_hides_their_tokens_when_asked_for(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_job job = {.gbs = 4, .seq = 8};
  pl_space_choices choices = plain_choices();
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("1", "--mbs", 1, 8, &choices.mbs, &error), PL_OK);
  assert_int_equal(pl_int_set_parse("1", "--pp", 1, 8, &choices.pp, &error), PL_OK);
  choices.sp = 2;
  pl_model model = small_model;
  model.moe.n_experts = 4;
  model.moe.expert_layer_step = 1;
  pl_space plain = space_of(&model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(plain.n_candidates, 3 * 3); /* tmp 1, 2, 4 by ep 1, 2, 4 */
  choices.etps = 3;
  pl_space cut = space_of(&model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(cut.n_candidates, 3 * 3 + 2 + 1); /* tmp 2: ep 1, 2; tmp 4: ep 1 */
  assert_true(cut.digest != plain.digest);
  choices.ep_overlaps = 3;
  pl_space hidden = space_of(&model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(hidden.n_candidates, 3 * 5 + 3 + 1); /* twice where ep is above 1 */
  uint32_t n_both = 0;
  for (uint32_t i = 0; i < hidden.n_candidates; i++) {
    char text[160];
    pl_space_format_candidate(&hidden, i, text, sizeof text);
    n_both += strstr(text, "tmp=2,ep=2,etp=2,ep_overlap=1,mbs=1") != NULL;
    assert_true(hidden.candidates[i].ep > 1 || strstr(text, "ep_overlap") == NULL);
    assert_true(hidden.candidates[i].tmp > 1 || strstr(text, "etp") == NULL);
  }
  assert_int_equal(n_both, 1);
  choices.ep_overlaps = 15; /* gradients of weights are put off of whole experts; there are no shared ones ... */
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, hidden.n_candidates + 3 * 2);
  choices.ep_overlaps = 8; /* ... and what cannot have what was asked for is there without */
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, cut.n_candidates);
  model.moe.shared_ffn = 8;
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, cut.n_candidates);
  choices.ep_overlaps = 9;
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, cut.n_candidates + 3 * 2);
  choices.ep_overlaps = 3;
  model.moe.shared_ffn = 0;
  choices.recomputes = 1u << PL_RECOMPUTE_FULL; /* is refused with it */
  assert_int_equal(space_of(&model, &job, 4, &choices, NULL, &arena).n_candidates, cut.n_candidates);
  pl_arena_release(&arena);
}

/* Each dimension on its own multiplies what it may: 4 devices, gbs 4, mbs 1; degrees as above, one microbatch size
 * each. */
static void counts_each_dimension(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  const pl_job job = {.gbs = 4, .seq = 8};
  pl_space_choices plain = plain_choices(), choices;
  assert_int_equal(pl_int_set_parse("1", "--mbs", 1, 8, &plain.mbs, &error), PL_OK);
  assert_int_equal(space_of(&small_model, &job, 4, &plain, NULL, &arena).n_candidates, 6);

  choices = plain;
  choices.recomputes = 7; /* all of them */
  assert_int_equal(space_of(&small_model, &job, 4, &choices, NULL, &arena).n_candidates, 18);

  choices = plain;
  choices.sp = 3; /* doubles (1,2,2), (1,4,1) and (2,2,1) */
  assert_int_equal(space_of(&small_model, &job, 4, &choices, NULL, &arena).n_candidates, 9);
  choices.sp = 2; /* on: those with tmp = 1 stay */
  assert_int_equal(space_of(&small_model, &job, 4, &choices, NULL, &arena).n_candidates, 6);

  choices = plain;
  choices.overlap = 3; /* doubles dp > 1: (1,1,4), (1,2,2), (2,1,2) */
  assert_int_equal(space_of(&small_model, &job, 4, &choices, NULL, &arena).n_candidates, 9);

  choices = plain;
  choices.zero.n_ranges = 0; /* pp = 1, dp > 1: four each; pp = 2, dp = 2: 0 and 1 */
  pl_space space = space_of(&small_model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 4 + 4 + 1 + 2 + 1 + 1);
  assert_int_equal(space.dropped[PL_DROP_ZERO], 2);
  assert_int_equal(pl_int_set_parse("0-3", "--zero", 0, 3, &choices.zero, &error),
                   PL_OK); /* named: those two as well */
  space = space_of(&small_model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 4 + 4 + 1 + 4 + 1 + 1);
  assert_int_equal(space.dropped[PL_DROP_ZERO], 0);
  choices.schedules = 1u << PL_SCHEDULE_ZB_H1; /* of pp > 1: splits backward passes, which shards of gradients do not */
  space = space_of(&small_model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 4 + 4 + 1 + 2 + 1 + 1);
  assert_int_equal(space.dropped[PL_DROP_ZERO_SPLIT], 2);

  choices = plain;
  choices.schedules = 7; /* pp > 1: gpipe, 1f1b, and interleaved where pp * vpp divides 4 and pp the microbatches */
  space = space_of(&small_model, &job, 4, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 3 + 3 * 2 + 2); /* interleaved: (2,1,2) and (2,2,1) with vpp 2 */
  assert_int_equal(space.dropped[PL_DROP_CHUNKS], 2 * 2 + 3);
  assert_int_equal(space.dropped[PL_DROP_ROUNDS], 0);

  choices = plain;
  choices.n_orders =
      2; /* differ only where two degrees exceed 1 and tdp, tpd put them apart: none of the plain six but (2,1,2) */
  memcpy(choices.orders[1], "tpd", 4);
  assert_int_equal(space_of(&small_model, &job, 4, &choices, NULL, &arena).n_candidates, 7);
  pl_arena_release(&arena);
}

/* 6 devices, 6 layers, 6 heads: factors that are no powers of two. tmp 1, 2, 3, 6; each times pp. */
static void offers_factors_that_are_no_powers_of_two(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_model model = {
      .n_layers = 6, .width.hidden = 12, .width.ffn_hidden = 48, .attention.n_heads = 6, .attention.n_kv_heads = 6};
  const pl_job job = {.gbs = 12, .seq = 8};
  pl_space_choices choices = plain_choices();
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("1", "--mbs", 1, 8, &choices.mbs, &error), PL_OK);
  pl_space space = space_of(&model, &job, 6, &choices, NULL, &arena);
  assert_int_equal(space.n_candidates, 9); /* ordered factorisations of 6 into three factors */
  bool found = false;
  for (uint32_t i = 0; i < space.n_candidates; i++)
    found = found || (space.candidates[i].pp == 3 && space.candidates[i].tmp == 2 && space.candidates[i].dp == 1);
  assert_true(found);
  pl_arena_release(&arena);
}

static void counts_what_the_model_refuses(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_model model = {
      .n_layers = 2, .width.hidden = 12, .width.ffn_hidden = 10, .attention.n_heads = 6, .attention.n_kv_heads = 4};
  const pl_job job = {.gbs = 12, .seq = 9};
  pl_space_choices choices = plain_choices();
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("1", "--mbs", 1, 8, &choices.mbs, &error), PL_OK);
  /* 12 devices; (pp, tmp): 18 pairs. tmp 4, 12 do not divide 6 heads: pp of 12/4 = 3 (1, 3) and of 12/12 (1): 3 pairs.
   * tmp 3, 6 against 4 kv heads: pp in {1, 2, 4} and {1, 2}: 5 pairs. tmp 2 divides ffn 10. The remaining 10 pairs are
   * tmp 1 (pp 1, 2, 3, 4, 6, 12) and tmp 2 (pp 1, 2, 3, 6); pp above 2 layers: 4 + 2. */
  pl_space space = space_of(&model, &job, 12, &choices, NULL, &arena);
  assert_int_equal(space.dropped[PL_DROP_HEADS], 3);
  assert_int_equal(space.dropped[PL_DROP_KV_HEADS], 5);
  assert_int_equal(space.dropped[PL_DROP_STAGES], 6);
  assert_int_equal(space.n_candidates, 4);
  choices.sp = 2; /* tmp 2 does not divide a sequence of 9 */
  space = space_of(&model, &job, 12, &choices, NULL, &arena);
  assert_int_equal(space.dropped[PL_DROP_SEQUENCE], 2);
  assert_int_equal(space.n_candidates, 2);
  pl_arena_release(&arena);
}

typedef struct asked {
  uint32_t n;
  int32_t differs_at_pp;
} asked;

static pl_code ask(void *context, const pl_strategy *strategy, bool *differs, pl_error *error) {
  (void)error;
  asked *count = context;
  count->n++;
  assert_int_equal(strategy->recipe, PL_ASSIGN_BALANCED);
  *differs = strategy->pp == count->differs_at_pp;
  return PL_OK;
}

static void drops_a_balanced_twin(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_job job = {.gbs = 4, .seq = 8};
  pl_space_choices choices = plain_choices();
  choices.recipes = 1u << PL_ASSIGN_UNIFORM | 1u << PL_ASSIGN_BALANCED;
  choices.overlap = 3;
  asked count = {.differs_at_pp = 4};
  const pl_space_rules rules = {.balanced_differs = ask, .context = &count};
  pl_space space = space_of(&small_model, &job, 4, &choices, &rules, &arena);
  /* Without: 14 + 1 + 2 + 2 (overlap, dp > 1) = 19; twins of pp = 4 (3 candidates) stay, those of pp = 2 (2 * 2 + 3)
   * go. */
  assert_int_equal(space.n_candidates, 19 + 3);
  assert_int_equal(space.dropped[PL_DROP_BALANCED], 7);
  assert_int_equal(count.n, 8);               /* once per (pp, ..., recompute): not again for overlap */
  choices.recipes = 1u << PL_ASSIGN_BALANCED; /* alone: no twin to be equal to */
  space = space_of(&small_model, &job, 4, &choices, &rules, &arena);
  assert_int_equal(space.n_candidates, 19);
  assert_int_equal(space.dropped[PL_DROP_BALANCED], 0);
  pl_arena_release(&arena);
}

/* Independent of space.c: is this tuple valid? */
static bool tuple_is_valid(const pl_model *model, const pl_job *job, int n, const pl_candidate *c) {
  if (c->pp * c->dp * c->tmp != n || c->pp > model->n_layers) return false;
  if (model->attention.n_heads % c->tmp ||
      (model->attention.n_kv_heads % c->tmp && c->tmp % model->attention.n_kv_heads) ||
      model->width.ffn_hidden % c->tmp)
    return false;
  if (job->gbs % (c->dp * c->mbs)) return false;
  int64_t n_microbatches = job->gbs / c->dp / c->mbs;
  bool chunked = c->schedule == PL_SCHEDULE_INTERLEAVED || c->schedule == PL_SCHEDULE_BREADTH_FIRST;
  bool is_v = c->schedule == PL_SCHEDULE_ZB_V || c->schedule == PL_SCHEDULE_DUALPIPE_V;
  if (chunked ? c->vpp < 2 : c->vpp != (is_v ? 2 : 1)) return false;
  if (c->vpp > 1 && model->n_layers % (c->pp * c->vpp)) return false;
  if (c->schedule == PL_SCHEDULE_INTERLEAVED && n_microbatches % c->pp) return false;
  if (c->schedule == PL_SCHEDULE_DUALPIPE_V && n_microbatches < 2 * c->pp) return false;
  if (c->pp == 1 && (c->schedule != PL_SCHEDULE_1F1B || c->recipe != PL_ASSIGN_UNIFORM)) return false;
  if (c->sp && (c->tmp == 1 || job->seq % c->tmp)) return false;
  if (c->dp == 1 && (c->zero || c->overlap)) return false;
  return c->zero < 2 || c->pp == 1;
}

static uint32_t count_by_filter(const pl_model *model, const pl_job *job, int n, int n_schedules) {
  uint32_t count = 0;
  pl_candidate c = {0};
  for (c.pp = 1; c.pp <= n; c.pp++)
    for (c.dp = 1; c.pp * c.dp <= n; c.dp++) {
      c.tmp = n / (c.pp * c.dp);
      for (c.mbs = 1; c.mbs <= PL_SPACE_DEFAULT_MBS; c.mbs++)
        for (c.vpp = 1; c.vpp <= PL_SPACE_DEFAULT_VPP; c.vpp++)
          for (int bits = 0; bits < n_schedules * 2 * 3 * 4 * 2 * 2; bits++) {
            c.sp = (uint8_t)(bits % 2);
            c.recompute = (uint8_t)(bits / 2 % 3);
            c.zero = (uint8_t)(bits / 6 % 4);
            c.overlap = (uint8_t)(bits / 24 % 2);
            c.recipe = (uint8_t)(bits / 48 % 2 + PL_ASSIGN_UNIFORM);
            c.schedule = (uint8_t)(bits / 96);
            count += tuple_is_valid(model, job, n, &c);
          }
    }
  return count;
}

static int compare_candidates(const pl_candidate *a, const pl_candidate *b) {
  const int left[] = {a->pp, a->tmp,       a->dp,   a->mbs,     a->schedule, a->vpp,
                      a->sp, a->recompute, a->zero, a->overlap, a->order,    a->recipe};
  const int right[] = {b->pp, b->tmp,       b->dp,   b->mbs,     b->schedule, b->vpp,
                       b->sp, b->recompute, b->zero, b->overlap, b->order,    b->recipe};
  for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

static void equals_the_filtered_product(void **state) {
  (void)state;
  uint64_t random = test_seed(20260101);
  for (int trial = 0; trial < 40; trial++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    const int layers[] = {2, 6, 12, 24, 30}, heads[] = {4, 6, 12, 16}, batches[] = {8, 12, 30, 48},
              devices[] = {1, 6, 8, 12, 16, 24};
    pl_model model = {.n_layers = layers[random_below(&random, 5)]};
    model.attention.n_heads = heads[random_below(&random, 4)];
    model.attention.n_kv_heads = random_below(&random, 2) ? model.attention.n_heads : 2;
    model.width.ffn_hidden = random_below(&random, 2) ? 48 : 40;
    pl_job job = {.gbs = batches[random_below(&random, 4)]};
    job.seq = random_below(&random, 2) ? 16 : 24;
    int n = devices[random_below(&random, 6)];
    pl_space_choices choices;
    pl_space_choices_init(&choices);
    bool all = trial % 2 == 1; /* else the three that there are by default */
    if (all) choices.schedules = (1u << PL_SCHEDULE_DUALPIPE) - 1;
    pl_space space = space_of(&model, &job, (uint32_t)n, &choices, NULL, &arena);
    assert_int_equal(space.n_candidates, count_by_filter(&model, &job, n, all ? PL_SCHEDULE_DUALPIPE : 3));
    for (uint32_t i = 0; i < space.n_candidates; i++) {
      assert_true(tuple_is_valid(&model, &job, n, &space.candidates[i]));
      if (i > 0) assert_int_equal(compare_candidates(&space.candidates[i - 1], &space.candidates[i]), -1);
    }
    pl_arena_release(&arena);
  }
}

static void gives_back_the_strategy_of_an_index(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_job job = {.gbs = 8, .seq = 8};
  pl_space_choices choices;
  pl_space_choices_init(&choices);
  pl_space space = space_of(&small_model, &job, 8, &choices, NULL, &arena);
  for (uint32_t i = 0; i < space.n_candidates; i++) {
    pl_strategy strategy;
    pl_space_strategy(&space, i, &strategy);
    const pl_candidate *c = &space.candidates[i];
    assert_int_equal(strategy.pp * strategy.dp * strategy.tmp, 8);
    assert_true(strategy.mbs == c->mbs && strategy.vpp == c->vpp && strategy.sp == (c->sp != 0));
    assert_true((uint8_t)strategy.recompute == c->recompute && strategy.zero == c->zero);
    assert_true((uint8_t)strategy.schedule == c->schedule && (uint8_t)strategy.recipe == c->recipe);
    assert_string_equal(strategy.order, "tdp");
    assert_null(strategy.boundary);
  }
  char text[256];
  pl_space_format_candidate(&space, 0, text, sizeof text);
  assert_string_equal(
      text, "pp=1,dp=8,tmp=1,mbs=1,assign=uniform,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=0,order=tdp");
  uint64_t digest = space.digest;
  assert_true(space_of(&small_model, &job, 8, &choices, NULL, &arena).digest == digest);
  choices.overlap = 1;
  assert_true(space_of(&small_model, &job, 8, &choices, NULL, &arena).digest != digest);
  pl_arena_release(&arena);
}

static void parses_sets_of_integers(void **state) {
  (void)state;
  pl_int_set set;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_int_set_parse("1,4-8,16", "--pp", 1, 100, &set, &error), PL_OK);
  assert_true(pl_int_set_has(&set, 1) && pl_int_set_has(&set, 5) && pl_int_set_has(&set, 16));
  assert_false(pl_int_set_has(&set, 2) || pl_int_set_has(&set, 9));
  assert_int_equal(pl_int_set_highest(&set), 16);
  static const char *const bad[] = {"",  "a",   "1,",    ",1",  "1-",          "-1",   "8-4", "1 ,2",
                                    "0", "101", "1-101", "1.5", "99999999999", "1--2", "0x4", "+1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    error = PL_ERROR_INIT;
    assert_int_equal(pl_int_set_parse(bad[i], "--pp", 1, 100, &set, &error), PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "--pp"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_degrees_and_microbatches),
      cmocka_unit_test(cuts_experts_and_hides_their_tokens_when_asked_for),
      cmocka_unit_test(counts_each_dimension),
      cmocka_unit_test(context_only_when_asked_for_and_experts_where_they_are),
      cmocka_unit_test(offers_factors_that_are_no_powers_of_two),
      cmocka_unit_test(counts_what_the_model_refuses),
      cmocka_unit_test(drops_a_balanced_twin),
      cmocka_unit_test(equals_the_filtered_product),
      cmocka_unit_test(gives_back_the_strategy_of_an_index),
      cmocka_unit_test(parses_sets_of_integers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
