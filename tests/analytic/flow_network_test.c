/* The flow and the analytic network against closed forms. The algebra stands with each case; capacities are chosen so
 * that expected dates are exact, and any date may be off by the ticks that its roundings allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "netmodel/flow/networks.h"
#include "tests/support/random.h"

enum { MAX_TASKS = 64, MAX_LINKS = 8 };

static const double GB = 1e9;

/* A table under construction, and what happens when. */
typedef struct scene {
  pl_transfer_table table;
  double capacity_Bps[MAX_LINKS];
  uint8_t policy[MAX_LINKS];
  pl_transfer_spec specs[MAX_TASKS];
  pl_link_use uses[MAX_TASKS * MAX_LINKS];
  uint32_t n_links, n_specs, n_uses;
  struct {
    pl_ticks start;
    double size_bytes;
    pl_ticks speed_at; /* PL_TICKS_NEVER = speed stays 1 */
    double speed;
  } tasks[MAX_TASKS];
  pl_ticks finish[MAX_TASKS];
} scene;

static uint32_t add_link(scene *s, double capacity_Bps, pl_link_policy policy) {
  s->capacity_Bps[s->n_links] = capacity_Bps;
  s->policy[s->n_links] = (uint8_t)policy;
  return s->n_links++;
}

/* One task with a spec of its own over `links` (a bit set), weight `a` on each. */
static uint32_t add_task(scene *s, double start_s, double size_bytes, uint32_t links, double a) {
  pl_transfer_spec *spec = &s->specs[s->n_specs];
  *spec = (pl_transfer_spec){.first_use = s->n_uses, .rate_cap_Bps = INFINITY, .share_weight = 1};
  for (uint32_t l = 0; l < MAX_LINKS; l++)
    if (links >> l & 1) s->uses[s->n_uses++] = (pl_link_use){.link = l, .weight = a}, spec->n_uses++;
  s->tasks[s->n_specs].start = pl_ticks_from_s(start_s);
  s->tasks[s->n_specs].size_bytes = size_bytes;
  s->tasks[s->n_specs].speed_at = PL_TICKS_NEVER;
  return s->n_specs++;
}

/* Plays the scene as the engine would: completions of a tick, then starts and speeds, then settle. */
static void play(scene *s, pl_network *(*take)(const pl_transfer_table *, pl_arena *)) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  s->table = (pl_transfer_table){s->capacity_Bps, s->policy, s->n_links, s->specs, s->n_specs, s->uses, s->n_uses};
  assert_true(pl_transfer_table_is_valid(&s->table));
  pl_network *network = take(&s->table, &arena);
  assert_non_null(network);
  uint32_t slots[MAX_TASKS];
  bool started[MAX_TASKS] = {false}, sped[MAX_TASKS] = {false};
  for (uint32_t i = 0; i < s->n_specs; i++)
    s->finish[i] = -1;
  for (pl_ticks now = 0; now != PL_TICKS_NEVER;) {
    uint32_t last = PL_NONE;
    for (uint32_t task; (task = network->ops->advance(network, now)) != PL_NONE; last = task) {
      assert_true(last == PL_NONE || task > last);
      assert_int_equal(s->finish[task], -1);
      s->finish[task] = now;
    }
    pl_ticks next = PL_TICKS_NEVER;
    for (uint32_t i = 0; i < s->n_specs; i++) {
      if (!started[i] && s->tasks[i].start <= now) {
        slots[i] = network->ops->start(network, now, i, i, s->tasks[i].size_bytes);
        started[i] = true;
      }
      if (started[i] && !sped[i] && s->tasks[i].speed_at <= now && s->finish[i] < 0) {
        network->ops->set_speed(network, now, slots[i], s->tasks[i].speed);
        sped[i] = true;
      }
      if (!started[i] && s->tasks[i].start < next) next = s->tasks[i].start;
      if (!sped[i] && s->tasks[i].speed_at > now && s->tasks[i].speed_at < next) next = s->tasks[i].speed_at;
    }
    pl_ticks event = network->ops->settle(network, now);
    now = event < next ? event : next;
  }
  network->ops->destroy(network);
  pl_arena_release(&arena);
}

static void expect(const scene *s, uint32_t task, double finish_s, pl_ticks within) {
  pl_ticks should = pl_ticks_from_s(finish_s);
  if (llabs(s->finish[task] - should) > within)
    fail_msg("task %u ends at tick %lld, expected %lld", task, (long long)s->finish[task], (long long)should);
}

/* n flows of S bytes on one link of C: each at C / n, all end at n S / C. */
static void n_flows_on_one_link(void **unused) {
  (void)unused;
  for (uint32_t n = 1; n <= MAX_TASKS; n++) {
    scene s = {.n_links = 0};
    add_link(&s, 10 * GB, PL_LINK_SHARED);
    for (uint32_t i = 0; i < n; i++)
      add_task(&s, 0, 1e6, 1, 1);
    play(&s, pl_flow_network_take);
    for (uint32_t i = 0; i < n; i++)
      expect(&s, i, n * 1e6 / (10 * GB), 1);
  }
}

/* Sizes 1 .. n on one link: flow i ends when i flows of its size and the shorter ones are through:
 * T_i = (sum_{j<=i} s_j + (n - i) s_i) / C. */
static void staircase(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 1 * GB, PL_LINK_SHARED);
  for (uint32_t i = 1; i <= 20; i++)
    add_task(&s, 0, i * 1e6, 1, 1);
  play(&s, pl_flow_network_take);
  double shorter = 0;
  for (uint32_t i = 1; i <= 20; i++) {
    shorter += i * 1e6;
    expect(&s, i - 1, (shorter + (20 - i) * (i * 1e6)) / (1 * GB), 4);
  }
}

/* Parking lot: one long flow over all m links, one short flow on each; C alike: every flow gets C / 2. With short flows
 * of S and a long one of 3 S: shorts end at 2 S / C, the long one has 2 S left, alone: 2 S / C + 2 S / C. */
static void parking_lot(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  for (uint32_t l = 0; l < 5; l++)
    add_link(&s, 4 * GB, PL_LINK_SHARED);
  uint32_t whole = add_task(&s, 0, 3e6, 31, 1);
  for (uint32_t l = 0; l < 5; l++)
    add_task(&s, 0, 1e6, (uint32_t)1 << l, 1);
  play(&s, pl_flow_network_take);
  for (uint32_t l = 0; l < 5; l++)
    expect(&s, l + 1, 2 * 1e6 / (4 * GB), 1);
  expect(&s, whole, 4 * 1e6 / (4 * GB), 2);
}

/* A cap of C / 10 on one of three flows: the two others get 0.45 C each. */
static void cap(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 10 * GB, PL_LINK_SHARED);
  uint32_t capped = add_task(&s, 0, 1e6, 1, 1);
  s.specs[capped].rate_cap_Bps = 1 * GB;
  add_task(&s, 0, 4.5e6, 1, 1);
  add_task(&s, 0, 4.5e6, 1, 1);
  play(&s, pl_flow_network_take);
  expect(&s, capped, 1e-3, 0);
  expect(&s, 1, 1e-3, 0);
  expect(&s, 2, 1e-3, 0);
}

/* Usage weights: a = 3 beside a = 1, share weights alike: 3 x + x = C, x = C / 4. Share weights 2 : 1 with a = 1: rates
 * 2 C / 3 and C / 3. */
static void weights(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 8 * GB, PL_LINK_SHARED);
  add_link(&s, 9 * GB, PL_LINK_SHARED);
  add_task(&s, 0, 2e6, 1, 3);
  add_task(&s, 0, 2e6, 1, 1);
  add_task(&s, 0, 6e6, 2, 1);
  add_task(&s, 0, 3e6, 2, 1);
  s.specs[2].share_weight = 2;
  play(&s, pl_flow_network_take);
  for (uint32_t i = 0; i < 4; i++)
    expect(&s, i, 1e-3, 0);
}

/* FATPIPE of C, a = 2: every flow at C / 2 however many there are; behind a shared link of C the shared one rules. */
static void fatpipe(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 2 * GB, PL_LINK_FATPIPE);
  add_link(&s, 2 * GB, PL_LINK_SHARED);
  for (uint32_t i = 0; i < 10; i++)
    add_task(&s, 0, 1e6, 1, 2);
  for (uint32_t i = 0; i < 4; i++)
    add_task(&s, 0, 1e6, 3, 1);
  play(&s, pl_flow_network_take);
  for (uint32_t i = 0; i < 10; i++)
    expect(&s, i, 1e-3, 0);
  for (uint32_t i = 10; i < 14; i++)
    expect(&s, i, 2e-3, 0);
}

/* No bytes or no bound: only the latency; latency and cap without a link: latency + S / cap; nothing at all: at once.
 * The latency occupies nothing: a rival sees the link free meanwhile. */
static void latency_only(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 1 * GB, PL_LINK_SHARED);
  uint32_t empty = add_task(&s, 0, 0, 1, 1), unbounded = add_task(&s, 0, 1e6, 0, 1),
           nothing = add_task(&s, 1e-3, 0, 0, 1);
  uint32_t delay = add_task(&s, 0, 1e6, 0, 1), late = add_task(&s, 0, 1e6, 1, 1), rival = add_task(&s, 0, 1e6, 1, 1);
  s.specs[empty].latency = s.specs[unbounded].latency = pl_ticks_from_s(5e-6);
  s.specs[delay].latency = pl_ticks_from_s(5e-6);
  s.specs[delay].rate_cap_Bps = 2 * GB;
  s.specs[late].latency = pl_ticks_from_s(1e-3);
  play(&s, pl_flow_network_take);
  expect(&s, empty, 5e-6, 0);
  expect(&s, unbounded, 5e-6, 0);
  expect(&s, nothing, 1e-3, 0);
  expect(&s, delay, 5e-6 + 0.5e-3, 1);
  expect(&s, rival, 1e-3, 0);
  expect(&s, late, 2e-3, 1);
}

/* Speed 1/2 from t on: what is left takes twice as long, and the rival keeps its share: the slowed flow still occupies
 * half of the link. 2 MB each at 1 GB/s: half done at 1 ms; then 2 ms more. Speed set during the latency counts from
 * the first byte; set back in the same tick it leaves no trace. */
static void speed(void **unused) {
  (void)unused;
  scene s = {.n_links = 0};
  add_link(&s, 2 * GB, PL_LINK_SHARED);
  add_link(&s, 2 * GB, PL_LINK_SHARED);
  add_task(&s, 0, 2e6, 1, 1);
  add_task(&s, 0, 3e6, 1, 1);
  add_task(&s, 0, 2e6, 2, 1);
  s.tasks[0].speed_at = pl_ticks_from_s(1e-3);
  s.tasks[0].speed = 0.5;
  s.specs[2].latency = pl_ticks_from_s(2e-6);
  s.tasks[2].speed_at = pl_ticks_from_s(1e-6);
  s.tasks[2].speed = 0.25;
  play(&s, pl_flow_network_take);
  expect(&s, 0, 3e-3, 2);
  expect(&s, 1, 3e-3, 2);
  expect(&s, 2, 2e-6 + 4e-3, 1);
}

/* Undisturbed transfers end at exactly pl_transfer_solo_ticks after their start, in both networks; the analytic one
 * also with rivals. */
static void undisturbed_is_solo(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20264);
  for (uint32_t round = 0; round < 2000; round++) {
    scene s = {.n_links = 0};
    for (uint32_t l = 0; l < MAX_LINKS; l++) {
      double capacity_Bps = random_log(&state, 1e7, 1e12);
      add_link(&s, capacity_Bps, random_below(&state, 4) ? PL_LINK_SHARED : PL_LINK_FATPIPE);
    }
    for (uint32_t i = 0; i < 6; i++) {
      uint32_t links = round % 2 ? random_below(&state, 256) : i < 4 ? 3u << (2 * i) : 0;
      double start_s = random_unit(&state) * 1e-3, size_bytes = random_log(&state, 1, 1e9),
             weight = random_below(&state, 2) ? 1 : random_log(&state, 0.1, 10);
      uint32_t task = add_task(&s, start_s, size_bytes, links, weight);
      s.specs[task].latency = random_below(&state, 3) ? (pl_ticks)random_below(&state, 1u << 30) : 0;
      if (random_below(&state, 2)) s.specs[task].share_weight = random_log(&state, 1e-3, 1e6);
      if (random_below(&state, 3) == 0) s.specs[task].rate_cap_Bps = random_log(&state, 1e7, 1e12);
    }
    play(&s, round % 2 ? pl_analytic_network_take : pl_flow_network_take);
    for (uint32_t i = 0; i < s.n_specs; i++)
      assert_int_equal(s.finish[i], s.tasks[i].start + pl_transfer_solo_ticks(&s.table, i, s.tasks[i].size_bytes));
  }
}

/* A rival that comes on a link that does not bind (here: a capped flow on a wide link) changes no bit. */
static void harmless_rival(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20265);
  for (uint32_t round = 0; round < 2000; round++) {
    scene s = {.n_links = 0};
    add_link(&s, random_log(&state, 1e7, 1e8), PL_LINK_SHARED);
    add_link(&s, random_log(&state, 1e9, 1e10), PL_LINK_SHARED);
    add_task(&s, 0, random_log(&state, 1e5, 1e7), 3, 1);
    double start_s = random_unit(&state) * 1e-2;
    add_task(&s, start_s, random_log(&state, 1e3, 1e6), 2, 1);
    s.specs[1].rate_cap_Bps = random_log(&state, 1e6, 1e8);
    s.specs[0].share_weight = random_log(&state, 1, 1e6);
    s.specs[1].share_weight = random_log(&state, 1, 1e6);
    play(&s, pl_flow_network_take);
    for (uint32_t i = 0; i < 2; i++)
      assert_int_equal(s.finish[i], s.tasks[i].start + pl_transfer_solo_ticks(&s.table, i, s.tasks[i].size_bytes));
  }
}

/* k identical transfers beside others, against one with k-fold weights: identical ticks, through all their history. */
static void folding_keeps_ticks(void **unused) {
  (void)unused;
  uint64_t state = test_seed(20266);
  for (uint32_t round = 0; round < 1000; round++) {
    uint32_t k = random_between(&state, 2, 9);
    scene whole = {.n_links = 0}, folded = {.n_links = 0};
    for (uint32_t l = 0; l < 3; l++) {
      double capacity_Bps = random_log(&state, 1e9, 1e11);
      add_link(&whole, capacity_Bps, PL_LINK_SHARED);
      add_link(&folded, capacity_Bps, PL_LINK_SHARED);
    }
    uint32_t firsts[4];
    for (uint32_t class = 0; class < 4; class ++) {
      double start_s = random_unit(&state) * 1e-3, size_bytes = random_log(&state, 1e4, 1e8),
             a = random_between(&state, 1, 4);
      double share_weight = round % 2 ? random_log(&state, 1e3, 1e6) : 1;
      uint32_t links = random_between(&state, 1, 7);
      firsts[class] = whole.n_specs;
      for (uint32_t i = 0; i < k; i++)
        whole.specs[add_task(&whole, start_s, size_bytes, links, a)].share_weight = share_weight;
      folded.specs[add_task(&folded, start_s, size_bytes, links, a * k)].share_weight = share_weight;
    }
    play(&whole, pl_flow_network_take);
    play(&folded, pl_flow_network_take);
    for (uint32_t class = 0; class < 4; class ++)
      for (uint32_t i = 0; i < k; i++)
        assert_int_equal(whole.finish[firsts[class] + i], folded.finish[class]);
  }
}

/* usage * bytes per link, FATPIPE included. */
static void link_bytes(void **unused) {
  (void)unused;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  double capacity_Bps[2] = {1e9, 1e9};
  uint8_t policy[2] = {PL_LINK_SHARED, PL_LINK_FATPIPE};
  pl_link_use uses[3] = {{0, 2}, {1, 1}, {0, 1}};
  pl_transfer_spec specs[2] = {{0, 2, INFINITY, 1, 0, PL_NONE, PL_NONE}, {2, 1, INFINITY, 1, 0, PL_NONE, PL_NONE}};
  pl_transfer_table table = {capacity_Bps, policy, 2, specs, 2, uses, 3};
  pl_network *network = pl_flow_network_take(&table, &arena);
  network->ops->start(network, 0, 0, 0, 1000);
  network->ops->start(network, 0, 1, 0, 500);
  network->ops->start(network, 0, 2, 1, 70);
  for (pl_ticks now = 0; (now = network->ops->settle(network, now)) != PL_TICKS_NEVER;)
    while (network->ops->advance(network, now) != PL_NONE)
      continue;
  const double *bytes = network->ops->link_bytes(network);
  assert_true(bytes[0] == 3070 && bytes[1] == 1500);
  network->ops->destroy(network);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(n_flows_on_one_link),
      cmocka_unit_test(staircase),
      cmocka_unit_test(parking_lot),
      cmocka_unit_test(cap),
      cmocka_unit_test(weights),
      cmocka_unit_test(fatpipe),
      cmocka_unit_test(latency_only),
      cmocka_unit_test(speed),
      cmocka_unit_test(undisturbed_is_solo),
      cmocka_unit_test(harmless_rival),
      cmocka_unit_test(folding_keeps_ticks),
      cmocka_unit_test(link_bytes),
  };
  return cmocka_run_group_tests_name("flow_network", tests, NULL, NULL);
}
