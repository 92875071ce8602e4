/* Collective profiles as files: every field, what is written is read back, each way to get one wrong named with file,
 * line and a way out, and which entry a group's links match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective_profile_writer.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/collective_profile.h"

static void assert_near(double value, double wanted, double tolerance) {
  if (!(fabs(value - wanted) <= tolerance)) fail_msg("%.17g instead of %.17g", value, wanted);
}

static const char good[] =
    "{\"library\": \"Toy\",\n"
    " \"inside\": [{\"name\": \"port\", \"link\": \"nvlink\", \"link_GBps\": [100, 400],\n"
    "   \"launch_us\": 5, \"local\": 0.5,\n"
    "   \"ring\": {\"LL\": {\"start_us\": 0, \"step_us\": 1, \"rate\": 0.25, \"ramp\": 0},\n"
    "            \"Simple\": {\"start_us\": 10, \"step_us\": 3, \"rate\": 0.75, \"ramp\": 2}},\n"
    "   \"direct\": {\"Simple\": {\"start_us\": 1, \"step_us\": 0.5, \"rate\": 1, \"ramp\": 0}}}],\n"
    " \"between\": [{\"name\": \"net\", \"nic_us\": [0, 5], \"pcie_GBps\": [8, 30], "
    "\"node_gpus\": [2, 4], \"limit_GBps\": 3, \"buffered_sends\": true, \"tuner_nic_us\": 4,\n"
    "   \"launch_us\": 7,\n"
    "   \"ring\": {\"Simple\": {\"start_us\": 2, \"step_us\": 9, \"rate\": 0.5, \"ramp\": 1}},\n"
    "   \"tree\": {\"Simple\": {\"start_us\": 4, \"step_us\": 8, \"rate\": 0.5, \"ramp\": 1}},\n"
    "   \"direct\": {\"Simple\": {\"start_us\": 3, \"step_us\": 1, \"rate\": 0.5, \"ramp\": 1}}}]}\n";

static void fields(void **state) {
  (void)state;
  pl_collective_profile profile;
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_profile_parse("toy", good, strlen(good), &arena, &profile, &error) != PL_OK)
    fail_msg("%s", error.message);
  assert_int_equal(profile.n_inside, 1);
  assert_int_equal(profile.n_between, 1);
  assert_string_equal(profile.library, "Toy");
  assert_true(profile.digest != 0);
  const pl_wiring *port = &profile.inside[0], *net = &profile.between[0];
  assert_string_equal(port->name, "port");
  assert_true(port->nvlink && port->least_GBps == 100 && port->most_GBps == 400);
  assert_true(port->launch_us == 5 && port->local == 0.5);
  assert_true(port->cost[PL_TUNED_RING][PL_PROTOCOL_LL].known &&
              port->cost[PL_TUNED_RING][PL_PROTOCOL_LL].rate == 0.25);
  assert_false(port->cost[PL_TUNED_RING][PL_PROTOCOL_LL128].known);
  assert_false(port->cost[PL_TUNED_NVLS][PL_PROTOCOL_SIMPLE].known);
  assert_true(net->least_us == 0 && net->most_us == 5 && isinf(net->most_GBps) && net->limit_GBps == 3);
  assert_true(net->least_pcie_GBps == 8 && net->most_pcie_GBps == 30);
  assert_true(net->least_gpus == 2 && net->most_gpus == 4 && net->buffers_sends && net->tuner_nic_us == 4);
  assert_true(net->cost[PL_TUNED_TREE][PL_PROTOCOL_SIMPLE].step_us == 8);
}

static void same_wiring(const pl_wiring *a, const pl_wiring *b) {
  assert_string_equal(a->name, b->name);
  assert_true(a->launch_us == b->launch_us && a->local == b->local && a->nvlink == b->nvlink);
  assert_true(a->least_gpus == b->least_gpus && fmin(a->most_gpus, 1e9) == fmin(b->most_gpus, 1e9));
  assert_int_equal(a->buffers_sends, b->buffers_sends);
  assert_true(a->tuner_nic_us == b->tuner_nic_us || (isinf(a->tuner_nic_us) && isinf(b->tuner_nic_us)));
  assert_true(a->limit_GBps == b->limit_GBps || (isinf(a->limit_GBps) && isinf(b->limit_GBps)));
  for (int i = 0; i < PL_TUNED_COUNT; i++)
    for (int p = 0; p < PL_PROTOCOL_COUNT; p++) {
      const pl_protocol_cost *x = &a->cost[i][p], *y = &b->cost[i][p];
      assert_true(x->known == y->known && x->start_us == y->start_us && x->step_us == y->step_us);
      assert_true(x->rate == y->rate && x->ramp == y->ramp);
    }
}

static void written_is_read_back(void **state) {
  (void)state;
  const pl_collective_profile *shipped = shipped_collective_profile(&arena);
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  assert_non_null(stream);
  pl_collective_profile_write(stream, shipped);
  fclose(stream);
  pl_collective_profile again;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_collective_profile_parse("again", text, size, &arena, &again, &error);
  free(text);
  if (code != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(again.n_inside, shipped->n_inside);
  assert_int_equal(again.n_between, shipped->n_between);
  for (uint32_t i = 0; i < again.n_inside; i++)
    same_wiring(&again.inside[i], &shipped->inside[i]);
  for (uint32_t i = 0; i < again.n_between; i++)
    same_wiring(&again.between[i], &shipped->between[i]);
}

/* The good file with the first `from` replaced: refused with exactly this message. */
static void refused(const char *from, const char *to, const char *wanted) {
  char edited[4096];
  const char *found = strstr(good, from);
  assert_non_null(found);
  snprintf(edited, sizeof edited, "%.*s%s%s", (int)(found - good), good, to, found + strlen(from));
  pl_collective_profile profile;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_collective_profile_parse("toy", edited, strlen(edited), &arena, &profile, &error);
  if (code != PL_BAD_INPUT || strcmp(error.message, wanted) != 0)
    fail_msg("'%s' for '%s': wanted: %s\nsaid: %s", to, from, wanted, code == PL_OK ? "accepted" : error.message);
}

static void mistakes(void **state) {
  (void)state;
  refused("\"library\": \"Toy\",", "", "toy:1:1: the key 'library' is missing, e.g. \"NCCL\"");
  refused("\"rate\": 0.25", "\"rate\": 1.5", "toy:4:57: rate is 1.5: it must be from 1e-06 to 1");
  refused("\"rate\": 0.25", "\"rate\": 0", "toy:4:57: rate is 0: it must be from 1e-06 to 1");
  refused("\"step_us\": 1,", "\"step_us\": -1,", "toy:4:46: step_us is -1: it must be from 0 to 1e+06");
  refused("\"step_us\": 1,", "\"step\": 1,",
          "toy:4:43: unknown key 'step'; known here: start_us, step_us, rate, ramp; did you mean 'step_us'?");
  refused("\"LL\":", "\"LL64\":", "toy:4:21: unknown protocol 'LL64'; known: LL, LL128, Simple");
  refused("\"link\": \"nvlink\"", "\"link\": \"ethernet\"", "toy:2:38: link 'ethernet' is neither nvlink nor pcie");
  refused("[100, 400]", "[400, 100]", "toy:2:61: link_GBps: from 400 to 100 holds no rate or time");
  refused("[100, 400]", "100", "toy:2:61: link_GBps must be a list of two numbers, the least and the most");
  refused("\"launch_us\": 5", "\"launch_us\": \"5us\"", "toy:3:17: 'launch_us' must be a number, not a string '5us'");
  refused("\"limit_GBps\": 3", "\"limit_GBps\": 0", "toy:7:105: limit_GBps is 0: it must be from 1e-06 to 1e+06");
  refused("\"between\":", "\"beyond\":",
          "toy:7:12: unknown key 'beyond'; known here: library, provenance, inside, between");
  refused("\"direct\": {\"Simple\"", "\"direct\": {\"LL\"", "toy:2:13: 'port' has no direct with the protocol Simple");
}

static void choices(void **state) {
  (void)state;
  const char *path;
  assert_int_equal(pl_collective_profile_path("ideal", "x/y.xml", &arena, &path, NULL), PL_OK);
  assert_null(path);
  assert_int_equal(pl_collective_profile_path("own.json", "x/y.xml", &arena, &path, NULL), PL_OK);
  assert_string_equal(path, "own.json");
  assert_int_equal(pl_collective_profile_path(NULL, "platforms/dgx-2.xml", &arena, &path, NULL), PL_OK);
  assert_string_equal(path, "platforms/collectives/nccl.json"); /* beside the platform */
  assert_int_equal(pl_collective_profile_path(NULL, "nowhere/y.xml", &arena, &path, NULL), PL_OK);
  assert_true(path[0] == '/' && strstr(path, "/platforms/collectives/nccl.json") != NULL);
}

static const char *inside_name(double nvlink_GBps, double pcie_GBps, bool host) {
  const pl_wiring *inside, *between;
  const pl_wiring_facts facts = {.nvlink_GBps = nvlink_GBps, .pcie_GBps = pcie_GBps, .inside = true, .host = host};
  pl_collective_profile_match(shipped_collective_profile(&arena), &facts, &inside, &between);
  assert_null(between);
  return inside != NULL ? inside->name : "none";
}

static const char *between_nodes_of(uint32_t n_gpus, double nic_GBps, double nic_us, double pcie_GBps) {
  const pl_wiring *inside, *between;
  const pl_wiring_facts facts = {
      .nic_GBps = nic_GBps, .nic_us = nic_us, .pcie_GBps = pcie_GBps, .node_gpus = n_gpus, .between = true};
  pl_collective_profile_match(shipped_collective_profile(&arena), &facts, &inside, &between);
  assert_null(inside);
  return between != NULL ? between->name : "none";
}

static const char *between_name(double nic_GBps, double nic_us, double pcie_GBps) {
  return between_nodes_of(8, nic_GBps, nic_us, pcie_GBps);
}

static void matches(void **state) {
  (void)state;
  assert_string_equal(inside_name(25, 0, false), "nvlink-direct");
  assert_string_equal(inside_name(150, 0, false), "nvswitch-nvlink2");
  assert_string_equal(inside_name(300, 26, false), "nvswitch-nvlink3"); /* NVLink goes before PCIe */
  assert_string_equal(inside_name(450, 52, false), "nvswitch-nvlink4");
  assert_string_equal(inside_name(900, 0, false), "nvswitch-nvlink5");
  assert_string_equal(inside_name(0, 6.25, true), "pcie-host");
  assert_string_equal(inside_name(0, 12, true), "pcie-host");
  assert_string_equal(inside_name(0, 26, true), "pcie4-5"); /* an entry that does not ask for it takes it too */
  assert_string_equal(inside_name(150, 12, true), "nvswitch-nvlink2");
  assert_string_equal(inside_name(0, 12, false), "pcie3");
  assert_string_equal(inside_name(0, 52, false), "pcie4-5");
  assert_string_equal(inside_name(0, 0, false), "none");
  assert_string_equal(between_name(25, 0.78, 26), "infiniband-hdr");
  assert_string_equal(between_name(50, 0.78, 52), "infiniband-ndr");
  assert_string_equal(between_name(25, 2, 52), "slingshot");
  assert_string_equal(between_name(50, 15, 52), "efa-400");
  assert_string_equal(between_name(12.5, 15, 26), "efa-100");
  assert_string_equal(between_name(6.25, 15, 6.25), "host-staged");
  assert_string_equal(between_name(1.25, 15, 12), "host-staged");
  assert_string_equal(between_nodes_of(8, 3.125, 18, 12), "socket");
  assert_string_equal(between_nodes_of(2, 3.125, 18, 12), "socket");
  assert_string_equal(between_nodes_of(1, 3.125, 18, 12), "socket-one");
  assert_string_equal(between_nodes_of(1, 0.125, 5018, 12), "socket-one"); /* throttled, and far away */
  assert_string_equal(between_nodes_of(1, 25, 0.78, 26), "infiniband-hdr");
  assert_string_equal(between_name(0, 0, 0), "none");
}

/* 8 members, 14 steps of 1 us with 0.5 us of wire each; 1 us of bytes at the nominal rate. */
static void prices(void **state) {
  (void)state;
  pl_collective_profile profile;
  assert_int_equal(pl_collective_profile_parse("toy", good, strlen(good), &arena, &profile, NULL), PL_OK);
  pl_tuned_work work = {.algorithm = PL_TUNED_RING, .latency_us = 7, .inside_steps = 14, .inside_us = 1, .local_us = 2};
  pl_tuned_time time = pl_tuned_time_of(&profile.inside[0], NULL, &work);
  assert_int_equal(time.protocol, PL_PROTOCOL_LL);
  assert_near(time.latency_us, 5 + 7 + 14 * 1.0, 1e-12);
  assert_near(time.transfer_us, 1 * 2 / 0.25 + 0.5 * 2, 1e-12); /* LL: twice the bytes */
  work.inside_us = 900;
  time = pl_tuned_time_of(&profile.inside[0], NULL, &work);
  assert_int_equal(time.protocol, PL_PROTOCOL_SIMPLE);
  assert_near(time.latency_us, 5 + 10 + 7 + 14 * 3.0, 1e-12);
  assert_near(time.transfer_us, 900 / 0.75 + 2 * sqrt(900 / 0.75) + 1, 1e-9);
  /* Across nodes launch and start are those between; the slower level's bytes and ramp count; the NIC's limit binds. */
  work = (pl_tuned_work){.algorithm = PL_TUNED_TREE,
                         .latency_us = 7,
                         .inside_steps = 14,
                         .between_steps = 4,
                         .inside_us = 10,
                         .between_us = 100,
                         .nic_us = 100,
                         .nic_GBps = 12};
  time = pl_tuned_time_of(&profile.inside[0], &profile.between[0], &work);
  assert_int_equal(time.protocol, PL_PROTOCOL_SIMPLE); /* the only one that both levels have */
  assert_near(time.latency_us, 7 + 4 + 7 + 14 * 3.0 + 4 * 8.0, 1e-12);
  assert_near(time.transfer_us, 400 + sqrt(400), 1e-9); /* 3 of 12 GB/s */
  /* Behind a PCIe link a quarter as fast as the NIC, that binds and not the NIC's limit. */
  work.nic_us = 10;
  time = pl_tuned_time_of(&profile.inside[0], &profile.between[0], &work);
  double slow_us = 100 / profile.between[0].cost[PL_TUNED_TREE][PL_PROTOCOL_SIMPLE].rate;
  assert_near(time.transfer_us, slow_us + sqrt(slow_us), 1e-9);
  work.algorithm = PL_TUNED_NVLS;
  assert_true(isinf(pl_tuned_time_of(&profile.inside[0], &profile.between[0], &work).latency_us));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fields),   cmocka_unit_test(written_is_read_back),
                                     cmocka_unit_test(mistakes), cmocka_unit_test(choices),
                                     cmocka_unit_test(matches),  cmocka_unit_test(prices)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
