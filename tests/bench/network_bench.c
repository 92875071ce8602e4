/* The flow network against SimGrid's engine, on the same traffic in one run: the chunked ring all-reduce of 64 and of
 * 256 ranks, and the all-to-all of 64 ranks (every pair at once), the latter with equal and with unequal messages.
 *
 * SimGrid plays in its fastest mode that is right: optim Full, one-sided comms started from completion callbacks, no
 * actors, the latency charged by the comm itself (netmodel/simgrid/simgrid_run.cpp). Both sides are driven by the same
 * code, which keeps the dependencies of the ring, and must agree on every finish date within 1e-9. Times are the best
 * of several runs, without loading the platform. Prints events per second and the ratio. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netmodel/flow/networks.h"
#include "netmodel/simgrid/simgrid_door.h"
#include "tests/support/bench.h"
#include "tests/support/random.h"

enum { REPEATS = 15, MAX_TASKS = 256 * 510 };

/* Task step * n_lanes + lane; a lane is a pair of ranks. In a ring, the send of a lane at a step waits for that lane's
 * and the previous lane's send of the step before. */
typedef struct traffic {
  const char *name;
  uint32_t n_ranks, n_lanes, n_steps;
  uint32_t source[64 * 63], destination[64 * 63];
  double size_bytes[64 * 63]; /* per lane */
} traffic;

/* Shared with the child that runs SimGrid. */
typedef struct outcome {
  double best_s;
  bool done;
  char message[256];
  double finish_s[MAX_TASKS];
} outcome;

static void make_ring(traffic *t, const char *name, uint32_t n) {
  *t = (traffic){.name = name, .n_ranks = n, .n_lanes = n, .n_steps = 2 * (n - 1)};
  for (uint32_t i = 0; i < n; i++) {
    t->source[i] = i;
    t->destination[i] = (i + 1) % n;
    t->size_bytes[i] = 1 << 25;
  }
}

static void make_all_to_all(traffic *t, const char *name, uint32_t n, bool alike) {
  uint64_t state = 1;
  *t = (traffic){.name = name, .n_ranks = n, .n_lanes = n * (n - 1), .n_steps = 1};
  for (uint32_t i = 0, lane = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) {
      if (i == j) continue;
      t->source[lane] = i;
      t->destination[lane] = j;
      t->size_bytes[lane++] = alike ? 1 << 25 : floor(random_log(&state, 1e7, 1e9));
    }
}

/* One SPLITDUPLEX link per rank into a switch without a bound; latency 2^-20 s. */
static void write_platform(const traffic *t, const char *path) {
  FILE *xml = fopen(path, "w");
  if (xml == NULL) {
    perror(path);
    exit(1);
  }
  fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n",
        xml);
  for (uint32_t i = 0; i < t->n_ranks; i++)
    fprintf(xml, "<host id=\"h%u\" speed=\"1Gf\"><prop id=\"device\" value=\"T4\"/></host>\n", i);
  for (uint32_t i = 0; i < t->n_ranks; i++)
    fprintf(xml,
            "<link id=\"l%u\" bandwidth=\"25GBps\" latency=\"9.5367431640625e-07s\" sharing_policy=\"SPLITDUPLEX\"/>\n",
            i);
  for (uint32_t i = 0; i < t->n_lanes; i++)
    fprintf(xml,
            "<route src=\"h%u\" dst=\"h%u\" symmetrical=\"NO\"><link_ctn id=\"l%u\" direction=\"UP\"/>"
            "<link_ctn id=\"l%u\" direction=\"DOWN\"/></route>\n",
            t->source[i], t->destination[i], t->source[i], t->destination[i]);
  fputs("</zone></platform>\n", xml);
  fclose(xml);
}

/* ---- what both sides share: which sends a completion makes ready ---- */

typedef struct drive {
  const traffic *traffic;
  uint8_t *waits; /* per task */
  double *finish_s;
  void *side;
  void (*send)(void *side, uint32_t task, uint32_t lane);
} drive;

static void drive_begin(drive *d) {
  const traffic *t = d->traffic;
  memset(d->waits, 2, t->n_lanes * t->n_steps);
  for (uint32_t lane = 0; lane < t->n_lanes; lane++)
    d->send(d->side, lane, lane);
}

static void drive_release(drive *d, uint32_t step, uint32_t lane) {
  uint32_t task = step * d->traffic->n_lanes + lane;
  if (--d->waits[task] == 0) d->send(d->side, task, lane);
}

static void drive_complete(drive *d, uint32_t task, double time_s) {
  const traffic *t = d->traffic;
  uint32_t step = task / t->n_lanes + 1, lane = task % t->n_lanes;
  d->finish_s[task] = time_s;
  if (step == t->n_steps) return;
  drive_release(d, step, lane);
  drive_release(d, step, lane + 1 == t->n_lanes ? 0 : lane + 1);
}

/* ---- the flow network ---- */

typedef struct native {
  const traffic *traffic;
  pl_network *network;
  pl_ticks now;
} native;

static void native_send(void *side, uint32_t task, uint32_t lane) {
  native *n = side;
  n->network->ops->start(n->network, n->now, task, lane, n->traffic->size_bytes[lane]);
}

static double run_native(const traffic *t, const pl_transfer_table *table, const drive *shared) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  double best_s = INFINITY;
  for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
    double start_s = bench_cpu_s();
    pl_arena_reset(&arena);
    native n = {.traffic = t, .network = pl_flow_network_take(table, &arena)};
    drive own = *shared;
    own.side = &n;
    own.send = native_send;
    drive_begin(&own);
    while ((n.now = n.network->ops->settle(n.network, n.now)) != PL_TICKS_NEVER)
      for (uint32_t task; (task = n.network->ops->advance(n.network, n.now)) != PL_NONE;)
        drive_complete(&own, task, pl_ticks_to_s(n.now));
    n.network->ops->destroy(n.network);
    best_s = fmin(best_s, bench_cpu_s() - start_s);
  }
  pl_arena_release(&arena);
  return best_s;
}

/* ---- SimGrid, in a child per run ---- */

typedef struct foreign {
  const traffic *traffic;
  const uint32_t *device;
  pl_simgrid_door door;
  pl_simgrid_loop *loop;
  drive *drive;
} foreign;

static void foreign_send(void *side, uint32_t task, uint32_t lane) {
  foreign *f = side;
  const traffic *t = f->traffic;
  f->door.send(f->loop, task, f->device[t->source[lane]], f->device[t->destination[lane]], t->size_bytes[lane], 0);
}

static void foreign_begin(void *data, pl_simgrid_loop *loop) {
  foreign *f = data;
  f->loop = loop;
  drive_begin(f->drive);
}

static void foreign_complete(void *data, uint32_t task, double time_s) {
  drive_complete(((foreign *)data)->drive, task, time_s);
}

static void foreign_flush(void *data, double time_s) {
  (void)data, (void)time_s;
}

static void run_foreign(const traffic *t, const pl_cluster *cluster, const uint32_t *device, const drive *shared,
                        outcome *out) {
  const char *hosts[256];
  for (uint32_t i = 0; i < cluster->n_devices; i++)
    hosts[i] = cluster->devices[i].name;
  out->best_s = INFINITY;
  for (uint32_t repeat = 0; repeat < 3; repeat++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      drive own = *shared;
      foreign f = {.traffic = t, .device = device, .drive = &own};
      own.finish_s = out->finish_s;
      own.side = &f;
      own.send = foreign_send;
      const pl_simgrid_loop_options options = {
          .hosts = hosts, .n_hosts = cluster->n_devices, .n_tasks = t->n_lanes * t->n_steps, .rtt = true};
      const pl_simgrid_loop_client client = {foreign_begin, foreign_complete, foreign_flush, &f};
      if (!pl_simgrid_door_open(&f.door, out->message, sizeof out->message)) _exit(1);
      double start_s = bench_cpu_s();
      out->done = f.door.run(&options, &client, out->message, sizeof out->message);
      out->best_s = fmin(out->best_s, bench_cpu_s() - start_s);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static int fail(const char *what) {
  fprintf(stderr, "network_bench: %s\n", what);
  return 1;
}

/* In a child, because a process has one platform. */
static int compare(const traffic *t, bench *b) {
  char path[] = "/tmp/paceline-bench-XXXXXX.xml";
  int file = mkstemps(path, 4);
  if (file < 0) return fail("cannot make a temporary file");
  close(file);
  write_platform(t, path);
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform;
  pl_code code = pl_platform_load(path, NULL, &platform, &error);
  unlink(path);
  if (code == PL_OK) code = pl_platform_need_simgrid(platform, &error);
  if (code != PL_OK) return fail(error.message);
  const pl_cluster *cluster = pl_platform_cluster(platform);
  uint32_t device[256], n_uses = 0, n_tasks = t->n_lanes * t->n_steps;
  for (uint32_t i = 0; i < cluster->n_devices; i++)
    device[atoi(cluster->devices[i].name + 1)] = i;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  double *capacity_Bps = PL_TAKE(&arena, double, cluster->n_links);
  uint8_t *policy = PL_TAKE(&arena, uint8_t, cluster->n_links);
  pl_transfer_spec *specs = PL_TAKE(&arena, pl_transfer_spec, t->n_lanes);
  pl_link_use *uses = PL_TAKE(&arena, pl_link_use, 2 * t->n_lanes);
  for (uint32_t i = 0; i < cluster->n_links; i++)
    capacity_Bps[i] = cluster->links[i].capacity_Bps;
  for (uint32_t lane = 0; lane < t->n_lanes; lane++) {
    pl_link_use *list;
    if (pl_route_spec(cluster, PL_SHARING_RTT, device[t->source[lane]], device[t->destination[lane]], &arena, &list,
                      &specs[lane], &error) != PL_OK)
      return fail(error.message);
    specs[lane].first_use = n_uses;
    for (uint32_t i = 0; i < specs[lane].n_uses; i++)
      uses[n_uses++] = list[i];
  }
  const pl_transfer_table table = {capacity_Bps, policy, cluster->n_links, specs, t->n_lanes, uses, n_uses};
  outcome *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (out == MAP_FAILED) return fail("out of memory");
  double *finish_s = PL_TAKE(&arena, double, n_tasks);
  drive d = {.traffic = t, .waits = PL_TAKE(&arena, uint8_t, n_tasks), .finish_s = finish_s};
  double native_s = run_native(t, &table, &d);
  run_foreign(t, cluster, device, &d, out);
  if (!out->done) return fail(out->message[0] ? out->message : "SimGrid's child ended early");
  double worst = 0;
  for (uint32_t i = 0; i < n_tasks; i++)
    worst = fmax(worst, fabs(finish_s[i] - out->finish_s[i]) / out->finish_s[i]);
  char what[64];
  snprintf(what, sizeof what, "SimGrid's engine, %s", t->name);
  bench_figure(b, what, "flow network", out->best_s / native_s);
  printf("%-32s %8u %10.2f %12.0f %10.2f %12.0f %9.1fx %10.1e\n", t->name, n_tasks, native_s * 1e3, n_tasks / native_s,
         out->best_s * 1e3, n_tasks / out->best_s, out->best_s / native_s, worst);
  return worst <= 1e-9 ? 0 : fail("finish dates differ by more than 1e-9");
}

static int compare_in_child(bench *b, const traffic *t, const char *only) {
  if (only != NULL && strstr(t->name, only) == NULL) return 0;
  b->n_ratios++; /* the child prints it */
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int status = compare(t, b);
    fflush(NULL);
    _exit(status);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}

int main(int argc, char **argv) {
  bench b = bench_begin("network_bench", &argc, argv);
  const char *only = argc > 1 ? argv[1] : NULL;
  static traffic t;
  int status = 0;
  printf("%-32s %8s %10s %12s %10s %12s %10s %10s\n", "", "sends", "flow ms", "sends/s", "SimGrid ms", "sends/s",
         "ratio", "worst diff");
  make_ring(&t, "ring all-reduce, 64 ranks", 64);
  status |= compare_in_child(&b, &t, only);
  if (b.is_small) return status | bench_end(&b);
  make_ring(&t, "ring all-reduce, 256 ranks", 256);
  status |= compare_in_child(&b, &t, only);
  make_all_to_all(&t, "all-to-all, 64 ranks, equal", 64, true);
  status |= compare_in_child(&b, &t, only);
  make_all_to_all(&t, "all-to-all, 64 ranks, unequal", 64, false);
  status |= compare_in_child(&b, &t, only);
  return status | bench_end(&b);
}
