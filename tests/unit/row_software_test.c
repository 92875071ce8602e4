/* Names of software that stand beside others', and which profile they mean (validation/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "tests/support/row_fixture.h"

static const pl_case *express(const char *model, const char *framework, const char *zero, const char *notes) {
  char text[1024];
  snprintf(text, sizeof text,
           "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,zero_stage,"
           "tp,pp,dp,mbs,gbs,recompute,step_time_s,notes\n"
           "f,%s,12,768,3072,12,512,50257,A100-80GB,8,\"%s\",bf16,%s,1,1,8,8,64,full,1,\"%s\"\n",
           model, framework, zero, notes);
  const pl_case *c = express_table(text).cases;
  if (c->reason != NULL) fail_msg("%s, %s: %s", model, framework, c->reason);
  return c;
}

static void profiles(void **state) {
  (void)state;
  static const struct {
    const char *framework, *zero, *profile;
  } rows[] = {{"Megatron-LM v1.1.5 + DeepSpeed ZeRO-3", "3", "deepspeed-zero3-2021"},
              {"Megatron-LM 2021, DeepSpeed ZeRO-3", "3", "deepspeed-zero3-2021"},
              {"Megatron-LM v1.1.5 + DeepSpeed 3D", "0", "megatron-deepspeed"},
              {"Megatron-LM + DeepSpeed", "1", "megatron-deepspeed"},
              {"DeepSpeed ZeRO-3 (Megatron)", "3", "megatron-deepspeed"},
              {"Megatron-LM 2021", "0", "megatron-lm-2021"},
              {"NeMo AutoModel (PyTorch FSDP2)", "", "torchtitan"},
              {"NeMo 25.04", "", "nemo"},
              {"NeMo/Megatron-LM", "", "nemo"},
              {"Megatron-LM (Nemotron-4)", "", "megatron-lm-2021"},
              {"Hugging Face AutoModelForCausalLM (PyTorch DDP)", "", "torch-ddp"},
              {"Stanford Alpaca (PyTorch FSDP)", "", "torch-fsdp"},
              {"alpa", "", "ideal"},
              {"llm.c", "1", "ideal"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const pl_case *c = express("GPT-2", rows[i].framework, rows[i].zero, "");
    if (strcmp(c->framework.name, rows[i].profile) != 0) fail_msg("%s: %s", rows[i].framework, c->framework.name);
  }
  assert_false(express("GPT-2", "Megatron-LM v1.1.5 + DeepSpeed", "0", "")->habits.sequence_parallel);
}

static void dropout(void **state) {
  (void)state;
  assert_false(express("GPT-NeoX 20B", "GPT-NeoX (DeepSpeed)", "1", "")->model->dropout.hidden_dropout);
  assert_true(express("GPT", "Megatron-DeepSpeed", "1", "")->model->dropout.hidden_dropout);
  assert_true(express("BERT-base", "Hugging Face Trainer", "", "")->model->dropout.hidden_dropout);
  assert_false(express("ESM2 150M (BERT)", "Hugging Face Trainer", "", "")->model->dropout.hidden_dropout);
}

/* A compiled model that computes its own loss has it in one kernel. */
static void losses(void **state) {
  (void)state;
  static const struct {
    const char *framework;
    bool fused;
  } rows[] = {{"nanoGPT (PyTorch 2.0 DDP, compile)", true},
              {"modded-nanogpt (PyTorch DDP, compile)", true},
              {"Hugging Face Trainer (PyTorch DDP, compile)", true},
              {"llm.c", true},
              {"nanoGPT (PyTorch 2.0 DDP, no compile)", false},
              {"nanoGPT (PyTorch 2.0 DDP, not compiled)", false},
              {"nanoGPT (PyTorch 2.0 DDP, compile=False)", false},
              {"Hugging Face Trainer (PyTorch DDP)", false},
              {"PyTorch 2.5 DDP (compile)", false},
              {"Hugging Face GPT-2, DeepSpeed ZeRO-2", true},
              {"Colossal-AI Gemini (Hugging Face GPT-2)", true},
              {"DeepSpeed ZeRO-2", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    bool fused = express("GPT-2", rows[i].framework, "", "")->framework.kernels.loss == PL_LOSS_FUSED;
    if (fused != rows[i].fused) fail_msg("%s", rows[i].framework);
  }
  assert_int_not_equal(express("Llama", "Hugging Face, DeepSpeed ZeRO-2", "", "")->framework.kernels.loss,
                       PL_LOSS_FUSED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(profiles, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(dropout, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(losses, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
