/* Which attention a row ran (see validation/rows/row.h). */
#include <stdio.h>
#include <string.h>

#include "validation/rows/row.h"

bool pl_row_says_flash(const pl_measured_row *row) {
  return (pl_row_mentions(row->framework, "FlashAttention") || pl_row_mentions(row->framework, "flash-attn") ||
          pl_row_mentions(row->framework, "flash attention"));
}

bool pl_row_denies_flash(const pl_measured_row *row) {
  static const char *const words[] = {"no flash", "without flash", NULL};
  return pl_row_says_one_of(row, words);
}

int pl_row_transformers(const pl_measured_row *row) {
  static const char word[] = "transformers";
  int major, minor;
  for (const char *at = row->framework; (at = strcasestr(at, word)) != NULL;) {
    at += strlen(word);
    if (sscanf(at + strspn(at, " =-/v"), "%2d.%3d", &major, &minor) == 2 && major >= 0) return 1000 * major + minor;
  }
  return 0;
}

/* Hugging Face's models wrote out scores, mask, softmax and dropout until each got scaled_dot_product_attention:
 * BERT in transformers 4.41 (huggingface/transformers, pull request 28802), GPT-2 in 4.42 (31172), ESM later than
 * these; Llama in 4.36 of December 2023, as what was published since runs it. */
bool pl_row_attends_eagerly(const pl_measured_row *row) {
  static const struct {
    const char *model;
    int first;
  } models[] = {{"ESM", 4057}, {"GPT-2", 4042}, {"GPT2", 4042}, {"BERT", 4041}};
  static const char *const fused[] = {"sdpa", "scaled_dot_product", NULL};
  if (!pl_row_mentions(row->framework, "Hugging Face") || pl_row_says_flash(row) || pl_row_says_one_of(row, fused))
    return false;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (pl_row_mentions(row->model, models[i].model) || pl_row_mentions(row->framework, models[i].model))
      return pl_row_transformers(row) < models[i].first;
  return false;
}

/* Transformer Engine took FlashAttention's first generation until 0.11, whose pull request 329 brought the second, and
 * cuDNN's kernel on Hopper from 1.2 on (its release notes). The version stands behind its name in `framework`. */
static bool kernel_of_engine(const pl_measured_row *row, int *kernel) {
  const char *at = strcasestr(row->framework, "Transformer Engine ");
  int major, minor;
  if (at == NULL || sscanf(at + strlen("Transformer Engine "), "%d.%d", &major, &minor) != 2) return false;
  bool is_first = major == 0 && minor < 11, is_second = major == 0 || (major == 1 && minor < 2);
  *kernel = is_first ? PL_ATTENTION_FLASH1 : is_second ? PL_ATTENTION_FLASH2 : PL_ATTENTION_CUDNN;
  return true;
}

/* NVIDIA's launcher of NeMo 24.01 to 24.07 turns cuDNN's attention off ("until we've tested it more": NVTE_FUSED_ATTN:
 * 0 in launcher_scripts/conf/config.yaml of NVIDIA/NeMo-Framework-Launcher at these tags, from 562dcb4511a2 to
 * 04b8d0980989), which leaves FlashAttention 2. */
static bool turns_cudnn_off(const pl_measured_row *row) {
  const char *at = strcasestr(row->framework, "NeMo ");
  int year, month;
  if (at == NULL || sscanf(at + strlen("NeMo "), "%2d.%2d", &year, &month) != 2) return false;
  return year == 24 && month >= 1 && month <= 7;
}

static bool is_hopper(const pl_measured_row *row) {
  return pl_row_mentions(row->gpu, "H100") || pl_row_mentions(row->gpu, "H200") || pl_row_mentions(row->gpu, "H800");
}

bool pl_row_is_blackwell(const pl_measured_row *row) {
  return pl_row_mentions(row->gpu, "B200") || pl_row_mentions(row->gpu, "B300");
}

/* Multi-head latent attention, whose keys and values have heads of two sizes (192 and 128 in DeepSeek-V3). */
static bool is_latent(const pl_measured_row *row) {
  static const char *const generations[] = {"V2", "V3", "R1"};
  bool is_deepseek = false;
  for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
    is_deepseek =
        is_deepseek || (pl_row_mentions(row->model, "DeepSeek") && pl_row_mentions(row->model, generations[i]));
  return is_deepseek || pl_row_mentions(row->model, "Kimi");
}

/* The year and month of NVIDIA's container, NeMo's or that of which `notes` speak; 0: not said. */
static int container_of(const pl_measured_row *row) {
  const char *at = strcasestr(row->notes, "container ");
  int year, month;
  if (at == NULL || sscanf(at + strlen("container "), "%2d.%2d", &year, &month) != 2) return 0;
  return 100 * year + month;
}

/* On Blackwell Transformer Engine has no fused attention for heads of more than 128 until 2.5 of June 2025, and then
 * for 192 and 128 by cuDNN 9.11 (transformer_engine/common/fused_attn/fused_attn.cpp, "special conditions for
 * blackwell", at v2.2 to v2.4 and at v2.5), and FlashAttention takes no heads of two sizes
 * (dot_product_attention/utils.py, "Filter: Head dimension"): what is left is its unfused attention. */
static bool lacks_latent_kernel(const pl_measured_row *row) {
  enum { FIRST = 2507 };
  if (!pl_row_is_blackwell(row) || !is_latent(row)) return false;
  int container = container_of(row);
  return container > 0 && container < FIRST;
}

/* A row that says FlashAttention has it, on GPUs that can, also where the profile's software did not yet. The
 * memory-efficient kernel is counted as FlashAttention's first generation, whose algorithm it has. */
void pl_row_choose_attention(const pl_measured_row *row, pl_framework *framework) {
  static const struct {
    const char *word;
    pl_attention_kernel kernel;
  } backends[] = {{"CUDNN_ATTENTION", PL_ATTENTION_CUDNN},
                  {"FLASH_ATTENTION", PL_ATTENTION_FLASH2},
                  {"EFFICIENT_ATTENTION", PL_ATTENTION_FLASH1}};
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
    if (pl_row_mentions(row->framework, backends[i].word)) {
      framework->kernels.flash = true;
      framework->kernels.attention_kernel = (int)backends[i].kernel;
      return;
    }
  int kernel;
  if (is_hopper(row) && kernel_of_engine(row, &kernel)) {
    framework->kernels.attention_kernel = kernel;
    return;
  }
  if (turns_cudnn_off(row)) framework->kernels.attention_kernel = (int)PL_ATTENTION_FLASH2;
  if (strcmp(framework->name, "torchtitan") == 0 && pl_row_is_blackwell(row))
    framework->kernels.attention_kernel = (int)PL_ATTENTION_CUDNN; /* torchtitan/models/attention.py since 2025 */
  if (lacks_latent_kernel(row)) framework->kernels.flash = false;
  if (framework->kernels.flash || !pl_row_says_flash(row) || pl_row_denies_flash(row)) return;
  framework->kernels.flash = true;
  framework->kernels.attention_kernel = (int)PL_ATTENTION_FLASH2;
}
