/* `paceline validate`: reads tables of measured training runs, simulates every configuration in them and says how far
 * off the predictions are. */
#include "validation/command/cmd_validate.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "validation/report/ablation.h"
#include "validation/report/assumptions.h"
#include "validation/report/report.h"
#include "validation/rows/case_columns.h"
#include "workloads/command/job_options.h"
#include "workloads/run/site_file.h"
#include "workloads/run/site_remains.h"

enum {
  KEY_FORCE = 'f',
  KEY_CSV = 0x300,
  KEY_JSON,
  KEY_THREADS,
  KEY_PROGRESS,
  KEY_DEVICES,
  KEY_FRAMEWORK,
  KEY_ALLOCATOR,
  KEY_OP_PROFILE,
  KEY_NETWORK,
  KEY_COLLECTIVE_PROFILE,
  KEY_HDF5,
  KEY_SVG,
  KEY_ABLATION,
  KEY_ASSUMPTIONS,
  KEY_SENSITIVITIES,
  KEY_SITE
};
enum { FILES_MAX = 256 };

typedef struct validate_options {
  pl_case_options run;
  pl_allocator_form allocator; /* that run.allocator points to */
  const char *op_profile_path, *site_path;
  const char *html_path, *svg_path, *csv_path, *hdf5_path;
  bool force, json, ablation, assumptions;
  const char *files[FILES_MAX];
  uint32_t n_files;
  pl_error error; /* first bad option */
} validate_options;

static const struct argp_option option_table[] = {
    {"platform", 'p', "FILE", 0, "simulate every row on this platform, not on the machines that it names", 0},
    {"devices", KEY_DEVICES, "FOLDER", 0, "folder of the device profiles (default: paceline's own)", 0},
    {"framework", KEY_FRAMEWORK, "NAME", 0,
     "what the training framework does, for every row: a name of workloads/frameworks/ or a file, or ideal (default: "
     "as "
     "each row's column says)",
     0},
    {"allocator", KEY_ALLOCATOR, "KIND", 0,
     "how memory beyond the tensors is found, for every row: exact, caching or expandable (as of paceline simulate; "
     "default: as each row's framework has it)",
     0},
    {"collective-profile", KEY_COLLECTIVE_PROFILE, "FILE", 0,
     "what collectives cost beyond the wires: a file, or ideal (default: Paceline's)", 0},
    {"site", KEY_SITE, "FILE", 0, "every row at this site (paceline calibrate --runs)", 0},
    {"op-profile", KEY_OP_PROFILE, "FILE", 0,
     "measured times of layers (CSV), for the rows that they are of; see workloads/cost/README.md", 0},
    {"network", KEY_NETWORK, "KIND", 0, "flow (default) or analytic (no contention)", 0},
    {"output", 'o', "FILE", 0, "write the report as an HTML page", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw the scatter plots alone", 0},
    {"csv", KEY_CSV, "FILE", 0, "write one line per configuration", 0},
    {"hdf5", KEY_HDF5, "FILE", 0, "write the same as HDF5, one dataset per column", 0},
    {"ablation", KEY_ABLATION, NULL, 0,
     "also without the overlap factor, without sharing and without both; and where sharing changes predictions", 0},
    {"assumptions", KEY_ASSUMPTIONS, NULL, 0,
     "also what was taken where rows say nothing (always in --csv, -o and --json)", 0},
    {"sensitivities", KEY_SENSITIVITIES, NULL, 0,
     "simulate each configuration eight times and write to --csv how its time moves with each figure of a site; what "
     "paceline calibrate --sites reads",
     0},
    {"json", KEY_JSON, NULL, 0, "print the tables as JSON", 0},
    {"force", KEY_FORCE, NULL, 0, "replace existing files", 0},
    {"threads", KEY_THREADS, "N", 0, "processes, or threads where all rows are on one platform (default: all cores)",
     0},
    {"progress", KEY_PROGRESS, NULL, 0, "say on stderr which platform is simulated", 0},
    {0},
};

static void add_file(validate_options *options, const char *path) {
  if (options->n_files == FILES_MAX)
    pl_fail(&options->error, PL_BAD_INPUT, "more than %d files", FILES_MAX);
  else
    options->files[options->n_files++] = path;
}

static void choose_allocator(validate_options *options, const char *value) {
  char list[PL_WORDS_BYTES];
  int found = pl_words_find(pl_allocator_names, value);
  options->allocator = (pl_allocator_form)found;
  options->run.allocator = &options->allocator;
  if (found < 0)
    pl_fail(&options->error, PL_BAD_INPUT, "--allocator: '%s' is unknown; choose one of %s", value,
            pl_words_list(pl_allocator_names, list, sizeof list));
}

static void choose_network(validate_options *options, const char *value) {
  int found = pl_words_find(pl_network_names, value);
  if (found == PL_NETWORK_FLOW || found == PL_NETWORK_ANALYTIC)
    options->run.network = (pl_network_kind)found;
  else
    pl_fail(&options->error, PL_BAD_INPUT, "--network: '%s' is neither flow nor analytic", value);
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  validate_options *options = state->input;
  int64_t n = 0;
  switch (key) {
  case 'p':
    options->run.platform_path = value;
    return 0;
  case KEY_DEVICES:
    options->run.profile_folder = value;
    return 0;
  case KEY_COLLECTIVE_PROFILE:
    options->run.collective_profile = value;
    return 0;
  case KEY_FRAMEWORK:
    options->run.framework = value;
    return 0;
  case KEY_ALLOCATOR:
    choose_allocator(options, value);
    return 0;
  case KEY_OP_PROFILE:
    options->op_profile_path = value;
    return 0;
  case KEY_NETWORK:
    choose_network(options, value);
    return 0;
  case KEY_CSV:
    options->csv_path = value;
    return 0;
  case 'o':
    options->html_path = value;
    return 0;
  case KEY_SVG:
    options->svg_path = value;
    return 0;
  case KEY_HDF5:
    options->hdf5_path = value;
    return 0;
  case KEY_ABLATION:
    options->ablation = true;
    return 0;
  case KEY_ASSUMPTIONS:
    options->assumptions = true;
    return 0;
  case KEY_SITE:
    options->site_path = value;
    return 0;
  case KEY_SENSITIVITIES:
    options->run.sensitivities = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_PROGRESS:
    options->run.progress = true;
    return 0;
  case KEY_THREADS:
    if (pl_parse_integer(value, "--threads", 1, 1024, &n, &options->error) == PL_OK)
      options->run.n_threads = (uint32_t)n;
    return 0;
  case ARGP_KEY_ARG:
    add_file(options, value);
    return 0;
  case ARGP_KEY_NO_ARGS:
    pl_fail(&options->error, PL_BAD_INPUT, "which measurements? %s FILE... (e.g. validation/measured/*.csv)",
            state->name);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- outputs: looked at before anything is simulated, written at the end ---- */

static pl_code check_output(const validate_options *options, const char *path, pl_error *error) {
  if (path == NULL) return PL_OK;
  for (uint32_t i = 0; i < options->n_files; i++)
    PL_TRY(pl_command_refuse_input(path, options->files[i], error));
  const char *const inputs[] = {options->run.platform_path, options->op_profile_path, options->site_path};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
    if (inputs[i] != NULL) PL_TRY(pl_command_refuse_input(path, inputs[i], error));
  return pl_output_file_check(path, options->force, error);
}

static pl_code store(const validate_options *options, const char *path, const pl_report *report,
                     void (*write)(FILE *, const pl_report *), pl_error *error) {
  if (path == NULL) return PL_OK;
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, options->force, error));
  write(file.stream, report);
  return pl_output_file_close(&file, PL_OK, error);
}

/* ---- the run ---- */

typedef struct session {
  validate_options *options;
  pl_arena arena;
  pl_measured tables[FILES_MAX];
  pl_csv known; /* models */
  pl_op_profile op_profile;
  pl_site site;
  pl_residuals residuals;
  pl_cases cases;
  pl_report report;
  pl_ablation ablation;
} session;

/* A table of one mistake: nothing can be said of any row because no GPU in it is known. */
static pl_code check_known(const pl_cases *cases, pl_error *error) {
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (cases->cases[i].reason == NULL || strncmp(cases->cases[i].reason, "unknown GPU", 11) != 0) return PL_OK;
  const pl_case *c = &cases->cases[0];
  return pl_fail(error, PL_BAD_INPUT, "%s:%u: %s; or name the machines with --platform", c->row->file, c->row->line,
                 c->reason);
}

static pl_code store_hdf5(session *own, pl_error *error) {
  const validate_options *options = own->options;
  pl_table_column *columns;
  PL_TRY(pl_case_columns_take(&own->cases, &own->arena, &columns, error));
  return pl_table_store(options->hdf5_path, "configuration", "paceline validate", columns, pl_case_n_columns,
                        own->cases.n_cases, options->force, error);
}

static pl_code load_cases(session *own, pl_error *error) {
  const validate_options *options = own->options;
  PL_TRY(pl_row_known_load(&own->arena, &own->known, error));
  for (uint32_t i = 0; i < options->n_files; i++)
    PL_TRY(pl_measured_load(options->files[i], &own->arena, &own->tables[i], error));
  PL_TRY(pl_cases_take(own->tables, options->n_files, &own->arena, &own->cases, error));
  PL_TRY(pl_cases_express(&own->cases, &own->known, &options->run, &own->arena, error));
  return check_known(&own->cases, error);
}

static pl_code validate(session *own, pl_error *error) {
  validate_options *options = own->options;
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  const char *const outputs[] = {options->html_path, options->svg_path, options->csv_path, options->hdf5_path};
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
    PL_TRY(check_output(options, outputs[i], error));
  if (options->run.sensitivities && options->csv_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--sensitivities are written to a table: add --csv FILE");
  if (options->op_profile_path != NULL) {
    PL_TRY(pl_op_profile_load(options->op_profile_path, &own->arena, &own->op_profile, error));
    own->options->run.op_profile = &own->op_profile;
  }
  if (options->site_path != NULL) {
    PL_TRY(pl_site_load(options->site_path, &own->arena, &own->site, error));
    options->run.site = &own->site;
    options->run.sensitivities = true; /* the site's intervals are made of them */
  }
  PL_TRY(pl_residuals_load(&own->arena, &own->residuals, error));
  options->run.residuals = &own->residuals;
  PL_TRY(load_cases(own, error));
  PL_TRY(pl_cases_simulate(&own->cases, &options->run, &own->arena, error));
  PL_TRY(pl_report_take(&own->cases, &own->arena, &own->report, error));
  own->report.shows_assumptions = options->assumptions;
  own->report.shows_sensitivities = options->run.sensitivities;
  if (options->ablation) {
    PL_TRY(pl_ablation_take(&own->cases, &own->report, &options->run, &own->arena, &own->ablation, error));
    own->report.ablation = &own->ablation;
  }
  PL_TRY(store(options, options->html_path, &own->report, pl_report_html, error));
  PL_TRY(store(options, options->svg_path, &own->report, pl_report_svg, error));
  PL_TRY(store(options, options->csv_path, &own->report, pl_report_csv, error));
  if (options->hdf5_path != NULL) PL_TRY(store_hdf5(own, error));
  return PL_OK;
}

/* Rows of another GPU, other software or precision than the site's, whose figures act there as far as its owner's sites
 * share them. */
static void print_strangers(const session *own, const pl_site *site) {
  char first[PL_STRANGE_TEXT_BYTES] = "", text[PL_STRANGE_TEXT_BYTES];
  uint32_t n = 0, n_expressed = 0;
  bool shared = false;
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    const pl_case *c = &own->cases.cases[i];
    if (c->reason != NULL) continue;
    const char *const name[PL_SITE_NAMES] = {c->device.name, pl_framework_or_ideal(c->job.framework)->name,
                                             pl_configuration_precision(&c->job)};
    n_expressed++;
    if (pl_remains_strange(site->remains, name, text)[0] == '\0') continue;
    shared = pl_site_of(site, name) != site;
    if (n++ == 0) snprintf(first, sizeof first, "%s", text);
  }
  if (n > 0)
    printf("not of the site: %" PRIu32 " of %" PRIu32 " configurations (%s%s): %s\n", n, n_expressed, first,
           n > 1 ? ", of the first" : "",
           shared ? "figures are what sites of one owner share"
                  : "its figures act all the same (a file of before: calibrate --runs)");
}

/* By how much what the site's figures leave moved the rows. */
static void print_remains(const session *own) {
  const pl_site_remains *remains = own->options->run.site != NULL ? own->options->run.site->remains : NULL;
  double low = INFINITY, high = 0;
  for (uint32_t i = 0; i < own->cases.n_cases; i++) {
    if (own->cases.cases[i].reason != NULL) continue;
    low = fmin(low, own->cases.cases[i].remains_factor);
    high = fmax(high, own->cases.cases[i].remains_factor);
  }
  if (remains != NULL && remains->n > 0 && high > 0)
    printf("\nsite: predicted times are x%.3f to x%.3f by what its figures leave at its %" PRIu32
           " run%s, a factor on whole steps and no physics\n",
           low, high, remains->n, remains->n == 1 ? "" : "s");
  if (remains != NULL && remains->n > 0) print_strangers(own, own->options->run.site);
}

static void print_written(const validate_options *options) {
  if (options->html_path != NULL) pl_command_print_written(options->html_path, "open it in a browser");
  const char *const others[] = {options->svg_path, options->csv_path, options->hdf5_path};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (others[i] != NULL) pl_command_print_written(others[i], NULL);
}

int pl_cmd_validate(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "FILE...",
      .doc =
          "Predictions beside measured training runs.\v"
          "FILE is a table in CSV, one run per row; validation/README.md has its columns. Each row becomes a cluster, "
          "a model, a job and a strategy, and is simulated; rows that say the same count once, at their median. Rows "
          "that cannot be expressed are counted with the reason.\n\n"
          "Example:\n"
          "  paceline validate validation/measured/*.csv -o report.html\n"
          "  paceline validate mine.csv --platform mycluster.xml"};
  validate_options *options = calloc(1, sizeof *options);
  session *own = calloc(1, sizeof *own);
  pl_error error = PL_ERROR_INIT;
  int status = 0;
  pl_code code = PL_OK;
  if (options == NULL || own == NULL) {
    code = pl_fail_memory(&error, "the options");
  } else {
    options->run.n_threads = (uint32_t)omp_get_max_threads();
    own->options = options;
    pl_arena_init(&own->arena, 0);
    code = pl_command_line_parse("validate", &argp, argc, argv, false, options, &error);
  }
  if (code == PL_OK) code = validate(own, &error);
  if (code != PL_OK) {
    status = pl_command_report("validate", &error);
  } else {
    if (!options->assumptions) pl_ignored_print(stderr, "paceline validate: ", &own->cases);
    (options->json ? pl_report_json : pl_report_print)(stdout, &own->report);
    if (!options->json) print_remains(own);
    if (!options->json) print_written(options);
  }
  if (own != NULL) pl_arena_release(&own->arena);
  free(own);
  free(options);
  return pl_command_finish("validate", status);
}
