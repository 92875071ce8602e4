/* The flat strategy: its text form, its checks, placement, and the recipes for the layer assignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/op_cost.h"
#include "workloads/strategy.h"

typedef struct fixture {
  pl_arena arena;
  pl_model model; /* GPT-2 345M: 24 layers, 30 blocks, 16 heads, 1024 learned positions */
  pl_job job;
} fixture;

static int set_up(void **state) {
  static fixture own;
  own = (fixture){.job = {.gbs = 32, .seq = 1024, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 25e6}};
  pl_arena_init(&own.arena, 0);
  pl_error error = PL_ERROR_INIT;
  *state = &own;
  return pl_model_load("workloads/models/gpt2-345m.json", &own.arena, &own.model, &error) == PL_OK ? 0 : -1;
}

static int tear_down(void **state) {
  pl_arena_release(&((fixture *)*state)->arena);
  return 0;
}

static pl_strategy parse(fixture *own, const char *text) {
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return strategy;
}

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

#define DEGREES "pp=4,dp=4,tmp=1,mbs=1"

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
    {"dp=4,tmp=1,mbs=1", "pp is missing"},
    {"pp=4,tmp=1,mbs=1", "dp is missing"},
    {"pp=4,dp=4,mbs=1", "tmp is missing"},
    {"pp=4,dp=4,tmp=1", "mbs is missing"},
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
    {DEGREES ",schedule=dualpipe", "schedule=dualpipe is unknown; choose one of gpipe, 1f1b, interleaved"},
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
      {"pp=4,dp=4,tmp=1,mbs=1,zero=2", "zero=2", 16, 32, 1024},
      {"pp=4,dp=4,tmp=1,mbs=1,zero=3", "zero=3", 16, 32, 1024},
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

/* ---- recipes ---- */

static pl_device_profile plain_profile(double launch_s) {
  pl_device_profile profile = {.name = "plain",
                               .memory_bytes = 80e9,
                               .bandwidth_Bps = 1e12,
                               .compute_efficiency = 0.5,
                               .attention_efficiency = 0.5,
                               .bandwidth_efficiency = 0.8,
                               .launch_overhead_s = launch_s};
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    profile.peak_flops[dtype] = 100e12;
  return profile;
}

/* Every device is of that profile. */
static pl_cluster plain_cluster(const pl_device_profile *profile) {
  static const pl_device devices[1024] = {{.profile = 0}};
  return (pl_cluster){.n_devices = 1024, .devices = devices, .n_profiles = 1, .profiles = profile};
}

/* Embedding and head as a layer each: 126 layers make 64 chunks of two, or 128 of one. */
static void ends_count_as_layers(void **state) {
  fixture *own = *state;
  const pl_device_profile profile = plain_profile(0);
  const pl_cluster cluster = plain_cluster(&profile);
  const pl_job job = {.gbs = 1024, .seq = 128, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_model model = own->model;
  model.n_layers = 126;
  for (int32_t n_chunks = 1; n_chunks <= 128; n_chunks++) {
    pl_strategy strategy = {.pp = n_chunks, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_ENDS};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_OK);
    assert_true(strategy.boundary[0] == 0 && strategy.boundary[n_chunks] == 132);
    for (int32_t c = 0; c < n_chunks && n_chunks > 1; c++) {
      /* blocks 0 and 1 are one unit, and so are the last four */
      int32_t units = strategy.boundary[c + 1] - strategy.boundary[c] - (c == 0) - 3 * (c == n_chunks - 1);
      assert_in_range(units, 128 / n_chunks, (128 + n_chunks - 1) / n_chunks);
    }
  }
  pl_strategy strategy = {.pp = 129, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_ENDS};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "embedding and head"));
}

/* What nanotron makes of the models of its benchmarks (models/base.py, build_model, run on these costs): layers per
 * stage, and the blocks behind them. 1B: the head weighs exactly four layers, and a stage that has exactly its share
 * takes one block more. */
static void filled_cuts_as_nanotron_does(void **state) {
  fixture *own = *state;
  static const struct {
    int64_t layers, hidden, ffn, pp;
    int32_t boundary[33];
  } rows[] = {{16, 2048, 8192, 2, {0, 13, 22}},
              {16, 2048, 8192, 4, {0, 8, 13, 18, 22}},
              {16, 2048, 8192, 8, {0, 5, 8, 10, 13, 15, 18, 21, 22}},
              {28, 3072, 8192, 4, {0, 10, 18, 26, 34}},
              {28, 3072, 8192, 16, {0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 33, 34}},
              {32, 4096, 14336, 8, {0, 7, 11, 15, 20, 24, 28, 32, 38}},
              {32, 4096, 14336, 16, {0, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 30, 32, 37, 38}}};
  const pl_device_profile profile = plain_profile(0);
  const pl_cluster cluster = plain_cluster(&profile);
  const pl_job job = {.gbs = 1024, .seq = 128, .dtype = PL_DTYPE_BF16, .flash = true};
  pl_model model = own->model;
  model.gated_mlp = true;
  model.vocab = 131072;
  model.n_heads = model.n_kv_heads = 32;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    model.n_layers = (int32_t)rows[i].layers;
    model.hidden = rows[i].hidden;
    model.head_size = rows[i].hidden / 32;
    model.ffn_hidden = rows[i].ffn;
    pl_strategy strategy = {
        .pp = (int32_t)rows[i].pp, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_FILLED};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_OK);
    for (int64_t c = 0; c <= rows[i].pp; c++)
      if (strategy.boundary[c] != rows[i].boundary[c])
        fail_msg("row %zu, boundary %d: %d, not %d", i, (int)c, strategy.boundary[c], rows[i].boundary[c]);
  }
  /* 32 layers on 32 stages: the first takes two; cast and loss have a stage each there, head and loss here. */
  pl_strategy strategy = {.pp = 32, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_FILLED};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_OK);
  assert_true(strategy.boundary[1] == 4 && strategy.boundary[30] == 36 && strategy.boundary[31] == 37);
  /* 16 layers on 16 stages: nothing is left for the last one, and nanotron does not start. */
  model.n_layers = 16;
  model.hidden = 2048;
  model.head_size = 64;
  model.ffn_hidden = 8192;
  strategy = (pl_strategy){.pp = 16, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_FILLED};
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "leaves the last of 16 stages empty"));
  strategy.pp = 1000;
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, &cluster, &own->arena, &error), PL_BAD_INPUT);
}

static void uniform_spreads_what_is_left_over(void **state) {
  fixture *own = *state;
  for (int32_t n_layers = 1; n_layers <= 24; n_layers++)
    for (int32_t n_chunks = 1; n_chunks <= n_layers; n_chunks++) {
      pl_model model = own->model;
      model.n_layers = n_layers;
      pl_strategy strategy = {.pp = n_chunks, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_UNIFORM};
      pl_device_profile profile = plain_profile(0);
      const pl_cluster cluster = plain_cluster(&profile);
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(pl_strategy_assign(&strategy, &model, &own->job, &cluster, &own->arena, &error), PL_OK);
      int32_t least = n_layers, most = 0, last = 0;
      for (int32_t c = 0; c < n_chunks; c++) {
        int32_t blocks = strategy.boundary[c + 1] - strategy.boundary[c];
        last = blocks - (c == 0 ? PL_MODEL_BLOCKS_BEFORE_LAYERS : 0) -
               (c == n_chunks - 1 ? PL_MODEL_BLOCKS_AFTER_LAYERS : 0);
        least = last < least ? last : least;
        most = last > most ? last : most;
      }
      assert_int_equal(strategy.boundary[0], 0);
      assert_int_equal(strategy.boundary[n_chunks], pl_model_n_blocks(&model));
      assert_true(most - least <= 1 && least >= 1);
      assert_int_equal(last, n_layers / n_chunks); /* the last, which carries the head, has none of the surplus */
    }
}

static double block_time_s(fixture *own, pl_block_kind kind, const pl_strategy *strategy,
                           const pl_device_profile *profile) {
  const pl_block_shard shard = pl_strategy_shard(strategy, &own->job);
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_block_program_take(&own->model, kind, &shard, &own->arena, &program, &error), PL_OK);
  double time_s = 0;
  for (uint32_t i = 0; i < program.forward.n_ops; i++)
    if (program.forward.ops[i].kind != PL_OP_COLLECTIVE) time_s += pl_op_cost(profile, &program.forward.ops[i]).time_s;
  for (uint32_t i = 0; i < program.backward.n_ops; i++)
    if (program.backward.ops[i].kind != PL_OP_COLLECTIVE)
      time_s += pl_op_cost(profile, &program.backward.ops[i]).time_s;
  return time_s;
}

typedef struct stage_costs {
  double layer_s, before_s, after_s;
  int32_t n_layers;
} stage_costs;

static double stage_time_s(const stage_costs *costs, int32_t first, int32_t end) {
  return (end - first) * costs->layer_s + (first == 0 ? costs->before_s : 0) +
         (end == costs->n_layers ? costs->after_s : 0);
}

/* Smallest largest stage over every way of cutting layers first.. into n_chunks runs of at least one layer. */
static double best_cut(const stage_costs *costs, int32_t first, int32_t n_chunks) {
  if (n_chunks == 1) return stage_time_s(costs, first, costs->n_layers);
  double best = INFINITY;
  for (int32_t end = first + 1; end <= costs->n_layers - (n_chunks - 1); end++)
    best = fmin(best, fmax(stage_time_s(costs, first, end), best_cut(costs, end, n_chunks - 1)));
  return best;
}

static void balanced_makes_the_largest_stage_minimal(void **state) {
  fixture *own = *state;
  uint64_t random = test_seed(7);
  int n_better = 0;
  for (int i = 0; i < 120; i++) {
    pl_model model = own->model;
    model.n_layers = (int32_t)random_between(&random, 1, 11);
    model.vocab = (int64_t)random_between(&random, 1, 300) * 1000; /* heads from nothing to many layers' worth */
    own->model.vocab = model.vocab;
    int32_t n_chunks = (int32_t)random_between(&random, 1, model.n_layers < 5 ? (uint32_t)model.n_layers : 5);
    pl_device_profile profile = plain_profile(random_below(&random, 2) ? 0 : 5e-6);
    const pl_cluster cluster = plain_cluster(&profile);
    pl_strategy strategy = {.pp = n_chunks, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_BALANCED};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_strategy_assign(&strategy, &model, &own->job, &cluster, &own->arena, &error), PL_OK);
    const stage_costs costs = {.layer_s = block_time_s(own, PL_BLOCK_LAYER, &strategy, &profile),
                               .before_s = block_time_s(own, PL_BLOCK_EMBEDDING, &strategy, &profile),
                               .after_s = block_time_s(own, PL_BLOCK_FINAL_NORM, &strategy, &profile) +
                                          block_time_s(own, PL_BLOCK_HEAD, &strategy, &profile) +
                                          block_time_s(own, PL_BLOCK_LOSS, &strategy, &profile),
                               .n_layers = model.n_layers};
    double largest = 0, uniform = 0;
    for (int32_t c = 0; c < n_chunks; c++) {
      int32_t first = c == 0 ? 0 : strategy.boundary[c] - PL_MODEL_BLOCKS_BEFORE_LAYERS;
      int32_t end = c == n_chunks - 1 ? model.n_layers : strategy.boundary[c + 1] - PL_MODEL_BLOCKS_BEFORE_LAYERS;
      assert_true(end > first);
      largest = fmax(largest, stage_time_s(&costs, first, end));
      uniform = fmax(uniform, stage_time_s(&costs, (c * model.n_layers + n_chunks - 1) / n_chunks,
                                           ((c + 1) * model.n_layers + n_chunks - 1) / n_chunks));
    }
    double best = best_cut(&costs, 0, n_chunks);
    if (!(largest <= best * (1 + 1e-12))) /* sums in another order */
      fail_msg("case %d: %d layers in %d stages: largest %.17g, best %.17g", i, model.n_layers, n_chunks, largest,
               best);
    n_better += largest < uniform * (1 - 1e-9);
  }
  assert_true(n_better > 20); /* the cases are not those where uniform is as good */
}

/* ---- unlike devices ---- */

typedef struct unlike {
  pl_strategy strategy;
  pl_cluster cluster;
  int32_t most; /* microbatches of any replica */
  stage_costs costs[2];
} unlike;

/* As slow as the slowest rank of the stage, each with its replica's microbatches. */
static double unlike_time_s(const unlike *own, int32_t stage, int32_t first, int32_t end) {
  double time_s = 0;
  for (int32_t r = 0; r < own->strategy.dp; r++)
    for (int32_t t = 0; t < own->strategy.tmp; t++) {
      uint32_t profile = own->cluster.devices[pl_strategy_device(&own->strategy, stage, r, t)].profile;
      double share = own->strategy.split == NULL ? 1 : (double)own->strategy.split[r] / own->most;
      time_s = fmax(time_s, share * stage_time_s(&own->costs[profile], first, end));
    }
  return time_s;
}

static double best_unlike_cut(const unlike *own, int32_t stage, int32_t first) {
  int32_t n_layers = own->costs[0].n_layers, left = own->strategy.pp - stage - 1;
  if (left == 0) return unlike_time_s(own, stage, first, n_layers);
  double best = INFINITY;
  for (int32_t end = first + 1; end <= n_layers - left; end++)
    best = fmin(best, fmax(unlike_time_s(own, stage, first, end), best_unlike_cut(own, stage + 1, end)));
  return best;
}

static void make_unlike(fixture *own, uint64_t *random, const pl_model *model, pl_device_profile *profiles,
                        pl_device *devices, unlike *made) {
  for (int i = 0; i < 16; i++)
    devices[i] = (pl_device){.profile = random_below(random, 2)};
  made->cluster = (pl_cluster){.n_devices = 16, .devices = devices, .n_profiles = 2, .profiles = profiles};
  pl_strategy *strategy = &made->strategy;
  *strategy = (pl_strategy){.mbs = 1, .vpp = 1, .order = "tdp", .recipe = PL_ASSIGN_BALANCED, .idle = true};
  strategy->pp = (int32_t)random_between(random, 1, model->n_layers < 5 ? (uint32_t)model->n_layers : 5);
  strategy->dp = (int32_t)random_between(random, 1, 3);
  strategy->tmp = strategy->pp * strategy->dp <= 8 ? 2 : 1;
  uint32_t *placement = PL_TAKE(&own->arena, uint32_t, 16), shift = random_below(random, 16);
  for (uint32_t i = 0; i < 16; i++)
    placement[i] = (5 * i + shift) % 16;
  strategy->placement = placement;
  int32_t *split = PL_TAKE(&own->arena, int32_t, 3), sum = 0;
  made->most = 0;
  for (int32_t r = 0; r < strategy->dp; r++) {
    split[r] = (int32_t)random_between(random, 1, 9);
    sum += split[r];
    made->most = split[r] > made->most ? split[r] : made->most;
  }
  if (random_below(random, 2)) strategy->split = split;
  own->job.gbs = strategy->split != NULL ? sum : 8 * strategy->dp;
  for (int p = 0; p < 2; p++)
    made->costs[p] = (stage_costs){.layer_s = block_time_s(own, PL_BLOCK_LAYER, strategy, &profiles[p]),
                                   .before_s = block_time_s(own, PL_BLOCK_EMBEDDING, strategy, &profiles[p]),
                                   .after_s = block_time_s(own, PL_BLOCK_FINAL_NORM, strategy, &profiles[p]) +
                                              block_time_s(own, PL_BLOCK_HEAD, strategy, &profiles[p]) +
                                              block_time_s(own, PL_BLOCK_LOSS, strategy, &profiles[p]),
                                   .n_layers = model->n_layers};
}

static void balanced_weighs_each_stage_by_its_devices(void **state) {
  fixture *own = *state;
  uint64_t random = test_seed(11);
  int n_better = 0;
  for (int i = 0; i < 200; i++) {
    own->model.n_layers = (int32_t)random_between(&random, 1, 11);
    own->model.vocab = (int64_t)random_between(&random, 1, 300) * 1000;
    pl_device_profile profiles[2] = {plain_profile(0), plain_profile(5e-6)};
    profiles[1].bandwidth_Bps *= 0.7;
    for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
      profiles[1].peak_flops[dtype] *= 0.3;
    pl_device devices[16];
    unlike made;
    make_unlike(own, &random, &own->model, profiles, devices, &made);
    pl_error error = PL_ERROR_INIT;
    if (pl_strategy_check(&made.strategy, &own->model, &own->job, 16, &error) != PL_OK ||
        pl_strategy_assign(&made.strategy, &own->model, &own->job, &made.cluster, &own->arena, &error) != PL_OK)
      fail_msg("case %d: %s", i, error.message);
    double largest = 0, uniform = 0;
    int32_t pp = made.strategy.pp, n = own->model.n_layers;
    for (int32_t s = 0; s < pp; s++) {
      int32_t first = s == 0 ? 0 : made.strategy.boundary[s] - PL_MODEL_BLOCKS_BEFORE_LAYERS;
      int32_t end = s == pp - 1 ? n : made.strategy.boundary[s + 1] - PL_MODEL_BLOCKS_BEFORE_LAYERS;
      assert_true(end > first);
      largest = fmax(largest, unlike_time_s(&made, s, first, end));
      uniform = fmax(uniform, unlike_time_s(&made, s, (s * n + pp - 1) / pp, ((s + 1) * n + pp - 1) / pp));
    }
    double best = best_unlike_cut(&made, 0, 0);
    if (!(largest <= best * (1 + 1e-12)))
      fail_msg("case %d: %d layers in %d stages: largest %.17g, best %.17g", i, n, pp, largest, best);
    n_better += largest < uniform * (1 - 1e-9);
  }
  assert_true(n_better > 40);
}

static void a_recipe_needs_a_layer_per_stage(void **state) {
  fixture *own = *state;
  pl_device_profile profile = plain_profile(0);
  const pl_cluster cluster = plain_cluster(&profile);
  for (int recipe = PL_ASSIGN_UNIFORM; recipe <= PL_ASSIGN_BALANCED; recipe++) {
    pl_strategy strategy = {.pp = 25, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = (pl_assign_recipe)recipe};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_strategy_assign(&strategy, &own->model, &own->job, &cluster, &own->arena, &error),
                     PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "25 stages for a model of 24 layers"));
  }
}

static void a_given_assignment_is_left_alone(void **state) {
  fixture *own = *state;
  pl_strategy strategy = parse(own, DEGREES ",assign=0:9:15:21:30");
  const int32_t *boundary = strategy.boundary;
  pl_device_profile profile = plain_profile(0);
  const pl_cluster cluster = plain_cluster(&profile);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_assign(&strategy, &own->model, &own->job, &cluster, &own->arena, &error), PL_OK);
  assert_ptr_equal(strategy.boundary, boundary);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_key_is_read),
      TEST(context_and_experts_are_read),
      TEST(context_ranks_have_a_place),
      TEST(ends_count_as_layers),
      TEST(filled_cuts_as_nanotron_does),
      TEST(what_is_not_given_has_a_default),
      TEST(bad_text_gives_one_message),
      TEST(a_text_of_any_length_is_refused_cleanly),
      TEST(boundaries_count_layers_or_blocks),
      TEST(formatting_gives_back_what_was_read),
      TEST(each_limit_is_checked),
      TEST(a_run_too_large_to_hold_is_refused),
      TEST(what_is_allowed_passes),
      TEST(boundaries_set_by_hand_are_checked),
      TEST(a_placement_maps_ranks),
      TEST(order_says_which_degree_is_innermost),
      TEST(uniform_spreads_what_is_left_over),
      TEST(balanced_makes_the_largest_stage_minimal),
      TEST(balanced_weighs_each_stage_by_its_devices),
      TEST(a_recipe_needs_a_layer_per_stage),
      TEST(a_given_assignment_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
