/* See netmodel/fold/quotient.h. */
#include "netmodel/fold/quotient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- incidence of transfers on links ---- */

typedef struct crossing {
  uint32_t transfer;
  double weight;
} crossing;

typedef struct crossings {
  uint32_t *offset; /* per link, n_links + 1 */
  crossing *entry;
} crossings;

static bool crossings_take(crossings *by_link, uint32_t n_links, const pl_fold_transfer *transfers,
                           uint32_t n_transfers, const pl_link_use *uses, pl_arena *arena) {
  uint32_t n_uses = 0;
  for (uint32_t t = 0; t < n_transfers; t++)
    n_uses += transfers[t].n_uses;
  by_link->offset = PL_TAKE(arena, uint32_t, n_links + 2);
  by_link->entry = pl_arena_take(arena, n_uses * sizeof *by_link->entry, _Alignof(crossing));
  if (arena->failed) return false;
  uint32_t *cursor = by_link->offset + 1; /* counts, then running positions, then the offsets of the next link */
  for (uint32_t t = 0; t < n_transfers; t++)
    for (uint32_t i = 0; i < transfers[t].n_uses; i++)
      cursor[uses[transfers[t].first_use + i].link + 1]++;
  for (uint32_t l = 0; l < n_links; l++)
    cursor[l + 1] += cursor[l];
  for (uint32_t t = 0; t < n_transfers; t++)
    for (uint32_t i = 0; i < transfers[t].n_uses; i++) {
      const pl_link_use *use = &uses[transfers[t].first_use + i];
      by_link->entry[cursor[use->link]++] = (crossing){t, use->weight};
    }
  return true;
}

/* ---- the quotient ---- */

/* Link classes crossed by transfer `t`, each once, in order of first crossing. */
static uint32_t crossed_classes(const pl_fold_problem *problem, const pl_fold *fold, uint32_t t, uint32_t *mark,
                                uint32_t stamp, pl_link_use *uses) {
  uint32_t n = 0;
  const pl_fold_transfer *transfer = &problem->transfers[t];
  for (uint32_t i = 0; i < transfer->n_uses; i++) {
    uint32_t class = fold->links.class_of[problem->uses[transfer->first_use + i].link];
    if (mark[class] == stamp) continue;
    mark[class] = stamp;
    uses[n++] = (pl_link_use){.link = class, .weight = 0};
  }
  return n;
}

static double class_weight_on(const crossings *by_link, const pl_fold *fold, uint32_t transfer_class, uint32_t link) {
  double weight = 0;
  for (uint32_t i = by_link->offset[link]; i < by_link->offset[link + 1]; i++)
    if (fold->transfers.class_of[by_link->entry[i].transfer] == transfer_class) weight += by_link->entry[i].weight;
  return weight;
}

pl_code pl_quotient_take(const pl_fold_problem *problem, const pl_fold *fold, const double *link_capacity_Bps,
                         const uint32_t *serial, pl_arena *arena, pl_quotient *quotient, pl_error *error) {
  quotient->n_links = fold->links.n_classes;
  quotient->n_transfers = fold->transfers.n_classes;
  uint32_t n_uses = 0;
  for (uint32_t class = 0; class < quotient->n_transfers; class ++)
    n_uses += problem->transfers[fold->transfers.first[class]].n_uses;
  quotient->link_capacity_Bps = PL_TAKE(arena, double, quotient->n_links);
  quotient->link_policy = PL_TAKE(arena, uint8_t, quotient->n_links); /* zero is PL_LINK_SHARED */
  quotient->transfers = PL_TAKE(arena, pl_quotient_transfer, quotient->n_transfers);
  quotient->uses = pl_arena_take(arena, n_uses * sizeof *quotient->uses, _Alignof(pl_link_use));
  quotient->full_uses = pl_arena_take(arena, n_uses * sizeof *quotient->full_uses, _Alignof(pl_link_use));
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  uint32_t *mark = PL_TAKE(arena, uint32_t, quotient->n_links);
  crossings by_link;
  if (!crossings_take(&by_link, problem->n_links, problem->transfers, problem->n_transfers, problem->uses, arena) ||
      arena->failed)
    return pl_fail_memory(error, "the quotient network");
  for (uint32_t class = 0; class < quotient->n_links; class ++)
    quotient->link_capacity_Bps[class] = link_capacity_Bps[fold->links.first[class]];
  uint32_t n = 0;
  for (uint32_t class = 0; class < quotient->n_transfers; class ++) {
    uint32_t first = fold->transfers.first[class];
    uint32_t n_classes = crossed_classes(problem, fold, first, mark, class + 1, &quotient->full_uses[n]);
    for (uint32_t i = n; i < n + n_classes; i++)
      quotient->full_uses[i].weight =
          class_weight_on(&by_link, fold, class, fold->links.first[quotient->full_uses[i].link]);
    quotient->transfers[class] = (pl_quotient_transfer){.first_use = n,
                                                        .n_uses = n_classes,
                                                        .first_full = n,
                                                        .n_full = n_classes,
                                                        .rate_cap_Bps = INFINITY,
                                                        .serial = serial != NULL ? serial[first] : 0};
    n += n_classes;
  }
  quotient->n_uses = n;
  memcpy(quotient->uses, quotient->full_uses, n * sizeof *quotient->uses);
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}

/* ---- rivals ---- */

static double solo_rate(const pl_quotient *quotient, uint32_t class, double bound) {
  const pl_quotient_transfer *transfer = &quotient->transfers[class];
  double rate = bound;
  for (uint32_t i = 0; i < transfer->n_full; i++) {
    const pl_link_use *use = &quotient->full_uses[transfer->first_full + i];
    rate = fmin(rate, quotient->link_capacity_Bps[use->link] / use->weight);
  }
  return rate;
}

/* Per link class: the load of the stream being looked at, the sum over the streams before it. Transfers come sorted by
 * stream. */
typedef struct link_load {
  uint32_t serial;
  double of_stream, of_others;
  uint32_t n_streams;
} link_load;

static void add_load(link_load *load, uint32_t serial, double rate) {
  if (load->n_streams == 0 || load->serial != serial) {
    load->of_others += load->of_stream;
    load->of_stream = 0;
    load->serial = serial;
    load->n_streams++;
  }
  load->of_stream = fmax(load->of_stream, rate);
}

static bool is_contended(const link_load *load, double capacity_Bps) {
  /* The slack absorbs the rounding of weight * (capacity / weight). */
  return load->n_streams > 1 && load->of_others + load->of_stream > capacity_Bps * (1 + 1e-14);
}

/* Transfer classes in order of their stream (counting sort by serial would need its range; serials are small in
 * number). */
static void sort_by_serial(const pl_quotient *quotient, uint32_t *order) {
  uint32_t n = quotient->n_transfers;
  for (uint32_t i = 0; i < n; i++)
    order[i] = i;
  for (uint32_t gap = n / 2; gap > 0; gap /= 2) /* shell sort: no comparator state needed */
    for (uint32_t i = gap; i < n; i++) {
      uint32_t x = order[i], j = i;
      for (; j >= gap; j -= gap) {
        uint32_t y = order[j - gap];
        uint32_t sx = quotient->transfers[x].serial, sy = quotient->transfers[y].serial;
        if (sy < sx || (sy == sx && y < x)) break;
        order[j] = y;
      }
      order[j] = x;
    }
}

pl_code pl_quotient_rivals(pl_quotient *quotient, const double *rate_bound_Bps, pl_arena *arena, pl_error *error) {
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  link_load *loads = PL_TAKE(arena, link_load, quotient->n_links);
  uint32_t *order = PL_TAKE(arena, uint32_t, quotient->n_transfers);
  if (arena->failed) return pl_fail_memory(error, "the loads of the links");
  sort_by_serial(quotient, order);
  for (uint32_t i = 0; i < quotient->n_transfers; i++) {
    const pl_quotient_transfer *transfer = &quotient->transfers[order[i]];
    double rate = solo_rate(quotient, order[i], rate_bound_Bps[order[i]]);
    for (uint32_t u = 0; u < transfer->n_full; u++) {
      const pl_link_use *use = &quotient->full_uses[transfer->first_full + u];
      add_load(&loads[use->link], transfer->serial, use->weight * rate);
    }
  }
  uint32_t n = 0;
  for (uint32_t class = 0; class < quotient->n_transfers; class ++) {
    pl_quotient_transfer *transfer = &quotient->transfers[class];
    transfer->first_use = n;
    transfer->rate_cap_Bps = INFINITY;
    for (uint32_t u = 0; u < transfer->n_full; u++) {
      const pl_link_use use = quotient->full_uses[transfer->first_full + u];
      double capacity = quotient->link_capacity_Bps[use.link];
      if (is_contended(&loads[use.link], capacity)) {
        quotient->uses[n++] = use;
      } else {
        transfer->rate_cap_Bps = fmin(transfer->rate_cap_Bps, capacity / use.weight);
      }
    }
    transfer->n_uses = n - transfer->first_use;
  }
  quotient->n_uses = n;
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}

/* ---- implied links ---- */

/* Transfers with at most this many uses vote for the feeders that they have in common; larger ones (rings over many
 * nodes) take what the others chose, else their own bottleneck. Keeps the cost linear in the uses. */
enum { VOTING_USES = 32 };

/* Feeders that could fill a link this many times are not looked through for some that may be left out: what two sides
 * have is at most twice what one has. */
#define MOST_TOO_MUCH 2

typedef struct implication {
  const double *capacity_Bps;
  const bool *dropped;
  const pl_fold_transfer *transfers;
  const pl_link_use *uses;    /* sorted by link within a transfer */
  const uint32_t *bottleneck; /* per transfer: the use that limits it alone, PL_NONE without uses */
  pl_arena *arena;
  /* scratch per link, zero between calls */
  uint32_t *votes;
  double *ratio;
  uint32_t *voted, *fed; /* lists of links with votes, with a ratio */
  uint32_t n_voted, n_fed;
} implication;

static double weight_of(const implication *state, uint32_t transfer, uint32_t link) {
  const pl_link_use *limit = &state->uses[state->bottleneck[transfer]]; /* mostly what is asked for */
  if (limit->link == link) return limit->weight;
  uint32_t low = state->transfers[transfer].first_use, high = low + state->transfers[transfer].n_uses;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (state->uses[middle].link == link) return state->uses[middle].weight;
    if (state->uses[middle].link < link) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return 0;
}

static bool may_feed(const implication *state, uint32_t feeder, uint32_t link) {
  return feeder != link && !state->dropped[feeder] && state->capacity_Bps[feeder] < state->capacity_Bps[link];
}

static void vote(implication *state, const crossings *by_link, uint32_t link) {
  for (uint32_t i = by_link->offset[link]; i < by_link->offset[link + 1]; i++) {
    const pl_fold_transfer *transfer = &state->transfers[by_link->entry[i].transfer];
    if (transfer->n_uses > VOTING_USES) continue;
    for (uint32_t u = transfer->first_use; u < transfer->first_use + transfer->n_uses; u++) {
      uint32_t candidate = state->uses[u].link;
      if (!may_feed(state, candidate, link)) continue;
      if (state->votes[candidate]++ == 0) state->voted[state->n_voted++] = candidate;
    }
  }
}

/* Of the links with votes the one with most (then the smallest, then the lowest). */
static uint32_t elected_feeder(const implication *state, uint32_t transfer, uint32_t link) {
  const pl_fold_transfer *own = &state->transfers[transfer];
  uint32_t best = PL_NONE;
  for (uint32_t u = own->first_use; u < own->first_use + own->n_uses; u++) {
    uint32_t candidate = state->uses[u].link;
    if (!may_feed(state, candidate, link)) continue;
    if (best == PL_NONE || state->votes[candidate] > state->votes[best] ||
        (state->votes[candidate] == state->votes[best] && state->capacity_Bps[candidate] < state->capacity_Bps[best]))
      best = candidate;
  }
  return best;
}

static uint32_t feeder_of(const implication *state, uint32_t transfer, uint32_t link) {
  if (state->transfers[transfer].n_uses <= VOTING_USES) return elected_feeder(state, transfer, link);
  for (uint32_t i = 0; i < state->n_fed; i++)
    if (weight_of(state, transfer, state->fed[i]) > 0) return state->fed[i];
  uint32_t own = state->uses[state->bottleneck[transfer]].link;
  return may_feed(state, own, link) ? own : PL_NONE;
}

static void clear_scratch(implication *state) {
  while (state->n_voted > 0)
    state->votes[state->voted[--state->n_voted]] = 0;
  while (state->n_fed > 0)
    state->ratio[state->fed[--state->n_fed]] = 0;
}

/* `large`: the pass over the transfers that did not vote; it comes second, to find the feeders of the others. */
static bool feed_all(implication *state, const crossings *by_link, uint32_t link, bool large) {
  for (uint32_t i = by_link->offset[link]; i < by_link->offset[link + 1]; i++) {
    uint32_t transfer = by_link->entry[i].transfer;
    if ((state->transfers[transfer].n_uses > VOTING_USES) != large) continue;
    uint32_t feeder = feeder_of(state, transfer, link);
    if (feeder == PL_NONE) return false;
    if (state->ratio[feeder] == 0) state->fed[state->n_fed++] = feeder;
    state->ratio[feeder] = fmax(state->ratio[feeder], by_link->entry[i].weight / weight_of(state, transfer, feeder));
  }
  return true;
}

static double most_of_feeders(const implication *state) {
  double most_Bps = 0;
  for (uint32_t i = 0; i < state->n_fed; i++)
    most_Bps += state->ratio[state->fed[i]] * state->capacity_Bps[state->fed[i]];
  return most_Bps;
}

/* The feeders that `transfer` crosses; each must bear it, should others be left out. */
static uint32_t count_feeders(implication *state, const crossing *entry) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < state->n_fed; i++) {
    double weight = weight_of(state, entry->transfer, state->fed[i]);
    if (!(weight > 0)) continue;
    n++;
    state->ratio[state->fed[i]] = fmax(state->ratio[state->fed[i]], entry->weight / weight);
  }
  return n;
}

/* Leaves out feeders all of whose transfers have another one: where two pods talk, each transfer has a NIC on either
 * side, and the votes may fall now to one side and now to the other. False: no memory. */
static bool leave_out_feeders(implication *state, const crossings *by_link, uint32_t link) {
  uint32_t first = by_link->offset[link], n = by_link->offset[link + 1] - first;
  pl_arena_mark scratch = pl_arena_mark_here(state->arena);
  uint32_t *n_feeders = pl_arena_take(state->arena, n * sizeof *n_feeders, _Alignof(uint32_t));
  if (n_feeders == NULL) return false;
  for (uint32_t i = 0; i < n; i++)
    n_feeders[i] = count_feeders(state, &by_link->entry[first + i]);
  for (uint32_t at = state->n_fed; at-- > 0;) {
    uint32_t feeder = state->fed[at], crossed = 0, spare = 0;
    for (uint32_t i = 0; i < n; i++) {
      bool crosses = weight_of(state, by_link->entry[first + i].transfer, feeder) > 0;
      crossed += crosses;
      spare += crosses && n_feeders[i] > 1;
    }
    if (spare < crossed) continue;
    for (uint32_t i = 0; i < n; i++)
      n_feeders[i] -= weight_of(state, by_link->entry[first + i].transfer, feeder) > 0;
    state->ratio[feeder] = 0;
    state->fed[at] = state->fed[--state->n_fed];
  }
  pl_arena_release_to(state->arena, scratch);
  return true;
}

/* What is_implied finds for a link that one transfer crosses, and that one too large to vote: its bottleneck must feed
 * it. Most links of a ring over thousands of devices are such. */
static bool is_implied_alone(const implication *state, const crossing *only, uint32_t link) {
  const pl_link_use *limit = &state->uses[state->bottleneck[only->transfer]];
  if (!may_feed(state, limit->link, link)) return false;
  return only->weight / limit->weight * state->capacity_Bps[limit->link] <= state->capacity_Bps[link];
}

/* Can the feeders of the transfers that cross `link` fill it? Each feeder counts once, at its capacity times the
 * largest ratio of weights. */
static bool is_implied(implication *state, const crossings *by_link, uint32_t link, bool thoroughly) {
  double capacity_Bps = state->capacity_Bps[link];
  const crossing *first = &by_link->entry[by_link->offset[link]];
  if (by_link->offset[link + 1] - by_link->offset[link] == 1 && state->transfers[first->transfer].n_uses > VOTING_USES)
    return is_implied_alone(state, first, link);
  vote(state, by_link, link);
  bool fed = feed_all(state, by_link, link, false) && feed_all(state, by_link, link, true);
  bool implied = fed && most_of_feeders(state) <= capacity_Bps;
  if (fed && !implied && thoroughly && most_of_feeders(state) <= MOST_TOO_MUCH * capacity_Bps)
    implied = leave_out_feeders(state, by_link, link) && most_of_feeders(state) <= capacity_Bps;
  clear_scratch(state);
  return implied;
}

/* Links of one capacity, of which none implies another. A thorough look is worth it only if all of them go: a few of
 * many that are alike would make unlike what hangs on them. Returns how many go. */
static uint32_t drop_alike(implication *state, const crossings *by_link, const uint32_t *links, uint32_t n,
                           bool *dropped) {
  uint32_t n_dropped = 0;
  for (uint32_t i = 0; i < n; i++)
    n_dropped += dropped[links[i]] = is_implied(state, by_link, links[i], false);
  for (uint32_t i = 0; i < n; i++)
    if (!dropped[links[i]] && !is_implied(state, by_link, links[i], true)) return n_dropped;
  for (uint32_t i = 0; i < n; i++)
    dropped[links[i]] = true;
  return n;
}

static void find_bottlenecks(const double *capacity_Bps, const pl_fold_transfer *transfers, uint32_t n_transfers,
                             const pl_link_use *uses, uint32_t *bottleneck) {
  for (uint32_t t = 0; t < n_transfers; t++) {
    double least_Bps = INFINITY;
    bottleneck[t] = transfers[t].n_uses > 0 ? transfers[t].first_use : PL_NONE;
    for (uint32_t u = transfers[t].first_use; u < transfers[t].first_use + transfers[t].n_uses; u++) {
      double own_Bps = capacity_Bps[uses[u].link] / uses[u].weight;
      if (!(own_Bps < least_Bps)) continue;
      least_Bps = own_Bps;
      bottleneck[t] = u;
    }
  }
}

typedef struct capacity_class {
  double capacity_Bps;
  uint32_t class;
} capacity_class;

static int larger_first(const void *a, const void *b) {
  const capacity_class *x = a, *y = b;
  return (x->capacity_Bps < y->capacity_Bps) - (x->capacity_Bps > y->capacity_Bps);
}

/* The `n` links at `links`, which increase: largest capacity first, of equals the lowest index. Platforms have few
 * capacities, so links are put together by capacity and those are sorted. */
static bool sort_by_capacity(const double *capacity_Bps, uint32_t *links, uint32_t n, pl_arena *arena) {
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  uint64_t *bits = pl_arena_take(arena, n * sizeof *bits, _Alignof(uint64_t));
  uint32_t *sorted = pl_arena_take(arena, n * sizeof *sorted, _Alignof(uint32_t));
  capacity_class *classes = pl_arena_take(arena, n * sizeof *classes, _Alignof(capacity_class));
  uint32_t *end = pl_arena_take(arena, n * sizeof *end, _Alignof(uint32_t));
  pl_partition partition;
  if (arena->failed) return false;
  for (uint32_t i = 0; i < n; i++)
    memcpy(&bits[i], &capacity_Bps[links[i]], sizeof *bits);
  if (!pl_partition_of_colours(bits, n, arena, &partition)) return false;
  for (uint32_t class = 0; class < partition.n_classes; class ++)
    classes[class] = (capacity_class){capacity_Bps[links[partition.first[class]]], class};
  qsort(classes, partition.n_classes, sizeof *classes, larger_first);
  for (uint32_t i = 0, next = 0; i < partition.n_classes; i++) {
    end[classes[i].class] = next;
    next += partition.size[classes[i].class];
  }
  for (uint32_t i = 0; i < n; i++)
    sorted[end[partition.class_of[i]]++] = links[i];
  memcpy(links, sorted, n * sizeof *links);
  pl_arena_release_to(arena, scratch);
  return true;
}

static void remove_dropped(pl_fold_transfer *transfers, uint32_t n_transfers, pl_link_use *uses, const bool *dropped) {
  for (uint32_t t = 0; t < n_transfers; t++) {
    uint32_t kept = 0;
    pl_link_use *own = &uses[transfers[t].first_use];
    for (uint32_t i = 0; i < transfers[t].n_uses; i++)
      if (!dropped[own[i].link]) own[kept++] = own[i];
    transfers[t].n_uses = kept;
  }
}

pl_code pl_quotient_drop_implied_links(uint32_t n_links, const double *link_capacity_Bps, pl_fold_transfer *transfers,
                                       uint32_t n_transfers, pl_link_use *uses, pl_arena *arena, uint32_t *n_dropped,
                                       pl_error *error) {
  *n_dropped = 0;
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  crossings by_link;
  bool *dropped = PL_TAKE(arena, bool, n_links);
  uint32_t *order = pl_arena_take(arena, n_links * sizeof *order, _Alignof(uint32_t));
  uint32_t *bottleneck = PL_TAKE(arena, uint32_t, n_transfers);
  implication state = {.capacity_Bps = link_capacity_Bps,
                       .dropped = dropped,
                       .transfers = transfers,
                       .uses = uses,
                       .bottleneck = bottleneck,
                       .arena = arena,
                       .votes = PL_TAKE(arena, uint32_t, n_links),
                       .ratio = PL_TAKE(arena, double, n_links),
                       .voted = pl_arena_take(arena, n_links * sizeof(uint32_t), _Alignof(uint32_t)),
                       .fed = pl_arena_take(arena, n_links * sizeof(uint32_t), _Alignof(uint32_t))};
  if (!crossings_take(&by_link, n_links, transfers, n_transfers, uses, arena) || arena->failed)
    return pl_fail_memory(error, "the implied links");
  find_bottlenecks(link_capacity_Bps, transfers, n_transfers, uses, bottleneck);
  uint32_t n_used = 0;
  for (uint32_t l = 0; l < n_links; l++)
    if (by_link.offset[l + 1] > by_link.offset[l]) order[n_used++] = l;
  /* From the largest: what implies a link is smaller, so it has not been judged yet, and dropping it later, because
   * still smaller links imply it, takes nothing from the argument. */
  if (!sort_by_capacity(link_capacity_Bps, order, n_used, arena)) return pl_fail_memory(error, "the implied links");
  for (uint32_t i = 0, end; i < n_used; i = end) {
    for (end = i + 1; end < n_used && link_capacity_Bps[order[end]] == link_capacity_Bps[order[i]];)
      end++;
    *n_dropped += drop_alike(&state, &by_link, order + i, end - i, dropped);
  }
  remove_dropped(transfers, n_transfers, uses, dropped);
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}
