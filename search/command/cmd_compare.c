/* `paceline compare A B`: two strategies, clusters, results or files: what differs, and where the seconds come from.
 * Either side is what it looks like (see `take`); the command line is read once per side, as options keep what a job
 * adopts. */
#include "search/command/cmd_compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/text_file.h"
#include "search/command/compare.h"
#include "search/command/recorded_rows.h"
#include "workloads/command/job_session.h"
#include "workloads/command/simulate_program.h"
#include "workloads/tree/tree.h"

enum { KEY_STRATEGY = 'S', KEY_JSON = 'j', FILE_BYTES_MAX = 1 << 26 };

typedef struct compare_options {
  pl_job_options job;
  const char *operand[2], *strategy;
  int n_operands;
  bool json;
} compare_options;

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "TEXT", 0, "of two platforms: what runs on both, as for 'paceline simulate'", 0},
    {"json", KEY_JSON, NULL, 0, "print the comparison as JSON", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  compare_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (options->n_operands == 2) pl_command_line_refuse_argument(value, &options->job.error);
    if (options->n_operands < 2) options->operand[options->n_operands++] = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = option_table,
    .parser = read_option,
    .children = children,
    .args_doc = "A B",
    .doc = "Sets two predictions side by side: what differs between them, where the difference of their iteration "
           "times comes from, memory, and which is better.\v"
           "A and B are two strategies, key=value,... or trees (FILE.yaml), of one --model on one --platform, two "
           "platforms (with --strategy), or "
           "results: FILE.h5 of a sweep or a search (its best row; FILE.h5:N: row N), FILE.json of 'paceline simulate "
           "--json'; or one of each.\n\n"
           "Example:\n"
           "  paceline compare --platform dgx-a100-16 \\\n"
           "    --model gpt3-175b --gbs 1536 --seq 2048 \\\n"
           "    pp=16,dp=4,tmp=2,mbs=1,zero=1 pp=8,dp=2,tmp=8,mbs=1,sp=1"};

/* ---- sides ---- */

typedef enum kind { KIND_STRATEGY, KIND_TREE, KIND_RESULTS, KIND_JSON, KIND_PLATFORM } kind;

static kind kind_of(const char *text) {
  int64_t row;
  size_t length = pl_recorded_row_split(text, &row), equals = strcspn(text, "=");
  if (pl_tree_is_file(text)) return KIND_TREE;
  if (text[equals] == '=' && strcspn(text, "/.") > equals) return KIND_STRATEGY;
  if (pl_recorded_is_results(text, length)) return KIND_RESULTS;
  const char *ending = strrchr(text, '.');
  return ending != NULL && strcmp(ending, ".json") == 0 ? KIND_JSON : KIND_PLATFORM;
}

typedef struct session {
  pl_arena arena;
  compare_options options;
  pl_comparison comparison;
  int argc;
  char **argv;
} session;

/* One prediction, as `simulate --json` would write it. */
static pl_code simulate(pl_job_session *job, compare_options *options, const char *strategy, FILE *stream,
                        pl_error *error) {
  pl_residuals residuals;
  pl_simulate_report report;
  pl_simulate_subject subject;
  const pl_sensitivity unasked = {.n_runs = 0};
  PL_TRY(pl_job_options_check(&options->job, error));
  PL_TRY(pl_job_session_read(job, &options->job, strategy, error));
  PL_TRY(pl_job_session_place(job, &options->job, error));
  PL_TRY(pl_residuals_load(&job->arena, &residuals, error));
  options->job.simulate.residuals = &residuals;
  options->job.simulate.platform = job->platform;
  PL_TRY(pl_simulate(job->cluster, &job->model, &options->job.job, &job->strategy, &options->job.simulate, &job->arena,
                     &report, error));
  PL_TRY(pl_job_session_interval(job, &options->job, &report, error));
  PL_TRY(pl_job_session_subject(job, &options->job, &report, &subject, error));
  pl_simulate_report_json(stream, &subject, &report, &unasked);
  return PL_OK;
}

/* As a program: a tree, or a tuple that says what only programs can. */
static pl_code simulate_program(compare_options *options, const char *strategy, FILE *stream, pl_error *error) {
  pl_straggler_options stragglers = {0};
  bool tree = pl_tree_is_file(strategy);
  const pl_program_request request = {.tree_path = tree ? strategy : NULL,
                                      .strategy = tree ? NULL : strategy,
                                      .json = true,
                                      .stream = stream,
                                      .stragglers = &stragglers};
  PL_TRY(pl_job_options_check(&options->job, error));
  return pl_simulate_program_command(&options->job, &request, error);
}

static pl_code simulate_side(session *own, int side, kind what, FILE *stream, pl_error *error) {
  compare_options options = {0};
  pl_job_session job;
  const char *operand = own->options.operand[side];
  pl_job_options_init(&options.job);
  PL_TRY(pl_command_line_parse("compare", &argp, own->argc, own->argv, false, &options, error));
  if (what == KIND_PLATFORM) options.job.platform_path = operand;
  if (what == KIND_PLATFORM && options.strategy == NULL)
    return pl_fail(
        error, PL_BAD_INPUT,
        "'%.128s' is a platform: --strategy is missing, which both run (or is it a file of results? They end "
        "in .h5 or .json)",
        operand);
  const char *strategy = what == KIND_PLATFORM ? options.strategy : operand;
  if (pl_tree_is_file(strategy) || pl_strategy_text_is_of_programs(strategy))
    return simulate_program(&options, strategy, stream, error);
  pl_job_session_init(&job);
  pl_code code = simulate(&job, &options, strategy, stream, error);
  pl_job_session_release(&job);
  return code;
}

static pl_code take_results(session *own, int side, FILE *stream, pl_error *error) {
  int64_t row;
  const char *operand = own->options.operand[side];
  size_t length = pl_recorded_row_split(operand, &row);
  if (access(operand, F_OK) == 0) length = strlen(operand); /* a file whose name has a colon */
  const char *path = pl_arena_printf(&own->arena, "%.*s", (int)length, operand);
  return path != NULL ? pl_compare_row_json(path, row, stream, error) : pl_fail_memory(error, "a name");
}

/* Either side as JSON in *text, which the caller frees. */
static pl_code take_text(session *own, int side, kind what, char **text, size_t *size, pl_error *error) {
  const char *operand = own->options.operand[side];
  *text = NULL;
  if (what == KIND_JSON) return pl_text_file_load(operand, FILE_BYTES_MAX, text, size, error);
  FILE *stream = open_memstream(text, size);
  if (stream == NULL) return pl_fail_memory(error, "a side");
  pl_code code =
      what == KIND_RESULTS ? take_results(own, side, stream, error) : simulate_side(own, side, what, stream, error);
  if (fclose(stream) != 0 && code == PL_OK) code = pl_fail_memory(error, "a side");
  return code;
}

static pl_code take(session *own, int side, pl_error *error) {
  const char *operand = own->options.operand[side];
  char *text;
  size_t size = 0;
  own->comparison.side[side].label = operand;
  PL_TRY(pl_recorded_row_check(operand, error));
  pl_code code = take_text(own, side, kind_of(operand), &text, &size, error);
  if (code == PL_OK) code = pl_compare_read(operand, text, size, &own->arena, &own->comparison.side[side], error);
  free(text);
  return code;
}

static pl_code compare(session *own, pl_error *error) {
  const compare_options *options = &own->options;
  if (options->job.error.code != PL_OK)
    return pl_fail(error, options->job.error.code, "%s", options->job.error.message);
  if (options->n_operands < 2)
    return pl_fail(error, PL_BAD_INPUT, "what with what? paceline compare A B: strategies, platforms or files");
  kind a = kind_of(options->operand[0]), b = kind_of(options->operand[1]);
  bool strategies = a == KIND_STRATEGY || a == KIND_TREE || b == KIND_STRATEGY || b == KIND_TREE;
  if (strategies && options->strategy != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is of two platforms; A or B is a strategy itself");
  for (int side = 0; side < 2; side++)
    PL_TRY(take(own, side, error));
  PL_TRY(pl_compare_judge(&own->comparison, &own->arena, error));
  (options->json ? pl_compare_json : pl_compare_print)(stdout, &own->comparison);
  return PL_OK;
}

int pl_cmd_compare(int argc, char **argv) {
  session own = {.argc = argc, .argv = argv};
  char name[] = "paceline compare";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  pl_arena_init(&own.arena, 0);
  pl_job_options_init(&own.options.job);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("compare", &argp, argc, argv, false, &own.options, &error);
  if (code == PL_OK) code = compare(&own, &error);
  int status = code == PL_OK ? 0 : pl_command_report("compare", &error);
  for (int side = 0; side < 2; side++)
    pl_document_destroy(own.comparison.side[side].document);
  pl_arena_release(&own.arena);
  return pl_command_finish("compare", status);
}
