/* How the exact layer assignment grows with layers and stages, and what AMP's dynamic program does beside it. Counts,
 * and times per layer and stage and as a ratio. One run, on one machine. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/bench.h"
#include "tests/support/random.h"
#include "workloads/assign/amp_assignment.h"
#include "workloads/assign/layer_assignment.h"

enum { LARGEST_L = 1000, LARGEST_K = 64, REPEATS = 3, AMP_LARGEST_L = 96, MOST_RATIOS = 128 };

typedef enum shape { ALIKE, UNLIKE_DEVICES, RANDOM, SHAPES } shape;
static const char *const shape_names[SHAPES] = {"like layers and devices", "devices of two speeds", "all random"};

typedef struct prices {
  double time[LARGEST_K][LARGEST_L + 1], cut[LARGEST_K][LARGEST_L + 1], sync[LARGEST_K][LARGEST_L + 1];
  double memory[LARGEST_K][LARGEST_L + 1], room[LARGEST_K];
  const double *times[LARGEST_K], *cuts[LARGEST_K], *syncs[LARGEST_K], *memories[LARGEST_K];
} prices;

/* Transformer layers between an embedding and a head; one unit is a layer. Synchronisation and memory go with the
 * parameters; the embedding has as many as four layers and takes next to no time. */
static void draw(prices *p, int32_t n, int32_t k, shape kind, uint64_t *state) {
  for (int32_t i = 0; i < k; i++) {
    double slower = kind == UNLIKE_DEVICES && i >= 3 * k / 4 ? 2.2 : 1;
    for (int32_t l = 0; l < n; l++) {
      double time = l == 0 ? 0.06 : l == n - 1 ? 1.8 : 1, size = l == 0 || l == n - 1 ? 4 : 1;
      if (kind == RANDOM) {
        time = random_unit(state);
        size = random_unit(state);
      }
      p->time[i][l + 1] = p->time[i][l] + slower * time;
      p->sync[i][l + 1] = p->sync[i][l] + 3 * size;
      p->memory[i][l + 1] = p->memory[i][l] + size * (1 + (double)(k - i) / k);
      p->cut[i][l + 1] = kind == RANDOM ? random_unit(state) : 0.1;
    }
    p->room[i] = 2.5 * (n + 8.0) / k + 5;
    p->times[i] = p->time[i];
    p->cuts[i] = p->cut[i];
    p->syncs[i] = p->sync[i];
    p->memories[i] = p->memory[i];
  }
}

/* AMP's dynamic program on what it can express of the same prices: the first stage's times and all cuts. */
static double amp_ratio(const prices *p, int32_t n, int32_t k, double rounds, double exact_s, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  const pl_amp_problem amp = {.n_layers = n, .n_stages = k, .rounds = rounds, .time_s = p->times[0], .cut_s = p->cuts};
  int32_t boundary[LARGEST_K + 1];
  uint64_t n_steps;
  if (n > AMP_LARGEST_L) return NAN;
  double start_s = bench_cpu_s();
  if (pl_amp_assignment_solve(&amp, arena, boundary, &n_steps, &error) != PL_OK) return NAN;
  return (bench_cpu_s() - start_s) / exact_s;
}

/* The dynamic program's time over this one's; NaN where it is too long for the one or has no words for the case. */
static double run(const prices *p, int32_t n, int32_t k, bool trips) {
  static const double rounds[] = {1, 7, 31, 255};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  double in_flight[LARGEST_K], sum_s = 0;
  uint64_t n_solves[4];
  for (int32_t i = 0; i < k; i++)
    in_flight[i] = k - i;
  for (int r = 0; r < 4; r++) {
    const pl_assignment_problem problem = {.n_layers = n,
                                           .n_stages = k,
                                           .rounds = rounds[r],
                                           .time_s = p->times,
                                           .cut_s = p->cuts,
                                           .sync_s = p->syncs,
                                           .in_flight = trips ? in_flight : NULL,
                                           .memory_bytes = p->memories,
                                           .memory_room_bytes = p->room};
    int32_t boundary[LARGEST_K + 1];
    pl_assignment found = {.boundary = boundary};
    double spent_s = INFINITY;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
      double start_s = bench_cpu_s();
      if (pl_layer_assignment_solve(&problem, &arena, &found, &error) != PL_OK) exit(1);
      spent_s = fmin(spent_s, bench_cpu_s() - start_s);
    }
    n_solves[r] = found.n_solves;
    sum_s += spent_s / 4;
  }
  printf("%6d %6d %8" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %14.1f", n, k, n_solves[0], n_solves[1],
         n_solves[2], n_solves[3], 1e9 * sum_s / ((double)n * k));
  double ratio = trips ? NAN : amp_ratio(p, n, k, 31, sum_s, &arena);
  if (isfinite(ratio)) printf(" %14.0f", ratio);
  printf("\n");
  pl_arena_release(&arena);
  return ratio;
}

int main(int argc, char **argv) {
  bench b = bench_begin("layer_assignment_bench", &argc, argv);
  double ratios[MOST_RATIOS];
  uint32_t n_ratios = 0;
  static const int32_t layers[] = {30, 56, 96, 200, 1000}, stages[] = {2, 4, 8, 16, 32, 64};
  prices *p = calloc(1, sizeof *p);
  uint64_t state = test_seed(1);
  if (p == NULL) return 1;
  for (int kind = 0; kind < SHAPES; kind++)
    for (int trips = 0; trips <= 1; trips++) {
      printf("\n%s%s\nlayers stages  sweeps at 2, 8, 32, 256 microbatches  ns/(L k)  AMP's / this\n", shape_names[kind],
             trips ? ", round trips of 1F1B" : "");
      for (int l = 0; l < (b.is_small ? 1 : 5); l++)
        for (int k = 0; k < 6 && stages[k] <= layers[l]; k++) {
          draw(p, layers[l], stages[k], (shape)kind, &state);
          double ratio = run(p, layers[l], stages[k], trips);
          if (isfinite(ratio)) ratios[n_ratios++] = ratio;
        }
    }
  free(p);
  bench_ratio(&b, "AMP's dynamic program, over layers and stages", "exact layer assignment", ratios, n_ratios);
  return bench_end(&b);
}
