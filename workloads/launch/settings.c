/* See workloads/launch/settings.h. */
#include "workloads/launch/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"

pl_code pl_settings_add(pl_settings *settings, pl_setting setting, pl_error *error) {
  if (settings->n == PL_SETTINGS_MAX) return pl_setting_fail(&setting, error, "more than %d settings", PL_SETTINGS_MAX);
  pl_setting *list = pl_arena_grown(settings->arena, settings->list, settings->n, 1, sizeof *list, &settings->room);
  if (list == NULL) return pl_fail_memory(error, "the settings of a launch file");
  settings->list = list;
  settings->list[settings->n++] = setting;
  return PL_OK;
}

static bool is_meant(const char *pattern, const char *key) {
  size_t length = strlen(pattern);
  if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, key, length - 1) == 0;
  return strcmp(pattern, key) == 0;
}

const pl_setting *pl_settings_take(pl_settings *settings, const char *key) {
  const pl_setting *found = NULL;
  for (uint32_t i = settings->n; i-- > 0;) {
    pl_setting *setting = &settings->list[i];
    if (!is_meant(key, setting->key)) continue;
    setting->use = PL_SETTING_TAKEN;
    if (found == NULL) found = setting;
  }
  return found;
}

void pl_settings_set_aside(pl_settings *settings, const char *key) {
  for (uint32_t i = 0; i < settings->n; i++)
    if (is_meant(key, settings->list[i].key)) settings->list[i].use = PL_SETTING_ASIDE;
}

bool pl_setting_is_given(const pl_setting *setting) {
  static const char *const nothing[] = {"", "null", "None", "none", "~", NULL};
  return setting != NULL && pl_words_find(nothing, setting->value) < 0;
}

bool pl_setting_is_true(const pl_setting *setting) {
  static const char *const no[] = {"false", "False", "FALSE", "no", "No", "0", "null", "None", "~", NULL};
  return setting != NULL && pl_words_find(no, setting->value) < 0;
}

pl_code pl_setting_fail(const pl_setting *setting, pl_error *error, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pl_fail(error, PL_BAD_INPUT, "%s:%d: %s", setting->path, setting->line, message);
}

pl_code pl_settings_integer(pl_settings *settings, const char *key, int64_t lowest, int64_t *value, pl_error *error) {
  const pl_setting *setting = pl_settings_take(settings, key);
  if (setting != NULL && setting->value[0] == '\0')
    return pl_setting_fail(setting, error, "'%s' has no value: a whole number of at least %" PRId64 " is needed",
                           setting->key, lowest);
  if (!pl_setting_is_given(setting)) return PL_OK;
  char *end = NULL;
  errno = 0;
  long long read = strtoll(setting->value, &end, 10);
  if (strcmp(end, ".0") == 0) end += 2;
  if (errno != 0 || end == setting->value || *end != '\0' || read < lowest)
    return pl_setting_fail(setting, error, "'%s' is '%.64s': a whole number of at least %" PRId64 " is needed",
                           setting->key, setting->value, lowest);
  *value = read;
  return PL_OK;
}

pl_code pl_settings_number(pl_settings *settings, const char *key, double *value, pl_error *error) {
  const pl_setting *setting = pl_settings_take(settings, key);
  if (!pl_setting_is_given(setting)) return PL_OK;
  char *end = NULL;
  double read = strtod(setting->value, &end);
  if (end == setting->value || *end != '\0' || !(read >= 0) || read > 1e300)
    return pl_setting_fail(setting, error, "'%s' is '%.64s': a number of at least 0 is needed", setting->key,
                           setting->value);
  *value = read;
  return PL_OK;
}

void pl_settings_flag(pl_settings *settings, const char *key, bool *value) {
  const pl_setting *setting = pl_settings_take(settings, key);
  if (setting != NULL) *value = pl_setting_is_true(setting);
}

pl_code pl_settings_word(pl_settings *settings, const char *key, const char *const *words, int *index,
                         pl_error *error) {
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  const pl_setting *setting = pl_settings_take(settings, key);
  *index = -1;
  if (!pl_setting_is_given(setting)) return PL_OK;
  *index = pl_words_find(words, setting->value);
  if (*index >= 0) return PL_OK;
  return pl_setting_fail(setting, error, "'%s' is '%.64s': known are %s%s", setting->key, setting->value,
                         pl_words_list(words, list, sizeof list), pl_words_hint(words, setting->value, hint));
}

static bool is_among(const char *const *words, const char *key) {
  size_t length = strlen(key);
  for (; *words != NULL; words++) {
    const char *word = *words;
    size_t end = strlen(word + 1);
    if (word[0] == '*' ? length >= end && strcmp(key + length - end, word + 1) == 0 : strncmp(key, word, end + 1) == 0)
      return true;
  }
  return false;
}

void pl_settings_ignore(pl_settings *settings, const char *const *words) {
  for (uint32_t i = 0; i < settings->n; i++)
    if (settings->list[i].use == PL_SETTING_UNKNOWN && is_among(words, settings->list[i].key))
      settings->list[i].use = PL_SETTING_IGNORED;
}
