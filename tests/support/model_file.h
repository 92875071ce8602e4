/* Loads a model file of the repository for a test, which ends when it cannot. */
#ifndef PL_TESTS_SUPPORT_MODEL_FILE_H
#define PL_TESTS_SUPPORT_MODEL_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <cmocka.h>

#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

/* `folder` and `name`: workloads/models and gpt3-175b, say. */
static inline pl_model load_model(const char *folder, const char *name, pl_arena *memory) {
  char path[512];
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/%s/%s.json", folder, name);
  if (pl_model_load(path, memory, &model, &error) != PL_OK) fail_msg("%s", error.message);
  return model;
}

#endif
