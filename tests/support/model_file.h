/* Loads a model file of the repository for a test, which ends when it cannot. */
#ifndef PL_TESTS_SUPPORT_MODEL_FILE_H
#define PL_TESTS_SUPPORT_MODEL_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

/* `folder` and `name`: workloads/models and gpt3-175b, say. */
static inline pl_model load_model(const char *folder, const char *name, pl_arena *memory) {
  char path[512];
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/%s/%s.json", folder, name);
  if (pl_model_load_any(path, memory, &model, &error) != PL_OK) fail_msg("%s", error.message);
  return model;
}

/* Calls `visit` with the name of every model file of `folder`, without its suffix; returns the sum of what it returns.
 */
static inline int visit_models(const char *folder, int (*visit)(const char *folder, const char *name, void *context),
                               void *context) {
  char path[512], name[256];
  snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/%s", folder);
  DIR *files = opendir(path);
  assert_non_null(files);
  int sum = 0;
  for (const struct dirent *file; (file = readdir(files)) != NULL;) {
    size_t length = strlen(file->d_name);
    if (length < 5 || strcmp(file->d_name + length - 5, ".json") != 0) continue;
    snprintf(name, sizeof name, "%.*s", (int)(length - 5), file->d_name);
    sum += visit(folder, name, context);
  }
  closedir(files);
  return sum;
}

#endif
