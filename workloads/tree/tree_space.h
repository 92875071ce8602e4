/* Strategy spaces: a tree in whose file some values are choices, and so all the trees that it stands for.
 *
 *   schedule: {microbatches: {choose: [4, 8]}, recompute: {choose: [none, full]}}
 *   children: {choose: {owt: [{match: ...}], data: []}, name: layers}
 *   pipeline: {stages: {choose: [1, 2], name: layout}}
 *
 * A choice is a mapping with the key `choose`, of a list of words or numbers, or of a mapping from labels to whatever
 * may stand there, and, if need be, its `name`: else it is called as the key that it stands under. Choices of one name
 * go together, and have the same labels. Candidates are all combinations; the first choice in the file varies slowest.
 */
#ifndef PL_WORKLOADS_TREE_SPACE_H
#define PL_WORKLOADS_TREE_SPACE_H

#include "core/text/document.h"
#include "workloads/tree/tree.h"

enum {
  PL_TREE_CHOICES_MAX = 8,      /* columns of a results file */
  PL_TREE_CHOICE_BYTES = 32,    /* of a name, with its end */
  PL_TREE_LABEL_BYTES = 48,     /* likewise */
  PL_TREE_OPTIONS_MAX = 4096,   /* of a choice */
  PL_TREE_SPACE_MOST = 1000000, /* candidates */
  PL_TREE_TAKEN_BYTES = PL_TREE_CHOICES_MAX * (PL_TREE_CHOICE_BYTES + PL_TREE_LABEL_BYTES)
};

typedef struct pl_tree_choice {
  const char *name;
  int32_t n_options;
  const char **labels;
  int line, column; /* of its first place */
} pl_tree_choice;

/* Const once loaded: threads share it. */
typedef struct pl_tree_space {
  const char *name, *path; /* as it was given; of the file */
  pl_document *document;
  int32_t n_choices;
  pl_tree_choice choices[PL_TREE_CHOICES_MAX];
  uint32_t n_candidates;
} pl_tree_space;

/* The file, else the shipped space of that name. PL_BAD_INPUT: file:line:column, and
 * a file without choices. The caller releases it, after a failure too. */
pl_code pl_tree_space_load(const char *name, pl_arena *arena, pl_tree_space *space, pl_error *error);
/* The same of text; `name` stands for the path in messages. */
pl_code pl_tree_space_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_tree_space *space,
                            pl_error *error);
void pl_tree_space_release(pl_tree_space *space);
uint64_t pl_tree_space_digest(const pl_tree_space *space);

/* What candidate `index` takes of choice `choice`. */
const char *pl_tree_space_label(const pl_tree_space *space, uint32_t index, int32_t choice);
/* "layout=owt,microbatches=4"; "" without choices. Returns the length that was needed, like snprintf. */
int pl_tree_space_format(const pl_tree_space *space, uint32_t index, char *text, size_t size);
/* The candidate that such a text names, which says something of every choice. PL_BAD_INPUT: what there is. */
pl_code pl_tree_space_find(const pl_tree_space *space, const char *text, uint32_t *index, pl_error *error);

/* Candidate `index`, read; places are those of the space's file. */
pl_code pl_tree_space_take(const pl_tree_space *space, uint32_t index, pl_arena *arena, pl_strategy_tree *tree,
                           pl_error *error);
/* Its file: YAML. */
pl_code pl_tree_space_write(const pl_tree_space *space, uint32_t index, FILE *stream, pl_error *error);

#endif
