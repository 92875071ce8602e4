/* One strategy on 16,384 A100: how long pl_simulate takes against loading the platform, and how far folding and fusing
 * shrink the run. Prints ratios of one run on one machine.
 *
 *   simulate_bench [PLATFORM.xml [STRATEGY [GBS [MODEL]]]]     (default: 2048 DGX A100, made for the occasion) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "netmodel/platform.h"
#include "netmodel/platform_make.h"
#include "workloads/simulate.h"

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void stop_on(const pl_error *error) {
  if (error->code == PL_OK) return;
  fprintf(stderr, "simulate_bench: %s\n", error->message);
  exit(pl_code_exit_status(error->code));
}

/* Writes 2048 DGX A100 to `path`, the pattern of a temporary file. */
static void make_platform(char *path, pl_error *error) {
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
  plan.parts[0].n_nodes = 2048;
  pl_platform_make_file(&plan, path, true, error);
}

int main(int argc, char **argv) {
  const char *text = argc > 2 ? argv[2] : "pp=16,dp=128,tmp=8,mbs=1,recompute=full";
  pl_job job = {.gbs = argc > 3 ? atoll(argv[3]) : 8192,
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
  if (argc < 2) make_platform(made, &error);
  stop_on(&error);
  double begin_s = now_s();
  pl_platform_load(argc < 2 ? made : argv[1], PACELINE_SOURCE_DIR "/platforms/devices", &platform, &error);
  double load_s = now_s() - begin_s;
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
  double first_s = 0, best_s = 1e30;
  pl_simulate_report report;
  for (int round = 0; round < 6; round++) {
    pl_arena_reset(&arena);
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    begin_s = now_s();
    pl_simulate(cluster, &model, &job, &strategy, &options, &arena, &report, &error);
    stop_on(&error);
    double time_s = now_s() - begin_s;
    if (round == 0) first_s = time_s;
    if (round > 0 && time_s < best_s) best_s = time_s;
  }
  printf("%" PRIu32 " devices: %" PRIu32 " device classes, %" PRIu32 " transfer classes, %" PRId64 " tasks\n",
         report.n_devices, report.n_device_classes, report.n_transfer_classes, report.row.n_tasks);
  printf("first simulation / loading the platform   %.4f (routes are resolved)\n", first_s / load_s);
  printf("later simulations / loading the platform  %.4f\n", best_s / load_s);
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
  pl_arena_release(&keep);
  return 0;
}
