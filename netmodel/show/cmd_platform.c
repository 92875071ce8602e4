/* The command `paceline platform check|show|make`. */
#include "netmodel/show/cmd_platform.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/show/platform_svg.h"
#include "netmodel/show/platform_tree.h"

typedef struct request {
  const char *profile_folder, *svg;
  bool json, force, simgrid;
  char **files;
  int n_files;
  pl_error error;
} request;

enum { KEY_FORCE = 'f', KEY_JSON = 256, KEY_SVG, KEY_DEVICES, KEY_SIMGRID };

#define COMMON_OPTIONS                                                                                                 \
  {"json", KEY_JSON, NULL, 0, "Print JSON", 0}, {                                                                      \
    "devices", KEY_DEVICES, "FOLDER", 0,                                                                               \
        "Folder of the device profiles (default: devices beside the platform file, "                                   \
        "then PACELINE_DEVICES or paceline's own)",                                                                    \
        0                                                                                                              \
  }

static const struct argp_option check_options[] = {
    COMMON_OPTIONS,
    {"simgrid", KEY_SIMGRID, NULL, 0, "Load the files with SimGrid as well and compare everything", 0},
    {0}};
static const struct argp_option show_options[] = {
    COMMON_OPTIONS,
    {"svg", KEY_SVG, "OUT", 0, "Draw the hierarchy into the file OUT instead", 0},
    {"force", KEY_FORCE, NULL, 0, "Replace an existing file", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
  request *r = state->input;
  switch (key) {
  case KEY_JSON:
    r->json = true;
    return 0;
  case KEY_SVG:
    r->svg = argument;
    return 0;
  case KEY_SIMGRID:
    r->simgrid = true;
    return 0;
  case KEY_FORCE:
    r->force = true;
    return 0;
  case KEY_DEVICES:
    r->profile_folder = argument;
    return 0;
  case ARGP_KEY_ARGS:
    r->files = state->argv + state->next;
    r->n_files = state->argc - state->next;
    return 0;
  case ARGP_KEY_NO_ARGS:
    pl_fail(&r->error, PL_BAD_INPUT, "which platform file? %s FILE", state->name);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp check_argp = {check_options,
                                       parse_option,
                                       "FILE...",
                                       "Checks platform files: XML, device types, bandwidths and the route of every "
                                       "pair of GPUs (of a sample above 256 GPUs).\v"
                                       "Example:\n  paceline platform check dgx-h100:64",
                                       NULL,
                                       NULL,
                                       NULL};
static const struct argp show_argp = {
    show_options,
    parse_option,
    "FILE...",
    "Prints the hierarchy of platform files: zones, nodes, GPUs, and links with bandwidth and "
    "latency. What is alike is shown once.\v"
    "Example:\n  paceline platform show dgx-a100-16 --svg dgx-a100.svg",
    NULL,
    NULL,
    NULL};

/* ---- one file ---- */

static pl_code check_same(const request *r, const pl_platform *platform, pl_error *error) {
  pl_platform *other;
  PL_TRY(pl_platform_load_by_simgrid(pl_platform_cluster(platform)->path, r->profile_folder, &other, error));
  pl_code code = pl_platform_check_same(platform, other, error);
  pl_platform_destroy(other);
  return code;
}

static pl_code check_file(const request *r, const char *path, pl_error *error) {
  pl_platform *platform;
  PL_TRY(pl_platform_load(path, r->profile_folder, &platform, error));
  pl_code code = r->simgrid && !pl_platform_is_from_simgrid(platform) ? check_same(r, platform, error)
                                                                      : pl_platform_check(platform, error);
  if (code == PL_OK && r->json) {
    pl_json json;
    pl_json_init(&json, stdout, false);
    pl_json_open_object(&json);
    pl_json_put_boolean(&json, "ok", true);
    pl_platform_put_summary(&json, pl_platform_cluster(platform));
    pl_json_close_object(&json);
    putchar('\n');
  } else if (code == PL_OK) {
    pl_printable_put(stdout, path);
    fputs(": OK: ", stdout);
    pl_platform_print_summary(stdout, pl_platform_cluster(platform));
    putchar('\n');
  }
  pl_platform_destroy(platform);
  return code;
}

static pl_code show_platform(const request *r, const pl_platform *platform, pl_arena *arena, pl_error *error) {
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pl_outline outline;
  PL_TRY(pl_platform_outline_take(platform, arena, &outline, error));
  if (r->svg != NULL) {
    PL_TRY(pl_platform_svg_store(platform, &outline, r->svg, r->force, error));
    pl_command_print_written(r->svg, NULL);
    return PL_OK;
  }
  if (r->json) {
    pl_json json;
    pl_json_init(&json, stdout, true);
    pl_json_open_object(&json);
    pl_platform_put_summary(&json, cluster);
    pl_platform_put_tree(&json, cluster, &outline);
    pl_json_close_object(&json);
    return PL_OK;
  }
  pl_printable_put(stdout, cluster->path);
  fputs(": ", stdout);
  pl_platform_print_summary(stdout, cluster);
  putchar('\n');
  pl_platform_print_tree(stdout, cluster, &outline);
  return PL_OK;
}

static pl_code show_file(const request *r, const char *path, pl_error *error) {
  if (r->svg != NULL) PL_TRY(pl_output_file_check(r->svg, r->force, error));
  if (r->svg != NULL) PL_TRY(pl_command_refuse_input(r->svg, path, error));
  pl_platform *platform;
  PL_TRY(pl_platform_load(path, r->profile_folder, &platform, error));
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = show_platform(r, platform, &arena, error);
  pl_arena_release(&arena);
  pl_platform_destroy(platform);
  return code;
}

/* ---- all files ---- */

typedef pl_code (*file_action)(const request *r, const char *path, pl_error *error);

static int run_file(const request *r, const char *command, file_action action, const char *path) {
  pl_error error = PL_ERROR_INIT;
  int status = action(r, path, &error) == PL_OK ? 0 : pl_command_report(command, &error);
  return pl_command_finish(command, status);
}

/* Several files: a process each, because SimGrid cannot load again once it has refused a file. */
static int run_in_child(const request *r, const char *command, file_action action, const char *path) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(run_file(r, command, action, path));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    pl_error error = PL_ERROR_INIT;
    pl_fail(&error, PL_IO, "%s: no result", path);
    return pl_command_report(command, &error);
  }
  return WEXITSTATUS(status);
}

static int run_files(const char *command, const struct argp *argp, file_action action, int argc, char **argv) {
  request r = {0};
  pl_command_line_parse(command, argp, argc, argv, false, &r, &r.error);
  if (r.error.code == PL_OK && r.svg != NULL && r.n_files > 1)
    pl_fail(&r.error, PL_BAD_INPUT, "--svg draws one file, not %d", r.n_files);
  if (r.error.code != PL_OK) return pl_command_report(command, &r.error);
  if (r.n_files == 1) return run_file(&r, command, action, r.files[0]);
  int worst = 0;
  for (int i = 0; i < r.n_files; i++) {
    int status = run_in_child(&r, command, action, r.files[i]);
    if (status > worst) worst = status;
  }
  return worst;
}

static void print_usage(void) {
  fputs("Usage: paceline platform check|show|make [OPTION...] FILE...\n"
        "  check  says whether platform files can be simulated\n"
        "  show   prints or draws their hierarchy\n"
        "  make   writes platform files of known machines at any size\n"
        "'paceline platform check --help' and so on say more.\n\n"
        "Example:\n  paceline platform make dgx-h100 --nodes 64 -o h100-512.xml\n",
        stdout);
}

int pl_cmd_platform(int argc, char **argv) {
  if (argc < 2) {
    fputs("paceline platform: check, show or make? 'paceline platform --help' says more\n", stderr);
    return 2;
  }
  const char *action = argv[1];
  if (strcmp(action, "--help") == 0 || strcmp(action, "-h") == 0) {
    print_usage();
    return pl_command_finish("platform", 0);
  }
  if (strcmp(action, "check") == 0) {
    argv[1] = "paceline platform check";
    return run_files("platform check", &check_argp, check_file, argc - 1, argv + 1);
  }
  if (strcmp(action, "show") == 0) {
    argv[1] = "paceline platform show";
    return run_files("platform show", &show_argp, show_file, argc - 1, argv + 1);
  }
  if (strcmp(action, "make") == 0) {
    argv[1] = "paceline platform make";
    return pl_platform_make_run(argc - 1, argv + 1);
  }
  static const char *const actions[] = {"check", "show", "make", NULL};
  char hint[PL_WORDS_HINT_BYTES];
  fprintf(stderr, "paceline platform: '%s' is none of check, show and make; 'paceline platform --help' says more%s\n",
          action, pl_words_hint(actions, action, hint));
  return 2;
}
