/* Devices that compute slower (or faster) than their profiles say: named ones, and random ones.
 *
 * A factor multiplies what a device takes to compute, for the whole iteration; communication and what its host is late
 * by keep their times. A factor is part of a device's colour, so that folding stays exact: only devices that one entry
 * of --slow names, or none, are folded. Jitter draws a factor exp(sigma z) for every device and draw, z standard
 * normal: its median is 1, and every device differs, so nothing is folded. The draws are those of a counter-based
 * generator (Philox 4x32-10; key: the seed, counter: draw and device), so that they depend on neither threads nor on
 * each other.
 *
 * All runs are of one frozen graph (core/graph/graph_pace.h): the iteration undisturbed, with the named factors,
 * without each named entry in turn, and every draw, with and without its slowest device.
 */
#ifndef PL_WORKLOADS_STRAGGLERS_H
#define PL_WORKLOADS_STRAGGLERS_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/base/ticks.h"
#include "core/cluster/cluster.h"

enum { PL_SLOW_ENTRIES_MAX = 64, PL_DRAWS_DEFAULT = 100, PL_DRAWS_MAX = 1000000 };

typedef struct pl_slow_entry {
  const char *name; /* of a device or a node, or a pattern of either */
  double factor;
  uint32_t n_devices; /* that it decides about and that work */
} pl_slow_entry;

typedef struct pl_stragglers {
  pl_slow_entry entries[PL_SLOW_ENTRIES_MAX];
  uint32_t n_entries;
  bool has_jitter;
  uint64_t seed;
  double sigma;
  uint32_t n_draws;
  /* Per device of the cluster, once they are found: 0, or 1 + the entry that decides. With jitter marks are all
   * different, and `entry_of` has the same. */
  const uint32_t *marks, *entry_of;
  uint32_t n_marks;
} pl_stragglers;

/* Mean and order statistics (interpolated) of the draws. */
typedef struct pl_spread {
  double mean, p5, p50, p95, least, most;
} pl_spread;

typedef struct pl_straggler_draw {
  double time_s;
  uint32_t slowest; /* device of the cluster, of those that work; the first of equals */
  double factor;    /* its own */
  double without_s; /* the iteration if that device had factor 1 */
} pl_straggler_draw;

typedef struct pl_straggling {
  double undisturbed_s, slowed_s;        /* no factor at all; the named ones */
  double without_s[PL_SLOW_ENTRIES_MAX]; /* the named ones but this entry */
  const pl_straggler_draw *draws;        /* n_draws of them; NULL: no jitter */
  uint32_t n_draws;
  pl_spread time_s, cost_s; /* of the draws; what the slowest device of each costs */
} pl_straggling;

static inline bool pl_stragglers_jitter(const pl_stragglers *stragglers) {
  return stragglers != NULL && stragglers->has_jitter;
}

/* `slow` as --slow has it, `jitter` as --jitter ("SEED,SIGMA"), `draws` as --draws; each NULL: not given, `slow` or
 * `jitter` is. Texts are kept in `arena`. */
pl_code pl_stragglers_parse(const char *slow, const char *jitter, const char *draws, pl_arena *arena,
                            pl_stragglers *stragglers, pl_error *error);
/* Which devices the entries name; of entries that name one device the last decides. `works` per device of the cluster.
 * PL_BAD_INPUT: a name that no device and no node has, or that only idle devices have. */
pl_code pl_stragglers_find(pl_stragglers *stragglers, const pl_cluster *cluster, const bool *works, pl_arena *arena,
                           pl_error *error);

/* The factor of jitter alone. */
double pl_jitter_factor(const pl_stragglers *stragglers, uint32_t draw, uint32_t device);

/* Whoever can run the iteration at given factors, one per device of the cluster. */
typedef struct pl_straggler_player {
  void *context;
  pl_code (*play)(void *context, const double *factor, pl_ticks *makespan, pl_error *error);
  const uint32_t *devices; /* that work */
  uint32_t n_devices, n_cluster_devices;
  double remains_factor; /* that times are multiplied by (workloads/run/site_remains.h) */
} pl_straggler_player;

/* n_entries + 2 + 2 n_draws runs. Memory from `arena`. */
pl_code pl_stragglers_measure(const pl_stragglers *stragglers, const pl_straggler_player *player, pl_arena *arena,
                              pl_straggling *straggling, pl_error *error);
/* Fills `factor`, one per device of the cluster, with the named ones. */
void pl_stragglers_named(const pl_stragglers *stragglers, uint32_t n_devices, double *factor);

#endif
