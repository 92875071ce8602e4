/* A placement is a renumbering of devices: a strategy with a placement gives, bit for bit, the row that the same
 * strategy gives without one on a platform whose devices are in that order. Placements that keep nodes together, so
 * that the renumbered platform is one; random clusters, regular and lopsided, and strategies that use all devices or
 * the first nodes. Three networks' lowering: fluid with contention, without (analytic) and chunked.
 *
 * PACELINE_SEED and PACELINE_CASES as elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

/* `original` seen through order[]: device i of it is device order[i] of the original. */
typedef struct renumbered {
  pl_cluster cluster;
  const pl_cluster *original;
  const uint32_t *order;
} renumbered;

static pl_code route_renumbered(void *routes, uint32_t source, uint32_t destination, pl_route *route, pl_error *error) {
  const renumbered *own = routes;
  return pl_cluster_route(own->original, own->order[source], own->order[destination], route, error);
}

static void shuffle(uint64_t *random, uint32_t *items, uint32_t n) {
  for (uint32_t i = n; i > 1; i--) {
    uint32_t other = random_below(random, i), item = items[i - 1];
    items[i - 1] = items[other];
    items[other] = item;
  }
}

/* Nodes in a random order, the devices of each in theirs: rings inside nodes of PCIe follow the numbers of the devices,
 * which on a real platform are its topology's, so that shuffled devices would be another machine. */
static const uint32_t *random_order(uint64_t *random, const pl_cluster *cluster, pl_arena *arena, uint32_t *nodes) {
  uint32_t *order = PL_TAKE(arena, uint32_t, cluster->n_devices), n = 0;
  for (uint32_t i = 0; i < cluster->n_nodes; i++)
    nodes[i] = i;
  shuffle(random, nodes, cluster->n_nodes);
  for (uint32_t i = 0; i < cluster->n_nodes; i++) {
    const pl_node_info *node = &cluster->nodes[nodes[i]];
    for (uint32_t d = 0; d < node->n_devices; d++)
      order[n + d] = node->first_device + d;
    n += node->n_devices;
  }
  return order;
}

static void renumber(const pl_cluster *cluster, const uint32_t *order, const uint32_t *nodes, pl_arena *arena,
                     renumbered *own) {
  *own = (renumbered){.cluster = *cluster, .original = cluster, .order = order};
  pl_device *devices = PL_TAKE(arena, pl_device, cluster->n_devices);
  pl_node_info *infos = PL_TAKE(arena, pl_node_info, cluster->n_nodes);
  uint32_t first = 0;
  for (uint32_t node = 0; node < cluster->n_nodes; node++) {
    infos[node] = cluster->nodes[nodes[node]];
    infos[node].first_device = first;
    for (uint32_t d = 0; d < infos[node].n_devices; d++, first++) {
      devices[first] = cluster->devices[order[first]];
      devices[first].node = node;
      devices[first].local_index = d;
    }
  }
  own->cluster.devices = devices;
  own->cluster.nodes = infos;
  own->cluster.route = route_renumbered;
  own->cluster.routes = own;
}

static bool make_strategy(uint64_t *random, int32_t n_devices, pl_strategy *strategy, pl_job *job, int32_t n_layers) {
  static const char orders[6][5] = {"tdp", "tpd", "dtp", "dpt", "ptd", "pdt"};
  *strategy = (pl_strategy){.vpp = 1, .cp = 1, .ep = 1, .idle = true, .recipe = PL_ASSIGN_BALANCED};
  strategy->tmp = random_divisor(random, n_devices);
  if (8 % strategy->tmp != 0) strategy->tmp = 1;
  strategy->pp = random_divisor(random, n_devices / strategy->tmp);
  strategy->dp = n_devices / strategy->tmp / strategy->pp;
  strategy->mbs = 1 + (int32_t)random_below(random, 2);
  strategy->schedule = (pl_schedule_kind)random_below(random, 2);
  strategy->overlap = random_below(random, 2) == 0;
  strategy->zero = (int32_t)random_below(random, strategy->pp > 1 ? 2 : 4);
  memcpy(strategy->order, orders[random_below(random, 6)], 5);
  job->gbs = (int64_t)random_between(random, 1, 5) * strategy->dp * strategy->mbs;
  return strategy->pp <= n_layers;
}

static pl_result_row simulate(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                              const pl_strategy *given, const pl_simulate_options *options) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_simulate_report report;
  pl_strategy strategy = *given;
  if (pl_strategy_check(&strategy, model, job, cluster->n_devices, &error) != PL_OK ||
      pl_strategy_assign(&strategy, model, job, cluster, &arena, &error) != PL_OK ||
      pl_simulate(cluster, model, job, &strategy, options, &arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  pl_arena_release(&arena);
  return report.row;
}

static bool equal_rows(const pl_result_row *a, const pl_result_row *b) {
  return a->iter_time_s == b->iter_time_s && a->compute_s == b->compute_s && a->tensor_comm_s == b->tensor_comm_s &&
         a->pipeline_comm_s == b->pipeline_comm_s && a->data_comm_s == b->data_comm_s && a->bubble_s == b->bubble_s &&
         a->peak_mem_bytes == b->peak_mem_bytes && a->peak_stage == b->peak_stage && a->mfu == b->mfu &&
         a->n_classes == b->n_classes && strcmp(a->assign.text, b->assign.text) == 0;
}

static bool try_case(uint64_t seed, pl_arena *arena) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":8,\"n_head\":8,\"n_positions\":128,"
                               "\"vocab_size\":1000}";
  uint64_t random = seed;
  pl_cluster *cluster =
      random_below(&random, 2) ? synthetic_cluster_random(seed, 24) : synthetic_cluster_random_regular(seed, 24);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("m.json", config, sizeof config - 1, arena, &model, &error), PL_OK);
  pl_job job = {.seq = 128, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e6, .split_sends = true};
  pl_strategy strategy;
  uint32_t n_nodes = random_between(&random, 1, cluster->n_nodes), n_used = n_nodes * cluster->nodes[0].n_devices;
  bool made = make_strategy(&random, (int32_t)n_used, &strategy, &job, model.n_layers);
  if (made) {
    uint32_t nodes[24];
    const uint32_t *order = random_order(&random, cluster, arena, nodes);
    renumbered other;
    renumber(cluster, order, nodes, arena, &other);
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    options.fold = random_below(&random, 3) > 0;
    options.chunked = random_below(&random, 4) == 0;
    options.network = random_below(&random, 4) == 0 ? PL_NETWORK_ANALYTIC : PL_NETWORK_FLOW;
    options.algorithm = (pl_collective_algorithm)random_below(&random, PL_ALGORITHM_COUNT);
    pl_strategy placed = strategy;
    placed.placement = order;
    pl_result_row a = simulate(&other.cluster, &model, &job, &strategy, &options);
    pl_result_row b = simulate(cluster, &model, &job, &placed, &options);
    if (!equal_rows(&a, &b))
      fail_msg(
          "seed %llu: %s on the renumbered platform %.17g s (%s, %lld classes), with a placement %.17g s (%s, %lld)",
          (unsigned long long)seed, strategy.order, a.iter_time_s, a.assign.text, (long long)a.n_classes, b.iter_time_s,
          b.assign.text, (long long)b.n_classes);
  }
  synthetic_cluster_release(cluster);
  return made;
}

static void a_placement_renumbers_devices(void **state) {
  (void)state;
  uint64_t first = test_seed(1), n_cases = 300;
  if (getenv("PACELINE_CASES") != NULL) n_cases = strtoull(getenv("PACELINE_CASES"), NULL, 10);
  uint32_t n_made = 0;
  for (uint64_t i = 0; i < n_cases; i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    n_made += try_case(first + i, &arena);
    pl_arena_release(&arena);
  }
  print_message("%u cases\n", n_made);
  assert_true(n_made > n_cases / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_placement_renumbers_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
