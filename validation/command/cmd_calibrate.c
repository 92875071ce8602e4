/* `paceline calibrate`: profiles from measurements. Each kind of measurement is a file of its own. */
#include "validation/command/cmd_calibrate.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "search/parallel/ranks.h"
#include "validation/command/calibrate_collectives.h"
#include "validation/command/calibrate_gemm.h"
#include "validation/command/calibrate_kernels.h"
#include "validation/command/calibrate_machine.h"
#include "validation/command/calibrate_residuals.h"
#include "validation/command/calibrate_runs.h"
#include "validation/command/calibrate_sites.h"
#include "validation/command/calibrate_suggest.h"
#include "validation/command/calibrate_training.h"

enum {
  KEY_COLLECTIVES = 'c',
  KEY_PLATFORM = 'p',
  KEY_PROFILE = 'f',
  KEY_OUTPUT = 'o',
  KEY_GEMM = 'g',
  KEY_BASE = 'b',
  KEY_ATTENTION = 'a',
  KEY_KERNELS = 'k',
  KEY_CONVOLUTIONS = 'v',
  KEY_CHECK = 0x200,
  KEY_FORCE,
  KEY_GPU,
  KEY_DTYPE,
  KEY_MULTIPROCESSORS,
  KEY_PROVENANCE,
  KEY_TRANSFER,
  KEY_TRAINING,
  KEY_SOURCE,
  KEY_SUSTAINED_LIKE,
  KEY_RESIDUALS,
  KEY_SITES,
  KEY_RUNS,
  KEY_FRAMEWORK,
  KEY_SUGGEST,
  KEY_MODEL,
  KEY_GBS,
  KEY_SEQ,
  KEY_THIS_MACHINE,
  KEY_THOROUGH
};

typedef struct calibrate_options {
  pl_calibrate_collectives collectives;
  pl_calibrate_gemm gemm;
  pl_calibrate_kernels kernels;
  pl_calibrate_training training;
  pl_calibrate_residuals residuals;
  pl_calibrate_sites sites;
  pl_calibrate_runs runs;
  pl_calibrate_suggest suggest;
  pl_calibrate_machine machine;
  const char *output;
  pl_error error;
} calibrate_options;

static const struct argp_option option_table[] = {
    {"collectives", KEY_COLLECTIVES, "CSV", 0, "measured collectives: op, n_gpus, size_bytes, time_us, ...", 0},
    {"platform", KEY_PLATFORM, "FILE", 0,
     "the machines of collectives that name no platform; with --runs those of every row; with --suggest the machines",
     0},
    {"profile", KEY_PROFILE, "FILE", 0,
     "collective profile whose entries are fitted (default: the one that comes with Paceline)", 0},
    {"check", KEY_CHECK, NULL, 0, "fit nothing: say how far the profile is off", 0},
    {"gemm", KEY_GEMM, "CSV", 0,
     "timings of matrix products: dtype, m, n, k, time, ...; perhaps compressed, may be given several times", 0},
    {"transfer", KEY_TRANSFER, "FILE", 0,
     "instead of --gemm, for a device without timings: the device profile of a relative, whose fits are taken over", 0},
    {"attention", KEY_ATTENTION, "CSV", 0, "timings of fused attention: device, kernel, pass, seq, heads, time_us, ...",
     0},
    {"kernels", KEY_KERNELS, "CSV", 0, "timings of memory-bound kernels: device, kind, pass, bytes, time_us, ...", 0},
    {"convolutions", KEY_CONVOLUTIONS, "CSV", 0,
     "timings of convolutions: device, dtype, pass, batch, channels, height, width, filters, ..., time_us", 0},
    {"training", KEY_TRAINING, "CSV", 0,
     "measured training steps as paceline validate reads them: what tensor cores sustain; may be given several times",
     0},
    {"source", KEY_SOURCE, "TEXT", 0,
     "with --training: take only rows whose source mentions this; may be given several times", 0},
    {"sustained-like", KEY_SUSTAINED_LIKE, "FILE", 0,
     "instead of --training, for a device without training steps: the device profile of a relative", 0},
    {"residuals", KEY_RESIDUALS, "FOLDER", 0,
     "what is left over by the profiles that come with Paceline, for prediction intervals: all tables of "
     "validation/calibration",
     0},
    {"runs", KEY_RUNS, "CSV", 0,
     "a few measured steps of one's own, as paceline validate reads them: the site, for --site of other commands", 0},
    {"suggest", KEY_SUGGEST, "N", 0,
     "which N runs of one's own would tell most about the best strategies; -o writes a table to fill in", 0},
    {"model", KEY_MODEL, "MODEL", 0, "with --suggest: as in paceline search", 0},
    {"gbs", KEY_GBS, "N", 0, "likewise: sequences per iteration", 0},
    {"seq", KEY_SEQ, "N", 0, "likewise: sequence length (default: the model's)", 0},
    {"framework", KEY_FRAMEWORK, "NAME", 0,
     "with --suggest; and with --runs, of every row (default: as each row's column says)", 0},
    {"sites", KEY_SITES, "CSV", 0,
     "how sites differ and what a few runs of one are worth, from the table that paceline validate writes with "
     "--sensitivities",
     0},
    {"this-machine", KEY_THIS_MACHINE, NULL, 0,
     "measure this machine instead: a platform of one device for each rank that mpirun started, into the folder that "
     "-o "
     "names, for paceline run",
     0},
    {"thorough", KEY_THOROUGH, NULL, 0, "with --this-machine: more sizes", 0},
    {"base", KEY_BASE, "FILE", 0,
     "the device profile that a fit goes into; the rest of it is kept (for products: default is the profile of the GPU "
     "that the timings name)",
     0},
    {"gpu", KEY_GPU, "NAME", 0, "with --gemm: take only rows with this in the column gpu", 0},
    {"dtype", KEY_DTYPE, "LIST", 0, "with --gemm: take only rows of these data types, bf16,fp8", 0},
    {"multiprocessors", KEY_MULTIPROCESSORS, "N", 0,
     "with --gemm: of the device (default: the column of that name, else what the base says)", 0},
    {"provenance", KEY_PROVENANCE, "TEXT", 0,
     "of a device profile: where the timings come from (default: the names of the files)", 0},
    {"output", KEY_OUTPUT, "FILE", 0, "where to write the fitted profile; of a device and without it: only the report",
     0},
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
    options->collectives.platform = options->runs.platform = options->suggest.platform = value;
    return 0;
  case KEY_PROFILE:
    options->collectives.profile = value;
    return 0;
  case KEY_OUTPUT:
    options->output = options->collectives.output = options->gemm.output = options->kernels.output = value;
    options->training.output = options->residuals.output = options->sites.output = options->runs.output =
        options->suggest.output = value;
    options->machine.output = value;
    return 0;
  case KEY_CHECK:
    options->collectives.check = true;
    return 0;
  case KEY_FORCE:
    options->collectives.force = options->gemm.force = options->kernels.force = options->training.force = true;
    options->residuals.force = options->sites.force = options->runs.force = options->machine.force =
        options->suggest.force = true;
    return 0;
  case KEY_GEMM:
    if (options->gemm.n_rows < PL_CALIBRATE_FILES_MAX) options->gemm.rows[options->gemm.n_rows] = value;
    options->gemm.n_rows++;
    return 0;
  case KEY_TRANSFER:
    options->gemm.transfer = value;
    return 0;
  case KEY_THIS_MACHINE:
    options->machine.wanted = true;
    return 0;
  case KEY_THOROUGH:
    options->machine.thorough = true;
    return 0;
  case KEY_RESIDUALS:
    options->residuals.folder = value;
    return 0;
  case KEY_RUNS:
    options->runs.rows = value;
    return 0;
  case KEY_FRAMEWORK:
    options->runs.framework = options->suggest.framework = value;
    return 0;
  case KEY_SUGGEST:
    pl_parse_integer(value, "--suggest", 1, PL_SUGGEST_MOST, &options->suggest.n, &options->error);
    return 0;
  case KEY_MODEL:
    options->suggest.model = value;
    return 0;
  case KEY_GBS:
    pl_parse_integer(value, "--gbs", 1, INT32_MAX, &options->suggest.gbs, &options->error);
    return 0;
  case KEY_SEQ:
    pl_parse_integer(value, "--seq", 1, INT32_MAX, &options->suggest.seq, &options->error);
    return 0;
  case KEY_SITES:
    options->sites.rows = value;
    return 0;
  case KEY_BASE:
    options->gemm.base = options->kernels.base = options->training.base = value;
    return 0;
  case KEY_TRAINING:
    if (options->training.n_rows < PL_CALIBRATE_TRAINING_MAX) options->training.rows[options->training.n_rows] = value;
    options->training.n_rows++;
    return 0;
  case KEY_SOURCE:
    if (options->training.n_sources < PL_CALIBRATE_TRAINING_MAX)
      options->training.sources[options->training.n_sources] = value;
    options->training.n_sources++;
    return 0;
  case KEY_SUSTAINED_LIKE:
    options->training.relative = value;
    return 0;
  case KEY_ATTENTION:
    options->kernels.attention = value;
    return 0;
  case KEY_KERNELS:
    options->kernels.kernels = value;
    return 0;
  case KEY_CONVOLUTIONS:
    options->kernels.convolutions = value;
    return 0;
  case KEY_GPU:
    options->gemm.gpu = value;
    return 0;
  case KEY_DTYPE:
    options->gemm.dtypes = value;
    return 0;
  case KEY_MULTIPROCESSORS:
    options->gemm.multiprocessors = value;
    return 0;
  case KEY_PROVENANCE:
    options->gemm.provenance = options->kernels.provenance = options->training.provenance = value;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* Where the collective profile goes when -o names a device profile: platforms have one folder for each,
 * devices/NAME.json and collectives/NAME.json; elsewhere it is NAME-collectives.json beside it. */
static const char *collectives_beside(const char *output, pl_arena *arena) {
  static const char devices[] = "devices/";
  const char *slash = strrchr(output, '/'), *name = slash != NULL ? slash + 1 : output;
  size_t folder = (size_t)(name - output), stem = strlen(name), own = sizeof devices - 1;
  if (folder >= own && strncmp(name - own, devices, own) == 0 && (folder == own || name[-(ptrdiff_t)own - 1] == '/'))
    return pl_arena_printf(arena, "%.*scollectives/%s", (int)(folder - own), output, name);
  if (stem > 5 && strcmp(name + stem - 5, ".json") == 0) stem -= 5;
  return pl_arena_printf(arena, "%.*s%.*s-collectives.json", (int)folder, output, (int)stem, name);
}

/* What was asked for. A device profile's sections are fitted one upon the other: matrix products, kernels, then
 * training steps. */
typedef struct kinds {
  bool gemm, kernels, training, collectives, residuals;
} kinds;

static kinds find_kinds(const calibrate_options *o) {
  return (kinds){.gemm = o->gemm.n_rows > 0 || o->gemm.transfer != NULL,
                 .kernels =
                     o->kernels.attention != NULL || o->kernels.kernels != NULL || o->kernels.convolutions != NULL,
                 .training = o->training.n_rows > 0 || o->training.relative != NULL,
                 .collectives = o->collectives.rows != NULL,
                 .residuals = o->residuals.folder != NULL};
}

enum { LIST_BYTES = 192 };

static bool concerns_sites(const calibrate_options *options) {
  return options->sites.rows != NULL || options->runs.rows != NULL || options->suggest.n > 0;
}

/* "--kernels, --residuals": of the tables that are given those that have no part in a run of `own`; "": none. */
static const char *list_others(const calibrate_options *o, const char *own, char *text, size_t size) {
  const struct {
    const char *name;
    bool is_given;
  } given[] = {{"--suggest", o->suggest.n > 0},
               {"--runs", o->runs.rows != NULL},
               {"--sites", o->sites.rows != NULL},
               {"--gemm", o->gemm.n_rows > 0},
               {"--transfer", o->gemm.transfer != NULL},
               {"--attention", o->kernels.attention != NULL},
               {"--kernels", o->kernels.kernels != NULL},
               {"--convolutions", o->kernels.convolutions != NULL},
               {"--training", o->training.n_rows > 0},
               {"--sustained-like", o->training.relative != NULL},
               {"--collectives", o->collectives.rows != NULL},
               {"--residuals", o->residuals.folder != NULL},
               {"--check", o->collectives.check}};
  size_t length = 0;
  text[0] = '\0';
  for (size_t i = 0; i < sizeof given / sizeof given[0] && length < size; i++)
    if (given[i].is_given && strcmp(given[i].name, own) != 0)
      length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", given[i].name);
  return text;
}

static pl_code check_site(const calibrate_options *options, bool others, pl_error *error) {
  bool sites = options->sites.rows != NULL, runs = options->runs.rows != NULL, suggest = options->suggest.n > 0;
  const pl_calibrate_suggest *s = &options->suggest;
  if (!suggest && (s->model != NULL || s->gbs > 0 || s->seq > 0))
    return pl_fail(error, PL_BAD_INPUT, "--model, --gbs and --seq say what --suggest N is for; leave them out");
  if (s->framework != NULL && !runs && !suggest)
    return pl_fail(error, PL_BAD_INPUT, "--framework is of --runs and --suggest; leave it out");
  if (sites + runs + suggest + others <= 1 || (!sites && !runs && !suggest)) return PL_OK;
  const char *own = suggest ? "--suggest" : runs ? "--runs" : "--sites";
  char list[LIST_BYTES];
  return pl_fail(
      error, PL_BAD_INPUT, "%s has a run of its own: leave out %s%s", own, list_others(options, own, list, sizeof list),
      sites && (runs || suggest) ? " (the table of validate --sensitivities; what --runs writes, others take by --site)"
                                 : "");
}

static pl_code check_kinds(const calibrate_options *options, const kinds *k, pl_error *error) {
  bool device = k->gemm || k->kernels || k->training;
  bool others = device || k->collectives || k->residuals || options->collectives.check || concerns_sites(options);
  char list[LIST_BYTES];
  if (options->machine.thorough && !options->machine.wanted)
    return pl_fail(error, PL_BAD_INPUT, "--thorough is for --this-machine");
  if (options->machine.wanted)
    return others ? pl_fail(error, PL_BAD_INPUT,
                            "--this-machine measures and fits in one: it has a run of its own; leave out %s",
                            list_others(options, "--this-machine", list, sizeof list))
                  : PL_OK;
  if (k->residuals && (device || k->collectives || options->collectives.check))
    return pl_fail(error, PL_BAD_INPUT, "--residuals fits nothing and has a run of its own; leave out %s",
                   list_others(options, "--residuals", list, sizeof list));
  PL_TRY(check_site(options, device || k->collectives || k->residuals || options->collectives.check, error));
  if (concerns_sites(options)) return PL_OK;
  if (!device && !k->collectives && !k->residuals)
    return pl_fail(
        error, PL_BAD_INPUT,
        "nothing to calibrate: say --runs CSV or --suggest N (a site of one's own), --collectives CSV, --gemm CSV, "
        "--attention CSV, --kernels CSV, --convolutions CSV, --training CSV, --residuals FOLDER or "
        "--this-machine");
  if (k->gemm + k->kernels + k->training > 1)
    return pl_fail(error, PL_BAD_INPUT,
                   "--%s has a run of its own: then the profile that it writes is the --base of the other run",
                   k->gemm ? "gemm" : "training");
  if (options->collectives.check && (device || options->output != NULL))
    return pl_fail(error, PL_BAD_INPUT, "--check fits nothing%s; leave one of them out",
                   device ? ", and without -o the others only report" : " that -o could write");
  return PL_OK;
}

static pl_code calibrate_device(const calibrate_options *options, const kinds *k, pl_error *error) {
  if (k->gemm) return pl_calibrate_gemm_run(&options->gemm, error);
  if (k->kernels) return pl_calibrate_kernels_run(&options->kernels, error);
  return k->training ? pl_calibrate_training_run(&options->training, error) : PL_OK;
}

/* Two files: both are looked at before either is written. */
static pl_code calibrate_both(calibrate_options *options, const kinds *k, pl_arena *arena, pl_error *error) {
  if (options->output != NULL) {
    options->collectives.output = collectives_beside(options->output, arena);
    if (options->collectives.output == NULL) return pl_fail_memory(error, "a file name");
    PL_TRY(pl_output_file_check(options->output, options->gemm.force, error));
  }
  PL_TRY(pl_calibrate_collectives_run(&options->collectives, error));
  if (options->output != NULL) printf("\nwritten to %s\n", options->collectives.output);
  putchar('\n');
  return calibrate_device(options, k, error);
}

static pl_code calibrate(calibrate_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  kinds k = find_kinds(options);
  PL_TRY(check_kinds(options, &k, error));
  if (options->machine.wanted) return PL_OK;
  if (options->sites.rows != NULL) return pl_calibrate_sites_run(&options->sites, error);
  if (options->suggest.n > 0) return pl_calibrate_suggest_run(&options->suggest, error);
  if (options->runs.rows != NULL) return pl_calibrate_runs_run(&options->runs, error);
  if (k.residuals) return pl_calibrate_residuals_run(&options->residuals, error);
  if (!k.collectives) return calibrate_device(options, &k, error);
  if (!k.gemm && !k.kernels && !k.training) return pl_calibrate_collectives_run(&options->collectives, error);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate_both(options, &k, &arena, error);
  pl_arena_release(&arena);
  return code;
}

int pl_cmd_calibrate(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc =
          "Fits profiles to measurements and prints how far they are off, also on what was kept out of the fit.\v"
          "Measured collectives are rows of a CSV file with the columns op, n_gpus, size_bytes (of the full buffer, "
          "as nccl-tests counts) and time_us; n_nodes, platform, members, system and role (fit or check) may be "
          "there too. Every fourth row is kept out of the fit, and systems whose role is check.\n\n"
          "Timings of matrix products have the columns dtype, m, n, k and time (with its unit; or time_s, time_ms, "
          "time_us), and perhaps gpu, batch and multiprocessors; validation/collect has a script that takes them. One "
          "shape of five is kept out of the fit.\n\n"
          "With both, -o names the device profile, and the collective profile is written to collectives/NAME.json "
          "beside the folder devices, or else to NAME-collectives.json beside it.\n\n"
          "Timings of attention have the columns device, multiprocessors, kernel, pass, mask, window, batch, seq, "
          "heads, "
          "kv_heads, head_size, cached and time_us, those of memory-bound kernels device, kind, pass, bytes, "
          "host_bound "
          "and time_us; rows of other devices than the base are passed over (validation/calibration/README.md). One "
          "row "
          "of five is kept out of the fit.\n\n"
          "Training steps are tables as paceline validate reads them (validation/README.md); taken are those on one "
          "machine of the base's GPU, one of five kept out of the fit.\n\n"
          "--this-machine runs small programs on this machine's processor, as many at once as there are ranks, and "
          "writes "
          "a platform file with a device profile and a collective profile.\n\n"
          "Example:\n"
          "  mpirun -n 2 paceline calibrate --this-machine -o here\n"
          "  paceline calibrate --collectives mine.csv --platform mine.xml -o collectives/nccl.json\n"
          "  paceline calibrate --collectives validation/calibration/collectives.csv.gz --check\n"
          "  paceline calibrate --gemm gemm.csv --base platforms/devices/A100-SXM4-80GB.json -o mine.json\n"
          "  paceline calibrate --gemm gemm.csv --collectives nccl.csv -o platforms/devices/mygpu.json\n"
          "  paceline calibrate --attention attention.csv --kernels kernels.csv --base mine.json -o mine.json --force\n"
          "  paceline calibrate --training runs.csv --base mine.json -o mine.json --force"};
  calibrate_options options = {0};
  pl_error error = PL_ERROR_INIT;
  bool silent = pl_ranks_must_be_silent();
  pl_code code = pl_command_line_parse("calibrate", &argp, argc, argv, silent, &options, &error);
  if (silent && (code != PL_OK || !options.machine.wanted)) return pl_code_exit_status(code);
  if (code == PL_OK) code = calibrate(&options, &error);
  if (silent && code != PL_OK) return pl_code_exit_status(code);
  if (code == PL_OK && options.machine.wanted) return pl_calibrate_machine_run(&options.machine);
  return pl_command_finish("calibrate", code == PL_OK ? 0 : pl_command_report("calibrate", &error));
}
