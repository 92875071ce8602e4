/* `ideal` is software that never waits and launches as few kernels as can be: no shipped framework is faster than it on
 * shipped models, but by what ideal does not assume, which is listed here, and in workloads/FRAMEWORKS.md.
 * Each line of the list is needed: some framework is faster by it alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

enum { FRAMEWORKS_MOST = 64, SHOWN = 12 };

/* ---- what ideal does not assume ---- */

/* Numbers, not speed: gradients are kept and sent as the job's type has it. */
static void types(pl_framework *own) {
  own->gradients.gradient_dtype = own->gradients.reduce_dtype = -1;
  own->gradients.keeps_16bit_gradients = own->gradients.holds_16bit_gradients = false;
}

/* Another algorithm, or fewer bytes of state. */
static void optimizer(pl_framework *own) {
  own->update.optimizer = pl_framework_ideal.update.optimizer;
  own->update.weights = pl_framework_ideal.update.weights;
}

/* Of 16-bit logits, without a copy in fp32. */
static void loss(pl_framework *own) {
  own->kernels.loss = pl_framework_ideal.kernels.loss;
}

/* Products cut in pieces that are sent meanwhile, and what else runs beside products. */
static void tensor_overlap(pl_framework *own) {
  own->pipeline.overlaps_tensor = own->pipeline.overlaps_tensor_backward = false;
}

/* Once to each node, and copied there. */
static void tokens(pl_framework *own) {
  own->pipeline.sends_tokens_per_node = false;
}

/* It ends with what the backward pass reads. */
static void recomputation(pl_framework *own) {
  own->kernels.ends_recompute = false;
}

/* Parameters that are used again soon stay whole, and take memory. */
static void gathers(pl_framework *own) {
  own->gathers.reuse_parameters = 0;
  own->gathers.keeps_last = false;
}

static const struct {
  const char *name;
  void (*take_away)(pl_framework *own);
} exceptions[] = {
    {"types", types},   {"optimizer", optimizer},         {"loss", loss},      {"tensor_overlap", tensor_overlap},
    {"tokens", tokens}, {"recomputation", recomputation}, {"gathers", gathers}};
enum { N_EXCEPTIONS = sizeof exceptions / sizeof exceptions[0] };

/* ---- jobs ---- */

static const char *const devices[] = {"A100-SXM4-80GB", "H100-SXM5-80GB"};
static const char *const models[] = {"bert-large", "gpt2-345m", "llama-3.1-8b", "mixtral-8x7b"};
static const char *const strategies[] = {"pp=1,dp=16,tmp=1,mbs=1",
                                         "pp=1,dp=16,tmp=1,mbs=1,zero=1",
                                         "pp=1,dp=16,tmp=1,mbs=1,zero=3",
                                         "pp=1,dp=8,tmp=2,sp=1,mbs=1",
                                         "pp=2,dp=8,tmp=1,mbs=2",
                                         "pp=2,dp=2,tmp=4,sp=1,mbs=1,recompute=full,zero=1",
                                         "pp=4,dp=2,tmp=2,sp=1,mbs=1,vpp=2",
                                         "pp=1,dp=16,tmp=1,mbs=2,recompute=full",
                                         "pp=1,dp=2,tmp=8,sp=1,mbs=4",
                                         "pp=1,dp=2,tmp=8,sp=1,mbs=1,recompute=selective",
                                         "pp=1,dp=16,tmp=1,ep=8,mbs=2"};
enum {
  N_DEVICES = sizeof devices / sizeof devices[0],
  N_MODELS = sizeof models / sizeof models[0],
  N_STRATEGIES = sizeof strategies / sizeof strategies[0]
};

static pl_framework frameworks[FRAMEWORKS_MOST];
static uint32_t n_frameworks;

static int is_json(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && strcmp(dot, ".json") == 0;
}

static void load_frameworks(void) {
  struct dirent **entries;
  int n = scandir("workloads/frameworks", &entries, is_json, alphasort);
  assert_true(n > 20 && n < FRAMEWORKS_MOST);
  for (int i = 0; i < n; i++) {
    char path[300];
    pl_error error = PL_ERROR_INIT;
    snprintf(path, sizeof path, "workloads/frameworks/%s", entries[i]->d_name);
    if (pl_framework_load(path, &arena, &frameworks[n_frameworks++], &error) != PL_OK) fail_msg("%s", error.message);
    free(entries[i]);
  }
  free(entries);
}

typedef struct subject {
  const pl_cluster *cluster;
  pl_model model;
  pl_dtype dtype;
  const char *text; /* the strategy */
} subject;

static double time_of(const subject *own, const pl_framework *framework) {
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  pl_error error = PL_ERROR_INIT;
  int64_t most = own->model.positions.max_positions;
  pl_job job = {.gbs = 64, .seq = most < 2048 ? most : 2048, .dtype = own->dtype};
  pl_framework_apply(framework, &job);
  job.flash = true; /* the same algorithm */
  pl_strategy strategy;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_simulate_report report;
  if (pl_strategy_parse(own->text, &own->model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own->model, &job, own->cluster, &arena, &error) != PL_OK ||
      pl_simulate(own->cluster, &own->model, &job, &strategy, &options, &arena, &report, &error) != PL_OK)
    fail_msg("%s, %s: %s", own->model.name, own->text, error.message);
  double time_s = report.row.iter_time_s;
  pl_arena_release_to(&arena, mark);
  return time_s;
}

/* With all taken away but what `kept` says (N_EXCEPTIONS: nothing). */
static pl_framework stripped(const pl_framework *framework, int kept) {
  pl_framework own = *framework;
  for (int e = 0; e < N_EXCEPTIONS; e++)
    if (e != kept) exceptions[e].take_away(&own);
  return own;
}

typedef struct tally {
  uint32_t n_compared, n_faster, n_by[N_EXCEPTIONS];
  double least[N_EXCEPTIONS]; /* of the ideal time */
} tally;

static void compare(const subject *own, tally *found) {
  double ideal_s = time_of(own, &pl_framework_ideal);
  for (uint32_t f = 0; f < n_frameworks; f++) {
    pl_framework bare = stripped(&frameworks[f], N_EXCEPTIONS);
    double bare_s = time_of(own, &bare);
    found->n_compared++;
    if (bare_s < ideal_s && found->n_faster++ < SHOWN)
      print_error("%s, %s, %s: %s takes %.6f of ideal\n", own->model.name, own->text, own->cluster->profiles[0].name,
                  frameworks[f].name, bare_s / ideal_s);
    for (int e = 0; e < N_EXCEPTIONS; e++) {
      pl_framework one = stripped(&frameworks[f], e);
      double share = time_of(own, &one) / ideal_s;
      found->n_by[e] += share < 1;
      if (share < found->least[e]) found->least[e] = share;
    }
  }
}

static void nothing_shipped_is_faster(void **state) {
  (void)state;
  tally found = {.n_compared = 0};
  for (int e = 0; e < N_EXCEPTIONS; e++)
    found.least[e] = 1;
  load_frameworks();
  bool tries_all = test_cases(N_DEVICES) >= N_DEVICES;
  for (int d = 0; d < (tries_all ? N_DEVICES : 1); d++) {
    pl_device_profile profile;
    pl_error error = PL_ERROR_INIT;
    char path[128];
    snprintf(path, sizeof path, "platforms/devices/%s.json", devices[d]);
    if (pl_device_profile_load(path, &arena, &profile, &error) != PL_OK) fail_msg("%s", error.message);
    synthetic_options options = synthetic_cluster_defaults();
    options.n_nodes = options.gpus_per_node = options.nics_per_node = 4;
    options.profiles = &profile;
    options.n_profiles = 1;
    pl_cluster *cluster = synthetic_cluster_create(&options);
    for (int m = 0; m < N_MODELS; m++) {
      subject own = {.cluster = cluster, .dtype = m % 2 == 0 ? PL_DTYPE_FP16 : PL_DTYPE_BF16};
      snprintf(path, sizeof path, "workloads/models/%s.json", models[m]);
      if (pl_model_load_any(path, &arena, &own.model, &error) != PL_OK) fail_msg("%s", error.message);
      for (int s = 0; s < N_STRATEGIES; s++) {
        own.text = strategies[s];
        if (own.model.moe.n_experts > 0 || strstr(own.text, "ep=") == NULL) compare(&own, &found);
      }
    }
    synthetic_cluster_release(cluster);
  }
  print_message("%u runs of %u frameworks compared\n", found.n_compared, n_frameworks);
  for (int e = 0; e < N_EXCEPTIONS; e++)
    print_message("%-15s faster than ideal %4u times, down to %.3f\n", exceptions[e].name, found.n_by[e],
                  found.least[e]);
  if (found.n_faster > 0) fail_msg("%u are faster than ideal", found.n_faster);
  for (int e = 0; tries_all && e < N_EXCEPTIONS; e++) /* some exceptions show on the last device alone */
    if (found.n_by[e] == 0) fail_msg("nothing is faster by '%s': it is no exception", exceptions[e].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_shipped_is_faster)};
  return cmocka_run_group_tests_name("ideal", tests, set_up, tear_down);
}
