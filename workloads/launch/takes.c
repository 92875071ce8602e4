/* See workloads/launch/readers.h: what several forms of launch files share. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "workloads/import/model_file.h"
#include "workloads/launch/readers.h"

pl_code pl_launch_take_numbers(pl_launch *launch, const pl_launch_number *numbers, size_t n, pl_error *error) {
  for (size_t i = 0; i < n; i++)
    PL_TRY(pl_settings_integer(&launch->settings, numbers[i].key, numbers[i].lowest, numbers[i].value, error));
  return PL_OK;
}

pl_code pl_launch_take_degree(pl_launch *launch, const char *key, int32_t *value, pl_error *error) {
  int64_t read = *value;
  PL_TRY(pl_settings_integer(&launch->settings, key, 1, &read, error));
  if (read > INT32_MAX)
    return pl_setting_fail(pl_settings_take(&launch->settings, key), error,
                           "'%s' is %" PRId64 ": there is no such degree", key, read);
  *value = (int32_t)read;
  return PL_OK;
}

/* Letters and digits alone, in lower case, behind the last slash, without what only names a variant. */
static void plain_name(const char *name, char *plain, size_t size) {
  static const char *const variants[] = {".yaml", ".yml", "-hf", "-base", "-v0.1", "-instruct", "meta-"};
  char text[128];
  const char *slash = strrchr(name, '/');
  snprintf(text, sizeof text, "%s", slash != NULL ? slash + 1 : name);
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
    for (char *at; (at = strcasestr(text, variants[i])) != NULL;)
      memmove(at, at + strlen(variants[i]), strlen(at + strlen(variants[i])) + 1);
  size_t n = 0;
  for (const char *c = text; *c != '\0' && n + 1 < size; c++)
    if (isalnum((unsigned char)*c)) plain[n++] = (char)tolower((unsigned char)*c);
  plain[n] = '\0';
}

const char *pl_launch_known_model(const char *name, pl_arena *arena) {
  char wanted[128], candidate[128];
  plain_name(name, wanted, sizeof wanted);
  const char *const *names = wanted[0] != '\0' ? pl_model_names(arena) : NULL;
  for (; names != NULL && *names != NULL; names++) {
    plain_name(*names, candidate, sizeof candidate);
    if (strcmp(candidate, wanted) == 0) return *names;
  }
  return NULL;
}

pl_code pl_launch_take_vocab(pl_launch *launch, const pl_setting *tokenizer, pl_error *error) {
  static const struct {
    const char *part;
    int64_t vocab;
  } tokenizers[] = {{"Llama3", 128256},      {"Llama-3", 128256},    {"llama3", 128256},  {"Llama2", 32000},
                    {"Llama-2", 32000},      {"Mixtral", 32000},     {"Mistral", 32000},  {"DeepSeekV3", 129280},
                    {"DeepSeek-V3", 129280}, {"DeepSeekV2", 102400}, {"Qwen3", 151936},   {"Qwen2", 152064},
                    {"GPT2BPE", 50257},      {"gpt2", 50257},        {"BertWord", 30522}, {"GPT2", 50257}};
  if (launch->model.vocab > 0) return PL_OK;
  for (size_t i = 0; pl_setting_is_given(tokenizer) && i < sizeof tokenizers / sizeof tokenizers[0]; i++)
    if (strstr(tokenizer->value, tokenizers[i].part) != NULL) {
      launch->model.vocab = tokenizers[i].vocab;
      return pl_launch_assume(launch, error, "a vocabulary of %" PRId64 ", of the tokenizer %.64s", launch->model.vocab,
                              tokenizer->value);
    }
  launch->model.vocab = launch->model.gated ? 32000 : 50257;
  return pl_launch_assume(launch, error, "a vocabulary of %" PRId64 ": the file leaves it to a tokenizer",
                          launch->model.vocab);
}
