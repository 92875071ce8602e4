/* Reading of JSON and YAML documents, with errors that name file, line and column.
 *
 * libfyaml parses (JSON strictly as JSON, YAML 1.2 otherwise); duplicate keys, aliases, trailing text and a second
 * document are refused. The bytes are checked first: invalid UTF-8 and control characters are an error here, because
 * libfyaml loops on some of them. Nodes live as long as the document, are immutable and may be read by any number of
 * threads. Lookups take the key and say in the error which key of which file is missing or of the wrong type.
 */
#ifndef PL_CORE_DOCUMENT_H
#define PL_CORE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct pl_document pl_document;
typedef struct pl_node pl_node;

/* The caller destroys *document. Names that end in .yaml or .yml are read as YAML, all others as JSON. Files over 64
 * MiB are refused. A file that cannot be opened is PL_BAD_INPUT. */
pl_code pl_document_load(const char *path, pl_document **document, pl_error *error);
/* `name` stands for the path in messages; `json` chooses the grammar. */
pl_code pl_document_parse(const char *name, const char *text, size_t size, bool json, pl_document **document,
                          pl_error *error);
/* As Python's readers take files of others: of a key that a mapping has twice the last counts (up to 64 times in a
 * file; more are an error). */
pl_code pl_document_parse_loose(const char *name, const char *text, size_t size, bool json, pl_document **document,
                                pl_error *error);
/* Keys that were written again, by number from 0: the key as written where it counts. NULL: no more. */
const pl_node *pl_document_repeated(const pl_document *document, size_t index);
void pl_document_destroy(pl_document *document);
const pl_node *pl_document_root(const pl_document *document);
const char *pl_document_name(const pl_document *document);
/* xxHash64 of the bytes as read. */
uint64_t pl_document_digest(const pl_document *document);

/* Fails with PL_BAD_INPUT at `node` (file:line:column of the node in front of the message). */
pl_code pl_document_fail(const pl_document *document, const pl_node *node, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

bool pl_node_is_mapping(const pl_node *node);
bool pl_node_is_sequence(const pl_node *node);
size_t pl_node_count(const pl_node *node);                        /* entries of a mapping or sequence, else 0 */
const pl_node *pl_node_at(const pl_node *sequence, size_t index); /* NULL when out of range */
const char *pl_node_text(const pl_node *node);                    /* of a scalar, as written; NULL of others */
/* Key and value number `index` of a mapping in file order; key is a NUL-terminated string owned by the document. */
const pl_node *pl_node_entry(const pl_document *document, const pl_node *mapping, size_t index, const char **key);
/* The key itself, for messages that point at it; NULL when out of range. */
const pl_node *pl_node_key(const pl_node *mapping, size_t index);
/* Where it begins in its file, from 1. */
void pl_node_place(const pl_node *node, int *line, int *column);
/* Whether the value is not there, or null. */
bool pl_node_is_null(const pl_node *node);
/* NULL when the key is absent or its value is null. */
const pl_node *pl_node_get(const pl_node *mapping, const char *key);

/* Required values: an absent key or a wrong type is an error. Strings are owned by the document. */
pl_code pl_node_string(const pl_document *document, const pl_node *mapping, const char *key, const char **value,
                       pl_error *error);
/* A string that will be shown: characters that cannot be printed (core/base/printable.h) are an error. */
pl_code pl_node_name(const pl_document *document, const pl_node *mapping, const char *key, const char **value,
                     pl_error *error);
pl_code pl_node_number(const pl_document *document, const pl_node *mapping, const char *key, double *value,
                       pl_error *error);
pl_code pl_node_integer(const pl_document *document, const pl_node *mapping, const char *key, int64_t lowest,
                        int64_t highest, int64_t *value, pl_error *error);
pl_code pl_node_boolean(const pl_document *document, const pl_node *mapping, const char *key, bool *value,
                        pl_error *error);
/* Scalars on their own (sequence elements). */
pl_code pl_node_as_string(const pl_document *document, const pl_node *node, const char **value, pl_error *error);
pl_code pl_node_as_number(const pl_document *document, const pl_node *node, double *value, pl_error *error);

#endif
