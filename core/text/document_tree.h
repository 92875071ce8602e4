/* The tree behind core/text/document.h, shared by the reader (core/text/document.c) and the look-ups
 * (core/text/document_node.c). */
#ifndef PL_CORE_DOCUMENT_TREE_H
#define PL_CORE_DOCUMENT_TREE_H

#include "core/base/arena.h"
#include "core/text/document.h"

typedef enum pl_node_type { NODE_PLAIN, NODE_QUOTED, NODE_SEQUENCE, NODE_MAPPING } pl_node_type;

struct pl_node {
  uint8_t type;         /* pl_node_type; the first two are scalars */
  uint32_t count;       /* entries of a container */
  int line, column;     /* from 1 */
  const char *text;     /* scalars */
  pl_node *next;        /* sibling, while the tree is built */
  const pl_node **keys; /* mappings */
  const pl_node **values;
};

struct pl_document {
  pl_arena arena; /* the nodes and their text */
  const char *name;
  const pl_node *root;
  uint64_t digest;
  bool json;
  bool is_loose; /* keys may occur twice */
  uint32_t n_repeated;
  pl_node *repeated; /* keys that occurred before in their mapping, the last one first, by `next` */
};

#endif
