/* Colour refinement with commutative 64-bit hashes.
 *
 * A round gives each transfer a new colour from its old one and the multisets of (role, colour) of its members and
 * (weight, colour) of its links; then each device and each link one from the transfers that touch it. A multiset is
 * hashed as a sum of mixed terms, so no sorting is needed and a round is one pass over the incidences. Rounds stop when
 * no partition got finer. Rejected: refining over individual transfer instances (each microbatch's send ...), which is
 * the same partition at many times the size.
 */
#include "netmodel/fold/fold.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

static uint64_t mix2(uint64_t a, uint64_t b) {
  return mix(a * 0x9e3779b97f4a7c15u + mix(b));
}

static uint64_t weight_bits(double weight) {
  uint64_t bits;
  memcpy(&bits, &weight, sizeof bits);
  return bits;
}

/* ---- numbering colours ---- */

/* Elements that the caller writes before it reads them. */
#define TAKE_UNSET(arena, type, count) ((type *)pl_arena_take((arena), (count) * sizeof(type), _Alignof(type)))

static bool partition_take(pl_partition *partition, uint32_t n, pl_arena *arena) {
  partition->class_of = TAKE_UNSET(arena, uint32_t, n);
  partition->first = TAKE_UNSET(arena, uint32_t, n);
  partition->size = TAKE_UNSET(arena, uint32_t, n);
  partition->n_classes = 0;
  return !arena->failed;
}

/* Open addressing over (colour -> class), at most half full; the part in use grows with the number of classes, which
 * are few. */
typedef struct class_table {
  uint32_t *slots; /* room for slots_for(n) */
  uint32_t n_slots;
} class_table;

enum { SLOTS_AT_START = 16 };

static uint32_t slot_of(const class_table *table, const pl_partition *partition, const uint64_t *colour, uint32_t i) {
  uint32_t slot = (uint32_t)mix(colour[i]) & (table->n_slots - 1);
  while (table->slots[slot] != PL_NONE && colour[partition->first[table->slots[slot]]] != colour[i])
    slot = (slot + 1) & (table->n_slots - 1);
  return slot;
}

static void set_slots(class_table *table, const pl_partition *partition, const uint64_t *colour, uint32_t n_slots) {
  table->n_slots = n_slots;
  memset(table->slots, 0xff, n_slots * sizeof *table->slots);
  for (uint32_t class = 0; class < partition->n_classes; class ++)
    table->slots[slot_of(table, partition, colour, partition->first[class])] = class;
}

/* Of the `n` things in `of`; NULL: of all from 0 to n - 1. */
static void number_colours(const uint64_t *colour, const uint32_t *of, uint32_t n, class_table *table,
                           pl_partition *partition) {
  partition->n_classes = 0;
  set_slots(table, partition, colour, SLOTS_AT_START);
  for (uint32_t at = 0; at < n; at++) {
    uint32_t i = of != NULL ? of[at] : at;
    uint32_t before = at > 0 ? (of != NULL ? of[at - 1] : at - 1) : i;
    if (at > 0 && colour[before] == colour[i]) { /* neighbours often are alike */
      partition->class_of[i] = partition->class_of[before];
      partition->size[partition->class_of[i]]++;
      continue;
    }
    uint32_t slot = slot_of(table, partition, colour, i), class = table->slots[slot];
    if (class == PL_NONE) {
      class = table->slots[slot] = partition->n_classes++;
      partition->first[class] = i;
      partition->size[class] = 0;
      if (2 * partition->n_classes > table->n_slots) set_slots(table, partition, colour, 2 * table->n_slots);
    }
    partition->class_of[i] = class;
    partition->size[class]++;
  }
}

static uint32_t slots_for(uint32_t n) {
  uint32_t n_slots = SLOTS_AT_START;
  while (n_slots < 2 * n)
    n_slots *= 2;
  return 2 * n_slots; /* doubled when half full */
}

bool pl_partition_of_colours(const uint64_t *colour, uint32_t n, pl_arena *arena, pl_partition *partition) {
  if (!partition_take(partition, n, arena)) return false;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  class_table table = {.slots = TAKE_UNSET(arena, uint32_t, slots_for(n))};
  if (table.slots == NULL) return false;
  number_colours(colour, NULL, n, &table, partition);
  pl_arena_release_to(arena, mark);
  return true;
}

/* ---- refinement ---- */

typedef struct refinement {
  uint64_t *device, *link, *transfer; /* colours */
  uint64_t *device_sum, *link_sum;    /* of this round */
  uint32_t *used;                     /* links that transfers cross; the others stay what they are */
  uint32_t n_used;
  uint32_t n_classes; /* of devices, links in use and transfers */
  class_table table;
} refinement;

static bool refinement_take(refinement *state, const pl_fold_problem *problem, pl_arena *arena) {
  uint32_t most = problem->n_devices > problem->n_links ? problem->n_devices : problem->n_links;
  if (problem->n_transfers > most) most = problem->n_transfers;
  state->device = TAKE_UNSET(arena, uint64_t, problem->n_devices);
  state->link = TAKE_UNSET(arena, uint64_t, problem->n_links);
  state->transfer = TAKE_UNSET(arena, uint64_t, problem->n_transfers);
  state->device_sum = TAKE_UNSET(arena, uint64_t, problem->n_devices);
  state->link_sum = TAKE_UNSET(arena, uint64_t, problem->n_links);
  state->used = TAKE_UNSET(arena, uint32_t, problem->n_links + 1); /* one is written beyond the last */
  state->table.slots = TAKE_UNSET(arena, uint32_t, slots_for(most));
  return !arena->failed;
}

/* In increasing order, so that classes are numbered by first member. */
static bool list_used(const pl_fold_problem *problem, pl_arena *arena, refinement *state) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  bool *is_used = PL_TAKE(arena, bool, problem->n_links);
  if (is_used == NULL) return false;
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    for (uint32_t i = 0; i < problem->transfers[t].n_uses; i++)
      is_used[problem->uses[problem->transfers[t].first_use + i].link] = true;
  state->n_used = 0;
  for (uint32_t l = 0; l < problem->n_links; l++) {
    state->used[state->n_used] = l;
    state->n_used += is_used[l];
  }
  pl_arena_release_to(arena, mark);
  return true;
}

static void refine_transfers(const pl_fold_problem *problem, refinement *state) {
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    const pl_fold_transfer *transfer = &problem->transfers[t];
    const pl_fold_member *members = &problem->members[transfer->first_member];
    const pl_link_use *uses = &problem->uses[transfer->first_use];
    uint64_t sum = 0, term = 0;
    for (uint32_t i = 0; i < transfer->n_members; i++) {
      uint64_t colour = state->device[members[i].device];
      if (i == 0 || colour != state->device[members[i - 1].device] || members[i].role != members[i - 1].role)
        term = mix2(colour, members[i].role);
      sum += term;
    }
    uint64_t link_sum = 0;
    for (uint32_t i = 0; i < transfer->n_uses; i++)
      link_sum += mix2(state->link[uses[i].link], weight_bits(uses[i].weight));
    state->transfer[t] = mix2(mix2(state->transfer[t], sum), link_sum + 1);
  }
}

static void refine_devices_and_links(const pl_fold_problem *problem, refinement *state) {
  memset(state->device_sum, 0, problem->n_devices * sizeof *state->device_sum);
  for (uint32_t i = 0; i < state->n_used; i++)
    state->link_sum[state->used[i]] = 0;
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    const pl_fold_transfer *transfer = &problem->transfers[t];
    const pl_fold_member *members = &problem->members[transfer->first_member];
    const pl_link_use *uses = &problem->uses[transfer->first_use];
    uint64_t term = 0;
    for (uint32_t i = 0; i < transfer->n_members; i++) {
      if (i == 0 || members[i].role != members[i - 1].role) term = mix2(state->transfer[t], members[i].role);
      state->device_sum[members[i].device] += term;
    }
    for (uint32_t i = 0; i < transfer->n_uses; i++)
      state->link_sum[uses[i].link] += mix2(state->transfer[t], weight_bits(uses[i].weight));
  }
  for (uint32_t d = 0; d < problem->n_devices; d++)
    state->device[d] = mix2(state->device[d], state->device_sum[d]);
  for (uint32_t i = 0; i < state->n_used; i++)
    state->link[state->used[i]] = mix2(state->link[state->used[i]], state->link_sum[state->used[i]]);
}

static void seed_colours(const uint64_t *start, uint32_t n, uint64_t seed, uint64_t *colour) {
  for (uint32_t i = 0; i < n; i++)
    colour[i] = i > 0 && start[i] == start[i - 1] ? colour[i - 1] : mix2(start[i], seed);
}

/* Of links only those in use. */
static uint32_t number_all(const pl_fold_problem *problem, refinement *state, pl_fold *fold) {
  number_colours(state->device, NULL, problem->n_devices, &state->table, &fold->devices);
  number_colours(state->link, state->used, state->n_used, &state->table, &fold->links);
  number_colours(state->transfer, NULL, problem->n_transfers, &state->table, &fold->transfers);
  return fold->devices.n_classes + fold->links.n_classes + fold->transfers.n_classes;
}

static void start(const pl_fold_problem *problem, uint64_t seed, refinement *state, pl_fold *fold) {
  seed_colours(problem->device_colour, problem->n_devices, seed, state->device);
  seed_colours(problem->link_colour, problem->n_links, seed, state->link);
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    state->transfer[t] = mix2(problem->transfers[t].colour, seed);
  state->n_classes = number_all(problem, state, fold);
  fold->n_rounds = 0;
}

/* Whether something was split. */
static bool refine_once(const pl_fold_problem *problem, refinement *state, pl_fold *fold) {
  uint32_t before = state->n_classes;
  refine_transfers(problem, state);
  refine_devices_and_links(problem, state);
  state->n_classes = number_all(problem, state, fold);
  fold->n_rounds++;
  return state->n_classes != before; /* refinement only splits */
}

static bool is_done(const pl_fold_problem *problem, refinement *state, pl_fold *fold, pl_arena *arena) {
  number_colours(state->link, NULL, problem->n_links, &state->table, &fold->links);
  return pl_fold_is_equitable(problem, fold, arena);
}

/* Until nothing splits any more; but many problems are done after one round, which the check that is due anyway finds
 * out sooner than a second. What has been split so far is as coarse as can be, so where it is equitable it is the
 * result. False: hashes have collided. */
static bool refine(const pl_fold_problem *problem, uint64_t seed, refinement *state, pl_fold *fold, pl_arena *arena) {
  start(problem, seed, state, fold);
  for (;;) {
    bool splits = refine_once(problem, state, fold);
    if (splits && fold->n_rounds > 1) continue;
    if (is_done(problem, state, fold, arena)) return true;
    if (!splits || arena->failed) return false;
  }
}

static bool fold_take(const pl_fold_problem *problem, pl_arena *arena, pl_fold *fold) {
  return partition_take(&fold->devices, problem->n_devices, arena) &&
         partition_take(&fold->links, problem->n_links, arena) &&
         partition_take(&fold->transfers, problem->n_transfers, arena);
}

pl_code pl_fold_refine(const pl_fold_problem *problem, pl_arena *arena, pl_fold *fold, pl_error *error) {
  if (!fold_take(problem, arena, fold)) return pl_fail_memory(error, "the classes of a fold");
  pl_arena_mark mark = pl_arena_mark_here(arena);
  refinement state;
  if (!refinement_take(&state, problem, arena)) return pl_fail_memory(error, "the colours of a fold");
  if (!list_used(problem, arena, &state)) return pl_fail_memory(error, "the colours of a fold");
  for (uint64_t seed = 1;; seed++) {
    bool equitable = refine(problem, seed, &state, fold, arena);
    if (arena->failed) return pl_fail_memory(error, "the check of a fold");
    if (equitable) break;
    PL_ASSERT(seed < 16); /* sixteen collisions of 64-bit hashes in a row: the problem itself is inconsistent */
  }
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

static void identity(pl_partition *partition, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    partition->class_of[i] = partition->first[i] = i;
    partition->size[i] = 1;
  }
  partition->n_classes = n;
}

pl_code pl_fold_identity(const pl_fold_problem *problem, pl_arena *arena, pl_fold *fold, pl_error *error) {
  if (!fold_take(problem, arena, fold)) return pl_fail_memory(error, "the classes of a fold");
  identity(&fold->devices, problem->n_devices);
  identity(&fold->links, problem->n_links);
  identity(&fold->transfers, problem->n_transfers);
  fold->n_rounds = 0;
  return PL_OK;
}

/* ---- the exact check ---- */

typedef struct incidence {
  uint32_t class, key; /* key: role, or number of the weight */
} incidence;

/* Incidences in rows (CSR); a row is what one thing sees of its neighbours. */
typedef struct incidence_rows {
  uint32_t *offset; /* n + 1 */
  incidence *entry;
} incidence_rows;

static int compare_incidence(const void *a, const void *b) {
  const incidence *x = a, *y = b;
  if (x->class != y->class) return x->class < y->class ? -1 : 1;
  return x->key < y->key ? -1 : x->key > y->key;
}

static void sort_row(incidence *row, uint32_t n) {
  uint32_t sorted = 1;
  while (sorted < n && compare_incidence(&row[sorted - 1], &row[sorted]) <= 0)
    sorted++;
  if (sorted >= n) return;
  if (n > 24) {
    qsort(row, n, sizeof *row, compare_incidence);
    return;
  }
  for (uint32_t i = 1; i < n; i++) {
    incidence x = row[i];
    uint32_t j = i;
    for (; j > 0 && compare_incidence(&row[j - 1], &x) > 0; j--)
      row[j] = row[j - 1];
    row[j] = x;
  }
}

static bool equal_rows(const incidence *a, const incidence *b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (a[i].class != b[i].class || a[i].key != b[i].key) return false;
  return true;
}

/* All rows of a class must be equal to that of its first member, which comes before the others. Sorts those rows. */
static bool rows_agree(const incidence_rows *rows, const pl_partition *partition, uint32_t n) {
  const uint32_t *offset = rows->offset;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t first = partition->first[partition->class_of[i]], length = offset[i + 1] - offset[i];
    if (offset[first + 1] - offset[first] != length) return false;
    if (length > 1 && partition->size[partition->class_of[i]] > 1) sort_row(rows->entry + offset[i], length);
    if (first != i && !equal_rows(rows->entry + offset[i], rows->entry + offset[first], length)) return false;
  }
  return true;
}

/* Weights become small numbers by their bits, so that rows compare as integers. */
static uint32_t weight_number(double *known, uint32_t *n_known, double weight) {
  for (uint32_t i = 0; i < *n_known; i++)
    if (known[i] == weight) return i;
  known[*n_known] = weight;
  return (*n_known)++;
}

static bool rows_take(incidence_rows *rows, uint32_t n, uint32_t n_entries, pl_arena *arena) {
  rows->offset = PL_TAKE(arena, uint32_t, n + 2);
  rows->entry = TAKE_UNSET(arena, incidence, n_entries);
  return !arena->failed;
}

static bool starts_agree(const uint64_t *colour, const pl_partition *partition, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (colour[i] != colour[partition->first[partition->class_of[i]]]) return false;
  return true;
}

/* Rows of devices seen from the transfers (by_transfer) and the reverse, through members. */
static bool members_agree(const pl_fold_problem *problem, const pl_fold *fold, uint32_t n_members, pl_arena *arena) {
  incidence_rows from_transfer, from_device;
  if (!rows_take(&from_transfer, problem->n_transfers, n_members, arena)) return false;
  if (!rows_take(&from_device, problem->n_devices, n_members, arena)) return false;
  uint32_t *cursor = from_device.offset + 1; /* becomes the offsets once filled */
  uint32_t n = 0;
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    const pl_fold_transfer *transfer = &problem->transfers[t];
    for (uint32_t i = 0; i < transfer->n_members; i++) {
      const pl_fold_member *member = &problem->members[transfer->first_member + i];
      from_transfer.entry[n++] = (incidence){fold->devices.class_of[member->device], member->role};
      cursor[member->device + 1]++;
    }
    from_transfer.offset[t + 1] = n;
  }
  for (uint32_t d = 0; d < problem->n_devices; d++)
    cursor[d + 1] += cursor[d];
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    for (uint32_t i = 0; i < problem->transfers[t].n_members; i++) {
      const pl_fold_member *member = &problem->members[problem->transfers[t].first_member + i];
      from_device.entry[cursor[member->device]++] = (incidence){fold->transfers.class_of[t], member->role};
    }
  return rows_agree(&from_transfer, &fold->transfers, problem->n_transfers) &&
         rows_agree(&from_device, &fold->devices, problem->n_devices);
}

static bool uses_agree(const pl_fold_problem *problem, const pl_fold *fold, uint32_t n_uses, pl_arena *arena) {
  incidence_rows from_transfer, from_link;
  if (!rows_take(&from_transfer, problem->n_transfers, n_uses, arena)) return false;
  if (!rows_take(&from_link, problem->n_links, n_uses, arena)) return false;
  double *known = TAKE_UNSET(arena, double, n_uses + 1);
  uint32_t *number = TAKE_UNSET(arena, uint32_t, n_uses + 1);
  if (arena->failed) return false;
  uint32_t n_known = 0, n = 0;
  uint32_t *cursor = from_link.offset + 1;
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    const pl_fold_transfer *transfer = &problem->transfers[t];
    for (uint32_t i = 0; i < transfer->n_uses; i++) {
      const pl_link_use *use = &problem->uses[transfer->first_use + i];
      number[n] = weight_number(known, &n_known, use->weight);
      from_transfer.entry[n] = (incidence){fold->links.class_of[use->link], number[n]};
      cursor[use->link + 1]++;
      n++;
    }
    from_transfer.offset[t + 1] = n;
  }
  for (uint32_t l = 0; l < problem->n_links; l++)
    cursor[l + 1] += cursor[l];
  n = 0;
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    for (uint32_t i = 0; i < problem->transfers[t].n_uses; i++)
      from_link.entry[cursor[problem->uses[problem->transfers[t].first_use + i].link]++] =
          (incidence){fold->transfers.class_of[t], number[n++]};
  return rows_agree(&from_transfer, &fold->transfers, problem->n_transfers) &&
         rows_agree(&from_link, &fold->links, problem->n_links);
}

bool pl_fold_is_equitable(const pl_fold_problem *problem, const pl_fold *fold, pl_arena *arena) {
  if (!starts_agree(problem->device_colour, &fold->devices, problem->n_devices)) return false;
  if (!starts_agree(problem->link_colour, &fold->links, problem->n_links)) return false;
  for (uint32_t t = 0; t < problem->n_transfers; t++)
    if (problem->transfers[t].colour != problem->transfers[fold->transfers.first[fold->transfers.class_of[t]]].colour)
      return false;
  uint32_t n_members = 0, n_uses = 0;
  for (uint32_t t = 0; t < problem->n_transfers; t++) {
    n_members += problem->transfers[t].n_members;
    n_uses += problem->transfers[t].n_uses;
  }
  pl_arena_mark mark = pl_arena_mark_here(arena);
  bool agree = members_agree(problem, fold, n_members, arena) && uses_agree(problem, fold, n_uses, arena);
  pl_arena_release_to(arena, mark);
  return agree;
}
