/* `paceline trace`. See search/trace/cmd_trace.h. */
#include "search/trace/cmd_trace.h"

#include <argp.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "search/trace/job_file.h"
#include "search/trace/trace_report.h"
#include "workloads/formats/import.h"

enum { KEY_FORCE = 'f', KEY_PER_HOST = 0x500, KEY_OPS, KEY_QUIET = 'q', KEY_JSON = 'j' };

typedef struct trace_options {
  const char *path, *output;
  bool force, quiet, json;
  int64_t ranks_per_host, n_ops;
  pl_error error;
} trace_options;

static const struct argp_option import_table[] = {
    {"output", 'o', "FILE", 0, "the job file to write (HDF5)", 0},
    {"force", KEY_FORCE, NULL, 0, "replace FILE", 0},
    {"ranks-per-host", KEY_PER_HOST, "N", 0,
     "ranks 0 to N-1 ran on one host, and so on: they share a clock (default: those in a folder of their own do)", 0},
    {"quiet", KEY_QUIET, NULL, 0, "show no progress", 0},
    {0},
};

static const struct argp_option check_table[] = {
    {"ops", KEY_OPS, "N", 0, "also the N ops that took most time, averaged over the steps, with their spread", 0},
    {"json", KEY_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  trace_options *options = state->input;
  switch (key) {
  case 'o':
    options->output = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_QUIET:
    options->quiet = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_OPS:
    pl_parse_integer(value, "--ops", 1, 1 << 20, &options->n_ops, &options->error);
    return 0;
  case KEY_PER_HOST:
    pl_parse_integer(value, "--ranks-per-host", 1, 1 << 20, &options->ranks_per_host, &options->error);
    return 0;
  case ARGP_KEY_ARG:
    if (options->path != NULL) pl_command_line_refuse_argument(value, &options->error);
    options->path = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- import ---- */

typedef struct shown {
  const char *path;
  int percent;
} shown;

/* One line that is written over, and only where somebody looks. */
static void show_progress(void *context, const char *path, uint64_t done, uint64_t size) {
  shown *last = context;
  int percent = size == 0 ? 100 : (int)(done >= size ? 100 : done * 100 / size);
  if (last->path == path && last->percent == percent) return;
  *last = (shown){path, percent};
  const char *slash = strrchr(path, '/');
  fprintf(stderr, "\r\033[K%3d %% of %.60s", percent, slash != NULL ? slash + 1 : path);
  if (percent == 100) fputs("\r\033[K", stderr);
}

static pl_code import(trace_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "which traces? paceline trace import FOLDER -o job.h5");
  if (options->output == NULL) return pl_fail(error, PL_BAD_INPUT, "where to? give -o FILE");
  PL_TRY(pl_output_file_check(options->output, options->force, error));
  shown last = {NULL, 0};
  const pl_trace_progress progress = {show_progress, &last};
  bool show = !options->quiet && isatty(STDERR_FILENO);
  const pl_trace_import_options how = {options->ranks_per_host, show ? &progress : NULL};
  pl_trace trace;
  pl_trace_init(&trace);
  pl_code code = pl_trace_import(options->path, &how, &trace, error);
  if (code == PL_OK) code = pl_job_file_store(options->output, options->force, &trace, error);
  if (code == PL_OK) pl_trace_report_import(stdout, stderr, &trace, options->output);
  pl_trace_release(&trace);
  return code;
}

/* ---- check ---- */

static pl_code check(trace_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which job file? paceline trace check job.h5");
  pl_trace trace;
  pl_trace_init(&trace);
  pl_code code = pl_job_file_open(options->path, &trace, error);
  if (code == PL_OK) code = pl_trace_report_check(stdout, &trace, options->json, (uint32_t)options->n_ops, error);
  pl_trace_release(&trace);
  return code;
}

typedef struct action {
  const char *name;
  char program[32];
  struct argp argp;
  pl_code (*run)(trace_options *options, pl_error *error);
} action;

static const action actions[] = {
    {"import",
     "paceline trace import",
     {.options = import_table,
      .parser = read_option,
      .args_doc = "JOB",
      .doc = "Reads what each rank of a job recorded and writes it into one job file.\v"
             "JOB is a trace or a folder of them, one per rank: JSON of PyTorch's profiler (Kineto), with execution "
             "traces "
             "beside it if there are any, Chakra (.et), nsys' SQLite, folders of dPRO, Paceline's plain "
             "JSON (workloads/trace/README.md) or what it wrote for Perfetto, also gzipped.\n\n"
             "Example:\n  paceline trace import traces -o job.h5"},
     import},
    {"check",
     "paceline trace check",
     {.options = check_table,
      .parser = read_option,
      .args_doc = "FILE",
      .doc = "What is in a job file, what is missing, which messages found each other, and the clocks of the hosts.\v"
             "Exit status 2: the ranks part (they do different collectives at one place).\n\n"
             "Example:\n  paceline trace check job.h5"},
     check},
};

int pl_cmd_trace(int argc, char **argv) {
  static const char usage[] = "Usage: paceline trace import JOB -o FILE\n"
                              "  or:  paceline trace check FILE\n"
                              "What the ranks of a real job recorded, made into one job file. Each takes --help.\n"
                              "  import  reads what each rank recorded into one job file\n"
                              "  check   says what is in a job file and what is missing\n\n"
                              "Example:\n  paceline trace import traces -o job.h5\n";
  if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "-?") == 0)) {
    fputs(usage, stdout);
    return pl_command_finish("trace", 0);
  }
  for (size_t a = 0; argc >= 2 && a < sizeof actions / sizeof *actions; a++) {
    if (strcmp(argv[1], actions[a].name) != 0) continue;
    char program[32];
    memcpy(program, actions[a].program, sizeof program);
    argv[1] = program;
    trace_options options = {.path = NULL};
    pl_error error = PL_ERROR_INIT;
    const char *command = actions[a].program + strlen("paceline ");
    pl_code code = pl_command_line_parse(command, &actions[a].argp, argc - 1, argv + 1, false, &options, &error);
    if (code == PL_OK) code = actions[a].run(&options, &error);
    return pl_command_finish(command, code == PL_OK ? 0 : pl_command_report(command, &error));
  }
  pl_error error = PL_ERROR_INIT;
  pl_fail(&error, PL_BAD_INPUT, argc < 2 ? "say what to do: import or check" : "'%s' is neither import nor check",
          argc < 2 ? "" : argv[1]);
  return pl_command_report("trace", &error);
}
