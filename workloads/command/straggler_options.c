/* See workloads/command/straggler_options.h. */
#include "workloads/command/straggler_options.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/units.h"

enum { KEY_SLOW = 0x500, KEY_JITTER, KEY_DRAWS, SHOWN_DEVICES = 5 };

static const struct argp_option option_table[] = {
    {"slow", KEY_SLOW, "DEVICE=FACTOR,...", 0,
     "devices that take FACTOR times as long to compute: by name, by node, or by a pattern of either "
     "(node*_gpu0=1.05); "
     "of entries that name one device the last decides",
     3},
    {"jitter", KEY_JITTER, "SEED,SIGMA", 0,
     "draw a factor exp(SIGMA z), z standard normal, for every device, and tell how the iteration time spreads "
     "(unfolded: every device differs)",
     3},
    {"draws", KEY_DRAWS, "N", 0, "of --jitter (default 100)", 3},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_straggler_options *options = state->input;
  switch (key) {
  case KEY_SLOW:
    options->slow = value;
    return 0;
  case KEY_JITTER:
    options->jitter = value;
    return 0;
  case KEY_DRAWS:
    options->draws = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp pl_straggler_options_argp = {.options = option_table, .parser = read_option};

pl_code pl_straggler_options_parse(pl_straggler_options *options, pl_arena *arena, pl_error *error) {
  if (!pl_straggler_options_are_given(options)) return PL_OK;
  return pl_stragglers_parse(options->slow, options->jitter, options->draws, arena, &options->stragglers, error);
}

pl_code pl_straggler_options_place(pl_straggler_options *options, const pl_cluster *cluster,
                                   const pl_strategy *strategy, uint32_t n_working, pl_arena *arena,
                                   pl_simulate_options *simulate, pl_error *error) {
  if (!pl_straggler_options_are_given(options)) return PL_OK;
  bool *works = PL_TAKE(arena, bool, cluster->n_devices);
  if (works == NULL) return pl_fail_memory(error, "the devices");
  for (uint32_t i = 0; i < (strategy == NULL ? n_working : pl_strategy_n_ranks(strategy)); i++)
    works[strategy == NULL ? i : pl_strategy_device_of_rank(strategy, i)] = true;
  PL_TRY(pl_stragglers_find(&options->stragglers, cluster, works, arena, error));
  simulate->stragglers = &options->stragglers;
  simulate->straggling = &options->straggling;
  return PL_OK;
}

/* ---- text ---- */

static void print_named(FILE *stream, const pl_straggler_options *options) {
  const pl_stragglers *stragglers = &options->stragglers;
  const pl_straggling *found = &options->straggling;
  char time[PL_UNIT_TEXT_BYTES], cost[PL_UNIT_TEXT_BYTES];
  if (stragglers->n_entries == 0) return;
  fprintf(stream, "  %-22s %10s  %+.2f %%\n", "with these", pl_format_time(found->slowed_s, time),
          100 * (found->slowed_s / found->undisturbed_s - 1));
  for (uint32_t e = 0; e < stragglers->n_entries; e++) {
    const pl_slow_entry *entry = &stragglers->entries[e];
    double saved = found->slowed_s - found->without_s[e];
    fprintf(stream, "  without %-14s %10s  costs %s (x%g on %" PRIu32 " device%s)\n", entry->name,
            pl_format_time(found->without_s[e], time), pl_format_time(saved, cost), entry->factor, entry->n_devices,
            entry->n_devices == 1 ? "" : "s");
  }
}

static void print_spread(FILE *stream, const char *what, const pl_spread *spread) {
  char mean[PL_UNIT_TEXT_BYTES], p5[PL_UNIT_TEXT_BYTES], p50[PL_UNIT_TEXT_BYTES], p95[PL_UNIT_TEXT_BYTES],
      least[PL_UNIT_TEXT_BYTES], most[PL_UNIT_TEXT_BYTES];
  fprintf(stream, "  %-22s mean %s, p5 %s, p50 %s, p95 %s, least %s, most %s\n", what,
          pl_format_time(spread->mean, mean), pl_format_time(spread->p5, p5), pl_format_time(spread->p50, p50),
          pl_format_time(spread->p95, p95), pl_format_time(spread->least, least), pl_format_time(spread->most, most));
}

/* What a device that was the slowest of some draws cost there, together. */
typedef struct culprit {
  uint32_t device, n_draws;
  double cost_s;
} culprit;

static int by_device(const void *a, const void *b) {
  const pl_straggler_draw *x = a, *y = b;
  return (x->slowest > y->slowest) - (x->slowest < y->slowest);
}

static int by_cost(const void *a, const void *b) {
  const culprit *x = a, *y = b;
  if (x->cost_s != y->cost_s) return x->cost_s < y->cost_s ? 1 : -1;
  return (x->device > y->device) - (x->device < y->device);
}

/* Devices by what they cost, most first; NULL: no memory. The caller frees. */
static culprit *find_culprits(const pl_straggling *found, uint32_t *n) {
  pl_straggler_draw *draws = calloc(found->n_draws, sizeof(*draws));
  culprit *culprits = calloc(found->n_draws, sizeof(*culprits));
  *n = 0;
  if (draws != NULL && culprits != NULL) {
    for (uint32_t i = 0; i < found->n_draws; i++)
      draws[i] = found->draws[i];
    qsort(draws, found->n_draws, sizeof(*draws), by_device);
    for (uint32_t i = 0; i < found->n_draws; i++) {
      if (*n == 0 || culprits[*n - 1].device != draws[i].slowest) culprits[(*n)++] = (culprit){draws[i].slowest, 0, 0};
      culprits[*n - 1].n_draws++;
      culprits[*n - 1].cost_s += draws[i].time_s - draws[i].without_s;
    }
    qsort(culprits, *n, sizeof(*culprits), by_cost);
  }
  free(draws);
  return culprits;
}

static void print_draws(FILE *stream, const pl_straggler_options *options, const pl_cluster *cluster) {
  const pl_straggling *found = &options->straggling;
  char time[PL_UNIT_TEXT_BYTES];
  uint32_t n;
  fprintf(stream, "  %" PRIu32 " draws, sigma %g, seed %" PRIu64 "; every device differs, so nothing is folded\n",
          found->n_draws, options->stragglers.sigma, options->stragglers.seed);
  print_spread(stream, "iteration", &found->time_s);
  fprintf(stream, "  %-22s %+.2f %% in the mean\n", "against undisturbed",
          100 * (found->time_s.mean / found->undisturbed_s - 1));
  print_spread(stream, "slowest device costs", &found->cost_s);
  culprit *culprits = find_culprits(found, &n);
  for (uint32_t i = 0; culprits != NULL && i < n && i < SHOWN_DEVICES; i++)
    fprintf(stream, "  %-22s slowest of %" PRIu32 " draw%s, where it costs %s in the mean\n",
            cluster->devices[culprits[i].device].name, culprits[i].n_draws, culprits[i].n_draws == 1 ? "" : "s",
            pl_format_time(culprits[i].cost_s / culprits[i].n_draws, time));
  if (n > SHOWN_DEVICES) fprintf(stream, "  and %" PRIu32 " devices more (--json has every draw)\n", n - SHOWN_DEVICES);
  free(culprits);
}

void pl_stragglers_print(FILE *stream, const pl_straggler_options *options, const pl_cluster *cluster) {
  char time[PL_UNIT_TEXT_BYTES];
  if (!pl_straggler_options_are_given(options)) return;
  fprintf(stream, "\nstragglers (factors of what computing takes; one graph, played again)\n");
  fprintf(stream, "  %-22s %10s\n", "undisturbed", pl_format_time(options->straggling.undisturbed_s, time));
  print_named(stream, options);
  if (options->stragglers.has_jitter) print_draws(stream, options, cluster);
}

/* ---- JSON ---- */

static void put_spread(pl_json *json, const char *key, const pl_spread *spread) {
  pl_json_key(json, key);
  pl_json_open_object(json);
  pl_json_put_number(json, "mean", spread->mean);
  pl_json_put_number(json, "p5", spread->p5);
  pl_json_put_number(json, "p50", spread->p50);
  pl_json_put_number(json, "p95", spread->p95);
  pl_json_put_number(json, "least", spread->least);
  pl_json_put_number(json, "most", spread->most);
  pl_json_close_object(json);
}

static void put_slow(pl_json *json, const pl_stragglers *stragglers, const pl_straggling *found) {
  pl_json_key(json, "slow");
  pl_json_open_array(json);
  for (uint32_t e = 0; e < stragglers->n_entries; e++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "devices", stragglers->entries[e].name);
    pl_json_put_integer(json, "n_devices", stragglers->entries[e].n_devices);
    pl_json_put_number(json, "factor", stragglers->entries[e].factor);
    pl_json_put_number(json, "without_s", found->without_s[e]);
    pl_json_put_number(json, "cost_s", found->slowed_s - found->without_s[e]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_jitter(pl_json *json, const pl_stragglers *stragglers, const pl_straggling *found,
                       const pl_cluster *cluster) {
  pl_json_key(json, "jitter");
  pl_json_open_object(json);
  pl_json_put_integer(json, "seed", (int64_t)stragglers->seed);
  pl_json_put_number(json, "sigma", stragglers->sigma);
  pl_json_put_integer(json, "n_draws", found->n_draws);
  put_spread(json, "iter_time_s", &found->time_s);
  put_spread(json, "slowest_device_cost_s", &found->cost_s);
  pl_json_key(json, "draws");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < found->n_draws; i++) {
    const pl_straggler_draw *draw = &found->draws[i];
    pl_json_open_object(json);
    pl_json_put_number(json, "iter_time_s", draw->time_s);
    pl_json_put_string(json, "slowest", cluster->devices[draw->slowest].name);
    pl_json_put_number(json, "factor", draw->factor);
    pl_json_put_number(json, "without_s", draw->without_s);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  pl_json_close_object(json);
}

void pl_stragglers_json(pl_json *json, const pl_straggler_options *options, const pl_cluster *cluster) {
  if (!pl_straggler_options_are_given(options)) return;
  pl_json_key(json, "stragglers");
  pl_json_open_object(json);
  pl_json_put_number(json, "undisturbed_s", options->straggling.undisturbed_s);
  pl_json_put_number(json, "slowed_s", options->straggling.slowed_s);
  put_slow(json, &options->stragglers, &options->straggling);
  if (options->stragglers.has_jitter) put_jitter(json, &options->stragglers, &options->straggling, cluster);
  pl_json_close_object(json);
}
