/* Rows of measurements become clusters, models, jobs and strategies by the rules of validation/rows/README.md. */
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
  "framework,precision,mlp_type,tp,pp,vpp,dp,sp,fsdp,zero_stage,mbs,gbs,recompute,step_time_s,tokens_per_s_per_gpu,"   \
  "mem_gb,notes,"

static pl_cases express_under(const char *header, const char *rows) {
  char text[4096];
  snprintf(text, sizeof text, "%s%s", header, rows);
  return express_table(text);
}

static pl_cases express(const char *rows) {
  return express_under(COLUMNS "status\n", rows);
}

#define SC21                                                                                                           \
  "sc21,GPT,96,12288,,96,,2048,51200,A100-SXM4-80GB,384,8,8x200Gb HDR IB,Megatron-LM,fp16/bf16 mixed,2-matrix,"

static void a_row_of_megatron(void **state) {
  (void)state;
  const pl_case *c = express(SC21 "8,12,,4,,,,1,1536,full,76.8,,,,\n").cases;
  assert_null(c->reason);
  assert_string_equal(c->platform, "dgx-a100 --nodes 48 --gpus-per-node 8");
  assert_string_equal(c->framework.name, "megatron-lm-2021");
  assert_string_equal(c->model->family, "gpt2");
  assert_true(c->model->width.ffn_hidden == 4 * 12288 && c->model->dropout.hidden_dropout);
  assert_true(!c->job.flash && c->job.dtype == PL_DTYPE_FP16 && c->job.gbs == 1536 && c->job.seq == 2048);
  assert_true(c->strategy.tmp == 8 && c->strategy.pp == 12 && c->strategy.dp == 4 && c->strategy.mbs == 1);
  assert_true(c->strategy.schedule == PL_SCHEDULE_1F1B && c->strategy.recompute == PL_RECOMPUTE_FULL &&
              !c->strategy.sp);
}

static void what_is_left_open(void **state) {
  (void)state;
  /* No microbatch: all of a replica's, with a pipeline one. No vocabulary: the notes', or the known model's. */
  pl_cases cases = express("f,GPT 1B,24,1920,,15,,1024,51200,A100 "
                           "(DGX-A100),128,8,NVSwitch,Megatron-LM,fp16,2-matrix,1,1,,128,,,,,2048,full,1.1,,,,\n"
                           "f,GPT 1B,24,1920,,16,,1024,51200,A100 "
                           "(DGX-A100),128,8,NVSwitch,Megatron-LM,fp16,2-matrix,1,2,,64,,,,,2048,full,1.1,,,,\n"
                           "f,BLOOM,24,1920,,15,,1024,,A100-80GB-SXM,8,8,4 Omni-Path "
                           "links,Megatron-DeepSpeed,fp16,2-matrix,1,1,,8,,,1,1,8,full,1,,,vocab ~250k,\n"
                           "f,LLAMA3.1_405B,126,16384,53248,128,8,8192,,H100-80GB-SXM,1024,8,DGX-H100,NeMo,BF16,gated,"
                           "8,8,8,16,,,,1,512,,9,,,,\n");
  assert_int_equal(cases.cases[0].strategy.mbs, 16);
  assert_string_equal(cases.cases[0].platform, "dgx-a100 --nodes 16 --gpus-per-node 8 --device A100-SXM4-40GB");
  assert_int_equal(cases.cases[1].strategy.mbs, 1);
  assert_int_equal(cases.cases[2].model->width.vocab, 250000);
  assert_string_equal(cases.cases[2].platform, "jean-zay-a100 --nodes 1 --gpus-per-node 8");
  const pl_case *c = &cases.cases[3];
  assert_null(c->reason);
  assert_true(c->model->width.vocab == 128256 && c->model->mlp.gated_mlp && c->job.flash &&
              c->job.dtype == PL_DTYPE_BF16);
  assert_true(cases.cases[2].strategy.zero == 1 && !cases.cases[2].strategy.sp);
  assert_true(c->strategy.sp && c->strategy.zero == 1 && c->strategy.schedule == PL_SCHEDULE_INTERLEAVED);
}

/* The age of a name, and what is known of NVIDIA's recipes. */
static void frameworks(void **state) {
  (void)state;
  pl_cases cases = express(
      "f,GPT,96,12288,,96,,2048,64000,A100,256,8,,Megatron-LM,bf16,2-matrix,8,8,6,4,,,,,768,,40,,,,\n"
      "f,GPT,96,12288,,96,,2048,51200,A100,64,8,,NeMo Megatron,bf16,2-matrix,4,8,12,2,1,,,1,2048,selective,559,,,,\n"
      "f,Qwen3-235B,94,4096,1536,64,4,4096,,H100,256,8,,Megatron-Core "
      "DeepEP,bf16,gated,2,1,,128,,,,4,2048,full,17,,,,\n"
      "f,Nemotron4 340b,96,18432,73728,96,8,4096,,H100,256,8,,NeMo,BF16,2-matrix,8,8,,4,,,,1,64,,4,,,,\n"
      "f,Nemotron4 340b,96,18432,73728,96,8,4096,,H100,256,8,,NeMo,BF16,2-matrix,8,4,,8,,,,1,64,,4,,,,\n");
  const pl_case *c = cases.cases;
  assert_string_equal(c[0].framework.name, "megatron-lm-2023");
  assert_true(!c[0].strategy.overlap);
  assert_true(c[0].job.flash && c[0].strategy.sp);
  assert_string_equal(c[1].framework.name, "nemo-megatron-2022");
  assert_true(!c[1].job.flash && c[1].strategy.sp);
  assert_true(c[2].job.flash && c[2].strategy.recompute == PL_RECOMPUTE_FULL);
  assert_string_equal(c[3].model->family, "nemotron");
  assert_true(c[3].strategy.vpp == 12 && c[3].strategy.schedule == PL_SCHEDULE_INTERLEAVED);
  assert_int_equal(c[4].strategy.vpp, 1);
}

/* Schedules that are simulated and that the column names alone. */
static void schedules(void **state) {
  (void)state;
  static const struct {
    const char *word, *vpp;
    pl_schedule_kind schedule;
    int32_t chunks; /* 0: not expressed */
  } rows[] = {{"1F1B", "", PL_SCHEDULE_1F1B, 1},    {"1F1B", "2", PL_SCHEDULE_INTERLEAVED, 2},
              {"fifo", "", PL_SCHEDULE_FIFO, 1},    {"zb-h1", "", PL_SCHEDULE_ZB_H1, 1},
              {"ZB-H2", "1", PL_SCHEDULE_ZB_H2, 1}, {"ZBV", "", PL_SCHEDULE_ZB_V, 2},
              {"zb-v", "2", PL_SCHEDULE_ZB_V, 2},   {"breadth-first", "3", PL_SCHEDULE_BREADTH_FIRST, 3},
              {"zb-h1", "2", PL_SCHEDULE_ZB_H1, 0}, {"zb-v", "4", PL_SCHEDULE_ZB_V, 0},
              {"ZB-1p", "", PL_SCHEDULE_1F1B, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "f,GPT,24,1024,,16,,1024,51200,A100,8,8,,Megatron-LM,fp16,2-matrix,1,4,%s,2,,,,1,64,,1,,,,,%s\n",
             rows[i].vpp, rows[i].word);
    const pl_case *c = express_under(COLUMNS "status,schedule\n", text).cases;
    if (rows[i].chunks == 0) {
      assert_non_null(strstr(c->reason, "schedule: "));
      continue;
    }
    if (c->reason != NULL) fail_msg("%s, vpp %s: %s", rows[i].word, rows[i].vpp, c->reason);
    assert_true(c->strategy.schedule == rows[i].schedule && c->strategy.vpp == rows[i].chunks);
  }
}

/* BigScience waited for every launch on more than 160 GPUs; others, and they on fewer, say so or did not. */
/* NeMo Megatron of 2022 reduces gradients beside the last backward pass, but those of pipelines behind it. */
static void reductions_behind_pipelines(void **state) {
  (void)state;
#define NEMO_5B "l,GPT-3 5B,24,4096,16384,32,,2048,51200,A100-80GB-SXM,64,8,,NeMo Megatron,bf16,2-matrix,"
  pl_cases cases = express(NEMO_5B "1,1,,64,,,,2,2048,,13.4,,,,\n" NEMO_5B "8,4,,2,,,,2,2048,selective,13.4,,,,\n");
  const pl_case *flat = &cases.cases[0], *piped = &cases.cases[1];
  assert_null(piped->reason);
  assert_string_equal(piped->framework.name, "nemo-megatron-2022");
  assert_true(!piped->job.flash && piped->strategy.sp && piped->strategy.zero == 1);
  assert_true(flat->strategy.overlap && !piped->strategy.overlap);
}

static void launches_that_are_waited_for(void **state) {
  (void)state;
  static const struct {
    const char *n_gpus, *dp, *notes, *source, *framework;
  } rows[] = {{"384", "4", "", "github:bigscience-workshop/bigscience:x.md@1", "megatron-deepspeed-bloom"},
              {"96", "1", "", "github:bigscience-workshop/bigscience:x.md@1", "megatron-deepspeed"},
              {"384", "4", "", "github:someone/else:x.md@1", "megatron-deepspeed"},
              {"96", "1", "with CUDA_LAUNCH_BLOCKING=1", "", "megatron-deepspeed-bloom"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char row[512];
    snprintf(
        row, sizeof row,
        "f,BLOOM,72,14336,,64,,2048,250000,A100-80GB-SXM,%s,8,4 Omni-Path links,Megatron-DeepSpeed,fp16,2-matrix,8,12,,"
        "%s,,,1,2,2048,full,1,,,%s,%s\n",
        rows[i].n_gpus, rows[i].dp, rows[i].notes, rows[i].source);
    pl_cases cases = express_under(COLUMNS "source\n", row);
    if (cases.cases[0].reason != NULL) fail_msg("%s", cases.cases[0].reason);
    assert_string_equal(cases.cases[0].framework.name, rows[i].framework);
  }
}

static void rates_of_networks(void **state) {
  (void)state;
  pl_cases cases =
      express("f,Llama-2 7B,32,4096,11008,32,,4096,32000,H100-80GB,96,8,800Gbps per node,fms-fsdp (PyTorch "
              "FSDP),bf16,gated,1,1,,96,,HSDP,3,2,192,none,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,V100-SXM2-16GB,16,8,\"8x V100-SXM2-16GB hybrid cube mesh NVLink, 1x IB "
              "EDR 100Gb/s (mlx5_0) per node\",LiBai,fp16,2-matrix,1,1,,16,,,,2,32,full,1,,,,\n");
  assert_string_equal(cases.cases[0].platform, "dgx-h100 --nodes 12 --gpus-per-node 8 --nic-rate 12.5GBps");
  assert_string_equal(cases.cases[1].platform, "v100-cube-1ib --nodes 2 --gpus-per-node 8");
  assert_false(cases.cases[1].job.flash);             /* no fused attention before the A100 */
  assert_int_equal(cases.cases[0].strategy.shard, 8); /* HSDP: inside a node */
  assert_int_equal(cases.cases[0].strategy.zero, 3);
  assert_int_equal(cases.cases[1].strategy.shard, 0);
}

/* A name within a name (H200 in GH200), cards, and chips that differ from their relatives in NVLink. */
static void machines(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *platform;
  } rows[] = {{"NVIDIA GH200", "gh200-quad --nodes 4 --gpus-per-node 4"},
              {"H200", "dgx-h100 --nodes 2 --gpus-per-node 8 --device H200-SXM5-141GB"},
              {"H800", "hgx-h800 --nodes 2 --gpus-per-node 8"},
              {"A800-SXM4-80GB", "hgx-a800 --nodes 2 --gpus-per-node 8"},
              {"H100 PCIe", "pcie5-server --nodes 2 --gpus-per-node 8"},
              {"A100-PCIe-40GB", "pcie4-server --nodes 2 --gpus-per-node 8 --device A100-PCIe-40GB"},
              {"L40S", "pcie4-server --nodes 2 --gpus-per-node 8 --device L40S"},
              {"L4", "pcie4-server --nodes 2 --gpus-per-node 8 --device L4"},
              {"A10G", "g5.48xlarge --nodes 2 --gpus-per-node 8"},
              {"A10", "pcie4-server --nodes 2 --gpus-per-node 8 --device A10"},
              {"NVIDIA RTX 6000 Ada Generation", "pcie4-server --nodes 2 --gpus-per-node 8 --device RTX-6000-Ada"},
              {"RTX A6000", "pcie4-server --nodes 2 --gpus-per-node 8 --device RTX-A6000"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char row[256];
    snprintf(row, sizeof row, "f,GPT,16,1536,,16,,2048,51200,%s,16,,,LiBai,fp16,2-matrix,1,1,,16,,,,2,32,full,1,,,,\n",
             rows[i].gpu);
    pl_cases cases = express(row);
    assert_null(cases.cases[0].reason);
    assert_string_equal(cases.cases[0].platform, rows[i].platform);
  }
}

/* GeForce cards alone; cards with bridges, or without access to each other's memory, have no machine. */
static void cards(void **state) {
  (void)state;
  static const struct {
    const char *gpu, *interconnect;
    int n;
    const char *says;
  } rows[] = {{"GeForce RTX 4090", "", 1, NULL},          {"RTX 3090", "NVLink", 1, NULL},
              {"RTX 4090", "", 2, "each other's memory"}, {"RTX 3090", "PCIe", 2, "each other's memory"},
              {"RTX A6000", "PCIe; no NVLink", 2, NULL},  {"RTX A6000", "NVLink bridge", 2, "NVLink bridges"},
              {"A100-SXM4-40GB", "NVLink", 2, NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char row[256];
    snprintf(row, sizeof row, "f,GPT,16,1536,,16,,1024,51200,%s,%d,,%s,FooTrain,fp16,2-matrix,1,1,,%d,,,,1,%d,,1,,,,\n",
             rows[i].gpu, rows[i].n, rows[i].interconnect, rows[i].n, rows[i].n);
    const char *reason = express(row).cases[0].reason;
    if ((reason == NULL) != (rows[i].says == NULL)) fail_msg("%s: %s", rows[i].gpu, reason != NULL ? reason : "-");
    if (reason != NULL) assert_non_null(strstr(reason, rows[i].says));
  }
}

/* Software that nobody here has heard of is known by what it does. */
static void unknown_software(void **state) {
  (void)state;
  pl_cases cases =
      express("f,GPT,16,1536,,16,,2048,51200,A100,8,8,,FooTrain,bf16,2-matrix,2,2,,2,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,FooTrain,bf16,2-matrix,1,1,,8,,,3,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,,bf16,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,,bf16,2-matrix,2,2,,2,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,FooTrain (Transformer Engine),bf16,2-matrix,1,4,,2,,"
              ",,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,FooTrain (compile),bf16,2-matrix,2,2,,2,,,,2,32,full,1,"
              ",,,\n");
  assert_string_equal(cases.cases[0].framework.name, "torch-own");
  assert_false(cases.cases[0].framework.kernels.fuses_residual);
  assert_string_equal(cases.cases[1].framework.name, "torch-fsdp");
  assert_string_equal(cases.cases[2].framework.name, "torch-ddp");
  assert_string_equal(cases.cases[3].framework.name, "megatron-core");
  assert_string_equal(cases.cases[4].framework.name, "megatron-core");
  assert_string_equal(cases.cases[5].framework.name, "torch-own");
  assert_true(cases.cases[5].framework.kernels.fuses_residual);
}

/* Blank cells of other tools, words for recomputation and types, the data-parallel degree that is left over. */
static void dialects(void **state) {
  (void)state;
  pl_cases cases = express("f,Llama-2 7B,32,4096,11008.0,32,nan,4096,32000,A100,64,8,NaN,NeMo,bfloat16,gated,2.0,2,,,"
                           "0,0,,1,256,true,5,n/a,,,\n"
                           "f,Llama-2 7B,32,4096,11008,32,32,4096,32000,A100,64,8,,NeMo,float16,gated,2,2,,16,,,,1,256,"
                           "core_attn,5,,-,,\n"
                           "f,Llama-2 7B,32,4096,11008,32,32,4096,32000,A100,64,8,,NeMo,bf16,gated,2,3,,,,,,1,256,No,5,"
                           ",,,\n");
  const pl_case *c = cases.cases;
  assert_null(c[0].reason);
  assert_true(c[0].strategy.dp == 16 && c[0].strategy.recompute == PL_RECOMPUTE_FULL && c[0].strategy.vpp == 1);
  assert_true(c[0].job.dtype == PL_DTYPE_BF16 && c[0].model->attention.n_kv_heads == 32);
  assert_true(c[1].job.dtype == PL_DTYPE_FP16 && c[1].strategy.recompute == PL_RECOMPUTE_SELECTIVE);
  assert_true(c[2].strategy.dp == 1 && c[2].strategy.recompute == PL_RECOMPUTE_NONE); /* 64 is no multiple of 2 * 3 */
}

/* Megatron-Bridge's pages of 2025 name no precision where it is fp8; NVFP4 is narrower still. */
static void narrow_products(void **state) {
  (void)state;
#define BRIDGE(software, precision)                                                                                    \
  "f,LLAMA3_70B,80,8192,28672,64,8,8192,128256,GB200-NVL72,64,4,," software "," precision                              \
  ",gated,2,4,,8,,,,1,256,,7,,,,\n"
  pl_cases cases =
      express(BRIDGE("Megatron-Bridge/NeMo", "NVFP4") BRIDGE("Megatron-Bridge/NeMo", " (alternative)")
                  BRIDGE("Megatron-Bridge/NeMo", "BF16") BRIDGE("NeMo", "") BRIDGE("Megatron-Bridge/NeMo", "FP8-CS")
                      BRIDGE("torchtitan", "mxfp8_cublas") BRIDGE("torchtitan", "float8 tensorwise")
                          BRIDGE("torchtitan", "float8 rowwise") BRIDGE("Megatron-Bridge/NeMo", "MXFP8"));
  const pl_case *c = cases.cases;
  assert_true(c[0].reason == NULL && c[0].job.fp4 && c[0].job.fp8 && c[0].job.dtype == PL_DTYPE_BF16);
  assert_true(c[1].reason == NULL && !c[1].job.fp4 && c[1].job.fp8 && c[1].job.dtype == PL_DTYPE_BF16);
  assert_true(c[2].reason == NULL && !c[2].job.fp8);
  assert_non_null(c[3].reason);
  assert_int_equal(c[1].framework.kernels.fp8_scaling, PL_FP8_DELAYED);
  assert_int_equal(c[4].framework.kernels.fp8_scaling, PL_FP8_CURRENT);
  assert_int_equal(c[5].framework.kernels.fp8_scaling, PL_FP8_ROWWISE);
  assert_int_equal(c[6].framework.kernels.fp8_scaling, PL_FP8_DYNAMIC);
  assert_int_equal(c[7].framework.kernels.fp8_scaling, PL_FP8_ROWWISE);
  assert_int_equal(c[8].framework.kernels.fp8_scaling, PL_FP8_DELAYED);
}

static void reasons(void **state) {
  (void)state;
  static const char *const wanted[] = {"unknown GPU: 'FooGPU'",         "precision: 'int3'",
                                       "not stated: precision",         "not stated: n_heads",
                                       "recomputation: 'half, act'",    "not stated: step_time_s",
                                       "machine: 12 GPUs are no whole", "not a transformer: Nemotron-H",
                                       "status: 'ended otherwise'"};
  pl_cases cases =
      express("f,GPT,16,1536,,16,,2048,51200,FooGPU,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,LiBai,int3,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,LiBai,,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,,,2048,51200,A100,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,\"half, act\",1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,full,,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,12,8,,LiBai,fp16,2-matrix,1,1,,12,,,,2,24,full,1,,,,\n"
              "f,Nemotron-H 8B,16,1536,,16,,2048,51200,A100,8,8,,NeMo,bf16,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n"
              "f,GPT,16,1536,,16,,2048,51200,A100,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,full,,,,,ended otherwise\n");
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    const char *reason = cases.cases[i].reason;
    if (reason == NULL || strncmp(reason, wanted[i], strlen(wanted[i])) != 0)
      fail_msg("%s, not: %s", reason != NULL ? reason : "(expressed)", wanted[i]);
  }
}

/* GPUs of several kinds are none of a machine that a row can tell of; one GPU under several names is one. */
static void several_kinds(void **state) {
  (void)state;
  static const char *const mixed[] = {
      "V100 + T4",   "12x V100-SXM2-16GB, 4x T4", "A100/H100", "T4 and V100", "V100 + Radeon",
      "H100 & H200", "A100-40GB + A100-80GB"};
  static const char *const single[] = {"A100 (DGX-A100)",     "V100-SXM2-16GB (p3.16xlarge, assumed)",
                                       "NVIDIA L40S",         "H100 SXM 96GB HBM2e 2.4TB/s (500 W)",
                                       "GB200-NVL72",         "NVIDIA GH200 (H100 96GB)",
                                       "A10G (g5, EFA+x)",    "NVIDIA Ampere (A100-class; memory not stated)",
                                       "H100 SXM + NVSwitch", "A100-80GB & NVLink",
                                       "not stated in doc"};
  for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
    if (!pl_row_gpu_is_mixed(mixed[i])) fail_msg("taken for one kind: %s", mixed[i]);
  for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
    if (pl_row_gpu_is_mixed(single[i])) fail_msg("taken for several kinds: %s", single[i]);
  pl_cases cases =
      express("f,GPT,16,1536,,16,,2048,51200,V100 + T4,8,8,,LiBai,fp16,2-matrix,1,1,,8,,,,2,32,full,1,,,,\n");
  assert_string_equal(cases.cases[0].reason,
                      "gpu: 'V100 + T4' names V100 and T4: how many of each, and what connects them, says a platform "
                      "file, in column 'platform' or by --platform");
  assert_null(pl_row_device_named("V100 + T4"));
}

/* Alike but for what was measured: one case, at the median. Crashed runs are a case of their own. */
static void rows_that_say_the_same(void **state) {
  (void)state;
  pl_cases cases = express(SC21 "8,12,,4,,,,1,1536,full,70,,10,,\n" SC21 "8,12,,4,,,,1,1536,full,90,,,,\n" SC21
                                "8,12,,4,,,,1,1536,full,74,,30,,ok\n" SC21 "8,12,,4,,,,2,1536,full,1,,,,\n" SC21
                                "8,12,,4,,,,1,1536,full,,,,,OOM\n" SC21 "8,12,,4,,,,1,3072,full,,512,,,\n");
  assert_int_equal(cases.n_cases, 4);
  assert_int_equal(cases.n_rows, 6);
  assert_int_equal(cases.cases[0].n_rows, 3);
  assert_true(cases.cases[0].measured_s == 74 && cases.cases[0].measured_mem_bytes == 20.0 * 1024 * 1024 * 1024);
  assert_true(!cases.cases[1].crashed && isnan(cases.cases[1].measured_mem_bytes));
  assert_true(cases.cases[2].crashed && isnan(cases.cases[2].measured_s));
  assert_true(cases.cases[3].measured_s == 3072.0 * 2048 / (512 * 384)); /* from tokens per second */
}

/* Each source's figure of memory, of the rank of which it is published. */
static void what_nanotron_refuses(void **state) {
  (void)state;
#define NANOTRON "f,Llama-like,16,2048,8192,32,32,4096,131072,H100-SXM5-80GB,32,8,,nanotron v0.5,bf16,gated,"
  pl_cases cases = express(NANOTRON "1,4,,8,,,1,4,32,,1,,20,,\n" NANOTRON "1,4,,8,,,1,1,24,,1,,20,,\n");
  assert_non_null(cases.cases[0].reason);
  assert_non_null(strstr(cases.cases[0].reason, "schedule: nanotron refuses 1 microbatches on 4 stages"));
  assert_null(cases.cases[1].reason);
}

static void memory_is_compared_with_what_was_published(void **state) {
  (void)state;
  pl_cases cases = express("f,Llama-like,6,2048,8192,32,32,4096,131072,H100-SXM5-80GB,8,8,,nanotron v0.5,bf16,gated,"
                           "1,2,,4,,,1,4,16,,1,,20,,\n"
                           "f,gpt3_7b,8,4096,,32,8,2048,131073,A100-80GB-SXM,8,8,,Megatron-LM (Megatron-Core) CI,bf16,"
                           "2-matrix,2,2,,2,0,,,1,8,none,1,,20,,\n"
                           "f,GPT,16,1536,,16,,2048,51200,V100-SXM2-16GB,8,8,8x V100-SXM2-16GB hybrid cube "
                           "mesh,OneFlow,fp16,2-matrix,1,1,,8,,,,2,16,full,1,,20,,\n"
                           "f,GPT,32,2560,,32,,1024,51200,V100-SXM2-16GB,8,8,p3.16xlarge,alpa,fp16,2-matrix,"
                           "2,2,,2,,,,4,32,full,1,,8.7,,\n");
  pl_error error = PL_ERROR_INIT;
  if (pl_cases_simulate(&cases, &(pl_case_options){.n_threads = 1}, &arena, &error) != PL_OK)
    fail_msg("%s", error.message);
  const pl_case *c = cases.cases;
  for (uint32_t i = 0; i < cases.n_cases; i++)
    assert_null(c[i].reason);
  assert_true(c[0].result.peak_stage == 1 && c[0].predicted_mem_bytes < c[0].result.reserved_mem_bytes);
  assert_true(c[1].result.peak_stage == 1 && c[1].predicted_mem_bytes == c[1].result.peak_mem_bytes);
  assert_true(c[1].model->dropout.hidden_dropout && strcmp(c[1].model->family, "nemotron") == 0);
  assert_true(llround(c[2].predicted_mem_bytes) == c[2].result.device_mem_bytes);
  assert_true(c[3].strategy.zero == 1 && c[3].predicted_mem_bytes == c[3].result.peak_mem_bytes);
}

static void limits_of_power(void **state) {
  (void)state;
  static const struct {
    const char *gpu;
    double power_W;
  } rows[] = {
      {"H100 SXM 96GB HBM2e 2.4TB/s (500 W)", 500}, {"A100 300W", 300}, {"H100", 0}, {"8 GB W", 0}, {"H100 700Wh", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const pl_measured_row r = {.gpu = rows[i].gpu, .power_w = NAN}, stated = {.gpu = rows[i].gpu, .power_w = 450};
    assert_true(pl_row_power_W(&r) == rows[i].power_W);
    assert_true(pl_row_power_W(&stated) == 450);
  }
}

/* Capacity and bandwidth of memory beside the GPU's name; sizes that are none, and rates of links, are not theirs. */
static void memory_of_gpus(void **state) {
  (void)state;
  static const struct {
    const char *gpu;
    double memory_GiB, bandwidth_TBps;
  } rows[] = {{"H100 SXM 96GB HBM2e 2.4TB/s (500 W)", 96, 2.4},
              {"H100 (95 GiB)", 95, 0},
              {"NVIDIA Blackwell GPU (B200-SXM-180GB)", 180, 0},
              {"GB200", 0, 0},
              {"H100, NVLink 900 Gb/s", 0, 0},
              {"A100", 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const pl_measured_row r = {.gpu = rows[i].gpu};
    assert_true(pl_row_memory_bytes(&r) == rows[i].memory_GiB * 1024 * 1024 * 1024);
    assert_true(fabs(pl_row_bandwidth_Bps(&r) - rows[i].bandwidth_TBps * 1e12) < 1);
  }
}

/* TCP is a word of the network that training uses, and none where it also has RDMA. */
static void transports(void **state) {
  (void)state;
  static const struct {
    const char *interconnect, *platform;
  } rows[] = {
      {"10GbE", "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 1.25GBps --transport socket"},
      {"25 Gb/s Ethernet per node", "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 3.125GBps --transport socket"},
      {"TCP over 100 Gb/s", "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 12.5GBps --transport socket"},
      {"10 Gb/s TCP per node; delay 10 ms",
       "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 1.25GBps --transport socket --delay 10ms"},
      {"10GbE; delay 500us",
       "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 1.25GBps --transport socket --delay 0.5ms"},
      {"NCCL_NET=Socket", "dgx-a100 --nodes 2 --gpus-per-node 8 --transport socket"},
      {"ENA", "dgx-a100 --nodes 2 --gpus-per-node 8 --transport socket"},
      {"10 Gb/s; NCCL_IB_DISABLE=1", "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 1.25GBps --transport socket"},
      {"enabled", "dgx-a100 --nodes 2 --gpus-per-node 8"},
      {"200 Gb/s RoCE Ethernet per node", "dgx-a100 --nodes 2 --gpus-per-node 8 --nic-rate 3.125GBps"},
      {"8x IB; Management: 100Gb/s Ethernet", "dgx-a100 --nodes 2 --gpus-per-node 8"},
      {"Management: 100Gb/s Ethernet", "dgx-a100 --nodes 2 --gpus-per-node 8"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "f,GPT,24,1024,,16,,1024,51200,A100,16,8,%s,Megatron-LM,fp16,2-matrix,8,1,,2,,,,1,16,,1,,,,\n",
             rows[i].interconnect);
    const pl_case *c = express(text).cases;
    if (c->reason != NULL) fail_msg("%s: %s", rows[i].interconnect, c->reason);
    assert_string_equal(c->platform, rows[i].platform);
  }
}

/* An Ethernet without its rate, a delay that cannot be read, or over what nothing was measured: not expressed. */
static void delays(void **state) {
  (void)state;
  static const struct {
    const char *interconnect, *says;
  } rows[] = {{"Ethernet", "the rate of an Ethernet"},
              {"NCCL_IB_DISABLE=1", "the rate of an Ethernet"},
              {"10GbE; some delay", "'delay' without a time"},
              {"10GbE; delay 5", "'delay' without a time"},
              {"10GbE; delay 3 s", "2 s at most"},
              {"8x200Gb HDR; delay 10 ms", "only TCP is known"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "f,GPT,24,1024,,16,,1024,51200,A100,16,8,%s,Megatron-LM,fp16,2-matrix,8,1,,2,,,,1,16,,1,,,,\n",
             rows[i].interconnect);
    const pl_case *c = express(text).cases;
    if (c->reason == NULL || strstr(c->reason, rows[i].says) == NULL)
      fail_msg("%s: %s", rows[i].interconnect, c->reason != NULL ? c->reason : "expressed");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_row_of_megatron, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transports, set_up, tear_down),
      cmocka_unit_test_setup_teardown(delays, set_up, tear_down),
      cmocka_unit_test_setup_teardown(limits_of_power, set_up, tear_down),
      cmocka_unit_test_setup_teardown(memory_of_gpus, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_left_open, set_up, tear_down),
      cmocka_unit_test_setup_teardown(frameworks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(schedules, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_nanotron_refuses, set_up, tear_down),
      cmocka_unit_test_setup_teardown(memory_is_compared_with_what_was_published, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reductions_behind_pipelines, set_up, tear_down),
      cmocka_unit_test_setup_teardown(launches_that_are_waited_for, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rates_of_networks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(machines, set_up, tear_down),
      cmocka_unit_test_setup_teardown(cards, set_up, tear_down),
      cmocka_unit_test_setup_teardown(unknown_software, set_up, tear_down),
      cmocka_unit_test_setup_teardown(dialects, set_up, tear_down),
      cmocka_unit_test_setup_teardown(narrow_products, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reasons, set_up, tear_down),
      cmocka_unit_test_setup_teardown(several_kinds, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rows_that_say_the_same, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
