/* `paceline explain`: where each second of one strategy's iteration comes from, op by op. */
#include "workloads/command/cmd_explain.h"

#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "workloads/command/explain_report.h"
#include "workloads/command/job_session.h"
#include "workloads/command/launched_job.h"
#include "workloads/command/simulate_program.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_text.h"
#include "workloads/launch/blame.h"
#include "workloads/tree/tree.h"

enum {
  KEY_STRATEGY = 'S',
  KEY_TOP = 'n',
  KEY_STAGE = 'g',
  KEY_JSON = 'j',
  KEY_AS_PROGRAM = 0x300,
  KEY_FROM,
  KEY_PROGRAM,
  DEFAULT_TOP = 15
};

typedef struct explain_options {
  pl_job_options job;
  pl_straggler_options stragglers;
  const char *strategy, *stage, *top, *program_path, *launch_path;
  bool json, as_program;
} explain_options;

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: as for 'paceline simulate', or a strategy tree (.yaml)", 0},
    {"from", KEY_FROM, "FILE", 0,
     "instead of all that: a launch file, as for 'paceline simulate', or FILE.h5[:N], a row of a sweep's or a search's "
     "results (default: the fastest that fits); options beside it are stronger",
     0},
    {"stage", KEY_STAGE, "S", 0, "the pipeline stage to explain, from 0; or all (default: the busiest)", 0},
    {"top", KEY_TOP, "N", 0, "rows of each table; 0: all (default 15; with --json all)", 0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON; names and units as the columns of a sweep's HDF5", 0},
    {"program", KEY_PROGRAM, "FILE", 0,
     "a program ('paceline program print'), which says model, batch and strategy itself, as for 'paceline simulate'",
     0},
    {"as-program", KEY_AS_PROGRAM, NULL, 0, "explain the program that the strategy makes, as for 'paceline simulate'",
     0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  explain_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->stragglers;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_FROM: /* of results: the front door reads them (search/command/row_again.h) */
    options->launch_path = value;
    return 0;
  case KEY_STAGE:
    options->stage = value;
    return 0;
  case KEY_TOP:
    options->top = value;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_PROGRAM:
    options->program_path = value;
    return 0;
  case KEY_AS_PROGRAM:
    options->as_program = true;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->job.error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

typedef struct session {
  explain_options *options;
  pl_job_session job;
  pl_launch launch;
  bool is_launched; /* by it, with the strategy that it makes */
  pl_simulate_report report;
  pl_residuals residuals;
  pl_explanation explanation;
  pl_explain_view view;
} session;

/* Before anything is loaded; the stage's number once more when the strategy is known. */
static pl_code check_view(session *own, pl_error *error) {
  int64_t top = own->options->json ? 0 : DEFAULT_TOP;
  if (own->options->top != NULL) PL_TRY(pl_parse_integer(own->options->top, "--top", 0, INT32_MAX, &top, error));
  own->view.top = (uint32_t)top;
  int64_t stage = 0;
  const char *text = own->options->stage;
  if (text != NULL && strcmp(text, "all") != 0 &&
      pl_parse_integer(text, "--stage", 0, INT32_MAX, &stage, error) != PL_OK)
    return error->code;
  own->view.first_stage = (int32_t)stage;
  own->view.n_stages = 1;
  return PL_OK;
}

static pl_code choose_stages(session *own, pl_error *error) {
  const char *text = own->options->stage;
  if (text != NULL && strcmp(text, "all") == 0) own->view.n_stages = own->job.strategy.pp;
  if (own->view.first_stage >= own->job.strategy.pp)
    return pl_fail(error, PL_BAD_INPUT, "--stage: %d is out of range: pp=%d has stages 0 to %d", own->view.first_stage,
                   own->job.strategy.pp, own->job.strategy.pp - 1);
  return PL_OK;
}

static pl_code load(session *own, pl_error *error) {
  explain_options *options = own->options;
  bool has_strategy = options->strategy != NULL;
  if (options->launch_path != NULL && options->job.error.code == PL_OK)
    PL_TRY(
        pl_launched_job_take(options->launch_path, &own->job, &options->job, &options->strategy, &own->launch, error));
  own->is_launched = options->launch_path != NULL && !has_strategy;
  PL_TRY(pl_job_options_check(&options->job, error));
  PL_TRY(check_view(own, error));
  if (options->strategy == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is missing (e.g. --strategy pp=4,dp=4,tmp=1,mbs=1)");
  PL_TRY(pl_straggler_options_parse(&options->stragglers, &own->job.arena, error));
  PL_TRY(pl_job_session_read(&own->job, &options->job, options->strategy, error));
  PL_TRY(choose_stages(own, error));
  PL_TRY(pl_job_session_place(&own->job, &options->job, error));
  return pl_straggler_options_place(&options->stragglers, own->job.cluster, &own->job.strategy, 0, &own->job.arena,
                                    &options->job.simulate, error);
}

/* As it is written; of an ONNX file, or by a strategy tree: nothing has blocks; or a tuple that says what only programs
 * can. */
static bool is_program(const explain_options *options) {
  return options->program_path != NULL || options->as_program ||
         (options->strategy != NULL && pl_strategy_text_is_of_programs(options->strategy)) ||
         (options->strategy != NULL && pl_tree_is_file(options->strategy)) ||
         (options->job.model_path != NULL && pl_model_is_program_alone(options->job.model_path));
}

static pl_code explain_program(session *own, pl_error *error) {
  explain_options *options = own->options;
  PL_TRY(check_view(own, error));
  const pl_explain_program_view view = {.stage = options->stage, .top = own->view.top};
  bool tree = options->strategy != NULL && pl_tree_is_file(options->strategy);
  if (options->program_path != NULL && options->strategy != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--program says its strategy itself: leave out --strategy");
  if (options->launch_path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--from %s: what is explained as a program is not read from launch files",
                   options->launch_path);
  const pl_program_request request = {.program_path = options->program_path,
                                      .tree_path = tree ? options->strategy : NULL,
                                      .strategy = tree ? NULL : options->strategy,
                                      .json = options->json,
                                      .stragglers = &options->stragglers,
                                      .explain = &view};
  return pl_simulate_program_command(&options->job, &request, error);
}

static pl_code explain(session *own, pl_error *error) {
  explain_options *options = own->options;
  if (is_program(options)) return explain_program(own, error);
  PL_TRY(load(own, error));
  const pl_cluster *cluster = own->job.cluster;
  options->job.simulate.platform = own->job.platform;
  options->job.simulate.explanation = &own->explanation;
  PL_TRY(pl_residuals_load(&own->job.arena, &own->residuals, error));
  options->job.simulate.residuals = &own->residuals;
  PL_TRY(pl_simulate(cluster, &own->job.model, &options->job.job, &own->job.strategy, &options->job.simulate,
                     &own->job.arena, &own->report, error));
  PL_TRY(pl_job_session_interval(&own->job, &options->job, &own->report, error));
  if (options->stage == NULL) own->view.first_stage = pl_explanation_worst_stage(&own->explanation);
  pl_simulate_subject subject;
  PL_TRY(pl_job_session_subject(&own->job, &options->job, &own->report, &subject, error));
  subject.stragglers = &options->stragglers;
  if (options->launch_path != NULL) subject.launch = &own->launch;
  PL_TRY((options->json ? pl_explain_report_json : pl_explain_report_print)(
      stdout, &subject, &own->report, &own->explanation, &own->view, &own->job.arena, error));
  return pl_job_options_demand_fit(&options->job, &own->report.row, error);
}

int pl_cmd_explain(int argc, char **argv) {
  static const struct argp_child children[] = {
      {&pl_job_options_argp, 0, NULL, 0}, {&pl_straggler_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc =
          "Explains where each second of a training iteration comes from: of the busiest pipeline stage (or another, "
          "or each) every op with its calls, shape, work, time, what limits it and where its time is from; every "
          "communication with algorithm, group, time alone and in the run, exposed and hidden. The parts add up to "
          "the iteration time exactly.\v"
          "Example:\n"
          "  paceline explain --platform dgx-a100-16 \\\n"
          "    --model gpt3-175b --gbs 1536 --seq 2048 \\\n"
          "    --strategy pp=8,dp=2,tmp=8,mbs=1,recompute=full --top 20",
      .children = children};
  explain_options options = {0};
  pl_job_options_init(&options.job);
  session own = {.options = &options};
  pl_job_session_init(&own.job);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("explain", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK) code = explain(&own, &error);
  if (own.is_launched) pl_launch_blame(&own.launch, own.job.model.name, &error);
  int status = code == PL_OK ? 0 : pl_command_report("explain", &error);
  if (code != PL_OK && options.program_path != NULL) pl_ir_error_show(stderr, &error, options.program_path);
  if (code != PL_OK && options.strategy != NULL && pl_tree_is_file(options.strategy))
    pl_tree_error_show(stderr, &error);
  pl_job_session_release(&own.job);
  return pl_command_finish("explain", status);
}
