/* Incremental weighted max-min sharing of links: who gets which rate, without any notion of time.
 *
 * The problem. Flow f has a usage weight a(f,l) on each of its links, a share weight w(f) and a cap u(f). Rates x are
 * max-min fair on x/w subject to sum_f a(f,l) x(f) <= C(l) on shared links, a(f,l) x(f) <= C(l) on FATPIPE links and
 * x(f) <= u(f). (Bertsekas and Gallager, Data Networks, 6.5; with weights as in SimGrid's CM02.)
 *
 * Use: take a slot for a spec, `join` when the first byte moves, `leave` after the last, `solve` once per instant. Only
 * the connected component of links and flows that a join or a leave touched is solved again, and only flows whose
 * rate differs bit by bit from the one before are reported. A flow whose links carry nobody else gets the precomputed
 * solo rate without a solve. When a few flows leave a large component, what is remembered of the last solve is updated
 * instead (netmodel/flow/max_min_update.c), with the same bits.
 *
 * Exactness. Usage sums and remaining capacities are 128-bit fixed-point integers, so they do not depend on the order
 * in which flows came, went or are stored: symmetric problems get bitwise symmetric rates, and k identical flows get
 * bitwise the rate of one flow with k-fold (integer) weights. Rejected: sums in double. They need a canonical order (a
 * sort per link and solve) and a regrouping by level to fold, and what remains after fixing a heavy flow is rounding
 * noise. See netmodel/flow/max_min_solve.c for the filling.
 */
#ifndef PL_NETMODEL_MAX_MIN_H
#define PL_NETMODEL_MAX_MIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/cluster/transfer.h"

__extension__ typedef __int128 pl_wide; /* fixed point; the scale belongs to the quantity */

enum { PL_MAX_MIN_CLASSES = 33 };

/* One shared link of a spec. 32 bytes. */
typedef struct pl_max_min_use {
  pl_wide share; /* a * w, in units of 2^-share_bits */
  double weight; /* a */
  uint32_t link;
  uint32_t multiple; /* a, when it is an integer below 2^32, else 0 */
} pl_max_min_use;

typedef struct pl_max_min_spec {
  double cap_Bps;  /* of the spec and of its FATPIPE links; INFINITY when no shared link lets it bind */
  double solo_Bps; /* pl_transfer_solo_rate; 0 = bounded by a shared link, not worked out yet */
  double share;    /* w */
  uint32_t first_use, n_uses;
  bool plain; /* every usage weight is 1, no cap, the share weight of spec 0: see max_min_update.c */
} pl_max_min_spec;

typedef struct pl_max_min_entry {
  uint32_t slot, use; /* use: position in the slot's spec */
  uint32_t other;     /* the other link of a flow that has two, else PL_NONE */
} pl_max_min_entry;

/* What max_min_update.c remembers of a link between solves. A plain flow has one owner, the link that fixes its rate;
 * the entries of a link begin with those of the flows that it owns. */
typedef struct pl_max_min_memory {
  _Alignas(64) pl_wide charged; /* sum of the rates of the flows that others own */
  pl_wide amount;               /* rate of each flow that it owns */
  double level;                 /* INFINITY: it is not full */
  double highest;               /* no flow that others own has a higher level */
  uint32_t n_own;
  uint32_t mark; /* epoch in which it was put on the list of those that were looked at */
  bool waiting;  /* to be looked at again */
} pl_max_min_memory;

typedef struct pl_max_min_link {
  pl_wide capacity; /* in units of 2^-rate_bits B/s */
  pl_wide share;    /* sum of a * w over the flows that are on it */
  pl_max_min_entry *entries;
  uint32_t count;           /* flows that are on it */
  uint32_t n_entries, room; /* entries of flows that left stay until the next solve */
  /* of the solve in progress */
  pl_wide rest, open_share;
  uint32_t n_open;
  uint32_t mark; /* epoch in which it was gathered */
  bool is_known; /* its entry in `memory` is true */
  double level;  /* at which it filled; INFINITY: it did not */
} pl_max_min_link;

/* One cache line: what gathering and filling touch of a flow. The first part is a copy of the spec's. */
typedef struct pl_max_min_slot {
  _Alignas(64) double rate_Bps;
  double cap_Bps, share;
  uint32_t spec, first_use, n_uses;
  uint32_t first_position;  /* into positions: where the slot stands in the list of each of its links */
  uint32_t gathered, fixed; /* epochs */
  uint32_t next_free;
  uint8_t active;  /* 1 between join and leave */
  uint8_t on_list; /* its entries are on the lists of its links: between join and the first solve after leave */
  uint8_t given;   /* while they are, it is not free yet */
  uint8_t plain;   /* of the spec */
} pl_max_min_slot;

typedef struct pl_max_min_level {
  double level; /* x / w at which the link fills; a lower bound while flows are being fixed */
  uint32_t link;
} pl_max_min_level;

/* What a component of few flows came to. */
enum { PL_MAX_MIN_FEW = 3 };

typedef struct pl_max_min_few {
  uint32_t n; /* 0: nothing is kept here */
  uint32_t specs[PL_MAX_MIN_FEW];
  double rates_Bps[PL_MAX_MIN_FEW];
} pl_max_min_few;

typedef struct pl_max_min {
  pl_arena *arena;
  const pl_transfer_table *table;
  pl_max_min_link *links;
  pl_max_min_spec *specs;
  pl_max_min_use *uses;
  uint32_t n_links, n_specs;
  int rate_bits, share_bits;
  double rate_unit, share_unit; /* 2^-bits */

  pl_max_min_slot *slots;
  uint32_t n_slots, slot_room;
  uint32_t n_active; /* flows that are on links */
  uint32_t *positions;
  uint32_t n_positions, position_room;
  uint32_t free_slot[PL_MAX_MIN_CLASSES]; /* by ceil(log2(uses)): a slot keeps its room for positions */

  uint32_t *joined, *left, *changed, *component_slots, *capped; /* room: slot_room */
  uint32_t n_joined, n_left, n_changed, n_component_slots;
  uint32_t *touched, *component_links, *batch; /* room: n_links */
  pl_max_min_level *levels;
  pl_max_min_memory *memory;          /* per link */
  pl_max_min_few *few;                /* by specs (max_min_few.c); NULL: no component was small so far */
  uint32_t builds_to_skip, last_skip; /* of the memory, while levels tie */
  uint32_t n_touched, n_component_links;
  uint32_t epoch;
  bool has_caps; /* some flow of the component has a cap that may bind */
  bool alone;    /* no contention: every flow gets its solo rate */
  bool failed;   /* out of memory: sticky; join and take_slot have no effect any more */
} pl_max_min;

/* Memory from `arena`, also later while it grows; `table` must outlive it. `alone`: links carry any load (the analytic
 * network). False: no memory. Cost O(links + specs + uses). */
bool pl_max_min_init(pl_max_min *max_min, const pl_transfer_table *table, bool alone, pl_arena *arena);

/* A slot for one flow of `spec`, PL_NONE when memory ran out. Slots are dense and recycled; one that was given right
 * after `leave` is so from the next solve on. Between `leave` and `solve` a slot cannot join again. */
uint32_t pl_max_min_take_slot(pl_max_min *max_min, uint32_t spec);
void pl_max_min_give_slot(pl_max_min *max_min, uint32_t slot);
void pl_max_min_join(pl_max_min *max_min, uint32_t slot);
void pl_max_min_leave(pl_max_min *max_min, uint32_t slot);

/* Solves what was touched since the last call. Afterwards changed[0 .. n_changed) are the slots whose rate differs from
 * before (those that joined always do). Cost O(flows + uses + links log links) of the touched component in the
 * typical case of few levels. */
void pl_max_min_solve(pl_max_min *max_min);

static inline double pl_max_min_rate(const pl_max_min *max_min, uint32_t slot) {
  return max_min->slots[slot].rate_Bps;
}

/* Rate of a flow of the spec that meets no other; INFINITY when nothing bounds it. */
static inline double pl_max_min_solo_rate(pl_max_min *max_min, uint32_t spec) {
  double *solo_Bps = &max_min->specs[spec].solo_Bps;
  if (*solo_Bps == 0) *solo_Bps = pl_transfer_solo_rate(max_min->table, spec);
  return *solo_Bps;
}

/* ---- between the files of the solver ---- */

/* Fills the gathered component (max_min_solve.c); called by pl_max_min_solve. */
void pl_max_min_fill(pl_max_min *max_min);
/* The rates of the gathered component if they are kept; false: they are not. */
bool pl_max_min_recall(pl_max_min *max_min);
/* Keeps those of the one that was filled just now, if it is small. */
void pl_max_min_keep(pl_max_min *max_min);
/* Ends the wait of the slots of flows that left and are off the lists. */
void pl_max_min_free_left(pl_max_min *max_min);
/* Remembers the component that was filled just now, if it is of the kind that can be updated (max_min_update.c). */
void pl_max_min_remember(pl_max_min *max_min);
/* Solves after a few flows left, from what is remembered; false: it cannot, and has changed nothing that counts. */
bool pl_max_min_update(pl_max_min *max_min);

/* Bits of a finite, positive double as mantissa * 2^exponent: a shift instead of two library calls. */
static inline pl_wide pl_max_min_wide(double rate_Bps, int bits) {
  union {
    double value;
    uint64_t bits;
  } word = {.value = rate_Bps};
  int exponent = (int)(word.bits >> 52) - 1075; /* the sign is 0; subnormals round to 0 below */
  int shift = exponent + bits;
  uint64_t mantissa = (word.bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
  if (shift >= 0) return (pl_wide)mantissa << shift;
  if (shift < -53) return 0;
  return (pl_wide)((mantissa + ((uint64_t)1 << (-shift - 1))) >> -shift);
}

/* The nearest double, as a cast gives it, without the library's call: of what does not fit into 63 bits, the upper 63
 * with the last one set if anything below them is. */
static inline double pl_max_min_double(pl_wide value) {
  uint64_t high = (uint64_t)(value >> 64);
  if (high == 0 && (int64_t)value >= 0) return (double)(int64_t)value;
  if (value < 0) return (double)value;
  int shift = high == 0 ? 1 : 65 - __builtin_clzll(high);
  bool inexact = (value & (((pl_wide)1 << shift) - 1)) != 0;
  union {
    uint64_t bits;
    double value;
  } power = {.bits = (uint64_t)(1023 + shift) << 52};
  return (double)((int64_t)(value >> shift) | inexact) * power.value;
}

static inline double pl_max_min_level_of(const pl_max_min *max_min, pl_wide rest, pl_wide open_share) {
  return (pl_max_min_double(rest) * max_min->rate_unit) / (pl_max_min_double(open_share) * max_min->share_unit);
}

/* Independent check of the last solve (max_min_certificate.c): every link of the component within its capacity, every
 * flow at its cap or on a saturated link on which nobody has a larger rate / share. NULL if all is well, else what is
 * not, as static text. Debug builds call it after every solve. */
const char *pl_max_min_certify(const pl_max_min *max_min);

/* After a solve: the lists point at each other and sums are what they should be. O(everything). */
bool pl_max_min_is_valid(const pl_max_min *max_min);

#endif
