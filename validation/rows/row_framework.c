/* What frameworks do where a row does not say (see validation/rows/row.h). First match wins. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

bool pl_row_mentions(const char *text, const char *word) {
  return strcasestr(text, word) != NULL;
}

/* As a word of its own: "NeMo 25.04", not "Nemotron"; "alpa", not "Alpaca"; "AutoModel", not "AutoModelForCausalLM". */
static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = text; (at = strcasestr(at, word)) != NULL; at++)
    if ((at == text || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[length])) return true;
  return false;
}

bool pl_row_says_one_of(const pl_measured_row *row, const char *const *words) {
  for (; *words != NULL; words++)
    if (pl_row_mentions(row->framework, *words) || pl_row_mentions(row->notes, *words)) return true;
  return false;
}

/* FlashAttention needs an A100 or later. */
static bool has_flash_hardware(const pl_measured_row *row) {
  static const char *const older[] = {"V100", "P100", "T4", "TITAN"};
  if (strncasecmp(row->gpu, "not stated", 10) == 0) return false; /* a V100: see row_cluster.c */
  for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
    if (pl_row_mentions(row->gpu, older[i])) return false;
  return true;
}

/* PyTorch has fused attention of its own since 2.0 (scaled_dot_product_attention, its release notes), and the models of
 * before write scores, mask, softmax and dropout. */
static bool predates_torch_2(const pl_measured_row *row) {
  return pl_row_mentions(row->framework, "PyTorch 1.") && !pl_row_says_flash(row);
}

/* Megatron-LM recomputed whole layers until sequence parallelism and selective recomputation came (2022), and
 * FlashAttention after that; selective recomputation is that of an attention that is not fused. Megatron-Core is later
 * than all of it. */
static bool predates_flash(const pl_measured_row *row) {
  if (pl_row_says_flash(row) && !pl_row_denies_flash(row)) return false;
  static const char *const later[] = {"Core", "Bridge", "NeMo"};
  for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
    if (has_word(row->framework, later[i])) return false;
  return strncasecmp(row->recompute, "full", 4) == 0 || strncasecmp(row->recompute, "selective", 9) == 0;
}

static const struct {
  const char *word;
  pl_row_habits habits;
} frameworks[] = {
    {"MegaScale", {.framework = "megatron-core", .sequence_parallel = true, .zero = 1}},
    /* Fused kernels of the same kind as Megatron's, for BERT. */
    {"transformer kernel", {.framework = "megatron-deepspeed", .dropout = true}},
    {"Megatron-LM + DeepSpeed ZeRO-3", {.framework = "deepspeed-zero3-2021", .dropout = true}},
    /* "All the experiments are conducted with PyTorch 1.8"; buckets of 25 MB (its examples/megatron_gpt.py). */
    {"Proteus", {.framework = "proteus", .no_flash = true, .dropout = true}},
    {"DistIR", {.framework = "distir"}},
    {"DT-FM", {.framework = "dt-fm"}},
    /* MT-NLG's, which is Megatron-DeepSpeed (arXiv:2201.11990, section 2.2). */
    {"Megatron-LM + DeepSpeed", {.framework = "megatron-deepspeed", .dropout = true}},
    {"Megatron-DeepSpeed (AMP)", {.framework = "megatron-lm-1.1.5", .dropout = true}},
    {"Megatron-DeepSpeed (DeepSpeedExamples",
     {.framework = "megatron-lm-2019", .dropout = true, .memory_figure = PL_MEMORY_DEVICE}},
    {"BMTrain", {.framework = "bmtrain", .zero = 3}},
    /* DeepSpeed's engine of 2021 and 2022 around Megatron's layers, whatever brackets say which. */
    {"ZeRO-2 (Megatron", {.framework = "megatron-deepspeed", .dropout = true}},
    {"ZeRO-3 (Megatron", {.framework = "megatron-deepspeed", .dropout = true}},
    {"Megatron-DeepSpeed", {.framework = "megatron-deepspeed", .dropout = true, .memory_figure = PL_MEMORY_DEVICE}},
    {"Megatron-Bridge", {.framework = "nemo", .sequence_parallel = true, .zero = 1}},
    /* Functional tests state every switch in their model_config.yaml; Megatron-LM's own dropout, 0.1, is not turned
     * off. What is written to tensorboard, mem-max-allocated-bytes among it, comes from the last rank. */
    {"Megatron-Core) CI",
     {.framework = "megatron-core",
      .dropout = true,
      .sequence_parallel = true,
      .zero = 1,
      .memory_figure = PL_MEMORY_ALLOCATED,
      .memory_rank = PL_MEMORY_LAST_STAGE}},
    {"Megatron-Core", {.framework = "megatron-core", .sequence_parallel = true, .zero = 1}},
    /* NeMo's name in 2022: the launcher's configurations have dropout 0.1, and of the distributed optimizer's
     * reductions those of pipelines are not overlapped (NeMo v1.11.0, megatron_gpt_model.py, configure_optimizers). */
    {"NeMo Megatron",
     {.framework = "nemo-megatron-2022",
      .sequence_parallel = true,
      .zero = 1,
      .dropout = true,
      .reduces_after_pipelines = true}},
    /* NVIDIA's trainer of Hugging Face's checkpoints: FSDP2 and DTensor around PyTorch's models, whose norms, products
     * and attention may be Transformer Engine's (NVIDIA-NeMo/Automodel, components/distributed/fsdp2.py). */
    {"AutoModel", {.framework = "torchtitan", .gathers_context = true, .zero = 3}},
    {"NeMo", {.framework = "nemo", .sequence_parallel = true, .zero = 1}},
    {"Megatron", {.framework = "megatron-lm-2023", .dropout = true, .sequence_parallel = true}},
    {"LiBai", {.framework = "libai", .dropout = true}},
    {"OneFlow", {.framework = "libai", .dropout = true, .memory_figure = PL_MEMORY_DEVICE}},
    /* Its GPT suites prefer reduce-scatter, which shards the optimizer (benchmark/alpa/suite_manual_gpt.py,
     * fixed_params); peak memory is XLA's. */
    {"alpa",
     {.framework = "ideal", .no_flash = true, .dropout = true, .zero = 1, .memory_figure = PL_MEMORY_ALLOCATED}},
    /* helpers.py, log_throughput: rank 0 writes its own figures to the table of benchmarks. */
    {"nanotron", {.framework = "nanotron", .memory_rank = PL_MEMORY_FIRST_STAGE}},
    /* GPT-NeoX: Megatron's layers, DeepSpeed's engine; hidden_dropout and attention_dropout are 0 by default
     * (EleutherAI/gpt-neox@ea7aefd8f8e1 megatron/neox_arguments/neox_args.py) and in configs/20B.yml. */
    {"neox", {.framework = "megatron-deepspeed"}},
    {"Composer", {.framework = "fsdp-composer", .zero = 3}},
    {"Foundry", {.framework = "fsdp-composer", .zero = 3}}, /* MosaicML's LLM Foundry trains with Composer */
    {"fms-fsdp", {.framework = "fms-fsdp", .zero = 3}},
    /* Selective recomputation per op is what its Llama configurations have. */
    {"torchtitan",
     {.framework = "torchtitan",
      .sequence_parallel = true,
      .selects_ops = true,
      .gathers_context = true, /* context_parallel_rotate_method, allgather unless told otherwise (its job_config.py) */
      .zero = 3}},
    /* Its README has "Peak Memory Active". */
    {"torchtune", {.framework = "torchtune", .memory_figure = PL_MEMORY_ALLOCATED}},
    {"InternEvo", {.framework = "internevo", .zero = 1}},
    /* Kernels by hand and a host in C: norms with additions, bias in a product's epilogue, loss in place, cuDNN's
     * attention, 16-bit weights and gradients beside fp32 masters (karpathy/llm.c, train_gpt2.cu). */
    {"llm.c", {.framework = "ideal"}},
    /* BERT of before fused attention: modeling.py of each multiplies scores, masks, softmax, dropout 0.1. */
    {"DeepLearningExamples", {.framework = "torch-ddp", .no_flash = true, .dropout = true}},
    {"TensorFlow", {.framework = "tensorflow", .no_flash = true, .dropout = true}},
    /* Its GPT's and BERT's published configurations have dropout 0.1 (transformers/gpt/configuration.py). */
    {"Paddle", {.framework = "paddlenlp", .dropout = true}},
    /* XLA's compiled steps. */
    {"Paxml", {.framework = "jax-xla"}},
    {"MaxText", {.framework = "jax-xla"}},
    {"JAX", {.framework = "jax-xla"}},
    {"FSDP", {.framework = "torch-fsdp", .zero = 3}},
    {"DeepSpeed", {.framework = "deepspeed"}}, /* around models that are not Megatron's */
};

/* Software that no row of the table names. What a row does says what it can be: sharded parameters are FSDP's ways,
 * tensor groups and pipelines Megatron's where nothing is said, and somebody's own where a name is that is not known:
 * Megatron's and Transformer Engine's fused kernels come with these. */
static pl_row_habits habits_of_others(const pl_measured_row *row) {
  if (row->tp > 1 || row->pp > 1) {
    bool is_own = row->framework[0] != '\0' && !pl_row_mentions(row->framework, "Transformer Engine");
    return (pl_row_habits){.framework = is_own ? "torch-own" : "megatron-core", .sequence_parallel = row->tp > 1};
  }
  bool sharded = row->zero_stage == 3 || pl_row_mentions(row->fsdp, "FULL") || pl_row_mentions(row->fsdp, "FSDP");
  return (pl_row_habits){.framework = sharded ? "torch-fsdp" : "torch-ddp"};
}

/* BigScience's jobs of 320 GPUs and more hung unless every launch was waited for (their chronicles, "dealing with JZ
 * hanging on the large model"). */
static bool waits_for_launches(const pl_measured_row *row) {
  enum { FEW_GPUS = 160 };
  bool says_so = pl_row_mentions(row->notes, "CUDA_LAUNCH_BLOCKING=1");
  return says_so || (pl_row_mentions(row->source, "bigscience-workshop") && row->n_gpus > FEW_GPUS);
}

/* NVIDIA's containers ("PyTorch 20.06", "DeepLearningExamples 21.11") of before 2022: older than the pull request of
 * February 2022 that torch-ddp-2020 is without (pytorch/pytorch#72728), and than PyTorch 2. */
static bool is_old_container(const pl_measured_row *row) {
  static const char *const words[] = {"PyTorch ", "DeepLearningExamples "};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    const char *at = strcasestr(row->framework, words[i]);
    int year, month;
    if (at == NULL || sscanf(at + strlen(words[i]), "%2d.%2d", &year, &month) != 2) continue;
    if (year >= 17 && year < 22 && month >= 1 && month <= 12) return true;
  }
  return false;
}

/* Google's BERT and those of its line pick the masked tokens in front of the head: run_pretraining.py, gather_indexes
 * (google-research/bert; NVIDIA/DeepLearningExamples@729963dd47e7 for TensorFlow 1 and 2), index_select in modeling.py
 * (PyTorch, not yet in that of the containers of 2020, and PaddlePaddle, same commit), and DeepSpeed's for its
 * transformer kernel (microsoft/DeepSpeedExamples, bing_bert). Megatron's and Hugging Face's do not. */
static bool picks_masked(const pl_measured_row *row) {
  return pl_row_mentions(row->framework, "TensorFlow") || pl_row_mentions(row->framework, "DeepLearningExamples 2") ||
         pl_row_mentions(row->framework, "transformer kernel");
}

/* FlagPerf writes down what its monitor of nvidia-smi saw (training/README.md, gpu_monitor.log;
 * docs/utils/readme-templates/vendor-readme-template.md at its head of 2025). */
static bool is_watched(const pl_measured_row *row) {
  return pl_row_mentions(row->source, "FlagOpen/FlagPerf");
}

/* "memory of nvidia-smi", not "nvidia-smi topo in report" nor "from nvidia-smi topo -m". */
static bool says_watched(const pl_measured_row *row) {
  static const char *const words[] = {"of nvidia-smi", "by nvidia-smi", "from nvidia-smi", "nvidia-smi memory"};
  static const char *const others[] = {" topo", " nvlink", " -q", " -L"};
  const char *const texts[] = {row->framework, row->notes};
  for (size_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
    const char *word = words[i / 2], *at = strcasestr(texts[i % 2], word);
    bool other = false;
    for (size_t k = 0; at != NULL && k < sizeof others / sizeof others[0]; k++)
      other = other || strncasecmp(at + strlen(word), others[k], strlen(others[k])) == 0;
    if (at != NULL && !other) return true;
  }
  return pl_row_mentions(row->framework, "memory.used") || pl_row_mentions(row->notes, "memory.used");
}

/* MosaicML's tables of 2023: the repository before llm-foundry, and those with 16-bit reductions ("PURE"). */
static bool predates_torch_2_1(const pl_measured_row *row) {
  return pl_row_mentions(row->source, "mosaicml/examples") || pl_row_mentions(row->notes, "mode=PURE");
}

/* FSDP beside tensor groups or pipelines: torch-fsdp offers neither, torchtitan is how PyTorch puts them together. */
static bool is_in_several_dimensions(const pl_measured_row *row, const pl_row_habits *habits) {
  return strcmp(habits->framework, "torch-fsdp") == 0 && (row->tp > 1 || row->pp > 1);
}

/* "Megatron-LM v1.1.5 + DeepSpeed 3D": Megatron's layers in DeepSpeed's engine, which is Megatron-DeepSpeed; with
 * ZeRO-3 DeepSpeed's first, of which Megatron-LM 1 and "2021" are. ZeRO-3 of other years is left as it is. */
static void choose_engine(const pl_measured_row *row, int stage, pl_row_habits *habits) {
  bool is_both = pl_row_mentions(row->framework, "Megatron") && pl_row_mentions(row->framework, "DeepSpeed");
  if (!is_both || strcmp(habits->framework, "megatron-lm-2023") != 0) return;
  bool is_first = pl_row_mentions(row->framework, "v1.") || pl_row_mentions(row->framework, "2021");
  if (stage == 3 && !is_first) return;
  habits->framework = stage == 3 ? "deepspeed-zero3-2021" : "megatron-deepspeed";
  habits->sequence_parallel = false;
}

enum { N_FRAMEWORKS = sizeof frameworks / sizeof frameworks[0] };

/* Words of the table that are in others', too, stand alone. */
static bool names_software(const char *framework, const char *word) {
  static const char *const short_ones[] = {"AutoModel", "NeMo", "alpa", "JAX"};
  for (size_t i = 0; i < sizeof short_ones / sizeof short_ones[0]; i++)
    if (strcmp(word, short_ones[i]) == 0) return has_word(framework, word);
  return pl_row_mentions(framework, word);
}

static size_t find_framework(const pl_measured_row *row) {
  size_t i = 0;
  while (i < N_FRAMEWORKS && !names_software(row->framework, frameworks[i].word))
    i++;
  return i;
}

bool pl_row_framework_is_known(const pl_measured_row *row) {
  return find_framework(row) < N_FRAMEWORKS;
}

pl_row_habits pl_row_habits_of(const pl_measured_row *row) {
  size_t i = find_framework(row);
  pl_row_habits habits = i < N_FRAMEWORKS ? frameworks[i].habits : habits_of_others(row);
  if (is_in_several_dimensions(row, &habits))
    habits = (pl_row_habits){
        .framework = "torchtitan", .sequence_parallel = true, .selects_ops = true, .gathers_context = true, .zero = 3};
  int stage = row->zero_stage >= 0 ? (int)row->zero_stage : pl_row_sharding(row);
  if (strcmp(habits.framework, "deepspeed") == 0 && stage == 3) habits.framework = "deepspeed-zero3";
  choose_engine(row, stage, &habits);
  if (strcmp(habits.framework, "torch-ddp") == 0 && is_old_container(row)) habits.framework = "torch-ddp-2020";
  if (pl_row_mentions(row->framework, "TensorFlow") && pl_row_mentions(row->framework, "XLA"))
    habits.framework = "tensorflow-xla";
  bool old = !has_flash_hardware(row) || pl_row_denies_flash(row) || predates_torch_2(row) || is_old_container(row) ||
             pl_row_attends_eagerly(row) || (pl_row_mentions(row->framework, "Megatron") && predates_flash(row));
  if (old) habits.no_flash = true;
  habits.picks_masked = picks_masked(row);
  habits.no_head = pl_row_mentions(row->notes, "no language model head");
  /* BERT's, DistilBERT's and GPT-2's published configurations have 0.1 throughout, ESM-2's none
   * (facebook/esm2_t30_150M_UR50D@54a2047b349b, config.json). */
  if (pl_row_mentions(row->framework, "Hugging Face")) habits.dropout = !pl_row_mentions(row->model, "ESM");
  if (is_watched(row) || says_watched(row)) habits.memory_figure = PL_MEMORY_DEVICE;
  if (pl_row_mentions(row->notes, "max_memory_allocated")) habits.memory_figure = PL_MEMORY_ALLOCATED;
  if (pl_row_mentions(row->notes, "max_memory_reserved")) habits.memory_figure = PL_MEMORY_RESERVED;
  if (waits_for_launches(row) && strcmp(habits.framework, "megatron-deepspeed") == 0)
    habits.framework = "megatron-deepspeed-bloom";
  if (predates_torch_2_1(row) && strcmp(habits.framework, "fsdp-composer") == 0)
    habits.framework = pl_row_mentions(row->source, "mosaicml/examples") ? "fsdp-composer-2022" : "fsdp-composer-2023";
  /* Its jobs turn dropout off (pretrain_gpt.sh). */
  if (pl_row_mentions(row->source, "sail-sg/VocabularyParallelism")) habits.dropout = false;
  if (old && (strcmp(habits.framework, "megatron-core") == 0 || strcmp(habits.framework, "megatron-lm-2023") == 0)) {
    habits.framework = "megatron-lm-2021";
    habits.sequence_parallel = false;
  }
  return habits;
}
