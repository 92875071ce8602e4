/* GPT-2 117M data parallel on Proteus's HC2, 8 V100 a node: CPU time of pl_simulate, program, folding, compilation and
 * execution, by the number of GPUs. Proteus's compile and execute on the same jobs are in validation/papers/proteus.md.
 * Prints a table, and what 4,096 GPUs cost against 32. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "tests/support/bench.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

enum { ROUNDS = 15, GPUS_PER_NODE = 8 };

static void stop_on(const pl_error *error) {
  if (error->code == PL_OK) return;
  fprintf(stderr, "data_parallel_bench: %s\n", error->message);
  exit(pl_code_exit_status(error->code));
}

static pl_platform *take_platform(uint32_t n_nodes, pl_error *error) {
  char path[] = "/tmp/data_parallel_bench.XXXXXX";
  pl_platform *platform = NULL;
  int file = mkstemp(path);
  if (file < 0) {
    perror(path);
    exit(1);
  }
  close(file);
  pl_platform_plan plan = {
      .n_parts = 1, .fabric = PL_FABRIC_SINGLE, .pod_nodes = 20, .oversubscription = 1, .command = "bench"};
  plan.parts[0].kind = pl_node_kind_find("hc2");
  plan.parts[0].n_nodes = n_nodes;
  pl_platform_make_file(&plan, path, true, error);
  stop_on(error);
  pl_platform_load(path, PACELINE_SOURCE_DIR "/platforms/devices", &platform, error);
  unlink(path);
  stop_on(error);
  return platform;
}

typedef struct cost {
  double first_s, later_s[ROUNDS]; /* the first resolves routes, or fills the caches */
} cost;

/* A rank has a microbatch of 4 samples. */
static cost measure(const pl_model *model, int64_t seq, const char *text, int64_t gbs, const pl_cluster *cluster,
                    bool keeps) {
  pl_error error = PL_ERROR_INIT;
  pl_job job = {.gbs = gbs, .seq = seq, .dtype = PL_DTYPE_FP32, .flash = false, .bucket_bytes = 25e6};
  pl_strategy strategy;
  pl_arena keep, arena;
  pl_arena_init(&keep, 0);
  pl_arena_init(&arena, 0);
  pl_strategy_parse(text, model, &keep, &strategy, &error);
  stop_on(&error);
  pl_strategy_check(&strategy, model, &job, cluster->n_devices, &error);
  stop_on(&error);
  pl_strategy_assign(&strategy, model, &job, cluster, &keep, &error);
  stop_on(&error);
  cost found = {0};
  pl_topology_cache cache;
  pl_block_cache blocks;
  pl_topology_cache_init(&cache, PL_TOPOLOGY_CACHE_BYTES);
  pl_block_cache_init(&blocks, 1 << 24);
  for (int round = -1; round < ROUNDS; round++) {
    pl_simulate_report report;
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    options.cache = keeps ? &cache : NULL;
    options.blocks = keeps ? &blocks : NULL;
    pl_arena_reset(&arena);
    double begin_s = bench_cpu_s();
    pl_simulate(cluster, model, &job, &strategy, &options, &arena, &report, &error);
    stop_on(&error);
    *(round < 0 ? &found.first_s : &found.later_s[round]) = bench_cpu_s() - begin_s;
  }
  pl_topology_cache_release(&cache);
  pl_block_cache_release(&blocks);
  pl_arena_release(&arena);
  pl_arena_release(&keep);
  return found;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(const cost *of) {
  double sorted[ROUNDS];
  for (int round = 0; round < ROUNDS; round++)
    sorted[round] = of->later_s[round];
  qsort(sorted, ROUNDS, sizeof(*sorted), compare);
  return sorted[ROUNDS / 2];
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = {1, 2, 4, 8, 16, 32, 256, 4096};
  bench b = bench_begin("data_parallel_bench", &argc, argv);
  pl_error error = PL_ERROR_INIT;
  pl_arena keep;
  pl_model model;
  pl_arena_init(&keep, 0);
  pl_model_load(argc > 1 ? argv[1] : PACELINE_SOURCE_DIR "/workloads/models/gpt2-117m.json", &keep, &model, &error);
  stop_on(&error);
  int64_t seq = argc > 2 ? atoll(argv[2]) : 1024; /* of pictures 1 */
  enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]), AT_32 = 5 };
  double ratios[ROUNDS];
  cost of[N_SIZES], warm[N_SIZES];
  int n = b.is_small ? AT_32 + 1 : N_SIZES;
  for (int i = 0; i < n; i++) {
    char text[64];
    uint32_t n_nodes = (sizes[i] + GPUS_PER_NODE - 1) / GPUS_PER_NODE;
    pl_platform *platform = take_platform(n_nodes, &error);
    snprintf(text, sizeof(text), "pp=1,dp=%" PRIu32 ",tmp=1,mbs=4%s", sizes[i],
             sizes[i] < GPUS_PER_NODE ? ",idle=1" : "");
    const pl_cluster *cluster = pl_platform_cluster(platform);
    of[i] = measure(&model, seq, text, 4 * (int64_t)sizes[i], cluster, false);
    warm[i] = measure(&model, seq, text, 4 * (int64_t)sizes[i], cluster, true);
    printf("%5" PRIu32 " GPUs: first %.3f ms, then %.3f ms, with caches %.3f ms\n", sizes[i], 1e3 * of[i].first_s,
           1e3 * middle(&of[i]), 1e3 * middle(&warm[i]));
    pl_platform_destroy(platform);
  }
  for (int round = 0; round < ROUNDS; round++)
    ratios[round] = of[n - 1].later_s[round] / of[AT_32].later_s[round];
  bench_ratio(&b, "data parallel on the most GPUs (4,096)", "on 32", ratios, ROUNDS);
  for (int round = 0; round < ROUNDS; round++)
    ratios[round] = warm[n - 1].later_s[round] / warm[AT_32].later_s[round];
  bench_ratio(&b, "the same with a sweep's caches", "on 32", ratios, ROUNDS);
  pl_arena_release(&keep);
  return bench_end(&b);
}
