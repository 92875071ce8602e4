/* See search/run/run_options.h. */
#include "search/run/run_options.h"

#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "search/parallel/progress_line.h"
#include "search/parallel/ranks.h"

enum { KEY_FORCE = 'f', KEY_OUTPUT = 'o', KEY_THREADS = 0x420, KEY_RESUME, KEY_PROGRESS, KEY_QUIET, KEY_JSON };

static const struct argp_option option_table[] = {
    {"output", KEY_OUTPUT, "FILE", 0, "results file (HDF5) to create", 3},
    {"force", KEY_FORCE, NULL, 0, "replace the results file if it exists", 3},
    {"resume", KEY_RESUME, NULL, 0, "compute what the results file still lacks; without a file, start one", 3},
    {"threads", KEY_THREADS, "N", 0, "threads per rank (default: the cores of the node over its ranks)", 3},
    {"progress", KEY_PROGRESS, NULL, 0,
     "also where stderr is no terminal: say how far it is, the time left and the best so far", 3},
    {"quiet", KEY_QUIET, NULL, 0, "no summary and no progress", 3},
    {"json", KEY_JSON, NULL, 0, "print the summary as JSON", 3},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_run_options *options = state->input;
  switch (key) {
  case KEY_OUTPUT:
    options->output = value;
    return 0;
  case KEY_THREADS:
    pl_parse_integer(value, "--threads", 1, 1024, &options->n_threads, options->error);
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_RESUME:
    options->resume = true;
    return 0;
  case KEY_PROGRESS:
    options->progress = true;
    return 0;
  case KEY_QUIET:
    options->quiet = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp pl_run_options_argp = {.options = option_table, .parser = read_option};

pl_code pl_run_options_check(const pl_run_options *options, pl_error *error) {
  if (options->force && options->resume) return pl_fail(error, PL_BAD_INPUT, "--force and --resume exclude each other");
  if (options->quiet && options->json) return pl_fail(error, PL_BAD_INPUT, "--quiet and --json exclude each other");
  return PL_OK;
}

/* ---- the command line as recorded ---- */

/* Options that are left out; NULL ends a list. -o is one of `valued` and -f one of `flags` in both. */
typedef struct left_out {
  const char *const *flags, *const *valued;
} left_out;

static const left_out neutral = {
    .flags = (const char *const[]){"force", "resume", "progress", "quiet", "json", "must-fit", NULL},
    .valued = (const char *const[]){"output", "threads", "top", "tokens", "price", NULL}};

/* What going on with a file says itself. */
static const left_out of_the_file = {.flags = (const char *const[]){"force", "resume", NULL},
                                     .valued = (const char *const[]){"output", NULL}};

static bool is_one_of(const char *const *names, const char *word, size_t length) {
  for (; *names != NULL; names++)
    if (strncmp(word, *names, length) == 0) return true;
  return false;
}

/* How many elements of argv an option at argv[i] takes that is left out: 0 = it is not. Long options may be shortened
 * as argp allows; what would be ambiguous has no meaning for argp either. */
static int left_out_length(const left_out *which, char *const *argv, int i) {
  const char *word = argv[i];
  if (strcmp(word, "-f") == 0) return 1;
  if (strncmp(word, "-fo", 3) == 0) word++;
  if (strncmp(word, "-o", 2) == 0 || word > argv[i]) return word[2] == '\0' && argv[i + 1] != NULL ? 2 : 1;
  if (strncmp(word, "--", 2) != 0 || word[2] == '\0') return 0;
  size_t length = strcspn(word + 2, "=");
  if (is_one_of(which->flags, word + 2, length)) return 1;
  if (!is_one_of(which->valued, word + 2, length)) return 0;
  return word[2 + length] == '=' || argv[i + 1] == NULL ? 1 : 2;
}

static const char *command_without(const left_out *which, const char *command, int argc, char **argv, pl_arena *arena) {
  const char *text = command;
  for (int i = 1; i < argc && text != NULL;) {
    int length = left_out_length(which, argv, i);
    if (length == 0) {
      const char *word = pl_command_quote(argv[i], arena);
      text = word != NULL ? pl_arena_printf(arena, "%s %s", text, word) : NULL;
    }
    i += length > 0 ? length : 1;
  }
  return text;
}

const char *pl_run_options_command(const char *command, int argc, char **argv, pl_arena *arena) {
  return command_without(&neutral, command, argc, argv, arena);
}

const char *pl_run_options_typed(const char *command, int argc, char **argv, pl_arena *arena) {
  return command_without(&of_the_file, command, argc, argv, arena);
}

const char *pl_run_options_again(const char *command, const char *path, pl_arena *arena) {
  const char *quoted = pl_command_quote(path, arena);
  return quoted != NULL ? pl_arena_printf(arena, "%s -o %s --resume", command, quoted) : NULL;
}

bool pl_run_options_progress(const pl_run_options *options) {
  return !options->quiet && (options->progress || (pl_progress_on_terminal() && !pl_ranks_are_launched()));
}
