/* What a large platform costs: loading against SimGrid's own share of it, and routes, cold and from the cache.
 *
 *   platform_bench [NODES]     DGX A100 nodes, 2048 by default (16,384 GPUs)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/simgrid/simgrid_door.h"
#include "tests/support/bench.h"
#include "tests/support/random.h"

enum { ROUTES = 50000, THREADS = 4, ROUNDS = 20 };

/* In a child: an engine of its own, and nothing warmed up for the other measurement. */
static double time_shim(const char *path) {
  int channel[2];
  double time_s = 0;
  if (pipe(channel) != 0) exit(1);
  if (fork() == 0) {
    char message[256];
    pl_shim *shim;
    pl_simgrid_door door;
    double start_s = bench_wall_s();
    if (!pl_simgrid_door_open(&door, message, sizeof message)) _exit(1);
    if (door.load(path, path, &shim, message, sizeof message) != PL_SHIM_OK) _exit(1);
    time_s = bench_wall_s() - start_s;
    _exit(write(channel[1], &time_s, sizeof time_s) == sizeof time_s ? 0 : 1);
  }
  int status;
  wait(&status);
  if (status != 0 || read(channel[0], &time_s, sizeof time_s) != sizeof time_s) exit(1);
  return time_s;
}

typedef struct pairs {
  const pl_cluster *cluster;
  uint32_t source[ROUTES], destination[ROUTES];
  uint64_t n_links;
} pairs;

/* Half inside nodes, half anywhere: what placements ask for. */
static void choose(pairs *p, const pl_cluster *cluster) {
  uint64_t random = 1;
  p->cluster = cluster;
  for (uint32_t i = 0; i < ROUTES; i++) {
    uint32_t a = random_below(&random, cluster->n_devices), b = a;
    const pl_node_info *node = &cluster->nodes[cluster->devices[a].node];
    while (b == a)
      b = i % 2 ? random_below(&random, cluster->n_devices)
                : node->first_device + random_below(&random, node->n_devices);
    p->source[i] = a;
    p->destination[i] = b;
  }
}

static double time_routes(pairs *p) {
  double start_s = bench_wall_s();
  for (uint32_t i = 0; i < ROUTES; i++) {
    pl_route route;
    pl_error error = PL_ERROR_INIT;
    if (pl_cluster_route(p->cluster, p->source[i], p->destination[i], &route, &error) != PL_OK) {
      fprintf(stderr, "%s\n", error.message);
      exit(1);
    }
    p->n_links += route.n_links;
  }
  return bench_wall_s() - start_s;
}

static void *look_up(void *argument) {
  pairs own = *(const pairs *)argument;
  for (int round = 0; round < ROUNDS; round++)
    time_routes(&own);
  return NULL;
}

static double time_threads(pairs *p) {
  pthread_t threads[THREADS];
  double start_s = bench_wall_s();
  for (int t = 0; t < THREADS; t++)
    if (pthread_create(&threads[t], NULL, look_up, p) != 0) exit(1);
  for (int t = 0; t < THREADS; t++)
    pthread_join(threads[t], NULL);
  return bench_wall_s() - start_s;
}

int main(int argc, char **argv) {
  bench b = bench_begin("platform_bench", &argc, argv);
  char *n_nodes = b.is_small ? "16" : argc > 1 ? argv[1] : "2048";
  char path[] = "/tmp/platform_bench_XXXXXX.xml";
  close(mkstemps(path, 4));
  char *make[] = {"platform make", "dgx-a100", "--nodes", n_nodes, "--force", "-o", path, NULL};
  if (pl_platform_make_run(7, make) != 0) return 1;
  double simgrid_s = time_shim(path), start_s = bench_wall_s();
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, PACELINE_SOURCE_DIR "/platforms/devices", &platform, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  double load_s = bench_wall_s() - start_s;
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pairs *p = calloc(1, sizeof *p);
  if (p == NULL) return 1;
  choose(p, cluster);
  double cold_s = time_routes(p), hot_s = time_routes(p), threads_s = time_threads(p);
  printf("%u GPUs, %u links; %d routes, %d threads\n", cluster->n_devices, cluster->n_links, (int)ROUTES, (int)THREADS);
  bench_figure(&b, "loading a platform", "SimGrid alone", load_s / simgrid_s);
  bench_figure(&b, "a route for the first time", "again, from the cache", cold_s / hot_s);
  bench_figure(&b, "look-ups of routes, all threads at once", "one thread",
               (double)ROUNDS * THREADS / threads_s * hot_s);
  free(p);
  pl_platform_destroy(platform);
  unlink(path);
  return bench_end(&b);
}
