/* What a launch file says, whatever its grammar: keys with values, in the order in which they are written; of a key
 * that is written twice the last counts. Who reads a setting marks it, so that in the end every one of them is either
 * taken, known to be without effect on time, or reported. */
#ifndef PL_WORKLOADS_SETTINGS_H
#define PL_WORKLOADS_SETTINGS_H

#include "core/base/arena.h"
#include "core/base/status.h"

typedef enum pl_setting_use {
  PL_SETTING_UNKNOWN = 0, /* nobody has asked for it */
  PL_SETTING_TAKEN,
  PL_SETTING_IGNORED, /* without effect on the time of a step */
  PL_SETTING_ASIDE    /* understood and not taken: what is assumed in its place is said */
} pl_setting_use;

typedef struct pl_setting {
  const char *key, *value; /* "tensor_model_parallel_size", "model.optim.lr"; the value as text, "" of a flag alone */
  const char *path;        /* of the file it stands in */
  int32_t line;
  uint8_t use;
} pl_setting;

/* Zeroed but for `arena`: empty. */
typedef struct pl_settings {
  pl_setting *list;
  uint32_t n, room;
  pl_arena *arena;
} pl_settings;

enum { PL_SETTINGS_MAX = 100000 };

/* Strings must outlive the settings. PL_BAD_INPUT: more than PL_SETTINGS_MAX. */
pl_code pl_settings_add(pl_settings *settings, pl_setting setting, pl_error *error);

/* The last of that key, NULL if there is none; it and those that it overrules are marked as taken. `key` may end in
 * '*', which stands for anything: the last that begins so. */
const pl_setting *pl_settings_take(pl_settings *settings, const char *key);
/* Those of that key, which somebody took, are aside. */
void pl_settings_set_aside(pl_settings *settings, const char *key);
/* Not NULL, "" and other words for nothing: null, None, none, ~. */
bool pl_setting_is_given(const pl_setting *setting);
/* Of a flag: given, and neither false, False, no nor 0. */
bool pl_setting_is_true(const pl_setting *setting);

/* PL_BAD_INPUT at the setting: file:line in front of the message. */
pl_code pl_setting_fail(const pl_setting *setting, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* *value stays where there is no such setting. A value that is no whole number of at least `lowest` is an error. */
pl_code pl_settings_integer(pl_settings *settings, const char *key, int64_t lowest, int64_t *value, pl_error *error);
pl_code pl_settings_number(pl_settings *settings, const char *key, double *value, pl_error *error);
void pl_settings_flag(pl_settings *settings, const char *key, bool *value);
/* Index of the value among `words`; -1 where it is not given; another word is an error that lists them. */
pl_code pl_settings_word(pl_settings *settings, const char *key, const char *const *words, int *index, pl_error *error);

/* Marks what nobody has taken and whose key begins or, where the word begins with '*', ends with one of `words`. */
void pl_settings_ignore(pl_settings *settings, const char *const *words);

#endif
