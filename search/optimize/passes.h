/* The registry of passes: what --passes may name. */
#ifndef PL_SEARCH_PASSES_H
#define PL_SEARCH_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef enum pl_pass_kind {
  PL_PASS_OP_FUSION = 0,
  PL_PASS_TENSOR_FUSION,
  PL_PASS_TENSOR_PARTITION,
  PL_PASS_RECOMPUTE,
  PL_PASS_ACCUMULATE,
  PL_PASS_MIXED_PRECISION,
  PL_PASS_COUNT
} pl_pass_kind;

typedef struct pl_graph_pass {
  const char *name, *summary;
} pl_graph_pass;

extern const pl_graph_pass pl_passes[PL_PASS_COUNT + 1]; /* by kind; the last one has no name */

typedef struct pl_pass_list {
  bool has[PL_PASS_COUNT];
} pl_pass_list;

/* "op-fusion,tensor-fusion"; changes `text`. PL_BAD_INPUT with a near miss. */
pl_code pl_pass_list_parse(char *text, pl_pass_list *list, pl_error *error);

#endif
