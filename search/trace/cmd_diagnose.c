/* See search/trace/cmd_diagnose.h. */
#include "search/trace/cmd_diagnose.h"

#include <argp.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "search/trace/diagnosis_report.h"

enum { KEY_FORCE = 'f', KEY_STEP = 0x500, KEY_JSON = 'j' };

typedef struct diagnose_options {
  const char *path, *output;
  int64_t step;
  bool json, force;
  pl_error error;
} diagnose_options;

static const struct argp_option option_table[] = {
    {"output", 'o', "FILE", 0, "write the report as one HTML file", 0},
    {"force", KEY_FORCE, NULL, 0, "replace FILE", 0},
    {"step", KEY_STEP, "N", 0, "the step with this number (default: that of the median length)", 0},
    {"json", KEY_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  diagnose_options *options = state->input;
  switch (key) {
  case 'o':
    options->output = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_STEP:
    pl_parse_integer(value, "--step", 0, INT64_MAX, &options->step, &options->error);
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (options->path != NULL) pl_command_line_refuse_argument(value, &options->error);
    options->path = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static pl_code store(const diagnose_options *options, const pl_diagnosis_report *report, pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, options->output, options->force, error));
  pl_diagnosis_report_html(file.stream, report);
  return pl_output_file_close(&file, PL_OK, error);
}

static pl_code diagnose(const diagnose_options *options, pl_replay_session *job, pl_arena *arena, pl_error *error) {
  uint32_t step;
  pl_trace_replay replay;
  pl_trace_window window;
  pl_trace_fits fits;
  pl_trace_diagnosis diagnosis;
  PL_TRY(pl_replay_session_open(options->path, job, error));
  PL_TRY(pl_replay_session_step(job, options->path, options->step, &step, error));
  PL_TRY(pl_replay_session_fit(job, arena, &fits, error));
  PL_TRY(pl_replay_session_take(job, step, arena, &replay, error));
  PL_TRY(pl_replay_session_window(job, step, arena, &window, error));
  PL_TRY(pl_trace_diagnosis_take(&replay, &window, &fits, arena, &diagnosis, error));
  const pl_diagnosis_report report = {options->path, job, &replay, &diagnosis};
  if (options->output != NULL) PL_TRY(store(options, &report, error));
  if (options->json)
    pl_diagnosis_report_json(stdout, &report);
  else
    pl_diagnosis_report_text(stdout, &report);
  return PL_OK;
}

static pl_code run(const diagnose_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which job file? paceline diagnose job.h5");
  if (options->output != NULL) {
    PL_TRY(pl_output_file_check(options->output, options->force, error));
    PL_TRY(pl_command_refuse_input(options->output, options->path, error));
  }
  pl_replay_session job;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = diagnose(options, &job, &arena, error);
  pl_replay_session_release(&job);
  pl_arena_release(&arena);
  return code;
}

int pl_cmd_diagnose(int argc, char **argv) {
  static const struct argp argp = {.options = option_table,
                                   .parser = read_option,
                                   .args_doc = "FILE",
                                   .doc = "Where the time of a recorded step goes: the critical path over all ranks, "
                                          "what each rank computed and waited "
                                          "for, stragglers, and the changes that would pay most.\v"
                                          "FILE is a job file, as paceline trace import makes it.\n\n"
                                          "Example:\n  paceline diagnose job.h5 -o report.html"};
  diagnose_options options = {.step = INT64_MIN};
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("diagnose", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK) code = run(&options, &error);
  return pl_command_finish("diagnose", code == PL_OK ? 0 : pl_command_report("diagnose", &error));
}
