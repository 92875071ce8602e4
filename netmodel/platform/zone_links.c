/* Links of a zone tree and their names (netmodel/platform/zone_tree_internal.h): a pair of directed links is found by
 * its own name and through it by those of its halves. */
#include <string.h>

#include "core/base/digest.h"
#include "netmodel/platform/zone_tree_internal.h"
#include "netmodel/simgrid/simgrid_units.h"

typedef struct pl_zone_tree tree;

/* ---- names ---- */

static const named_link *find_given_link(const tree *t, const char *name, size_t length, uint64_t hash) {
  uint32_t probe = 0;
  for (const named_link *l; (l = pl_hash_index_find(&t->link_names, hash, &probe)) != NULL;)
    if (strncmp(l->name, name, length) == 0 && l->name[length] == '\0') return l;
  return NULL;
}

static const char *const half_ends[2] = {"_UP", "_DOWN"};

static bool is_called_half(const char *name, size_t length, int half) {
  size_t end = strlen(half_ends[half]);
  return length >= end && memcmp(name + length - end, half_ends[half], end) == 0;
}

/* The pair whose half 0 or 1 would be called `name`. */
static const named_link *find_pair_of(const tree *t, const char *name, size_t length, int half) {
  if (!is_called_half(name, length, half)) return NULL;
  size_t stem = length - strlen(half_ends[half]);
  const named_link *pair = find_given_link(t, name, stem, pl_hash_bytes(name, stem, 0));
  return pair != NULL && pair->is_pair ? pair : NULL;
}

bool tree_find_link(const tree *t, const char *name, named_link *found) {
  size_t length = strlen(name);
  const named_link *given = find_given_link(t, name, length, pl_hash_bytes(name, length, 0));
  if (given != NULL) {
    *found = *given;
    return true;
  }
  for (int half = 0; half < 2; half++) {
    const named_link *pair = find_pair_of(t, name, length, half);
    if (pair == NULL) continue;
    uint32_t link = half == 0 ? pair->up : pair->down;
    *found = (named_link){.name = name, .up = link, .down = link};
    return true;
  }
  return false;
}

/* Whether a link, a pair or a half of a pair that is there is called as `link` or one of its halves. */
static bool is_name_taken(tree *t, const named_link *link, size_t length, uint64_t hash) {
  const char *name = link->name;
  if (find_given_link(t, name, length, hash) != NULL || strcmp(name, "__loopback__") == 0) return true;
  for (int half = 0; half < 2; half++) {
    if (find_pair_of(t, name, length, half) != NULL) return true;
    if (!link->is_pair || !t->has_half_names) continue;
    const char *half_name = pl_arena_printf(t->arena, "%s%s", name, half_ends[half]);
    if (half_name != NULL && find_given_link(t, half_name, strlen(half_name), tree_hash_name(half_name)) != NULL)
      return true;
  }
  return false;
}

static void name_link(tree *t, const named_link *link) {
  size_t length = strlen(link->name);
  uint64_t hash = pl_hash_bytes(link->name, length, 0);
  if (is_name_taken(t, link, length, hash)) tree_give_up(t, "a link's name used twice");
  named_link *named = pl_arena_take(t->arena, sizeof *named, _Alignof(named_link));
  if (named == NULL || t->unknown != NULL) return;
  *named = *link;
  t->has_half_names |= is_called_half(link->name, length, 0) || is_called_half(link->name, length, 1);
  pl_hash_index_put(&t->link_names, hash, named, t->arena);
}

static const char *name_half(tree *t, const char *name, int half) {
  size_t length = strlen(name), more = strlen(half_ends[half]) + 1;
  char *made = pl_arena_take(t->arena, length + more, 1);
  if (made == NULL) return NULL;
  memcpy(made, name, length + 1);
  memcpy(made + length, half_ends[half], more);
  return made;
}

uint32_t tree_add_link(tree *t, const pl_shim_link *link, const char *name, bool is_duplex) {
  uint32_t own = t->out_links.count;
  for (int half = 0; half < 1 + is_duplex; half++) {
    pl_shim_link *out = tree_append(t, &t->out_links, sizeof *out);
    if (out == NULL) return PL_SHIM_NONE;
    *out = *link;
    out->name = is_duplex ? name_half(t, name, half) : name;
    if (out->name == NULL) return PL_SHIM_NONE;
  }
  name_link(t, &(named_link){.name = name, .up = own, .down = own + is_duplex, .is_pair = is_duplex});
  return t->unknown == NULL ? own : PL_SHIM_NONE;
}

void tree_read_policy(tree *t, const char *policy, const char *otherwise, bool *is_duplex, uint8_t *is_fatpipe) {
  if (policy == NULL) policy = otherwise;
  *is_duplex = strcmp(policy, "SPLITDUPLEX") == 0 || strcmp(policy, "FULLDUPLEX") == 0;
  *is_fatpipe = strcmp(policy, "FATPIPE") == 0;
  if (!*is_duplex && !*is_fatpipe && strcmp(policy, "SHARED") != 0) tree_give_up(t, "a strange sharing policy");
}

void tree_read_wire(tree *t, const char *bandwidth, const char *latency, pl_shim_link *link) {
  bool is_plain = tree_read_again(&t->open->bandwidth, pl_simgrid_bandwidth, bandwidth, &link->bandwidth_Bps) &&
                  tree_read_again(&t->open->latency, pl_simgrid_time, latency, &link->latency_s);
  if (!is_plain || !(link->bandwidth_Bps > 0) || !(link->latency_s >= 0))
    tree_give_up(t, "a strange bandwidth or latency");
}
