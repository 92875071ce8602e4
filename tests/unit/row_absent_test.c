/* Rows that ran what nothing here simulates are not expressed, and rows beside them are other configurations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "tests/support/row_fixture.h"

static const pl_case *express(const char *framework, const char *experts, const char *recompute, const char *notes) {
  char text[1024];
  snprintf(text, sizeof text,
           "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,n_experts,topk,gpu,n_gpus,framework,"
           "precision,tp,pp,dp,mbs,gbs,recompute,step_time_s,notes\n"
           "f,GPT-2,12,768,3072,12,512,50257,%s,A100-80GB,8,\"%s\",bf16,1,1,8,8,64,%s,1,\"%s\"\n",
           experts, framework, recompute, notes);
  return express_table(text).cases;
}

static void expect(const char *framework, const char *recompute, const char *notes, const char *reason) {
  const pl_case *c = express(framework, ",", recompute, notes);
  if ((reason == NULL) != (c->reason == NULL) || (reason != NULL && strstr(c->reason, reason) == NULL))
    fail_msg("%s, %s, %s: %s", framework, recompute, notes, c->reason != NULL ? c->reason : "expressed");
}

static void offloading(void **state) {
  (void)state;
  expect("DeepSpeed ZeRO-3 Offload", "none", "", "framework: 'offload'");
  expect("DeepSpeed ZeRO-Infinity", "none", "", "framework: 'ZeRO-Infinity'");
  expect("PyTorch FSDP2", "full", "offload_activations=1", "notes: 'offload'");
  expect("PyTorch FSDP2", "full; offloaded", "", "recompute: 'offload'");
  expect("DeepSpeed ZeRO-2", "full", "cpu_checkpointing on", "notes: 'cpu_checkpointing'");
  expect("DeepSpeed ZeRO-3", "none", "no offloading", NULL);
  expect("DeepSpeed ZeRO-3 (without offload)", "none", "", NULL);
  static const char *const denials[] = {"no CPU offload",
                                        "without activation offloading",
                                        "not offloaded",
                                        "cpu_offload: False",
                                        "offload_optimizer=none",
                                        "offloading disabled",
                                        "cpu_offload=0; seed 2",
                                        "no offloading, full recompute",
                                        "no ZeRO-Infinity",
                                        "cpu_checkpointing: false",
                                        "offload off"};
  for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++)
    expect("DeepSpeed ZeRO-3", "none", denials[i], NULL);
  static const char *const offloaded[] = {"no recompute, optimizer offload", "no recompute with offload", "offload=0.5",
                                          "offload_optimizer=none, offload_param=cpu",
                                          "no offload of parameters; optimizer offloaded"};
  for (size_t i = 0; i < sizeof offloaded / sizeof offloaded[0]; i++)
    expect("DeepSpeed ZeRO-3", "none", offloaded[i], "notes: 'offload'");
}

static void optimizers(void **state) {
  (void)state;
  expect("PyTorch DDP", "none", "optimizer Muon", "'Muon' is not simulated; Adam");
  expect("PyTorch DDP (distributed Shampoo)", "none", "", "'Shampoo'");
  expect("PyTorch DDP", "none", "lion, 1.2 billion tokens", "'Lion'");
  expect("PyTorch DDP", "none", "AdamW, 300 million tokens", NULL);
  expect("PyTorch DDP", "none", "soapbox", NULL);
  expect("PyTorch DDP", "none", "AdamW instead of Muon", NULL);
  expect("PyTorch DDP", "none", "AdamW, not Lion", NULL);
  expect("PyTorch DDP", "none", "HPE Apollo 6500 Gen10", NULL);
  expect("PyTorch DDP", "none", "node of Grid'5000, Sophia Antipolis", NULL);
  expect("PyTorch DDP", "none", "nodes without NVLink; Apollo", "'Apollo'");
}

static void exchanges(void **state) {
  (void)state;
  expect("DeepSpeed ZeRO-3 ZeRO++", "none", "", "fewer bits");
  expect("DeepSpeed", "none", "PowerSGD of rank 4", "fewer bits");
  expect("Hugging Face Trainer", "none", "QLoRA", "all weights are trained");
  expect("DeepSpeed ZeRO-3", "none", "zero_quantized_weights=false", NULL);
  expect("DeepSpeed ZeRO-3", "none", "zero_quantized_weights=true", "fewer bits");
  expect("Hugging Face Trainer", "none", "all weights, no LoRA", NULL);
}

static void experts(void **state) {
  (void)state;
  const pl_case *c = express("Megatron-Core", "8,2", "none", "capacity=1");
  assert_non_null(c->reason);
  assert_non_null(strstr(c->reason, "capacity"));
  c = express("Hugging Face Trainer, DeepSpeed ZeRO-3", "8,2", "none", "");
  assert_non_null(c->reason);
  assert_non_null(strstr(c->reason, "one after another"));
  assert_null(express("Hugging Face Trainer, DeepSpeed ZeRO-3", "8,2", "none", "experts_impl grouped_mm")->reason);
  assert_null(express("Megatron-Core", "8,2", "none", "")->reason);
  assert_null(express("Megatron-Core", "8,2", "none", "moe_expert_capacity_factor=None")->reason);
  assert_non_null(express("Megatron-Core", "8,2", "none", "moe_expert_capacity_factor=1.0")->reason);
  const char *trainer = "Hugging Face Trainer, DeepSpeed ZeRO-3";
  assert_non_null(express(trainer, "8,2", "none", "grouped-query attention")->reason);
  assert_non_null(express(trainer, "8,2", "none", "moe_grouped_gemm=false")->reason);
  assert_non_null(express("Hugging Face (transformers 4.57)", "8,2", "none", "")->reason);
  assert_null(express("Hugging Face (transformers 5.0)", "8,2", "none", "")->reason);
}

/* That a model has experts may stand in models.csv alone. */
static void experts_by_name(void **state) {
  (void)state;
  static const struct {
    const char *model, *framework, *notes, *says;
  } rows[] = {{"Mixtral 8x7B", "Megatron-Core", "capacity factor 1.25", "capacity"},
              {"Mixtral 8x7B", "Hugging Face Trainer, DeepSpeed ZeRO-3", "", "one after another"},
              {"Mixtral 8x7B", "Megatron-Core", "", NULL},
              {"GPT-2", "Megatron-Core", "capacity factor 1.25", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "model,n_layers,hidden,n_heads,seq_len,gpu,n_gpus,framework,tp,pp,dp,mbs,gbs,step_time_s,notes\n"
             "%s,32,4096,32,4096,H100,8,\"%s\",1,1,8,1,64,1,%s\n",
             rows[i].model, rows[i].framework, rows[i].notes);
    const pl_case *c = express_table(text).cases;
    if ((rows[i].says == NULL) != (c->reason == NULL) || (c->reason != NULL && strstr(c->reason, rows[i].says) == NULL))
      fail_msg("%s, %s: %s", rows[i].model, rows[i].notes, c->reason != NULL ? c->reason : "expressed");
  }
}

/* Only where nodes are connected, and not where `interconnect` says what is used. */
static void infiniband_denied(void **state) {
  (void)state;
  static const struct {
    int n_gpus;
    const char *interconnect, *says;
  } rows[] = {{16, "InfiniBand HDR", "'NCCL_IB_DISABLE=1': what is used instead"},
              {16, "", "'NCCL_IB_DISABLE=1': what is used instead"},
              {16, "25 Gb/s Ethernet per node", NULL},
              {8, "InfiniBand HDR", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    snprintf(
        text, sizeof text,
        "model,n_layers,hidden,n_heads,seq_len,gpu,n_gpus,interconnect,framework,tp,pp,dp,mbs,gbs,step_time_s,notes\n"
        "GPT-2,12,768,12,1024,A100-80GB,%d,%s,Megatron-Core,1,1,%d,1,64,1,NCCL_IB_DISABLE=1\n",
        rows[i].n_gpus, rows[i].interconnect, rows[i].n_gpus);
    const pl_case *c = express_table(text).cases;
    if ((rows[i].says == NULL) != (c->reason == NULL) || (c->reason != NULL && strstr(c->reason, rows[i].says) == NULL))
      fail_msg("%d, %s: %s", rows[i].n_gpus, rows[i].interconnect, c->reason != NULL ? c->reason : "expressed");
  }
}

/* Rows that differ in the optimizer alone, which is in the notes. */
static void configurations(void **state) {
  (void)state;
  char text[] = "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,tp,pp,dp,"
                "mbs,gbs,step_time_s,notes\n"
                "f,GPT-2,12,768,3072,12,512,50257,A100-80GB,8,PyTorch DDP,bf16,1,1,8,8,64,1,AdamW\n"
                "f,GPT-2,12,768,3072,12,512,50257,A100-80GB,8,PyTorch DDP,bf16,1,1,8,8,64,3,SOAP\n"
                "f,GPT-2,12,768,3072,12,512,50257,A100-80GB,8,PyTorch DDP,bf16,1,1,8,8,64,1,seed 2\n";
  pl_cases cases = express_table(text);
  assert_int_equal(cases.n_cases, 2);
  assert_int_equal(cases.cases[0].n_rows, 2);
  assert_true(cases.cases[0].measured_s == 1);
  assert_non_null(cases.cases[1].reason);
}

static void watched_memory(void **state) {
  (void)state;
  assert_int_equal(express("PyTorch DDP", ",", "none", "memory of nvidia-smi")->habits.memory_figure, PL_MEMORY_DEVICE);
  assert_int_not_equal(express("PyTorch DDP", ",", "none", "nvidia-smi topo in report")->habits.memory_figure,
                       PL_MEMORY_DEVICE);
  assert_int_not_equal(express("PyTorch DDP", ",", "none", "links from nvidia-smi topo -m")->habits.memory_figure,
                       PL_MEMORY_DEVICE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(offloading, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(optimizers, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(exchanges, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(experts, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(experts_by_name, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(infiniband_denied, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(configurations, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(watched_memory, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
