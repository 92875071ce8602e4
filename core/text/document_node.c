/* See core/text/document.h: look-ups in the tree, and errors that name the place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/text/document_tree.h"

pl_code pl_document_fail(const pl_document *document, const pl_node *node, pl_error *error, const char *format, ...) {
  char message[PL_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (node == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: %s", document->name, message);
  return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: %s", document->name, node->line, node->column, message);
}

bool pl_node_is_mapping(const pl_node *node) {
  return node != NULL && node->type == NODE_MAPPING;
}

bool pl_node_is_sequence(const pl_node *node) {
  return node != NULL && node->type == NODE_SEQUENCE;
}

size_t pl_node_count(const pl_node *node) {
  return node != NULL ? node->count : 0;
}

const pl_node *pl_node_at(const pl_node *sequence, size_t index) {
  return pl_node_is_sequence(sequence) && index < sequence->count ? sequence->values[index] : NULL;
}

const char *pl_node_text(const pl_node *node) {
  return node->type == NODE_PLAIN || node->type == NODE_QUOTED ? node->text : NULL;
}

const pl_node *pl_node_entry(const pl_document *document, const pl_node *mapping, size_t index, const char **key) {
  (void)document;
  if (!pl_node_is_mapping(mapping) || index >= mapping->count) return NULL;
  *key = mapping->keys[index]->text;
  return mapping->values[index];
}

static bool is_null(const pl_node *node) {
  if (node->type != NODE_PLAIN) return false;
  const char *text = node->text;
  return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
         strcmp(text, "NULL") == 0;
}

const pl_node *pl_node_key(const pl_node *mapping, size_t index) {
  return pl_node_is_mapping(mapping) && index < mapping->count ? mapping->keys[index] : NULL;
}

void pl_node_place(const pl_node *node, int *line, int *column) {
  *line = node->line;
  *column = node->column;
}

bool pl_node_is_null(const pl_node *node) {
  return node == NULL || is_null(node);
}

const pl_node *pl_node_get(const pl_node *mapping, const char *key) {
  if (!pl_node_is_mapping(mapping)) return NULL;
  for (uint32_t i = 0; i < mapping->count; i++)
    if (strcmp(mapping->keys[i]->text, key) == 0) return is_null(mapping->values[i]) ? NULL : mapping->values[i];
  return NULL;
}

static const char *kind_of(const pl_document *document, const pl_node *node) {
  switch ((pl_node_type)node->type) {
  case NODE_MAPPING:
    return "a mapping";
  case NODE_SEQUENCE:
    return "a list";
  case NODE_QUOTED:
    return "a string";
  case NODE_PLAIN:
    break;
  }
  if (is_null(node)) return "null";
  if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) return "a boolean";
  return strchr("+-.0123456789", node->text[0]) != NULL ? "a number" : document->json ? "a value" : "a string";
}

/* [-+]digits[.digits][e[-+]digits]: strtod alone would take hexadecimal, "nan" and "infinity". */
static bool is_number(const char *s) {
  s += *s == '-' || *s == '+';
  size_t whole = strspn(s, "0123456789");
  s += whole;
  if (*s == '.') {
    size_t fraction = strspn(++s, "0123456789");
    if (whole + fraction == 0) return false;
    s += fraction;
  } else if (whole == 0) {
    return false;
  }
  if (*s == 'e' || *s == 'E') {
    s++;
    s += *s == '-' || *s == '+';
    size_t exponent = strspn(s, "0123456789");
    if (exponent == 0) return false;
    s += exponent;
  }
  return *s == '\0';
}

/* `key` is NULL for elements of lists. */
static pl_code fail_type(const pl_document *document, const pl_node *node, const char *key, const char *expected,
                         pl_error *error) {
  bool scalar = node->type == NODE_PLAIN || node->type == NODE_QUOTED;
  const char *kind = kind_of(document, node), *text = scalar ? node->text : "", *quote = scalar ? "'" : "";
  if (key == NULL)
    return pl_document_fail(document, node, error, "expected %s, found %s%s%s%.64s%s", expected, kind,
                            scalar ? " " : "", quote, text, quote);
  return pl_document_fail(document, node, error, "'%s' must be %s, not %s%s%s%.64s%s", key, expected, kind,
                          scalar ? " " : "", quote, text, quote);
}

/* NULL when it failed. */
static const pl_node *require(const pl_document *document, const pl_node *mapping, const char *key, pl_error *error) {
  const pl_node *value = pl_node_get(mapping, key);
  if (!pl_node_is_mapping(mapping)) {
    pl_document_fail(document, mapping, error, "expected a mapping with the key '%s'", key);
  } else if (value == NULL) {
    pl_document_fail(document, mapping, error, "the key '%s' is missing", key);
  }
  return value;
}

static pl_code to_string(const pl_document *document, const pl_node *node, const char *key, const char **value,
                         pl_error *error) {
  bool is_string = node->type == NODE_QUOTED || (node->type == NODE_PLAIN && !document->json && !is_null(node));
  if (!is_string) return fail_type(document, node, key, "a string", error);
  *value = node->text;
  return PL_OK;
}

static pl_code to_number(const pl_document *document, const pl_node *node, const char *key, double *value,
                         pl_error *error) {
  if (node->type != NODE_PLAIN || !is_number(node->text)) return fail_type(document, node, key, "a number", error);
  double parsed = strtod(node->text, NULL);
  if (!isfinite(parsed)) return pl_document_fail(document, node, error, "%.64s is too large a number", node->text);
  *value = parsed;
  return PL_OK;
}

pl_code pl_node_string(const pl_document *document, const pl_node *mapping, const char *key, const char **value,
                       pl_error *error) {
  const pl_node *node = require(document, mapping, key, error);
  if (node == NULL) return PL_BAD_INPUT;
  return to_string(document, node, key, value, error);
}

pl_code pl_node_name(const pl_document *document, const pl_node *mapping, const char *key, const char **value,
                     pl_error *error) {
  PL_TRY(pl_node_string(document, mapping, key, value, error));
  if (*pl_printable_end(*value) == '\0') return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error,
                          "'%s' has characters that cannot be printed: \"%.64s\"", key, *value);
}

pl_code pl_node_number(const pl_document *document, const pl_node *mapping, const char *key, double *value,
                       pl_error *error) {
  const pl_node *node = require(document, mapping, key, error);
  if (node == NULL) return PL_BAD_INPUT;
  return to_number(document, node, key, value, error);
}

/* Also takes 1e9 and 64.0, which some exporters write; beyond 2^53 a double cannot tell neighbours apart, so it must be
 * written out. */
pl_code pl_node_integer(const pl_document *document, const pl_node *mapping, const char *key, int64_t lowest,
                        int64_t highest, int64_t *value, pl_error *error) {
  const pl_node *node = require(document, mapping, key, error);
  if (node == NULL) return PL_BAD_INPUT;
  double number = 0.0;
  if (node->type != NODE_PLAIN || !is_number(node->text)) return fail_type(document, node, key, "an integer", error);
  PL_TRY(to_number(document, node, key, &number, error));
  if (number != nearbyint(number)) return fail_type(document, node, key, "an integer", error);
  errno = 0;
  long long parsed = 0;
  bool in_range = true;
  if (node->text[strspn(node->text, "+-0123456789")] == '\0') {
    parsed = strtoll(node->text, NULL, 10);
    in_range = errno != ERANGE;
  } else {
    in_range = fabs(number) <= 0x1p53;
    if (in_range) parsed = (long long)number;
  }
  if (!in_range || parsed < lowest || parsed > highest)
    return pl_document_fail(document, node, error, "'%s' is %.64s, out of the range %lld to %lld", key, node->text,
                            (long long)lowest, (long long)highest);
  *value = parsed;
  return PL_OK;
}

pl_code pl_node_boolean(const pl_document *document, const pl_node *mapping, const char *key, bool *value,
                        pl_error *error) {
  const pl_node *node = require(document, mapping, key, error);
  if (node == NULL) return PL_BAD_INPUT;
  bool is_true = node->type == NODE_PLAIN && strcmp(node->text, "true") == 0;
  bool is_false = node->type == NODE_PLAIN && strcmp(node->text, "false") == 0;
  if (!is_true && !is_false) return fail_type(document, node, key, "true or false", error);
  *value = is_true;
  return PL_OK;
}

pl_code pl_node_as_string(const pl_document *document, const pl_node *node, const char **value, pl_error *error) {
  return to_string(document, node, NULL, value, error);
}

pl_code pl_node_as_number(const pl_document *document, const pl_node *node, double *value, pl_error *error) {
  return to_number(document, node, NULL, value, error);
}
