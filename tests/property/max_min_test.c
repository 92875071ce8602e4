/* The max-min structure on random problems: against a naive solver written from the definition, against the
 * certificate, incremental against from scratch, symmetric and folded inputs bit by bit. PACELINE_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/flow/max_min.h"
#include "tests/support/random.h"

enum { LINKS = 24, SPECS = 60, USES_PER_SPEC = 5, FLOWS = 80, MOST_FLOWS = 240, ROUNDS = 300, STEPS = 40 };

typedef struct problem {
  pl_transfer_table table;
  double capacity_Bps[LINKS];
  uint8_t policy[LINKS];
  pl_transfer_spec specs[SPECS];
  pl_link_use uses[SPECS * USES_PER_SPEC];
} problem;

static bool uses_link(const pl_transfer_spec *spec, const pl_link_use *uses, uint32_t link) {
  for (uint32_t i = 0; i < spec->n_uses; i++)
    if (uses[i].link == link) return true;
  return false;
}

/* `nice`: few distinct values, so that levels tie. */
static void random_problem(problem *p, uint64_t *state) {
  bool nice = random_below(state, 2), weighted = random_below(state, 2), capped = random_below(state, 2);
  uint32_t n_links = random_between(state, 1, LINKS), n_uses = 0;
  for (uint32_t l = 0; l < n_links; l++) {
    p->capacity_Bps[l] = nice ? 1e9 * random_between(state, 1, 3) : random_log(state, 1e7, 1e12);
    p->policy[l] = random_below(state, 6) == 0 ? PL_LINK_FATPIPE : PL_LINK_SHARED;
  }
  for (uint32_t s = 0; s < SPECS; s++) {
    pl_transfer_spec *spec = &p->specs[s];
    *spec = (pl_transfer_spec){.first_use = n_uses, .rate_cap_Bps = INFINITY, .share_weight = 1};
    if (weighted) spec->share_weight = nice ? random_between(state, 1, 3) : random_log(state, 1e3, 1e7);
    if (capped && random_below(state, 2))
      spec->rate_cap_Bps = nice ? 1e8 * random_between(state, 1, 9) : random_log(state, 1e6, 1e11);
    uint32_t wanted = random_between(state, 1, n_links < USES_PER_SPEC ? n_links : USES_PER_SPEC);
    for (uint32_t i = 0; i < wanted; i++) {
      uint32_t link = random_below(state, n_links);
      if (uses_link(spec, p->uses + spec->first_use, link)) continue;
      double weight = random_below(state, 3) ? 1 : nice ? random_between(state, 2, 4) : random_log(state, 0.1, 10);
      p->uses[n_uses++] = (pl_link_use){.link = link, .weight = weight};
      spec->n_uses++;
    }
  }
  p->table = (pl_transfer_table){p->capacity_Bps, p->policy, n_links, p->specs, SPECS, p->uses, n_uses};
  assert_true(pl_transfer_table_is_valid(&p->table));
}

/* The definition, slowly: raise all levels together; at each step find the lowest level at which a link fills or a flow
 * meets its cap, and fix exactly that. FLOWS x LINKS per step, no state kept. */
static void reference_rates(const pl_transfer_table *table, const uint32_t *spec_of, uint32_t n, double *rates) {
  bool fixed[FLOWS] = {false};
  for (uint32_t left = n; left > 0;) {
    double lowest = INFINITY;
    uint32_t at_link = PL_NONE, at_flow = PL_NONE;
    for (uint32_t l = 0; l < table->n_links; l++) {
      double rest = table->link_capacity_Bps[l], use = 0;
      if (table->link_policy[l] == PL_LINK_FATPIPE) continue;
      for (uint32_t f = 0; f < n; f++)
        for (uint32_t i = 0; i < table->specs[spec_of[f]].n_uses; i++) {
          const pl_link_use *u = &table->uses[table->specs[spec_of[f]].first_use + i];
          if (u->link != l) continue;
          if (fixed[f]) {
            rest -= u->weight * rates[f];
          } else {
            use += u->weight * table->specs[spec_of[f]].share_weight;
          }
        }
      if (use > 0 && fmax(rest, 0) / use < lowest) lowest = fmax(rest, 0) / use, at_link = l;
    }
    for (uint32_t f = 0; f < n; f++) {
      const pl_transfer_spec *spec = &table->specs[spec_of[f]];
      double cap = spec->rate_cap_Bps;
      for (uint32_t i = 0; i < spec->n_uses; i++) {
        const pl_link_use *u = &table->uses[spec->first_use + i];
        if (table->link_policy[u->link] == PL_LINK_FATPIPE)
          cap = fmin(cap, table->link_capacity_Bps[u->link] / u->weight);
      }
      if (!fixed[f] && cap / spec->share_weight < lowest) lowest = cap / spec->share_weight, at_flow = f;
    }
    for (uint32_t f = 0; f < n; f++) {
      const pl_transfer_spec *spec = &table->specs[spec_of[f]];
      if (fixed[f] || (at_flow != PL_NONE ? f != at_flow : !uses_link(spec, table->uses + spec->first_use, at_link)))
        continue;
      rates[f] = lowest * spec->share_weight;
      fixed[f] = true;
      left--;
    }
  }
}

static void assert_close(double is, double should, const char *what) {
  if (fabs(is - should) > 1e-9 * should) fail_msg("%s: %.17g, expected %.17g", what, is, should);
}

typedef struct population {
  uint32_t slots[MOST_FLOWS], specs[MOST_FLOWS], count;
} population;

static void leave(pl_max_min *max_min, population *flows, uint32_t i) {
  pl_max_min_leave(max_min, flows->slots[i]);
  pl_max_min_give_slot(max_min, flows->slots[i]);
  flows->count--;
  flows->slots[i] = flows->slots[flows->count];
  flows->specs[i] = flows->specs[flows->count];
}

static void join(pl_max_min *max_min, population *flows, uint32_t spec) {
  uint32_t slot = pl_max_min_take_slot(max_min, spec);
  flows->slots[flows->count] = slot;
  flows->specs[flows->count++] = spec;
  pl_max_min_join(max_min, slot);
}

static void churn(pl_max_min *max_min, population *flows, uint64_t *state) {
  for (uint32_t k = random_between(state, 1, 8); k-- > 0;) {
    if (flows->count == FLOWS || (flows->count > 0 && random_below(state, 5) < 2))
      leave(max_min, flows, random_below(state, flows->count));
    else
      join(max_min, flows, random_below(state, SPECS));
  }
}

/* Bitwise: what an incremental history gives is what a fresh structure gives for the same set. */
static void compare_with_fresh(const pl_transfer_table *table, const pl_max_min *max_min, const population *flows) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 18);
  pl_max_min fresh;
  assert_true(pl_max_min_init(&fresh, table, false, &arena));
  uint32_t slots[MOST_FLOWS];
  for (uint32_t i = flows->count; i-- > 0;) { /* another order on purpose */
    slots[i] = pl_max_min_take_slot(&fresh, flows->specs[i]);
    pl_max_min_join(&fresh, slots[i]);
  }
  pl_max_min_solve(&fresh);
  for (uint32_t i = 0; i < flows->count; i++) {
    double is = pl_max_min_rate(max_min, flows->slots[i]), should = pl_max_min_rate(&fresh, slots[i]);
    if (memcmp(&is, &should, sizeof is) != 0) fail_msg("flow %u: %a incrementally, %a from scratch", i, is, should);
  }
  pl_arena_release(&arena);
}

static void random_histories(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20261);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    problem p;
    random_problem(&p, &state);
    pl_arena arena;
    pl_arena_init(&arena, 1 << 18);
    pl_max_min max_min;
    population flows = {.count = 0};
    assert_true(pl_max_min_init(&max_min, &p.table, false, &arena));
    for (uint32_t step = 0; step < STEPS; step++) {
      churn(&max_min, &flows, &state);
      pl_max_min_solve(&max_min);
      assert_true(pl_max_min_is_valid(&max_min));
      const char *problem_text = pl_max_min_certify(&max_min);
      if (problem_text != NULL) fail_msg("round %u step %u: %s", round, step, problem_text);
      double rates[FLOWS];
      reference_rates(&p.table, flows.specs, flows.count, rates);
      for (uint32_t i = 0; i < flows.count; i++)
        assert_close(pl_max_min_rate(&max_min, flows.slots[i]), rates[i], "against the reference");
      compare_with_fresh(&p.table, &max_min, &flows);
    }
    pl_arena_release(&arena);
  }
}

/* Flows of like weights leave a few at a time: what the update finds is bitwise what the filling finds, with ties (few
 * capacities and pairs of links, as in an all-to-all) and without; and it is the update that finds it, mostly. */
enum { DEPARTING = 160, ENTRANTS = 6 };

static void departures(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20264);
  uint32_t n_solves = 0, n_updates = 0;
  for (uint32_t round = 0; round < 60; round++) {
    problem p;
    bool nice = random_below(&state, 3) == 0, pairs = random_below(&state, 2);
    uint32_t n_links = random_between(&state, 8, LINKS), n_uses = 0;
    for (uint32_t l = 0; l < n_links; l++) {
      p.capacity_Bps[l] = nice ? 1e9 * random_between(&state, 1, 2) : pairs ? 25e9 : random_log(&state, 1e8, 1e11);
      p.policy[l] = PL_LINK_SHARED;
    }
    for (uint32_t s = 0; s < SPECS; s++) {
      pl_transfer_spec *spec = &p.specs[s];
      *spec = (pl_transfer_spec){.first_use = n_uses, .rate_cap_Bps = INFINITY, .share_weight = 1.0 / 3};
      uint32_t wanted = pairs ? 2 : random_between(&state, 1, 4);
      while (spec->n_uses < wanted) {
        uint32_t link = random_below(&state, n_links);
        if (uses_link(spec, p.uses + spec->first_use, link)) continue;
        p.uses[n_uses++] = (pl_link_use){.link = link, .weight = 1};
        spec->n_uses++;
      }
    }
    p.table = (pl_transfer_table){p.capacity_Bps, p.policy, n_links, p.specs, SPECS, p.uses, n_uses};
    pl_arena arena;
    pl_arena_init(&arena, 1 << 18);
    pl_max_min max_min;
    population flows = {.count = 0};
    assert_true(pl_max_min_init(&max_min, &p.table, false, &arena));
    for (uint32_t entered = 0; entered < DEPARTING || flows.count > 0;) {
      uint32_t joins = entered == 0 ? DEPARTING : entered < DEPARTING + 40 && random_below(&state, 12) == 0 ? 2 : 0;
      for (uint32_t i = 0; i < joins; i++, entered++) {
        uint32_t spec = random_below(&state, SPECS), slot = pl_max_min_take_slot(&max_min, spec);
        flows.slots[flows.count] = slot;
        flows.specs[flows.count++] = spec;
        pl_max_min_join(&max_min, slot);
      }
      for (uint32_t k = joins > 2 ? 0 : random_between(&state, 1, ENTRANTS) / 3 + 1; k-- > 0 && flows.count > 0;) {
        uint32_t i = random_below(&state, flows.count);
        pl_max_min_leave(&max_min, flows.slots[i]);
        pl_max_min_give_slot(&max_min, flows.slots[i]);
        flows.count--;
        flows.slots[i] = flows.slots[flows.count];
        flows.specs[i] = flows.specs[flows.count];
      }
      pl_max_min_solve(&max_min);
      assert_true(pl_max_min_is_valid(&max_min));
      assert_null(pl_max_min_certify(&max_min));
      compare_with_fresh(&p.table, &max_min, &flows);
      n_solves++;
      n_updates += max_min.n_component_slots == 0 && max_min.n_changed > 0;
    }
    pl_arena_release(&arena);
  }
  print_message("%u of %u solves were updates\n", n_updates, n_solves);
  assert_true(n_updates > n_solves / 3);
}

/* Few flows of few specs that come and go: what is kept of earlier ones is what the filling finds. */
static void few_flows_again(void **unused) {
  (void)unused;
  enum { MOST = 4, KINDS = 6, STEPS_OF_FEW = 150 };
  uint64_t state = test_seed(20265);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    problem p;
    random_problem(&p, &state);
    pl_arena arena;
    pl_arena_init(&arena, 1 << 18);
    pl_max_min max_min;
    population flows = {.count = 0};
    assert_true(pl_max_min_init(&max_min, &p.table, false, &arena));
    for (uint32_t step = 0; step < STEPS_OF_FEW; step++) {
      if (flows.count == MOST || (flows.count > 0 && random_below(&state, 2)))
        leave(&max_min, &flows, random_below(&state, flows.count));
      else
        join(&max_min, &flows, random_below(&state, KINDS));
      pl_max_min_solve(&max_min);
      assert_true(pl_max_min_is_valid(&max_min));
      assert_null(pl_max_min_certify(&max_min));
      compare_with_fresh(&p.table, &max_min, &flows);
    }
    pl_arena_release(&arena);
  }
}

/* A flow alone in a component that was solved has bitwise the solo rate. */
static void lone_flow_has_the_solo_rate(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20262);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    problem p;
    random_problem(&p, &state);
    pl_arena arena;
    pl_arena_init(&arena, 1 << 18);
    pl_max_min max_min;
    assert_true(pl_max_min_init(&max_min, &p.table, false, &arena));
    for (uint32_t spec = 0; spec < SPECS; spec++) {
      uint32_t first = pl_max_min_take_slot(&max_min, spec), rival = pl_max_min_take_slot(&max_min, spec);
      pl_max_min_join(&max_min, first);
      pl_max_min_join(&max_min, rival);
      pl_max_min_solve(&max_min);
      pl_max_min_leave(&max_min, rival);
      pl_max_min_solve(&max_min);
      bool exact = true; /* a * w is a product of doubles: exact for integers only */
      for (uint32_t i = 0; i < p.specs[spec].n_uses; i++)
        exact =
            exact && p.uses[p.specs[spec].first_use + i].weight == floor(p.uses[p.specs[spec].first_use + i].weight);
      double is = pl_max_min_rate(&max_min, first), should = pl_transfer_solo_rate(&p.table, spec);
      if (exact && memcmp(&is, &should, sizeof is) != 0) fail_msg("spec %u: %a, solo %a", spec, is, should);
      assert_close(is, should, "solo");
      pl_max_min_leave(&max_min, first);
      pl_max_min_give_slot(&max_min, first);
      pl_max_min_give_slot(&max_min, rival);
      pl_max_min_solve(&max_min);
    }
    pl_arena_release(&arena);
  }
}

/* k copies of a network side by side, renumbered at random and coupled through links that all copies use alike: flow i
 * of every copy has bitwise the same rate, and the network folded to one copy (weight k on the coupling links) has it
 * too. */
enum { COPIES = 5 };

static void symmetric_and_folded(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20263);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint32_t n_local = random_between(&state, 1, 6), n_common = random_between(&state, 1, 3);
    uint32_t n_flows = random_between(&state, 1, 12);
    bool weighted = random_below(&state, 2), capped = random_below(&state, 2);
    double capacity[COPIES * 6 + 3], folded_capacity[9];
    uint8_t policy[COPIES * 6 + 3] = {0};
    pl_transfer_spec specs[COPIES * 12], folded_specs[12];
    pl_link_use uses[COPIES * 12 * 9], folded_uses[12 * 9];
    uint32_t n_uses = 0, n_folded_uses = 0;
    for (uint32_t l = 0; l < n_local + n_common; l++) {
      double value = random_log(&state, 1e8, 1e11);
      folded_capacity[l] = value;
      for (uint32_t c = 0; c < COPIES; c++)
        capacity[l < n_local ? l * COPIES + c : n_local * COPIES + l - n_local] = value;
    }
    for (uint32_t f = 0; f < n_flows; f++) {
      pl_transfer_spec spec = {.rate_cap_Bps = INFINITY, .share_weight = 1, .first_use = n_folded_uses};
      if (weighted) spec.share_weight = random_log(&state, 1e3, 1e6);
      if (capped) spec.rate_cap_Bps = random_log(&state, 1e7, 1e11);
      for (uint32_t l = 0; l < n_local + n_common; l++)
        if (random_below(&state, 2))
          folded_uses[n_folded_uses++] = (pl_link_use){.link = l, .weight = random_between(&state, 1, 7)};
      spec.n_uses = n_folded_uses - spec.first_use;
      folded_specs[f] = spec;
      for (uint32_t c = 0; c < COPIES; c++) {
        specs[f * COPIES + c] = spec;
        specs[f * COPIES + c].first_use = n_uses;
        for (uint32_t i = 0; i < spec.n_uses; i++) {
          pl_link_use use = folded_uses[spec.first_use + i];
          /* copy c of local link l has another number than the copy of its neighbour */
          use.link = use.link < n_local ? use.link * COPIES + (c * (use.link % 4 + 1)) % COPIES
                                        : n_local * COPIES + use.link - n_local;
          uses[n_uses++] = use;
        }
      }
      for (uint32_t i = 0; i < spec.n_uses; i++)
        if (folded_uses[spec.first_use + i].link >= n_local) folded_uses[spec.first_use + i].weight *= COPIES;
    }
    pl_transfer_table whole = {capacity, policy, n_local * COPIES + n_common, specs, n_flows * COPIES, uses, n_uses};
    pl_transfer_table folded = {folded_capacity, policy,      n_local + n_common, folded_specs,
                                n_flows,         folded_uses, n_folded_uses};
    pl_arena arena;
    pl_arena_init(&arena, 1 << 18);
    pl_max_min big, small;
    assert_true(pl_max_min_init(&big, &whole, false, &arena) && pl_max_min_init(&small, &folded, false, &arena));
    uint32_t slot_of[COPIES * 12], order[COPIES * 12];
    for (uint32_t i = 0; i < n_flows * COPIES; i++)
      order[i] = i;
    for (uint32_t i = n_flows * COPIES; i-- > 1;) {
      uint32_t j = random_below(&state, i + 1), swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
    for (uint32_t i = 0; i < n_flows * COPIES; i++) {
      slot_of[order[i]] = pl_max_min_take_slot(&big, order[i]);
      pl_max_min_join(&big, slot_of[order[i]]);
      if (random_below(&state, 8) == 0) pl_max_min_solve(&big);
    }
    pl_max_min_solve(&big);
    uint32_t small_slot[12];
    for (uint32_t f = 0; f < n_flows; f++) {
      small_slot[f] = pl_max_min_take_slot(&small, f);
      pl_max_min_join(&small, small_slot[f]);
    }
    pl_max_min_solve(&small);
    for (uint32_t f = 0; f < n_flows; f++) {
      double one = pl_max_min_rate(&small, small_slot[f]);
      for (uint32_t c = 0; c < COPIES; c++) {
        double rate = pl_max_min_rate(&big, slot_of[f * COPIES + c]);
        if (memcmp(&one, &rate, sizeof one) != 0)
          fail_msg("round %u flow %u copy %u: %a, folded %a", round, f, c, rate, one);
      }
    }
    pl_arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_histories),     cmocka_unit_test(departures),
      cmocka_unit_test(few_flows_again),      cmocka_unit_test(lone_flow_has_the_solo_rate),
      cmocka_unit_test(symmetric_and_folded),
  };
  return cmocka_run_group_tests_name("max_min", tests, NULL, NULL);
}
