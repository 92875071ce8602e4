/* See search/sweep_options.h. */
#include "search/sweep_options.h"

#include <stdlib.h>
#include <string.h>

#include "core/command_line.h"
#include "core/units.h"
#include "core/words.h"

enum {
  KEY_OUTPUT = 'o',
  KEY_THREADS = 0x400,
  KEY_FEATURES,
  KEY_FORCE,
  KEY_RESUME,
  KEY_PROGRESS,
  KEY_QUIET,
  KEY_JSON,
  KEY_PP,
  KEY_DP,
  KEY_TMP,
  KEY_CP,
  KEY_EP,
  KEY_MBS,
  KEY_VPP,
  KEY_ZERO,
  KEY_SCHEDULE,
  KEY_RECOMPUTE,
  KEY_SP,
  KEY_OVERLAP,
  KEY_ASSIGN,
  KEY_ORDER
};

static const struct argp_option option_table[] = {
    {"output", KEY_OUTPUT, "FILE", 0, "results file (HDF5) to create", 3},
    {"features", KEY_FEATURES, NULL, 0,
     "write what a learned cost model needs, too: work, bytes and time by kind, shapes, loads of the stages", 3},
    {"force", KEY_FORCE, NULL, 0, "replace the results file if it exists", 3},
    {"resume", KEY_RESUME, NULL, 0, "compute what the results file still lacks; without a file, start one", 3},
    {"threads", KEY_THREADS, "N", 0, "threads per rank (default: the cores of the node over its ranks)", 3},
    {"progress", KEY_PROGRESS, NULL, 0, "report rate, time left and the best so far to stderr", 3},
    {"quiet", KEY_QUIET, NULL, 0, "print no summary", 3},
    {"json", KEY_JSON, NULL, 0, "print the summary as JSON", 3},
    {"pp", KEY_PP, "LIST", 0, "pipeline degrees, e.g. 1,2,4 or 1-8 (default: all; likewise below)", 4},
    {"dp", KEY_DP, "LIST", 0, "data-parallel degrees", 4},
    {"tmp", KEY_TMP, "LIST", 0, "tensor-parallel degrees", 4},
    {"cp", KEY_CP, "LIST", 0, "context-parallel degrees (default 1)", 4},
    {"ep", KEY_EP, "LIST", 0, "expert-parallel degrees, of models with experts (default 1)", 4},
    {"mbs", KEY_MBS, "LIST", 0, "microbatch sizes (default 1-8)", 4},
    {"schedule", KEY_SCHEDULE, "LIST", 0, "of gpipe, 1f1b, interleaved", 4},
    {"vpp", KEY_VPP, "LIST", 0, "model chunks per stage of interleaved schedules (default 2-4)", 4},
    {"sp", KEY_SP, "WHICH", 0, "sequence parallelism where tmp > 1: on, off or both (default)", 4},
    {"recompute", KEY_RECOMPUTE, "LIST", 0, "of none, selective, full", 4},
    {"zero", KEY_ZERO, "LIST", 0, "ZeRO stages where dp > 1, of 0-3 (2 and 3 only with pp = 1)", 4},
    {"overlap", KEY_OVERLAP, "WHICH", 0,
     "overlap of gradient reduction where dp > 1: on, off or both (default: both, or what --framework does)", 4},
    {"assign", KEY_ASSIGN, "LIST", 0, "layer assignments, of uniform, balanced", 4},
    {"order", KEY_ORDER, "LIST", 0, "placement orders, innermost first (default tdp)", 4},
    {0},
};

/* Calls `use` for every element of a comma-separated list; false when one is empty, too long or refused. */
static bool for_each_word(const char *list, bool (*use)(const char *word, void *data), void *data) {
  for (;;) {
    size_t length = strcspn(list, ",");
    char word[32];
    if (length == 0 || length >= sizeof word) return false;
    memcpy(word, list, length);
    word[length] = '\0';
    if (!use(word, data)) return false;
    if (list[length] == '\0') return true;
    list += length + 1;
  }
}

typedef struct word_set {
  const char *const *names;
  uint32_t mask;
} word_set;

static bool use_name(const char *word, void *data) {
  word_set *set = data;
  int found = pl_words_find(set->names, word);
  if (found >= 0) set->mask |= 1u << found;
  return found >= 0;
}

static void read_words(pl_error *error, const char *option, const char *value, const char *const *names,
                       uint32_t *mask) {
  word_set set = {.names = names};
  if (for_each_word(value, use_name, &set)) {
    *mask = set.mask;
    return;
  }
  char list[PL_WORDS_BYTES];
  pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is not a list of %s", option, value,
          pl_words_list(names, list, sizeof list));
}

static void read_switch(pl_error *error, const char *option, const char *value, uint32_t *mask) {
  *mask = strcmp(value, "both") == 0 ? 3 : strcmp(value, "on") == 0 ? 2 : strcmp(value, "off") == 0 ? 1 : 0;
  if (*mask == 0) pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is not on, off or both", option, value);
}

static bool use_order(const char *word, void *data) {
  pl_space_choices *choices = data;
  if (!pl_strategy_is_order(word)) return false;
  for (uint32_t i = 0; i < choices->n_orders; i++)
    if (strcmp(choices->orders[i], word) == 0) return true;
  memcpy(choices->orders[choices->n_orders++], word, strlen(word) + 1);
  return true;
}

static void read_orders(pl_error *error, const char *value, pl_space_choices *choices) {
  choices->n_orders = 0;
  if (!for_each_word(value, use_order, choices))
    pl_fail(error, PL_BAD_INPUT,
            "--order: '%.64s' is not a list of permutations of t, d, p or t, c, d, p such as tdp,tpd", value);
}

/* The dimensions of the space; false: not one of them. */
static bool read_choice(int key, const char *value, pl_space_choices *choices, pl_error *error) {
  static const char *const recipes[] = {"", "uniform", "balanced", NULL}; /* as pl_assign_recipe */
  switch (key) {
  case KEY_PP:
    pl_int_set_parse(value, "--pp", 1, INT32_MAX, &choices->pp, error);
    return true;
  case KEY_DP:
    pl_int_set_parse(value, "--dp", 1, INT32_MAX, &choices->dp, error);
    return true;
  case KEY_TMP:
    pl_int_set_parse(value, "--tmp", 1, INT32_MAX, &choices->tmp, error);
    return true;
  case KEY_CP:
    pl_int_set_parse(value, "--cp", 1, INT32_MAX, &choices->cp, error);
    return true;
  case KEY_EP:
    pl_int_set_parse(value, "--ep", 1, INT32_MAX, &choices->ep, error);
    return true;
  case KEY_MBS:
    pl_int_set_parse(value, "--mbs", 1, PL_SPACE_MBS_LIMIT, &choices->mbs, error);
    return true;
  case KEY_VPP:
    pl_int_set_parse(value, "--vpp", 2, INT32_MAX, &choices->vpp, error);
    return true;
  case KEY_ZERO:
    pl_int_set_parse(value, "--zero", 0, 3, &choices->zero, error);
    return true;
  case KEY_SCHEDULE:
    read_words(error, "--schedule", value, pl_schedule_names, &choices->schedules);
    return true;
  case KEY_RECOMPUTE:
    read_words(error, "--recompute", value, pl_recompute_names, &choices->recomputes);
    return true;
  case KEY_SP:
    read_switch(error, "--sp", value, &choices->sp);
    return true;
  case KEY_OVERLAP:
    read_switch(error, "--overlap", value, &choices->overlap);
    choices->overlap_is_given = true;
    return true;
  case KEY_ASSIGN:
    read_words(error, "--assign", value, recipes, &choices->recipes);
    return true;
  case KEY_ORDER:
    read_orders(error, value, choices);
    return true;
  default:
    return false;
  }
}

static bool read_flag(int key, pl_sweep_options *options) {
  switch (key) {
  case KEY_FORCE:
    return options->force = true;
  case KEY_RESUME:
    return options->resume = true;
  case KEY_PROGRESS:
    return options->progress = true;
  case KEY_FEATURES:
    return options->features = true;
  case KEY_QUIET:
    return options->quiet = true;
  case KEY_JSON:
    return options->json = true;
  default:
    return false;
  }
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_sweep_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    return 0;
  case KEY_OUTPUT:
    options->output = value;
    return 0;
  case KEY_THREADS:
    pl_parse_integer(value, "--threads", 1, 1024, &options->n_threads, &options->error);
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->error);
    return 0;
  default:
    return read_flag(key, options) || read_choice(key, value, &options->choices, &options->error) ? 0
                                                                                                  : ARGP_ERR_UNKNOWN;
  }
}

static pl_code judge(const pl_sweep_options *options, pl_error *error) {
  if (options->output == NULL || options->output[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "-o FILE is missing: where the results go");
  if (options->force && options->resume) return pl_fail(error, PL_BAD_INPUT, "--force and --resume exclude each other");
  if (options->quiet && options->json) return pl_fail(error, PL_BAD_INPUT, "--quiet and --json exclude each other");
  if (options->job.simulate.network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED,
                   "--network simgrid: SimGrid's engine runs one strategy at a time; use paceline simulate");
  return PL_OK;
}

pl_code pl_sweep_options_parse(int argc, char **argv, bool silent, pl_sweep_options *options, pl_error *error) {
  const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
  const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc = "Simulates every valid parallelisation strategy of a model on a platform and writes all results to HDF5.\v"
             "Example:\n"
             "  mpirun -n 4 --bind-to none paceline sweep \\\n"
             "    --platform platforms/dgx-a100-16.xml \\\n"
             "    --model workloads/models/gpt3-175b.json --gbs 1536 --seq 2048 -o sweep.h5",
      .children = children};
  *options = (pl_sweep_options){0};
  pl_job_options_init(&options->job);
  pl_space_choices_init(&options->choices);
  PL_TRY(pl_command_line_parse("sweep", &argp, argc, argv, silent, options, error));
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  PL_TRY(pl_job_options_check(&options->job, error));
  return judge(options, error);
}

/* ---- the command line as recorded ---- */

/* How many elements of argv a neutral option at argv[i] takes: 0 = not neutral. Long options may be shortened as argp
 * allows; what would be ambiguous has no meaning for argp either. */
static int neutral_length(char *const *argv, int i) {
  static const char *const flags[] = {"force", "resume", "progress", "quiet", "json"};
  static const char *const valued[] = {"output", "threads"};
  const char *word = argv[i];
  if (strncmp(word, "-o", 2) == 0) return word[2] == '\0' && argv[i + 1] != NULL ? 2 : 1;
  if (strncmp(word, "--", 2) != 0 || word[2] == '\0') return 0;
  size_t length = strcspn(word + 2, "=");
  for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++)
    if (strncmp(word + 2, flags[k], length) == 0) return 1;
  for (size_t k = 0; k < sizeof valued / sizeof valued[0]; k++)
    if (strncmp(word + 2, valued[k], length) == 0) return word[2 + length] == '=' || argv[i + 1] == NULL ? 1 : 2;
  return 0;
}

const char *pl_sweep_options_command(int argc, char **argv, pl_arena *arena) {
  const char *text = "paceline sweep";
  for (int i = 1; i < argc && text != NULL;) {
    int neutral = neutral_length(argv, i);
    if (neutral == 0) {
      bool plain = argv[i][0] != '\0' && argv[i][strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                                 "0123456789_./,:=+-")] == '\0';
      text = pl_arena_printf(arena, plain ? "%s %s" : "%s '%s'", text, argv[i]);
    }
    i += neutral ? neutral : 1;
  }
  return text;
}
