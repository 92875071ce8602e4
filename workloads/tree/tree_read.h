/* What the files of the reader share. Internal to workloads/tree/tree_read*.c. */
#ifndef PL_WORKLOADS_TREE_READ_H
#define PL_WORKLOADS_TREE_READ_H

#include "core/text/document.h"
#include "workloads/tree/tree.h"

typedef struct pl_tree_reading {
  const pl_document *document;
  const char *file; /* its name, in the arena */
  pl_strategy_tree *tree;
  int32_t level;                        /* of includes */
  const struct pl_tree_reading *within; /* the file that includes this one; NULL: none */
  pl_error *error;
} pl_tree_reading;

pl_tree_place pl_tree_reading_place(const pl_tree_reading *own, const pl_node *node);
/* PL_BAD_INPUT at the key; names what keys there are. `keys` is ended by NULL. */
pl_code pl_tree_reading_check_keys(const pl_tree_reading *own, const pl_node *mapping, const char *what,
                                   const char *const *keys);
pl_code pl_tree_reading_integer(const pl_tree_reading *own, const pl_node *node, const char *what, int64_t most,
                                int64_t *value);
/* Index of a word of `words`. */
pl_code pl_tree_reading_word(const pl_tree_reading *own, const pl_node *node, const char *what,
                             const char *const *words, int *found);
pl_code pl_tree_reading_name(const pl_tree_reading *own, const pl_node *node, const char *what, pl_ir_name *name);
/* The tree that a document says, whose file is at `path`: pl_tree_load behind its reading. */
pl_code pl_tree_of_document(const char *path, const pl_document *document, pl_arena *arena, pl_strategy_tree *tree,
                            pl_error *error);
/* A list as it is, anything else as a list of one. */
size_t pl_tree_reading_count(const pl_node *node);
const pl_node *pl_tree_reading_item(const pl_node *node, size_t index);

/* tree_read_leaf.c: `partition`, `memory`, `match`, `ops`, `devices`. */
pl_code pl_tree_reading_partition(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node);
pl_code pl_tree_reading_memory(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node);
pl_code pl_tree_reading_patterns(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node);
pl_code pl_tree_reading_rows(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node);
pl_code pl_tree_reading_devices(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node);

#endif
