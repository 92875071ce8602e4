/* Parameter counts of every model that ships, to the unit.
 *
 * GPT-2 class (V vocabulary, P positions, h, f = 4 h, l layers; tied head):
 *   V h + P h + l (12 h^2 + 13 h) + 2 h
 * BERT (T token types; BertModel with pooler): (V + P + T) h + 2 h + l (12 h^2 + 13 h) + h^2 + h
 * Llama, Mistral (k key-value heads of size d, gated, no biases, RMS norms, untied head):
 *   2 V h + l (2 h^2 + 2 h k d + 3 h f + 2 h) + h
 * GPT-NeoX: 2 V h + l (12 h^2 + 13 h) + 2 h
 * The numbers below are what sum(p.numel() for p in model.parameters()) gives for the Hugging Face classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

typedef struct expected {
  const char *file;
  double parameters;
} expected;

static pl_model load(pl_arena *arena, const char *file) {
  char path[512];
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/%s", file);
  if (pl_model_load(path, arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  return model;
}

static double block_sum(const pl_model *model) {
  double sum = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    sum += pl_model_block_parameters(model, block);
  return sum;
}

static void test_published_counts(void **state) {
  (void)state;
  static const expected table[] = {
      {"workloads/models/gpt2-117m.json", 124439808},
      {"workloads/models/gpt2-345m.json", 354823168},
      {"workloads/models/gpt2-1.5b.json", 1557611200},
      {"workloads/models/bert-base.json", 109482240},
      {"workloads/models/bert-large.json", 335141888},
      {"workloads/models/llama-2-7b.json", 6738415616},
      {"workloads/models/llama-2-13b.json", 13015864320},
      {"workloads/models/llama-2-70b.json", 68976648192},
      {"workloads/models/llama-3-8b.json", 8030261248},
      {"workloads/models/llama-3-70b.json", 70553706496},
      {"workloads/models/llama-3-405b.json", 405853388800},
      {"tests/unit/models/gpt-neox-20b.json", 20554567680},
      {"tests/unit/models/mistral-7b.json", 7241732096},
      {"tests/unit/models/bert-base-uncased.json", 109514298}, /* BertForMaskedLM: no pooler, a head instead */
      {"tests/unit/models/bert-pretraining.json", 110106428},  /* BertForPreTraining */
      {"tests/unit/models/llama-3.2-1b.json", 1235814400},     /* head_dim given, tied */
      /* What the files published with the weights hold (model.safetensors.index.json, or the hub's count). */
      {"workloads/models/llama-3.2-1b.json", 1235814400},
      {"workloads/models/mixtral-8x7b.json", 46702792704},
      {"workloads/models/mixtral-8x22b.json", 140630071296},
      {"workloads/models/qwen2.5-7b.json", 7615616512},
      {"tests/unit/models/qwen3-0.6b.json", 596049920}, /* head_dim 128 of 1024 / 16, tied */
      {"workloads/models/qwen3-8b.json", 8190735360},
      {"workloads/models/qwen3-30b-a3b.json", 30532122624},
      {"workloads/models/qwen3-235b-a22b.json", 235093634560},
      {"tests/unit/models/qwen1.5-moe-a2.7b.json", 14315784192}, /* shared expert with a gate */
      {"workloads/models/gemma-7b.json", 8537680896},
      {"tests/unit/models/gemma-2-9b.json", 9241705984},
      {"workloads/models/deepseek-v2-lite.json", 15706484224}, /* queries not compressed */
      /* 671026419200 less the routers' 58 * 256 correction biases, which the class keeps as buffers. */
      {"workloads/models/deepseek-v3.json", 671026404352},
  };
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    pl_model model = load(&arena, table[i].file);
    print_message("%-44s %.0f\n", table[i].file, model.count.parameters);
    if (model.count.parameters != table[i].parameters)
      fail_msg("%s: %.0f, not %.0f", table[i].file, model.count.parameters, table[i].parameters);
    assert_true(block_sum(&model) == model.count.trained_parameters);
    assert_true(strcmp(model.architecture, "BertModel") == 0 ||
                model.count.trained_parameters == model.count.parameters);
  }
  pl_arena_release(&arena);
}

/* The names of Megatron's table are P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)) (Narayanan et al. 2021, eq. 2,
 * which leaves the final norm out) in billions, to one decimal. */
static void test_megatron_table(void **state) {
  (void)state;
  static const struct {
    const char *size;
    double billions;
  } table[] = {{"1.7b", 1.7},   {"3.6b", 3.6},     {"7.5b", 7.5},     {"18.4b", 18.4},   {"39.1b", 39.1},
               {"76.1b", 76.1}, {"145.6b", 145.6}, {"310.1b", 310.1}, {"529.6b", 529.6}, {"1008b", 1008.0}};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    char file[128];
    snprintf(file, sizeof file, "workloads/models/megatron-%s.json", table[i].size);
    pl_model model = load(&arena, file);
    double h = (double)model.width.hidden, l = model.n_layers, V = 51200, s = 2048;
    assert_true(model.count.parameters - 2 * h == 12 * l * h * h + 13 * l * h + (V + s) * h);
    print_message("%-40s %.0f\n", file, model.count.parameters);
    if (!(model.count.parameters > (table[i].billions - 0.051) * 1e9 &&
          model.count.parameters < (table[i].billions + 0.051) * 1e9))
      fail_msg("%s: %.0f parameters", file, model.count.parameters);
  }
  pl_model gpt3 = load(&arena, "workloads/models/gpt3-175b.json");
  assert_true(gpt3.count.parameters ==
              51200.0 * 12288 + 2048.0 * 12288 + 96 * (12.0 * 12288 * 12288 + 13.0 * 12288) + 2 * 12288);
  pl_arena_release(&arena);
}

/* Sharded: t ranks hold t times the split weights of 1/t and t copies of what is replicated (norms and the biases of
 * row-split matrices). */
static void test_shards(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load(&arena, "workloads/models/megatron-18.4b.json");
  double h = (double)model.width.hidden, replicated = 6 * h;
  for (int32_t tmp = 1; tmp <= 16; tmp *= 2) {
    pl_block_shard shard = {.tmp = tmp, .sp = tmp > 1, .mbs = 2, .seq = 2048, .dtype = PL_DTYPE_BF16, .flash = true};
    pl_block_program program;
    assert_int_equal(pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, NULL), PL_OK);
    assert_true(program.parameters == (12 * h * h + 7 * h) / tmp + replicated);
    assert_true(program.tied_parameters == 0);
    assert_int_equal(pl_block_program_take(&model, PL_BLOCK_HEAD, &shard, &arena, &program, NULL), PL_OK);
    assert_true(program.parameters == 0 && program.tied_parameters == 51200 * h / tmp);
  }
  /* The vocabulary is padded to a multiple of 128 tmp: 50257 to 393 * 128, 197 * 256, 99 * 512. */
  model = load(&arena, "workloads/models/gpt2-345m.json");
  const double padded[] = {50304, 50432, 50688};
  for (int i = 0; i < 3; i++) {
    pl_block_shard shard = {.tmp = 1 << i, .mbs = 1, .seq = 1024, .dtype = PL_DTYPE_FP16};
    pl_block_program program;
    assert_int_equal(pl_block_program_take(&model, PL_BLOCK_EMBEDDING, &shard, &arena, &program, NULL), PL_OK);
    assert_true(program.parameters == padded[i] / shard.tmp * 1024 + 1024 * 1024);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_published_counts),
      cmocka_unit_test(test_megatron_table),
      cmocka_unit_test(test_shards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
