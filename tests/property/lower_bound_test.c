/* No strategy is simulated faster than its lower bound, none fits that was said not to, and bound-and-prune finds the
 * best time of the whole space: random spaces on random clusters, regular, lopsided and of unlike devices, under every
 * network, schedule and every framework that is shipped, of models with and without experts; there also strategies that
 * no space has: placements, uneven replicas, boundaries and shards at random. And a sample of the spaces of every
 * platform that is shipped, with its collective profile. PACELINE_SPACES=N: so many random spaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "search/bound/lower_bound.h"
#include "search/method/method.h"
#include "search/method/method_space.h"
#include "search/run/evaluate.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/command/job_options.h"
#include "workloads/import/model_file.h"

enum { SPACES = 60, SAMPLE = 50, PLATFORM_SAMPLE = 120, SEARCHED = 400, SHOWN = 3, FRAMEWORKS_MOST = 64 };

typedef struct subject {
  pl_search_problem problem;
  pl_arena arena;
  pl_model model;
  pl_job job;
  pl_simulate_options options;
  pl_space_choices choices;
  pl_framework framework;
  pl_worker worker;
  uint32_t n_checked, n_above, n_oom, n_known_oom, n_experts;
  double tightest;
  double *ratios; /* of what was checked and has a bound on its time; NULL: nobody asks */
  uint32_t n_ratios;
} subject;

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void simulate(subject *own, const pl_strategy *strategy, pl_result_row *row) {
  const pl_evaluation evaluation = {.cluster = own->problem.cluster,
                                    .model = own->problem.model,
                                    .job = own->problem.job,
                                    .options = own->problem.options};
  pl_error error = PL_ERROR_INIT;
  pl_arena_reset(&own->worker.arena);
  *row = (pl_result_row){.features = NULL};
  if (pl_evaluate_strategy(&evaluation, strategy, &own->worker, row, &error) != PL_OK) fail_msg("%s", error.message);
}

static void check_anywhere(pl_lower_bounds *bounds, const pl_strategy *strategy, double iter_time_s) {
  pl_error error = PL_ERROR_INIT;
  double time_s;
  assert_int_equal(pl_lower_bound_anywhere(bounds, strategy, &time_s, &error), PL_OK);
  assert_true(time_s > 0);
  if (!(time_s <= iter_time_s)) fail_msg("%.9g s, below %.9g s, which holds anywhere", iter_time_s, time_s);
}

/* Bounds that keep what earlier ones made say what new ones say, to the bit. */
static void check_kept(const pl_search_problem *p, pl_lower_bounds *bounds, const pl_strategy *strategy) {
  pl_arena arena;
  pl_lower_bound kept, made;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  pl_lower_bounds *fresh = pl_lower_bounds_take(p->cluster, p->model, p->job, p->options, &arena);
  assert_int_equal(pl_lower_bound_of(bounds, strategy, &kept, &error), PL_OK);
  assert_int_equal(pl_lower_bound_of(fresh, strategy, &made, &error), PL_OK);
  if (kept.time_s != made.time_s || kept.shortfall_bytes != made.shortfall_bytes || kept.stage != made.stage)
    fail_msg("%.17g s, %.17g bytes short; anew %.17g s, %.17g bytes", kept.time_s, kept.shortfall_bytes, made.time_s,
             made.shortfall_bytes);
  pl_lower_bounds_release(fresh);
  pl_arena_release(&arena);
}

/* A walk over what shares an outline: other ZeRO and overlap, the same again, and another cut at the same place. */
static void check_neighbours(const pl_search_problem *p, pl_lower_bounds *bounds, const pl_strategy *strategy,
                             pl_arena *scratch) {
  int32_t n = pl_strategy_n_chunks(strategy), *boundary = PL_TAKE(scratch, int32_t, n + 1);
  memcpy(boundary, strategy->boundary, ((size_t)n + 1) * sizeof *boundary);
  for (int step = 0; step < 6; step++) {
    pl_strategy near = *strategy;
    pl_error refused = PL_ERROR_INIT;
    near.boundary = boundary;
    near.zero = step / 2 == 1 ? (strategy->zero + 1) % 4 : strategy->zero;
    near.overlap = step % 2 == 1 ? !strategy->overlap : strategy->overlap;
    if (step == 4 && n > 1 && boundary[n - 1] - 1 > boundary[n - 2]) boundary[n - 1]--;
    if (pl_strategy_check(&near, p->model, p->job, p->cluster->n_devices, &refused) != PL_OK) continue;
    check_kept(p, bounds, &near);
  }
}

static void check_one(subject *own, pl_lower_bounds *bounds, const pl_strategy *given, pl_arena *scratch) {
  pl_strategy strategy = *given;
  pl_lower_bound bound;
  pl_result_row row;
  pl_error error = PL_ERROR_INIT;
  const pl_search_problem *p = &own->problem;
  pl_arena_reset(scratch);
  if (strategy.boundary == NULL)
    assert_int_equal(pl_strategy_assign(&strategy, p->model, p->job, p->cluster, scratch, &error), PL_OK);
  assert_int_equal(pl_lower_bound_of(bounds, &strategy, &bound, &error), PL_OK);
  if (own->n_checked % 4 == 0) check_neighbours(p, bounds, &strategy, scratch);
  simulate(own, &strategy, &row);
  char *text = pl_strategy_text(&strategy, p->model);
  if (!(bound.time_s <= row.iter_time_s) && own->n_above++ < SHOWN)
    print_error("%s takes %.9g s, below its bound %.9g s (%+.3g %%; %s, network %s, %s collectives, streams %s, "
                "framework %s, buckets of %.3g)\n",
                text, row.iter_time_s, bound.time_s, 100 * (bound.time_s / row.iter_time_s - 1), p->model->name,
                pl_network_names[own->options.network], pl_collective_form_names[own->options.chunked],
                pl_stream_policy_names[own->options.streams], pl_framework_or_ideal(own->job.framework)->name,
                own->job.bucket_bytes);
  if (row.fits && bound.shortfall_bytes > 0)
    fail_msg("%s fits, %.0f of %.0f bytes at stage %d, but %.0f were said to be missing at stage %d", text,
             (double)row.peak_mem_bytes, (double)row.mem_capacity_bytes, row.peak_stage, bound.shortfall_bytes,
             bound.stage);
  free(text);
  if (own->ratios != NULL && bound.time_s > 0) own->ratios[own->n_ratios++] = bound.time_s / row.iter_time_s;
  check_anywhere(bounds, &strategy, row.iter_time_s);
  own->n_experts += p->model->moe.n_experts > 0 && strategy.overlap && pl_strategy_replicas(&strategy) > 1;
  own->n_checked++;
  own->n_oom += !row.fits;
  own->n_known_oom += !row.fits && bound.shortfall_bytes > 0;
  own->tightest = fmax(own->tightest, bound.time_s / row.iter_time_s);
}

/* ---- what no space has ---- */

/* Strictly rising, the same number of blocks for each or not. */
static void cut_anywhere(pl_strategy *strategy, const pl_model *model, uint64_t *random, pl_arena *arena) {
  int32_t n = pl_strategy_n_chunks(strategy), blocks = pl_model_n_blocks(model);
  int32_t *boundary = PL_TAKE(arena, int32_t, n + 1);
  boundary[n] = blocks;
  for (int32_t c = 1; c < n; c++) {
    int32_t lowest = boundary[c - 1] + 1, room = blocks - (n - c) - lowest + 1;
    boundary[c] = lowest + (int32_t)random_below(random, (uint32_t)room);
  }
  strategy->boundary = boundary;
}

static void place_anywhere(pl_strategy *strategy, uint32_t n_devices, uint64_t *random, pl_arena *arena) {
  uint32_t *devices = PL_TAKE(arena, uint32_t, n_devices);
  for (uint32_t d = 0; d < n_devices; d++)
    devices[d] = d;
  for (uint32_t d = n_devices - 1; d > 0; d--) {
    uint32_t other = random_below(random, d + 1), device = devices[d];
    devices[d] = devices[other];
    devices[other] = device;
  }
  strategy->placement = devices;
  strategy->idle = false;
}

static void split_anyhow(pl_strategy *strategy, const pl_job *job, uint64_t *random, pl_arena *arena) {
  int32_t unit = strategy->vpp > 1 ? strategy->pp : 1, left = (int32_t)(job->gbs / strategy->mbs / unit);
  int32_t *split = PL_TAKE(arena, int32_t, strategy->dp);
  if (left < strategy->dp) return;
  for (int32_t r = 0; r < strategy->dp; r++, left--)
    split[r] = unit;
  for (; left > 0; left--)
    split[random_below(random, (uint32_t)strategy->dp)] += unit;
  strategy->split = split;
}

/* Each change half the time; what is then none of this job's stays as the space has it. */
static void change(const pl_search_problem *p, uint64_t *random, pl_strategy *strategy, pl_arena *arena) {
  for (int kind = 0; kind < 5; kind++) {
    pl_strategy changed = *strategy;
    pl_error refused = PL_ERROR_INIT;
    if (random_below(random, 2) == 0) continue;
    if (kind == 0) cut_anywhere(&changed, p->model, random, arena);
    if (kind == 1) place_anywhere(&changed, p->cluster->n_devices, random, arena);
    if (kind == 2) split_anyhow(&changed, p->job, random, arena);
    if (kind == 3) changed.shard = random_divisor(random, pl_strategy_replicas(strategy));
    if (kind == 4) changed.cp_gather = true;
    if (pl_strategy_check(&changed, p->model, p->job, p->cluster->n_devices, &refused) == PL_OK) *strategy = changed;
  }
}

/* Every candidate, or a random sample; with `changes` half of them are changed to what the space does not have. */
static void check_sample(subject *own, uint64_t *random, const pl_space *space, uint32_t most, bool changes) {
  pl_arena scratch, kept, changed;
  pl_arena_init(&scratch, 0);
  pl_arena_init(&kept, 0);
  pl_arena_init(&changed, 0);
  const pl_search_problem *p = &own->problem;
  pl_lower_bounds *bounds = pl_lower_bounds_take(p->cluster, p->model, p->job, p->options, &kept);
  uint32_t n = space->n_candidates < most ? space->n_candidates : most;
  for (uint32_t i = 0; i < n; i++) {
    pl_strategy strategy;
    uint32_t index = n == space->n_candidates ? i : (uint32_t)random_below(random, space->n_candidates);
    pl_space_strategy(space, index, &strategy);
    if (changes && random_below(random, 2) == 0) change(p, random, &strategy, &changed);
    check_one(own, bounds, &strategy, &scratch);
    pl_arena_reset(&changed);
  }
  pl_lower_bounds_release(bounds);
  pl_arena_release(&changed);
  pl_arena_release(&kept);
  pl_arena_release(&scratch);
}

/* Runs a method to its end, without the driver. */
static double best_of(subject *own, const char *name, uint32_t *n_rows) {
  const pl_method *method = pl_method_find(name);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  void *state;
  pl_proposal proposals[32];
  double best_s = INFINITY;
  uint32_t n;
  *n_rows = 0;
  if (method->open(&own->problem, &arena, &state, &error) != PL_OK) fail_msg("%s", error.message);
  for (;;) {
    pl_result_row row;
    assert_int_equal(method->propose(state, 32, proposals, &n, &error), PL_OK);
    if (n == 0) break;
    for (uint32_t i = 0; i < n; i++) {
      simulate(own, &proposals[i].strategy, &row);
      row.status = row.fits ? PL_RESULT_DONE : PL_RESULT_OOM;
      if (row.fits) best_s = fmin(best_s, row.iter_time_s);
      if (method->learn != NULL) method->learn(state, &proposals[i], &row);
      (*n_rows)++;
    }
  }
  pl_arena_release(&arena);
  return best_s;
}

/* In the given order bound finds the best of the space, without one nothing worse. */
static void compare_searches(subject *own, uint32_t *n_all, uint32_t *n_bound) {
  uint32_t exhaustive, bound, placed;
  own->choices.order_is_given = true;
  double all_s = best_of(own, "exhaustive", &exhaustive), best_s = best_of(own, "bound", &bound);
  if (!(all_s == best_s)) fail_msg("exhaustive found %.17g s, bound %.17g s", all_s, best_s);
  own->choices.order_is_given = false;
  double placed_s = best_of(own, "bound", &placed);
  if (!(placed_s <= all_s)) fail_msg("exhaustive found %.17g s, bound with placements %.17g s", all_s, placed_s);
  *n_all += exhaustive;
  *n_bound += bound;
}

/* False: it is empty. */
static bool take_space(subject *own, pl_space *space) {
  pl_error error = PL_ERROR_INIT;
  return pl_method_space_take(&own->problem, &own->arena, space, &error) == PL_OK;
}

static void set_up(subject *own, const pl_cluster *cluster) {
  *own = (subject){.options = PL_SIMULATE_OPTIONS_DEFAULT};
  pl_arena_init(&own->arena, 0);
  pl_worker_init(&own->worker);
  pl_space_choices_init(&own->choices);
  own->problem = (pl_search_problem){.cluster = cluster,
                                     .model = &own->model,
                                     .job = &own->job,
                                     .options = &own->options,
                                     .choices = &own->choices,
                                     .seed = 1,
                                     .budget = UINT64_MAX};
}

static void tear_down(subject *own) {
  pl_worker_release(&own->worker);
  pl_arena_release(&own->arena);
}

/* ---- random spaces ---- */

/* Dense, with experts in every layer, or with latent attention, shared experts and dense layers in front. */
static void random_model(subject *own, uint64_t *random) {
  static const char *const forms[] = {
      "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":%d,\"n_head\":16,\"n_positions\":128,\"vocab_size\":%d}",
      "{\"model_type\":\"llama\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":4,\"intermediate_size\":768,\"max_position_embeddings\":128,\"vocab_size\":%d}",
      "{\"model_type\":\"mixtral\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":8,\"intermediate_size\":512,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
      "\"vocab_size\":%d}",
      "{\"model_type\":\"deepseek_v3\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"intermediate_size\":512,\"q_lora_rank\":64,\"kv_lora_rank\":32,\"qk_nope_head_dim\":16,"
      "\"qk_rope_head_dim\":8,\"v_head_dim\":16,\"n_routed_experts\":16,\"num_experts_per_tok\":3,"
      "\"moe_intermediate_size\":64,\"n_shared_experts\":1,\"first_k_dense_replace\":1,\"vocab_size\":%d}"};
  char text[1024];
  int n_layers = 2 + (int)random_below(random, 9), vocabulary = 500 + (int)random_below(random, 40000);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int length = snprintf(text, sizeof text, forms[random_below(random, 4)], n_layers, vocabulary);
#pragma GCC diagnostic pop
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("m.json", text, (size_t)length, &own->arena, &own->model, &error) != PL_OK)
    fail_msg("%s", error.message);
}

typedef struct frameworks {
  pl_framework profiles[FRAMEWORKS_MOST];
  uint32_t n;
} frameworks;

static int is_json(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && strcmp(dot, ".json") == 0;
}

/* All that are shipped. */
static void load_frameworks(pl_arena *arena, frameworks *list) {
  struct dirent **entries;
  int n = scandir("workloads/frameworks", &entries, is_json, alphasort);
  assert_true(n > 20 && n < FRAMEWORKS_MOST);
  list->n = (uint32_t)n;
  for (int i = 0; i < n; i++) {
    char path[300];
    pl_error error = PL_ERROR_INIT;
    snprintf(path, sizeof path, "workloads/frameworks/%s", entries[i]->d_name);
    if (pl_framework_load(path, arena, &list->profiles[i], &error) != PL_OK) fail_msg("%s", error.message);
    free(entries[i]);
  }
  free(entries);
}

static void random_job(subject *own, const frameworks *list, uint64_t *random) {
  static const int64_t batches[] = {8, 12, 16, 32, 48};
  static const double buckets[] = {1e5, 1e6, 25e6};
  uint32_t draw = random_below(random, 8);
  own->job = (pl_job){.gbs = batches[random_below(random, 5)],
                      .seq = 128,
                      .dtype = draw & 1 ? PL_DTYPE_FP16 : PL_DTYPE_FP32,
                      .flash = (draw & 2) != 0,
                      .bucket_bytes = buckets[random_below(random, 3)],
                      .split_sends = (draw & 4) != 0};
  uint32_t which = random_below(random, list->n + list->n / 4);
  if (which < list->n) pl_framework_apply(&list->profiles[which], &own->job);
}

/* So that some strategies fit and some do not; half the time ample, as only what may fit has a bound on its time. */
static void random_memory(pl_cluster *cluster, uint64_t *random) {
  double size_bytes = random_below(random, 2) == 0 ? 1e12 : random_log(random, 1e8, 8e9);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    pl_device_profile *profile = (pl_device_profile *)(uintptr_t)&cluster->profiles[p];
    profile->memory_bytes = size_bytes / (p + 1);
    profile->reserved_bytes = 0;
  }
}

static void random_options(subject *own, uint64_t *random) {
  own->options.network = random_below(random, 3) == 0 ? PL_NETWORK_ANALYTIC : PL_NETWORK_FLOW;
  own->options.chunked = random_below(random, 12) == 0;
  own->options.streams = random_below(random, 12) == 0 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER;
  own->options.fold = random_below(random, 4) != 0;
}

static void random_choices(subject *own, uint64_t *random) {
  static const char *const degrees[] = {"1", "1,2,4"};
  static const char more_orders[][5] = {"tpd", "dtp", "dpt", "ptd", "pdt", "tcdp", "cdtp", "tdcp", "pcdt"};
  pl_space_choices *choices = &own->choices;
  pl_error error = PL_ERROR_INIT;
  pl_int_set_parse("1,2,4", "mbs", 1, 8, &choices->mbs, &error);
  pl_int_set_parse(degrees[random_below(random, 3) == 0], "cp", 1, 8, &choices->cp, &error);
  if (own->model.moe.n_experts > 0) pl_int_set_parse("1,2,4,8", "ep", 1, 8, &choices->ep, &error);
  choices->recomputes = 15;
  if (random_below(random, 3) == 0) pl_int_set_parse("0-3", "zero", 0, 3, &choices->zero, &error); /* pipelines too */
  if (random_below(random, 2) == 0) choices->schedules = (1u << PL_SCHEDULE_DUALPIPE) - 1;
  own->problem.allow_idle = random_below(random, 4) == 0;
  for (uint32_t i = 0; i < 2; i++)
    memcpy(choices->orders[choices->n_orders++], more_orders[random_below(random, 9)], 5);
  assert_int_equal(error.code, PL_OK);
}

/* `n` ratios of bound to simulated time: the median, and how far from it. */
static void print_ratios(const char *what, double *ratios, uint32_t n) {
  qsort(ratios, n, sizeof *ratios, by_value);
  if (n > 0)
    print_message("%s: %u, bound / simulated: 10 %% below %.3f, median %.4f, 90 %% below %.4f, largest %.6f\n", what, n,
                  ratios[n / 10], ratios[n / 2], ratios[(uint64_t)n * 9 / 10], ratios[n - 1]);
}

static int n_spaces(void) {
  return (int)test_number("PACELINE_SPACES", TEST_IS_SANITIZED ? SPACES / 4 : SPACES);
}

static void bounds_hold_in_random_spaces(void **state) {
  (void)state;
  uint64_t random = test_seed(20260);
  uint32_t n_checked = 0, n_oom = 0, n_known = 0, n_all = 0, n_bound = 0, n_experts = 0, n_above = 0, n_ratios = 0;
  double *ratios = calloc((size_t)n_spaces() * SAMPLE + 1, sizeof *ratios);
  double tightest = 0;
  frameworks list;
  pl_arena kept;
  pl_arena_init(&kept, 0);
  load_frameworks(&kept, &list);
  for (int s = 0; s < n_spaces();) {
    pl_cluster *cluster = synthetic_cluster_random(random_u64(&random), 16);
    subject own;
    pl_space space;
    set_up(&own, cluster);
    random_model(&own, &random);
    random_job(&own, &list, &random);
    random_options(&own, &random);
    random_memory(cluster, &random);
    random_choices(&own, &random);
    own.ratios = ratios + n_ratios;
    if (take_space(&own, &space)) {
      check_sample(&own, &random, &space, SAMPLE, true);
      if (space.n_candidates <= SEARCHED) compare_searches(&own, &n_all, &n_bound);
      s++;
    }
    n_checked += own.n_checked;
    n_experts += own.n_experts;
    n_ratios += own.n_ratios;
    n_above += own.n_above;
    n_oom += own.n_oom;
    n_known += own.n_known_oom;
    tightest = fmax(tightest, own.tightest);
    tear_down(&own);
    synthetic_cluster_release(cluster);
  }
  print_message("%u strategies, %u do not fit, of which %u known; tightest bound %.4f; searches: %u of %u simulated\n",
                n_checked, n_oom, n_known, tightest, n_bound, n_all);
  print_ratios("random strategies", ratios, n_ratios);
  free(ratios);
  pl_arena_release(&kept);
  assert_int_equal(n_above, 0);
  assert_true(tightest > 0.999);
  assert_true(n_experts > 0 && n_known > 0 && n_known <= n_oom && n_oom < n_checked);
  assert_true(n_bound < n_all);
}

/* ---- the platforms that are shipped ---- */

static int is_platform(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && strcmp(dot, ".xml") == 0;
}

static void load_job(subject *own, pl_job_options *options, pl_platform *platform, const char *path) {
  pl_error error = PL_ERROR_INIT;
  pl_job_options_init(options);
  options->platform_path = path;
  options->model_path = "workloads/models/gpt2-345m.json";
  options->job.gbs = 32;
  if (pl_model_load(options->model_path, &own->arena, &own->model, &error) != PL_OK ||
      pl_job_options_adopt(options, &own->model, &own->arena, &error) != PL_OK ||
      pl_job_options_complete(options, &own->model, pl_platform_cluster(platform), &error) != PL_OK)
    fail_msg("%s: %s", path, error.message);
  own->job = options->job;
  own->options = options->simulate;
}

static void check_platform(uint64_t *random, const char *path, uint32_t *n_all, uint32_t *n_bound) {
  pl_platform *platform = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  subject own;
  pl_job_options options;
  pl_space space;
  set_up(&own, pl_platform_cluster(platform));
  load_job(&own, &options, platform, path);
  assert_true(take_space(&own, &space));
  check_sample(&own, random, &space, TEST_IS_SANITIZED ? PLATFORM_SAMPLE / 4 : PLATFORM_SAMPLE, true);
  /* The whole of a smaller space. */
  assert_int_equal(pl_int_set_parse("2,4", "mbs", 1, 8, &own.choices.mbs, &error), PL_OK);
  assert_int_equal(pl_int_set_parse("0,3", "zero", 0, 3, &own.choices.zero, &error), PL_OK);
  own.choices.recomputes = 1;
  own.choices.sp = 1;
  compare_searches(&own, n_all, n_bound);
  print_message("%-36s tightest %.4f\n", path, own.tightest);
  assert_int_equal(own.n_above, 0);
  tear_down(&own);
  pl_platform_destroy(platform);
}

static void bounds_hold_on_shipped_platforms(void **state) {
  (void)state;
  uint64_t random = test_seed(20261);
  uint32_t n_all = 0, n_bound = 0;
  struct dirent **entries;
  int n = scandir("platforms", &entries, is_platform, alphasort);
  assert_true(n > 5);
  for (int i = 0; i < n; i++) {
    char path[300];
    snprintf(path, sizeof path, "platforms/%s", entries[i]->d_name);
    check_platform(&random, path, &n_all, &n_bound);
    free(entries[i]);
  }
  free(entries);
  print_message("searches: %u of %u simulated\n", n_bound, n_all);
  assert_true(n_bound < n_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold_in_random_spaces),
                                     cmocka_unit_test(bounds_hold_on_shipped_platforms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
