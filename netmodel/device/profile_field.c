/* See netmodel/device/profile_field.h. */
#include "netmodel/device/profile_field.h"

#include "core/base/units.h"
#include "core/base/words.h"

pl_code pl_profile_check_keys(const pl_document *document, const pl_node *mapping, const char *const *known,
                              pl_error *error) {
  if (!pl_node_is_mapping(mapping)) return pl_document_fail(document, mapping, error, "expected an object");
  for (size_t i = 0; i < pl_node_count(mapping); i++) {
    const char *key;
    const pl_node *value = pl_node_entry(document, mapping, i, &key);
    char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
    if (pl_words_find(known, key) >= 0) continue;
    return pl_document_fail(document, value, error, "unknown key '%s'; known here: %s%s", key,
                            pl_words_list(known, list, sizeof list), pl_words_hint(known, key, hint));
  }
  return PL_OK;
}

pl_code pl_profile_quantity(const pl_document *document, const pl_node *mapping, const char *key, pl_parse_unit parse,
                            double *value, pl_error *error) {
  const pl_node *node = pl_node_get(mapping, key);
  if (node != NULL && pl_node_as_number(document, node, value, NULL) == PL_OK) {
    if (*value >= 0) return PL_OK;
    return pl_document_fail(document, node, error, "%s: %g is negative", key, *value);
  }
  const char *text;
  PL_TRY(pl_node_string(document, mapping, key, &text, error));
  pl_error cause = PL_ERROR_INIT;
  if (parse(text, key, value, &cause) == PL_OK) return PL_OK;
  return pl_document_fail(document, node, error, "%s", cause.message);
}

pl_code pl_profile_positive(const pl_document *document, const pl_node *mapping, const char *key, pl_parse_unit parse,
                            double *value, pl_error *error) {
  PL_TRY(pl_profile_quantity(document, mapping, key, parse, value, error));
  if (*value > 0) return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error, "%s must be more than zero", key);
}

pl_code pl_profile_ratio(const pl_document *document, const pl_node *mapping, const char *key, bool zero_allowed,
                         double highest, double *value, pl_error *error) {
  PL_TRY(pl_node_number(document, mapping, key, value, error));
  if ((*value > 0 || (zero_allowed && *value == 0)) && *value <= highest) return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error, "%s is %g: it must be %s 0 and at most %g", key,
                          *value, zero_allowed ? "at least" : "more than", highest);
}

pl_code pl_profile_object(const pl_document *document, const pl_node *root, const char *key, const pl_node **object,
                          pl_error *error) {
  *object = pl_node_get(root, key);
  if (*object == NULL) return pl_document_fail(document, root, error, "the key '%s' is missing", key);
  if (!pl_node_is_mapping(*object)) return pl_document_fail(document, *object, error, "'%s' must be an object", key);
  return PL_OK;
}

pl_code pl_profile_within(const pl_document *document, const pl_node *mapping, const char *key, double lowest,
                          double highest, double *value, pl_error *error) {
  PL_TRY(pl_node_number(document, mapping, key, value, error));
  if (*value >= lowest && *value <= highest) return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error, "%s is %g: it must lie between %g and %g", key,
                          *value, lowest, highest);
}

pl_code pl_profile_duration(const pl_document *document, const pl_node *mapping, const char *key, double *value,
                            pl_error *error) {
  const pl_node *node = pl_node_get(mapping, key);
  if (node == NULL || pl_node_as_number(document, node, value, NULL) != PL_OK) {
    const char *text;
    PL_TRY(pl_node_string(document, mapping, key, &text, error));
    pl_error cause = PL_ERROR_INIT;
    if (pl_parse_time(text, key, value, &cause) != PL_OK)
      return pl_document_fail(document, node, error, "%s", cause.message);
  }
  if (*value >= 0 && *value <= 1) return PL_OK;
  return pl_document_fail(document, node, error, "%s is %g s: it must lie between 0 and 1 s", key, *value);
}

pl_code pl_profile_held_out(const pl_document *document, const pl_node *mapping, const char *key, pl_held_out *held_out,
                            pl_error *error) {
  static const char *const known[] = {"calls", "median_error", "p90_error", NULL};
  const pl_node *node = pl_node_get(mapping, key);
  int64_t n;
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  PL_TRY(pl_node_integer(document, node, "calls", 1, UINT32_MAX, &n, error));
  held_out->n = (uint32_t)n;
  PL_TRY(pl_profile_ratio(document, node, "median_error", true, 100, &held_out->median_error, error));
  return pl_profile_ratio(document, node, "p90_error", true, 100, &held_out->p90_error, error);
}

pl_code pl_profile_dtypes(const pl_document *document, const pl_node *entry, uint32_t *dtypes, pl_error *error) {
  const pl_node *list = pl_node_get(entry, "dtypes");
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) == 0)
    return pl_document_fail(document, list ? list : entry, error, "'dtypes' must be a list of data types");
  for (size_t i = 0; i < pl_node_count(list); i++) {
    const char *name;
    PL_TRY(pl_node_as_string(document, pl_node_at(list, i), &name, error));
    int dtype = pl_dtype_from_name(name);
    if (dtype < 0) return pl_document_fail(document, pl_node_at(list, i), error, "unknown data type '%.32s'", name);
    if (*dtypes & 1u << dtype)
      return pl_document_fail(document, pl_node_at(list, i), error, "'%s' has a fit already", name);
    *dtypes |= 1u << dtype;
  }
  return PL_OK;
}
