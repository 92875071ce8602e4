/* See search/command/sweep_options.h. */
#include "search/command/sweep_options.h"

#include "core/system/command_line.h"

enum { KEY_FEATURES = 0x400, KEY_SKIP_OOM };

static const struct argp_option option_table[] = {
    {"features", KEY_FEATURES, NULL, 0,
     "write what a learned cost model needs, too: work, bytes and time by kind, shapes, loads of the stages", 3},
    {"skip-oom", KEY_SKIP_OOM, NULL, 0,
     "do not simulate what does not fit in memory: such rows have their memory and no times", 3},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_sweep_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->run;
    state->child_inputs[2] = &options->space;
    return 0;
  case KEY_FEATURES:
    options->features = true;
    return 0;
  case KEY_SKIP_OOM:
    options->skip_oom = options->job.simulate.skip_oom = true;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static pl_code judge(const pl_sweep_options *options, pl_error *error) {
  if (options->run.output == NULL || options->run.output[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "-o FILE is missing: where the results go");
  PL_TRY(pl_run_options_check(&options->run, error));
  if (options->job.simulate.network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED,
                   "--network simgrid: SimGrid's engine runs one strategy at a time; use paceline simulate");
  return PL_OK;
}

pl_code pl_sweep_options_parse(int argc, char **argv, bool silent, pl_sweep_options *options, pl_error *error) {
  const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0},
                                        {&pl_run_options_argp, 0, NULL, 0},
                                        {&pl_space_options_argp, 0, NULL, 0},
                                        {0}};
  const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc = "Simulates every valid parallelisation strategy of a model on a platform and writes all results to HDF5.\v"
             "Example:\n"
             "  mpirun -n 4 --bind-to none paceline sweep \\\n"
             "    --platform dgx-a100-16 \\\n"
             "    --model gpt3-175b --gbs 1536 --seq 2048 -o sweep.h5",
      .children = children};
  *options = (pl_sweep_options){0};
  pl_job_options_init(&options->job);
  options->run.error = &options->error;
  pl_space_options_init(&options->space, &options->error);
  PL_TRY(pl_command_line_parse("sweep", &argp, argc, argv, silent, options, error));
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  PL_TRY(pl_job_options_check(&options->job, error));
  pl_job_options_count_memory(&options->job);
  return judge(options, error);
}
