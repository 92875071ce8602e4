/* See search/optimize/cmd_optimize.h. */
#include "search/optimize/cmd_optimize.h"

#include <argp.h>
#include <omp.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/data_folder.h"
#include "core/system/output_file.h"
#include "netmodel/device/device_profile.h"
#include "search/optimize/other_steps.h"
#include "search/optimize/plan_report.h"
#include "search/trace/replay_session.h"

enum {
  KEY_FORCE = 'f',
  KEY_STEP = 0x500,
  KEY_PASSES,
  KEY_COSTS,
  KEY_METHOD,
  KEY_SEED,
  KEY_TRIES,
  KEY_THREADS,
  KEY_DEVICE,
  KEY_BUDGET,
  KEY_COPIES,
  KEY_PASS,
  KEY_FUSE,
  KEY_JSON = 'j'
};

typedef struct own_options {
  const char *path, *output, *costs, *method, *device, *fuses;
  const char *objects[PL_PASS_MOST_OBJECTS];
  uint32_t n_objects;
  double budget_bytes;
  char *passes;
  int64_t step, seed, tries, threads, copies;
  bool json, force;
  pl_error error;
} own_options;

static const struct argp_option option_table[] = {
    {"output", 'o', "FILE", 0, "write the plan as JSON", 0},
    {"force", KEY_FORCE, NULL, 0, "replace FILE", 0},
    {"passes", KEY_PASSES, "LIST", 0,
     "what may be changed, comma-separated: op-fusion, tensor-fusion, tensor-partition, recompute, accumulate, "
     "mixed-precision (default: tensor-fusion)",
     0},
    {"op-cost", KEY_COSTS, "FILE", 0,
     "CSV of what the trace cannot say: columns ops, time_s (fused ops, by their names with '+'; (launch); (message)), "
     "half_time_s, activation_bytes, read_by",
     0},
    {"fuse", KEY_FUSE, "PATTERN", 0, "op-fusion: only ops whose names fit this shell pattern (default: all)", 0},
    {"device", KEY_DEVICE, "NAME", 0, "mixed-precision: the device whose peaks say what fp16 is worth", 0},
    {"memory-budget", KEY_BUDGET, "BYTES", 0, "recompute, accumulate: what a rank may hold (16GiB)", 0},
    {"state-copies", KEY_COPIES, "N", 0,
     "likewise: how many times the gradients' bytes weights, gradients and the optimizer hold (default 4)", 0},
    {"pass", KEY_PASS, "FILE.so", 0, "a pass of your own, behind the others (search/optimize/pass_interface.h)", 0},

    {"method", KEY_METHOD, "NAME", 0, "walk (default: along the critical path) or anneal (the walk, then annealing)",
     0},
    {"seed", KEY_SEED, "N", 0, "seed of annealing (default 1)", 0},
    {"tries", KEY_TRIES, "N", 0, "tries of each of the eight runs of annealing (default 1000)", 0},
    {"threads", KEY_THREADS, "N", 0, "threads of annealing (default: the cores); the plan is the same", 0},
    {"step", KEY_STEP, "N", 0, "the step with this number (default: that of the median length)", 0},
    {"json", KEY_JSON, NULL, 0, "print the plan", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  own_options *options = state->input;
  switch (key) {
  case 'o':
    options->output = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_PASSES:
    options->passes = value;
    return 0;
  case KEY_COSTS:
    options->costs = value;
    return 0;
  case KEY_FUSE:
    options->fuses = value;
    return 0;
  case KEY_DEVICE:
    options->device = value;
    return 0;
  case KEY_BUDGET:
    pl_parse_bytes(value, "--memory-budget", &options->budget_bytes, &options->error);
    return 0;
  case KEY_COPIES:
    pl_parse_integer(value, "--state-copies", 1, 100, &options->copies, &options->error);
    return 0;
  case KEY_PASS:
    if (options->n_objects == PL_PASS_MOST_OBJECTS)
      pl_fail(&options->error, PL_BAD_INPUT, "--pass: more than %d", PL_PASS_MOST_OBJECTS);
    else
      options->objects[options->n_objects++] = value;
    return 0;
  case KEY_METHOD:
    options->method = value;
    return 0;
  case KEY_SEED:
    pl_parse_integer(value, "--seed", 0, INT64_MAX, &options->seed, &options->error);
    return 0;
  case KEY_TRIES:
    pl_parse_integer(value, "--tries", 1, 1000000000, &options->tries, &options->error);
    return 0;
  case KEY_THREADS:
    pl_parse_integer(value, "--threads", 1, 1024, &options->threads, &options->error);
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

static pl_code store(const own_options *own, const pl_optimization *job, const pl_optimize_options *options,
                     pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, own->output, own->force, error));
  pl_plan_report_json(file.stream, own->path, job, options);
  PL_TRY(pl_output_file_close(&file, PL_OK, error));
  if (!own->json) pl_command_print_written(own->output, NULL);
  return PL_OK;
}

/* A name of a device that comes with Paceline, or a file. */
static pl_code load_device(const char *choice, pl_arena *arena, pl_device_profile *device, pl_error *error) {
  const char *path, *folder = pl_data_path("platforms/devices", arena);
  PL_TRY(pl_data_choose(choice, "platforms/devices", ".json", arena, &path, error));
  if (path != NULL) return pl_device_profile_load(path, arena, device, error);
  pl_data_names list = {0};
  if (folder != NULL) pl_data_names_add(&list, folder, ".json", arena);
  const char **names = PL_TAKE(arena, const char *, list.n + 1);
  if (folder == NULL || names == NULL) return pl_fail_memory(error, "a device");
  if (list.n > 0) memcpy(names, list.names, list.n * sizeof *names);
  return pl_data_refuse(choice, "a device", names, "paceline list devices", error);
}

static pl_code fit_messages(const pl_replay_session *session, pl_optimize_options *options, pl_arena *arena,
                            pl_error *error) {
  pl_arena scratch;
  pl_trace_fits *fits = PL_TAKE(arena, pl_trace_fits, 1);
  if (fits == NULL) return pl_fail_memory(error, "the messages of a job");
  pl_arena_init(&scratch, 0);
  pl_code code = pl_replay_session_fit(session, &scratch, fits, error);
  pl_arena_release(&scratch);
  options->fits = fits;
  return code;
}

static pl_code optimize(const own_options *own, pl_optimize_options *options, pl_replay_session *session,
                        pl_arena *arena, pl_error *error) {
  uint32_t step;
  pl_trace_replay replay;
  pl_optimization job;
  pl_op_costs *costs = PL_TAKE(arena, pl_op_costs, 1);
  pl_device_profile *device = PL_TAKE(arena, pl_device_profile, 1);
  if (arena->failed) return pl_fail_memory(error, "what a plan is priced with");
  if (own->device != NULL) {
    PL_TRY(load_device(own->device, arena, device, error));
    options->device = device;
  }
  if (own->costs != NULL) {
    PL_TRY(pl_op_costs_load(own->costs, arena, costs, error));
    options->costs = costs;
  }
  PL_TRY(pl_replay_session_open(own->path, session, error));
  PL_TRY(pl_replay_session_step(session, own->path, own->step, &step, error));
  PL_TRY(fit_messages(session, options, arena, error));
  PL_TRY(pl_replay_session_take(session, step, arena, &replay, error));
  PL_TRY(pl_optimize(&replay, &session->steps, options, arena, &job, error));
  PL_TRY(pl_other_steps_play(session, options, arena, &job, error));
  if (own->json)
    pl_plan_report_json(stdout, own->path, &job, options);
  else
    pl_plan_report_text(stdout, &job, options);
  return own->output != NULL ? store(own, &job, options, error) : PL_OK;
}

static pl_code open_objects(const own_options *own, pl_pass_object *objects, pl_error *error) {
  for (uint32_t k = 0; k < own->n_objects; k++)
    PL_TRY(pl_pass_object_open(own->objects[k], &objects[k], error));
  return PL_OK;
}

static pl_code run(own_options *own, pl_error *error) {
  pl_optimize_options options = {.passes = {{false}}};
  char usual[] = "tensor-fusion";
  if (own->error.code != PL_OK) return pl_fail(error, own->error.code, "%s", own->error.message);
  if (own->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which job file? paceline optimize job.h5");
  bool anneal = own->method != NULL && strcmp(own->method, "anneal") == 0;
  if (own->method != NULL && !anneal && strcmp(own->method, "walk") != 0)
    return pl_fail(error, PL_BAD_INPUT, "--method: '%.60s' is neither walk nor anneal", own->method);
  PL_TRY(pl_pass_list_parse(own->passes != NULL ? own->passes : usual, &options.passes, error));
  options.search = (pl_plan_options){.anneal = anneal,
                                     .seed = (uint64_t)own->seed,
                                     .n_runs = 8,
                                     .n_tries = (uint32_t)own->tries,
                                     .n_threads = own->threads > 0 ? (int)own->threads : omp_get_num_procs()};
  if (own->output != NULL) {
    PL_TRY(pl_output_file_check(own->output, own->force, error));
    PL_TRY(pl_command_refuse_input(own->output, own->path, error));
    if (own->costs != NULL) PL_TRY(pl_command_refuse_input(own->output, own->costs, error));
  }
  pl_replay_session session = {.meetings = {.n = 0}};
  pl_arena arena;
  pl_trace_init(&session.trace);
  pl_arena_init(&arena, 0);
  pl_pass_object objects[PL_PASS_MOST_OBJECTS] = {{.path = NULL}};
  options.fuses = own->fuses;
  options.objects = objects;
  options.n_objects = own->n_objects;
  options.memory = (pl_memory_options){.budget_bytes = own->budget_bytes, .state_copies = own->copies};
  pl_code code = open_objects(own, objects, error);
  if (code == PL_OK) code = optimize(own, &options, &session, &arena, error);
  for (uint32_t k = 0; k < own->n_objects; k++)
    pl_pass_object_close(&objects[k]);
  pl_replay_session_release(&session);
  pl_arena_release(&arena);
  return code;
}

int pl_cmd_optimize(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "FILE",
      .doc = "What would make a recorded step shorter: which gradients to synchronise together, in which pieces, "
             "which ops to fuse; every change is replayed before it is taken.\v"
             "FILE is a job file, as paceline trace import makes it.\n\n"
             "Example:\n  paceline optimize job.h5 --passes tensor-fusion -o plan.json"};
  own_options options = {.step = INT64_MIN, .seed = 1, .tries = 1000, .budget_bytes = -1, .copies = 4};
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("optimize", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK) code = run(&options, &error);
  return pl_command_finish("optimize", code == PL_OK ? 0 : pl_command_report("optimize", &error));
}
