/* Models of unlike blocks: TransGAN's generator.
 *
 * Parameters. The paper's first version (arXiv 2102.07074) scales its generator for CIFAR-10, printed to a tenth of a
 * million: depths 5, 2, 2 at 384, 512 and 768 channels 18.6, 33.1 and 74.3; 5, 4, 2 at 1024 channels 133.6. With c
 * channels, latent vectors of c, a side of 8, and stages of c, c/4 and c/16 channels it has
 *   (c + 1) 64 c + 64 c + 256 c/4 + 1024 c/16 + sum over layers of (12 w^2 + 10 w) + 3 (c/16 + 1)
 * (layer of width w, without biases of queries, keys and values: 4 w^2 + w; 8 w^2 + 5 w; two norms 4 w).
 *
 * AMP's: width 1024 for 12 layers of 81 tokens, width 16 for 12 layers of 256 windows of 324 tokens (bottom width 9,
 * five doublings, windows of 18: (9 * 32 / 18)^2 = 256), 56 blocks of which 3 to 14 and 41 to 52 are layers (AMP,
 * section 6.5.3, counts them from 4 and 42). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/model_file.h"
#include "workloads/import/model_file.h"
#include "workloads/lower/block_program.h"
#include "workloads/program/program.h"
#include "workloads/strategy/strategy.h"

static const char cifar[] =
    "{\"model_type\": \"transgan\", \"latent_dim\": %d, \"gf_dim\": %d, \"bottom_width\": 8, \"num_heads\": 4, "
    "\"blocks\": [\"latent\", \"positions\", \"layer*%d\", \"pixel_shuffle\", \"positions\", \"layer*%d\", "
    "\"pixel_shuffle\", \"positions\", \"layer*%d\", \"pixels\"]}";

static pl_model parse(pl_arena *arena, const char *text) {
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  if (pl_model_parse("test.json", text, strlen(text), arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  return model;
}

static double layer(double w) {
  return 12 * w * w + 10 * w;
}

static void parameters_of_the_paper(void **state) {
  (void)state;
  static const struct {
    int channels, depths[3];
    double millions;
  } sizes[] = {{384, {5, 2, 2}, 18.6}, {512, {5, 2, 2}, 33.1}, {768, {5, 2, 2}, 74.3}, {1024, {5, 4, 2}, 133.6}};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const int *d = sizes[i].depths;
    double c = sizes[i].channels;
    char text[512];
    snprintf(text, sizeof text, cifar, sizes[i].channels, sizes[i].channels, d[0], d[1], d[2]);
    pl_model model = parse(&arena, text);
    double expected = (c + 1) * 64 * c + 64 * c + 256 * c / 4 + 1024 * c / 16 + d[0] * layer(c) + d[1] * layer(c / 4) +
                      d[2] * layer(c / 16) + 3 * (c / 16 + 1);
    assert_true(model.count.parameters == expected);
    assert_true(fabs(model.count.parameters - 1e6 * sizes[i].millions) <= 0.003 * model.count.parameters);
  }
  pl_arena_release(&arena);
}

static void blocks_of_amp(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  assert_int_equal(pl_model_n_blocks(&model), 56);
  assert_int_equal(pl_model_count_blocks(&model, PL_BLOCK_LAYER), 24);
  for (int32_t block = 0; block < 56; block++) {
    bool wide = block >= 3 && block <= 14, narrow = block >= 41 && block <= 52;
    assert_int_equal(pl_model_block_kind(&model, block) == PL_BLOCK_LAYER, wide || narrow);
    const pl_model_part *part = &model.unlike.parts[model.unlike.part_of[block]];
    if (wide || narrow) assert_int_equal(part->model->width.hidden, wide ? 1024 : 16);
    if (wide || narrow) assert_int_equal(part->windows, wide ? 1 : 256);
    if (wide || narrow) assert_int_equal(part->rows, wide ? 81 : 324);
  }
  /* 3 w + w + 4 w + w biases, a table of (2 side - 1)^2 entries for each of 4 heads, no parameters in the norms. */
  assert_true(pl_model_block_parameters(&model, 3) == 12 * 1024.0 * 1024 + 9 * 1024 + 17 * 17 * 4);
  assert_true(pl_model_block_parameters(&model, 52) == 12 * 16.0 * 16 + 9 * 16 + 35 * 35 * 4);
  assert_true(pl_model_block_parameters(&model, 0) == 513.0 * 81 * 1024);
  pl_arena_release(&arena);
}

/* Three times: products with matrices 24 w^2 a token, scores and context 4 s w a token; the two linear ends. */
static void flops_of_amp(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  double wide = 81 * (24.0 * 1024 * 1024 + 4 * 81.0 * 1024), tokens = 288.0 * 288,
         narrow = tokens * (24.0 * 16 * 16 + 4 * 324.0 * 16), ends = 2 * 512.0 * 81 * 1024 + 2 * tokens * 16 * 3;
  double expected = 3 * (12 * (wide + narrow) + ends);
  assert_true(fabs(pl_model_flops_per_sequence(&model, 81) - expected) <= 1e-12 * expected);
  pl_arena_release(&arena);
}

/* What a block hands on is what the next one takes, and the parts' counts add up to the model's. */
static void programs_of_amp(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  pl_block_program programs[PL_MODEL_CLASSES_MAX];
  pl_error error = PL_ERROR_INIT;
  for (int32_t tmp = 1; tmp <= 4; tmp *= 2) {
    const pl_block_shard shard = {.tmp = tmp, .mbs = 2, .seq = 81, .dtype = PL_DTYPE_FP16, .flash = true};
    double sum = 0, flops = 0;
    for (int32_t c = 0; c < pl_model_n_classes(&model); c++)
      assert_int_equal(pl_block_class_program_take(&model, c, &shard, &arena, &programs[c], &error), PL_OK);
    for (int32_t block = 0; block < 56; block++) {
      const pl_block_program *program = &programs[pl_model_block_class(&model, block)];
      sum += program->parameters;
      flops += program->model_flops;
      if (block == 0) continue;
      const pl_block_program *before = &programs[pl_model_block_class(&model, block - 1)];
      if (before->output_bytes != program->tensors[program->input].size_bytes)
        fail_msg("tmp=%d: %s hands on %g bytes, %s takes %g", tmp, pl_block_kind_name(before->kind),
                 before->output_bytes, pl_block_kind_name(program->kind), program->tensors[program->input].size_bytes);
    }
    if (tmp == 1) assert_true(sum == model.count.parameters);
    assert_true(sum <= model.count.parameters && sum >= model.count.parameters / tmp);
    assert_true(fabs(3 * flops - 2 * pl_model_flops_per_sequence(&model, 81)) <= 1e-12 * 3 * flops);
  }
  pl_arena_release(&arena);
}

/* A kernel that fuses attention takes no table of positions: scores are kept whatever is asked for. */
static void attention_is_not_fused(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  pl_error error = PL_ERROR_INIT;
  double saved[2];
  for (int flash = 0; flash < 2; flash++) {
    const pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = 81, .dtype = PL_DTYPE_FP16, .flash = flash == 1};
    pl_block_program program;
    int32_t c = pl_model_block_class(&model, 41);
    assert_int_equal(pl_block_class_program_take(&model, c, &shard, &arena, &program, &error), PL_OK);
    saved[flash] = program.saved_bytes;
  }
  assert_true(saved[0] == saved[1] && saved[0] > 256 * 4 * 324.0 * 324 * 2);
  pl_arena_release(&arena);
}

/* The boundaries of Megatron's baseline in AMP's table 10. */
static void uniform_counts_layers(void **state) {
  (void)state;
  static const struct {
    const char *strategy, *boundaries;
  } cases[] = {{"pp=2,dp=8,tmp=1,mbs=1", "0:41:56"},
               {"pp=4,dp=4,tmp=1,mbs=1", "0:9:41:47:56"},
               {"pp=1,dp=16,tmp=1,mbs=1", "0:56"}};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  const pl_job job = {.gbs = 64, .seq = 81, .dtype = PL_DTYPE_FP16};
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy;
  char text[128];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(pl_strategy_parse(cases[i].strategy, &model, &arena, &strategy, &error), PL_OK);
    assert_int_equal(pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error), PL_OK);
    pl_strategy_format_assign(&strategy, &model, text, sizeof text);
    assert_string_equal(text, cases[i].boundaries);
  }
  assert_int_equal(pl_strategy_parse("pp=32,dp=1,tmp=1,mbs=1", &model, &arena, &strategy, &error), PL_OK);
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "a model of 24 layers"));
  pl_arena_release(&arena);
}

static void refuse_shard(const pl_model *model, pl_arena *arena, pl_block_shard shard, const char *says) {
  pl_error error = PL_ERROR_INIT;
  pl_block_program program;
  assert_int_equal(pl_block_class_program_take(model, 0, &shard, arena, &program, &error), PL_BAD_INPUT);
  if (strstr(error.message, says) == NULL) fail_msg("'%s' without '%s'", error.message, says);
}

static void shards_that_cannot_be(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "transgan-amp", &arena);
  const pl_block_shard good = {.tmp = 3, .mbs = 1, .seq = 81, .dtype = PL_DTYPE_FP16};
  pl_block_shard shard = good;
  shard.seq = 1024;
  refuse_shard(&model, &arena, shard, "leave out --seq");
  shard = good;
  shard.sp = true;
  refuse_shard(&model, &arena, shard, "use sp=0");
  shard = good;
  shard.cp = 3;
  refuse_shard(&model, &arena, shard, "use cp=1");
  refuse_shard(&model, &arena, good, "tmp=3 does not divide the 4 attention heads");
  pl_arena_release(&arena);
}

static void refuse(const char *blocks, const char *says) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  const char *text = pl_arena_printf(&arena,
                                     "{\"model_type\": \"transgan\", \"latent_dim\": 8, \"gf_dim\": 32, "
                                     "\"bottom_width\": 3, \"num_heads\": 4, \"blocks\": [%s]}",
                                     blocks);
  pl_code code = pl_model_parse("test.json", text, strlen(text), &arena, &model, &error);
  if (code != PL_BAD_INPUT || strstr(error.message, says) == NULL || strstr(error.message, "test.json:1:") == NULL)
    fail_msg("[%s]: code %d, '%s' without '%s'", blocks, code, error.message, says);
  pl_arena_release(&arena);
}

static void mistakes(void **state) {
  (void)state;
  refuse("\"layer*7\"", "number 1: the first block, and no other, is latent");
  refuse("\"latent\", \"latent\"", "number 2: the first block, and no other, is latent");
  refuse("\"latent\", \"layer\", \"pixels\"", "3 of them; 7 are needed");
  refuse("\"latent\", \"layer*9\"", "the last one must be pixels");
  refuse("\"latent\", \"attention\"", "'attention' is unknown; there are latent, positions, layer");
  refuse("\"latent\", \"layer*0\"", "has a count that is not from 1 to");
  refuse("\"latent\", \"layer*2x\"", "has a count that is not from 1 to");
  refuse("\"latent\", \"layer*4096\"", "too many");
  refuse("\"latent\", \"partition\"", "needs 'g_window_size'");
  refuse("\"latent\", \"merge\"", "is not in windows");
  refuse("\"latent\", \"pixel_shuffle*2\", \"layer\"", "'num_heads' does not divide the channels");
  refuse("\"latent\", \"pixel_shuffle*3\"", "needs channels that 4 divides");
  refuse("\"latent\", \"upsample*14\"", "the picture becomes too large");
  refuse("\"latent\", 3, \"pixels\"", "expected a string");
  refuse("", "0 of them; 7 are needed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_of_the_paper),
      cmocka_unit_test(blocks_of_amp),
      cmocka_unit_test(flops_of_amp),
      cmocka_unit_test(programs_of_amp),
      cmocka_unit_test(attention_is_not_fused),
      cmocka_unit_test(shards_that_cannot_be),
      cmocka_unit_test(mistakes),
      cmocka_unit_test(uniform_counts_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
