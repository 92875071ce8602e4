/* See core/text/document_copy.h. */
#include "core/text/document_copy.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/document_tree.h"

/* ---- copies ---- */

typedef struct copying {
  pl_arena *arena;
  pl_node_substitute substitute;
  void *context;
} copying;

static const pl_node *copy_node(const copying *own, const pl_node *from);

static const pl_node **copy_list(const copying *own, const pl_node *const *from, uint32_t n, bool keys) {
  const pl_node **list = PL_TAKE(own->arena, const pl_node *, n);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    copying plain = *own;
    if (keys) plain.substitute = NULL;
    if ((list[i] = copy_node(&plain, from[i])) == NULL) return NULL;
  }
  return list;
}

static const pl_node *copy_node(const copying *own, const pl_node *from) {
  if (own->substitute != NULL) from = own->substitute(own->context, from);
  pl_node *to = PL_TAKE(own->arena, pl_node, 1);
  if (to == NULL) return NULL;
  *to = *from;
  to->next = NULL;
  if (from->text != NULL && (to->text = pl_arena_strdup(own->arena, from->text)) == NULL) return NULL;
  if (from->keys != NULL && (to->keys = copy_list(own, from->keys, from->count, true)) == NULL) return NULL;
  if (from->values != NULL && (to->values = copy_list(own, from->values, from->count, false)) == NULL) return NULL;
  return to;
}

pl_code pl_document_copy(const pl_document *from, pl_node_substitute substitute, void *context, pl_document **copy,
                         pl_error *error) {
  pl_document *made = calloc(1, sizeof *made);
  *copy = NULL;
  if (made == NULL) return pl_fail_memory(error, "a document");
  pl_arena_init(&made->arena, 1 << 14);
  const copying own = {.arena = &made->arena, .substitute = substitute, .context = context};
  made->digest = from->digest;
  made->json = from->json;
  made->name = pl_arena_strdup(&made->arena, from->name);
  made->root = copy_node(&own, from->root);
  if (made->name == NULL || made->root == NULL) {
    pl_document_destroy(made);
    return pl_fail_memory(error, "a document");
  }
  *copy = made;
  return PL_OK;
}

/* ---- YAML ---- */

static void put_scalar(FILE *stream, const pl_node *node) {
  if (node->type == NODE_PLAIN) {
    fputs(node->text[0] != '\0' ? node->text : "~", stream);
    return;
  }
  fputc('"', stream);
  for (const char *c = node->text; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(stream, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      fprintf(stream, "\\x%02x", (unsigned char)*c);
    else
      fputc(*c, stream);
  }
  fputc('"', stream);
}

static bool is_scalar(const pl_node *node) {
  return node->type == NODE_PLAIN || node->type == NODE_QUOTED;
}

/* Whether it can stand between brackets: scalars alone, none with what ends one there. */
static bool is_flat(const pl_node *node) {
  for (uint32_t i = 0; i < node->count; i++) {
    if (!is_scalar(node->values[i]) || (node->keys != NULL && !is_scalar(node->keys[i]))) return false;
    if (node->values[i]->type == NODE_PLAIN && strpbrk(node->values[i]->text, ",[]{}:#") != NULL) return false;
    if (node->keys != NULL && strpbrk(node->keys[i]->text, ",[]{}:#") != NULL) return false;
  }
  return true;
}

static void put_flat(FILE *stream, const pl_node *node) {
  bool mapping = node->type == NODE_MAPPING;
  fputc(mapping ? '{' : '[', stream);
  for (uint32_t i = 0; i < node->count; i++) {
    if (i > 0) fputs(", ", stream);
    if (mapping) put_scalar(stream, node->keys[i]);
    if (mapping) fputs(": ", stream);
    put_scalar(stream, node->values[i]);
  }
  fputc(mapping ? '}' : ']', stream);
}

static void put_node(FILE *stream, const pl_node *node, int indent, bool goes_on);

/* Behind "key:": on the line, or below it. */
static void put_value(FILE *stream, const pl_node *node, int indent) {
  if (is_scalar(node) || is_flat(node)) {
    fputc(' ', stream);
    put_node(stream, node, indent, true);
  } else {
    fputc('\n', stream);
    put_node(stream, node, indent, false);
  }
}

/* `goes_on`: the first line is begun already. */
static void put_node(FILE *stream, const pl_node *node, int indent, bool goes_on) {
  bool flat = is_scalar(node) || (is_flat(node) && indent > 0);
  if (flat) {
    is_scalar(node) ? put_scalar(stream, node) : put_flat(stream, node);
    fputc('\n', stream);
    return;
  }
  for (uint32_t i = 0; i < node->count; i++) {
    fprintf(stream, "%*s", i > 0 || !goes_on ? indent : 0, "");
    if (node->type == NODE_SEQUENCE) {
      fputs("- ", stream);
      put_node(stream, node->values[i], indent + 2, true);
    } else {
      put_scalar(stream, node->keys[i]);
      fputc(':', stream);
      put_value(stream, node->values[i], indent + 2);
    }
  }
}

void pl_document_write_yaml(const pl_document *document, FILE *stream) {
  put_node(stream, document->root, 0, false);
}
