/* See validation/fit/site_shared.h. */
#include "validation/fit/site_shared.h"

#include <math.h>
#include <string.h>

enum { TENTHS = 10, OWN = PL_SITE_KINDS, N_PARTS = PL_SITE_KINDS + 1 };

/* The sources with two sites and more. */
typedef struct sources {
  const pl_site *prior;
  pl_site_family *families;
  pl_site_sums **sums;
  uint32_t n;
} sources;

/* Those of `source` side by side; how many. */
static uint32_t sites_of(const pl_site_rows *rows, uint32_t source, pl_site_sums *sums, pl_site_kin *kin) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < rows->n; i++) {
    const pl_site_row *row = &rows->rows[i];
    if (row->source != source) continue;
    uint32_t at = 0;
    while (at < n && memcmp(&kin[at], &row->kin, sizeof *kin) != 0)
      at++;
    if (at == n) kin[n++] = row->kin;
    pl_site_sums_add(&sums[at], &row->run);
  }
  for (uint32_t s = 0; s < n; s++)
    pl_site_sums_weaken(&sums[s]);
  return n;
}

static pl_code gather(const pl_site_rows *rows, uint32_t without, pl_arena *arena, sources *own, pl_error *error) {
  own->families = PL_TAKE(arena, pl_site_family, rows->n_sources);
  own->sums = PL_TAKE(arena, pl_site_sums *, rows->n_sources);
  if (arena->failed) return pl_fail_memory(error, "what sites share");
  for (uint32_t source = 0; source < rows->n_sources; source++) {
    if (source == without) continue;
    pl_arena_mark mark = pl_arena_mark_here(arena);
    pl_site_sums *sums = PL_TAKE(arena, pl_site_sums, rows->n_sites);
    pl_site_kin *kin = PL_TAKE(arena, pl_site_kin, rows->n_sites);
    if (arena->failed) return pl_fail_memory(error, "what sites share");
    uint32_t n = sites_of(rows, source, sums, kin);
    if (n < 2) {
      pl_arena_release_to(arena, mark);
      continue;
    }
    own->sums[own->n] = sums;
    PL_TRY(pl_site_family_take(kin, n, arena, &own->families[own->n++], error));
  }
  return PL_OK;
}

static double evidence_of(const sources *own, const int tenths[N_PARTS]) {
  double shared[PL_SITE_KINDS], sum = 0;
  for (int kind = 0; kind < PL_SITE_KINDS; kind++)
    shared[kind] = (double)tenths[kind] / TENTHS;
  for (uint32_t s = 0; s < own->n; s++)
    sum += pl_site_family_evidence(&own->families[s], own->prior, own->sums[s], shared);
  return sum;
}

/* The best of all ways to move a tenth; whether it is better than none. */
static bool improve(const sources *own, int tenths[N_PARTS], double *evidence) {
  int best_from = -1, best_to = -1;
  for (int from = 0; from < N_PARTS; from++) {
    if (tenths[from] == (from == OWN ? 1 : 0)) continue;
    for (int to = 0; to < N_PARTS; to++) {
      if (to == from) continue;
      int moved[N_PARTS];
      memcpy(moved, tenths, sizeof moved);
      moved[from]--;
      moved[to]++;
      double with = evidence_of(own, moved);
      if (with <= *evidence) continue;
      *evidence = with;
      best_from = from;
      best_to = to;
    }
  }
  if (best_from < 0) return false;
  tenths[best_from]--;
  tenths[best_to]++;
  return true;
}

pl_code pl_site_shared_take(const pl_site_rows *rows, uint32_t without, const pl_site *prior, const double *start,
                            pl_arena *arena, double shared[PL_SITE_KINDS], pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  sources own = {.prior = prior};
  PL_TRY(gather(rows, without, arena, &own, error));
  int tenths[N_PARTS] = {0};
  tenths[OWN] = TENTHS;
  for (int kind = 0; kind < PL_SITE_KINDS && start != NULL; kind++) {
    tenths[kind] = (int)lround(start[kind] * TENTHS);
    tenths[OWN] -= tenths[kind];
  }
  double evidence = evidence_of(&own, tenths);
  while (improve(&own, tenths, &evidence))
    ;
  for (int kind = 0; kind < PL_SITE_KINDS; kind++)
    shared[kind] = (double)tenths[kind] / TENTHS;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
