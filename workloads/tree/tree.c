/* See workloads/tree/tree.h. */
#include "workloads/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "core/system/text_file.h"
#include "workloads/language/ir_text.h"

const char *const pl_tree_tensor_names[] = {"states", "gradients", "parameters", "kept", NULL};

enum { FILE_BYTES_MAX = 64 << 20 };

/* ---- nodes ---- */

pl_tree_node *pl_tree_add(pl_strategy_tree *tree, int32_t parent) {
  pl_tree_node *nodes =
      pl_arena_grown(tree->arena, tree->nodes, (size_t)tree->n_nodes, 1, sizeof *nodes, &tree->room_nodes);
  if (nodes == NULL) return NULL;
  tree->nodes = nodes;
  pl_tree_node *node = &tree->nodes[tree->n_nodes++];
  *node = (pl_tree_node){.parent = parent, .n_cuts = -1};
  if (parent >= 0) node->depth = tree->nodes[parent].depth + 1;
  return node;
}

pl_code pl_tree_init(pl_strategy_tree *tree, const char *name, pl_arena *arena, pl_error *error) {
  *tree = (pl_strategy_tree){.name = pl_arena_strdup(arena, name), .arena = arena};
  if (tree->name == NULL || pl_tree_add(tree, -1) == NULL) return pl_fail_memory(error, "a strategy tree");
  return PL_OK;
}

/* ---- patterns ---- */

static bool is_digits(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] < '0' || text[i] > '9') return false;
  return length > 0 && length < 10;
}

/* "0-3" has 2. */
static bool range_has(const char *range, size_t length, const char *word, size_t word_length) {
  const char *dash = memchr(range, '-', length);
  if (dash == NULL || !is_digits(word, word_length)) return false;
  size_t first = (size_t)(dash - range), last = length - first - 1;
  if (!is_digits(range, first) || !is_digits(dash + 1, last)) return false;
  long number = strtol(word, NULL, 10);
  return strtol(range, NULL, 10) <= number && number <= strtol(dash + 1, NULL, 10);
}

static bool component_matches(const char *pattern, size_t length, const char *word, size_t word_length) {
  if (length > 0 && pattern[length - 1] == '*')
    return word_length >= length - 1 && strncmp(pattern, word, length - 1) == 0;
  if (length == word_length && strncmp(pattern, word, length) == 0) return true;
  return range_has(pattern, length, word, word_length);
}

bool pl_tree_matches(const char *pattern, const char *path, int32_t *at_depth) {
  *at_depth = 0;
  for (;;) {
    size_t length = strcspn(pattern, "."), word = strcspn(path, ".");
    if (!component_matches(pattern, length, path, word)) return false;
    (*at_depth)++;
    pattern += length;
    path += word;
    if (*pattern == 0) return true;
    if (*path == 0) return false;
    pattern++;
    path++;
  }
}

bool pl_tree_reaches_into(const char *pattern, const char *path) {
  for (;;) {
    size_t length = strcspn(pattern, "."), word = strcspn(path, ".");
    if (!component_matches(pattern, length, path, word) || pattern[length] == 0) return false;
    pattern += length + 1;
    path += word;
    if (*path == 0) return true;
    path++;
  }
}

/* ---- messages ---- */

const char *pl_tree_place_text(pl_tree_place place, char text[PL_TREE_PLACE_BYTES]) {
  if (pl_tree_is_said(place)) {
    snprintf(text, PL_TREE_PLACE_BYTES, "%.256s:%d:%d", place.file, place.line, place.column);
  } else {
    snprintf(text, PL_TREE_PLACE_BYTES, "the recipe");
  }
  return text;
}

pl_code pl_tree_fail(pl_tree_place place, pl_error *error, const char *format, ...) {
  char message[PL_ERROR_MESSAGE_BYTES], text[PL_TREE_PLACE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return pl_fail(error, PL_BAD_INPUT, "%s: %s", pl_tree_place_text(place, text), message);
}

/* "path:LINE:COLUMN: ..." taken apart; false: the message begins otherwise. */
static bool place_of(const char *message, char *path, size_t size, long *line, long *column) {
  for (const char *at = strchr(message, ':'); at != NULL; at = strchr(at + 1, ':')) {
    char *end;
    *line = strtol(at + 1, &end, 10);
    if (end == at + 1 || *end != ':' || *line < 1 || *line > INT32_MAX) continue;
    *column = strtol(end + 1, &end, 10);
    if (*end != ':' || *column < 1 || *column > INT32_MAX || (size_t)(at - message) >= size) continue;
    memcpy(path, message, (size_t)(at - message));
    path[at - message] = 0;
    return true;
  }
  return false;
}

void pl_tree_error_show(FILE *stream, const pl_error *error) {
  char path[PL_ERROR_MESSAGE_BYTES];
  long line, column;
  char *text;
  size_t size;
  if (!place_of(error->message, path, sizeof(path), &line, &column)) return;
  if (pl_text_file_load(path, FILE_BYTES_MAX, &text, &size, NULL) != PL_OK) return;
  pl_ir_source_show(stream, text, size, (pl_ir_place){.line = (int32_t)line, .column = (int32_t)column});
  free(text);
}
