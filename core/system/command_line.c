/* See core/system/command_line.h.
 *
 * argp and getopt say what is wrong in two or three lines, wrapped at the width of the terminal, and print them
 * themselves. Their text cannot be had any other way: ARGP_NO_ERRS leaves nothing but EINVAL. So the options are walked
 * here once more, over the same tables, before argp runs; argp then finds nothing to complain about.
 */
#include "core/system/command_line.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "core/system/command.h"

enum { MOST_OPTIONS = 128 };

typedef struct known_option {
  const char *name, *value; /* value: what it is called; NULL = takes none */
  int key;
} known_option;

typedef struct option_list {
  known_option options[MOST_OPTIONS];
  uint32_t n;
} option_list;

static void add(option_list *list, const char *name, int key, const char *value) {
  PL_ASSERT(list->n < MOST_OPTIONS);
  list->options[list->n++] = (known_option){.name = name, .value = value, .key = key};
}

static void collect(option_list *list, const struct argp *argp) {
  for (const struct argp_option *o = argp->options; o != NULL && o->name != NULL; o++)
    add(list, o->name, o->key, o->arg);
  for (const struct argp_child *child = argp->children; child != NULL && child->argp != NULL; child++)
    collect(list, child->argp);
}

/* The word that asks argp for help, if the option does. */
static const char *help_word(const known_option *o) {
  return strcmp(o->name, "help") == 0 ? "--help" : strcmp(o->name, "usage") == 0 ? "--usage" : NULL;
}

/* ---- finding ---- */

static const known_option *find_short(const option_list *list, char letter) {
  if (letter == 'h') letter = '?';
  for (uint32_t i = 0; i < list->n; i++)
    if (list->options[i].key == letter) return &list->options[i];
  return NULL;
}

/* The option of that name, else the first one that begins so, with the number of those. */
static const known_option *find_long(const option_list *list, const char *name, size_t length, uint32_t *n_found) {
  const known_option *found = NULL;
  *n_found = 0;
  for (uint32_t i = 0; i < list->n; i++) {
    const known_option *o = &list->options[i];
    if (strncmp(o->name, name, length) != 0) continue;
    if (o->name[length] == '\0') {
      *n_found = 1;
      return o;
    }
    if ((*n_found)++ == 0) found = o;
  }
  return found;
}

/* The name that a word was probably meant to be, or NULL. */
static const char *nearest(const option_list *list, const char *word, size_t length) {
  const char *names[MOST_OPTIONS + 1];
  char name[64];
  uint32_t n = 0;
  for (; n < list->n; n++)
    names[n] = list->options[n].name;
  names[n] = NULL;
  snprintf(name, sizeof name, "%.*s", (int)length, word);
  int found = pl_words_nearest(names, name);
  return found >= 0 ? names[found] : NULL;
}

/* ---- saying ---- */

static pl_code refuse_unknown(const option_list *list, const char *command, const char *word, size_t length,
                              pl_error *error) {
  const char *near = length > 2 ? nearest(list, word + 2, length - 2) : NULL;
  if (near != NULL)
    return pl_fail(error, PL_BAD_INPUT, "'%.*s' is not an option; did you mean --%s? 'paceline %s --help' lists all",
                   (int)length, word, near, command);
  return pl_fail(error, PL_BAD_INPUT, "'%.*s' is not an option; 'paceline %s --help' lists them", (int)length, word,
                 command);
}

static pl_code refuse_ambiguous(const option_list *list, const char *word, size_t length, pl_error *error) {
  char text[PL_WORDS_BYTES], option[64];
  pl_word_list names = pl_word_list_begin(text, sizeof text);
  for (uint32_t i = 0; i < list->n; i++) {
    if (strncmp(list->options[i].name, word + 2, length - 2) != 0) continue;
    snprintf(option, sizeof option, "--%s", list->options[i].name);
    pl_word_list_add(&names, option);
  }
  return pl_fail(error, PL_BAD_INPUT, "'%.*s' is short for several options: %s; write more of it", (int)length, word,
                 pl_word_list_end(&names));
}

static pl_code refuse_no_value(const known_option *o, const char *word, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "'%s' needs a value: --%s %s", word, o->name, o->value);
}

/* ---- the walk ---- */

typedef struct walk {
  const option_list *list;
  const char *command;
  int argc, next; /* next: the word behind the option that is looked at */
  char *const *argv;
  const char **helps;
  pl_error *error;
} walk;

static pl_code check_long(walk *w, const char *word) {
  size_t length = strcspn(word, "=");
  uint32_t n_found;
  const known_option *o = find_long(w->list, word + 2, length - 2, &n_found);
  if (o == NULL) return refuse_unknown(w->list, w->command, word, length, w->error);
  if (n_found > 1) return refuse_ambiguous(w->list, word, length, w->error);
  if (o->value == NULL && word[length] == '=')
    return pl_fail(w->error, PL_BAD_INPUT, "'%s': --%s takes no value", word, o->name);
  if (o->value != NULL && word[length] == '\0' && w->next++ >= w->argc) return refuse_no_value(o, word, w->error);
  *w->helps = help_word(o);
  return PL_OK;
}

/* Letters in one word; the value of the first that takes one is the rest of the word, or else the next word. */
static pl_code check_short(walk *w, const char *word) {
  for (const char *letter = word + 1; *letter != '\0' && *w->helps == NULL; letter++) {
    const known_option *o = find_short(w->list, *letter);
    const char named[] = {'-', *letter, '\0'};
    if (o == NULL) return refuse_unknown(w->list, w->command, named, 2, w->error);
    *w->helps = help_word(o);
    if (o->value == NULL) continue;
    if (letter[1] == '\0' && w->next++ >= w->argc) return refuse_no_value(o, named, w->error);
    return PL_OK;
  }
  return PL_OK;
}

/* *helps: --help or --usage if one of them stands in front of all mistakes, else NULL. */
static pl_code check(const char *command, const struct argp *argp, int argc, char *const *argv, const char **helps,
                     pl_error *error) {
  option_list list;
  list.n = 0;
  collect(&list, argp);
  add(&list, "help", '?', NULL);
  add(&list, "usage", 0, NULL);
  *helps = NULL;
  walk w = {.list = &list, .command = command, .argc = argc, .next = 1, .argv = argv, .helps = helps, .error = error};
  while (w.next < argc && *helps == NULL) {
    const char *word = argv[w.next++];
    if (strcmp(word, "--") == 0) break;
    if (word[0] != '-' || word[1] == '\0') continue;
    PL_TRY(word[1] == '-' ? check_long(&w, word) : check_short(&w, word));
  }
  return PL_OK;
}

/* Not left to argp, which ends the process without looking whether what it printed could be written. */
static void help(const char *command, const struct argp *argp, char *program, const char *word, bool silent,
                 void *input) {
  char asked[16];
  snprintf(asked, sizeof asked, "%s", word);
  char *argv[] = {program, asked, NULL};
  if (silent) exit(0);
  /* Room for all of it, so that a failure to write is the last thing that happened, with its reason. */
  char room[1 << 16];
  setvbuf(stdout, room, _IOFBF, sizeof room);
  argp_parse(argp, 2, argv, ARGP_NO_EXIT, NULL, input);
  exit(pl_command_finish(command, 0));
}

/* A line per option, of fields between tabs: name, letter, value, what it is for. */
static void print_options(const struct argp *argp) {
  for (const struct argp_option *o = argp->options; o != NULL && o->name != NULL; o++) {
    bool has_letter = o->key > ' ' && o->key < 0x7f;
    printf("%s\t%.*s\t%s\t%s\n", o->name, (int)has_letter, (char[]){(char)o->key, '\0'}, o->arg != NULL ? o->arg : "",
           o->doc);
  }
  for (const struct argp_child *child = argp->children; child != NULL && child->argp != NULL; child++)
    print_options(child->argp);
}

pl_code pl_command_line_parse(const char *command, const struct argp *argp, int argc, char **argv, bool silent,
                              void *input, pl_error *error) {
  const char *helps;
  if (argc == 2 && strcmp(argv[1], "--print-options") == 0) {
    if (!silent) print_options(argp);
    exit(pl_command_finish(command, 0));
  }
  PL_TRY(check(command, argp, argc, argv, &helps, error));
  if (helps != NULL) help(command, argp, argv[0], helps, silent, input);
  argp_err_exit_status = 2;
  if (argp_parse(argp, argc, argv, silent ? ARGP_NO_ERRS : 0, NULL, input) == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "bad arguments; 'paceline %s --help' says which there are", command);
}

void pl_command_line_refuse_argument(const char *argument, pl_error *error) {
  pl_fail(error, PL_BAD_INPUT, "'%s' is one argument too many", argument);
}
