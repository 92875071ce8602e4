/* What a large platform costs: loading against SimGrid's own share of it, and routes, cold and from the cache.
 *
 *   platform_bench [NODES]     DGX A100 nodes, 2048 by default (16,384 GPUs)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "netmodel/platform.h"
#include "netmodel/platform_make.h"
#include "netmodel/simgrid_shim.h"
#include "tests/support/random.h"

enum { ROUTES = 50000, THREADS = 4, ROUNDS = 20 };

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In a child: an engine of its own, and nothing warmed up for the other measurement. */
static double time_shim(const char *path) {
  int channel[2];
  double time_s = 0;
  if (pipe(channel) != 0) exit(1);
  if (fork() == 0) {
    char message[256];
    pl_shim *shim;
    double start_s = now_s();
    if (pl_shim_load(path, &shim, message, sizeof message) != PL_SHIM_OK) _exit(1);
    time_s = now_s() - start_s;
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
  double start_s = now_s();
  for (uint32_t i = 0; i < ROUTES; i++) {
    pl_route route;
    pl_error error = PL_ERROR_INIT;
    if (pl_cluster_route(p->cluster, p->source[i], p->destination[i], &route, &error) != PL_OK) {
      fprintf(stderr, "%s\n", error.message);
      exit(1);
    }
    p->n_links += route.n_links;
  }
  return now_s() - start_s;
}

static void *look_up(void *argument) {
  pairs own = *(const pairs *)argument;
  for (int round = 0; round < ROUNDS; round++)
    time_routes(&own);
  return NULL;
}

static double time_threads(pairs *p) {
  pthread_t threads[THREADS];
  double start_s = now_s();
  for (int t = 0; t < THREADS; t++)
    if (pthread_create(&threads[t], NULL, look_up, p) != 0) exit(1);
  for (int t = 0; t < THREADS; t++)
    pthread_join(threads[t], NULL);
  return now_s() - start_s;
}

int main(int argc, char **argv) {
  char path[] = "/tmp/platform_bench_XXXXXX.xml";
  close(mkstemps(path, 4));
  char *make[] = {"platform make", "dgx-a100", "--nodes", argc > 1 ? argv[1] : "2048", "--force", "-o", path, NULL};
  if (pl_platform_make_run(7, make) != 0) return 1;
  double simgrid_s = time_shim(path), start_s = now_s();
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, PACELINE_SOURCE_DIR "/platforms/devices", &platform, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  double load_s = now_s() - start_s;
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pairs *p = calloc(1, sizeof *p);
  if (p == NULL) return 1;
  choose(p, cluster);
  double cold_s = time_routes(p), hot_s = time_routes(p), threads_s = time_threads(p);
  printf("%u GPUs, %u links: load %.3f s, SimGrid alone %.3f s: ratio %.2f\n", cluster->n_devices, cluster->n_links,
         load_s, simgrid_s, load_s / simgrid_s);
  printf("%d routes: first time %.1f ms, again %.2f ms (%.0f ns each): ratio %.1f\n", (int)ROUTES, cold_s * 1e3,
         hot_s * 1e3, hot_s / ROUTES * 1e9, cold_s / hot_s);
  printf("%d threads at once: %.1f look-ups/us, 1 thread %.1f: ratio %.2f\n", (int)THREADS,
         (double)ROUTES * ROUNDS * THREADS / threads_s * 1e-6, ROUTES / hot_s * 1e-6,
         (double)ROUNDS * THREADS / threads_s * hot_s);
  free(p);
  pl_platform_destroy(platform);
  unlink(path);
  return 0;
}
