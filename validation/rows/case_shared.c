/* See validation/rows/case_shared.h. */
#include "validation/rows/case_shared.h"

#include <string.h>

#include "core/base/words.h"

pl_code pl_case_shared_take(uint32_t n, pl_arena *arena, pl_case_shared *shared, pl_error *error) {
  *shared = (pl_case_shared){.models = PL_TAKE(arena, const pl_model *, n),
                             .frameworks = PL_TAKE(arena, const pl_framework *, n)};
  return shared->models != NULL && shared->frameworks != NULL ? PL_OK : pl_fail_memory(error, "the models");
}

/* Models with lists of their own are taken to differ. Bytes between the fields may differ, too: then an equal model is
 * kept twice. */
static bool equal_models(const pl_model *a, const pl_model *b) {
  const char *const texts[][2] = {{a->name, b->name},
                                  {a->family, b->family},
                                  {a->architecture, b->architecture},
                                  {a->mlp.activation, b->mlp.activation},
                                  {a->types.dtype_key, b->types.dtype_key},
                                  {a->types.dtype_name, b->types.dtype_name},
                                  {a->types.quantization, b->types.quantization}};
  if (a->digest != b->digest) return false;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (!pl_texts_equal(texts[i][0], texts[i][1])) return false;
  pl_model other;
  memcpy(&other, b, sizeof other);
  other.name = a->name;
  other.family = a->family;
  other.architecture = a->architecture;
  other.mlp.activation = a->mlp.activation;
  other.types.dtype_key = a->types.dtype_key;
  other.types.dtype_name = a->types.dtype_name;
  other.types.quantization = a->types.quantization;
  return memcmp(a, &other, sizeof other) == 0;
}

static const pl_model *share_model(pl_case_shared *shared, const pl_model *model) {
  for (uint32_t i = shared->n_models; i-- > 0;) /* rows of one model stand together */
    if (equal_models(shared->models[i], model)) return shared->models[i];
  return shared->models[shared->n_models++] = model;
}

static const pl_framework *share_framework(pl_case_shared *shared, const pl_framework *framework) {
  for (uint32_t i = shared->n_frameworks; i-- > 0;)
    if (memcmp(shared->frameworks[i], framework, sizeof *framework) == 0) return shared->frameworks[i];
  return shared->frameworks[shared->n_frameworks++] = framework;
}

void pl_case_share(pl_case_shared *shared, pl_case *c) {
  c->model = share_model(shared, c->model);
  if (c->job.framework != NULL) c->job.framework = share_framework(shared, c->job.framework);
}
