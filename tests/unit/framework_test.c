/* Framework profiles: what is shipped is complete and says where from; what is refused, with which words; bytes per
 * parameter. (What switches do to a block: framework_block_test.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/text/document.h"
#include "tests/support/arena_fixture.h"
#include "workloads/framework/framework.h"
#include "workloads/program/program.h"

static pl_framework parse(const char *text) {
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  if (pl_framework_parse("f.json", text, strlen(text), &arena, &framework, &error) != PL_OK)
    fail_msg("%s", error.message);
  return framework;
}

static void refuse(const char *text, const char *words) {
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_framework_parse("f.json", text, strlen(text), &arena, &framework, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL) fail_msg("'%s' is not in '%s'", words, error.message);
}

static void test_refused(void **state) {
  (void)state;
  refuse("{}", "name");
  refuse("{\"name\": \"\"}", "1 to 32 characters");
  refuse("{\"name\": \"x\", \"kernel\": {}}", "unknown key 'kernel'");
  refuse("{\"name\": \"x\", \"kernels\": []}", "expected an object");
  refuse("{\"name\": \"x\", \"kernels\": {\"fused\": true}}", "f.json:1:");
  refuse("{\"name\": \"x\", \"kernels\": {\"loss_metrics\": 60}}", "'loss_metrics' is 60, out of the range 0 to 8");
  refuse("{\"name\": \"x\", \"kernels\": {\"loss_metrics\": 1.5}}", "loss_metrics");
  refuse("{\"name\": \"x\", \"kernels\": {\"fused\": true}}", "unknown key 'fused' in kernels");
  refuse("{\"name\": \"x\", \"kernels\": {\"fused_norm\": 1}}", "fused_norm");
  refuse("{\"name\": \"x\", \"kernels\": {\"loss\": \"lost\"}}", "'lost' is none of in_place, copy, copies, fused");
  refuse("{\"name\": \"x\", \"kernels\": {\"vocab_multiple\": 0}}", "vocab_multiple");
  refuse("{\"name\": \"x\", \"state\": {\"gradient_dtype\": \"fp8\"}}", "'fp8' is none of default, fp32, fp16, bf16");
  refuse("{\"name\": \"x\", \"state\": {\"gradient_dtype\": \"fp4\"}}", "'fp4' is none of default, fp32, fp16, bf16");
  refuse("{\"name\": \"x\", \"state\": {\"gradient_dtype\": \"tf32\"}}", "'tf32' is none of default");
  refuse("{\"name\": \"x\", \"communication\": {\"reduce_dtype\": \"fp4\"}}", "'fp4' is none of as_kept, fp32");
  refuse("{\"name\": \"x\", \"communication\": {\"reduce_dtype\": \"\"}}", "'' is none of as_kept, fp32");
  refuse("{\"name\": \"x\", \"host\": {\"launch\": \"12 parsecs\"}}", "launch");
  refuse("{\"name\": \"x\", \"host\": {\"launch\": \"-1us\"}}", "launch");
  refuse("{\"name\": \"x\", \"memory\": {\"fragmentation\": 1}}", "below 1");
  refuse("{\"name\": \"x\", \"communication\": {\"bucket\": \"big\"}}", "bucket");
}

/* What no layer does, and what no 64-bit count would hold. */
static void test_ranges(void **state) {
  (void)state;
  refuse("{\"name\": \"x\", \"kernels\": {\"forward_runs\": 0}}", "'forward_runs' is 0, out of the range 1 to 8");
  refuse("{\"name\": \"x\", \"kernels\": {\"mask_kernels\": 0}}", "'mask_kernels' is 0, out of the range 1 to 8");
  refuse("{\"name\": \"x\", \"kernels\": {\"mask_gradients\": 9}}", "out of the range 0 to 8");
  static const char *const sizes[] = {"replayed_workspace", "workspace", "context", "communicator"};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    refuse(pl_arena_printf(&arena, "{\"name\": \"x\", \"memory\": {\"%s\": \"1e300B\"}}", sizes[i]),
           "no device has more");
  refuse("{\"name\": \"x\", \"host\": {\"ops_ahead\": 1e16}}", "ops_ahead is 1e+16: it must be at least 0 and at most");
  refuse("{\"name\": \"x\", \"host\": {\"ops_ahead\": -1}}", "ops_ahead is -1: it must be at least 0");
  refuse("{\"name\": \"x\", \"memory\": {\"pipeline_buffers\": 1025}}", "at least 0 and at most 1024");
  pl_framework f = parse("{\"name\": \"x\", \"kernels\": {\"forward_runs\": 1, \"mask_gradients\": 0}, \"host\": "
                         "{\"ops_ahead\": 9007199254740992}, \"memory\": {\"workspace\": \"1024TiB\"}}");
  assert_true(f.kernels.forward_runs == 1 && f.kernels.mask_gradients == 0 && f.memory.workspace_bytes == 0x1p50);
  assert_true(f.launch.ops_ahead == 0x1p53);
}

static void test_defaults_are_ideal(void **state) {
  (void)state;
  pl_framework read = parse("{\"name\": \"x\", \"about\": \"a\", \"provenance\": {}}"), ideal = pl_framework_ideal;
  assert_string_equal(read.name, "x");
  ideal.name = read.name;
  ideal.digest = read.digest;
  assert_int_equal(ideal.kernels.attention_kernel, PL_ATTENTION_FASTEST);
  ideal.kernels.attention_kernel = PL_ATTENTION_ANY; /* the one that a file has to name */
  assert_memory_equal(&read, &ideal, sizeof ideal);
}

static void test_values(void **state) {
  (void)state;
  pl_framework f =
      parse("{\"name\": \"x\", \"kernels\": {\"loss\": \"copies\", \"vocab_multiple\": 64},"
            " \"state\": {\"gradient_dtype\": \"bf16\", \"optimizer\": \"foreach\", \"weights\": \"fp32\"},"
            " \"communication\": {\"bucket\": \"all\", \"reduce_dtype\": \"fp16\", \"overlaps_tensor\": true, "
            "\"overlaps_tensor_backward\": true, "
            "\"sends_tokens_per_node\": true, \"sends_tokens_fp8\": true, \"exchange_multiprocessors\": 20},"
            " \"host\": {\"launch\": \"10us\", \"window\": \"pass\"},"
            " \"memory\": {\"context\": \"1GiB\", \"fragmentation\": 0.25}}");
  assert_int_equal(f.kernels.loss, PL_LOSS_COPIES);
  assert_int_equal(f.kernels.vocab_multiple, 64);
  assert_int_equal(f.gradients.gradient_dtype, PL_DTYPE_BF16);
  assert_int_equal(f.update.optimizer, PL_OPTIMIZER_FOREACH);
  assert_int_equal(f.update.weights, PL_WEIGHTS_FP32);
  assert_int_equal(f.gradients.reduce_dtype, PL_DTYPE_FP16);
  assert_true(f.pipeline.overlaps_tensor && f.pipeline.overlaps_tensor_backward && f.pipeline.sends_tokens_per_node &&
              f.pipeline.sends_tokens_fp8);
  const pl_device_profile device = {.gemm.multiprocessors = 132}, few = {.gemm.multiprocessors = 16}, unknown = {0};
  assert_true(pl_framework_crowding(&f, &device) == 132.0 / 112 - 1 && pl_framework_crowding(&f, &few) == 15);
  assert_true(pl_framework_crowding(&f, &unknown) == 0 && pl_framework_crowding(NULL, &device) == 0);
  assert_int_equal(f.launch.host_window, PL_HOST_PASS);
  assert_true(f.launch.launch_s == 10e-6 && f.memory.context_bytes == 0x1p30 && f.memory.fragmentation == 0.25);
  pl_job job = {.dtype = PL_DTYPE_BF16};
  pl_framework_apply(&f, &job);
  assert_true(isinf(job.bucket_bytes) && job.flash && job.split_sends && job.framework == &f);
}

/* Every shipped profile can be read, is called like its file and says where each of its sections comes from. */
static void test_shipped(void **state) {
  (void)state;
  static const char *const sections[] = {"kernels", "state", "communication", "host", "memory"};
  const char *list = pl_framework_list(&arena);
  assert_non_null(list);
  assert_true(strncmp(list, "ideal, ", 7) == 0);
  char *rest = pl_arena_strdup(&arena, list + 7);
  uint32_t n = 0;
  for (char *name; (name = strsep(&rest, ",")) != NULL; n++) {
    name += strspn(name, " ");
    pl_framework framework;
    pl_error error = PL_ERROR_INIT;
    if (pl_framework_load(name, &arena, &framework, &error) != PL_OK) fail_msg("%s", error.message);
    assert_string_equal(framework.name, name);
    char path[512];
    snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/workloads/frameworks/%s.json", name);
    pl_document *document;
    if (pl_document_load(path, &document, &error) != PL_OK) fail_msg("%s", error.message);
    const pl_node *provenance = pl_node_get(pl_document_root(document), "provenance");
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
      if (pl_node_get(pl_document_root(document), sections[i]) == NULL) continue;
      const char *text;
      if (pl_node_string(document, provenance, sections[i], &text, &error) != PL_OK) fail_msg("%s", error.message);
      if (strlen(text) < 20) fail_msg("%s: provenance of %s says '%s'", name, sections[i], text);
    }
    pl_document_destroy(document);
  }
  assert_true(n >= 10);
}

static void test_unknown_name(void **state) {
  (void)state;
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_framework_load("no-such", &arena, &framework, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "'no-such' is not among ideal, "));
  assert_non_null(strstr(error.message, "nanotron"));
}

/* ---- bytes per parameter ---- */

static void expect_state(const char *text, pl_dtype dtype, int32_t dp, pl_training_state wanted) {
  pl_framework framework = parse(pl_arena_printf(&arena, "{\"name\": \"x\", %s}", text));
  const pl_job job = {.dtype = dtype, .framework = &framework};
  pl_training_state got = pl_training_state_of(&job, dp);
  if (memcmp(&got, &wanted, sizeof got) != 0)
    fail_msg("%s: %g %g %g cast %g gathered %g reduced %g extra %g update %g, %g, %g", text, got.parameter_bytes,
             got.gradient_bytes, got.optimizer_bytes, got.cast_bytes, got.gathered_bytes, got.reduced_bytes,
             got.extra_gradient_bytes, got.update_bytes, got.update_traffic_bytes, got.whole_traffic_bytes);
}

static void test_training_state(void **state) {
  (void)state;
  /* FSDP: fp32 weights, gradients and moments, 16 bits gathered and reduced; Adam in 21 passes over four bytes, the
   * 16-bit copy written, one more read for it, and the denominators as tensors of their own. */
  expect_state("\"state\": {\"weights\": \"fp32\", \"optimizer\": \"foreach\"}, \"communication\": {\"reduce_dtype\": "
               "\"bf16\"}",
               PL_DTYPE_BF16, 8,
               (pl_training_state){.parameter_bytes = 4,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 8,
                                   .cast_bytes = 2,
                                   .gathered_bytes = 2,
                                   .reduced_bytes = 2,
                                   .update_bytes = 4,
                                   .update_traffic_bytes = 84 + 2 + 4});
  /* A job in fp32 has no mixed precision: its gradients travel as they are kept. */
  expect_state("\"state\": {\"weights\": \"fp32\", \"optimizer\": \"foreach\"}, \"communication\": {\"reduce_dtype\": "
               "\"bf16\"}",
               PL_DTYPE_FP32, 8,
               (pl_training_state){.parameter_bytes = 4,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 8,
                                   .gathered_bytes = 4,
                                   .reduced_bytes = 4,
                                   .update_bytes = 4,
                                   .update_traffic_bytes = 84});
  /* DDP without bucket views: gradients twice, but only where there is somebody to reduce with. */
  expect_state("\"communication\": {\"copies_buckets\": true}", PL_DTYPE_FP32, 2,
               (pl_training_state){.parameter_bytes = 4,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 8,
                                   .gathered_bytes = 4,
                                   .reduced_bytes = 4,
                                   .extra_gradient_bytes = 4,
                                   .update_traffic_bytes = 28});
  expect_state("\"communication\": {\"copies_buckets\": true}", PL_DTYPE_FP32, 1,
               (pl_training_state){.parameter_bytes = 4,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 8,
                                   .gathered_bytes = 4,
                                   .reduced_bytes = 4,
                                   .update_traffic_bytes = 28});
  /* Gradients like the weights: of 16 bits those that the job has. */
  pl_framework narrow = parse("{\"name\": \"x\", \"state\": {\"gradient_dtype\": \"bf16\"}}");
  assert_int_equal(pl_framework_gradient_dtype(&narrow, PL_DTYPE_BF16), PL_DTYPE_BF16);
  assert_int_equal(pl_framework_gradient_dtype(&narrow, PL_DTYPE_FP16), PL_DTYPE_FP16);
  assert_int_equal(pl_framework_gradient_dtype(&narrow, PL_DTYPE_FP32), PL_DTYPE_FP32);
  /* A norm over fp32 gradients, and their scaling: one reading, one reading and writing. */
  expect_state("\"state\": {\"clips_gradients\": true}", PL_DTYPE_BF16, 1,
               (pl_training_state){.parameter_bytes = 2,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 12,
                                   .gathered_bytes = 2,
                                   .reduced_bytes = 4,
                                   .update_traffic_bytes = 30 + 12});
  /* Cleared, and passed over three times as they are reduced. */
  expect_state("\"state\": {\"clears_gradients\": true}, \"communication\": {\"gradient_passes\": 3, \"reduce_dtype\": "
               "\"bf16\"}",
               PL_DTYPE_BF16, 2,
               (pl_training_state){.parameter_bytes = 2,
                                   .gradient_bytes = 4,
                                   .optimizer_bytes = 12,
                                   .gathered_bytes = 2,
                                   .reduced_bytes = 2,
                                   .update_traffic_bytes = 30,
                                   .whole_traffic_bytes = 4 + 3 * 2});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_defaults_are_ideal, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_ranges, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_shipped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_unknown_name, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_training_state, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
