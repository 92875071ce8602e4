/* See workloads/framework/framework_offers.h. */
#include "workloads/framework/framework_offers.h"

#include <string.h>

#include "core/base/words.h"

static pl_code read_words(const pl_document *document, const pl_node *section, const char *key, pl_arena *arena,
                          const char *const **words, pl_error *error) {
  const pl_node *list = pl_node_get(section, key);
  if (list == NULL || !pl_node_is_sequence(list))
    return pl_document_fail(document, list != NULL ? list : section, error, "offers.%s must be a list of words", key);
  size_t n = pl_node_count(list);
  const char **found = PL_TAKE(arena, const char *, n + 1);
  for (size_t i = 0; found != NULL && i < n; i++) {
    PL_TRY(pl_node_as_string(document, pl_node_at(list, i), &found[i], error));
    found[i] = pl_arena_strdup(arena, found[i]);
  }
  *words = found;
  return arena->failed ? pl_fail_memory(error, "a framework profile") : PL_OK;
}

static pl_code read_stages(const pl_document *document, const pl_node *section, const char *key, uint32_t *stages,
                           pl_error *error) {
  const pl_node *list = pl_node_get(section, key);
  if (list == NULL || !pl_node_is_sequence(list))
    return pl_document_fail(document, list != NULL ? list : section, error, "offers.%s must be a list of ZeRO stages",
                            key);
  *stages = 0;
  for (size_t i = 0; i < pl_node_count(list); i++) {
    double stage;
    PL_TRY(pl_node_as_number(document, pl_node_at(list, i), &stage, error));
    if (!(stage == 0 || stage == 1 || stage == 2 || stage == 3))
      return pl_document_fail(document, pl_node_at(list, i), error, "offers.%s: %g is no ZeRO stage (0 to 3)", key,
                              stage);
    *stages |= 1u << (int)stage;
  }
  return PL_OK;
}

pl_code pl_offers_read(const pl_document *document, const pl_node *section, pl_arena *arena, pl_offers *offers,
                       pl_error *error) {
  static const char *const known[] = {"degrees", "schedules", "recompute", "sp", "zero", "zero_with_pp", NULL};
  if (!pl_node_is_mapping(section)) return pl_document_fail(document, section, error, "offers must be an object");
  for (size_t i = 0; i < pl_node_count(section); i++) {
    const char *key;
    char hint[PL_WORDS_HINT_BYTES];
    const pl_node *value = pl_node_entry(document, section, i, &key);
    if (pl_words_find(known, key) < 0)
      return pl_document_fail(document, value, error, "unknown key 'offers.%.32s'%s", key,
                              pl_words_hint(known, key, hint));
  }
  PL_TRY(read_words(document, section, "degrees", arena, &offers->degrees, error));
  PL_TRY(read_words(document, section, "schedules", arena, &offers->schedules, error));
  PL_TRY(read_words(document, section, "recompute", arena, &offers->recomputes, error));
  PL_TRY(read_words(document, section, "sp", arena, &offers->sp, error));
  PL_TRY(read_stages(document, section, "zero", &offers->zero, error));
  PL_TRY(read_stages(document, section, "zero_with_pp", &offers->zero_with_pp, error));
  offers->known = true;
  return PL_OK;
}
