/* Words of NVIDIA's world in rows of measurements: models under other names, vocabularies that go without saying,
 * hybrids, overlap that is told in notes, XLA, and BERT's losses (validation/rows/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/row_fixture.h"

#define COLUMNS                                                                                                        \
  "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,mlp_type,tp,pp,dp,"    \
  "mbs,"                                                                                                               \
  "gbs,recompute,step_time_s,notes\n"

typedef struct row {
  const char *model, *dimensions, *seq, *gpu, *framework, *tp, *recompute, *notes;
} row;

static const pl_case *express(row r) {
  char text[2048];
  snprintf(text, sizeof text, COLUMNS "f,%s,%s,%s,,%s,8,%s,fp16,,%s,1,,8,64,%s,1,%s\n", r.model, r.dimensions, r.seq,
           r.gpu, r.framework, r.tp, r.recompute, r.notes);
  return express_table(text).cases;
}

static const row gpt = {"GPT3-5B", "24,4096,16384,32", "2048", "H100", "NeMo", "1", "", ""};
static const row bert = {"BERT Large", "24,1024,4096,16", "512", "V100", "TensorFlow 1 Horovod", "1", "", ""};

/* Names that models.csv does not have. */
static void names_and_vocabularies(void **state) {
  (void)state;
  static const struct {
    const char *model, *dimensions;
    int64_t vocab; /* 0: cannot be expressed for want of it */
  } rows[] = {{"GPT3-5B", "24,4096,16384,32", 51200},  {"Nemotron-8B", "32,4096,16384,32", 256000},
              {"LLaMA 7B", "32,4096,11008,32", 32000}, {"GPT-3 6.7B", "32,4096,16384,32", 50257},
              {"BERT 4B", "48,2560,10240,32", 30522},  {"LLaMA 65B", "80,8192,22016,64", 0},
              {"GPT-NeoX 20B", "44,6144,24576,64", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    row r = gpt;
    r.model = rows[i].model;
    r.dimensions = rows[i].dimensions;
    const pl_case *c = express(r);
    if (rows[i].vocab == 0) {
      assert_non_null(c->reason);
      assert_non_null(strstr(c->reason, "not stated: vocab"));
    } else {
      if (c->reason != NULL) fail_msg("%s: %s", rows[i].model, c->reason);
      assert_int_equal(c->model->width.vocab, rows[i].vocab);
    }
  }
}

static void hybrids(void **state) {
  (void)state;
  row r = gpt;
  r.model = "Nemotron_3_Nano";
  r.dimensions = ",,,";
  assert_non_null(strstr(express(r)->reason, "not a transformer"));
  r.model = "Nemotron3 8B";
  assert_null(express(r)->reason);
}

static void overlap_of_tensor_groups(void **state) {
  (void)state;
  row r = gpt;
  r.framework = "Megatron-Core";
  r.tp = "2";
  assert_false(express(r)->framework.pipeline.overlaps_tensor);
  r.notes = "--tp-comm-overlap";
  assert_true(express(r)->framework.pipeline.overlaps_tensor);
  r.framework = "NeMo";
  r.notes = "";
  assert_true(express(r)->framework.pipeline.overlaps_tensor);
  r.notes = "configuration: TP_COMM_OVERLAP=False";
  assert_false(express(r)->framework.pipeline.overlaps_tensor);
}

static void compiled_by_xla(void **state) {
  (void)state;
  row r = gpt;
  r.framework = "JAX MaxText (XLA)";
  r.recompute = "minimal_flash";
  const pl_case *c = express(r);
  assert_null(c->reason);
  assert_string_equal(c->framework.name, "jax-xla");
  assert_int_equal(c->strategy.recompute, PL_RECOMPUTE_NONE);
  r.recompute = "SAVE_NOTHING";
  assert_int_equal(express(r)->strategy.recompute, PL_RECOMPUTE_FULL);
}

/* 80 tokens of 512, 20 of 128 where the script picks them. */
static void losses_of_bert(void **state) {
  (void)state;
  row r = bert;
  assert_int_equal(express(r)->model->ends.predictions, 80);
  assert_string_equal(express(r)->framework.name, "tensorflow");
  r.framework = "TensorFlow 1 Horovod (XLA)";
  assert_string_equal(express(r)->framework.name, "tensorflow-xla");
  r.gpu = "A100";
  r.seq = "128";
  assert_int_equal(express(r)->model->ends.predictions, 20);
  assert_false(express(r)->job.flash);
  r.framework = "PyTorch (DeepLearningExamples 21.11)";
  assert_int_equal(express(r)->model->ends.predictions, 20);
  r.framework = "Megatron-LM";
  assert_int_equal(express(r)->model->ends.predictions, 0);
  r = bert;
  r.notes = "sequences are binned by length";
  assert_non_null(strstr(express(r)->reason, "not stated: lengths"));
}

/* What recipes set, in notes: rows that differ in it are not the same configuration. */
static void recipes_of_experts(void **state) {
  (void)state;
  static const char *const notes[] = {"recipe of Megatron-Bridge v0.4.2: cuda_graph_scope=attn+moe_router",
                                      ("recipe of Megatron-Bridge v0.6.0: overlap_moe_expert_parallel_comm=True; "
                                       "cuda_graph_impl=full_iteration"),
                                      "measured twice", "+1f1b overlap"};
  static const bool launches[] = {true, false, true, true};
  static const pl_ep_overlap overlaps[] = {PL_EP_OVERLAP_NONE, PL_EP_OVERLAP_DELAYED, PL_EP_OVERLAP_NONE,
                                           PL_EP_OVERLAP_DELAYED};
  char text[4096] = "family,model,n_layers,hidden,n_heads,seq_len,gpu,n_gpus,framework,precision,tp,pp,dp,ep,mbs,gbs,"
                    "n_experts,topk,step_time_s,notes\n";
  for (int i = 0; i < 5; i++) /* the last is the first in other software */
    for (int twice = 0; twice < (i % 4 == 0 ? 1 : 2); twice++)
      snprintf(text + strlen(text), sizeof text - strlen(text),
               "f,Qwen3_30B_a3B,48,2048,32,4096,H100,8,Megatron-Bridge,bf16,1,1,8,8,1,64,128,8,1,%s\n",
               i < 4 ? notes[i] : "recipe of Megatron-Bridge v0.4.0: cuda_graph_scope=attn+moe_router");
  const pl_cases cases = express_table(text);
  assert_int_equal(cases.n_cases, 4);
  for (int i = 0; i < 4; i++) {
    const pl_case *c = &cases.cases[i];
    if (c->reason != NULL) fail_msg("%s: %s", notes[i], c->reason);
    assert_int_equal(c->n_rows, 2);
    assert_int_equal(c->framework.launch.launch_s > 0, launches[i]);
    assert_int_equal(c->framework.launch.backward_launch_s > 0, launches[i]);
    pl_strategy strategy;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_row_strategy(c->row, &c->habits, c->model, &c->job, &arena, &strategy, &error), PL_OK);
    assert_int_equal(strategy.ep_overlap, overlaps[i]);
  }
}

/* Who moves tokens of experts: by the version of Megatron Core, in either column, and by what it was told. */
static void moving_of_tokens(void **state) {
  (void)state;
  static const struct {
    const char *framework, *notes;
    int permutation, experts;
  } rows[] = {
      {"Megatron-Core", "", PL_PERMUTATION_SCATTERED, PL_EXPERTS_GROUPED},
      {"Megatron-Core 0.6.0", "", PL_PERMUTATION_GATHERED, PL_EXPERTS_GROUPED},
      {"Megatron-Core 0.9", "moe_token_dispatcher_type=alltoall", PL_PERMUTATION_INDEXED, PL_EXPERTS_GROUPED},
      {"Megatron-Core", "Megatron Core 0.6; moe_grouped_gemm=false", PL_PERMUTATION_GATHERED, PL_EXPERTS_SLICED},
      {"Megatron-Core 0.10", "moe_grouped_gemm=false", PL_PERMUTATION_WEIGHTED, PL_EXPERTS_JOINED},
      {"Megatron-Core 0.15", "", PL_PERMUTATION_SCATTERED, PL_EXPERTS_GROUPED},
      {"Megatron-Core 0.15", "moe_permute_fusion=true", PL_PERMUTATION_FUSED, PL_EXPERTS_GROUPED},
      {"NeMo", "", PL_PERMUTATION_FUSED, PL_EXPERTS_GROUPED},
      {"NeMo", "moe_permute_fusion=false", PL_PERMUTATION_SCATTERED, PL_EXPERTS_GROUPED}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    row r = gpt;
    r.framework = rows[i].framework;
    r.notes = rows[i].notes;
    const pl_case *c = express(r);
    if (c->reason != NULL) fail_msg("%s: %s", r.framework, c->reason);
    if (c->framework.kernels.permutation != rows[i].permutation || c->framework.kernels.experts != rows[i].experts)
      fail_msg("%s, %s: permutation %d, experts %d", r.framework, r.notes, c->framework.kernels.permutation,
               c->framework.kernels.experts);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(names_and_vocabularies, set_up, tear_down),
      cmocka_unit_test_setup_teardown(hybrids, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlap_of_tensor_groups, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiled_by_xla, set_up, tear_down),
      cmocka_unit_test_setup_teardown(losses_of_bert, set_up, tear_down),
      cmocka_unit_test_setup_teardown(recipes_of_experts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(moving_of_tokens, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
