/* The flat strategy: its text form, its checks and placement. Recipes: strategy_assign_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/strategy_fixture.h"
#include "workloads/strategy/strategy.h"

/* ---- reading ---- */

static void every_key_is_read(void **state) {
  fixture *own = *state;
  pl_strategy strategy = parse(own, "pp=2,dp=3,tmp=4,mbs=5,assign=0:2:4:6:24,schedule=interleaved,vpp=2,sp=1,"
                                    "recompute=selective,zero=1,overlap=0,order=ptd");
  assert_int_equal(strategy.pp, 2);
  assert_int_equal(strategy.dp, 3);
  assert_int_equal(strategy.tmp, 4);
  assert_int_equal(strategy.mbs, 5);
  assert_int_equal(strategy.vpp, 2);
  assert_int_equal(strategy.schedule, PL_SCHEDULE_INTERLEAVED);
  assert_true(strategy.sp);
  assert_int_equal(strategy.recompute, PL_RECOMPUTE_SELECTIVE);
  assert_int_equal(strategy.zero, 1);
  assert_false(strategy.overlap);
  assert_string_equal(strategy.order, "ptd");
  assert_int_equal(strategy.recipe, PL_ASSIGN_GIVEN);
}

static void context_and_experts_are_read(void **state) {
  pl_strategy strategy = parse(*state, "pp=1,dp=2,tmp=1,mbs=1,cp=4,cp_comm=gather,ep=8,order=pcdt,assign=ends");
  assert_true(strategy.cp == 4 && strategy.cp_gather && strategy.ep == 8);
  assert_string_equal(strategy.order, "pcdt");
  assert_int_equal(strategy.recipe, PL_ASSIGN_ENDS);
  assert_int_equal(pl_strategy_replicas(&strategy), 8);
  assert_int_equal(pl_strategy_expert_replicas(&strategy), 1);
  strategy = parse(*state, "pp=1,dp=2,tmp=3,mbs=1");
  assert_true(strategy.cp == 1 && !strategy.cp_gather && strategy.ep == 1);
  assert_int_equal(pl_strategy_expert_replicas(&strategy), 6);
}

static void what_is_not_given_has_a_default(void **state) {
  pl_strategy strategy = parse(*state, "mbs=1,tmp=1,dp=4,pp=4"); /* in any order */
  assert_int_equal(strategy.vpp, 1);
  assert_int_equal(strategy.schedule, PL_SCHEDULE_1F1B);
  assert_false(strategy.sp);
  assert_true(strategy.overlap);
  assert_int_equal(strategy.recompute, PL_RECOMPUTE_NONE);
  assert_int_equal(strategy.zero, 0);
  assert_string_equal(strategy.order, "tdp");
  assert_int_equal(strategy.recipe, PL_ASSIGN_UNIFORM);
  assert_null(strategy.boundary);
  assert_int_equal(parse(*state, "pp=2,dp=1,tmp=1,mbs=1,vpp=2").schedule, PL_SCHEDULE_INTERLEAVED);
  assert_int_equal(parse(*state, "pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=gpipe").schedule, PL_SCHEDULE_GPIPE);
  assert_int_equal(parse(*state, "pp=2,dp=1,tmp=1,mbs=1,assign=balanced").recipe, PL_ASSIGN_BALANCED);
}

/* Each text with what its one message must contain: the offending key or value, and the way out where there is one. */
static const struct {
  const char *text, *says;
} bad_texts[] = {
    {"", "not key=value"},
    {"pp", "'pp' is not key=value"},
    {DEGREES ",", "not key=value"},
    {",," DEGREES, "not key=value"},
    {DEGREES ",stages=4", "unknown key 'stages'"},
    {DEGREES ",=4", "unknown key ''"},
    {DEGREES ",PP=4", "unknown key 'PP'"},
    {DEGREES ", sp=0", "unknown key ' sp'"},
    {"pp=4,dp=4,tmp=1", "mbs is missing"},
    {"pp=4,tmp=1,mbs=1,split=1:1", "dp is missing, which split= is about"},
    {"pp=4,mbs=1,placement=0-3", "dp is missing, which placement= is about"},
    {DEGREES ",pp=4", "pp is given twice"},
    {DEGREES ",assign=uniform,assign=uniform", "assign is given twice"},
    {"pp=four,dp=4,tmp=1,mbs=1", "four"},
    {"pp=4x,dp=4,tmp=1,mbs=1", "4x"},
    {"pp=4.0,dp=4,tmp=1,mbs=1", "4.0"},
    {"pp=,dp=4,tmp=1,mbs=1", "pp"},
    {"pp=0,dp=4,tmp=1,mbs=1", "0"},
    {"pp=4,dp=-4,tmp=1,mbs=1", "-4"},
    {"pp=4,dp=4,tmp=16777217,mbs=1", "16777217"},
    {"pp=4,dp=4,tmp=1,mbs=99999999999999999999", "99999999999999999999"},
    {"pp=4294967297,dp=4,tmp=1,mbs=1", "4294967297"}, /* 2^32 + 1 must not become 1 */
    {DEGREES ",vpp=0", "vpp"},
    {"pp=16777216,dp=1,tmp=1,mbs=1,vpp=256", "pp=16777216 * vpp=256 = 4294967296"}, /* 2^32 must not become 0 */
    {DEGREES ",sp=2", "sp"},
    {DEGREES ",sp=yes", "yes"},
    {DEGREES ",overlap=-1", "overlap"},
    {DEGREES ",zero=4", "zero"},
    {DEGREES ",zero=-1", "zero"},
    {DEGREES ",schedule=dualpip", "schedule=dualpip is unknown; choose one of gpipe, 1f1b, interleaved"},
    {DEGREES ",schedule=", "schedule="},
    {DEGREES ",recompute=some", "recompute=some is unknown; choose one of none, selective, full"},
    {DEGREES ",order=tdx", "order=tdx"},
    {DEGREES ",order=td", "order=td"},
    {DEGREES ",order=tdpp", "order=tdpp"},
    {DEGREES ",order=ttd", "order=ttd"},
    {DEGREES ",order=TDP", "order=TDP"},
    {DEGREES ",order=tcdc", "order=tcdc"},
    {DEGREES ",order=tcd", "order=tcd"},
    {DEGREES ",cp=0", "cp"},
    {DEGREES ",ep=-1", "ep"},
    {DEGREES ",cp=2,cp=2", "cp is given twice"},
    {DEGREES ",cp_comm=ring", "choose one of p2p, gather"},
    {DEGREES ",assign=", "boundaries"},
    {DEGREES ",assign=even", "boundaries"},
    {DEGREES ",assign=0:9:15:21", "4 boundaries"},
    {DEGREES ",assign=0:9:15:21:25:30", "6 boundaries"},
    {DEGREES ",assign=0:9:15:21:x", "x"},
    {DEGREES ",assign=0:9::21:30", "assign"},
    {DEGREES ",assign=:9:15:21:30", "assign"},
    {DEGREES ",assign=0:9:-1:21:30", "-1"},
    {DEGREES ",assign=0:9:1e1:21:30", "1e1"},
    {DEGREES ",assign=0:9:99999999999:21:30", "99999999999"},
    {DEGREES ",assign=1:9:15:21:30", "must start at 0, not 1"},
    {DEGREES ",assign=0:9:9:21:30", "9 comes after 9"},
    {DEGREES ",assign=0:15:9:21:30", "9 comes after 15"},
    {DEGREES ",assign=0:9:15:21:29", "ends at 29"},
    {DEGREES ",assign=0:9:15:21:31", "ends at 31"},
    {DEGREES ",idle=2", "idle"},
    {DEGREES ",placement=", "placement"},
    {DEGREES ",placement=0-14", "names 15 devices, but pp * dp * cp * tmp = 16 ranks"},
    {DEGREES ",placement=0-16", "names 17 devices"},
    {DEGREES ",placement=0-7:8", "names 9 devices"},
    {DEGREES ",placement=0-7:8-", "placement"},
    {DEGREES ",placement=0-7::9", "placement"},
    {DEGREES ",placement=-1:0-14", "-1"},
    {DEGREES ",placement=0-x", "x"},
    {DEGREES ",placement=0-7-9", "7-9"},
    {DEGREES ",placement=0-16777216", "16777216"},
    {DEGREES ",placement=0-15,placement=0-15", "placement is given twice"},
    {DEGREES ",split=", "split"},
    {DEGREES ",split=8:8:8", "split has 3 numbers of microbatches, but dp=4"},
    {DEGREES ",split=8x5", "split has 5 numbers"},
    {DEGREES ",split=8x3:0", "0"},
    {DEGREES ",split=8x3:-8", "-8"},
    {DEGREES ",split=8x:8x3", "split"},
    {DEGREES ",split=x4", "split"},
    {DEGREES ",split=8x2x2", "2x2"},
    {DEGREES ",split=8x99999999999", "99999999999"},
    {DEGREES ",split=8x4,split=8x4", "split is given twice"},
    {"pp=16777216,dp=16777216,tmp=16777216,mbs=1,placement=0", "more than 16777216 ranks"},
};

static void bad_text_gives_one_message(void **state) {
  fixture *own = *state;
  for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
    pl_strategy strategy;
    pl_error error = PL_ERROR_INIT;
    pl_code code = pl_strategy_parse(bad_texts[i].text, &own->model, &own->arena, &strategy, &error);
    if (code != PL_BAD_INPUT || strncmp(error.message, "strategy: ", 10) != 0 ||
        strstr(error.message, bad_texts[i].says) == NULL || strchr(error.message, '\n') != NULL)
      fail_msg("'%s' gave %d, '%s' instead of '%s'", bad_texts[i].text, code, error.message, bad_texts[i].says);
  }
}

static void a_text_of_any_length_is_refused_cleanly(void **state) {
  fixture *own = *state;
  size_t n = 1 << 20;
  char *text = pl_arena_take(&own->arena, n + 1, 1);
  assert_non_null(text);
  memset(text, ':', n);
  memcpy(text, DEGREES ",assign=", strlen(DEGREES ",assign="));
  text[n] = '\0';
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error), PL_BAD_INPUT);
}

static void boundaries_count_layers_or_blocks(void **state) {
  /* AMP's way of counting: 30 blocks, embedding and an identity in front of the layers, four behind. */
  pl_strategy blocks = parse(*state, DEGREES ",assign=0:9:15:21:30");
  const int32_t in_blocks[] = {0, 9, 15, 21, 30};
  assert_memory_equal(blocks.boundary, in_blocks, sizeof in_blocks);
  assert_false(blocks.counts_layers);
  /* The same stages in layers: 9 blocks are embedding, identity and 7 layers. */
  pl_strategy layers = parse(*state, DEGREES ",assign=0:7:13:19:24");
  assert_memory_equal(layers.boundary, in_blocks, sizeof in_blocks);
  assert_true(layers.counts_layers);
}

static void formatting_gives_back_what_was_read(void **state) {
  fixture *own = *state;
  static const char *const texts[] = {
      "pp=4,dp=4,tmp=1,mbs=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp,assign=0:9:15:21:30",
      "pp=4,dp=4,tmp=1,mbs=1,schedule=gpipe,vpp=1,sp=0,recompute=full,zero=1,overlap=0,order=dpt,assign=0:7:13:19:24",
      ("pp=2,dp=1,tmp=8,mbs=4,schedule=interleaved,vpp=2,sp=1,recompute=selective,zero=0,overlap=1,order=ptd,"
       "assign=0:1:2:3:24"),
      "pp=1,dp=16,tmp=1,mbs=2,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=3,overlap=1,order=tdp,assign=uniform",
      "pp=1,dp=16,tmp=1,mbs=2,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=3,overlap=1,order=tdp,assign=balanced",
      ("pp=1,dp=4,tmp=1,cp=4,cp_comm=gather,ep=8,mbs=2,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=1,overlap=1,"
       "order=tcdp,assign=ends"),
      ("pp=2,dp=3,tmp=1,mbs=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp,"
       "placement=4-5:1:0:8-9,assign=uniform"),
      ("pp=2,dp=6,tmp=1,mbs=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp,"
       "split=7x2:5:6:4x2,assign=uniform"),
      ("pp=2,dp=2,tmp=1,mbs=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp,idle=1,"
       "split=20:12,placement=1:0:2-3,assign=uniform"),
      ("pp=2,dp=3,tmp=1,mbs=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp,idle=1,"
       "assign=uniform"),
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    pl_strategy strategy = parse(own, texts[i]);
    char text[256], cut[40];
    int length = pl_strategy_format(&strategy, &own->model, text, sizeof text);
    assert_string_equal(text, texts[i]);
    assert_int_equal(length, (int)strlen(texts[i]));
    /* As snprintf: the length that was needed, a terminated prefix when there is less room. */
    assert_int_equal(pl_strategy_format(&strategy, &own->model, cut, sizeof cut), length);
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_memory_equal(cut, texts[i], sizeof cut - 1);
    assert_int_equal(pl_strategy_format(&strategy, &own->model, NULL, 0), length);
  }
}

/* ---- what is left out ---- */

static void degrees_are_assumed(void **state) {
  fixture *own = *state;
  static const struct {
    const char *text, *assumed;
    uint32_t n_devices;
    int32_t pp, dp, tmp;
  } cases[] = {{"mbs=1", "pp=1, tmp=1, dp=16", 16, 1, 16, 1},
               {"dp=4,mbs=2", "pp=1, tmp=1", 16, 1, 4, 1}, /* and the check says what the other 12 are for */
               {"pp=4,tmp=2,mbs=1", "dp=2", 16, 4, 2, 2},
               {"tmp=2,cp=2,mbs=1", "pp=1, dp=4", 16, 1, 4, 2},
               {"pp=5,mbs=1,idle=1", "tmp=1, dp=3", 16, 5, 3, 1},
               {"pp=32,mbs=1", "tmp=1, dp=1", 16, 32, 1, 1},                                 /* too many, likewise */
               {"pp=16777216,tmp=16777216,cp=65536,mbs=1", "dp=1", 16, 1 << 24, 1, 1 << 24}, /* 2^64 is not 0 */
               {"pp=4,dp=4,tmp=1,mbs=1", "", 16, 4, 4, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[PL_ASSUMED_TEXT_BYTES];
    pl_error error = PL_ERROR_INIT;
    pl_strategy strategy = parse(own, cases[i].text);
    assert_int_equal(pl_strategy_spread(&strategy, cases[i].n_devices, &error), PL_OK);
    assert_true(strategy.pp == cases[i].pp && strategy.dp == cases[i].dp && strategy.tmp == cases[i].tmp);
    assert_string_equal(pl_strategy_assumed(&strategy, text), cases[i].assumed);
  }
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy = parse(own, "pp=5,mbs=1");
  assert_int_equal(pl_strategy_spread(&strategy, 16, &error), PL_BAD_INPUT);
  assert_string_equal(error.message,
                      "strategy: dp is left out, and pp * cp * tmp = 5 does not divide 16 devices; with idle=1 1 of "
                      "them are left over");
}

/* ---- checks ---- */

typedef struct bad_check {
  const char *text, *says;
  uint32_t n_devices;
  int64_t gbs, seq;
} bad_check;

static pl_code check(fixture *own, const bad_check *bad, pl_error *error) {
  pl_strategy strategy = parse(own, bad->text);
  pl_job job = own->job;
  job.gbs = bad->gbs;
  job.seq = bad->seq;
  *error = PL_ERROR_INIT;
  return pl_strategy_check(&strategy, &own->model, &job, bad->n_devices, error);
}

static void each_limit_is_checked(void **state) {
  static const bad_check cases[] = {
      {DEGREES, "= 16, but the platform has 15 devices", 15, 32, 1024},
      {"pp=65536,dp=65536,tmp=1,mbs=1", "4294967296", 16, 32, 1024}, /* the product is not cut to 32 bits */
      {"pp=16777216,dp=16777216,tmp=16777216,mbs=1", "= 4722366482869645213696, but the platform has 16", 16, 32, 1024},
      {"pp=4966948,dp=4339028,tmp=5135573,mbs=1", "has 16 devices", 16, 32, 1024}, /* 6 * 2^64 + 16: nor to 64 */
      {DEGREES, "does not divide the global batch of 30", 16, 30, 1024},
      {"pp=4,dp=4,tmp=1,mbs=16", "dp=4 * mbs=16 = 64", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=2,schedule=1f1b", "vpp=2 needs schedule=interleaved", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=1,schedule=interleaved", "vpp >= 2 and pp >= 2", 16, 32, 1024},
      {"pp=1,dp=16,tmp=1,mbs=1,vpp=2", "vpp >= 2 and pp >= 2", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=2", "= 6) that pp=4 divides", 16, 24, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=7", "28 stages for a model of 24 layers", 16, 32, 1024},
      {"pp=32,dp=1,tmp=1,mbs=1", "32 stages for a model of 24 layers", 32, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,sp=1", "needs tmp > 1", 16, 32, 1024},
      {"pp=1,dp=4,tmp=4,mbs=1,sp=1", "tmp=4 does not divide 1022", 16, 32, 1022},
      {"pp=4,dp=4,tmp=1,mbs=1,zero=2,schedule=zb-h1", "zero=2", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,zero=3,schedule=zb-h2", "zero=3", 16, 32, 1024},
      {DEGREES, "sequence length 1025 exceeds the model's 1024 learned positions", 16, 32, 1025},
      {"pp=4,dp=2,tmp=1,mbs=1", "product is 16, or leave devices idle (idle=1, or placement=)", 16, 32, 1024},
      {"pp=8,dp=4,tmp=1,mbs=1,idle=1", "= 32 ranks, but the platform has only 16 devices", 16, 32, 1024},
      {"pp=2,dp=2,tmp=1,mbs=1,placement=13-16", "rank 3 device 16, but the platform's devices are 0 to 15", 16, 32,
       1024},
      {"pp=2,dp=2,tmp=1,mbs=1,placement=3:5-6:5", "device 5 to ranks 1 and 3", 16, 32, 1024},
      {DEGREES ",split=8:8:8:7", "gives out 31 microbatches of mbs=1 sequences, which are not the global batch of 32",
       16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=2,split=8x4", "gives out 32 microbatches of mbs=2", 16, 32, 1024},
      {"pp=1,dp=2,tmp=1,mbs=1,zero=2,split=20:12", "cannot be combined with an uneven split", 2, 32, 1024},
      {"pp=4,dp=2,tmp=1,mbs=1,vpp=2,split=18:14", "split gives replica 0 18", 8, 32, 1024},
      {"pp=1,dp=1,tmp=3,mbs=1", "tmp", 3, 32, 1024},   /* 16 heads */
      {"pp=1,dp=1,tmp=32,mbs=1", "tmp", 32, 32, 1024}, /* more than heads */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_error error;
    pl_code code = check(*state, &cases[i], &error);
    if (code != PL_BAD_INPUT || strstr(error.message, cases[i].says) == NULL)
      fail_msg("%s: %d, '%s' instead of '%s'", cases[i].text, code, error.message, cases[i].says);
  }
}

/* A slip in --gbs must not end in the kernel killing processes for memory. */
static void a_run_too_large_to_hold_is_refused(void **state) {
  pl_error error;
  const bad_check case_ = {"pp=4,dp=4,tmp=1,mbs=1", "", 16, INT64_C(1) << 30, 1024};
  assert_int_equal(check(*state, &case_, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "268435456 microbatches on pp * vpp = 4 stages are too many"));
  const bad_check largest = {"pp=4,dp=4,tmp=1,mbs=1", "", 16, INT64_C(1) << 22, 1024};
  assert_int_equal(check(*state, &largest, &error), PL_OK);
}

static void what_is_allowed_passes(void **state) {
  static const bad_check cases[] = {
      {DEGREES ",assign=0:9:15:21:30", "", 16, 32, 1024},
      {"pp=1,dp=16,tmp=1,mbs=2,zero=3", "", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,zero=1", "", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,zero=3", "", 16, 32, 1024},
      {"pp=1,dp=1,tmp=16,mbs=32,sp=1,recompute=full", "", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=6", "", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,vpp=2,assign=0:1:2:3:4:5:6:7:24", "", 16, 32, 1024},
      {"pp=24,dp=1,tmp=1,mbs=1,schedule=gpipe", "", 24, 32, 8},
      {"pp=4,dp=2,tmp=1,mbs=1,idle=1", "", 16, 32, 1024},
      {DEGREES ",idle=1", "", 16, 32, 1024},
      {DEGREES ",split=9:7:15:1", "", 16, 32, 1024},
      {DEGREES ",split=9:7:15:2", "", 16, 33, 1024}, /* dp does not divide the batch */
      {"pp=1,dp=2,tmp=1,mbs=1,zero=3,split=16x2", "", 2, 32, 1024},
      {"pp=4,dp=2,tmp=1,mbs=1,vpp=2,split=20:12", "", 8, 32, 1024},
      {DEGREES ",placement=15-0", "", 16, 32, 1024},
      {"pp=2,dp=2,tmp=1,mbs=1,placement=15:0:7-8", "", 16, 32, 1024},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_error error;
    if (check(*state, &cases[i], &error) != PL_OK) fail_msg("%s: %s", cases[i].text, error.message);
  }
}

static void boundaries_set_by_hand_are_checked(void **state) {
  fixture *own = *state;
  pl_strategy strategy = parse(own, DEGREES);
  const int32_t boundary[] = {0, 9, 9, 21, 30};
  strategy.boundary = boundary;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_check(&strategy, &own->model, &own->job, 16, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "boundary 9 before 9"));
}

/* ---- placement ---- */

/* Rank i of the order is on the i-th device named. */
static void a_placement_maps_ranks(void **state) {
  pl_strategy strategy = parse(*state, "pp=2,dp=1,tmp=3,mbs=1,order=ptd,placement=9-7:2:4-5");
  static const uint32_t devices[] = {9, 8, 7, 2, 4, 5};
  assert_int_equal(pl_strategy_n_ranks(&strategy), 6);
  for (int32_t p = 0; p < 2; p++)
    for (int32_t t = 0; t < 3; t++) {
      assert_int_equal(pl_strategy_rank(&strategy, p, 0, t), 2 * t + p);
      assert_int_equal(pl_strategy_device(&strategy, p, 0, t), devices[2 * t + p]);
    }
  strategy = parse(*state, "pp=2,dp=1,tmp=3,mbs=1,order=ptd,idle=1");
  assert_int_equal(pl_strategy_device(&strategy, 1, 0, 2), 5);
}

static void order_says_which_degree_is_innermost(void **state) {
  static const char *const orders[] = {"tdp", "tpd", "dtp", "dpt", "ptd", "pdt"};
  for (int i = 0; i < 6; i++) {
    char text[64];
    snprintf(text, sizeof text, "pp=2,dp=3,tmp=4,mbs=1,order=%s", orders[i]);
    pl_strategy strategy = parse(*state, text);
    bool seen[24] = {false};
    for (int32_t p = 0; p < 2; p++)
      for (int32_t d = 0; d < 3; d++)
        for (int32_t t = 0; t < 4; t++) {
          uint32_t device = pl_strategy_device(&strategy, p, d, t);
          assert_in_range(device, 0, 23);
          assert_false(seen[device]); /* one rank per device */
          seen[device] = true;
        }
    /* The device next door differs in the innermost coordinate; the strides are the products of the degrees inside. */
    uint32_t stride = 1;
    for (int k = 0; k < 3; k++) {
      char letter = orders[i][k];
      assert_int_equal(pl_strategy_device(&strategy, letter == 'p', letter == 'd', letter == 't'), stride);
      stride *= letter == 'p' ? 2 : letter == 'd' ? 3 : 4;
    }
  }
}

/* Without c the context ranks come right behind the tensor ranks; the replica counts them inside the data ranks. */
static void context_ranks_have_a_place(void **state) {
  static const char *const orders[] = {"tdp", "tcdp", "tdcp", "pdct", "ctdp"};
  const int32_t strides[][4] = {{1, 2, 4, 20}, {1, 2, 4, 20}, {1, 10, 2, 20}, {30, 15, 3, 1}, {2, 1, 4, 20}};
  for (int i = 0; i < 5; i++) {
    char text[64];
    snprintf(text, sizeof text, "pp=3,dp=5,tmp=2,cp=2,mbs=1,order=%s", orders[i]);
    pl_strategy strategy = parse(*state, text);
    for (int32_t p = 0; p < 3; p++)
      for (int32_t r = 0; r < 10; r++)
        for (int32_t t = 0; t < 2; t++)
          assert_int_equal(pl_strategy_device(&strategy, p, r, t),
                           t * strides[i][0] + r % 2 * strides[i][1] + r / 2 * strides[i][2] + p * strides[i][3]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_key_is_read),
      TEST(context_and_experts_are_read),
      TEST(context_ranks_have_a_place),
      TEST(what_is_not_given_has_a_default),
      TEST(bad_text_gives_one_message),
      TEST(a_text_of_any_length_is_refused_cleanly),
      TEST(boundaries_count_layers_or_blocks),
      TEST(formatting_gives_back_what_was_read),
      TEST(degrees_are_assumed),
      TEST(each_limit_is_checked),
      TEST(a_run_too_large_to_hold_is_refused),
      TEST(what_is_allowed_passes),
      TEST(boundaries_set_by_hand_are_checked),
      TEST(a_placement_maps_ranks),
      TEST(order_says_which_degree_is_innermost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
