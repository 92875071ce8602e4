/* What a row says it ran and nothing here simulates (see validation/rows/row.h): memory of the host, optimizers of
 * other arithmetic, gradients and weights sent in fewer bits, experts of other ways. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

/* ---- names, and their denials ---- */

static bool is_in_word(char c) {
  return isalnum((unsigned char)c) != 0;
}

/* Whether the text at `at`, behind blanks and what assigns, begins with the word and goes on with another. */
static bool has_behind(const char *at, const char *word) {
  at += strspn(at, " =:\"'");
  size_t length = strlen(word);
  return strncasecmp(at, word, length) == 0 && !is_in_word(at[length]) &&
         (at[length] != '.' || !is_in_word(at[length + 1]));
}

/* "offload=0", "cpu_offload: false", "offload_optimizer none", "capacity_factor=None". */
static bool is_off(const char *behind) {
  static const char *const words[] = {"0", "off", "false", "none", "no", "disabled", "null"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (has_behind(behind, words[i])) return true;
  return false;
}

/* The word that ends in front of `at`, in its own clause; "" where there is none. */
static const char *word_before(const char *text, const char *at, char word[16]) {
  enum { MOST = 15 };
  while (at > text && strchr(" -_'\"", at[-1]) != NULL)
    at--;
  const char *end = at;
  while (at > text && (is_in_word(at[-1]) || at[-1] == '/'))
    at--;
  size_t length = end - at < MOST ? (size_t)(end - at) : MOST;
  memcpy(word, at, length);
  word[length] = '\0';
  return at;
}

/* "no offload", "no CPU offload", "without activation offloading", "not Muon", "Adam instead of Muon". */
static bool is_denied_before(const char *text, const char *at) {
  static const char *const words[] = {"no", "not", "without", "w/o", "non"};
  char word[16], of[16] = "";
  for (int back = 0; back < 2; back++) {
    at = word_before(text, at, word);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      if (strcasecmp(word, words[i]) == 0) return true;
    if (back == 1 && ((strcasecmp(word, "instead") == 0 && strcasecmp(of, "of") == 0) ||
                      (strcasecmp(word, "rather") == 0 && strcasecmp(of, "than") == 0)))
      return true;
    memcpy(of, word, sizeof of);
  }
  return false;
}

/* `name` somewhere in the text, in any case, and not denied; NULL: nowhere. `alone`: as a word of its own ("Lion", not
 * "million"). */
static const char *find_said(const char *text, const char *name, bool alone) {
  size_t length = strlen(name);
  for (const char *at = text; (at = strcasestr(at, name)) != NULL; at++) {
    bool begins = at == text || !is_in_word(at[-1]), ends = !is_in_word(at[length]);
    const char *behind = at + length;
    while (name[length - 1] != '=' && (is_in_word(*behind) || *behind == '_'))
      behind++;
    if ((!alone || (begins && ends)) && !is_denied_before(text, at) && !is_off(behind)) return at;
  }
  return NULL;
}

static bool says(const pl_measured_row *row, const char *name, bool alone) {
  return find_said(row->framework, name, alone) != NULL || find_said(row->notes, name, alone) != NULL;
}

static const char *find_name(const pl_measured_row *row, const char *const *names) {
  for (; *names != NULL; names++)
    if (says(row, *names, true)) return *names;
  return NULL;
}

static bool says_one_of(const pl_measured_row *row, const char *const *words) {
  for (; *words != NULL; words++)
    if (says(row, *words, false)) return true;
  return false;
}

/* ---- what is absent ---- */

static pl_code check_offload(const pl_measured_row *row, pl_error *error) {
  const char *const columns[] = {"framework", "fsdp", "recompute", "notes"};
  const char *const texts[] = {row->framework, row->fsdp, row->recompute, row->notes};
  static const char *const words[] = {"offload", "ZeRO-Infinity", "checkpoint in cpu", "checkpoint-in-cpu",
                                      "cpu_checkpointing"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
      if (find_said(texts[i], words[j], false) != NULL)
        return pl_fail(error, PL_UNSUPPORTED,
                       "%s: '%s': what lies in the memory of the host is simulated with `simulate --strategy ... "
                       "offload`, and no row says how much of what that is",
                       columns[i], words[j]);
  return PL_OK;
}

/* Machines that are called as an optimizer is: HPE's Apollo 6500, Argonne's Sophia, Grid'5000's Sophia Antipolis. */
static bool is_machine(const char *text, const char *at, const char *name) {
  static const char *const owners[] = {"HPE", "HP", "ALCF", "Argonne"};
  static const char *const kinds[] = {"6500", "cluster", "node", "nodes", "server", "system", "Antipolis"};
  char word[16];
  word_before(text, at, word);
  for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
    if (strcasecmp(word, owners[i]) == 0) return true;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (has_behind(at + strlen(name), kinds[i])) return true;
  return false;
}

static bool steps_by(const char *text, const char *name) {
  const char *at = find_said(text, name, true);
  return at != NULL && !is_machine(text, at, name);
}

/* Adam's arithmetic is counted, LAMB's and LARS' norms as its, SGD's where it is named. */
static pl_code check_optimizer(const pl_measured_row *row, pl_error *error) {
  static const char *const others[] = {"Muon",   "Shampoo", "SOAP",    "Lion",      "Sophia", "Adafactor",
                                       "GaLore", "LOMO",    "AdaLOMO", "Adam-mini", "Apollo", NULL};
  for (const char *const *name = others; *name != NULL; name++)
    if (steps_by(row->framework, *name) || steps_by(row->notes, *name))
      return pl_fail(error, PL_UNSUPPORTED, "optimizer: '%s' is not simulated; Adam, 8-bit Adam and SGD are", *name);
  return PL_OK;
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
static pl_code check_capacity(const pl_measured_row *row, int64_t n_experts, pl_error *error) {
  static const char *const words[] = {"capacity=", "capacity factor", "capacity_factor", NULL};
  if (n_experts <= 1 || !says_one_of(row, words)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "a capacity of experts: their batches are what routing sends, uncut");
}

/* Hugging Face's models of before transformers 5 go through their experts in a loop of Python, some kernels each, and
 * choose grouped products only where told (modelscope/ms-swift@3602360a5623, Megatron-SWIFT/Quick-start.md: 91.2 s a
 * step in place of 9.6). */
static pl_code check_loop(const pl_measured_row *row, int64_t n_experts, pl_error *error) {
  static const char *const loops[] = {"experts one after another", "experts_impl=eager", NULL};
  static const char *const grouped[] = {"grouped_mm",   "grouped mm",       "grouped_gemm", "grouped gemm",
                                        "grouped-gemm", "grouped products", "grouped MLP",  NULL};
  bool is_old = pl_row_mentions(row->framework, "Hugging Face") && pl_row_transformers(row) < 5000;
  if (n_experts <= 1 || (!is_old && !says_one_of(row, loops)) || says_one_of(row, grouped)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "experts one after another, as Hugging Face's: they are grouped products here ('grouped_mm' says so)");
}

pl_code pl_row_check_experts(const pl_measured_row *row, int64_t n_experts, pl_error *error) {
  PL_TRY(check_capacity(row, n_experts, error));
  return check_loop(row, n_experts, error);
}

pl_code pl_row_check_absent(const pl_measured_row *row, pl_error *error) {
  PL_TRY(check_offload(row, error));
  PL_TRY(check_optimizer(row, error));
  PL_TRY(check_compression(row, error));
  PL_TRY(check_adapters(row, error));
  return pl_row_check_experts(row, row->n_experts, error);
}
