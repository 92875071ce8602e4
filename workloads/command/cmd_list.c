/* `paceline list`: the names that options take, of what comes with Paceline. */
#include "workloads/command/cmd_list.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/make/node_kind.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_choice.h"
#include "workloads/framework/framework.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"
#include "workloads/tree/tree.h"

enum { LIST_MODELS = 0, LIST_PLATFORMS, LIST_FRAMEWORKS, LIST_DEVICES, LIST_STRATEGIES };
static const char *const list_names[] = {"models", "platforms", "frameworks", "devices", "strategies", NULL};

typedef struct request {
  int chosen; /* -1: all lists */
  pl_error error;
} request;

static error_t parse_option(int key, char *text, struct argp_state *state) {
  request *in = state->input;
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (state->arg_num > 0) {
    pl_command_line_refuse_argument(text, &in->error);
    return 0;
  }
  in->chosen = pl_words_find(list_names, text);
  if (in->chosen >= 0) return 0;
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  pl_fail(&in->error, PL_BAD_INPUT, "'%s' is not a list; there are: %s%s", text,
          pl_words_list(list_names, list, sizeof list), pl_words_hint(list_names, text, hint));
  return 0;
}

static pl_code list_models(pl_arena *arena, pl_error *error) {
  const char *const *names = pl_model_names(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of models");
  for (; *names != NULL; names++) {
    pl_model model;
    PL_TRY(pl_model_load_any(*names, arena, &model, error));
    printf("%-22s %8.4g B parameters, %s\n", *names, model.count.parameters * 1e-9, model.architecture);
  }
  return PL_OK;
}

static void print_devices(const pl_cluster *cluster) {
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < cluster->n_devices; d++)
      n += cluster->devices[d].profile == p;
    printf("%s%u x %s", p > 0 ? ", " : "", n, cluster->profiles[p].name);
  }
  printf(" in %u node%s\n", cluster->n_nodes, cluster->n_nodes == 1 ? "" : "s");
}

/* Files with what is in them, then the machines that are made at any size. A machine may have a file of its name. */
static pl_code list_platforms(pl_arena *arena, pl_error *error) {
  const char *const *names = pl_platform_choices(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of platforms");
  uint32_t n_machines = 0, n = 0;
  while (pl_node_kind_at(n_machines) != NULL)
    n_machines++;
  while (names[n] != NULL)
    n++;
  for (uint32_t i = 0; i + n_machines < n; i++) {
    pl_platform *platform;
    PL_TRY(pl_platform_load(names[i], NULL, &platform, error));
    printf("%-22s ", names[i]);
    print_devices(pl_platform_cluster(platform));
    pl_platform_destroy(platform);
  }
  for (uint32_t i = 0; i < n_machines; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    printf("%s%-*s %u x %s per node: %s\n", kind->name, 22 - (int)strlen(kind->name), ":NODES", kind->n_gpus,
           kind->device, kind->title);
  }
  return PL_OK;
}

static pl_code list_names_alone(const char *const *names, pl_error *error) {
  if (names == NULL) return pl_fail_memory(error, "names");
  for (; *names != NULL; names++)
    puts(*names);
  return PL_OK;
}

/* With what each says of itself. */
static pl_code list_frameworks(pl_arena *arena, pl_error *error) {
  const char *const *names = pl_framework_names(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of frameworks");
  printf("%-25s nothing waits, and whatever can be one kernel is one: without --framework\n", pl_framework_ideal.name);
  for (; *names != NULL; names++) {
    const char *path = pl_arena_printf(arena, "frameworks/%s.json", *names);
    if (path == NULL || (path = pl_data_path(path, arena)) == NULL) return pl_fail_memory(error, "a framework profile");
    pl_document *document;
    PL_TRY(pl_document_load(path, &document, error));
    const pl_node *about = pl_node_get(pl_document_root(document), "about");
    const char *text = about != NULL ? pl_node_text(about) : NULL;
    printf("%-25s %s\n", *names, text != NULL ? text : "");
    pl_document_destroy(document);
  }
  return PL_OK;
}

/* With the first line of what each says of itself. */
static pl_code list_trees(pl_arena *arena, pl_error *error) {
  const char *const *names = pl_tree_names(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of strategy trees");
  for (; *names != NULL; names++) {
    char line[256] = "";
    const char *path = pl_arena_printf(arena, "strategies/%s", *names);
    if (path == NULL || (path = pl_data_path(path, arena)) == NULL) return pl_fail_memory(error, "a strategy tree");
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(line, sizeof line, file) == NULL) line[0] = '\0';
    if (file != NULL) fclose(file);
    line[strcspn(line, "\n")] = '\0';
    printf("%-34s %s\n", *names, line[0] == '#' ? line + strspn(line, "# ") : "");
  }
  return PL_OK;
}

static pl_code list_one(int list, pl_arena *arena, pl_error *error) {
  pl_profile_folders folders;
  switch (list) {
  case LIST_MODELS:
    return list_models(arena, error);
  case LIST_PLATFORMS:
    return list_platforms(arena, error);
  case LIST_FRAMEWORKS:
    return list_frameworks(arena, error);
  case LIST_STRATEGIES:
    return list_trees(arena, error);
  default:
    PL_TRY(pl_profile_folders_take(NULL, "", arena, &folders, error));
    return list_names_alone(pl_profile_folders_names(&folders, arena), error);
  }
}

static pl_code list(const request *in, pl_arena *arena, pl_error *error) {
  if (in->chosen >= 0) return list_one(in->chosen, arena, error);
  for (int i = 0; list_names[i] != NULL; i++) {
    printf("%s%s:\n", i > 0 ? "\n" : "", list_names[i]);
    PL_TRY(list_one(i, arena, error));
  }
  return PL_OK;
}

int pl_cmd_list(int argc, char **argv) {
  static const struct argp argp = {.parser = parse_option,
                                   .args_doc = "[models|platforms|frameworks|devices|strategies]",
                                   .doc = "Lists what comes with Paceline, by the names that --model, --platform, "
                                          "--framework, --vary device:TYPE=OTHER and --strategy (trees) take.\v"
                                          "Example:\n"
                                          "  paceline list platforms"};
  request in = {.chosen = -1, .error = PL_ERROR_INIT};
  pl_command_line_parse("list", &argp, argc, argv, false, &in, &in.error);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = in.error.code != PL_OK ? in.error.code : list(&in, &arena, &in.error);
  pl_arena_release(&arena);
  if (code != PL_OK) return pl_command_report("list", &in.error);
  return pl_command_finish("list", 0);
}
