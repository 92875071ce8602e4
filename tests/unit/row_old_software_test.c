/* What rows of older software are taken for: attention of before PyTorch 2, Hugging Face's dropout, classifications
 * without a language model's head (validation/rows/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "tests/support/row_fixture.h"

static const pl_case *express_in(const char *model, const char *framework, const char *precision, const char *notes) {
  char text[1024];
  snprintf(
      text, sizeof text,
      "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,tp,pp,dp,mbs,gbs,"
      "step_time_s,notes\n"
      "f,%s,12,768,3072,12,512,30522,A100-80GB,8,\"%s\",%s,1,1,8,8,64,1,\"%s\"\n",
      model, framework, precision, notes);
  const pl_case *c = express_table(text).cases;
  if (c->reason != NULL) fail_msg("%s, %s: %s", model, framework, c->reason);
  return c;
}

static const pl_case *express(const char *model, const char *framework, const char *notes) {
  return express_in(model, framework, "fp16", notes);
}

static void attention(void **state) {
  (void)state;
  static const struct {
    const char *framework;
    bool flash;
  } cells[] = {{"PyTorch 1.13.0a0+936e930 DDP", false},
               {"PyTorch 1.12 DDP (Megatron GPT-2)", false},
               {"PyTorch 1.13 DDP (FlashAttention)", true},
               {"PyTorch 2.1 DDP", true},
               {"PyTorch DDP", true}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
    if (express("GPT-2", cells[i].framework, "")->job.flash != cells[i].flash) fail_msg("%s", cells[i].framework);
  assert_false(express("GPT-2", "JAX Paxml (XLA)", "pretrain; without flash attention; rest")->job.flash);
  assert_true(express("GPT-2", "JAX Paxml (XLA)", "pretrain")->job.flash);
}

static void dropout(void **state) {
  (void)state;
  assert_true(express("GPT-2", "DeepSpeed (Hugging Face Trainer)", "")->model->dropout.attention_dropout);
  assert_true(express("BERT-base", "PyTorch DDP (Hugging Face)", "")->model->dropout.hidden_dropout);
  assert_false(express("GPT-2", "PyTorch DDP", "")->model->dropout.attention_dropout);
  assert_false(express("Llama", "DeepSpeed (Hugging Face Llama)", "")->model->dropout.attention_dropout);
}

static void streams(void **state) {
  (void)state;
  static const char *const megatron = "Megatron-LM (FlashAttention)";
  assert_true(express("GPT-2", megatron, "")->framework.memory.records_streams);
  assert_false(express("GPT-2", megatron, "TORCH_NCCL_AVOID_RECORD_STREAMS=1")->framework.memory.records_streams);
  assert_false(express("GPT-2", "NeMo 24.07", "")->framework.memory.records_streams);
}

static void heads(void **state) {
  (void)state;
  static const char *const notes = "MNLI (no language model head); hand-tuned";
  assert_int_equal(express("BERT-base", "PyTorch DDP", notes)->model->ends.predictions, 1);
  assert_int_equal(express("GPT-2", "PyTorch DDP", notes)->model->ends.predictions, 1);
  assert_int_equal(express("BERT-base", "PyTorch DDP", "masked language model")->model->ends.predictions, 0);
}

/* GELU op by op: in GPT-2 of Hugging Face, in TensorFlow without XLA. */
static void activations(void **state) {
  (void)state;
  assert_false(express("GPT-2 xl", "DeepSpeed (Hugging Face Trainer)", "")->framework.kernels.fuses_gelu);
  assert_true(express("BERT-base", "DeepSpeed (Hugging Face Trainer)", "")->framework.kernels.fuses_gelu);
  assert_false(express("BERT-base", "TensorFlow 1.15.2 Horovod", "")->framework.kernels.fuses_gelu);
  assert_true(express("BERT-base", "TensorFlow 1.15.2 Horovod XLA", "")->framework.kernels.fuses_gelu);
  assert_true(express("GPT-2", "Megatron-LM", "")->framework.kernels.fuses_gelu);
  assert_false(express("GPT-2", "PyTorch 1.8 DDP", "")->framework.kernels.fuses_scale);
}

/* PyTorch by the date of NVIDIA's container. */
static void containers(void **state) {
  (void)state;
  static const struct {
    const char *software, *profile;
    bool flash;
  } rows[] = {{"PyTorch 20.06 (DeepLearningExamples)", "torch-ddp-2020", false},
              {"PyTorch 20.11 (DeepLearningExamples)", "torch-ddp-2020", false},
              {"PyTorch 21.05", "torch-ddp-2020", false},
              {"PyTorch (DeepLearningExamples 21.11)", "torch-ddp-2020", false},
              {"PyTorch (DeepLearningExamples 23.01)", "torch-ddp", false},
              {"PyTorch 24.05", "torch-ddp", true},
              {"PyTorch 2.1 DDP", "torch-ddp", true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const pl_case *c = express("BERT-base", rows[i].software, "");
    if (strcmp(c->framework.name, rows[i].profile) != 0 || c->job.flash != rows[i].flash)
      fail_msg("%s: %s, %s", rows[i].software, c->framework.name, c->job.flash ? "flash" : "no flash");
  }
}

/* Masks of scores: additive, chosen and added, multiplied and taken from, before and behind the softmax. */
static void masks(void **state) {
  (void)state;
  static const struct {
    const char *model, *software, *profile;
    int64_t kernels, gradients;
  } cells[] = {{"BERT-base", "PyTorch 20.06 (DeepLearningExamples)", "torch-ddp-2020", 1, 0},
               {"GPT-2", "DeepSpeed (Hugging Face Trainer)", "deepspeed", 2, 1},
               {"BERT-base", "DeepSpeed (Hugging Face Trainer)", "deepspeed", 1, 0},
               {"GPT-2", "Megatron-DeepSpeed (DeepSpeedExamples, Megatron-LM)", "megatron-lm-2019", 2, 1},
               {"GPT-2", "Megatron-DeepSpeed (AMP)", "megatron-lm-1.1.5", 1, 2},
               {"GPT-2", "DeepSpeed ZeRO-3 (Megatron)", "megatron-deepspeed", 1, 0},
               {"GPT-2", "BMTrain", "bmtrain", 2, 2}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    const pl_framework framework = express(cells[i].model, cells[i].software, "")->framework;
    assert_string_equal(framework.name, cells[i].profile);
    assert_int_equal(framework.kernels.mask_kernels, cells[i].kernels);
    assert_int_equal(framework.kernels.mask_gradients, cells[i].gradients);
  }
}

/* TensorFlow's graphs, in XLA's clusters where the row says so; the first clips gradients of every microbatch. */
static void graphs(void **state) {
  (void)state;
  static const struct {
    const char *software;
    pl_graph_form form;
    bool clips_microbatches;
  } cells[] = {{"TensorFlow 1.15.2 Horovod", PL_GRAPH_OPS, true},
               {"TensorFlow 1.15.2 Horovod XLA", PL_GRAPH_XLA, true},
               {"TensorFlow 2 Horovod (XLA)", PL_GRAPH_XLA, false},
               {"PyTorch 1.8 DDP", PL_GRAPH_NONE, false}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    const pl_framework framework = express("BERT-base", cells[i].software, "")->framework;
    assert_int_equal(framework.kernels.graph, cells[i].form);
    assert_true(framework.gradients.clips_microbatches == cells[i].clips_microbatches);
    assert_false(framework.update.clips_gradients && framework.gradients.clips_microbatches);
  }
}

/* Megatron's own softmax is for 16 bits. */
static void softmax(void **state) {
  (void)state;
  static const struct {
    const char *precision;
    bool fuses;
  } cells[] = {{"fp32", false}, {"tf32", false}, {"fp16", true}, {"bf16 (fp32 gradients)", true}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    const pl_framework framework = express_in("GPT-2", "Megatron-LM", cells[i].precision, "")->framework;
    assert_true(framework.kernels.fuses_softmax == cells[i].fuses && framework.kernels.fuses_scale == cells[i].fuses);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(attention, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(dropout, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(streams, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(heads, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(activations, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(graphs, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(containers, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(masks, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(softmax, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
