/* See search/method/remedy.h. */
#include "search/method/remedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/bound/lower_bound.h"
#include "workloads/assign/assign.h"

enum { MOST_TIMES = 64, MOST_DEVICES = 16384, CHOICES_BYTES = 512 };

/* The first candidate of a space that fits, as text in `found`; empty: none does. */
static pl_code find_fitting(const pl_search_problem *problem, pl_space *space, pl_arena *kept, char *found, size_t size,
                            pl_error *error) {
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_block_cache blocks;
  pl_block_cache_init(&blocks, PL_BLOCK_CACHE_ALL);
  pl_simulate_options options = *problem->options;
  options.blocks = &blocks;
  options.chunked = true; /* times of communication are not asked for, and so need no routes */
  pl_lower_bounds *bounds = pl_lower_bounds_take(problem->cluster, problem->model, problem->job, &options, kept);
  pl_code code = bounds == NULL ? pl_fail_memory(error, "the search for what would fit") : PL_OK;
  found[0] = '\0';
  for (uint32_t i = 0; code == PL_OK && i < space->n_candidates && found[0] == '\0'; i++) {
    pl_strategy strategy;
    pl_lower_bound bound;
    pl_arena_reset(&scratch);
    pl_space_strategy(space, i, &strategy);
    code = pl_assign(&strategy, problem->model, problem->job, problem->cluster, &options, &scratch, error);
    if (code == PL_OK) code = pl_lower_bound_of(bounds, &strategy, &bound, error);
    if (code == PL_OK && bound.shortfall_bytes <= 0) pl_space_format_candidate(space, i, found, size);
  }
  pl_lower_bounds_release(bounds);
  pl_block_cache_release(&blocks);
  pl_arena_release(&scratch);
  return code;
}

/* The same under these choices on this cluster. */
static pl_code try_choices(const pl_search_problem *problem, const pl_cluster *cluster, const pl_space_choices *choices,
                           char *found, size_t size, pl_error *error) {
  pl_arena kept;
  pl_arena_init(&kept, 0);
  pl_search_problem other = *problem;
  other.cluster = cluster;
  pl_space space;
  pl_code code = pl_space_take(problem->model, problem->job, cluster->n_devices, choices, NULL, &kept, &space, error);
  if (code == PL_OK) code = find_fitting(&other, &space, &kept, found, size, error);
  pl_arena_release(&kept);
  return code;
}

/* ---- choices ---- */

/* What a user who names no dimension has. */
static pl_space_choices unrestricted(const pl_search_problem *problem) {
  pl_space_choices all;
  pl_space_choices_init(&all);
  all.only_offered = problem->choices->only_offered;
  all.allow_idle = problem->choices->allow_idle;
  pl_space_choices_adopt(&all, problem->job);
  return all;
}

typedef struct relaxation {
  const char *option;
  void (*relax)(pl_space_choices *choices, const pl_space_choices *all);
} relaxation;

static void relax_recompute(pl_space_choices *choices, const pl_space_choices *all) {
  choices->recomputes = all->recomputes;
}
static void relax_sp(pl_space_choices *choices, const pl_space_choices *all) {
  choices->sp = all->sp;
}
static void relax_mbs(pl_space_choices *choices, const pl_space_choices *all) {
  choices->mbs = all->mbs;
}
static void relax_zero(pl_space_choices *choices, const pl_space_choices *all) {
  choices->zero = all->zero;
}
static void relax_schedule(pl_space_choices *choices, const pl_space_choices *all) {
  choices->schedules = all->schedules;
}
static void relax_experts(pl_space_choices *choices, const pl_space_choices *all) {
  choices->ep = all->ep;
}
static void relax_degrees(pl_space_choices *choices, const pl_space_choices *all) {
  choices->pp = all->pp;
  choices->dp = all->dp;
  choices->tmp = all->tmp;
}
static void relax_all(pl_space_choices *choices, const pl_space_choices *all) {
  *choices = *all;
}

/* What a space holds only where it is asked for. */
static void name_stages(pl_space_choices *choices, const pl_space_choices *all) {
  *choices = *all;
  choices->zero = (pl_int_set){.n_ranges = 1, .lowest = {0}, .highest = {3}};
}
static void name_context(pl_space_choices *choices, const pl_space_choices *all) {
  *choices = *all;
  choices->cp = (pl_int_set){.n_ranges = 4, .lowest = {2, 4, 8, 16}, .highest = {2, 4, 8, 16}};
}

static const relaxation relaxations[] = {{"all of --recompute", relax_recompute},
                                         {"all of --sp", relax_sp},
                                         {"all of --mbs", relax_mbs},
                                         {"all of --zero", relax_zero},
                                         {"all of --schedule", relax_schedule},
                                         {"all of --ep", relax_experts},
                                         {"all of --pp, --dp and --tmp", relax_degrees},
                                         {"no restriction", relax_all},
                                         {"--zero 0-3", name_stages},
                                         {"--cp 2,4,8,16", name_context}};

static bool is_same_space(const pl_space_choices *a, const pl_space_choices *b) {
  char texts[2][CHOICES_BYTES];
  int length = pl_space_format_choices(a, texts[0], sizeof texts[0]);
  pl_space_format_choices(b, texts[1], sizeof texts[1]);
  return length < CHOICES_BYTES && strcmp(texts[0], texts[1]) == 0; /* longer ones may differ behind what is there */
}

static pl_code try_relaxations(const pl_search_problem *problem, char text[PL_REMEDY_BYTES], bool *done,
                               pl_error *error) {
  const pl_space_choices all = unrestricted(problem);
  char found[256];
  for (size_t i = 0; i < sizeof relaxations / sizeof *relaxations; i++) {
    pl_space_choices choices = *problem->choices;
    relaxations[i].relax(&choices, &all);
    if (is_same_space(&choices, problem->choices)) continue;
    PL_TRY(try_choices(problem, problem->cluster, &choices, found, sizeof found, error));
    if (found[0] == '\0') continue;
    snprintf(text, PL_REMEDY_BYTES, "with %s, %s would fit", relaxations[i].option, found);
    *done = true;
    return PL_OK;
  }
  return PL_OK;
}

/* ---- devices ---- */

/* `times` clusters side by side, as far as bounds on memory look. */
static pl_code try_devices(const pl_search_problem *problem, uint32_t times, char *found, size_t size,
                           pl_error *error) {
  pl_cluster cluster = *problem->cluster;
  uint32_t n = cluster.n_devices;
  pl_device *devices = calloc((size_t)n * times, sizeof *devices);
  if (devices == NULL) return pl_fail_memory(error, "the search for what would fit");
  for (uint32_t i = 0; i < n * times; i++)
    devices[i] = problem->cluster->devices[i % n];
  cluster.devices = devices;
  cluster.n_devices = n * times;
  const pl_space_choices all = unrestricted(problem);
  pl_code code = try_choices(problem, &cluster, &all, found, size, error);
  free(devices);
  return code;
}

pl_code pl_remedy_find(const pl_search_problem *problem, char text[PL_REMEDY_BYTES], pl_error *error) {
  bool done = false;
  char found[256] = "";
  PL_TRY(try_relaxations(problem, text, &done, error));
  if (done) return PL_OK;
  uint32_t n = problem->cluster->n_devices;
  for (uint32_t times = 2; times <= MOST_TIMES && n * times <= MOST_DEVICES; times *= 2) {
    PL_TRY(try_devices(problem, times, found, sizeof found, error));
    if (found[0] == '\0') continue;
    snprintf(text, PL_REMEDY_BYTES, "%u such devices would do, with %s", n * times, found);
    return PL_OK;
  }
  snprintf(text, PL_REMEDY_BYTES,
           "no choice and no number of such devices that was tried would do; use devices with "
           "more memory, a smaller --seq or a smaller model");
  return PL_OK;
}
