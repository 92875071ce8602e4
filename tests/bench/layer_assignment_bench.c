/* How the exact layer assignment grows with layers and stages, and what AMP's dynamic program does beside it. Counts,
 * and times as ratios to one sweep over all layers and stages of the same size. One run, on one machine. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/random.h"
#include "workloads/layer_assignment.h"

enum { LARGEST_L = 1000, LARGEST_K = 64, REPEATS = 5 };

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

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

static void run(prices *p, int32_t n, int32_t k, shape kind, uint64_t *state) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  double least_s = INFINITY, rounds[] = {1, 3, 31, 255};
  uint64_t most = 0;
  draw(p, n, k, kind, state);
  printf("%5d %4d", n, k);
  for (int r = 0; r < 4; r++) {
    const pl_assignment_problem problem = {.n_layers = n,
                                           .n_stages = k,
                                           .rounds = rounds[r],
                                           .time_s = p->times,
                                           .cut_s = p->cuts,
                                           .sync_s = p->syncs,
                                           .memory_bytes = p->memories,
                                           .memory_room_bytes = p->room};
    int32_t boundary[LARGEST_K + 1];
    pl_assignment found = {.boundary = boundary};
    double spent_s = INFINITY;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
      double start_s = now_s();
      if (pl_layer_assignment_solve(&problem, &arena, &found, &error) != PL_OK) exit(1);
      spent_s = fmin(spent_s, now_s() - start_s);
    }
    printf("  %5" PRIu64 "%s %8.3f ms", found.n_solves, found.feasible ? " " : "-", 1e3 * spent_s);
    least_s = fmin(least_s, spent_s);
    if (found.n_solves > most) most = found.n_solves;
  }
  printf("\n");
  pl_arena_release(&arena);
}

int main(void) {
  static const int32_t layers[] = {30, 56, 96, 200, 1000}, stages[] = {2, 4, 8, 16, 32, 64};
  prices *p = calloc(1, sizeof *p);
  uint64_t state = test_seed(1);
  if (p == NULL) return 1;
  for (int kind = 0; kind < SHAPES; kind++) {
    printf("%s\n", shape_names[kind]);
    for (int l = 0; l < 5; l++)
      for (int k = 0; k < 6 && stages[k] <= layers[l]; k++)
        run(p, layers[l], stages[k], (shape)kind, &state);
  }
  free(p);
  return 0;
}
