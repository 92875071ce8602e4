/* Strategy trees and spaces of them: what is accepted has nodes in order and cuts that stand for something; what is
 * refused has a message that begins with the file. */
#include <stdint.h>
#include <string.h>

#include "workloads/tree/tree_space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in document_fuzz.c: libfyaml loses a little on some malformed input. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void check_node(const pl_strategy_tree *tree, int32_t index) {
  const pl_tree_node *node = &tree->nodes[index];
  int32_t depth;
  PL_ASSERT(index == 0 ? node->parent == -1 : node->parent >= 0 && node->parent < index && node->n_patterns > 0);
  PL_ASSERT(node->depth < PL_TREE_DEPTH_MAX && node->n_cuts <= PL_TREE_CUTS_MAX);
  PL_ASSERT(!node->has_devices || node->n_ranges > 0);
  for (int32_t i = 0; i < node->n_ranges; i++)
    PL_ASSERT(node->ranges[i].first <= node->ranges[i].last);
  for (int32_t i = 0; i < node->n_cuts; i++) {
    const pl_tree_cut *cut = &node->cuts[i];
    PL_ASSERT(pl_tree_is_said(cut->place) && (cut->degree > 0) != (cut->n_axes > 0));
    for (int32_t k = 0; k < cut->n_axes; k++)
      PL_ASSERT(pl_ir_mesh_find(&tree->mesh, cut->axes[k]) >= 0);
  }
  for (int32_t i = 0; i < node->n_patterns; i++)
    pl_tree_matches(node->patterns[i].text, "h.0.mlp.up", &depth);
}

/* Its first and its last tree. */
static void check_space(const char *text, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_tree_space space;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_tree_space_parse("fuzz", text, size, &arena, &space, &error);
  PL_ASSERT(code == error.code && (code != PL_OK || space.n_choices > 0));
  for (int i = 0; code == PL_OK && i < 2; i++) {
    uint32_t index = i == 0 ? 0 : space.n_candidates - 1, found;
    char taken[PL_TREE_TAKEN_BYTES];
    pl_strategy_tree tree;
    pl_error refused = PL_ERROR_INIT;
    PL_ASSERT(pl_tree_space_format(&space, index, taken, sizeof taken) < (int)sizeof taken);
    PL_ASSERT(pl_tree_space_find(&space, taken, &found, &refused) == PL_OK && found == index);
    if (pl_tree_space_take(&space, index, &arena, &tree, &refused) != PL_OK)
      PL_ASSERT(strncmp(refused.message, "fuzz:", 5) == 0);
  }
  if (code != PL_OK) PL_ASSERT(strncmp(error.message, "fuzz:", 5) == 0);
  pl_tree_space_release(&space);
  pl_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check_space((const char *)data, size);
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_strategy_tree tree;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_tree_parse("fuzz", (const char *)data, size, &arena, &tree, &error);
  PL_ASSERT(code == error.code);
  for (int32_t i = 0; code == PL_OK && i < tree.n_nodes; i++)
    check_node(&tree, i);
  if (code != PL_OK) PL_ASSERT(strncmp(error.message, "fuzz:", 5) == 0);
  pl_arena_release(&arena);
  return 0;
}
