/* Documents made of documents: a copy in which some nodes are put in place of others, and YAML of a document. */
#ifndef PL_CORE_DOCUMENT_COPY_H
#define PL_CORE_DOCUMENT_COPY_H

#include <stdio.h>

#include "core/text/document.h"

/* What stands in the copy where `node` stands: itself, or another node of the document. */
typedef const pl_node *(*pl_node_substitute)(void *context, const pl_node *node);

/* Nodes keep their places in the file of `from`, which the copy needs no longer. The caller destroys *copy. */
pl_code pl_document_copy(const pl_document *from, pl_node_substitute substitute, void *context, pl_document **copy,
                         pl_error *error);
/* The document as YAML, without its comments. */
void pl_document_write_yaml(const pl_document *document, FILE *stream);

#endif
