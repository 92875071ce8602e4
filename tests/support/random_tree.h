/* Random small models, and random strategy trees on 2 to 16 devices for them, as texts. The same state of `random`
 * gives the same texts, which the caller frees. */
#ifndef PL_TESTS_SUPPORT_RANDOM_TREE_H
#define PL_TESTS_SUPPORT_RANDOM_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { RANDOM_TREE_KINDS = 3, RANDOM_TREE_BATCH = 16 };

/* Layers of a few kinds on tokens [b,s,h]. */
typedef struct random_tree_shape {
  int32_t s, h, f, g, d, n_kinds, n_layers, kind_of[8];
  uint64_t body[RANDOM_TREE_KINDS]; /* seeds of the functions */
  bool skips[8];                    /* the layer adds what came two in front of it */
} random_tree_shape;

random_tree_shape random_tree_shape_of(uint64_t *random);
/* The program of the model, with so many microbatches. */
char *random_tree_model(const random_tree_shape *of, int32_t n_microbatches);
/* A tree for it (YAML), and how many microbatches it has. */
char *random_tree_text(uint64_t *random, const random_tree_shape *of, int32_t *n_microbatches);

#endif
