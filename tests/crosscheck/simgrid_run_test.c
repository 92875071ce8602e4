/* Whole graphs in SimGrid's loop (pl_simgrid_run) against the same graphs in the native loop with the flow network:
 * random graphs of work, transfers and delays on a platform file of the repository, every start and finish within 1e-9
 * or 16 ticks (dates from SimGrid are rounded on a path of several events), or, in few of them, within what a tick of
 * latency changes (tests/support/play.h); then what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/play.h"

enum { TASKS = 300 };

static pl_platform *platform;

static int load(void **unused) {
  (void)unused;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(PACELINE_SOURCE_DIR "/platforms/amp-homogeneous.xml", NULL, &platform, &error) == PL_OK)
    return 0;
  print_message("%s\n", error.message);
  return 1;
}

static int unload(void **unused) {
  (void)unused;
  pl_platform_destroy(platform);
  return 0;
}

/* A graph on all devices of the platform; every transfer has a spec of its own. */
typedef struct scene {
  pl_arena arena;
  pl_graph graph;
  pl_transfer_spec specs[TASKS];
  pl_link_use uses[TASKS * 16];
  uint32_t n_specs, n_uses;
} scene;

static uint32_t add_spec(scene *s, pl_sharing sharing, uint32_t source, uint32_t destination) {
  pl_error error = PL_ERROR_INIT;
  pl_link_use *list;
  pl_transfer_spec *spec = &s->specs[s->n_specs];
  if (pl_route_spec(pl_platform_cluster(platform), sharing, source, destination, &s->arena, &list, spec, &error) !=
      PL_OK)
    fail_msg("%s", error.message);
  spec->first_use = s->n_uses;
  for (uint32_t i = 0; i < spec->n_uses; i++)
    s->uses[s->n_uses++] = list[i];
  return s->n_specs++;
}

static void add_table(scene *s, pl_graph_builder *builder) {
  const pl_cluster *cluster = pl_platform_cluster(platform);
  double *capacity_Bps = PL_TAKE(&s->arena, double, cluster->n_links);
  uint8_t *policy = PL_TAKE(&s->arena, uint8_t, cluster->n_links);
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    capacity_Bps[l] = cluster->links[l].capacity_Bps;
    policy[l] = cluster->links[l].policy;
  }
  const pl_transfer_table table = {capacity_Bps, policy, cluster->n_links, s->specs, s->n_specs, s->uses, s->n_uses};
  pl_graph_builder_transfers(builder, &table);
}

static uint32_t add_random_task(scene *s, pl_graph_builder *builder, pl_sharing sharing, uint32_t n_devices,
                                uint64_t *state) {
  uint32_t device = random_below(state, n_devices), kind = random_below(state, 10);
  if (kind < 3) {
    const pl_part part = {.ticks = pl_ticks_from_s(random_log(state, 1e-4, 1e-1)), .computes = true, .name = PL_NONE};
    uint32_t segment = pl_graph_builder_segment(builder, &part, 1);
    return pl_graph_builder_work(builder, segment, pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE), PL_NONE,
                                 PL_NONE, -1);
  }
  if (kind < 4)
    return pl_graph_builder_delay(builder, random_below(state, 2) ? 0 : pl_ticks_from_s(1e-3), PL_CATEGORY_OTHER, NULL,
                                  0, PL_NONE, -1);
  uint32_t other = (device + random_between(state, 1, n_devices - 1)) % n_devices;
  uint32_t spec = add_spec(s, sharing, device, other);
  const uint32_t streams[2] = {pl_graph_builder_stream(builder, device, PL_STREAM_SEND_DOWN),
                               pl_graph_builder_stream(builder, other, PL_STREAM_RECEIVE_DOWN)};
  double size_bytes = random_below(state, 12) ? random_log(state, 1e5, 1e9) : 0;
  return pl_graph_builder_transfer(builder, spec, size_bytes, PL_CATEGORY_PIPELINE, streams, random_below(state, 2) * 2,
                                   PL_NONE, -1);
}

static void random_scene(scene *s, pl_sharing sharing, double overlap_compute, uint64_t *state) {
  memset(s, 0, sizeof *s);
  pl_arena_init(&s->arena, 0);
  pl_graph_builder *builder =
      pl_graph_builder_take(&s->arena, random_below(state, 2) ? PL_STREAMS_IN_ORDER : PL_STREAMS_READY);
  uint32_t n_devices = pl_platform_cluster(platform)->n_devices;
  for (uint32_t d = 0; d < n_devices; d++)
    pl_graph_builder_device(builder,
                            &(pl_graph_device){.device = d, .multiplicity = 1, .overlap_compute = overlap_compute});
  for (uint32_t i = 0; i < TASKS; i++) {
    uint32_t task = add_random_task(s, builder, sharing, n_devices, state);
    for (uint32_t k = random_below(state, 3); k-- > 0 && task > 0;)
      pl_graph_builder_edge(builder, random_below(state, task), task);
  }
  add_table(s, builder);
  pl_error error = PL_ERROR_INIT;
  if (pl_graph_builder_freeze(builder, &s->graph, &error) != PL_OK) fail_msg("%s", error.message);
}

/* The largest difference beyond the tolerance; 0: none. */
static double beyond_s(const pl_ticks *are, const pl_ticks *should, uint32_t n, double tolerance) {
  double worst = 0;
  for (uint32_t i = 0; i < n; i++) {
    double ticks = fabs((double)(are[i] - should[i]));
    if (ticks > fmax(16, tolerance * (double)should[i])) worst = fmax(worst, ticks / PL_TICKS_PER_S);
  }
  return worst;
}

static void run_both(pl_sharing sharing, uint64_t seed) {
  enum { ROUNDS = 20 };
  uint64_t state = test_seed(seed);
  double tolerance = sharing == PL_SHARING_RTT ? 1e-6 : 1e-9;
  uint32_t n_magnified = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    static scene s;
    random_scene(&s, sharing, round % 2 ? 0.3 : 0, &state);
    pl_error error = PL_ERROR_INIT;
    pl_engine_result native, reference;
    const pl_engine_options options = {.record_parts = true};
    pl_network *network = pl_flow_network_take(&s.graph.transfers, &s.arena);
    if (pl_engine_run(&s.graph, network, &options, &s.arena, &native, &error) != PL_OK ||
        pl_simgrid_run(platform, &s.graph, sharing, &options, &s.arena, &reference, &error) != PL_OK)
      fail_msg("round %u: %s", round, error.message);
    double apart_s = fmax(beyond_s(reference.start, native.start, s.graph.n_tasks, tolerance),
                          beyond_s(reference.finish, native.finish, s.graph.n_tasks, tolerance));
    if (apart_s > 0) {
      uint64_t shake = seed + round;
      double sensitive_s = play_sensitivity_s(&s.graph, &native, &shake, &s.arena);
      print_message("round %u: %.2e s apart; a tick of latency moves it by %.2e s\n", round, apart_s, sensitive_s);
      assert_true(apart_s <= 16 * sensitive_s);
      n_magnified++;
    }
    assert_int_equal(reference.n_part_spans, native.n_part_spans);
    pl_arena_release(&s.arena);
  }
  assert_true(n_magnified <= ROUNDS / 5);
}

static void equal(void **unused) {
  (void)unused;
  run_both(PL_SHARING_EQUAL, 20267);
}

static void rtt(void **unused) {
  (void)unused;
  run_both(PL_SHARING_RTT, 20268);
}

/* One transfer, with something about it that SimGrid cannot do. */
static void expect_refusal(double overlap_communication, uint32_t multiplicity, bool fluid, pl_sharing made_for,
                           pl_sharing asked, const char *words) {
  static scene s;
  memset(&s, 0, sizeof s);
  pl_arena_init(&s.arena, 0);
  pl_graph_builder *builder = pl_graph_builder_take(&s.arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(
      builder,
      &(pl_graph_device){.device = 0, .multiplicity = multiplicity, .overlap_communication = overlap_communication});
  uint32_t spec = add_spec(&s, made_for, 0, 1);
  if (fluid) s.specs[spec].source = s.specs[spec].destination = PL_NONE;
  pl_graph_builder_transfer(builder, spec, 1000, PL_CATEGORY_DATA, NULL, 0, pl_graph_builder_name(builder, "grads"),
                            -1);
  add_table(&s, builder);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &s.graph, &error), PL_OK);
  pl_engine_result result;
  const pl_engine_options options = {.record_parts = false};
  assert_int_equal(pl_simgrid_run(platform, &s.graph, asked, &options, &s.arena, &result, &error), PL_UNSUPPORTED);
  if (strstr(error.message, words) == NULL) fail_msg("'%s' does not say '%s'", error.message, words);
  pl_arena_release(&s.arena);
}

static void refusals(void **unused) {
  (void)unused;
  expect_refusal(0.1, 1, false, PL_SHARING_EQUAL, PL_SHARING_EQUAL, "overlap factor 0.1");
  expect_refusal(0, 8, false, PL_SHARING_EQUAL, PL_SHARING_EQUAL, "--no-fold");
  expect_refusal(0, 1, true, PL_SHARING_EQUAL, PL_SHARING_EQUAL, "grads is a whole collective");
  expect_refusal(0, 1, false, PL_SHARING_EQUAL, PL_SHARING_RTT, "same --sharing");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal), cmocka_unit_test(rtt), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests_name("simgrid_run", tests, load, unload);
}
