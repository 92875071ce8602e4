/* See netmodel/fold/folding.h. */
#include "netmodel/fold/folding.h"

#include <string.h>

/* The links that are crossed, in order. */
typedef struct crossed_links {
  uint32_t n;
  uint32_t *number; /* per link before; PL_NONE: not crossed */
  uint32_t *link;   /* of the problem */
  uint64_t *colour;
  double *capacity_Bps;
} crossed_links;

static uint32_t count_uses(const pl_fold_transfer *transfers, uint32_t n_transfers) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < n_transfers; t++)
    n += transfers[t].n_uses;
  return n;
}

static bool crossed_take(const pl_fold_problem *problem, pl_arena *arena, crossed_links *crossed) {
  uint32_t most = count_uses(problem->transfers, problem->n_transfers);
  if (most > problem->n_links) most = problem->n_links;
  crossed->number = pl_arena_take(arena, problem->n_links * sizeof *crossed->number, _Alignof(uint32_t));
  crossed->link = pl_arena_take(arena, most * sizeof *crossed->link, _Alignof(uint32_t));
  crossed->colour = pl_arena_take(arena, most * sizeof *crossed->colour, _Alignof(uint64_t));
  crossed->capacity_Bps = pl_arena_take(arena, most * sizeof *crossed->capacity_Bps, _Alignof(double));
  return !arena->failed;
}

/* Those of `n_links` that are crossed get numbers from 0 on, in which the uses are said from now on. */
static void number_links(const pl_fold_transfer *transfers, uint32_t n_transfers, uint32_t n_links, pl_link_use *uses,
                         crossed_links *crossed) {
  memset(crossed->number, 0xff, n_links * sizeof *crossed->number);
  for (uint32_t t = 0; t < n_transfers; t++)
    for (uint32_t i = 0; i < transfers[t].n_uses; i++)
      crossed->number[uses[transfers[t].first_use + i].link] = 0;
  crossed->n = 0;
  for (uint32_t l = 0; l < n_links; l++)
    if (crossed->number[l] != PL_NONE) crossed->number[l] = crossed->n++;
  for (uint32_t t = 0; t < n_transfers; t++)
    for (uint32_t i = 0; i < transfers[t].n_uses; i++) {
      pl_link_use *use = &uses[transfers[t].first_use + i];
      use->link = crossed->number[use->link];
    }
}

static void take_crossed(const pl_fold_problem *problem, const double *capacity_Bps, crossed_links *crossed) {
  for (uint32_t l = 0; l < problem->n_links; l++) {
    uint32_t number = crossed->number[l];
    if (number == PL_NONE) continue;
    crossed->link[number] = l;
    crossed->colour[number] = problem->link_colour[l];
    crossed->capacity_Bps[number] = capacity_Bps[l];
  }
}

/* Numbers only fall, so what is moved has not been written over. */
static void keep_crossed(uint32_t n_before, crossed_links *crossed) {
  for (uint32_t l = 0; l < n_before; l++) {
    uint32_t number = crossed->number[l];
    if (number == PL_NONE) continue;
    crossed->link[number] = crossed->link[l];
    crossed->colour[number] = crossed->colour[l];
    crossed->capacity_Bps[number] = crossed->capacity_Bps[l];
  }
}

pl_code pl_folding_take(const pl_fold_problem *problem, pl_fold_transfer *transfers, pl_link_use *uses,
                        const double *link_capacity_Bps, pl_arena *arena, pl_folding *folding, pl_error *error) {
  crossed_links crossed;
  if (!crossed_take(problem, arena, &crossed)) return pl_fail_memory(error, "the links of a fold");
  number_links(transfers, problem->n_transfers, problem->n_links, uses, &crossed);
  take_crossed(problem, link_capacity_Bps, &crossed);
  uint32_t n_crossed = crossed.n;
  PL_TRY(pl_quotient_drop_implied_links(n_crossed, crossed.capacity_Bps, transfers, problem->n_transfers, uses, arena,
                                        &folding->n_implied_links, error));
  number_links(transfers, problem->n_transfers, n_crossed, uses, &crossed);
  keep_crossed(n_crossed, &crossed);
  pl_fold_problem own = *problem;
  own.n_links = crossed.n;
  own.link_colour = crossed.colour;
  own.transfers = transfers;
  own.uses = uses;
  PL_TRY(pl_fold_refine(&own, arena, &folding->fold, error));
  PL_TRY(pl_quotient_take(&own, &folding->fold, crossed.capacity_Bps, NULL, arena, &folding->quotient, error));
  pl_partition *links = &folding->fold.links;
  for (uint32_t class = 0; class < links->n_classes; class ++)
    links->first[class] = crossed.link[links->first[class]];
  links->class_of = NULL; /* of numbers that nobody knows */
  return PL_OK;
}
