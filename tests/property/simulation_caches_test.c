/* Rows with the caches of a sweep's thread (netmodel/collective/topology_cache.h, workloads/lower/block_cache.h) equal
 * rows without, byte for byte: random candidates of whole spaces and jobs on random clusters, regular and lopsided, in
 * random order through one cache each that is now and then too small for what it holds. And the k-th request of a cache
 * to its arena fails, for every k: an error, and the cache is as good as new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <string.h>
#include <cmocka.h>

#include "search/space/space.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

enum { CLUSTERS = 24, CANDIDATES = 40, MOST_DEVICES = 32 };

typedef struct caches {
  pl_topology_cache topology;
  pl_block_cache blocks;
} caches;

static void init_caches(caches *own, size_t most_bytes) {
  pl_topology_cache_init(&own->topology, most_bytes);
  pl_block_cache_init(&own->blocks, most_bytes);
}

static void release_caches(caches *own) {
  pl_topology_cache_release(&own->topology);
  pl_block_cache_release(&own->blocks);
}

typedef struct subject {
  pl_cluster *cluster;
  pl_arena arena; /* of model and space */
  pl_model model;
  pl_job job;
  pl_space space;
} subject;

static void make_subject(subject *own, pl_cluster *cluster, int64_t gbs) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":6,\"n_head\":16,"
                               "\"n_positions\":128,\"vocab_size\":1000}";
  own->cluster = cluster;
  own->job = (pl_job){.gbs = gbs, .seq = 128, .dtype = PL_DTYPE_FP16, .bucket_bytes = 1e5};
  pl_arena_init(&own->arena, 0);
  pl_space_choices choices;
  pl_space_choices_init(&choices);
  choices.n_orders = 3;
  memcpy(choices.orders[1], "dtp", 4);
  memcpy(choices.orders[2], "ptd", 4);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("m.json", config, sizeof config - 1, &own->arena, &own->model, &error), PL_OK);
  assert_int_equal(
      pl_space_take(&own->model, &own->job, cluster->n_devices, &choices, NULL, &own->arena, &own->space, &error),
      PL_OK);
}

static void release_subject(subject *own) {
  pl_arena_release(&own->arena);
  synthetic_cluster_release(own->cluster);
}

static pl_code simulate(const subject *own, uint32_t candidate, const pl_simulate_options *options, caches *cache,
                        pl_simulate_report *report) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy;
  pl_simulate_options with = *options;
  with.cache = cache == NULL ? NULL : &cache->topology;
  with.blocks = cache == NULL ? NULL : &cache->blocks;
  memset(report, 0, sizeof *report);
  pl_space_strategy(&own->space, candidate, &strategy);
  assert_int_equal(pl_strategy_assign(&strategy, &own->model, &own->job, own->cluster, &arena, &error), PL_OK);
  pl_code code = pl_simulate(own->cluster, &own->model, &own->job, &strategy, &with, &arena, report, &error);
  assert_int_equal(code, error.code);
  if (code != PL_OK && code != PL_NO_MEMORY) fail_msg("candidate %u: %s", candidate, error.message);
  report->stages = NULL; /* of the arena */
  pl_arena_release(&arena);
  return code;
}

/* Field by field: structs hold padding, texts may hold anything behind their end. */
static bool equal_rows(const pl_result_row *a, const pl_result_row *b) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    const unsigned char *left = (const unsigned char *)a + pl_result_columns[c].offset;
    const unsigned char *right = (const unsigned char *)b + pl_result_columns[c].offset;
    switch (pl_result_columns[c].type) {
    case PL_COLUMN_i32:
      if (memcmp(left, right, sizeof(int32_t)) != 0) return false;
      break;
    case PL_COLUMN_i64:
    case PL_COLUMN_f64:
    case PL_COLUMN_u64:
      if (memcmp(left, right, sizeof(uint64_t)) != 0) return false;
      break;
    default:
      if (strcmp((const char *)left, (const char *)right) != 0) return false;
    }
  }
  return true;
}

static pl_simulate_options random_options(uint64_t *random) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.algorithm = (pl_collective_algorithm)random_below(random, PL_ALGORITHM_COUNT);
  options.sharing = random_below(random, 4) == 0 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  options.fold = random_below(random, 8) != 0;
  options.fuse = random_below(random, 8) != 0;
  return options;
}

static void compare(const subject *own, uint32_t candidate, const pl_simulate_options *options, caches *cache) {
  pl_simulate_report plain, cached;
  assert_int_equal(simulate(own, candidate, options, NULL, &plain), PL_OK);
  assert_int_equal(simulate(own, candidate, options, cache, &cached), PL_OK);
  char text[256];
  pl_space_format_candidate(&own->space, candidate, text, sizeof text);
  if (!equal_rows(&plain.row, &cached.row) || plain.n_device_classes != cached.n_device_classes ||
      plain.n_transfer_classes != cached.n_transfer_classes || plain.n_events != cached.n_events ||
      plain.bottleneck_link != cached.bottleneck_link || plain.bottleneck_utilisation != cached.bottleneck_utilisation)
    fail_msg("%s, algorithm %d: %.17g s, digest %016" PRIx64 " without, %.17g s, digest %016" PRIx64 " with the cache",
             text, (int)options->algorithm, plain.row.iter_time_s, (uint64_t)plain.row.run_digest,
             cached.row.iter_time_s, (uint64_t)cached.row.run_digest);
}

/* Jobs of one model: the block cache has to tell them apart. */
static void change_job(uint64_t *random, pl_job *job) {
  static const pl_dtype types[] = {PL_DTYPE_FP16, PL_DTYPE_BF16, PL_DTYPE_FP32};
  static pl_framework launching; /* as the ideal one, but its host takes time */
  launching = *pl_framework_or_ideal(NULL);
  launching.launch.launch_s = launching.launch.backward_launch_s = 5e-6;
  launching.kernels.fuses_residual = !launching.kernels.fuses_residual;
  job->seq = random_below(random, 2) == 0 ? 64 : 128;
  job->dtype = types[random_below(random, 3)];
  job->flash = random_below(random, 2) == 0;
  job->framework = random_below(random, 2) == 0 ? NULL : &launching;
}

static void changes_no_row(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  uint64_t n_found[2] = {0, 0}, n_made[2] = {0, 0};
  caches cache;
  init_caches(&cache, 1 << 20);
  for (uint32_t c = 0; c < CLUSTERS; c++) {
    subject own;
    uint64_t seed = random_u64(&random);
    bool regular = random_below(&random, 2) == 0;
    make_subject(&own,
                 regular ? synthetic_cluster_random_regular(seed, MOST_DEVICES)
                         : synthetic_cluster_random(seed, MOST_DEVICES),
                 48);
    pl_simulate_options options = random_options(&random);
    for (uint32_t i = 0; i < CANDIDATES && own.space.n_candidates > 0; i++) {
      if (random_below(&random, 20) == 0) options = random_options(&random);
      if (random_below(&random, 20) == 0) cache.topology.most_bytes = (size_t)1 << random_between(&random, 12, 22);
      if (random_below(&random, 20) == 0) cache.blocks.most_bytes = (size_t)1 << random_between(&random, 12, 22);
      if (random_below(&random, 8) == 0) change_job(&random, &own.job);
      compare(&own, random_below(&random, own.space.n_candidates), &options, &cache);
    }
    const uint64_t found[] = {cache.topology.n_found, cache.blocks.n_found};
    const uint64_t made[] = {cache.topology.n_made, cache.blocks.n_made};
    for (int i = 0; i < 2; i++) {
      n_found[i] += found[i];
      n_made[i] += made[i];
    }
    release_caches(&cache); /* the next cluster may lie at the same address */
    init_caches(&cache, 1 << 20);
    release_subject(&own);
  }
  release_caches(&cache);
  for (int i = 0; i < 2; i++) {
    print_message("%" PRIu64 " of %" PRIu64 " requests were in the cache\n", n_found[i], n_found[i] + n_made[i]);
    assert_true(20 * n_found[i] > n_made[i]); /* candidates come in random order, and the cache is often too small */
  }
}

/* One cluster after the other through the same cache, without a release in between. */
static void forgets_another_cluster(void **state) {
  (void)state;
  synthetic_options options = synthetic_cluster_defaults();
  subject own[2];
  for (uint32_t i = 0; i < 2; i++) {
    options.n_nodes = 2;
    options.gpus_per_node = 4;
    options.nic_Bps = i == 0 ? 25e9 : 12.5e9;
    make_subject(&own[i], synthetic_cluster_create(&options), 32);
  }
  caches cache;
  init_caches(&cache, PL_TOPOLOGY_CACHE_BYTES);
  const pl_simulate_options simulate_options = PL_SIMULATE_OPTIONS_DEFAULT;
  uint64_t random = test_seed(2);
  for (uint32_t i = 0; i < 40; i++) {
    const subject *chosen = &own[random_below(&random, 2)];
    compare(chosen, random_below(&random, chosen->space.n_candidates), &simulate_options, &cache);
  }
  release_caches(&cache);
  release_subject(&own[0]);
  release_subject(&own[1]);
}

/* Fold problems that differ in one thing only, alternately. */
static void tells_problems_apart(void **state) {
  (void)state;
  synthetic_options options = synthetic_cluster_defaults();
  pl_cluster *cluster = synthetic_cluster_create(&options);
  const uint64_t alike[] = {1, 1, 1}, renamed[] = {9, 9, 9}, unlike[] = {1, 1, 2}, link_colour[] = {1, 1};
  const double capacity_Bps[] = {1e9, 1e9};
  const pl_fold_member members[] = {{0, 0}, {1, 0}}, with_roles[] = {{0, 0}, {1, 1}};
  const pl_link_use uses[] = {{.link = 0, .weight = 1}, {.link = 1, .weight = 1}}, odd[] = {{0, 1}, {1, 2}};
  const pl_fold_transfer both[] = {{.colour = 5, .n_members = 2, .n_uses = 2}};
  pl_fold_problem same = {3, 2, 1, alike, link_colour, both, members, uses}, problems[5];
  for (uint32_t i = 0; i < 5; i++)
    problems[i] = same;
  problems[1].device_colour = renamed;
  problems[2].device_colour = unlike; /* of the device without a transfer */
  problems[3].members = with_roles;
  problems[4].uses = odd;
  static const uint32_t device_classes[] = {2, 2, 2, 3, 2}, link_classes[] = {1, 1, 1, 1, 2};
  pl_collective_options how = {0};
  pl_topology_cache cache;
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_topology_cache_init(&cache, PL_TOPOLOGY_CACHE_BYTES);
  pl_topology_cache_begin(&cache, cluster, &how);
  for (uint32_t i = 0; i < 15; i++) {
    const pl_folding *folding;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_topology_cache_folding(&cache, &problems[i % 5], capacity_Bps, &scratch, &folding, &error),
                     PL_OK);
    assert_int_equal(folding->fold.devices.n_classes, device_classes[i % 5]);
    assert_int_equal(folding->fold.links.n_classes, link_classes[i % 5]);
  }
  assert_int_equal(cache.n_made, 4); /* renaming colours changes nothing */
  assert_int_equal(cache.n_found, 11);
  pl_topology_cache_release(&cache);
  pl_arena_release(&scratch);
  synthetic_cluster_release(cluster);
}

/* Shards that differ in one field only, each twice, and the prices of their ops on two devices. */
static void tells_shards_apart(void **state) {
  (void)state;
  synthetic_options options = synthetic_cluster_defaults();
  subject own;
  make_subject(&own, synthetic_cluster_create(&options), 32);
  own.model.moe.n_experts = own.model.moe.topk = 2;
  own.model.moe.expert_ffn = own.model.width.ffn_hidden;
  const pl_block_shard same = {
      .tmp = 2, .ep = 1, .cp = 1, .sp = true, .mbs = 1, .seq = 64, .dtype = PL_DTYPE_FP16, .flash = true};
  enum { FIELDS = 16 };
  pl_block_shard shards[FIELDS];
  for (int i = 0; i < FIELDS; i++)
    shards[i] = same;
  pl_framework other = *pl_framework_or_ideal(NULL);
  shards[1].tmp = 4;
  shards[2].ep = 2;
  shards[3].cp = 2;
  shards[4].sp = false;
  shards[4].tmp = 1;
  shards[5].tmp = 1;
  shards[6].mbs = 2;
  shards[7].seq = 128;
  shards[8].recompute = PL_RECOMPUTE_FULL;
  shards[9].cp_gather = true;
  shards[10].dtype = PL_DTYPE_BF16;
  shards[11].flash = false;
  shards[12].fp8 = true;
  shards[13].attention_kernel = (pl_attention_kernel)(same.attention_kernel + 1);
  shards[14].framework = &other;
  shards[15].fp8 = shards[15].fp4 = true;
  const pl_device_profile profiles[2] = {own.cluster->profiles[0], own.cluster->profiles[0]};
  const pl_block_program *first[FIELDS];
  const pl_block_prices *prices[FIELDS][2];
  pl_block_cache cache;
  pl_block_cache_init(&cache, PL_BLOCK_CACHE_BYTES);
  pl_block_cache_begin(&cache, own.cluster, &own.model);
  for (int i = 0; i < 2 * FIELDS; i++) {
    const pl_block_program *found;
    const pl_block_prices *price;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_block_cache_programs(&cache, &own.model, &shards[i % FIELDS], NULL, &found, &error), PL_OK);
    if (i < FIELDS) first[i] = found;
    assert_ptr_equal(found, first[i % FIELDS]);
    for (int p = 0; p < 2; p++) {
      assert_int_equal(pl_block_cache_prices(&cache, &own.model, found, &profiles[p], NULL, &price, &error), PL_OK);
      if (i < FIELDS) prices[i][p] = price;
      assert_ptr_equal(price, prices[i % FIELDS][p]);
    }
  }
  assert_int_equal(cache.n_made, 3 * FIELDS);
  assert_int_equal(cache.n_found, 3 * FIELDS);
  pl_block_cache_release(&cache);
  release_subject(&own);
}

/* `of_blocks`: the block cache's requests fail. */
static void fail_every_request(bool of_blocks) {
  synthetic_options cluster = synthetic_cluster_defaults();
  cluster.n_nodes = 2;
  cluster.gpus_per_node = 2;
  subject own;
  make_subject(&own, synthetic_cluster_create(&cluster), 8);
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.algorithm = PL_ALGORITHM_HIERARCHICAL;
  pl_simulate_report plain, report;
  uint32_t candidate = own.space.n_candidates / 2;
  assert_int_equal(simulate(&own, candidate, &options, NULL, &plain), PL_OK);
  int64_t k = 0;
  pl_code code = PL_NO_MEMORY;
  for (; code != PL_OK; k++) {
    caches cache;
    init_caches(&cache, PL_TOPOLOGY_CACHE_BYTES);
    pl_arena *arena = of_blocks ? &cache.blocks.arena : &cache.topology.arena;
    arena->fail_after = k;
    code = simulate(&own, candidate, &options, &cache, &report);
    arena->fail_after = -1;
    assert_int_equal(simulate(&own, candidate, &options, &cache, &report), PL_OK);
    assert_true(equal_rows(&plain.row, &report.row));
    assert_int_equal(simulate(&own, candidate, &options, &cache, &report), PL_OK);
    assert_true(equal_rows(&plain.row, &report.row));
    release_caches(&cache);
  }
  print_message("%lld requests for memory\n", (long long)k - 1);
  assert_true(k > 20);
  release_subject(&own);
}

static void survives_without_memory(void **state) {
  (void)state;
  fail_every_request(false);
  fail_every_request(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changes_no_row),          cmocka_unit_test(forgets_another_cluster),
      cmocka_unit_test(tells_problems_apart),    cmocka_unit_test(tells_shards_apart),
      cmocka_unit_test(survives_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
