/* What a row says it ran and nothing here simulates (see validation/rows/row.h): memory of the host, optimizers of
 * other arithmetic, gradients and weights sent in fewer bits, experts of other ways. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

/* `name` as a word of its own, in any case: "Lion", not "million". */
static bool has_name(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = text; (at = strcasestr(at, name)) != NULL; at++) {
    bool begins = at == text || !isalnum((unsigned char)at[-1]), ends = !isalnum((unsigned char)at[length]);
    if (begins && ends) return true;
  }
  return false;
}

static const char *find_name(const pl_measured_row *row, const char *const *names) {
  for (; *names != NULL; names++)
    if (has_name(row->framework, *names) || has_name(row->notes, *names)) return *names;
  return NULL;
}

/* "no offload", "without offloading", "offload off": nothing is sent to the host. */
static bool denies_offload(const char *text) {
  static const char *const words[] = {"no offload",   "without offload",      "not offload",  "offload off",
                                      "offload none", "offload: none",        "offload=none", "offload=false",
                                      "offload=0",    "offload_activations=0"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (pl_row_mentions(text, words[i])) return true;
  return false;
}

static pl_code check_offload(const pl_measured_row *row, pl_error *error) {
  const char *const columns[] = {"framework", "fsdp", "recompute", "notes"};
  const char *const texts[] = {row->framework, row->fsdp, row->recompute, row->notes};
  static const char *const words[] = {"offload", "ZeRO-Infinity", "checkpoint in cpu", "checkpoint-in-cpu",
                                      "cpu_checkpointing"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
      if (pl_row_mentions(texts[i], words[j]) && !denies_offload(texts[i]))
        return pl_fail(error, PL_UNSUPPORTED,
                       "%s: '%s': what lies in the memory of the host is simulated with `simulate --strategy ... "
                       "offload`, and no row says how much of what that is",
                       columns[i], words[j]);
  return PL_OK;
}

/* Adam's arithmetic is counted, LAMB's and LARS' norms as its, SGD's where it is named. */
static pl_code check_optimizer(const pl_measured_row *row, pl_error *error) {
  static const char *const others[] = {"Muon",   "Shampoo", "SOAP",    "Lion",      "Sophia", "Adafactor",
                                       "GaLore", "LOMO",    "AdaLOMO", "Adam-mini", "Apollo", NULL};
  const char *name = find_name(row, others);
  if (name == NULL) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "optimizer: '%s' is not simulated; Adam, 8-bit Adam and SGD are", name);
}

/* Quantized or approximated exchanges. */
static pl_code check_compression(const pl_measured_row *row, pl_error *error) {
  static const char *const others[] = {
      "ZeRO++", "zero_quantized_weights", "zero_quantized_gradients", "PowerSGD", "1-bit Adam", "1-bit LAMB", NULL};
  const char *name = find_name(row, others);
  if (name == NULL) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "'%s': exchanges in fewer bits than the values have are not simulated", name);
}

/* Frozen weights beside small ones that are trained. */
static pl_code check_adapters(const pl_measured_row *row, pl_error *error) {
  static const char *const others[] = {"LoRA", "QLoRA", "DoRA", NULL};
  const char *name = find_name(row, others);
  if (name == NULL) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "'%s': all weights are trained here", name);
}

/* Experts' batches filled up to a capacity, or cut. */
static pl_code check_capacity(const pl_measured_row *row, pl_error *error) {
  static const char *const words[] = {"capacity=", "capacity factor", "capacity_factor", NULL};
  if (row->n_experts <= 1 || !pl_row_says_one_of(row, words)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "a capacity of experts: their batches are what routing sends, uncut");
}

/* Hugging Face's models of before transformers 5 go through their experts in a loop of Python, some kernels each, and
 * choose grouped products only where told (modelscope/ms-swift@3602360a5623, Megatron-SWIFT/Quick-start.md: 91.2 s a
 * step in place of 9.6). */
static pl_code check_experts(const pl_measured_row *row, pl_error *error) {
  static const char *const loops[] = {"experts one after another", "experts_impl=eager", NULL};
  static const char *const grouped[] = {"grouped", NULL};
  bool is_loop = pl_row_mentions(row->framework, "Hugging Face") || pl_row_says_one_of(row, loops);
  if (row->n_experts <= 1 || !is_loop || pl_row_says_one_of(row, grouped)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "experts one after another, as Hugging Face's: they are grouped products here ('grouped_mm' says so)");
}

pl_code pl_row_check_absent(const pl_measured_row *row, pl_error *error) {
  PL_TRY(check_offload(row, error));
  PL_TRY(check_optimizer(row, error));
  PL_TRY(check_compression(row, error));
  PL_TRY(check_adapters(row, error));
  PL_TRY(check_capacity(row, error));
  return check_experts(row, error);
}
