/* What frameworks do where a row does not say (see validation/row.h). First match wins. */
#include <string.h>
#include <strings.h>

#include "validation/row.h"

bool pl_row_mentions(const char *text, const char *word) {
  return strcasestr(text, word) != NULL;
}

/* FlashAttention needs an A100 or later. */
static bool has_flash_hardware(const pl_measured_row *row) {
  static const char *const older[] = {"V100", "P100", "T4", "TITAN", "not stated"};
  for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
    if (pl_row_mentions(row->gpu, older[i])) return false;
  return true;
}

/* Megatron-LM recomputed whole layers until sequence parallelism and selective recomputation came (2022), and
 * FlashAttention after that; selective recomputation is that of an attention that is not fused. */
static bool predates_flash(const pl_measured_row *row) {
  return strncasecmp(row->recompute, "full", 4) == 0 || strncasecmp(row->recompute, "selective", 9) == 0;
}

typedef struct framework {
  const char *word;
  pl_row_habits habits;
} framework;

static const framework frameworks[] = {
    {"MegaScale", {"megascale", .flash = true, .overlap = true, .sequence_parallel = true, .zero = 1}},
    {"ZeRO-3", {"deepspeed", .overlap = true, .dropout = true}},
    {"Megatron-DeepSpeed", {"megatron-deepspeed", .dropout = true}},
    {"Megatron-Bridge", {"nemo", .flash = true, .overlap = true, .sequence_parallel = true, .zero = 1}},
    {"Megatron-Core", {"megatron-core", .flash = true, .overlap = true, .zero = 1}},
    {"NeMo", {"nemo", .flash = true, .overlap = true, .sequence_parallel = true, .zero = 1}},
    {"Megatron", {"megatron-lm", .flash = true, .dropout = true}},
    {"LiBai", {"libai", .dropout = true}},
    {"OneFlow", {"oneflow", .dropout = true}},
    {"alpa", {"alpa", .dropout = true}},
    {"nanotron", {"nanotron", .flash = true, .overlap = true}},
    {"FSDP", {"fsdp", .flash = true, .overlap = true, .zero = 3}},
    {"Composer", {"composer", .flash = true, .overlap = true, .zero = 3}},
    {"torchtitan", {"torchtitan", .flash = true, .overlap = true, .zero = 3}},
    {"DeepSpeed", {"deepspeed", .flash = true, .overlap = true, .dropout = true}},
    {"", {"pytorch", .flash = true, .overlap = true}},
};

pl_row_habits pl_row_habits_of(const pl_measured_row *row) {
  size_t i = 0;
  while (!pl_row_mentions(row->framework, frameworks[i].word))
    i++;
  pl_row_habits habits = frameworks[i].habits;
  bool megatron = strcmp(habits.name, "megatron-lm") == 0;
  if (!has_flash_hardware(row) || (megatron && predates_flash(row))) habits.flash = false;
  habits.split_sends = pl_row_mentions(row->framework, "Megatron") || pl_row_mentions(row->framework, "NeMo");
  return habits;
}
