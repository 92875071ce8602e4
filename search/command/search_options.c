/* See search/command/search_options.h. */
#include "search/command/search_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command_line.h"
#include "search/method/search.h"

enum {
  KEY_METHOD = 0x480,
  KEY_BUDGET,
  KEY_GAP,
  KEY_TOP,
  KEY_SEED,
  KEY_ALLOW_IDLE,
  KEY_COMPARE,
  KEY_VARY,
  KEY_GPUS,
  KEY_DEADLINE
};

static const struct argp_option option_table[] = {
    {"method", KEY_METHOD, "NAME", 0,
     "how candidates are chosen, of the list below (default " PL_SEARCH_DEFAULT_METHOD ")", 2},
    {"budget", KEY_BUDGET, "LIMIT", 0, "stop after so many simulations (500), or so much time (10s, 5m, 2h)", 2},
    {"gap", KEY_GAP, "SHARE", 0, "stop when the best is that near to the lower bound, e.g. 1%", 2},
    {"top", KEY_TOP, "N", 0, "print the N best (default 1)", 2},
    {"seed", KEY_SEED, "N", 0, "of methods that draw (default 1)", 2},
    {"allow-idle", KEY_ALLOW_IDLE, NULL, 0, "also strategies that leave devices idle", 2},
    {"compare", KEY_COMPARE, "NAMES", 0, "a table of several methods, e.g. amp,megatron (no results file)", 2},
    {"gpus", KEY_GPUS, "NUMBERS", 0,
     "how many GPUs: a search at each of these sizes, 64-4096 (doubled from 64 on) or 64,96,128, of a machine "
     "(--platform dgx-h100), and what training takes at each (--tokens)",
     2},
    {"deadline", KEY_DEADLINE, "TIME", 0, "with --gpus and --tokens: which size is done in time, e.g. 14d, 36h or 2w",
     2},
    {"vary", KEY_VARY, "WHAT=VALUES", 0,
     "a table of searches on variations of the platform, e.g. link:nic.bandwidth=100Gbps,x2 (several make a grid; "
     "'paceline simulate --help' says what may be varied)",
     2},
    {0},
};

/* A number and what follows it; false if there is none, or it is not above 0 and finite. */
static bool read_number(const char *text, double *value, const char **rest) {
  char *end;
  errno = 0;
  *value = strtod(text, &end);
  *rest = end;
  return end != text && errno == 0 && isfinite(*value) && *value > 0;
}

static void read_budget(const char *text, pl_search_options *options) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}};
  const char *rest;
  double value;
  if (read_number(text, &value, &rest)) {
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
      if (strcmp(rest, units[i].unit) == 0) {
        options->budget_s = value * units[i].seconds;
        return;
      }
    if (*rest == '\0' && value == floor(value) && value <= UINT32_MAX - 1.0) {
      options->budget = (uint64_t)value;
      return;
    }
  }
  pl_fail(&options->error, PL_BAD_INPUT,
          "--budget: '%.64s' is neither a number of simulations (500) nor a time (10s, 5m, 2h)", text);
}

static void read_gap(const char *text, pl_search_options *options) {
  const char *rest;
  if (read_number(text, &options->gap, &rest)) {
    if (strcmp(rest, "%") == 0) options->gap /= 100;
    if (*rest == '\0' || strcmp(rest, "%") == 0) return;
  }
  pl_fail(&options->error, PL_BAD_INPUT, "--gap: '%.64s' is not a share above 0 such as 1%% or 0.01", text);
}

static void read_method(const char *name, pl_search_options *options) {
  options->method = pl_method_find(name);
  if (options->method != NULL) return;
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  pl_fail(&options->error, PL_BAD_INPUT, "--method: '%.64s' is unknown; one of %s%s", name, pl_methods_list(list),
          pl_methods_hint(name, hint));
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_search_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->run;
    state->child_inputs[2] = &options->space;
    state->child_inputs[3] = &options->cost;
    return 0;
  case KEY_METHOD:
    read_method(value, options);
    return 0;
  case KEY_BUDGET:
    read_budget(value, options);
    return 0;
  case KEY_GAP:
    read_gap(value, options);
    return 0;
  case KEY_TOP:
    pl_parse_integer(value, "--top", 1, PL_SEARCH_MOST_TOP, &options->n_top, &options->error);
    return 0;
  case KEY_SEED:
    pl_parse_integer(value, "--seed", 0, INT64_MAX, &options->seed, &options->error);
    return 0;
  case KEY_COMPARE:
    pl_search_table_read_methods(&options->table, value, &options->error);
    return 0;
  case KEY_GPUS:
    pl_search_sizes_read(&options->sizes, value, &options->error);
    return 0;
  case KEY_DEADLINE:
    pl_search_sizes_read_deadline(&options->sizes, value, &options->error);
    return 0;
  case KEY_VARY:
    if (options->n_vary < PL_VARY_AXES_MAX) options->vary[options->n_vary] = value;
    options->n_vary++;
    return 0;
  case KEY_ALLOW_IDLE:
    options->allow_idle = true;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static pl_code judge(const pl_search_options *options, pl_error *error) {
  if (options->run.output == NULL && (options->run.force || options->run.resume))
    return pl_fail(error, PL_BAD_INPUT, "--%s needs -o FILE: the results file",
                   options->run.force ? "force" : "resume");
  if (options->run.output != NULL && options->run.output[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "-o: the name of the results file is empty");
  PL_TRY(pl_run_options_check(&options->run, error));
  if (options->is_table && options->job.must_fit)
    return pl_fail(error, PL_BAD_INPUT, "--must-fit is of one search; leave out --compare and --vary");
  if (options->is_table && options->run.output != NULL)
    return pl_fail(error, PL_BAD_INPUT, "-o: --%s prints a table of searches, which has no results file; leave it out",
                   options->n_vary > 0 ? "vary" : "compare");
  bool sizes = options->sizes.n > 0;
  if (sizes && (options->is_table || options->run.output != NULL || options->n_top > 1 || options->job.must_fit))
    return pl_fail(error, PL_BAD_INPUT,
                   "--gpus prints a table of sizes; leave out -o, --top, --must-fit, --compare and --vary");
  if (options->sizes.deadline_s > 0 && (!sizes || options->cost.tokens == 0))
    return pl_fail(error, PL_BAD_INPUT, "--deadline: of what? add %s",
                   sizes ? "--tokens N, the length of the training" : "--gpus NUMBERS, the sizes to choose from");
  if (options->job.simulate.network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED,
                   "--network simgrid: SimGrid's engine runs one strategy at a time; use paceline simulate");
  return PL_OK;
}

static bool suits_programs(const pl_method *method) {
  return strcmp(method->name, "exhaustive") == 0 || strcmp(method->name, "random") == 0;
}

pl_code pl_search_options_for_programs(pl_search_options *options, const char *what, pl_error *error) {
  if (!options->method_is_given) options->method = options->table.methods[0] = pl_method_find("exhaustive");
  const pl_method *wrong = options->is_table || suits_programs(options->method) ? NULL : options->method;
  for (uint32_t i = 0; options->is_table && i < options->table.n_methods; i++)
    if (!suits_programs(options->table.methods[i])) wrong = options->table.methods[i];
  if (wrong == NULL) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "method %s knows no programs, and %s is simulated as one; exhaustive (the default then) and random do",
                 wrong->name, what);
}

/* The methods, as the end of the help. */
static char *filter_help(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)text;
  char *whole = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&whole, &size);
  if (stream == NULL) return (char *)text;
  fputs("Methods:\n", stream);
  for (const pl_method *const *method = pl_methods; *method != NULL; method++)
    fprintf(stream, "  %-11s %s\n", (*method)->name, (*method)->description);
  fprintf(stream, "\n%s", text);
  fclose(stream);
  return whole; /* argp frees it */
}

pl_code pl_search_options_parse(int argc, char **argv, bool silent, pl_search_options *options, pl_error *error) {
  const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0},
                                        {&pl_run_options_argp, 0, NULL, 0},
                                        {&pl_space_options_argp, 0, NULL, 0},
                                        {&pl_training_cost_argp, 0, NULL, 0},
                                        {0}};
  const struct argp argp = {.options = option_table,
                            .parser = read_option,
                            .doc = "Searches the fastest strategy that fits for a model on a platform.\v"
                                   "Example:\n"
                                   "  mpirun -n 4 --bind-to none paceline search \\\n"
                                   "    --platform amp-hetero-cluster \\\n"
                                   "    --model gpt2-345m --gbs 32 --top 10 -o best.h5",
                            .children = children,
                            .help_filter = filter_help};
  *options = (pl_search_options){.budget = UINT64_MAX, .budget_s = INFINITY, .n_top = 1, .seed = 1};
  options->run.error = &options->error;
  pl_job_options_init(&options->job);
  pl_space_options_init(&options->space, &options->error);
  PL_TRY(pl_command_line_parse("search", &argp, argc, argv, silent, options, error));
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->method != NULL && options->table.n_methods > 0)
    return pl_fail(error, PL_BAD_INPUT, "--method %s: --compare names the methods; leave one of them out",
                   options->method->name);
  options->is_table = options->table.n_methods > 0 || options->n_vary > 0;
  options->method_is_given = options->method != NULL || options->table.n_methods > 0;
  if (options->method == NULL) options->method = pl_method_find(PL_SEARCH_DEFAULT_METHOD);
  if (options->table.n_methods == 0) options->table.methods[options->table.n_methods++] = options->method;
  PL_TRY(pl_job_options_check(&options->job, error));
  pl_job_options_count_memory(&options->job);
  PL_TRY(pl_training_cost_check(&options->cost, error));
  if (options->cost.tokens > 0 && options->is_table)
    return pl_fail(error, PL_BAD_INPUT, "--tokens: of one search; leave it out of --compare and --vary");
  return judge(options, error);
}
