/* No strategy is simulated faster than its lower bound, none fits that was said not to, and bound-and-prune finds the
 * best time of the whole space: random spaces on random clusters, regular, lopsided and of unlike devices, under every
 * network, schedule and framework; and a sample of the spaces of every platform that is shipped, with its collective
 * profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/platform.h"
#include "search/evaluate.h"
#include "search/lower_bound.h"
#include "search/method.h"
#include "search/method_space.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/job_options.h"

enum { SPACES = 50, SAMPLE = 60, PLATFORM_SAMPLE = 120, SEARCHED = 400 };

typedef struct subject {
  pl_search_problem problem;
  pl_arena arena;
  pl_model model;
  pl_job job;
  pl_simulate_options options;
  pl_space_choices choices;
  pl_framework framework;
  pl_worker worker;
  uint32_t n_checked, n_oom, n_known_oom;
  double tightest;
} subject;

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

static void check_one(subject *own, pl_lower_bounds *bounds, const pl_strategy *given, pl_arena *scratch) {
  pl_strategy strategy = *given;
  pl_lower_bound bound;
  pl_result_row row;
  pl_error error = PL_ERROR_INIT;
  const pl_search_problem *p = &own->problem;
  pl_arena_reset(scratch);
  assert_int_equal(pl_strategy_assign(&strategy, p->model, p->job, p->cluster, scratch, &error), PL_OK);
  assert_int_equal(pl_lower_bound_of(bounds, &strategy, &bound, &error), PL_OK);
  simulate(own, &strategy, &row);
  char *text = pl_strategy_text(&strategy, p->model);
  if (!(bound.time_s <= row.iter_time_s))
    fail_msg("%s takes %.9g s, below its bound %.9g s (network %s, %s collectives, streams %s, framework %s)", text,
             row.iter_time_s, bound.time_s, pl_network_names[own->options.network],
             pl_collective_form_names[own->options.chunked], pl_stream_policy_names[own->options.streams],
             pl_framework_or_ideal(own->job.framework)->name);
  if (row.fits && bound.shortfall_bytes > 0)
    fail_msg("%s fits, %.0f of %.0f bytes at stage %d, but %.0f were said to be missing at stage %d", text,
             row.peak_mem_bytes, row.mem_capacity_bytes, row.peak_stage, bound.shortfall_bytes, bound.stage);
  free(text);
  own->n_checked++;
  own->n_oom += !row.fits;
  own->n_known_oom += !row.fits && bound.shortfall_bytes > 0;
  own->tightest = fmax(own->tightest, bound.time_s / row.iter_time_s);
}

/* Every candidate, or a random sample. */
static void check_sample(subject *own, uint64_t *random, const pl_space *space, uint32_t most) {
  pl_arena scratch, kept;
  pl_arena_init(&scratch, 0);
  pl_arena_init(&kept, 0);
  const pl_search_problem *p = &own->problem;
  pl_lower_bounds *bounds = pl_lower_bounds_take(p->cluster, p->model, p->job, p->options, &kept);
  uint32_t n = space->n_candidates < most ? space->n_candidates : most;
  for (uint32_t i = 0; i < n; i++) {
    pl_strategy strategy;
    uint32_t index = n == space->n_candidates ? i : (uint32_t)random_below(random, space->n_candidates);
    pl_space_strategy(space, index, &strategy);
    check_one(own, bounds, &strategy, &scratch);
  }
  pl_lower_bounds_release(bounds);
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

static void compare_searches(subject *own, uint32_t *n_all, uint32_t *n_bound) {
  uint32_t exhaustive, bound;
  double all_s = best_of(own, "exhaustive", &exhaustive), best_s = best_of(own, "bound", &bound);
  if (!(all_s == best_s)) fail_msg("exhaustive found %.17g s, bound %.17g s", all_s, best_s);
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

static void random_model(subject *own, uint64_t *random) {
  static const char *const forms[] = {
      "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":%d,\"n_head\":16,\"n_positions\":128,\"vocab_size\":%d}",
      "{\"model_type\":\"llama\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":4,\"intermediate_size\":768,\"max_position_embeddings\":128,\"vocab_size\":%d}"};
  char text[512];
  int n_layers = 2 + (int)random_below(random, 9), vocabulary = 500 + (int)random_below(random, 40000);
  int length = snprintf(text, sizeof text, forms[random_below(random, 2)], n_layers, vocabulary);
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("m.json", text, (size_t)length, &own->arena, &own->model, &error) != PL_OK)
    fail_msg("%s", error.message);
}

static void random_job(subject *own, uint64_t *random) {
  static const char *const frameworks[] = {NULL,         NULL,       "deepspeed-zero3-2021", "megatron-lm-2021",
                                           "nanotron",   "nemo",     "torch-fsdp",           "fsdp-composer",
                                           "torchtitan", "torch-ddp"};
  static const int64_t batches[] = {8, 12, 16, 32, 48};
  uint32_t draw = random_below(random, 16);
  own->job = (pl_job){.gbs = batches[random_below(random, 5)],
                      .seq = 128,
                      .dtype = draw & 1 ? PL_DTYPE_FP16 : PL_DTYPE_FP32,
                      .flash = (draw & 2) != 0,
                      .bucket_bytes = draw & 4 ? 1e5 : 25e6,
                      .split_sends = (draw & 8) != 0};
  const char *name = frameworks[random_below(random, 10)];
  pl_error error = PL_ERROR_INIT;
  if (name == NULL) return;
  if (pl_framework_load(name, &own->arena, &own->framework, &error) != PL_OK) fail_msg("%s", error.message);
  pl_framework_apply(&own->framework, &own->job);
}

/* So that some strategies fit and some do not. */
static void random_memory(pl_cluster *cluster, uint64_t *random) {
  double size_bytes = random_log(random, 1e8, 8e9);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    pl_device_profile *profile = (pl_device_profile *)(uintptr_t)&cluster->profiles[p];
    profile->memory_bytes = size_bytes / (p + 1);
    profile->reserved_bytes = 0;
  }
}

static void random_options(subject *own, uint64_t *random) {
  own->options.network = random_below(random, 4) == 0 ? PL_NETWORK_ANALYTIC : PL_NETWORK_FLOW;
  own->options.chunked = random_below(random, 8) == 0;
  own->options.streams = random_below(random, 8) == 0 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER;
  own->options.fold = random_below(random, 4) != 0;
}

static void bounds_hold_in_random_spaces(void **state) {
  (void)state;
  uint64_t random = test_seed(20260);
  uint32_t n_checked = 0, n_oom = 0, n_known = 0, n_all = 0, n_bound = 0;
  double tightest = 0;
  for (int s = 0; s < SPACES;) {
    pl_cluster *cluster = synthetic_cluster_random(random_u64(&random), 16);
    subject own;
    pl_space space;
    set_up(&own, cluster);
    random_model(&own, &random);
    random_job(&own, &random);
    random_options(&own, &random);
    random_memory(cluster, &random);
    own.problem.allow_idle = random_below(&random, 4) == 0;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_int_set_parse("1,2,4", "mbs", 1, 8, &own.choices.mbs, &error), PL_OK);
    if (take_space(&own, &space)) {
      check_sample(&own, &random, &space, SAMPLE);
      if (space.n_candidates <= SEARCHED) compare_searches(&own, &n_all, &n_bound);
      s++;
    }
    n_checked += own.n_checked;
    n_oom += own.n_oom;
    n_known += own.n_known_oom;
    tightest = fmax(tightest, own.tightest);
    tear_down(&own);
    synthetic_cluster_release(cluster);
  }
  print_message("%u strategies, %u do not fit, of which %u known; tightest bound %.4f; searches: %u of %u simulated\n",
                n_checked, n_oom, n_known, tightest, n_bound, n_all);
  assert_true(tightest > 0.999);
  assert_true(n_known > 0 && n_known <= n_oom && n_oom < n_checked);
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
      pl_job_options_adopt(options, &own->arena, &error) != PL_OK ||
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
  check_sample(&own, random, &space, PLATFORM_SAMPLE);
  /* The whole of a smaller space. */
  assert_int_equal(pl_int_set_parse("2,4", "mbs", 1, 8, &own.choices.mbs, &error), PL_OK);
  assert_int_equal(pl_int_set_parse("0,3", "zero", 0, 3, &own.choices.zero, &error), PL_OK);
  own.choices.recomputes = 1;
  own.choices.sp = 1;
  compare_searches(&own, n_all, n_bound);
  print_message("%-36s tightest %.4f\n", path, own.tightest);
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
