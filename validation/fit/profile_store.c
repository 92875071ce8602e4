/* See validation/fit/profile_store.h. */
#include "validation/fit/profile_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/system/output_file.h"
#include "core/text/document.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"

#define FIGURE "%.4g"

double pl_profile_rounded(double value, double unit) {
  char text[32];
  snprintf(text, sizeof text, FIGURE, value / unit);
  return strtod(text, NULL) * unit;
}

void pl_profile_put_quantity(pl_json *json, const char *key, double value, double unit, const char *suffix) {
  char text[64];
  snprintf(text, sizeof text, FIGURE "%s", value / unit, suffix);
  pl_json_put_string(json, key, text);
}

void pl_profile_put_rounded(pl_json *json, const char *key, double value) {
  pl_json_put_number(json, key, pl_profile_rounded(value, 1));
}

/* ---- copying ---- */

static bool is_scalar(const pl_node *node) {
  return !pl_node_is_mapping(node) && !pl_node_is_sequence(node);
}

static void copy_node(const pl_document *document, const pl_node *node, pl_json *json);

static void copy_list(const pl_document *document, const pl_node *list, pl_json *json) {
  bool pretty = json->pretty, flat = true;
  for (size_t i = 0; i < pl_node_count(list); i++)
    flat &= is_scalar(pl_node_at(list, i));
  pl_json_open_array(json);
  if (flat) json->pretty = false;
  for (size_t i = 0; i < pl_node_count(list); i++)
    copy_node(document, pl_node_at(list, i), json);
  pl_json_close_array(json);
  json->pretty = pretty;
}

static void copy_node(const pl_document *document, const pl_node *node, pl_json *json) {
  double number;
  const char *text;
  if (pl_node_is_sequence(node)) {
    copy_list(document, node, json);
  } else if (pl_node_is_mapping(node)) {
    pl_json_open_object(json);
    for (size_t i = 0; i < pl_node_count(node); i++) {
      const char *key;
      const pl_node *value = pl_node_entry(document, node, i, &key);
      pl_json_key(json, key);
      copy_node(document, value, json);
    }
    pl_json_close_object(json);
  } else if (pl_node_as_number(document, node, &number, NULL) == PL_OK) {
    pl_json_number(json, number);
  } else if (pl_node_as_string(document, node, &text, NULL) == PL_OK) {
    pl_json_string(json, text);
  } else if (pl_node_is_null(node)) {
    pl_json_string(json, NULL);
  } else { /* what is left of JSON's scalars */
    pl_json_boolean(json, strcmp(pl_node_text(node), "true") == 0);
  }
}

static const pl_profile_section *find(const pl_profile_section *sections, uint32_t n, const char *key) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(sections[i].key, key) == 0) return &sections[i];
  return NULL;
}

/* The old lines but those of the sections, which follow. */
static void write_provenance(const pl_document *document, const pl_profile_section *sections, uint32_t n,
                             pl_json *json) {
  const pl_node *old = pl_node_get(pl_document_root(document), "provenance");
  pl_json_key(json, "provenance");
  pl_json_open_object(json);
  for (size_t i = 0; old != NULL && i < pl_node_count(old); i++) {
    const char *key, *text;
    const pl_node *value = pl_node_entry(document, old, i, &key);
    if (find(sections, n, key) == NULL && pl_node_as_string(document, value, &text, NULL) == PL_OK)
      pl_json_put_string(json, key, text);
  }
  for (uint32_t i = 0; i < n; i++)
    pl_json_put_string(json, sections[i].key, sections[i].provenance);
  pl_json_close_object(json);
}

/* Everything else, the sections, and provenance last, as in the shipped profiles. */
static void write_profile(const pl_document *document, const pl_profile_section *sections, uint32_t n, pl_json *json) {
  const pl_node *root = pl_document_root(document);
  pl_json_open_object(json);
  for (size_t i = 0; i < pl_node_count(root); i++) {
    const char *key;
    const pl_node *value = pl_node_entry(document, root, i, &key);
    if (find(sections, n, key) != NULL || strcmp(key, "provenance") == 0) continue;
    pl_json_key(json, key);
    copy_node(document, value, json);
  }
  for (uint32_t i = 0; i < n; i++) {
    pl_json_key(json, sections[i].key);
    sections[i].write(json, sections[i].content);
  }
  write_provenance(document, sections, n, json);
  pl_json_close_object(json);
}

/* ---- the file ---- */

/* What was written must be a profile, and small enough. */
static pl_code check(const char *path, const char *text, size_t size, pl_error *error) {
  if (size > PL_PROFILE_BYTES_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: the profile would have %zu KiB, more than %d", path, size >> 10,
                   PL_PROFILE_BYTES_MAX >> 10);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile profile;
  pl_code code = pl_device_profile_parse(path, text, size, &arena, &profile, error);
  pl_arena_release(&arena);
  return code;
}

static pl_code replace_file(const char *path, const char *text, size_t size, bool force, pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, force, error));
  fwrite(text, 1, size, file.stream);
  return pl_output_file_close(&file, PL_OK, error);
}

pl_code pl_profile_store(const char *base, const pl_profile_section *sections, uint32_t n_sections, const char *path,
                         bool force, pl_error *error) {
  PL_TRY(pl_output_file_check(path, force, error));
  pl_document *document;
  PL_TRY(pl_document_load(base, &document, error));
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  pl_code code = stream == NULL ? pl_fail_memory(error, "a device profile") : PL_OK;
  if (stream != NULL) {
    pl_json json;
    pl_json_init(&json, stream, true);
    write_profile(document, sections, n_sections, &json);
    if (fclose(stream) != 0) code = pl_fail_memory(error, "a device profile");
  }
  if (code == PL_OK) code = check(path, text, size, error);
  if (code == PL_OK) code = replace_file(path, text, size, force, error);
  free(text);
  pl_document_destroy(document);
  return code;
}
