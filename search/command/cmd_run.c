/* `paceline run`: a distributed program, run for real by the ranks that mpirun started. The phases, after each of which
 * the ranks agree: read and check, run, write (rank 0; nothing is written before). */
#include "search/command/cmd_run.h"

#include <malloc.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "netmodel/collective/collective_profile.h"
#include "netmodel/platform/platform.h"
#include "search/command/run_report.h"
#include "search/parallel/mpi_command.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/simulate_program.h"

enum {
  KEY_FORCE = 'f',
  KEY_ITERATIONS = 'n',
  KEY_WARMUP = 'w',
  KEY_PLATFORM = 'p',
  KEY_SEED = 'r',
  KEY_JSON = 'j',
  KEY_CSV = 0x500,
  KEY_OPS,
  KEY_DTYPE,
  KEY_PATIENCE,
  KEY_LEAST
};

static const struct argp_option option_table[] = {
    {"iterations", KEY_ITERATIONS, "N", 0, "iterations that count (default 20)", 0},
    {"warmup", KEY_WARMUP, "N", 0, "iterations in front that do not (default 3)", 0},
    {"csv", KEY_CSV, "FILE", 0, "write a row for 'paceline validate' into FILE", 0},
    {"least", KEY_LEAST, NULL, 0,
     "the time in the CSV is the least of the iterations, not their median: on a machine that others use too", 0},
    {"ops", KEY_OPS, "FILE", 0, "write the time of every op on every rank into FILE (CSV)", 0},
    {"platform", KEY_PLATFORM, "PLATFORM", 0,
     "predict it too: on a platform file, as 'paceline calibrate --this-machine' makes one", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "fp32 (default) or fp64: what is computed and sent, whatever the types say", 0},
    {"seed", KEY_SEED, "N", 0, "of weights and data (default 1)", 0},
    {"patience", KEY_PATIENCE, "TIME", 0, "give up when a rank has waited so long for others (default 300s; 0: never)",
     0},
    {"force", KEY_FORCE, NULL, 0, "replace files that exist", 0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON", 0},
    {0},
};

typedef struct run_request {
  const char *program, *csv, *ops, *platform, *dtype, *seed, *iterations, *warmup, *patience;
  bool json, force, least;
  pl_error error;
} run_request;

static error_t read_option(int key, char *value, struct argp_state *state) {
  run_request *own = state->input;
  const struct {
    int key;
    const char **text;
  } texts[] = {{KEY_CSV, &own->csv},       {KEY_OPS, &own->ops},          {KEY_PLATFORM, &own->platform},
               {KEY_DTYPE, &own->dtype},   {KEY_SEED, &own->seed},        {KEY_ITERATIONS, &own->iterations},
               {KEY_WARMUP, &own->warmup}, {KEY_PATIENCE, &own->patience}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (key == texts[i].key) {
      *texts[i].text = value;
      return 0;
    }
  switch (key) {
  case KEY_JSON:
    own->json = true;
    return 0;
  case KEY_FORCE:
    own->force = true;
    return 0;
  case KEY_LEAST:
    own->least = true;
    return 0;
  case ARGP_KEY_ARG:
    if (own->program != NULL) pl_command_line_refuse_argument(value, &own->error);
    own->program = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

typedef struct session {
  run_request in;
  pl_run_program_options options;
  pl_run_program_times times;
  pl_ir_module module;
  pl_arena arena;
  pl_interrupt interrupt;
} session;

static pl_code read_request(session *own, pl_error *error) {
  const run_request *in = &own->in;
  int64_t iterations = 20, warmup = 3, seed = 1;
  double patience_s = 300;
  if (in->program == NULL) return pl_fail(error, PL_BAD_INPUT, "which program? paceline run FILE.plir");
  if (in->iterations != NULL) PL_TRY(pl_parse_integer(in->iterations, "--iterations", 1, 100000, &iterations, error));
  if (in->warmup != NULL) PL_TRY(pl_parse_integer(in->warmup, "--warmup", 0, 100000, &warmup, error));
  if (in->seed != NULL) PL_TRY(pl_parse_integer(in->seed, "--seed", 0, INT64_MAX, &seed, error));
  if (in->patience != NULL && strcmp(in->patience, "0") == 0) {
    patience_s = 0;
  } else if (in->patience != NULL) {
    PL_TRY(pl_parse_time(in->patience, "--patience", &patience_s, error));
  }
  bool is_double = in->dtype != NULL && strcmp(in->dtype, "fp64") == 0;
  if (in->dtype != NULL && !is_double && strcmp(in->dtype, "fp32") != 0)
    return pl_fail(error, PL_BAD_INPUT, "--dtype '%s': processors compute in fp32 or fp64 here", in->dtype);
  own->options = (pl_run_program_options){.seed = (uint64_t)seed,
                                          .iterations = (int32_t)iterations,
                                          .warmup = (int32_t)warmup,
                                          .single = !is_double,
                                          .patience_s = patience_s};
  return PL_OK;
}

/* Rank 0: what is written can be. */
static pl_code check_files(const session *own, pl_error *error) {
  const char *const files[] = {own->in.csv, own->in.ops};
  if (files[0] != NULL && files[1] != NULL && strcmp(files[0], files[1]) == 0)
    return pl_fail(error, PL_BAD_INPUT, "--csv and --ops are both %s", files[0]);
  for (int i = 0; i < 2; i++) {
    if (files[i] == NULL) continue;
    PL_TRY(pl_command_refuse_input(files[i], own->in.program, error));
    if (own->in.platform != NULL) PL_TRY(pl_command_refuse_input(files[i], own->in.platform, error));
    PL_TRY(pl_output_file_check(files[i], own->in.force, error));
  }
  return PL_OK;
}

static pl_code load(session *own, MPI_Comm comm, pl_error *error) {
  PL_TRY(pl_ir_load(own->in.program, &own->arena, &own->module, error));
  PL_TRY(pl_ir_check(&own->module, error));
  PL_TRY(pl_run_program_check(&own->module, comm, error));
  return pl_rank(comm) == 0 ? check_files(own, error) : PL_OK;
}

static pl_code run(void *session_, MPI_Comm comm, pl_error *error) {
  session *own = session_;
  /* Values come and go by the thousand: their memory stays with the process instead of being mapped anew each time. */
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  load(own, comm, error);
  PL_TRY(pl_agree(comm, error));
  return pl_run_program(&own->module, &own->options, comm, &own->interrupt, &own->arena, &own->times, error);
}

/* ---- rank 0 ---- */

static pl_code predict(session *own, const pl_platform *platform, pl_run_report *report, pl_error *error) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_collective_profile profile;
  const char *path;
  pl_program_report predicted;
  PL_TRY(pl_collective_profile_path(NULL, own->in.platform, &own->arena, &path, error));
  if (path != NULL) {
    PL_TRY(pl_collective_profile_load(path, &own->arena, &profile, error));
    options.collective_profile = &profile;
  }
  report->cluster = pl_platform_cluster(platform);
  PL_TRY(pl_simulate_program(report->cluster, &own->module, NULL, &options, &own->arena, &predicted, error));
  report->predicted_s = predicted.iter_time_s;
  return PL_OK;
}

typedef pl_code (*writer)(const pl_run_report *report, FILE *stream, pl_arena *arena, pl_error *error);

static pl_code write_ops(const pl_run_report *report, FILE *stream, pl_arena *arena, pl_error *error) {
  (void)arena;
  return pl_run_write_ops(report, stream, error);
}

static pl_code write_file(session *own, const char *path, writer write, const pl_run_report *report, pl_error *error) {
  pl_output_file file = {0};
  if (path == NULL) return PL_OK;
  PL_TRY(pl_output_file_open(&file, path, own->in.force, error));
  return pl_output_file_close(&file, write(report, file.stream, &own->arena, error), error);
}

static pl_code report(session *own, const pl_platform *platform, pl_error *error) {
  pl_run_report made = {.program_path = own->in.program,
                        .csv_path = own->in.csv,
                        .ops_path = own->in.ops,
                        .platform_path = own->in.platform,
                        .module = &own->module,
                        .options = &own->options,
                        .least = own->in.least,
                        .times = &own->times,
                        .predicted_s = NAN};
  if (platform != NULL) PL_TRY(predict(own, platform, &made, error));
  PL_TRY(write_file(own, own->in.csv, pl_run_write_csv, &made, error));
  PL_TRY(write_file(own, own->in.ops, write_ops, &made, error));
  (own->in.json ? pl_run_print_json : pl_run_print)(&made);
  return PL_OK;
}

static pl_code print(void *session_, pl_error *error) {
  session *own = session_;
  pl_platform *platform = NULL;
  if (own->in.platform != NULL) PL_TRY(pl_platform_load(own->in.platform, NULL, &platform, error));
  pl_code code = report(own, platform, error);
  pl_platform_destroy(platform);
  return code;
}

int pl_cmd_run(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "FILE.plir",
      .doc =
          "Runs a distributed program for real: every MPI rank is one device of its mesh, computes its ops with "
          "OpenBLAS on one thread and meets the others by MPI's collectives and messages. Prints how long iterations "
          "take, and beside a platform of this machine how long they should.\v"
          "Example:\n"
          "  paceline program print --model tiny-gpt2 --gbs 8 \\\n"
          "    --strategy pp=1,dp=2,tmp=2,mbs=1 -o p.plir\n"
          "  mpirun -n 4 paceline run p.plir --iterations 5 --csv runs.csv"};
  session own = {.in = {.error = PL_ERROR_INIT}};
  pl_error error = PL_ERROR_INIT;
  bool silent = pl_ranks_must_be_silent();
  pl_arena_init(&own.arena, 0);
  char name[] = "paceline run";
  if (argc > 0) argv[0] = name;
  if (pl_command_line_parse("run", &argp, argc, argv, silent, &own.in, &error) == PL_OK && own.in.error.code != PL_OK)
    error = own.in.error;
  if (error.code == PL_OK) read_request(&own, &error);
  int status;
  own.interrupt = (pl_interrupt){.command = "run", .path = own.in.csv, .silent = silent};
  if (error.code != PL_OK) {
    status = silent ? pl_code_exit_status(error.code) : pl_command_report("run", &error);
  } else {
    const pl_mpi_command command = {
        .name = "run", .session = &own, .run = run, .print = print, .interrupt = &own.interrupt};
    status = pl_mpi_command_run(&command);
  }
  pl_arena_release(&own.arena);
  return status;
}
