/* The recipes for the layer assignment that need no price of communication. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/strategy_fixture.h"
#include "workloads/cost/op_cost.h"
#include "workloads/lower/block_cache.h"
#include "workloads/lower/block_program.h"

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
  model.mlp.gated_mlp = true;
  model.width.vocab = 131072;
  model.attention.n_heads = model.attention.n_kv_heads = 32;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    model.n_layers = (int32_t)rows[i].layers;
    model.width.hidden = rows[i].hidden;
    model.attention.head_size = rows[i].hidden / 32;
    model.width.ffn_hidden = rows[i].ffn;
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
  model.width.hidden = 2048;
  model.attention.head_size = 64;
  model.width.ffn_hidden = 8192;
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
    model.width.vocab = (int64_t)random_between(&random, 1, 300) * 1000; /* heads from nothing to many layers' worth */
    own->model.width.vocab = model.width.vocab;
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
    own->model.width.vocab = (int64_t)random_between(&random, 1, 300) * 1000;
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

/* A network's recipes leave the blocks at its ends together: words count blocks, and what they say goes. */
static void a_network_counts_blocks(void **state) {
  fixture *own = *state;
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  pl_strategy strategy;
  assert_int_equal(pl_model_load(PACELINE_SOURCE_DIR "/workloads/models/tiny-vgg.json", &own->arena, &model, &error),
                   PL_OK);
  assert_int_equal(model.n_layers, 1);
  strategy = (pl_strategy){.pp = 2, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_UNIFORM};
  assert_int_equal(pl_strategy_check_chunks(&strategy, &model, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "2 stages for tiny-vgg, of whose 7 blocks (with the loss) a recipe makes at "
                                        "most 1 stage, as"));
  assert_int_equal(pl_strategy_parse("pp=4,dp=1,tmp=1,mbs=1,assign=0:1:2:3:7", &model, &own->arena, &strategy, &error),
                   PL_OK);
  error = (pl_error)PL_ERROR_INIT;
  assert_int_equal(pl_strategy_parse("pp=4,dp=1,tmp=1,mbs=1,assign=0:1:2:3:4", &model, &own->arena, &strategy, &error),
                   PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "tiny-vgg has 1 transformer layer (7 blocks"));
  model = own->model;
  model.n_layers = 1;
  strategy = (pl_strategy){.pp = 2, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .recipe = PL_ASSIGN_UNIFORM};
  error = (pl_error)PL_ERROR_INIT;
  assert_int_equal(pl_strategy_check_chunks(&strategy, &model, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "2 stages for a model of 1 layer; at most"));
}

/* On devices of one kind cuts are kept and prices looked up once: the same cut as without a cache, and as where a
 * second profile that nobody has makes every chunk look for its devices. */
static void balanced_on_one_kind_is_the_same_cut(void **state) {
  fixture *own = *state;
  const pl_device_profile profiles[2] = {plain_profile(0), plain_profile(1e-5)};
  pl_cluster cluster = plain_cluster(profiles), two_kinds = cluster;
  two_kinds.n_profiles = 2;
  uint64_t random = test_seed(12), n_found = 0;
  pl_block_cache cache;
  pl_block_cache_init(&cache, PL_BLOCK_CACHE_BYTES);
  for (int c = 0; c < 400; c++) {
    pl_strategy strategy = {.dp = 1, .vpp = 1, .schedule = PL_SCHEDULE_1F1B, .recipe = PL_ASSIGN_BALANCED};
    strategy.pp = (int32_t)random_between(&random, 1, 12);
    if (random_below(&random, 2) == 0) strategy.vpp = 2;
    if (strategy.vpp == 2) strategy.schedule = PL_SCHEDULE_INTERLEAVED;
    strategy.tmp = (int32_t)random_between(&random, 1, 2);
    strategy.mbs = (int32_t)random_between(&random, 1, 2);
    strategy.recompute = random_below(&random, 2) == 0 ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NONE;
    pl_strategy kept = strategy, general = strategy;
    pl_error error = PL_ERROR_INIT;
    pl_arena_reset(&own->arena);
    const pl_block_shard shard = pl_strategy_shard(&kept, &own->job);
    const pl_block_program *blocks;
    pl_block_cache_begin(&cache, &cluster, &own->model);
    assert_int_equal(pl_block_cache_programs(&cache, &own->model, &shard, &own->arena, &blocks, &error), PL_OK);
    n_found += pl_block_cache_cut(&cache, blocks, pl_strategy_n_chunks(&kept)) != NULL;
    assert_int_equal(pl_strategy_assign(&strategy, &own->model, &own->job, &cluster, &own->arena, &error), PL_OK);
    assert_int_equal(pl_strategy_assign(&general, &own->model, &own->job, &two_kinds, &own->arena, &error), PL_OK);
    assert_int_equal(pl_strategy_assign_cached(&kept, &own->model, &own->job, &cluster, &cache, &own->arena, &error),
                     PL_OK);
    size_t bytes = ((size_t)pl_strategy_n_chunks(&kept) + 1) * sizeof *kept.boundary;
    assert_memory_equal(kept.boundary, strategy.boundary, bytes);
    assert_memory_equal(general.boundary, strategy.boundary, bytes);
  }
  assert_true(n_found > 100 && n_found < 350);
  pl_block_cache_release(&cache);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ends_count_as_layers),
      TEST(filled_cuts_as_nanotron_does),
      TEST(uniform_spreads_what_is_left_over),
      TEST(balanced_makes_the_largest_stage_minimal),
      TEST(balanced_weighs_each_stage_by_its_devices),
      TEST(a_recipe_needs_a_layer_per_stage),
      TEST(a_network_counts_blocks),
      TEST(balanced_on_one_kind_is_the_same_cut),
      TEST(a_given_assignment_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
