/* pl_folding_take, which works on the links that transfers cross, against its three steps on all links: the same
 * classes of devices and transfers, the same links implied, and a quotient that differs in the links alone that nobody
 * crosses. Random problems with few and with many uses, most links of which nobody crosses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/fold/folding.h"
#include "tests/support/random.h"

enum { DEVICES = 24, LINKS = 300, TRANSFERS = 12, MOST_USES = 60 };

typedef struct problem_case {
  pl_fold_problem problem;
  uint64_t device_colour[DEVICES], link_colour[LINKS];
  double capacity_Bps[LINKS];
  pl_fold_transfer transfers[TRANSFERS];
  pl_fold_member members[TRANSFERS * 4];
  pl_link_use uses[TRANSFERS * MOST_USES];
} problem_case;

static int by_link(const void *a, const void *b) {
  uint32_t left = ((const pl_link_use *)a)->link, right = ((const pl_link_use *)b)->link;
  return (left > right) - (left < right);
}

/* Each link at most once in a transfer. */
static uint32_t random_uses(uint64_t *state, uint32_t n, pl_link_use *uses) {
  bool taken[LINKS] = {0};
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t link = random_below(state, LINKS);
    if (taken[link]) continue;
    taken[link] = true;
    uses[kept++] = (pl_link_use){.link = link, .weight = random_between(state, 1, 3)};
  }
  qsort(uses, kept, sizeof *uses, by_link);
  return kept;
}

static void make(uint64_t *state, problem_case *own) {
  static const double capacities[] = {1e9, 2e9, 12.5e9, 25e9, 50e9};
  for (uint32_t d = 0; d < DEVICES; d++)
    own->device_colour[d] = random_below(state, 2);
  for (uint32_t l = 0; l < LINKS; l++) {
    own->capacity_Bps[l] = capacities[random_below(state, 5)];
    memcpy(&own->link_colour[l], &own->capacity_Bps[l], sizeof own->link_colour[l]);
  }
  uint32_t n_uses = 0;
  for (uint32_t t = 0; t < TRANSFERS; t++) {
    pl_fold_transfer *transfer = &own->transfers[t];
    uint32_t wanted = random_below(state, 2) ? random_below(state, 5) : random_between(state, 33, MOST_USES);
    *transfer = (pl_fold_transfer){
        .colour = random_below(state, 2), .first_member = 4 * t, .n_members = 4, .first_use = n_uses};
    for (uint32_t i = 0; i < 4; i++)
      own->members[4 * t + i] = (pl_fold_member){.device = random_below(state, DEVICES), .role = 0};
    transfer->n_uses = random_uses(state, wanted, &own->uses[n_uses]);
    n_uses += transfer->n_uses;
  }
  own->problem = (pl_fold_problem){.n_devices = DEVICES,
                                   .n_links = LINKS,
                                   .n_transfers = random_between(state, 1, TRANSFERS),
                                   .device_colour = own->device_colour,
                                   .link_colour = own->link_colour,
                                   .transfers = own->transfers,
                                   .members = own->members,
                                   .uses = own->uses};
}

static void step_by_step(problem_case *own, pl_arena *arena, pl_folding *folding) {
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_quotient_drop_implied_links(LINKS, own->capacity_Bps, own->transfers, own->problem.n_transfers,
                                                  own->uses, arena, &folding->n_implied_links, &error),
                   PL_OK);
  assert_int_equal(pl_fold_refine(&own->problem, arena, &folding->fold, &error), PL_OK);
  assert_int_equal(
      pl_quotient_take(&own->problem, &folding->fold, own->capacity_Bps, NULL, arena, &folding->quotient, &error),
      PL_OK);
}

static void compare_partitions(const pl_partition *a, const pl_partition *b, uint32_t n) {
  assert_int_equal(a->n_classes, b->n_classes);
  assert_memory_equal(a->class_of, b->class_of, n * sizeof *a->class_of);
  assert_memory_equal(a->first, b->first, a->n_classes * sizeof *a->first);
  assert_memory_equal(a->size, b->size, a->n_classes * sizeof *a->size);
}

/* Each use of a transfer is on the class of the same first link, as large and as fast. */
static void compare_quotients(const pl_folding *a, const pl_folding *b) {
  assert_int_equal(a->quotient.n_transfers, b->quotient.n_transfers);
  assert_int_equal(a->quotient.n_uses, b->quotient.n_uses);
  for (uint32_t u = 0; u < a->quotient.n_uses; u++) {
    uint32_t x = a->quotient.uses[u].link, y = b->quotient.uses[u].link;
    assert_true(a->quotient.uses[u].weight == b->quotient.uses[u].weight);
    assert_int_equal(a->fold.links.first[x], b->fold.links.first[y]);
    assert_int_equal(a->fold.links.size[x], b->fold.links.size[y]);
    assert_true(a->quotient.link_capacity_Bps[x] == b->quotient.link_capacity_Bps[y]);
  }
}

static void links_that_nobody_crosses_change_nothing(void **unused) {
  (void)unused;
  uint64_t state = test_seed(51), n_folded = 0, n_implied = 0;
  problem_case *one = malloc(sizeof *one), *other = malloc(sizeof *other);
  assert_true(one != NULL && other != NULL);
  for (int i = 0; i < 2000; i++) {
    uint64_t before = state;
    make(&state, one);
    state = before;
    make(&state, other);
    pl_arena arena;
    pl_folding folding = {0}, steps = {0};
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    assert_int_equal(
        pl_folding_take(&one->problem, one->transfers, one->uses, one->capacity_Bps, &arena, &folding, &error), PL_OK);
    step_by_step(other, &arena, &steps);
    assert_int_equal(folding.n_implied_links, steps.n_implied_links);
    compare_partitions(&folding.fold.devices, &steps.fold.devices, DEVICES);
    compare_partitions(&folding.fold.transfers, &steps.fold.transfers, one->problem.n_transfers);
    compare_quotients(&folding, &steps);
    assert_true(folding.fold.links.n_classes <= steps.fold.links.n_classes);
    n_folded += folding.fold.devices.n_classes < DEVICES;
    n_implied += folding.n_implied_links;
    pl_arena_release(&arena);
  }
  assert_true(n_folded > 100 && n_implied > 2000);
  free(one);
  free(other);
}

/* What a single transfer over many links is bound by stays, and what is no faster; all else is implied. */
static void a_long_ring_keeps_its_bottleneck(void **unused) {
  (void)unused;
  uint64_t state = test_seed(52);
  problem_case *own = malloc(sizeof *own);
  assert_non_null(own);
  for (int i = 0; i < 200; i++) {
    make(&state, own);
    pl_fold_transfer *ring = &own->transfers[0];
    ring->n_uses = random_uses(&state, MOST_USES, own->uses);
    pl_link_use kept[MOST_USES];
    uint32_t n_kept = 0, limit = 0, n_dropped;
    for (uint32_t u = 0; u < ring->n_uses; u++)
      if (own->capacity_Bps[own->uses[u].link] / own->uses[u].weight <
          own->capacity_Bps[own->uses[limit].link] / own->uses[limit].weight)
        limit = u;
    for (uint32_t u = 0; u < ring->n_uses; u++)
      if (own->capacity_Bps[own->uses[u].link] <= own->capacity_Bps[own->uses[limit].link])
        kept[n_kept++] = own->uses[u];
    pl_arena arena;
    pl_error error = PL_ERROR_INIT;
    uint32_t n_before = ring->n_uses;
    pl_arena_init(&arena, 0);
    assert_true(n_before > 32);
    assert_int_equal(
        pl_quotient_drop_implied_links(LINKS, own->capacity_Bps, ring, 1, own->uses, &arena, &n_dropped, &error),
        PL_OK);
    assert_int_equal(n_dropped, n_before - n_kept);
    assert_int_equal(ring->n_uses, n_kept);
    for (uint32_t u = 0; u < n_kept; u++)
      assert_true(own->uses[u].link == kept[u].link && own->uses[u].weight == kept[u].weight);
    pl_arena_release(&arena);
  }
  free(own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(links_that_nobody_crosses_change_nothing),
      cmocka_unit_test(a_long_ring_keeps_its_bottleneck),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
