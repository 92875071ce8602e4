/* See workloads/run/stragglers.h. */
#include "workloads/run/stragglers.h"

#include <Random123/philox.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"

/* ---- reading ---- */

static const double most_factor = 1000, most_sigma = 1;

static pl_code read_entry(char *text, pl_slow_entry *entry, pl_error *error) {
  char *equals = strrchr(text, '=');
  if (equals == NULL || equals == text || equals[1] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "--slow: '%.64s' is no DEVICE=FACTOR (e.g. node0_gpu3=1.2, or node7=1.1)",
                   text);
  *equals = '\0';
  entry->name = text;
  PL_TRY(pl_parse_number(equals + 1, "--slow", &entry->factor, error));
  if (entry->factor >= 1 / most_factor && entry->factor <= most_factor) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--slow %.64s=%.32s: a factor of what computing takes is from %g to %g", text,
                 equals + 1, 1 / most_factor, most_factor);
}

static pl_code read_slow(const char *slow, pl_arena *arena, pl_stragglers *stragglers, pl_error *error) {
  char *text = pl_arena_strdup(arena, slow), *rest;
  if (text == NULL) return pl_fail_memory(error, "--slow");
  for (char *word = text; word != NULL; word = rest) {
    rest = strchr(word, ',');
    if (rest != NULL) *rest++ = '\0';
    if (stragglers->n_entries == PL_SLOW_ENTRIES_MAX)
      return pl_fail(error, PL_BAD_INPUT, "--slow: at most %d entries; name nodes, or patterns of names (node*_gpu0)",
                     PL_SLOW_ENTRIES_MAX);
    PL_TRY(read_entry(word, &stragglers->entries[stragglers->n_entries++], error));
  }
  return PL_OK;
}

static pl_code read_jitter(const char *jitter, pl_stragglers *stragglers, pl_error *error) {
  char seed[32];
  const char *comma = strchr(jitter, ',');
  size_t length = comma == NULL ? 0 : (size_t)(comma - jitter);
  if (length == 0 || length >= sizeof(seed))
    return pl_fail(error, PL_BAD_INPUT, "--jitter: '%.64s' is no SEED,SIGMA (e.g. 1,0.03)", jitter);
  memcpy(seed, jitter, length);
  seed[length] = '\0';
  int64_t number;
  PL_TRY(pl_parse_integer(seed, "--jitter: the seed", 0, INT64_MAX, &number, error));
  PL_TRY(pl_parse_number(comma + 1, "--jitter: sigma", &stragglers->sigma, error));
  if (!(stragglers->sigma >= 0 && stragglers->sigma <= most_sigma))
    return pl_fail(error, PL_BAD_INPUT,
                   "--jitter: sigma, of the logarithm of a device's factor, is from 0 to %g, not %s", most_sigma,
                   comma + 1);
  stragglers->seed = (uint64_t)number;
  stragglers->has_jitter = true;
  return PL_OK;
}

pl_code pl_stragglers_parse(const char *slow, const char *jitter, const char *draws, pl_arena *arena,
                            pl_stragglers *stragglers, pl_error *error) {
  *stragglers = (pl_stragglers){.n_draws = 0};
  int64_t n_draws = PL_DRAWS_DEFAULT;
  if (draws != NULL && jitter == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--draws %.32s: of what? Add --jitter SEED,SIGMA", draws);
  if (draws != NULL) PL_TRY(pl_parse_integer(draws, "--draws", 1, PL_DRAWS_MAX, &n_draws, error));
  if (slow != NULL) PL_TRY(read_slow(slow, arena, stragglers, error));
  if (jitter != NULL) PL_TRY(read_jitter(jitter, stragglers, error));
  stragglers->n_draws = jitter == NULL ? 0 : (uint32_t)n_draws;
  return PL_OK;
}

/* ---- devices ---- */

static bool is_named(const char *name, const pl_cluster *cluster, uint32_t device) {
  const char *node = cluster->nodes[cluster->devices[device].node].name;
  return fnmatch(name, cluster->devices[device].name, 0) == 0 || (node != NULL && fnmatch(name, node, 0) == 0);
}

/* Names that a misspelt one may have meant: of devices, then of nodes. */
static pl_code unknown_name(const pl_cluster *cluster, const char *name, pl_arena *arena, pl_error *error) {
  char hint[PL_WORDS_HINT_BYTES];
  const char **names = PL_TAKE(arena, const char *, cluster->n_devices + cluster->n_nodes + 1);
  if (names == NULL) return pl_fail_memory(error, "--slow");
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    names[d] = cluster->devices[d].name;
  for (uint32_t n = 0; n < cluster->n_nodes; n++)
    names[cluster->n_devices + n] = cluster->nodes[n].name == NULL ? "" : cluster->nodes[n].name;
  return pl_fail(error, PL_BAD_INPUT, "--slow: no device and no node of %s is '%.64s'; devices are '%s' to '%s'%s",
                 cluster->path, name, names[0], names[cluster->n_devices - 1], pl_words_hint(names, name, hint));
}

static pl_code check_entry(const pl_slow_entry *entry, const pl_cluster *cluster, const bool *works, pl_arena *arena,
                           pl_error *error) {
  bool is_known = false;
  for (uint32_t d = 0; d < cluster->n_devices; d++) {
    if (!is_named(entry->name, cluster, d)) continue;
    is_known = true;
    if (works[d]) return PL_OK;
  }
  if (!is_known) return unknown_name(cluster, entry->name, arena, error);
  return pl_fail(error, PL_BAD_INPUT, "--slow: '%.64s' takes no part: the strategy leaves it idle", entry->name);
}

pl_code pl_stragglers_find(pl_stragglers *stragglers, const pl_cluster *cluster, const bool *works, pl_arena *arena,
                           pl_error *error) {
  uint32_t n = cluster->n_devices;
  if ((uint64_t)cluster->n_profiles * (stragglers->n_entries + 1) > UINT16_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "--slow: %" PRIu32 " entries on %" PRIu32 " types of devices are too many",
                   stragglers->n_entries, cluster->n_profiles);
  uint32_t *entry_of = PL_TAKE(arena, uint32_t, n), *marks = PL_TAKE(arena, uint32_t, n);
  if (arena->failed) return pl_fail_memory(error, "--slow");
  for (uint32_t e = 0; e < stragglers->n_entries; e++) {
    PL_TRY(check_entry(&stragglers->entries[e], cluster, works, arena, error));
    for (uint32_t d = 0; d < n; d++)
      if (is_named(stragglers->entries[e].name, cluster, d)) entry_of[d] = e + 1;
    stragglers->entries[e].n_devices = 0;
  }
  for (uint32_t d = 0; d < n; d++) {
    marks[d] = stragglers->has_jitter ? d : entry_of[d];
    if (entry_of[d] > 0 && works[d]) stragglers->entries[entry_of[d] - 1].n_devices++;
  }
  stragglers->entry_of = entry_of;
  stragglers->marks = marks;
  stragglers->n_marks = stragglers->has_jitter ? n : stragglers->n_entries + 1;
  return PL_OK;
}

/* ---- random numbers ---- */

/* In (0, 1), of 53 bits. */
static double uniform(uint32_t high, uint32_t low) {
  return ((double)(((uint64_t)high << 32 | low) >> 11) + 0.5) * 0x1p-53;
}

double pl_jitter_factor(const pl_stragglers *stragglers, uint32_t draw, uint32_t device) {
  const philox4x32_ctr_t counter = {{draw, device, 0, 0}};
  const philox4x32_key_t key = {{(uint32_t)stragglers->seed, (uint32_t)(stragglers->seed >> 32)}};
  const philox4x32_ctr_t bits = philox4x32(counter, key);
  double radius = sqrt(-2 * log(uniform(bits.v[0], bits.v[1])));
  double z = radius * cos(2 * M_PI * uniform(bits.v[2], bits.v[3]));
  return exp(stragglers->sigma * z);
}

void pl_stragglers_named(const pl_stragglers *stragglers, uint32_t n_devices, double *factor) {
  for (uint32_t d = 0; d < n_devices; d++) {
    uint32_t entry = stragglers->entry_of[d];
    factor[d] = entry == 0 ? 1 : stragglers->entries[entry - 1].factor;
  }
}

/* ---- measuring ---- */

typedef struct measuring {
  const pl_stragglers *stragglers;
  const pl_straggler_player *player;
  double *factor;
  pl_error *error;
} measuring;

static pl_code play(const measuring *own, double *time_s) {
  pl_ticks makespan;
  PL_TRY(own->player->play(own->player->context, own->factor, &makespan, own->error));
  *time_s = pl_ticks_to_s(makespan) * own->player->remains_factor;
  return PL_OK;
}

static pl_code measure_named(const measuring *own, pl_straggling *straggling) {
  const pl_stragglers *stragglers = own->stragglers;
  uint32_t n = own->player->n_cluster_devices;
  for (uint32_t d = 0; d < n; d++)
    own->factor[d] = 1;
  PL_TRY(play(own, &straggling->undisturbed_s));
  straggling->slowed_s = straggling->undisturbed_s;
  if (stragglers->n_entries == 0) return PL_OK;
  pl_stragglers_named(stragglers, n, own->factor);
  PL_TRY(play(own, &straggling->slowed_s));
  for (uint32_t e = 0; e < stragglers->n_entries; e++) {
    pl_stragglers_named(stragglers, n, own->factor);
    for (uint32_t d = 0; d < n; d++)
      if (stragglers->entry_of[d] == e + 1) own->factor[d] = 1;
    PL_TRY(play(own, &straggling->without_s[e]));
  }
  return PL_OK;
}

static pl_code measure_draw(const measuring *own, uint32_t number, pl_straggler_draw *draw) {
  const pl_straggler_player *player = own->player;
  pl_stragglers_named(own->stragglers, player->n_cluster_devices, own->factor);
  draw->slowest = player->devices[0];
  for (uint32_t i = 0; i < player->n_devices; i++) {
    uint32_t d = player->devices[i];
    own->factor[d] *= pl_jitter_factor(own->stragglers, number, d);
    if (own->factor[d] > own->factor[draw->slowest]) draw->slowest = d;
  }
  draw->factor = own->factor[draw->slowest];
  PL_TRY(play(own, &draw->time_s));
  own->factor[draw->slowest] = 1;
  return play(own, &draw->without_s);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* `share` of the way through the sorted values. */
static double quantile(const double *sorted, uint32_t n, double share) {
  double place = share * (n - 1), below = floor(place);
  uint32_t at = (uint32_t)below, next = at + 1 < n ? at + 1 : at;
  return sorted[at] + (place - below) * (sorted[next] - sorted[at]);
}

/* Sorts them. */
static pl_spread spread_of(double *values, uint32_t n) {
  double sum = 0;
  qsort(values, n, sizeof(*values), compare);
  for (uint32_t i = 0; i < n; i++)
    sum += values[i];
  return (pl_spread){.mean = sum / n,
                     .p5 = quantile(values, n, 0.05),
                     .p50 = quantile(values, n, 0.5),
                     .p95 = quantile(values, n, 0.95),
                     .least = values[0],
                     .most = values[n - 1]};
}

pl_code pl_stragglers_measure(const pl_stragglers *stragglers, const pl_straggler_player *player, pl_arena *arena,
                              pl_straggling *straggling, pl_error *error) {
  uint32_t n = stragglers->n_draws;
  *straggling = (pl_straggling){.n_draws = n};
  measuring own = {.stragglers = stragglers, .player = player, .error = error};
  own.factor = PL_TAKE(arena, double, player->n_cluster_devices);
  pl_straggler_draw *draws = PL_TAKE(arena, pl_straggler_draw, n);
  double *values = PL_TAKE(arena, double, n);
  if (arena->failed) return pl_fail_memory(error, "the draws");
  PL_TRY(measure_named(&own, straggling));
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(measure_draw(&own, i, &draws[i]));
  if (n == 0) return PL_OK;
  straggling->draws = draws;
  for (uint32_t i = 0; i < n; i++)
    values[i] = draws[i].time_s;
  straggling->time_s = spread_of(values, n);
  for (uint32_t i = 0; i < n; i++)
    values[i] = draws[i].time_s - draws[i].without_s;
  straggling->cost_s = spread_of(values, n);
  return PL_OK;
}
