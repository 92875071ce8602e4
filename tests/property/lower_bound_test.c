/* No strategy is simulated faster than its lower bound, none fits that was said not to, and bound-and-prune finds the
 * best time of the whole space: random spaces on random clusters, regular, lopsided and of unlike devices, under every
 * network, schedule and every framework that is shipped, of models with and without experts; there also strategies that
 * no space has: placements, uneven replicas, boundaries and shards at random. PACELINE_SPACES=N: so many spaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "search/method/method_space.h"
#include "tests/support/bound_subject.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"

enum { SPACES = 60, SAMPLE = 50, SEARCHED = 400, FRAMEWORKS_MOST = 64 };

/* Dense, with experts in every layer, or with latent attention, shared experts and dense layers in front. */
static void random_model(bound_subject *own, uint64_t *random) {
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

static void random_job(bound_subject *own, const frameworks *list, uint64_t *random) {
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

static void random_options(bound_subject *own, uint64_t *random) {
  own->options.network = random_below(random, 3) == 0 ? PL_NETWORK_ANALYTIC : PL_NETWORK_FLOW;
  own->options.chunked = random_below(random, 12) == 0;
  own->options.streams = random_below(random, 12) == 0 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER;
  own->options.fold = random_below(random, 4) != 0;
}

static void random_choices(bound_subject *own, uint64_t *random) {
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

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
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
    bound_subject own;
    pl_space space;
    bound_subject_init(&own, cluster);
    random_model(&own, &random);
    random_job(&own, &list, &random);
    random_options(&own, &random);
    random_memory(cluster, &random);
    random_choices(&own, &random);
    own.ratios = ratios + n_ratios;
    if (bound_subject_space(&own, &space)) {
      bound_subject_check(&own, &random, &space, SAMPLE, true);
      if (space.n_candidates <= SEARCHED) bound_subject_compare_searches(&own, &n_all, &n_bound);
      s++;
    }
    n_checked += own.n_checked;
    n_experts += own.n_experts;
    n_ratios += own.n_ratios;
    n_above += own.n_above;
    n_oom += own.n_oom;
    n_known += own.n_known_oom;
    tightest = fmax(tightest, own.tightest);
    bound_subject_release(&own);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold_in_random_spaces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
