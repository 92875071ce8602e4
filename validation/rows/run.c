/* Simulating the cases, platform by platform (see validation/rows/case.h). */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/multiple.h"
#include "core/system/processes.h"
#include "core/system/temporary_folder.h"
#include "netmodel/collective/topology_cache.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_vary.h"
#include "validation/rows/case.h"
#include "validation/rows/program_row.h"
#include "workloads/assign/assign.h"
#include "workloads/lower/block_program.h"
#include "workloads/run/site_interval.h"
#include "workloads/run/site_remains.h"

typedef struct run {
  pl_cases *cases;
  const pl_case_options *options;
  pl_arena *arena; /* for reasons: the master's only, under the critical section below */
  pl_error *error;
  const pl_collective_profile *collective_profile; /* NULL: ideal */
  const char *folder;                              /* of the platform files */
} run;

/* ---- one case ---- */

static pl_code check_devices(const pl_case *c, const pl_cluster *cluster, pl_error *error) {
  if ((int64_t)cluster->n_devices != c->row->n_gpus)
    return pl_fail(error, PL_UNSUPPORTED, "platform: it has %u GPUs, the row %" PRId64, cluster->n_devices,
                   c->row->n_gpus);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    pl_dtype narrow = c->job.fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8;
    pl_dtype dtype = c->job.fp8 && !(cluster->profiles[p].peak_flops[narrow] > 0) ? narrow : c->job.dtype;
    if (!(cluster->profiles[p].peak_flops[dtype] > 0))
      return pl_fail(error, PL_UNSUPPORTED, "precision: %s does not compute in %s", cluster->profiles[p].name,
                     pl_dtype_name(dtype));
  }
  return PL_OK;
}

/* Not made from what the row says of its machines. */
static bool is_file(const pl_case *c) {
  return c->plan.n_parts == 0;
}

static double memory_of(const pl_row_habits *habits, const pl_simulate_report *report) {
  int32_t stage = report->row.peak_stage;
  if (habits->memory_rank != PL_MEMORY_FULLEST)
    stage = habits->memory_rank == PL_MEMORY_FIRST_STAGE ? 0 : report->n_stages - 1;
  const pl_stage_memory *memory = &report->stages[stage];
  switch (habits->memory_figure) {
  case PL_MEMORY_ALLOCATED:
    return memory->peak;
  case PL_MEMORY_DEVICE:
    return memory->device;
  case PL_MEMORY_RESERVED:
    break;
  }
  return memory->reserved;
}

enum { STATED_MAX = 3 }; /* power, capacity and bandwidth of memory */

/* A profile's own capacity under another name (80 GB, 79.6 GiB) changes nothing. */
static bool is_other_memory(const pl_cluster *cluster, double memory_bytes) {
  return memory_bytes > 0 && fabs(memory_bytes / pl_cluster_profile(cluster, 0)->memory_bytes - 1) > 0.05;
}

/* Whether what the row says of its GPUs is said of the platform's: a platform of another GPU stands for a machine that
 * the row does not have, and one of several kinds says for itself what each can do. */
static bool is_of_platform(const pl_case *c, const pl_cluster *cluster) {
  if (!is_file(c)) return true;
  const char *named = pl_row_device_named(c->row->gpu);
  return cluster->n_profiles == 1 && (named == NULL || strcmp(named, pl_cluster_profile(cluster, 0)->name) == 0);
}

/* The figures of its GPUs that the row states; returns how many. */
static uint32_t stated_figures(const pl_case *c, const pl_cluster *cluster, pl_vary_value values[STATED_MAX],
                               pl_vary_grid *grid) {
  if (!is_of_platform(c, cluster)) return 0;
  double memory_bytes = pl_row_memory_bytes(c->row);
  const struct {
    const char *name;
    pl_vary_field field;
    double number;
  } figures[STATED_MAX] = {
      {"power", PL_VARY_DEVICE_POWER, pl_row_power_W(c->row)},
      {"memory", PL_VARY_DEVICE_MEMORY, is_other_memory(cluster, memory_bytes) ? memory_bytes : 0},
      {"bandwidth", PL_VARY_DEVICE_BANDWIDTH, pl_row_bandwidth_Bps(c->row)},
  };
  uint32_t n = 0;
  for (int i = 0; i < STATED_MAX; i++) {
    if (figures[i].number <= 0) continue;
    values[n] = (pl_vary_value){.text = "as the row states", .number = figures[i].number};
    grid->axes[n] = (pl_vary_axis){
        .name = figures[i].name, .pattern = "*", .field = figures[i].field, .values = &values[n], .n_values = 1};
    n++;
  }
  grid->n_axes = n;
  grid->n_points = 1;
  return n;
}

/* GPUs of the figures that the row states. */
static pl_code take_stated(const pl_vary_grid *grid, pl_arena *arena, const pl_cluster **cluster, pl_error *error) {
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_vary_cluster_take(grid, 0, *cluster, arena, cluster, &why);
  return code == PL_OK ? PL_OK : pl_fail(error, code == PL_BAD_INPUT ? PL_UNSUPPORTED : code, "gpu: %s", why.message);
}

/* Of a thread, for the rows of one platform. */
typedef struct caches {
  pl_topology_cache topology;
  pl_block_cache blocks; /* rows of a model often cut it alike */
} caches;

/* A platform as the site has it, and as it is elsewhere. */
typedef struct views {
  pl_site_view own, elsewhere;
} views;

/* `site` acts on the case, `view` is the platform there; NULL: without one. */
static pl_code simulate_at_site(const run *r, pl_case *c, const pl_site *site, const pl_site_view *view, caches *kept,
                                pl_arena *arena, pl_error *error) {
  const pl_cluster *cluster = view->cluster;
  c->remains_factor = 1;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.cache = &kept->topology;
  options.blocks = site == NULL ? &kept->blocks : NULL; /* it knows frameworks by address */
  options.collective_profile = view->collectives;
  options.network = r->options->network;
  options.no_overlap_factor = r->options->no_overlap_factor;
  options.residuals = r->options->residuals;
  if (site != NULL && site->remains != NULL && site->remains->n > 0) options.remains = site->remains;
  pl_vary_value stated[STATED_MAX];
  pl_vary_grid grid = {.n_axes = 0};
  if (stated_figures(c, cluster, stated, &grid) > 0) {
    PL_TRY(take_stated(&grid, arena, &cluster, error));
    options.cache = NULL; /* which tells clusters apart by address, and this one's memory is the next one's */
    options.blocks = NULL;
  }
  c->device = (pl_case_gpu){.n_kinds = cluster->n_profiles};
  snprintf(c->device.name, sizeof c->device.name, "%s", cluster->profiles[0].name);
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    c->device.memory_bytes = fmax(c->device.memory_bytes, cluster->profiles[p].memory_bytes);
  if (c->program != NULL) return pl_program_row_simulate(c, cluster, r->options, &options, arena, error);
  pl_strategy strategy = c->strategy;
  pl_simulate_report report;
  PL_TRY(check_devices(c, cluster, error));
  PL_TRY(pl_strategy_check(&strategy, c->model, &c->job, cluster->n_devices, error));
  if (strategy.boundary == NULL) PL_TRY(pl_assign(&strategy, c->model, &c->job, cluster, &options, arena, error));
  PL_TRY(pl_simulate(cluster, c->model, &c->job, &strategy, &options, arena, &report, error));
  c->result = report.row;
  c->remains_factor = report.remains_factor;
  c->predicted_mem_bytes = memory_of(&c->habits, &report);
  c->interval = report.interval;
  c->flops = pl_block_cache_flops(options.blocks, c->model, c->job.seq) * (double)c->job.gbs;
  if (!r->options->sensitivities) return PL_OK;
  PL_TRY(pl_site_sensitivities_take(cluster, c->model, &c->job, &strategy, &options,
                                    c->result.iter_time_s / report.remains_factor, arena, c->sensitivity, error));
  if (site == NULL) return PL_OK;
  const pl_configuration at =
      pl_configuration_of(cluster->profiles[0].name, pl_configuration_size(c->model, c->job.seq), &c->job, &strategy);
  const pl_remaining remaining = pl_remaining_at(site->remains, &at);
  c->interval = pl_site_interval(site, c->sensitivity, &remaining, c->result.iter_time_s);
  return PL_OK;
}

static pl_code simulate(const run *r, pl_case *c, const views *platform, caches *kept, pl_arena *arena,
                        pl_error *error) {
  pl_arena_reset(arena);
  if (r->options->site == NULL) return simulate_at_site(r, c, NULL, &platform->own, kept, arena, error);
  const pl_framework *given = c->job.framework;
  const char *const name[PL_SITE_NAMES] = {platform->own.cluster->profiles[0].name, pl_framework_or_ideal(given)->name,
                                           pl_configuration_precision(&c->job)};
  const pl_site *site = pl_site_of(r->options->site, name);
  const pl_framework framework = pl_site_framework(site, given);
  c->job.framework = &framework;
  pl_code code = simulate_at_site(r, c, site, site == r->options->site ? &platform->own : &platform->elsewhere, kept,
                                  arena, error);
  c->job.framework = given;
  return code;
}

/* ---- the cases of one platform ---- */

/* Lack of memory and the like end the run; everything else is a reason. */
static void settle(const run *r, pl_case *c, pl_code code, const pl_error *why) {
  if (code == PL_OK) return;
  if (code == PL_BAD_INPUT || code == PL_UNSUPPORTED) {
    /* What a block cannot be cut into begins with the model's name. */
    bool names_model = c->model != NULL && strncmp(why->message, c->model->name, strlen(c->model->name)) == 0;
    c->reason = pl_arena_printf(r->arena, "%s%s", names_model ? "strategy: " : "", why->message);
  }
  if (code == PL_NO_MEMORY || code == PL_IO || c->reason == NULL) pl_fail(r->error, code, "%s", why->message);
}

/* `arenas`: one per thread. */
static void simulate_all(const run *r, pl_case **some, uint32_t n, uint32_t n_threads, pl_arena *arenas,
                         const views *platform) {
#pragma omp parallel num_threads((int)n_threads) default(none) shared(r, some, n, arenas, platform)
  {
    pl_arena *arena = &arenas[omp_get_thread_num()];
    caches kept;
    pl_topology_cache_init(&kept.topology, PL_TOPOLOGY_CACHE_BYTES);
    pl_block_cache_init(&kept.blocks, PL_BLOCK_CACHE_BYTES);
#pragma omp for schedule(dynamic, 1)
    for (uint32_t i = 0; i < n; i++) {
      pl_error why = PL_ERROR_INIT;
      pl_code code = simulate(r, some[i], platform, &kept, arena, &why);
#pragma omp critical(pl_validation_settle)
      settle(r, some[i], code, &why);
    }
    pl_block_cache_release(&kept.blocks);
    pl_topology_cache_release(&kept.topology);
  }
}

static pl_code load(const run *r, const pl_case *c, uint32_t group, pl_platform **platform, pl_error *error) {
  if (is_file(c)) return pl_platform_load(c->platform, r->options->profile_folder, platform, error);
  const char *path = pl_arena_printf(r->arena, "%s/p%u.xml", r->folder, group);
  if (path == NULL) return pl_fail_memory(error, "the name of a file");
  PL_TRY(pl_platform_make_file(&c->plan, path, true, error));
  pl_code code = pl_platform_load(path, r->options->profile_folder, platform, error);
  unlink(path);
  return code;
}

/* Of one platform those of a model stand together: what they have in common is kept from one to the next. */
static int compare_platforms(const void *a, const void *b) {
  const pl_case *const *left = a, *const *right = b;
  int order = strcmp((*left)->platform, (*right)->platform);
  if (order != 0) return order;
  if ((*left)->model != (*right)->model) return (uintptr_t)(*left)->model < (uintptr_t)(*right)->model ? -1 : 1;
  return *left < *right ? -1 : *left > *right; /* both in one array */
}

/* ---- pieces: cases of one platform, simulated in one process ---- */

/* What a child finds out of a case. */
typedef struct finding {
  pl_result_row result;
  double predicted_mem_bytes, flops, remains_factor;
  double sensitivity[PL_SITE_COUNT];
  pl_interval interval;
  pl_case_gpu device;
  bool has_reason;
  char reason[PL_ERROR_MESSAGE_BYTES];
} finding;

typedef struct piece {
  uint32_t first, n; /* of the cases by platform */
  double cost;
} piece;

typedef struct plan {
  const run *r;
  pl_case **some;
  piece *pieces;
  uint32_t n_pieces, n_threads;
  pl_arena *arenas;  /* per thread, of this process: memory that one piece has taken serves the next */
  finding *findings; /* shared; NULL: this process does the work */
} plan;

/* How many nodes it takes until stages and nodes begin together again, counted in what both are made of: where they do
 * not line up, devices of a stage are unlike, nothing recurs, and every microbatch is played. 1: they do, or nobody
 * knows. */
static double unlike_parts(const pl_case *c) {
  if (c->plan.n_parts == 0 || c->plan.parts[0].kind == NULL) return 1;
  uint32_t node = c->plan.gpus_per_node > 0 ? c->plan.gpus_per_node : c->plan.parts[0].kind->n_gpus;
  uint32_t stage = pl_strategy_n_ranks(&c->strategy) / (uint32_t)c->strategy.pp;
  if (node == 0 || stage % node == 0 || node % stage == 0) return 1;
  return (double)node / (double)pl_common_divisor(node, stage);
}

/* What a piece costs is passes, what its platform does, devices; fitted to nothing but the order: a case of a second
 * must not be the last to begin. */
static double cost_of(pl_case *const *some, uint32_t n) {
  double cost = 4 * (double)some[0]->row->n_gpus;
  for (uint32_t i = 0; i < n; i++) {
    const pl_strategy *strategy = &some[i]->strategy;
    if (some[i]->program != NULL) {
      cost += 3000;
      continue;
    }
    double n_microbatches = (double)some[i]->job.gbs / ((double)strategy->dp * strategy->mbs);
    double unlike = unlike_parts(some[i]);
    cost += 300 + n_microbatches * pl_strategy_n_chunks(strategy) * unlike * unlike;
  }
  return cost;
}

static void store_finding(const pl_case *c, finding *to) {
  PL_ASSERT(c->result.features == NULL && c->result.search == NULL); /* no memory of the child */
  *to = (finding){.result = c->result,
                  .predicted_mem_bytes = c->predicted_mem_bytes,
                  .flops = c->flops,
                  .remains_factor = c->remains_factor,
                  .interval = c->interval,
                  .device = c->device,
                  .has_reason = c->reason != NULL};
  memcpy(to->sensitivity, c->sensitivity, sizeof to->sensitivity);
  if (c->reason != NULL) snprintf(to->reason, sizeof to->reason, "%s", c->reason);
}

static pl_code adopt_finding(pl_case *c, const finding *from, pl_arena *arena, pl_error *error) {
  c->result = from->result;
  c->predicted_mem_bytes = from->predicted_mem_bytes;
  c->flops = from->flops;
  c->remains_factor = from->remains_factor;
  c->interval = from->interval;
  memcpy(c->sensitivity, from->sensitivity, sizeof c->sensitivity);
  c->device = from->device;
  if (!from->has_reason) return PL_OK;
  c->reason = pl_arena_strdup(arena, from->reason);
  return c->reason != NULL ? PL_OK : pl_fail_memory(error, "the reasons");
}

/* A profile that stands beside the platform of a row is its own, as --platform's is. */
static pl_code load_row_collectives(run *r, const pl_case *c, pl_collective_profile *profile) {
  const pl_case_options *options = r->options;
  if (!is_file(c) || options->platform_path != NULL || options->collective_profile != NULL) return PL_OK;
  const char *path;
  PL_TRY(pl_collective_profile_path(NULL, c->platform, r->arena, &path, r->error));
  PL_TRY(pl_collective_profile_load(path, r->arena, profile, r->error));
  r->collective_profile = profile;
  return PL_OK;
}

/* That of all rows ends the run; a row's own is the row's fault. */
static void refuse_platform(const run *r, pl_case **some, uint32_t n, pl_code code, const pl_error *why) {
  bool is_rows = is_file(some[0]) && r->options->platform_path == NULL;
  if (!is_rows || (code != PL_BAD_INPUT && code != PL_UNSUPPORTED)) {
    pl_fail(r->error, code, "%s", why->message);
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    some[i]->reason = pl_arena_printf(r->arena, "platform: %s", why->message);
  if (r->arena->failed) pl_fail_memory(r->error, "the reasons");
}

static pl_code simulate_on(const run *r, const pl_cluster *cluster, pl_case **some, uint32_t n, const plan *own) {
  const pl_site none = {.n_runs = 0}, *site = r->options->site != NULL ? r->options->site : &none;
  views both = {0};
  PL_TRY(pl_site_view_take(site, cluster, r->collective_profile, r->arena, &both.own, r->error));
  both.elsewhere = both.own;
  if (site->elsewhere != NULL)
    PL_TRY(pl_site_view_take(site->elsewhere, cluster, r->collective_profile, r->arena, &both.elsewhere, r->error));
  simulate_all(r, some, n, own->n_threads, own->arenas, &both);
  return r->error->code;
}

static pl_code simulate_piece(void *context, uint32_t index, pl_error *error) {
  const plan *own = context;
  const piece *p = &own->pieces[index];
  pl_case **some = own->some + p->first;
  run r = *own->r;
  r.error = error;
  if (r.options->progress) fprintf(stderr, "%u rows on %s\n", p->n, some[0]->platform);
  pl_platform *platform;
  pl_collective_profile profile;
  pl_error why = PL_ERROR_INIT;
  pl_code code = load(&r, some[0], index, &platform, &why);
  if (code == PL_OK) {
    if (load_row_collectives(&r, some[0], &profile) == PL_OK) /* else, and after it, `error` says what it was */
      simulate_on(&r, pl_platform_cluster(platform), some, p->n, own);
    pl_platform_destroy(platform);
  } else {
    refuse_platform(&r, some, p->n, code, &why);
  }
  for (uint32_t i = 0; i < p->n && own->findings != NULL; i++)
    store_finding(some[i], &own->findings[p->first + i]);
  return error->code;
}

static int compare_costs(const void *a, const void *b) {
  const piece *left = a, *right = b;
  if (left->cost != right->cost) return left->cost > right->cost ? -1 : 1;
  return left->first < right->first ? -1 : left->first > right->first;
}

/* A piece per platform, and more of one that is more than a process's share; the dearest first, so that all end
 * together. `some`: by platform. */
static pl_code cut_pieces(plan *own, uint32_t n, uint32_t n_processes, pl_arena *arena, pl_error *error) {
  double share = n > 0 ? cost_of(own->some, n) / n_processes : 0;
  own->pieces = PL_TAKE(arena, piece, n + n_processes);
  if (own->pieces == NULL) return pl_fail_memory(error, "the cases");
  for (uint32_t first = 0, count; first < n; first += count) {
    for (count = 1; first + count < n && strcmp(own->some[first + count]->platform, own->some[first]->platform) == 0;
         count++)
      continue;
    double cost = cost_of(own->some + first, count);
    uint32_t n_parts = n_processes > 1 && cost > share ? (uint32_t)ceil(cost / share) : 1;
    if (n_parts > count) n_parts = count;
    for (uint32_t part = 0; part < n_parts; part++) {
      uint32_t from = (uint32_t)((uint64_t)count * part / n_parts),
               to = (uint32_t)((uint64_t)count * (part + 1) / n_parts);
      own->pieces[own->n_pieces++] = (piece){first + from, to - from, cost_of(own->some + first + from, to - from)};
    }
  }
  qsort(own->pieces, own->n_pieces, sizeof *own->pieces, compare_costs);
  return PL_OK;
}

static pl_code simulate_in_children(plan *own, uint32_t n, uint32_t n_processes, pl_error *error) {
  size_t bytes = n * sizeof(finding);
  own->findings = pl_shared_take(bytes);
  if (own->findings == NULL) return pl_fail_memory(error, "the cases");
  pl_code code = pl_processes_run(n_processes, own->n_pieces, simulate_piece, own, error);
  for (uint32_t i = 0; i < n && code == PL_OK; i++)
    code = adopt_finding(own->some[i], &own->findings[i], own->r->arena, error);
  pl_shared_release(own->findings, bytes);
  for (uint32_t i = 0; i < own->n_pieces && code != PL_OK; i++) {
    const char *left = pl_arena_printf(own->r->arena, "%s/p%u.xml", own->r->folder, i);
    if (left != NULL) unlink(left); /* of a child that did not come to its end */
  }
  return code;
}

static pl_code simulate_pieces(plan *own, uint32_t n, uint32_t n_processes, pl_error *error) {
  if (n_processes > 1) return simulate_in_children(own, n, n_processes, error);
  for (uint32_t i = 0; i < own->n_pieces; i++)
    PL_TRY(simulate_piece(own, i, error));
  return PL_OK;
}

/* SimGrid loads one platform per process: a process per thread, each with platforms of its own; of one platform alone
 * the cases are shared by threads. */
static pl_code simulate_platforms(const run *r, pl_case **some, uint32_t n, pl_error *error) {
  bool several = n > 0 && strcmp(some[0]->platform, some[n - 1]->platform) != 0;
  uint32_t n_processes = several ? r->options->n_threads : 1;
  plan own = {.r = r, .some = some, .n_threads = n_processes > 1 ? 1 : r->options->n_threads};
  PL_TRY(cut_pieces(&own, n, n_processes, r->arena, error));
  own.arenas = PL_TAKE(r->arena, pl_arena, own.n_threads);
  if (own.arenas == NULL) return pl_fail_memory(error, "the cases");
  for (uint32_t i = 0; i < own.n_threads; i++)
    pl_arena_init(&own.arenas[i], 0);
  pl_code code = simulate_pieces(&own, n, n_processes, error);
  for (uint32_t i = 0; i < own.n_threads; i++)
    pl_arena_release(&own.arenas[i]);
  return code;
}

static pl_code load_collectives(run *r, pl_collective_profile *profile) {
  const char *path, *platform = r->options->platform_path != NULL ? r->options->platform_path : "";
  PL_TRY(pl_collective_profile_path(r->options->collective_profile, platform, r->arena, &path, r->error));
  if (path == NULL) return PL_OK;
  PL_TRY(pl_collective_profile_load(path, r->arena, profile, r->error));
  r->collective_profile = profile;
  return PL_OK;
}

pl_code pl_cases_simulate(pl_cases *cases, const pl_case_options *options, pl_arena *arena, pl_error *error) {
  run r = {.cases = cases, .options = options, .arena = arena, .error = error};
  pl_collective_profile profile;
  PL_TRY(load_collectives(&r, &profile));
  pl_case **some = PL_TAKE(arena, pl_case *, cases->n_cases);
  if (some == NULL) return pl_fail_memory(error, "the cases");
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (cases->cases[i].reason == NULL) some[n++] = &cases->cases[i];
  qsort(some, n, sizeof *some, compare_platforms);
  PL_TRY(pl_temporary_folder_make(arena, &r.folder, error));
  pl_code code = simulate_platforms(&r, some, n, error);
  rmdir(r.folder);
  return code;
}
