/* See workloads/tree/tree.h: what a node is about, its partition and where its tensors lie. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_read.h"

enum { PATTERN_BYTES_MAX = 128, PATTERNS_MAX = 256, ROWS_MAX = 32, DEVICES_MAX = 1 << 24 };

/* ---- what it is about ---- */

static bool is_pattern(const char *text) {
  size_t length = strlen(text);
  if (length == 0 || length > PATTERN_BYTES_MAX || text[0] == '.' || text[length - 1] == '.') return false;
  for (size_t i = 0; i < length; i++) {
    bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    bool other = (text[i] >= '0' && text[i] <= '9') || strchr("_.*-", text[i]) != NULL;
    if (!letter && !other) return false;
    if (text[i] == '.' && text[i + 1] == '.') return false;
    if (text[i] == '*' && text[i + 1] != '.' && text[i + 1] != 0) return false;
  }
  return true;
}

pl_code pl_tree_reading_patterns(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  size_t n = pl_tree_reading_count(value);
  if (n == 0 || n > PATTERNS_MAX)
    return pl_document_fail(own->document, value, own->error, "match is a pattern or a list of 1 to %d", PATTERNS_MAX);
  pl_tree_pattern *patterns = PL_TAKE(own->tree->arena, pl_tree_pattern, n);
  for (size_t i = 0; patterns != NULL && i < n; i++) {
    const pl_node *at = pl_tree_reading_item(value, i);
    const char *text;
    PL_TRY(pl_node_as_string(own->document, at, &text, own->error));
    if (!is_pattern(text))
      return pl_document_fail(
          own->document, at, own->error,
          "'%.64s' is no pattern: names between points, '*' for any or at the end of one, 0-3 for a "
          "range (h.*.mlp, h.0-3, chain*)",
          text);
    patterns[i] =
        (pl_tree_pattern){.text = pl_arena_strdup(own->tree->arena, text), .place = pl_tree_reading_place(own, at)};
    if (patterns[i].text == NULL) return pl_fail_memory(own->error, "a strategy tree");
  }
  if (patterns == NULL) return pl_fail_memory(own->error, "a strategy tree");
  node->patterns = patterns;
  node->n_patterns = (int32_t)n;
  return PL_OK;
}

static pl_code fail_row(const pl_tree_reading *own, const pl_node *at, const char *text) {
  const char *names[256];
  int32_t n = pl_ir_n_rows() < 255 ? pl_ir_n_rows() : 255;
  for (int32_t i = 0; i < n; i++)
    names[i] = pl_ir_row_at(i)->name;
  names[n] = NULL;
  char hint[PL_WORDS_HINT_BYTES];
  return pl_document_fail(own->document, at, own->error,
                          "'%.64s' is not an op; workloads/language/README.md has the table%s", text,
                          pl_words_hint(names, text, hint));
}

pl_code pl_tree_reading_rows(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  size_t n = pl_tree_reading_count(value);
  if (n == 0 || n > ROWS_MAX)
    return pl_document_fail(own->document, value, own->error, "ops is the name of an op or a list of 1 to %d",
                            ROWS_MAX);
  pl_ir_name *rows = PL_TAKE(own->tree->arena, pl_ir_name, n);
  if (rows == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (size_t i = 0; i < n; i++) {
    const pl_node *at = pl_tree_reading_item(value, i);
    const char *text;
    PL_TRY(pl_node_as_string(own->document, at, &text, own->error));
    if (strlen(text) >= PL_IR_NAME_MAX || pl_ir_row_find(text) < 0) return fail_row(own, at, text);
    rows[i] = pl_ir_name_of(text);
  }
  node->rows = rows;
  node->n_rows = (int32_t)n;
  return PL_OK;
}

/* "3", "0-7". */
static pl_code read_range(const pl_tree_reading *own, const pl_node *value, pl_tree_devices *range) {
  const char *text;
  if (pl_node_is_sequence(value) || pl_node_is_mapping(value))
    return pl_document_fail(own->document, value, own->error, "devices is a number, a range of them, or a list: 0-7");
  PL_TRY(pl_node_as_string(own->document, value, &text, own->error));
  size_t first = strspn(text, "0123456789"), last = text[first] == '-' ? strspn(text + first + 1, "0123456789") : 0;
  bool fits = first > 0 && first < 9 && last < 9 && (text[first] == 0 || (last > 0 && text[first + 1 + last] == 0));
  if (fits) {
    range->first = strtol(text, NULL, 10);
    range->last = text[first] == 0 ? range->first : strtol(text + first + 1, NULL, 10);
    fits = range->last >= range->first && range->last < DEVICES_MAX;
  }
  if (fits) return PL_OK;
  return pl_document_fail(own->document, value, own->error,
                          "devices '%.64s' is neither a number below %d nor a rising range of them (0-7)", text,
                          (int)DEVICES_MAX);
}

pl_code pl_tree_reading_devices(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  size_t n = pl_tree_reading_count(value);
  if (n == 0 || n > DEVICES_MAX)
    return pl_document_fail(own->document, value, own->error, "devices is a number, a range of them, or a list: 0-7");
  pl_tree_devices *ranges = PL_TAKE(own->tree->arena, pl_tree_devices, n);
  if (ranges == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (size_t i = 0; i < n; i++)
    PL_TRY(read_range(own, pl_tree_reading_item(value, i), &ranges[i]));
  node->ranges = ranges;
  node->n_ranges = (int32_t)n;
  node->has_devices = true;
  node->devices_at = pl_tree_reading_place(own, value);
  return PL_OK;
}

/* ---- partitions ---- */

/* "v|g|r|f". */
static pl_code read_dims(const pl_tree_reading *own, const pl_node *key, pl_tree_cut *cut) {
  const char *text;
  PL_TRY(pl_node_as_string(own->document, key, &text, own->error));
  if (strcmp(text, "replicate") == 0) return PL_OK;
  for (;;) {
    size_t length = strcspn(text, "|");
    bool fits = length > 0 && length < PL_IR_NAME_MAX && (text[0] < '0' || text[0] > '9');
    for (size_t i = 0; i < length && fits; i++)
      fits = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", text[i]) != NULL;
    if (!fits || cut->n_dims == PL_TREE_DIMS_MAX)
      return pl_document_fail(own->document, key, own->error,
                              "a partition has dimensions, those to choose from with '|' between them (b, v|g|r|f; at "
                              "most %d), or replicate",
                              PL_TREE_DIMS_MAX);
    char name[PL_IR_NAME_MAX] = {0};
    memcpy(name, text, length);
    cut->dims[cut->n_dims++] = pl_ir_name_of(name);
    if (text[length] == 0) return PL_OK;
    text += length + 1;
  }
}

static bool is_number(const pl_tree_reading *own, const pl_node *node) {
  double number;
  return pl_node_as_number(own->document, node, &number, NULL) == PL_OK;
}

static pl_code read_degree(const pl_tree_reading *own, const pl_node *value, pl_tree_cut *cut) {
  if (pl_node_is_mapping(value))
    return pl_document_fail(own->document, value, own->error,
                            "over how many devices, or the axes of the mesh over which: a number, a name, or a list of "
                            "names");
  if (!pl_node_is_sequence(value) && is_number(own, value)) {
    int64_t degree;
    PL_TRY(pl_tree_reading_integer(own, value, "a degree", PL_TREE_DEGREE_MAX, &degree));
    cut->degree = (int32_t)degree;
    return PL_OK;
  }
  size_t n = pl_tree_reading_count(value);
  if (n == 0 || n > PL_IR_AXES_MAX)
    return pl_document_fail(own->document, value, own->error, "1 to %d axes", PL_IR_AXES_MAX);
  for (size_t i = 0; i < n; i++)
    PL_TRY(pl_tree_reading_name(own, pl_tree_reading_item(value, i), "an axis", &cut->axes[cut->n_axes++]));
  return PL_OK;
}

pl_code pl_tree_reading_partition(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  size_t n = pl_node_count(value);
  if (!pl_node_is_mapping(value) || n > PL_TREE_CUTS_MAX)
    return pl_document_fail(
        own->document, value, own->error,
        "partition says dimension: degree, outermost devices first ({b: 2, v|g|r|f: 4}), at most %d "
        "of them",
        PL_TREE_CUTS_MAX);
  pl_tree_cut *cuts = PL_TAKE(own->tree->arena, pl_tree_cut, n + 1);
  if (cuts == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (size_t i = 0; i < n; i++) {
    const char *key;
    const pl_node *entry = pl_node_entry(own->document, value, i, &key);
    PL_TRY(read_dims(own, pl_node_key(value, i), &cuts[i]));
    PL_TRY(read_degree(own, entry, &cuts[i]));
    cuts[i].place = pl_tree_reading_place(own, pl_node_key(value, i));
  }
  node->cuts = cuts;
  node->n_cuts = (int32_t)n;
  node->partition_at = pl_tree_reading_place(own, value);
  return PL_OK;
}

/* "b", "b/4", "dp", "host". */
static pl_code read_over(const pl_tree_reading *own, const pl_node *value, pl_tree_spread *spread) {
  const char *text;
  PL_TRY(pl_node_as_string(own->document, value, &text, own->error));
  if (strcmp(text, "host") == 0) {
    spread->host = true;
    return PL_OK;
  }
  size_t length = strcspn(text, "/"), digits = text[length] == '/' ? strspn(text + length + 1, "0123456789") : 0;
  bool fits = length > 0 && length < PL_IR_NAME_MAX && (text[0] < '0' || text[0] > '9');
  for (size_t i = 0; i < length && fits; i++)
    fits = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", text[i]) != NULL;
  if (text[length] == '/') fits = fits && digits > 0 && digits < 7 && text[length + 1 + digits] == 0;
  if (!fits)
    return pl_document_fail(own->document, value, own->error,
                            "'%.64s' is not where a tensor may lie: a dimension of the partition (b), the innermost "
                            "devices of it (b/4), an axis of the mesh, host or none",
                            text);
  memcpy(spread->over[spread->n].text, text, length);
  spread->degree[spread->n++] = digits > 0 ? (int32_t)strtol(text + length + 1, NULL, 10) : 0;
  return PL_OK;
}

static pl_code read_spread(const pl_tree_reading *own, const pl_node *value, pl_tree_spread *spread) {
  const char *text;
  size_t n = pl_tree_reading_count(value);
  *spread = (pl_tree_spread){.is_said = true, .place = pl_tree_reading_place(own, value)};
  if (n == 0 || n > PL_IR_AXES_MAX)
    return pl_document_fail(own->document, value, own->error, "1 to %d dimensions or axes", PL_IR_AXES_MAX);
  if (!pl_node_is_sequence(value)) {
    PL_TRY(pl_node_as_string(own->document, value, &text, own->error));
    if (strcmp(text, "none") == 0) return PL_OK;
  }
  for (size_t i = 0; i < n; i++)
    PL_TRY(read_over(own, pl_tree_reading_item(value, i), spread));
  return PL_OK;
}

pl_code pl_tree_reading_memory(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  PL_TRY(pl_tree_reading_check_keys(own, value, "memory", pl_tree_tensor_names));
  for (int32_t i = 0; i < PL_LAYOUT_TENSOR_COUNT; i++) {
    const pl_node *at = pl_node_get(value, pl_tree_tensor_names[i]);
    if (at != NULL) PL_TRY(read_spread(own, at, &node->memory[i]));
    if (at != NULL && node->memory[i].host && i == PL_LAYOUT_PARAMETERS)
      return pl_document_fail(
          own->document, at, own->error,
          "%s stay on the devices: host is for states, with which the host's processors update, for gradients "
          "beside them, and for what is kept",
          pl_tree_tensor_names[i]);
  }
  return PL_OK;
}
