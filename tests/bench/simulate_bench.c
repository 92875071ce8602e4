/* One strategy on 16,384 A100: how long pl_simulate takes against loading the platform, and how far folding and fusing
 * shrink the run. Prints ratios of one run on one machine.
 *
 *   simulate_bench [PLATFORM.xml [STRATEGY [GBS [MODEL]]]]     (default: 2048 DGX A100, made for the occasion) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "tests/support/bench.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

enum { ROUNDS = 6 };

static void stop_on(const pl_error *error) {
  if (error->code == PL_OK) return;
  fprintf(stderr, "simulate_bench: %s\n", error->message);
  exit(pl_code_exit_status(error->code));
}

/* Writes `n_nodes` DGX A100 to `path`, the pattern of a temporary file. */
static void make_platform(char *path, uint32_t n_nodes, pl_error *error) {
  int file = mkstemp(path);
  if (file < 0) {
    perror(path);
    exit(1);
  }
  close(file);
  pl_platform_plan plan = {.n_parts = 1,
                           .fabric = PL_FABRIC_RAIL,
                           .pod_nodes = 20,
                           .oversubscription = 1,
                           .sockets = PL_SOCKETS_NEVER,
                           .command = "bench"};
  plan.parts[0].kind = pl_node_kind_find("dgx-a100");
  plan.parts[0].n_nodes = n_nodes;
  pl_platform_make_file(&plan, path, true, error);
}

int main(int argc, char **argv) {
  bench b = bench_begin("simulate_bench", &argc, argv);
  const char *text = argc > 2     ? argv[2]
                     : b.is_small ? "pp=16,dp=4,tmp=8,mbs=1,recompute=full"
                                  : "pp=16,dp=128,tmp=8,mbs=1,recompute=full";
  pl_job job = {.gbs = argc > 3     ? atoll(argv[3])
                       : b.is_small ? 256
                                    : 8192,
                .seq = 2048,
                .dtype = PL_DTYPE_FP16,
                .flash = true,
                .bucket_bytes = 25e6};
  pl_error error = PL_ERROR_INIT;
  pl_arena keep, arena;
  pl_arena_init(&keep, 0);
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_strategy strategy;
  pl_platform *platform = NULL;
  char made[] = "/tmp/simulate_bench.XXXXXX";
  if (argc < 2) make_platform(made, b.is_small ? 64 : 2048, &error);
  stop_on(&error);
  double begin_s = bench_cpu_s();
  pl_platform_load(argc < 2 ? made : argv[1], PACELINE_SOURCE_DIR "/platforms/devices", &platform, &error);
  double load_s = bench_cpu_s() - begin_s;
  if (argc < 2) unlink(made);
  stop_on(&error);
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pl_model_load(argc > 4 ? argv[4] : PACELINE_SOURCE_DIR "/workloads/models/gpt3-175b.json", &keep, &model, &error);
  stop_on(&error);
  pl_strategy_parse(text, &model, &keep, &strategy, &error);
  stop_on(&error);
  pl_strategy_check(&strategy, &model, &job, cluster->n_devices, &error);
  stop_on(&error);
  pl_strategy_assign(&strategy, &model, &job, cluster, &keep, &error);
  stop_on(&error);
  double first = 0, later[ROUNDS];
  pl_simulate_report report;
  for (int round = 0; round < ROUNDS; round++) {
    pl_arena_reset(&arena);
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    begin_s = bench_cpu_s();
    pl_simulate(cluster, &model, &job, &strategy, &options, &arena, &report, &error);
    stop_on(&error);
    later[round] = (bench_cpu_s() - begin_s) / load_s;
    if (round == 0) first = later[round];
  }
  printf("%" PRIu32 " devices: %" PRIu32 " device classes, %" PRIu32 " transfer classes, %" PRId64 " tasks\n",
         report.n_devices, report.n_device_classes, report.n_transfer_classes, report.row.n_tasks);
  bench_figure(&b, "first simulation (routes are resolved)", "loading the platform", first);
  bench_ratio(&b, "later simulations", "loading the platform", later + 1, ROUNDS - 1);
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
  pl_arena_release(&keep);
  return bench_end(&b);
}
