/* Rows with a topology cache equal rows without one, byte for byte: random candidates of whole spaces on random
 * clusters, regular and lopsided, in random order through one cache that is now and then too small for what it holds.
 * And the k-th request of the cache to its arena fails, for every k: an error, and the cache is as good as new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <string.h>
#include <cmocka.h>

#include "search/space.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/simulate.h"

enum { CLUSTERS = 24, CANDIDATES = 40, MOST_DEVICES = 32 };

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

static pl_code simulate(const subject *own, uint32_t candidate, const pl_simulate_options *options,
                        pl_topology_cache *cache, pl_simulate_report *report) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy;
  pl_simulate_options with = *options;
  with.cache = cache;
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

static void compare(const subject *own, uint32_t candidate, const pl_simulate_options *options,
                    pl_topology_cache *cache) {
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

static void changes_no_row(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  uint64_t n_found = 0, n_made = 0;
  pl_topology_cache cache;
  pl_topology_cache_init(&cache, 1 << 20);
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
      if (random_below(&random, 20) == 0) cache.most_bytes = (size_t)1 << random_between(&random, 12, 22);
      compare(&own, random_below(&random, own.space.n_candidates), &options, &cache);
    }
    n_found += cache.n_found;
    n_made += cache.n_made;
    pl_topology_cache_release(&cache); /* the next cluster may lie at the same address */
    pl_topology_cache_init(&cache, 1 << 20);
    release_subject(&own);
  }
  pl_topology_cache_release(&cache);
  print_message("%" PRIu64 " of %" PRIu64 " requests were in the cache\n", n_found, n_found + n_made);
  assert_true(4 * n_found > n_made); /* candidates come in random order, and the cache is often too small */
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
  pl_topology_cache cache;
  pl_topology_cache_init(&cache, PL_TOPOLOGY_CACHE_BYTES);
  const pl_simulate_options simulate_options = PL_SIMULATE_OPTIONS_DEFAULT;
  uint64_t random = test_seed(2);
  for (uint32_t i = 0; i < 40; i++) {
    const subject *chosen = &own[random_below(&random, 2)];
    compare(chosen, random_below(&random, chosen->space.n_candidates), &simulate_options, &cache);
  }
  pl_topology_cache_release(&cache);
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

static void survives_without_memory(void **state) {
  (void)state;
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
    pl_topology_cache cache;
    pl_topology_cache_init(&cache, PL_TOPOLOGY_CACHE_BYTES);
    cache.arena.fail_after = k;
    code = simulate(&own, candidate, &options, &cache, &report);
    cache.arena.fail_after = -1;
    assert_int_equal(simulate(&own, candidate, &options, &cache, &report), PL_OK);
    assert_true(equal_rows(&plain.row, &report.row));
    assert_int_equal(simulate(&own, candidate, &options, &cache, &report), PL_OK);
    assert_true(equal_rows(&plain.row, &report.row));
    pl_topology_cache_release(&cache);
  }
  print_message("%lld requests for memory\n", (long long)k - 1);
  assert_true(k > 20);
  release_subject(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changes_no_row),
      cmocka_unit_test(forgets_another_cluster),
      cmocka_unit_test(tells_problems_apart),
      cmocka_unit_test(survives_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
