/* Experiments of Primus: "modules: pre_trainer: {framework, config, model, overrides}". `model` and `config` are files
 * of the repository around, with "extends" or "includes" of others; later ones are stronger. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workloads/launch/documents.h"
#include "workloads/launch/readers.h"

enum { EXTENDS_MAX = 16, LEVELS_MAX = 12 };

/* FOLDER/primus/configs/KIND/FRAMEWORK/NAME for some FOLDER above `path`; NULL: there is none. */
static const char *find_above(const char *path, const char *kind, const char *framework, const char *name,
                              pl_arena *arena) {
  const char *folder = path;
  for (int level = 0; level < LEVELS_MAX; level++) {
    const char *slash = strrchr(folder, '/');
    folder = slash != NULL ? pl_arena_printf(arena, "%.*s", (int)(slash - folder), folder) : NULL;
    const char *found = pl_arena_printf(arena, "%s%sprimus/configs/%s/%s/%s", folder != NULL ? folder : "",
                                        folder != NULL ? "/" : "", kind, framework, name);
    if (found != NULL && access(found, R_OK) == 0) return found;
    if (folder == NULL) return NULL;
  }
  return NULL;
}

static pl_code read_chain(pl_launch *launch, const char *path, int depth, pl_error *error);

/* The files that this one builds on, beside it. */
static pl_code read_bases(pl_launch *launch, const pl_document *document, const char *path, int depth,
                          pl_error *error) {
  static const char *const keys[] = {"extends", "includes", "bases", NULL};
  for (const char *const *key = keys; *key != NULL; key++) {
    const pl_node *list = pl_node_get(pl_document_root(document), *key);
    for (size_t i = 0; i < pl_node_count(list); i++) {
      const char *name = pl_node_is_sequence(list) ? pl_node_text(pl_node_at(list, i)) : NULL;
      const char *slash = strrchr(path, '/');
      if (name == NULL) return pl_document_fail(document, list, error, "'%s' is no list of files", *key);
      const char *base =
          pl_arena_printf(launch->settings.arena, "%.*s%s", slash != NULL ? (int)(slash - path + 1) : 0, path, name);
      if (base == NULL) return pl_fail_memory(error, "a launch file");
      PL_TRY(read_chain(launch, base, depth + 1, error));
    }
  }
  return PL_OK;
}

static pl_code read_chain(pl_launch *launch, const char *path, int depth, pl_error *error) {
  if (depth > EXTENDS_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: more than %d files extend each other: do they in a circle?", path,
                   EXTENDS_MAX);
  pl_document *document = NULL;
  PL_TRY(pl_document_load(path, &document, error));
  pl_code code = read_bases(launch, document, path, depth, error);
  if (code == PL_OK && pl_node_is_mapping(pl_document_root(document)))
    code = pl_launch_document_read(document, pl_document_root(document), "", &launch->settings, error);
  pl_document_destroy(document);
  return code;
}

/* A file that the experiment names; where it is not there, a model of that name, else nothing. */
static pl_code read_named(pl_launch *launch, const char *kind, const char *framework, const char *name,
                          pl_error *error) {
  const char *file = find_above(launch->path, kind, framework, name, launch->settings.arena);
  if (file != NULL) return read_chain(launch, file, 0, error);
  if (strcmp(kind, "models") != 0)
    return pl_launch_assume(launch, error, "Megatron's defaults: %.64s is not found above this file", name);
  launch->model_name = pl_launch_known_model(name, launch->settings.arena);
  if (launch->model_name != NULL)
    return pl_launch_assume(launch, error, "the model %s: %.64s is not found above this file", launch->model_name,
                            name);
  return pl_launch_assume(launch, error, "no model: %.64s is not found above this file; --model names one", name);
}

static const pl_node *find_trainer(const pl_document *document) {
  const pl_node *modules = pl_node_get(pl_document_root(document), "modules");
  for (size_t i = 0; i < pl_node_count(modules); i++) {
    const char *name = "";
    const pl_node *module = pl_node_entry(document, modules, i, &name);
    if (pl_node_get(module, "framework") != NULL) return module;
  }
  return NULL;
}

pl_code pl_launch_primus_read(const pl_document *document, pl_launch *launch, pl_error *error) {
  static const char *const frameworks[] = {"megatron", "torchtitan"};
  const pl_node *trainer = find_trainer(document), *node;
  if (trainer == NULL)
    return pl_document_fail(document, pl_node_get(pl_document_root(document), "modules"), error,
                            "no module here has a 'framework'");
  const char *framework = pl_node_text(pl_node_get(trainer, "framework"));
  launch->title = "an experiment of Primus";
  if (framework != NULL && strcmp(framework, frameworks[0]) == 0)
    launch->form = PL_LAUNCH_MEGATRON;
  else if (framework != NULL && strcmp(framework, frameworks[1]) == 0)
    launch->form = PL_LAUNCH_TORCHTITAN;
  else
    return pl_document_fail(document, pl_node_get(trainer, "framework"), error,
                            "framework '%.32s': known are megatron and torchtitan",
                            framework != NULL ? framework : "...");
  const char *const names[][2] = {{"models", "model"}, {"modules", "config"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    node = pl_node_get(trainer, names[i][1]);
    if (node == NULL || pl_node_text(node) == NULL) continue;
    const char *name = pl_launch_plain(pl_node_text(node), launch->settings.arena);
    if (name == NULL) return pl_fail_memory(error, "a launch file");
    PL_TRY(read_named(launch, names[i][0], framework, name, error));
  }
  node = pl_node_get(trainer, "overrides");
  return node != NULL ? pl_launch_document_read(document, node, "", &launch->settings, error) : PL_OK;
}
