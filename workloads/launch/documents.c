/* See workloads/launch/documents.h. */
#include "workloads/launch/documents.h"

#include <string.h>

enum { DEPTH_MAX = 32 };

typedef struct reader {
  const pl_document *document;
  pl_settings *settings;
  pl_error *error;
  int depth;                        /* of mappings that are open */
  const pl_node *within[DEPTH_MAX]; /* these, from the outermost */
} reader;

const char *pl_launch_plain(const char *text, pl_arena *arena) {
  const char *made = "";
  for (const char *open; made != NULL && (open = strstr(text, "${")) != NULL;) {
    size_t length = strcspn(open, ":}");
    const char *value = open[length] == ':' ? open + length + 1 : open + length;
    size_t size = strcspn(value, "}");
    made = pl_arena_printf(arena, "%s%.*s%.*s", made, (int)(open - text), text, (int)size, value);
    text = value + size + (value[size] == '}');
  }
  return made != NULL ? pl_arena_printf(arena, "%s%s", made, text) : NULL;
}

static pl_code put(const reader *in, const pl_node *node, const char *key, const char *value) {
  if (value == NULL || key == NULL) return pl_fail_memory(in->error, "the settings of a launch file");
  const char *path = pl_arena_strdup(in->settings->arena, pl_document_name(in->document));
  if (path == NULL) return pl_fail_memory(in->error, "the settings of a launch file");
  int line, column;
  pl_node_place(node, &line, &column);
  return pl_settings_add(in->settings, (pl_setting){.key = key, .value = value, .path = path, .line = line}, in->error);
}

static pl_code read_list(const reader *in, const pl_node *node, const char *key) {
  const char *joined = "";
  for (size_t i = 0; i < pl_node_count(node) && joined != NULL; i++) {
    const char *text = pl_node_text(pl_node_at(node, i));
    joined = pl_arena_printf(in->settings->arena, "%s%s%s", joined, i > 0 ? "," : "", text != NULL ? text : "...");
  }
  return put(in, node, key, joined);
}

static pl_code read_node(reader *in, const pl_node *node, const char *key) {
  if (pl_node_is_sequence(node)) return read_list(in, node, key);
  if (!pl_node_is_mapping(node)) {
    const char *text = pl_launch_follow(in->within, in->depth, pl_node_text(node), in->settings->arena);
    return put(in, node, key, text != NULL ? pl_launch_plain(text, in->settings->arena) : NULL);
  }
  if (in->depth == DEPTH_MAX)
    return pl_document_fail(in->document, node, in->error, "mappings are nested more than %d deep", DEPTH_MAX);
  in->within[in->depth++] = node;
  for (size_t i = 0; i < pl_node_count(node); i++) {
    const char *name = "";
    const pl_node *value = pl_node_entry(in->document, node, i, &name);
    const char *inner = pl_arena_printf(in->settings->arena, "%s%s%s", key, key[0] != '\0' ? "." : "", name);
    if (inner == NULL) return pl_fail_memory(in->error, "the settings of a launch file");
    PL_TRY(read_node(in, value, inner));
  }
  in->depth--;
  return PL_OK;
}

pl_code pl_launch_document_read(const pl_document *document, const pl_node *node, const char *prefix,
                                pl_settings *settings, pl_error *error) {
  reader in = {.document = document, .settings = settings, .error = error};
  return read_node(&in, node, prefix);
}

/* "--num-layers" as num_layers. */
static char *argument_key(const char *name, pl_arena *arena) {
  char *key = pl_arena_strdup(arena, name + strspn(name, "-"));
  for (char *at = key; at != NULL && *at != '\0'; at++)
    if (*at == '-') *at = '_';
  return key;
}

pl_code pl_launch_arguments_read(const pl_document *document, const pl_node *node, pl_settings *settings,
                                 pl_error *error) {
  reader in = {.document = document, .settings = settings, .error = error};
  for (size_t i = 0; i < pl_node_count(node); i++) {
    const char *name = "";
    const pl_node *value = pl_node_entry(document, node, i, &name);
    const char *key = argument_key(name, settings->arena), *text = pl_node_text(value);
    if (key == NULL) return pl_fail_memory(error, "the settings of a launch file");
    if (text != NULL && strcmp(text, "false") == 0) continue;
    if (text != NULL) text = pl_arena_strdup(settings->arena, strcmp(text, "true") == 0 ? "" : text);
    PL_TRY(pl_node_text(value) != NULL ? put(&in, value, key, text) : read_node(&in, value, key));
  }
  return PL_OK;
}
