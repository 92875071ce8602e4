/* How far the fluid form of a collective is from its chunked form: prints the two tables of
 * netmodel/collective/FLUID_AND_CHUNKED.md, which tests/golden/fluid_chunked_table.sh compares with what stands there.
 * Simulated time only, so the figures are the same everywhere.
 *
 * Nodes as in a DGX-A100: NVSwitch ports of 300 GB/s, a NIC of 25 GB/s per GPU, 2 us per hop inside, 6 us across, 0.5
 * us per step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/bench.h"
#include "tests/support/collective_run.h"
#include "tests/support/synthetic_cluster.h"

enum { MOST_MEMBERS = 64 };

typedef struct shape {
  const char *name;
  uint32_t n_nodes, per_node;
} shape;

static const shape shapes[] = {
    {"2 in a node", 1, 2}, {"4 in a node", 1, 4}, {"8 in a node", 1, 8}, {"16 in a node", 1, 16},
    {"2 nodes x 1", 2, 1}, {"4 nodes x 1", 4, 1}, {"8 nodes x 1", 8, 1}, {"16 nodes x 1", 16, 1},
    {"2 nodes x 8", 2, 8}, {"4 nodes x 8", 4, 8},
};
static const double sizes_bytes[] = {65536, 1048576, 33554432, 1073741824};
static const char *const size_names[] = {"64 KiB", "1 MiB", "32 MiB", "1 GiB"};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, N_SIZES = sizeof sizes_bytes / sizeof *sizes_bytes };

typedef struct stage {
  pl_cluster *cluster;
  pl_arena arena;
} stage;

static stage set_up(const shape *s) {
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = s->n_nodes;
  options.gpus_per_node = options.nics_per_node = s->per_node > 8 ? s->per_node : 8;
  stage made = {.cluster = synthetic_cluster_create(&options)};
  pl_arena_init(&made.arena, 0);
  return made;
}

static void tear_down(stage *s) {
  pl_arena_release(&s->arena);
  synthetic_cluster_release(s->cluster);
}

/* `per_node` GPUs of each of the first `n_nodes` nodes. */
static pl_collective_group *take(stage *s, uint32_t n_nodes, uint32_t per_node, pl_collective_algorithm algorithm) {
  uint32_t members[MOST_MEMBERS], n = 0;
  for (uint32_t node = 0; node < n_nodes; node++)
    for (uint32_t gpu = 0; gpu < per_node; gpu++)
      members[n++] = s->cluster->nodes[node].first_device + gpu;
  pl_collective_options options = {.algorithm = algorithm, .step_overhead_s = 0.5e-6};
  pl_collective_group *group;
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_group_take(s->cluster, members, n, &options, &s->arena, &group, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  return group;
}

/* Per cent by which each job takes longer (+) or shorter (-) when all are fluid than when all are chunked. */
static void compare(const stage *s, const collective_job *jobs, uint32_t n_jobs, uint32_t chunks, double *difference) {
  collective_job fluid[4], chunked[4];
  for (uint32_t i = 0; i < n_jobs; i++) {
    fluid[i] = chunked[i] = jobs[i];
    fluid[i].chunks = 0;
    chunked[i].chunks = chunks;
  }
  collective_run(s->cluster, fluid, n_jobs);
  collective_run(s->cluster, chunked, n_jobs);
  for (uint32_t i = 0; i < n_jobs; i++) {
    double took = (double)(chunked[i].finish - jobs[i].start);
    difference[i] = 100 * ((double)(fluid[i].finish - jobs[i].start) - took) / took;
  }
}

/* No "-0.0". */
static double shown(double difference) {
  return fabs(difference) < 0.05 ? 0 : difference;
}

static void print_pair(const double *difference) {
  printf(" %+.1f / %+.1f |", shown(difference[0]), shown(difference[1]));
}

/* This and ring_and_send answer the ring's time, fluid over chunked. */
static double ring_alone(const shape *s, double size_bytes) {
  double difference[1];
  stage st = set_up(s);
  collective_job job = {.group = take(&st, s->n_nodes, s->per_node, PL_ALGORITHM_RING), .size_bytes = size_bytes};
  compare(&st, &job, 1, 1, difference);
  printf(" %+.1f |", shown(difference[0]));
  tear_down(&st);
  return 1 + difference[0] / 100;
}

/* The same ring twice, the second one starting when the first has done 40 % alone. */
static void two_rings(const shape *s, double size_bytes) {
  double difference[2];
  stage st = set_up(s);
  pl_collective_group *group = take(&st, s->n_nodes, s->per_node, PL_ALGORITHM_RING);
  collective_job jobs[2] = {{.group = group, .size_bytes = size_bytes}, {.group = group, .size_bytes = size_bytes}};
  collective_run(st.cluster, jobs, 1);
  jobs[1].start = jobs[0].finish * 2 / 5;
  compare(&st, jobs, 2, 1, difference);
  print_pair(difference);
  tear_down(&st);
}

/* A send over the first hop of the ring, half as large as what the ring moves over it. */
static double ring_and_send(const shape *s, double size_bytes) {
  double difference[2];
  stage st = set_up(s);
  pl_collective_group *group = take(&st, s->n_nodes, s->per_node, PL_ALGORITHM_RING);
  pl_collective_group *pair = s->n_nodes > 1 ? take(&st, 2, 1, PL_ALGORITHM_AUTO) : take(&st, 1, 2, PL_ALGORITHM_AUTO);
  collective_job jobs[2] = {
      {.group = group, .size_bytes = size_bytes},
      {.group = pair, .kind = PL_SEND, .size_bytes = size_bytes / pl_collective_group_channels(group)},
  };
  compare(&st, jobs, 2, 1, difference);
  print_pair(difference);
  tear_down(&st);
  return 1 + difference[0] / 100;
}

/* The wire out of the last member at a quarter of its speed; a second ring over the first half of the members, which
 * does not use it. */
static void slow_link(const shape *s, double size_bytes) {
  double difference[2];
  stage st = set_up(s);
  pl_collective_group *group = take(&st, s->n_nodes, s->per_node, PL_ALGORITHM_RING), *half;
  if (s->n_nodes * s->per_node < 4) {
    printf(" |");
    tear_down(&st);
    return;
  }
  half = s->n_nodes > 1 ? take(&st, s->n_nodes / 2, s->per_node, PL_ALGORITHM_RING)
                        : take(&st, 1, s->per_node / 2, PL_ALGORITHM_RING);
  char name[64];
  snprintf(name, sizeof name, s->n_nodes > 1 ? "n%u_nic%u_up" : "n%u_g%u_nv_up", s->n_nodes - 1, s->per_node - 1);
  synthetic_cluster_scale_link(st.cluster, synthetic_cluster_link(st.cluster, name), 0.25);
  collective_job jobs[2] = {{.group = group, .size_bytes = size_bytes}, {.group = half, .size_bytes = size_bytes}};
  compare(&st, jobs, 2, 1, difference);
  print_pair(difference);
  tear_down(&st);
}

static void rings(bench *b) {
  double alone[N_SHAPES * N_SIZES], beside[N_SHAPES * N_SIZES];
  uint32_t n = 0;
  printf("| ring all-reduce | size | alone | two rings, staggered | ring / send | slow link: ring / second ring |\n"
         "|---|---|---|---|---|---|\n");
  for (int s = 0; s < N_SHAPES; s++)
    for (int i = 0; i < N_SIZES; i++) {
      printf("| %s | %s |", shapes[s].name, size_names[i]);
      alone[n] = ring_alone(&shapes[s], sizes_bytes[i]);
      two_rings(&shapes[s], sizes_bytes[i]);
      beside[n++] = ring_and_send(&shapes[s], sizes_bytes[i]);
      slow_link(&shapes[s], sizes_bytes[i]);
      printf("\n");
    }
  bench_ratio(b, "ring all-reduce alone, fluid, simulated", "chunked", alone, n);
  bench_ratio(b, "ring all-reduce beside a send, fluid, simulated", "chunked", beside, n);
}

typedef struct method {
  const char *name;
  pl_collective_kind kind;
  pl_collective_algorithm algorithm;
} method;

/* Pieces per message of pipelined algorithms, by size: no piece below 64 KiB, at most 64. */
static const uint32_t pieces[] = {1, 16, 64, 64};

static void others(void) {
  static const method methods[] = {
      {"reduce-scatter, ring", PL_REDUCE_SCATTER, PL_ALGORITHM_RING},
      {"broadcast, ring", PL_BROADCAST, PL_ALGORITHM_RING},
      {"broadcast, tree", PL_BROADCAST, PL_ALGORITHM_TREE},
      {"all-reduce, tree", PL_ALL_REDUCE, PL_ALGORITHM_TREE},
      {"all-reduce, hierarchical", PL_ALL_REDUCE, PL_ALGORITHM_HIERARCHICAL},
      {"all-reduce, direct", PL_ALL_REDUCE, PL_ALGORITHM_DIRECT},
      {"all-to-all, direct", PL_ALL_TO_ALL, PL_ALGORITHM_DIRECT},
  };
  static const shape three[] = {{"", 1, 8}, {"", 8, 1}, {"", 4, 8}};
  printf("| alone | size | 8 in a node | 8 nodes x 1 | 4 nodes x 8 |\n|---|---|---|---|---|\n");
  for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
    for (int i = 0; i < N_SIZES; i++) {
      printf("| %s | %s |", methods[m].name, size_names[i]);
      for (int s = 0; s < 3; s++) {
        double difference[1];
        stage st = set_up(&three[s]);
        bool pipelined = methods[m].kind == PL_BROADCAST || methods[m].algorithm == PL_ALGORITHM_TREE;
        collective_job job = {.group = take(&st, three[s].n_nodes, three[s].per_node, methods[m].algorithm),
                              .kind = methods[m].kind,
                              .size_bytes = sizes_bytes[i]};
        compare(&st, &job, 1, pipelined ? pieces[i] : 1, difference);
        printf(" %+.1f |", shown(difference[0]));
        tear_down(&st);
      }
      printf("\n");
    }
}

int main(int argc, char **argv) {
  bench b = bench_begin("fluid_chunked_bench", &argc, argv);
  rings(&b);
  printf("\n");
  others();
  return bench_end(&b);
}
