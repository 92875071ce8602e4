/* Layer assignments of every recipe, on every kind of model: boundaries begin at 0, end at the number of blocks and
 * rise strictly, or the strategy is refused in words. Models: those that are shipped, those of the tests of their
 * reader, and random small ones of every family; numbers of stages and chunks from one to more than there are blocks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/assign/assign.h"
#include "workloads/import/model_file.h"

enum { N_RECIPES = PL_ASSIGN_AMP + 1, MOST_STAGES = 32 };

typedef struct tally {
  uint32_t cut, refused;
} tally;

/* A cluster of like devices, of `n` of them; every third one has unlike ones, and memory that may hold nothing. */
static pl_cluster *make_cluster(uint64_t *random, uint32_t n) {
  synthetic_options options = synthetic_cluster_defaults();
  options.gpus_per_node = (uint32_t)random_divisor(random, (int32_t)n);
  options.n_nodes = n / options.gpus_per_node;
  options.nics_per_node = (uint32_t)random_divisor(random, (int32_t)options.gpus_per_node);
  pl_cluster *cluster = synthetic_cluster_create(&options);
  if (random_below(random, 3) > 0) return cluster;
  for (uint32_t device = 0; device < n; device++)
    synthetic_cluster_set_profile(cluster, device, random_below(random, 2));
  pl_device_profile *profiles = (pl_device_profile *)(uintptr_t)cluster->profiles;
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    profiles[p].memory_bytes = random_log(random, 1e3, 1e12);
  return cluster;
}

static pl_job job_of(const pl_model *model) {
  bool has_length = model->unlike.parts != NULL || model->positions.max_positions < 64;
  return (pl_job){.gbs = 1 << 12,
                  .seq = has_length ? model->positions.max_positions : 64,
                  .dtype = PL_DTYPE_FP16,
                  .flash = true,
                  .bucket_bytes = 25e6};
}

static void check_cut(const pl_strategy *strategy, const pl_model *model, const char *recipe) {
  int32_t n = strategy->pp * strategy->vpp;
  if (strategy->boundary[0] != 0 || strategy->boundary[n] != pl_model_n_blocks(model))
    fail_msg("%s, %s, %d stages: from %d to %d of %d blocks", model->name, recipe, n, strategy->boundary[0],
             strategy->boundary[n], pl_model_n_blocks(model));
  for (int32_t c = 0; c < n; c++)
    if (strategy->boundary[c] >= strategy->boundary[c + 1])
      fail_msg("%s, %s, %d stages: %d in front of %d", model->name, recipe, n, strategy->boundary[c],
               strategy->boundary[c + 1]);
}

static void try_recipes(const pl_model *model, const pl_strategy *given, const pl_cluster *cluster,
                        tally found[N_RECIPES]) {
  const pl_job job = job_of(model);
  const pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  for (int recipe = PL_ASSIGN_UNIFORM; recipe < N_RECIPES; recipe++) {
    pl_error error = PL_ERROR_INIT;
    pl_strategy strategy = *given;
    strategy.recipe = (pl_assign_recipe)recipe;
    pl_code code = pl_assign(&strategy, model, &job, cluster, &options, &arena, &error);
    if (code == PL_OK) {
      check_cut(&strategy, model, pl_assign_names[recipe]);
      found[recipe].cut++;
    } else {
      if (code != PL_BAD_INPUT && code != PL_UNSUPPORTED)
        fail_msg("%s, %s: %s", model->name, pl_assign_names[recipe], error.message);
      assert_true(error.message[0] != '\0');
      found[recipe].refused++;
    }
  }
}

/* `n_chunks` in all, on as many stages as the devices of a test may be. */
static void try_chunks(uint64_t *random, const pl_model *model, int32_t n_chunks, tally found[N_RECIPES]) {
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  int32_t pp;
  if (n_chunks > MOST_STAGES) n_chunks -= n_chunks % 2;
  do
    pp = random_divisor(random, n_chunks);
  while (pp > MOST_STAGES || (pp == 1 && n_chunks > 1)); /* chunks of one stage are no schedule */
  pl_strategy strategy = {
      .pp = pp, .vpp = n_chunks / pp, .dp = 1, .tmp = 1, .mbs = 1, .order = "tdp", .schedule = PL_SCHEDULE_1F1B};
  strategy.dp = 1 << random_below(random, 2);
  if (strategy.vpp > 1) strategy.schedule = PL_SCHEDULE_INTERLEAVED;
  pl_cluster *cluster = make_cluster(random, (uint32_t)(pp * strategy.dp));
  try_recipes(model, &strategy, cluster, found);
  synthetic_cluster_release(cluster);
  pl_arena_release_to(&arena, mark);
}

static void try_model(uint64_t *random, const pl_model *model, tally found[N_RECIPES]) {
  int32_t n_blocks = pl_model_n_blocks(model), n_most = n_blocks < 40 ? n_blocks + 2 : 40;
  for (int32_t n_chunks = 1; n_chunks <= 4 && n_chunks <= n_most; n_chunks++)
    try_chunks(random, model, n_chunks, found);
  for (int i = 0; i < 3; i++)
    try_chunks(random, model, (int32_t)random_between(random, 1, (uint32_t)n_most), found);
  try_chunks(random, model, model->n_layers < 64 ? model->n_layers : 64, found);
}

static void check_tally(const tally found[N_RECIPES]) {
  for (int recipe = PL_ASSIGN_UNIFORM; recipe < N_RECIPES; recipe++) {
    printf("%s: %u cut, %u refused\n", pl_assign_names[recipe], found[recipe].cut, found[recipe].refused);
    assert_true(found[recipe].cut > found[recipe].refused);
  }
}

static void files_are_cut(void **state) {
  (void)state;
  static const char *const patterns[] = {"workloads/models/*.json", "tests/unit/models/*.json"};
  uint64_t random = test_seed(20261122);
  tally found[N_RECIPES] = {0};
  for (int i = 0; i < 2; i++) {
    glob_t files;
    assert_int_equal(glob(patterns[i], 0, NULL, &files), 0);
    for (size_t f = 0; f < files.gl_pathc; f++) {
      pl_arena_mark mark = pl_arena_mark_here(&arena);
      pl_model model;
      pl_error error = PL_ERROR_INIT;
      if (pl_model_load_any(files.gl_pathv[f], &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
      if (pl_model_has_blocks(&model)) try_model(&random, &model, found);
      pl_arena_release_to(&arena, mark);
    }
    globfree(&files);
  }
  check_tally(found);
}

/* ---- random models ---- */

static int write_transformer(uint64_t *random, char *text, size_t size) {
  static const char *const families[] = {"gpt2", "bert", "llama", "mixtral"};
  const char *family = families[random_below(random, 4)];
  uint32_t n_layers = random_between(random, 1, 12), heads = 1u << random_below(random, 4);
  uint32_t hidden = heads * 8 * random_between(random, 1, 8), vocab = random_between(random, 2, 100000);
  if (strcmp(family, "gpt2") == 0)
    return snprintf(text, size,
                    "{\"model_type\": \"gpt2\", \"n_layer\": %u, \"n_embd\": %u, \"n_head\": %u, \"n_positions\": 64,"
                    " \"vocab_size\": %u}",
                    n_layers, hidden, heads, vocab);
  return snprintf(text, size,
                  "{\"model_type\": \"%s\", \"num_hidden_layers\": %u, \"hidden_size\": %u, \"num_attention_heads\": "
                  "%u, \"num_key_value_heads\": %u, \"intermediate_size\": %u, \"max_position_embeddings\": 64, "
                  "\"vocab_size\": %u, \"num_local_experts\": 4, \"num_experts_per_tok\": 2}",
                  family, n_layers, hidden, heads, heads, 4 * hidden, vocab);
}

/* Blocks of one to three layers, some with a count, the last one a classifier or not. */
static int write_network(uint64_t *random, char *text, size_t size) {
  static const char *const layers[] = {"conv 8 3x3", "conv 4 1x1, relu",          "[conv 8 3x3, conv 4 1x1]",
                                       "relu",       "(conv 2 1x1 | conv 3 3x3)", "max 3/2",
                                       "dropout"};
  int length = snprintf(text, size, "{\"model_type\": \"cnn\", \"image\": [3, 32, 32], \"norm\": \"%s\", \"blocks\": [",
                        random_below(random, 2) ? "batch" : "none");
  uint32_t n = random_between(random, 6, 14);
  for (uint32_t i = 0; i < n; i++)
    length += snprintf(text + length, size - (size_t)length, "\"%s*%u\", ", layers[random_below(random, 7)],
                       random_between(random, 1, 3));
  return length + snprintf(text + length, size - (size_t)length, "\"%s\"]}",
                           random_below(random, 2) ? "mean, linear 10" : "relu");
}

static int write_perceptron(uint64_t *random, char *text, size_t size) {
  uint32_t n_layers = 2 * random_between(random, 1, 10), width = random_between(random, 1, 512);
  return snprintf(text, size, "{\"model_type\": \"mlp\", \"num_hidden_layers\": %u, \"hidden_size\": %u}", n_layers,
                  width);
}

static void random_models_are_cut(void **state) {
  (void)state;
  static int (*const write[])(uint64_t *, char *, size_t) = {write_transformer, write_network, write_perceptron};
  uint64_t random = test_seed(20261123);
  tally found[N_RECIPES] = {0};
  for (uint64_t i = 0, n = test_cases(240); i < n; i++) {
    pl_arena_mark mark = pl_arena_mark_here(&arena);
    char text[1024];
    pl_model model;
    pl_error error = PL_ERROR_INIT;
    int length = write[i % 3](&random, text, sizeof text);
    if (pl_model_parse("random", text, (size_t)length, &arena, &model, &error) != PL_OK)
      fail_msg("%s: %s", text, error.message);
    try_model(&random, &model, found);
    pl_arena_release_to(&arena, mark);
  }
  check_tally(found);
}

/* More layers than AMP's table has room for, and than its cells can number. */
static void deep_models_are_refused_by_the_table_alone(void **state) {
  (void)state;
  static const char text[] = "{\"model_type\": \"mlp\", \"num_hidden_layers\": 40000, \"hidden_size\": 16}";
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("deep", text, sizeof text - 1, &arena, &model, &error), PL_OK);
  uint64_t random = 1;
  tally found[N_RECIPES] = {0};
  try_chunks(&random, &model, 2, found);
  for (int recipe = PL_ASSIGN_UNIFORM; recipe < N_RECIPES; recipe++)
    assert_int_equal(found[recipe].cut, recipe != PL_ASSIGN_AMP);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_cut),
      cmocka_unit_test(random_models_are_cut),
      cmocka_unit_test(deep_models_are_refused_by_the_table_alone),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
