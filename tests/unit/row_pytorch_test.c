/* Words of PyTorch's world in rows of measurements: types, networks, compiled and eager kernels, ways to recompute,
 * DeepSpeed, Paddle and InternEvo (validation/rows/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/row_fixture.h"

#define COLUMNS                                                                                                        \
  "family,model,n_layers,hidden,ffn_hidden,n_heads,n_kv_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,interconnect,"    \
  "framework,precision,mlp_type,tp,pp,vpp,dp,sp,fsdp,zero_stage,mbs,gbs,recompute,step_time_s\n"

typedef struct row {
  const char *gpu, *n_gpus, *per_node, *network, *framework, *precision, *tp, *pp, *zero, *recompute, *fsdp;
} row;

static const pl_case *express(const row *r) {
  char text[2048];
  snprintf(text, sizeof text,
           COLUMNS
           "f,Llama 3 8B,32,4096,14336,32,8,8192,128256,%s,%s,%s,\"%s\",\"%s\",%s,gated,%s,%s,,,,%s,%s,1,512,%s,1\n",
           r->gpu, r->n_gpus, r->per_node, r->network, r->framework, r->precision, r->tp, r->pp, r->fsdp, r->zero,
           r->recompute);
  return express_table(text).cases;
}

static const row plain = {"H100", "64", "8", "", "torchtitan", "bf16", "1", "1", "", "", ""};

static void types(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *framework, *precision;
    pl_dtype dtype;
    bool fp8;
  } cells[] = {{"H100", "torchtitan", "float8 tensorwise", PL_DTYPE_BF16, true},
               {"H100", "torchtitan", "bfloat16", PL_DTYPE_BF16, false},
               {"B200", "torchtitan", "mxfp8_cublas", PL_DTYPE_BF16, true},
               {"A100", "PyTorch", "amp", PL_DTYPE_FP16, false},
               {"A100", "PyTorch", "16-mixed", PL_DTYPE_FP16, false},
               {"A100", "PyTorch", "bf16-true", PL_DTYPE_BF16, false},
               {"A100", "PyTorch", "32-true", PL_DTYPE_FP32, false},
               {"A100", "PyTorch", "amp_bf16", PL_DTYPE_BF16, false},
               {"A100", "PyTorch 2.1", "fp32", PL_DTYPE_FP32, false},
               {"A100", "PyTorch 1.10 DDP", "fp32", PL_DTYPE_TF32, false},
               {"A100", "PyTorch 1.13.0a0+936e930", "fp32", PL_DTYPE_TF32, false},
               {"V100 16GB", "PyTorch 1.13.0a0+936e930", "fp32", PL_DTYPE_FP32, false}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    row r = plain;
    r.gpu = cells[i].gpu, r.framework = cells[i].framework, r.precision = cells[i].precision;
    const pl_case *c = express(&r);
    if (c->reason != NULL) fail_msg("%s: %s", cells[i].precision, c->reason);
    assert_true(c->job.dtype == cells[i].dtype && c->job.fp8 == cells[i].fp8);
  }
}

/* torchtitan gathers keys and values of a cut sequence, others send them round. */
static void contexts(void **state) {
  (void)state;
  static const struct {
    const char *framework, *cp;
    bool gathers;
  } rows[] = {{"torchtitan (FSDP2 + CP)", "4", true},
              {"torchtitan (FSDP2)", "1", false},
              {"Megatron-Core", "4", false},
              {"NeMo 24.07", "4", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "family,model,n_layers,hidden,ffn_hidden,n_heads,n_kv_heads,seq_len,vocab,gpu,n_gpus,framework,precision,"
             "mlp_type,tp,pp,cp,dp,mbs,gbs,step_time_s\n"
             "f,Llama 3 8B,32,4096,14336,32,8,65536,128256,H100,8,%s,bf16,gated,1,1,%s,,1,8,1\n",
             rows[i].framework, rows[i].cp);
    const pl_case *c = express_table(text).cases;
    if (c->reason != NULL) fail_msg("%s: %s", rows[i].framework, c->reason);
    assert_true(c->strategy.cp_gather == rows[i].gathers);
  }
}

/* Rates of all NICs, however their number is written; 16 V100s in a node are a DGX-2. */
static void networks(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *per_node, *network, *platform;
  } cells[] = {{"A100-80GB", "8", "NVLink; 4 * 100Gb RoCE", "dgx-a100 --nodes 8 --gpus-per-node 8 --nic-rate 6.25GBps"},
               {"A100-80GB", "8", "4x100Gb", "dgx-a100 --nodes 8 --gpus-per-node 8 --nic-rate 6.25GBps"},
               {"H100", "8", "RDMA 200 Gb/s (CX-7) per GPU", "dgx-h100 --nodes 8 --gpus-per-node 8 --nic-rate 25GBps"},
               {"H100", "8", "NVLink; 400 Gb/s per GPU", "dgx-h100 --nodes 8 --gpus-per-node 8"},
               {"H100", "8", "InfiniBand 400Gb/s", "dgx-h100 --nodes 8 --gpus-per-node 8"},
               {"H100", "8", "EFA, 3.2 Tb/s", "p5.48xlarge --nodes 8 --gpus-per-node 8"},
               {"H100", "8", "1.6Tbps", "dgx-h100 --nodes 8 --gpus-per-node 8 --nic-rate 25GBps"},
               {"H100", "8", "IB 200Gb/s x 8", "dgx-h100 --nodes 8 --gpus-per-node 8 --nic-rate 25GBps"},
               {"H100", "8", "IB 400Gb/s (mlx5_0)", "dgx-h100 --nodes 8 --gpus-per-node 8"},
               {"NVIDIA A100 SXM4 40 GB", "8", "", "dgx-a100 --nodes 8 --gpus-per-node 8 --device A100-SXM4-40GB"},
               {"A100-40G", "8", "400Gb/s per node",
                "dgx-a100 --nodes 8 --gpus-per-node 8 --device A100-SXM4-40GB --nic-rate 6.25GBps"},
               {"A100-80G", "8", "40Gb/s per node", "dgx-a100 --nodes 8 --gpus-per-node 8 --nic-rate 0.625GBps"},
               {"A100 PCI-e 40GB", "1", "", "pcie4-server --nodes 64 --gpus-per-node 1 --device A100-PCIe-40GB"},
               {"V100", "16", "", "dgx-2 --nodes 4 --gpus-per-node 16"}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    row r = plain;
    r.gpu = cells[i].gpu, r.per_node = cells[i].per_node, r.network = cells[i].network;
    const pl_case *c = express(&r);
    if (c->reason != NULL) fail_msg("%s", c->reason);
    assert_string_equal(c->platform, cells[i].platform);
  }
}

static void recomputation(void **state) {
  (void)state;
  static const struct {
    const char *framework, *recompute;
    int how; /* -1: no words for it */
  } cells[] = {{"torchtitan", "selective", PL_RECOMPUTE_ALTERNATE},
               {"torchtitan", "selective (op)", PL_RECOMPUTE_ALTERNATE},
               {"FooTrain", "Selective (per op)", PL_RECOMPUTE_ALTERNATE},
               {"FooTrain", "selective", PL_RECOMPUTE_SELECTIVE},
               {"torchtitan", "full", PL_RECOMPUTE_FULL},
               {"FooTrain", "No AC", PL_RECOMPUTE_NONE},
               {"FooTrain", "Full AC", PL_RECOMPUTE_FULL},
               {"FooTrain", "gradient checkpointing", PL_RECOMPUTE_FULL},
               {"FooTrain", "True (every block)", PL_RECOMPUTE_FULL},
               {"FooTrain", "None", PL_RECOMPUTE_NONE},
               {"torchtitan", "selective (layer: every 2nd)", -1}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    row r = plain;
    r.framework = cells[i].framework, r.recompute = cells[i].recompute;
    const pl_case *c = express(&r);
    if (cells[i].how < 0) {
      assert_non_null(strstr(c->reason, "recomputation: of some layers"));
      continue;
    }
    assert_null(c->reason);
    assert_int_equal(c->strategy.recompute, cells[i].how);
  }
}

static void kernels(void **state) {
  (void)state;
  row r = plain;
  const pl_case *c = express(&r);
  assert_true(c->framework.kernels.fuses_norm && c->framework.launch.launch_s == 0 && c->strategy.zero == 3);
  r.framework = "torchtitan (FSDP2, eager)";
  c = express(&r);
  assert_true(!c->framework.kernels.fuses_norm && !c->framework.kernels.fuses_rotary &&
              c->framework.launch.launch_s > 0);
  r.framework = "torchtune (compile)";
  c = express(&r);
  assert_string_equal(c->framework.name, "torchtune");
  assert_true(c->framework.update.weights == PL_WEIGHTS_ALONE && c->framework.kernels.fuses_norm &&
              c->framework.launch.launch_s == 0);
  r.framework = "PyTorch FSDP, compiled", r.precision = "bf16-true";
  c = express(&r);
  assert_true(c->framework.update.weights == PL_WEIGHTS_ALONE &&
              c->framework.gradients.gradient_dtype == PL_DTYPE_BF16);
  assert_true(c->framework.kernels.fuses_norm && c->job.dtype == PL_DTYPE_BF16);
  r.framework = "fms-fsdp (PyTorch FSDP, no compile)";
  c = express(&r);
  assert_string_equal(c->framework.name, "fms-fsdp");
  assert_false(c->framework.kernels.fuses_activation);
  r.framework = "Megatron-Core (compiled with foo)"; /* fuses by hand */
  assert_true(express(&r)->framework.kernels.fuses_activation);
}

/* Behind a pipeline FSDP gathers and scatters once per iteration. */
static void sharding_behind_pipelines(void **state) {
  (void)state;
  row r = plain;
  r.pp = "4", r.zero = "3", r.tp = "2";
  const pl_case *c = express(&r);
  assert_null(c->reason);
  assert_true(c->strategy.zero == 1 && c->strategy.pp == 4 && c->strategy.sp);
}

/* Words for sharding where no stage is given. */
static void sharding(void **state) {
  (void)state;
  static const struct {
    const char *fsdp;
    int32_t zero;
  } cells[] = {{"FULL_SHARD", 3},
               {"FSDP2", 3},
               {"HSDP", 3},
               {"1", 3},
               {"SHARD_GRAD_OP", 2},
               {"_HYBRID_SHARD_ZERO2", 2},
               {"ZeRO-1", 1},
               {"NO_SHARD", 0},
               {"False", 0},
               {"no", 0},
               {"0", 0}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    row r = plain;
    r.framework = "PyTorch DDP", r.fsdp = cells[i].fsdp;
    const pl_case *c = express(&r);
    if (c->strategy.zero != cells[i].zero) fail_msg("%s: %d", cells[i].fsdp, c->strategy.zero);
  }
}

static void software(void **state) {
  (void)state;
  static const struct {
    const char *framework, *zero, *recompute, *profile;
    bool flash;
  } cells[] = {{"DeepSpeed ZeRO-3 (Hugging Face Llama, FlashAttention 2)", "3", "", "deepspeed-zero3", true},
               {"DeepSpeed (Hugging Face Trainer)", "1", "", "deepspeed", true},
               {"DeepSpeed (Hugging Face, no FlashAttention)", "1", "full", "deepspeed", false},
               {"Megatron-LM + DeepSpeed ZeRO-3", "3", "full", "deepspeed-zero3-2021", false},
               {"DeepSpeed (transformer kernel)", "0", "", "megatron-deepspeed", false},
               {"Megatron-DeepSpeed (ZeRO-1)", "1", "", "megatron-deepspeed", false},
               {"Megatron-DeepSpeed (ZeRO-1, FlashAttention 2)", "1", "", "megatron-deepspeed", true},
               {"Megatron-LM (FlashAttention 2)", "", "selective", "megatron-lm-2023", true},
               {"Megatron-LM", "", "selective", "megatron-lm-2021", false},
               {"PaddleNLP", "2", "", "paddlenlp", true},
               {"InternEvo (zero1=8)", "1", "", "internevo", true}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    row r = plain;
    r.framework = cells[i].framework, r.zero = cells[i].zero, r.recompute = cells[i].recompute;
    const pl_case *c = express(&r);
    if (c->reason != NULL) fail_msg("%s: %s", cells[i].framework, c->reason);
    assert_string_equal(c->framework.name, cells[i].profile);
    if (c->job.flash != cells[i].flash) fail_msg("%s: attention", cells[i].framework);
  }
  row r = plain;
  r.framework = "PaddleNLP (fused RMSNorm)";
  const pl_case *c = express(&r);
  assert_true(c->framework.kernels.fuses_norm && !c->framework.kernels.fuses_rotary);
}

/* What fairscale makes of a model that is wrapped once: its root keeps gathered weights, and there is one gradient. */
static void one_unit(void **state) {
  (void)state;
  static const struct {
    const char *reshard, *notes;
    int32_t zero;
    bool whole, apart;
  } cells[] = {{"", "", 3, false, false},
               {"false", "", 2, false, false},
               {"false", "one FSDP unit around the whole model", 2, true, false},
               {"", "one all-reduce per parameter", 3, false, true}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "family,model,n_layers,hidden,n_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,framework,precision,mlp_type,tp,"
        "pp,dp,fsdp,zero_stage,reshard_after_forward,mbs,gbs,step_time_s,notes\n"
        "f,GPT,12,768,12,2048,28996,V100,8,8,PyTorch FSDP (fairscale),fp32,2-matrix,1,1,8,FULL_SHARD,3,%s,1,8,1,%s\n",
        cells[i].reshard, cells[i].notes);
    const pl_case *c = express_table(text).cases;
    if (c->reason != NULL) fail_msg("row %zu: %s", i, c->reason);
    assert_int_equal(c->strategy.zero, cells[i].zero);
    assert_int_equal(isinf(c->job.bucket_bytes) != 0, cells[i].whole);
    assert_int_equal(c->framework.gradients.bucket_unit == PL_BUCKET_PARAMETER, cells[i].apart);
  }
}

/* FSDP beside tensor groups or pipelines is torchtitan's; alone it is torch-fsdp's. */
static void several_dimensions(void **state) {
  (void)state;
  row r = plain;
  r.framework = "Somebody (FSDP, TP, PP)";
  assert_string_equal(express(&r)->framework.name, "torch-fsdp");
  const pl_case *c =
      express_table("family,model,n_layers,hidden,n_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,framework,precision,"
                    "mlp_type,tp,pp,dp,mbs,gbs,step_time_s\n"
                    "f,Llama,32,4096,32,4096,32000,H100,16,8,\"Somebody (FSDP, TP, PP)\",bf16,gated,8,1,2,1,8,1\n")
          .cases;
  assert_string_equal(c->framework.name, "torchtitan");
  assert_true(c->framework.kernels.fuses_norm && c->strategy.zero == 3 && c->strategy.sp);
}

/* What notes say of a script that was read. */
static void notes_of_scripts(void **state) {
  (void)state;
  static const char form[] = "family,model,n_layers,hidden,n_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,framework,"
                             "precision,mlp_type,tp,pp,dp,"
                             "mbs,gbs,step_time_s,notes\n"
                             "f,Llama,16,2048,32,1024,32000,H200,1,1,PyTorch,bf16,gated,1,1,1,1,1,1,%s\n";
  char text[1024];
  snprintf(text, sizeof text, form, "pure bf16; SGD without momentum; logits stay in bf16");
  const pl_case *c = express_table(text).cases;
  assert_true(c->framework.update.weights == PL_WEIGHTS_ALONE &&
              c->framework.gradients.gradient_dtype == PL_DTYPE_BF16);
  assert_true(c->framework.update.optimizer == PL_OPTIMIZER_SGD && c->framework.kernels.loss == PL_LOSS_FUSED);
  snprintf(text, sizeof text, form, "SGD");
  c = express_table(text).cases;
  assert_true(c->framework.update.weights == PL_WEIGHTS_FP32 && c->framework.update.optimizer == PL_OPTIMIZER_FOREACH);
}

/* Who trains under autocast, and around which weights. */
static void autocast(void **state) {
  (void)state;
  static const struct {
    const char *framework, *precision, *notes, *source;
    const char *profile;
    pl_autocast_form form;
  } cells[] = {{"Hugging Face Trainer (PyTorch DDP)", "fp16", "", "", "torch-ddp", PL_AUTOCAST_ALL},
               {"PyTorch", "bf16", "apex O2", "", "torch-ddp", PL_AUTOCAST_OFF},
               {"PyTorch", "bf16", "pure bf16", "", "torch-ddp", PL_AUTOCAST_OFF},
               {"PyTorch (DeepLearningExamples 21.11)", "fp16", "", "", "torch-ddp-2020", PL_AUTOCAST_OFF},
               {"Colossal-AI (HybridParallel)", "bf16", "", "", "torch-ddp", PL_AUTOCAST_OFF},
               {"MosaicML Composer", "bf16", "", "github:mosaicml/examples:x@1", "fsdp-composer-2022", PL_AUTOCAST_ALL},
               {"MosaicML Composer", "bf16", "mode=PURE", "github:mosaicml/examples:x@1", "fsdp-composer-2022",
                PL_AUTOCAST_NORMS},
               {"MosaicML Composer", "bf16", "mode=PURE", "github:mosaicml/llm-foundry:x@1", "fsdp-composer-2023",
                PL_AUTOCAST_OFF},
               {"MosaicML Composer", "bf16", "", "github:mosaicml/llm-foundry:x@1", "fsdp-composer", PL_AUTOCAST_OFF}};
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "family,model,n_layers,hidden,n_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,framework,precision,mlp_type,tp,"
        "pp,dp,mbs,gbs,step_time_s,notes,source\n"
        "f,GPT-2,12,768,12,1024,50257,A100,8,8,%s,%s,2-matrix,1,1,8,1,8,1,%s,%s\n",
        cells[i].framework, cells[i].precision, cells[i].notes, cells[i].source);
    const pl_case *c = express_table(text).cases;
    if (c->reason != NULL) fail_msg("row %zu: %s", i, c->reason);
    assert_string_equal(c->framework.name, cells[i].profile);
    if (c->framework.kernels.autocast != cells[i].form) fail_msg("row %zu: %d", i, c->framework.kernels.autocast);
  }
}

/* Ranks that compare their collectives, whoever says so, and nanotron's sends before the fix of its pipeline. */
static void waiting_hosts(void **state) {
  (void)state;
  static const struct {
    const char *framework, *notes;
    double rank_s, send_s;
  } rows[] = {{"nanotron v0.5", "", 0, 0},
              {"nanotron v0.5, checked collectives", "", 287e-6, 0},
              {"nanotron v0.5, checked collectives, polled sends", "", 287e-6, 0.3},
              {"PyTorch FSDP", "TORCH_DISTRIBUTED_DEBUG=DETAIL", 287e-6, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    snprintf(
        text, sizeof text,
        "family,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,gpus_per_node,framework,precision,"
        "mlp_type,tp,pp,dp,mbs,gbs,step_time_s,notes\n"
        "f,Llama-like,16,2048,8192,32,4096,131072,H100-SXM5-80GB,8,8,\"%s\",bf16,gated,1,1,8,1,8,1,%s\n",
        rows[i].framework, rows[i].notes);
    const pl_case *c = express_table(text).cases;
    if (c->reason != NULL) fail_msg("row %zu: %s", i, c->reason);
    if (c->framework.launch.collective_rank_s != rows[i].rank_s ||
        fabs(c->framework.pipeline.send_wait_s - rows[i].send_s) > 1e-12)
      fail_msg("row %zu: %g and %g s", i, c->framework.launch.collective_rank_s, c->framework.pipeline.send_wait_s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(several_dimensions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(notes_of_scripts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(types, set_up, tear_down),
      cmocka_unit_test_setup_teardown(contexts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(networks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(recomputation, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kernels, set_up, tear_down),
      cmocka_unit_test_setup_teardown(sharding_behind_pipelines, set_up, tear_down),
      cmocka_unit_test_setup_teardown(sharding, set_up, tear_down),
      cmocka_unit_test_setup_teardown(software, set_up, tear_down),
      cmocka_unit_test_setup_teardown(one_unit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(autocast, set_up, tear_down),
      cmocka_unit_test_setup_teardown(waiting_hosts, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
