/* See core/text/document.h.
 *
 * The events of libfyaml's parser are turned into a tree of our own: children in arrays (libfyaml keeps lists, so
 * element i costs O(i), and 10,000 profile entries would be 50 million steps), the position of every node (its own
 * document layer forgets where empty containers begin), and nothing that a lookup writes to. Its diagnostics are
 * collected, never printed.
 */
#include "core/text/document.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/system/text_file.h"
#include "core/text/document_tree.h"

enum { DEPTH_MAX = 64, FILE_BYTES_MAX = 64 << 20, REPEATED_MAX = 64 };

/* ---- the bytes ---- */

/* `text` has no NUL behind it: no strspn here. */
static bool is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (strchr(" \t\r\n", text[i]) == NULL) return false;
  return true;
}

/* ---- from events to the tree ---- */

typedef struct open_container {
  pl_node *node;
  pl_node *first, *last; /* children so far: of a mapping key, value, key, value ... */
} open_container;

typedef struct reader {
  pl_document *document;
  open_container stack[DEPTH_MAX];
  uint32_t depth;
  uint32_t n_documents;
  pl_error *error;
} reader;

static pl_code fail_at(const pl_document *document, int line, int column, const char *message, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: %s", document->name, line, column, message);
}

static pl_code fail_at_node(const reader *r, const pl_node *node, const char *message) {
  return fail_at(r->document, node->line, node->column, message, r->error);
}

static pl_node *take_node(reader *r, struct fy_event *event, pl_node_type type) {
  pl_node *node = PL_TAKE(&r->document->arena, pl_node, 1);
  if (node == NULL) return NULL;
  node->type = (uint8_t)type;
  const struct fy_mark *mark = fy_event_start_mark(event);
  if (mark != NULL) {
    node->line = mark->line + 1;
    node->column = mark->column + 1;
  }
  return node;
}

/* Hangs a new node into the innermost open container, or makes it the root. */
static void attach(reader *r, pl_node *node) {
  if (r->depth == 0) {
    r->document->root = node;
    return;
  }
  open_container *top = &r->stack[r->depth - 1];
  if (top->last == NULL) {
    top->first = node;
  } else {
    top->last->next = node;
  }
  top->last = node;
  top->node->count++;
}

static bool expects_key(const reader *r) {
  return r->depth > 0 && r->stack[r->depth - 1].node->type == NODE_MAPPING &&
         r->stack[r->depth - 1].node->count % 2 == 0;
}

static pl_code add_scalar(reader *r, struct fy_event *event) {
  struct fy_token *token = fy_event_get_token(event);
  bool plain = token == NULL || fy_scalar_token_get_style(token) == FYSS_PLAIN;
  size_t length = 0;
  const char *text = token != NULL ? fy_token_get_text(token, &length) : "";
  pl_node *node = take_node(r, event, plain ? NODE_PLAIN : NODE_QUOTED);
  char *copy = pl_arena_take(&r->document->arena, length + 1, 1);
  if (node == NULL || copy == NULL || text == NULL) return pl_fail_memory(r->error, r->document->name);
  memcpy(copy, text, length);
  copy[length] = '\0';
  node->text = copy;
  if (!plain && node->column > 1) node->column--; /* the token begins behind its quote */
  if (strlen(copy) != length) return fail_at_node(r, node, "a string with a NUL character in it");
  attach(r, node);
  return PL_OK;
}

static pl_code open_node(reader *r, struct fy_event *event, pl_node_type type) {
  bool as_key = expects_key(r);
  pl_node *node = take_node(r, event, type);
  if (node == NULL) return pl_fail_memory(r->error, r->document->name);
  if (as_key) return fail_at_node(r, node, "a key must be a string");
  if (r->depth == DEPTH_MAX) return fail_at_node(r, node, "nested too deeply (more than 64 levels)");
  attach(r, node);
  r->stack[r->depth++] = (open_container){.node = node};
  return PL_OK;
}

static int compare_keys(const void *a, const void *b) {
  const pl_node *x = *(const pl_node *const *)a, *y = *(const pl_node *const *)b;
  int order = strcmp(x->text, y->text);
  if (order != 0) return order;
  if (x->line != y->line) return x->line < y->line ? -1 : 1;
  return (x->column > y->column) - (x->column < y->column);
}

static pl_code refuse_duplicates(const reader *r, const pl_node *const *sorted, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0)
      return pl_fail(r->error, PL_BAD_INPUT, "%s:%d:%d: key '%.64s' occurs twice (first in line %d)", r->document->name,
                     sorted[i]->line, sorted[i]->column, sorted[i]->text, sorted[i - 1]->line);
  return PL_OK;
}

static uint32_t place_of(const pl_node *mapping, const pl_node *key) {
  uint32_t i = 0;
  while (mapping->keys[i] != key)
    i++;
  return i;
}

/* Those in front of the last become entries without effect: with the value of the last. */
static pl_code overrule_duplicates(const reader *r, const pl_node *mapping, const pl_node *const *sorted, uint32_t n) {
  pl_document *document = r->document;
  for (uint32_t i = n; i-- > 1;) { /* from the last on: it counts */
    if (strcmp(sorted[i - 1]->text, sorted[i]->text) != 0) continue;
    if (document->n_repeated++ == REPEATED_MAX) return refuse_duplicates(r, sorted, n);
    pl_node *kept = PL_TAKE(&document->arena, pl_node, 1);
    if (kept == NULL) return pl_fail_memory(r->error, document->name);
    mapping->values[place_of(mapping, sorted[i - 1])] = mapping->values[place_of(mapping, sorted[i])];
    *kept = *sorted[i];
    kept->next = document->repeated;
    document->repeated = kept;
  }
  return PL_OK;
}

static pl_code treat_duplicates(const reader *r, const pl_node *mapping) {
  pl_arena *arena = &r->document->arena;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  const pl_node **sorted = PL_COPY(arena, const pl_node *, (const pl_node *const *)mapping->keys, mapping->count);
  if (sorted == NULL) return pl_fail_memory(r->error, r->document->name);
  qsort(sorted, mapping->count, sizeof *sorted, compare_keys);
  if (r->document->is_loose) return overrule_duplicates(r, mapping, sorted, mapping->count);
  pl_code code = refuse_duplicates(r, sorted, mapping->count);
  pl_arena_release_to(arena, mark);
  return code;
}

/* Turns the innermost container's list of children into arrays. */
static pl_code close_node(reader *r) {
  const open_container *top = &r->stack[--r->depth];
  pl_node *node = top->node;
  bool is_mapping = node->type == NODE_MAPPING;
  if (is_mapping) node->count /= 2;
  node->values = PL_TAKE(&r->document->arena, const pl_node *, node->count);
  if (is_mapping) node->keys = PL_TAKE(&r->document->arena, const pl_node *, node->count);
  if (node->values == NULL || (is_mapping && node->keys == NULL)) return pl_fail_memory(r->error, r->document->name);
  uint32_t i = 0;
  for (const pl_node *child = top->first; child != NULL; child = child->next) {
    if (is_mapping) {
      node->keys[i] = child;
      child = child->next;
    }
    node->values[i++] = child;
  }
  return is_mapping ? treat_duplicates(r, node) : PL_OK;
}

static pl_code fail_at_event(const reader *r, struct fy_event *event, const char *what) {
  const struct fy_mark *mark = fy_event_start_mark(event);
  return fail_at(r->document, mark != NULL ? mark->line + 1 : 0, mark != NULL ? mark->column + 1 : 0, what, r->error);
}

static pl_code take_event(reader *r, struct fy_event *event) {
  switch (event->type) {
  case FYET_SCALAR:
    return add_scalar(r, event);
  case FYET_MAPPING_START:
    return open_node(r, event, NODE_MAPPING);
  case FYET_SEQUENCE_START:
    return open_node(r, event, NODE_SEQUENCE);
  case FYET_MAPPING_END:
  case FYET_SEQUENCE_END:
    return close_node(r);
  case FYET_DOCUMENT_START:
    if (r->n_documents++ == 0) return PL_OK;
    return fail_at_event(r, event, "more than one document in the file");
  case FYET_ALIAS:
    return fail_at_event(r, event, "aliases (*name) are not supported: write the value out");
  case FYET_NONE:
  case FYET_STREAM_START:
  case FYET_STREAM_END:
  case FYET_DOCUMENT_END:
    break;
  }
  return PL_OK;
}

/* The parser's own complaint, or a general one when it has none. What it says of scalars in JSON ("Multi line plain
 * scalars not supported in JSON mode") it says of anything that is not a value: XML, a comment, a missing quote. */
static pl_code fail_with_diagnostics(const reader *r, struct fy_diag *diag) {
  void *iterator = NULL;
  const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &iterator);
  if (first == NULL) return pl_fail(r->error, PL_BAD_INPUT, "%s: cannot be parsed", r->document->name);
  const char *message = first->msg;
  if (r->document->json && strstr(message, "scalar") != NULL)
    message =
        "not valid JSON here: a value is an object, an array, a text in double quotes, a number, true, false or null";
  return fail_at(r->document, first->line, first->column, message, r->error);
}

static pl_code read_events(reader *r, struct fy_parser *parser, struct fy_diag *diag) {
  pl_code code = PL_OK;
  bool at_end = false;
  while (code == PL_OK && !at_end) {
    struct fy_event *event = fy_parser_parse(parser);
    if (event == NULL) return fail_with_diagnostics(r, diag);
    at_end = event->type == FYET_STREAM_END;
    code = take_event(r, event);
    fy_parser_event_free(parser, event);
  }
  if (code == PL_OK && fy_parser_get_stream_error(parser)) code = fail_with_diagnostics(r, diag);
  if (code == PL_OK && r->document->root == NULL)
    code = pl_fail(r->error, PL_BAD_INPUT, "%s:1:1: the document is empty", r->document->name);
  return code;
}

static void swallow(struct fy_diag *diag, void *user, const char *text, size_t size) {
  (void)diag, (void)user, (void)text, (void)size;
}

/* Bytes of the end of a line, 0: there is none: of YAML 1.1 as well, which a file may ask for. */
static size_t line_end(const char *text, size_t size) {
  static const char *const ends[] = {"\r\n", "\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
  if (size == 0 || strchr("\n\r\xc2\xe2", *text) == NULL) return 0;
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    size_t length = strlen(ends[i]);
    if (length <= size && memcmp(text, ends[i], length) == 0) return length;
  }
  return 0;
}

/* '? key' in front of a line, or behind '- ': keys are texts here, and libfyaml 0.8 crashes on some that begin so and
 * go wrong ("? a:\t:"). Where a text of several lines has such a line, it is refused too. */
static pl_code refuse_explicit_keys(const pl_document *document, const char *text, size_t size, pl_error *error) {
  int line = 1;
  for (size_t at = 0; at < size; at += line_end(text + at, size - at)) {
    size_t start = at, next;
    while (at < size &&
           (text[at] == ' ' || text[at] == '\t' || (text[at] == '-' && at + 1 < size && text[at + 1] == ' ')))
      at++;
    next = at + 1;
    bool ends = next >= size || text[next] == ' ' || text[next] == '\t' || line_end(text + next, size - next) > 0;
    if (at < size && text[at] == '?' && ends)
      return fail_at(document, line, (int)(at - start) + 1, "a key must be a string: KEY: VALUE, without '?'", error);
    while (at < size && line_end(text + at, size - at) == 0)
      at++;
    line++;
  }
  return PL_OK;
}

static pl_code parse_into(pl_document *document, const char *text, size_t size, pl_error *error) {
  struct fy_diag_cfg diag_cfg;
  fy_diag_cfg_default(&diag_cfg);
  diag_cfg.fp = NULL;
  diag_cfg.output_fn = swallow;
  diag_cfg.colorize = false;
  struct fy_diag *diag = fy_diag_create(&diag_cfg);
  if (diag == NULL) return pl_fail_memory(error, document->name);
  fy_diag_set_collect_errors(diag, true);
  const struct fy_parse_cfg cfg = {.flags = document->json ? FYPCF_JSON_FORCE : FYPCF_JSON_NONE, .diag = diag};
  struct fy_parser *parser = fy_parser_create(&cfg);
  reader *r = PL_TAKE(&document->arena, reader, 1);
  pl_code code;
  if (parser == NULL || r == NULL || fy_parser_set_string(parser, text, size) != 0) {
    code = pl_fail_memory(error, document->name);
  } else {
    r->document = document;
    r->error = error;
    code = read_events(r, parser, diag);
  }
  if (parser != NULL) fy_parser_destroy(parser);
  fy_diag_destroy(diag);
  return code;
}

static pl_code parse(const char *name, const char *text, size_t size, bool json, bool is_loose, pl_document **document,
                     pl_error *error) {
  *document = NULL;
  if (size > FILE_BYTES_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: %zu bytes are too many for a configuration (at most 64 MiB)", name, size);
  uint64_t digest = pl_hash_bytes(text, size, 0);
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; /* byte order mark */
  PL_TRY(pl_text_check(name, text, size, error));
  if (is_blank(text, size)) return pl_fail(error, PL_BAD_INPUT, "%s:1:1: the document is empty", name);
  pl_document *made = calloc(1, sizeof *made);
  if (made == NULL) return pl_fail_memory(error, name);
  pl_arena_init(&made->arena, (size_t)1 << 14);
  made->json = json;
  made->is_loose = is_loose;
  made->digest = digest;
  made->name = pl_arena_strdup(&made->arena, name);
  pl_code code = made->name == NULL ? pl_fail_memory(error, name) : PL_OK;
  if (code == PL_OK && !json) code = refuse_explicit_keys(made, text, size, error);
  if (code == PL_OK) code = parse_into(made, text, size, error);
  if (code != PL_OK) {
    pl_document_destroy(made);
    return code;
  }
  *document = made;
  return PL_OK;
}

static bool ends_with(const char *text, const char *tail) {
  size_t length = strlen(text), tail_length = strlen(tail);
  return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

pl_code pl_document_parse(const char *name, const char *text, size_t size, bool json, pl_document **document,
                          pl_error *error) {
  return parse(name, text, size, json, false, document, error);
}

pl_code pl_document_parse_loose(const char *name, const char *text, size_t size, bool json, pl_document **document,
                                pl_error *error) {
  return parse(name, text, size, json, true, document, error);
}

const pl_node *pl_document_repeated(const pl_document *document, size_t index) {
  const pl_node *node = document->repeated;
  for (; node != NULL && index > 0; index--)
    node = node->next;
  return node;
}

pl_code pl_document_load(const char *path, pl_document **document, pl_error *error) {
  *document = NULL;
  char *text;
  size_t size;
  PL_TRY(pl_text_file_load(path, FILE_BYTES_MAX, &text, &size, error));
  bool yaml = ends_with(path, ".yaml") || ends_with(path, ".yml");
  pl_code code = pl_document_parse(path, text, size, !yaml, document, error);
  free(text);
  return code;
}

void pl_document_destroy(pl_document *document) {
  if (document == NULL) return;
  pl_arena_release(&document->arena);
  free(document);
}

const pl_node *pl_document_root(const pl_document *document) {
  return document->root;
}

const char *pl_document_name(const pl_document *document) {
  return document->name;
}

uint64_t pl_document_digest(const pl_document *document) {
  return document->digest;
}
