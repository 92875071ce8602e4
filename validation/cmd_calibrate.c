/* `paceline calibrate`: profiles from measurements. Each kind of measurement is a file of its own. */
#include "validation/cmd_calibrate.h"

#include "core/command.h"
#include "core/command_line.h"
#include "validation/calibrate_collectives.h"

enum { KEY_COLLECTIVES = 'c', KEY_PLATFORM = 'p', KEY_PROFILE = 'f', KEY_OUTPUT = 'o', KEY_CHECK = 0x200, KEY_FORCE };

typedef struct calibrate_options {
  pl_calibrate_collectives collectives;
  pl_error error;
} calibrate_options;

static const struct argp_option option_table[] = {
    {"collectives", KEY_COLLECTIVES, "CSV", 0, "measured collectives: op, n_gpus, size_bytes, time_us, ...", 0},
    {"platform", KEY_PLATFORM, "FILE", 0, "the machines of rows that name no platform", 0},
    {"profile", KEY_PROFILE, "FILE", 0,
     "collective profile whose entries are fitted (default: the one that comes with Paceline)", 0},
    {"check", KEY_CHECK, NULL, 0, "fit nothing: say how far the profile is off", 0},
    {"output", KEY_OUTPUT, "FILE", 0, "where to write the fitted profile", 0},
    {"force", KEY_FORCE, NULL, 0, "replace an existing file", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  calibrate_options *options = state->input;
  switch (key) {
  case KEY_COLLECTIVES:
    options->collectives.rows = value;
    return 0;
  case KEY_PLATFORM:
    options->collectives.platform = value;
    return 0;
  case KEY_PROFILE:
    options->collectives.profile = value;
    return 0;
  case KEY_OUTPUT:
    options->collectives.output = value;
    return 0;
  case KEY_CHECK:
    options->collectives.check = true;
    return 0;
  case KEY_FORCE:
    options->collectives.force = true;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static pl_code calibrate(const calibrate_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->collectives.rows == NULL)
    return pl_fail(error, PL_BAD_INPUT, "nothing to calibrate: say --collectives CSV");
  if (options->collectives.check && options->collectives.output != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--check fits nothing that -o could write; leave one of them out");
  return pl_calibrate_collectives_run(&options->collectives, error);
}

int pl_cmd_calibrate(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc = "Fits profiles to measurements and prints how far they are off, also on what was kept out of the fit.\v"
             "Measured collectives are rows of a CSV file with the columns op, n_gpus, size_bytes (of the full buffer, "
             "as nccl-tests counts) and time_us; n_nodes, platform, members, system and role (fit or check) may be "
             "there too. Every fourth row is kept out of the fit, and systems whose role is check.\n\n"
             "Example:\n"
             "  paceline calibrate --collectives mine.csv --platform mine.xml -o collectives/nccl.json\n"
             "  paceline calibrate --collectives validation/calibration/collectives.csv.gz --check"};
  calibrate_options options = {0};
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("calibrate", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK) code = calibrate(&options, &error);
  return pl_command_finish("calibrate", code == PL_OK ? 0 : pl_command_report("calibrate", &error));
}
