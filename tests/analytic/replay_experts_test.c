/* A training with more tensors than any list had room for once (workloads/memory/replay.h): every expert has weights of
 * its own, and so the replay's peak grows with their number E by the same for each, closed forms apart:
 *
 *   peak(4 E) - peak(2 E) = 2 (peak(2 E) - peak(E))
 *
 * where E is so large that what grows with it, 16 bytes a parameter and the router's, outweighs all else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/replayed_stage.h"
#include "workloads/import/model_file.h"
#include "workloads/memory/stage_replay.h"

enum { EXPERTS = 2048, LAYERS = 2 };

static pl_model mixtral(int n_experts) {
  const char *path = "replay_experts_model.json";
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(
      file,
      "{\"model_type\": \"mixtral\", \"num_hidden_layers\": %d, \"hidden_size\": 64, \"num_attention_heads\": 4,"
      " \"num_key_value_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 64, \"max_position_embeddings\": 16,"
      " \"num_local_experts\": %d, \"num_experts_per_tok\": 2}",
      (int)LAYERS, n_experts);
  assert_int_equal(fclose(file), 0);
  if (pl_model_load_any(path, &arena, &model, &error) != PL_OK) fail_msg("%s", error.message);
  remove(path);
  return model;
}

static pl_replayed_memory replay(int n_experts, const char *text) {
  pl_framework framework = pl_framework_ideal;
  framework.memory.allocator = PL_ALLOCATOR_CACHING;
  const pl_model model = mixtral(n_experts);
  const pl_job job = {.gbs = 4, .seq = 16, .dtype = PL_DTYPE_BF16, .flash = true, .framework = &framework};
  return replay_stage(&model, &job, NULL, text, 0, 0, &arena);
}

static void every_expert_is_there(void **state) {
  (void)state;
  static const char *const texts[] = {"pp=1,dp=1,tmp=1,mbs=1,assign=uniform",
                                      "pp=1,dp=2,tmp=1,mbs=1,zero=1,assign=uniform",
                                      "pp=1,dp=2,tmp=1,mbs=1,zero=3,assign=uniform"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    double some = replay(EXPERTS, texts[i]).peak, more = replay(2 * EXPERTS, texts[i]).peak,
           most = replay(4 * EXPERTS, texts[i]).peak;
    double expert_bytes = (more - some) / EXPERTS; /* over all layers */
    if (!(expert_bytes >= LAYERS * 3.0 * 64 * 128 * 2))
      fail_msg("%s: an expert takes %g bytes", texts[i], expert_bytes);
    if (fabs(most - more - 2 * (more - some)) > 1e-3 * (most - more))
      fail_msg("%s: %g, %g, %g bytes", texts[i], some, more, most);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(every_expert_is_there, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
