/* See workloads/run/residuals.h. */
#include "workloads/run/residuals.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "netmodel/device/profile_field.h"

const char *const pl_residual_names[PL_RESIDUAL_COUNT] = {
#define PL_RESIDUAL_NAME(name) [PL_RESIDUAL_##name] = #name,
    PL_RESIDUALS(PL_RESIDUAL_NAME)
#undef PL_RESIDUAL_NAME
};

static const double WIDEST = 10; /* a factor of 22,000: no residual, a mistake */

static pl_code read_half(const pl_document *document, const pl_node *entries, int residual, pl_arena *arena,
                         pl_residuals *residuals, pl_error *error) {
  static const char *const known[] = {"half_width", "provenance", NULL};
  const char *provenance;
  const pl_node *entry = pl_node_get(entries, pl_residual_names[residual]);
  if (entry == NULL)
    return pl_document_fail(document, entries, error, "the key '%s' is missing", pl_residual_names[residual]);
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  PL_TRY(pl_profile_ratio(document, entry, "half_width", true, WIDEST, &residuals->half[residual], error));
  PL_TRY(pl_node_name(document, entry, "provenance", &provenance, error));
  residuals->provenance[residual] = pl_arena_strdup(arena, provenance);
  return residuals->provenance[residual] != NULL ? PL_OK : pl_fail_memory(error, "the residuals");
}

static pl_code read_seen(const pl_document *document, const pl_node *root, pl_arena *arena, pl_residuals *residuals,
                         pl_error *error) {
  const pl_node *list = pl_node_get(root, "seen");
  if (list == NULL || !pl_node_is_sequence(list))
    return pl_document_fail(document, list != NULL ? list : root, error, "'seen' must be a list of texts");
  size_t n = pl_node_count(list);
  const char **seen = PL_TAKE(arena, const char *, n + 1);
  for (size_t i = 0; seen != NULL && i < n; i++) {
    PL_TRY(pl_node_as_string(document, pl_node_at(list, i), &seen[i], error));
    seen[i] = pl_arena_strdup(arena, seen[i]);
  }
  residuals->seen = seen;
  residuals->n_seen = (uint32_t)n;
  return arena->failed ? pl_fail_memory(error, "the residuals") : PL_OK;
}

static uint64_t digest_of(const pl_residuals *residuals) {
  pl_digest digest;
  pl_digest_init(&digest);
  for (int residual = 0; residual < PL_RESIDUAL_COUNT; residual++)
    pl_digest_f64(&digest, residuals->half[residual]);
  pl_digest_f64(&digest, residuals->centre);
  for (uint32_t i = 0; i < residuals->n_seen; i++)
    pl_digest_text(&digest, residuals->seen[i]);
  return digest.value;
}

static pl_code read_residuals(const pl_document *document, pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  static const char *const known[] = {"about", "residuals", "centre", "seen", NULL};
  const pl_node *root = pl_document_root(document), *entries;
  *residuals = (pl_residuals){.centre = 0};
  PL_TRY(pl_profile_check_keys(document, root, known, error));
  PL_TRY(pl_profile_object(document, root, "residuals", &entries, error));
  const char *names[PL_RESIDUAL_COUNT + 1] = {NULL};
  memcpy(names, pl_residual_names, sizeof pl_residual_names);
  PL_TRY(pl_profile_check_keys(document, entries, names, error));
  for (int residual = 0; residual < PL_RESIDUAL_COUNT; residual++)
    PL_TRY(read_half(document, entries, residual, arena, residuals, error));
  PL_TRY(pl_node_number(document, root, "centre", &residuals->centre, error));
  if (!(residuals->centre >= -WIDEST && residuals->centre <= WIDEST))
    return pl_document_fail(document, pl_node_get(root, "centre"), error, "centre is %g: it must lie between %g and %g",
                            residuals->centre, -WIDEST, WIDEST);
  PL_TRY(read_seen(document, root, arena, residuals, error));
  residuals->digest = digest_of(residuals);
  return PL_OK;
}

pl_code pl_residuals_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_residuals *residuals,
                           pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_parse(name, text, size, true, &document, error));
  pl_code code = read_residuals(document, arena, residuals, error);
  pl_document_destroy(document);
  return code;
}

pl_code pl_residuals_load(pl_arena *arena, pl_residuals *residuals, pl_error *error) {
  const char *environment = getenv("PACELINE_RESIDUALS");
  const char *path = environment;
  if (path == NULL) PL_TRY(pl_data_find("residuals.json", arena, &path, error));
  pl_document *document;
  PL_TRY(pl_document_load(path, &document, error));
  pl_code code = read_residuals(document, arena, residuals, error);
  pl_document_destroy(document);
  return code;
}

bool pl_residuals_have_seen(const pl_residuals *residuals, const char *aspect) {
  for (uint32_t i = 0; i < residuals->n_seen; i++)
    if (strcmp(residuals->seen[i], aspect) == 0) return true;
  return false;
}
