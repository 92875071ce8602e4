/* NCCL's trees in dPRO's folders. The patched NCCL writes neither the other end of a message nor its direction, and
 * calls every chunk of a tree chunk 0: a loop is one of its chunks. But a rank sends a chunk to its parent before it
 * sends it to its children, and receives it from its children before it does from its parent. So of the messages of one
 * loop, channel and slice, in the order of their starts, the first ones go up and the rest comes down. Which of several
 * children one is of is not recorded; they are taken in the order in which the tree lists them.
 *
 * Rings have 2 (n - 1) chunks a loop, so a rank whose chunks are all number 0 went along trees. */
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "workloads/formats/dpro_state.h"

/* ---- where the rank stands ---- */

static bool read_rank(const char **text, int32_t *rank) {
  char *end;
  long value = strtol(*text, &end, 10);
  if (end == *text || value < -1 || value > INT32_MAX) return false;
  *text = end;
  *rank = (int32_t)value;
  return true;
}

/* "1/-1/-1->0->-1|..": children, the rank itself, its parent. */
static bool read_tree(const char *text, int64_t number, pl_dpro_tree *tree) {
  int32_t rank;
  for (;;) {
    if (!read_rank(&text, &rank)) return false;
    if (rank >= 0 && tree->n_down < PL_DPRO_MOST_CHILDREN) tree->down[tree->n_down++] = rank;
    if (*text != '/') break;
    text++;
  }
  if (strncmp(text, "->", 2) != 0) return false;
  text += 2;
  if (!read_rank(&text, &rank) || rank != number || strncmp(text, "->", 2) != 0) return false;
  text += 2;
  return read_rank(&text, &tree->up);
}

bool pl_dpro_trees_parse(pl_dpro *own, const char *text) {
  for (const char *at = strchr(text, '['); at != NULL; at = strchr(at + 1, '[')) {
    char *end;
    long channel = strtol(at + 1, &end, 10);
    pl_dpro_tree tree = {.channel = (int32_t)channel, .up = -1};
    if (end == at + 1 || *end != ']' || channel < 0 || channel > 1024) continue;
    if (!read_tree(end + 1 + strspn(end + 1, " "), own->number, &tree)) continue;
    if (!PL_GROW(own->trees, own->n_trees, own->tree_room)) return false;
    own->trees[own->n_trees++] = tree;
  }
  return true;
}

/* ---- whose chunks they are ---- */

static const pl_dpro_tree *tree_of(const pl_dpro *own, int32_t channel) {
  for (uint32_t t = 0; t < own->n_trees; t++)
    if (own->trees[t].channel == channel) return &own->trees[t];
  return NULL;
}

static bool is_chunk(const pl_dpro_event *event) {
  return event->kind == PL_DPRO_SEND || event->kind == PL_DPRO_RECEIVE;
}

int pl_dpro_by_start(const void *a_, const void *b_) {
  const pl_dpro_event *a = a_, *b = b_;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->duration_ns > b->duration_ns) - (a->duration_ns < b->duration_ns);
}

/* Same parts of the same tensors, by start, which is the order of events. */
static int compare_parts(const pl_dpro_event *a, const pl_dpro_event *b) {
  if (a->tensors != b->tensors) return a->tensors < b->tensors ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->loop != b->loop) return a->loop < b->loop ? -1 : 1;
  if (a->channel != b->channel) return a->channel < b->channel ? -1 : 1;
  return (a->slice > b->slice) - (a->slice < b->slice);
}

static int by_part(const void *a_, const void *b_, void *events_) {
  const pl_dpro_event *events = events_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  int order = compare_parts(&events[a], &events[b]);
  return order != 0 ? order : (a > b) - (a < b);
}

/* The other end of the k-th message of a chunk. */
static void give_end(pl_dpro_event *event, const pl_dpro_tree *tree, uint32_t k) {
  bool sends = event->kind == PL_DPRO_SEND;
  uint32_t n_up = tree->up >= 0, first = sends ? n_up : 0; /* where children begin */
  bool of_child = sends ? k >= n_up : k < tree->n_down;
  event->peer = of_child ? tree->down[k - first] : tree->up;
  event->is_down = sends == of_child;
}

/* All chunks of the rank; false: their number does not fit the trees. */
static bool give_ends(pl_dpro *own, const uint32_t *order, uint32_t n) {
  for (uint32_t a = 0, b; a < n; a = b) {
    for (b = a + 1; b < n && compare_parts(&own->events[order[a]], &own->events[order[b]]) == 0;)
      b++;
    const pl_dpro_tree *tree = tree_of(own, own->events[order[a]].channel);
    uint32_t n_ends = tree != NULL ? (tree->up >= 0) + tree->n_down : 0;
    if (n_ends == 0 || (b - a) % n_ends != 0) return false;
    for (uint32_t k = a; k < b; k++)
      give_end(&own->events[order[k]], tree, (k - a) % n_ends);
  }
  return true;
}

pl_code pl_dpro_trees_follow(pl_dpro *own, pl_error *error) {
  qsort(own->events, own->n_events, sizeof *own->events, pl_dpro_by_start);
  uint32_t n = 0;
  bool first_chunks = own->has_chunks && own->n_trees > 0;
  for (uint32_t k = 0; k < own->n_events; k++)
    if (is_chunk(&own->events[k])) first_chunks &= own->events[k].chunk == 0;
  own->along_trees = first_chunks;
  if (!first_chunks) return PL_OK;
  uint32_t *order = malloc(((size_t)own->n_events + 1) * sizeof *order);
  if (order == NULL) return pl_fail_memory(error, own->path);
  for (uint32_t k = 0; k < own->n_events; k++)
    if (is_chunk(&own->events[k])) order[n++] = k;
  qsort_r(order, n, sizeof *order, by_part, own->events);
  own->is_tree = give_ends(own, order, n);
  free(order);
  return PL_OK;
}
