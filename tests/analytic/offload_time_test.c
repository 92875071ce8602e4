/* Offloading in closed form, on a DGX A100: what is kept in the host goes over the device's PCIe links and comes back,
 * two devices of one PCIe switch share its uplink; an update by the host takes its gradient out, its processors' time
 * and its parameter back; and the device holds none of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/cluster/host_memory.h"
#include "netmodel/platform/platform.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/simulate_program.h"

static pl_platform *platform;
static const pl_cluster *cluster;

static int load(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(PACELINE_SOURCE_DIR "/platforms/dgx-a100.xml", NULL, &platform, &error) != PL_OK)
    fail_msg("%s", error.message);
  cluster = pl_platform_cluster(platform);
  return 0;
}

static int unload(void **state) {
  (void)state;
  pl_platform_destroy(platform);
  return 0;
}

/* %s: what stands behind keep, kept and state, "" or in="host". */
#define KEPT                                                                                                           \
  "plir 1 distributed \"kept\"\nmesh tp=%d\n"                                                                          \
  "func @forward() {\n"                                                                                                \
  "  %%x = input \"x\"() : fp16[b=16384, h=512]\n"                                                                     \
  "  %%w = param \"w\"() : fp16[h=512, f=4096]\n"                                                                      \
  "  %%y = product(%%x, %%w) {over=h} : fp16[b=16384, f=4096]\n"                                                       \
  "  keep \"y\"(%%y)%s\n"                                                                                              \
  "}\n"                                                                                                                \
  "func @backward() {\n"                                                                                               \
  "  %%y = kept \"y\"()%s : fp16[b=16384, f=4096]\n"                                                                   \
  "  %%u = param \"u\"() : fp16[f=4096, o=64]\n"                                                                       \
  "  %%z = product(%%y, %%u) {over=f} : fp16[b=16384, o=64]\n"                                                         \
  "}\n"                                                                                                                \
  "class all {\n  chunk 0 forward @forward backward @backward\n  steps F0.0 B0.0\n}\n"

#define UPDATED                                                                                                        \
  "plir 1 distributed \"updated\"\nmesh tp=%d\n"                                                                       \
  "func @forward() {\n"                                                                                                \
  "  %%x = input \"x\"() : fp16[b=64, h=4096]\n"                                                                       \
  "  keep \"x\"(%%x)\n"                                                                                                \
  "}\n"                                                                                                                \
  "func @backward() {\n"                                                                                               \
  "  %%x = kept \"x\"() : fp16[b=64, h=4096]\n"                                                                        \
  "  %%y = input \"y\"() : fp16[b=64, f=8192]\n"                                                                       \
  "  %%d = product(%%x, %%y) {over=b} : fp16[h=4096, f=8192]\n"                                                        \
  "  accumulate \"w\"(%%d)\n"                                                                                          \
  "}\n"                                                                                                                \
  "func @update() {\n"                                                                                                 \
  "  %%w = param \"w\"() : fp16[h=4096, f=8192]\n"                                                                     \
  "  %%g = gradient \"w\"() : fp16[h=4096, f=8192]\n"                                                                  \
  "  %%m = state \"w\"() {slot=\"m\"%s} : fp32[h=4096, f=8192]\n"                                                      \
  "  %%v = state \"w\"() {slot=\"v\"%s} : fp32[h=4096, f=8192]\n"                                                      \
  "  %%new, %%m2, %%v2 = adam(%%w, %%g, %%m, %%v) {rate=0.001, beta1=0.9, beta2=0.99, epsilon=1e-08} : "               \
  "fp16[h=4096, f=8192], fp32[h=4096, f=8192], fp32[h=4096, f=8192]\n"                                                 \
  "}\n"                                                                                                                \
  "class all {\n  chunk 0 forward @forward backward @backward\n  steps F0.0 B0.0\n  update @update\n}\n"

static pl_program_report simulate_text(pl_arena *arena, const char *text) {
  pl_ir_module module;
  pl_program_report report;
  pl_error error = PL_ERROR_INIT;
  const pl_simulate_options options = {.network = PL_NETWORK_FLOW, .no_overlap_factor = true};
  if (pl_ir_parse("program", text, strlen(text), arena, &module, &error) != PL_OK ||
      pl_ir_check(&module, &error) != PL_OK ||
      pl_simulate_program(cluster, &module, NULL, &options, arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  return report;
}

static pl_program_report simulate(pl_arena *arena, const char *format, int devices, const char *place) {
  char text[4096];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(text, sizeof text, format, devices, place, place);
#pragma GCC diagnostic pop
  return simulate_text(arena, text);
}

static void assert_close(double is, double should, double most) {
  if (!(fabs(is - should) <= most)) fail_msg("%.12g instead of %.12g", is, should);
}

/* Latency of the route and bytes over the part of its slowest link that `share` devices leave each other. */
static double copy_s(bool out, double bytes, double share) {
  pl_route route;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_cluster_route(cluster, out ? 0 : PL_HOST_MEMORY, out ? PL_HOST_MEMORY : 0, &route, &error),
                   PL_OK);
  double rate = 1e300;
  bool pcie = false;
  for (uint32_t i = 0; i < route.n_links; i++) {
    const pl_link *link = &cluster->links[route.links[i]];
    pcie = pcie || link->kind == PL_LINK_PCIE;
    assert_int_not_equal(link->kind, PL_LINK_NIC);
    if (link->capacity_Bps < rate) rate = link->capacity_Bps;
  }
  assert_true(pcie);
  return pl_ticks_to_s(route.latency) + bytes * share / rate;
}

/* T = T(plain) + out + back: nothing else is to be done meanwhile. */
static void what_is_kept_goes_out_and_comes_back(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const double bytes = 2.0 * 16384 * 4096;
  for (int n = 1; n <= 2; n++) { /* devices 0 and 1 share the uplink of their switch */
    const pl_program_report plain = simulate(&arena, KEPT, n, ""), hosted = simulate(&arena, KEPT, n, " {in=\"host\"}");
    double copies = copy_s(true, bytes, n) + copy_s(false, bytes, n);
    assert_close(hosted.iter_time_s, plain.iter_time_s + copies, 1e-10);
    assert_int_equal(hosted.n_offloads, 2 * n);
    assert_close(hosted.memory[0].host, bytes, 0);
    assert_int_equal(plain.n_offloads, 0);
  }
  pl_arena_release(&arena);
}

/* T = T(without update) + gradient out + the host's update + parameter back. */
static void the_host_updates(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const double n = 4096.0 * 8192;
  const pl_program_report plain = simulate(&arena, UPDATED, 1, ""),
                          hosted = simulate(&arena, UPDATED, 1, ", in=\"host\"");
  double without = plain.iter_time_s - plain.spent_s[PL_CATEGORY_OPTIMIZER];
  double update = n * PL_HOST_UPDATE_S * 8; /* its share of the processors */
  assert_close(hosted.iter_time_s, without + copy_s(true, 2 * n, 1) + update + copy_s(false, 2 * n, 1), 1e-9);
  assert_true(hosted.host_updates);
  assert_close(hosted.memory[0].optimizer, 0, 0);
  assert_close(hosted.memory[0].host, plain.memory[0].optimizer, 0);
  assert_true(hosted.memory[0].peak < plain.memory[0].peak);
  pl_arena_release(&arena);
}

/* %d microbatches; %s: what stands behind accumulate, gradient and state. */
#define SUMMED                                                                                                         \
  "plir 1 distributed \"summed\"\nmesh tp=1\nmicrobatches %d\n"                                                        \
  "func @forward() {\n"                                                                                                \
  "  %%x = input \"x\"() : fp16[b=64, h=4096]\n"                                                                       \
  "  keep \"x\"(%%x)\n"                                                                                                \
  "}\n"                                                                                                                \
  "func @backward() {\n"                                                                                               \
  "  %%x = kept \"x\"() : fp16[b=64, h=4096]\n"                                                                        \
  "  %%y = input \"y\"() : fp16[b=64, f=8192]\n"                                                                       \
  "  %%d = product(%%x, %%y) {over=b} : fp16[h=4096, f=8192]\n"                                                        \
  "  accumulate \"w\"(%%d)%s\n"                                                                                        \
  "}\n"                                                                                                                \
  "func @update() {\n"                                                                                                 \
  "  %%w = param \"w\"() : fp16[h=4096, f=8192]\n"                                                                     \
  "  %%g = gradient \"w\"()%s : fp16[h=4096, f=8192]\n"                                                                \
  "  %%m = state \"w\"() {slot=\"m\", in=\"host\"} : fp32[h=4096, f=8192]\n"                                           \
  "  %%v = state \"w\"() {slot=\"v\", in=\"host\"} : fp32[h=4096, f=8192]\n"                                           \
  "  %%new, %%m2, %%v2 = adam(%%w, %%g, %%m, %%v) {rate=0.001, beta1=0.9, beta2=0.99, epsilon=1e-08} : "               \
  "fp16[h=4096, f=8192], fp32[h=4096, f=8192], fp32[h=4096, f=8192]\n"                                                 \
  "}\n"                                                                                                                \
  "class all {\n  chunk 0 forward @forward backward @backward\n  steps %s\n  update @update\n}\n"

static pl_program_report simulate_sum(pl_arena *arena, const char *place, int n) {
  char text[4096];
  snprintf(text, sizeof text, SUMMED, n, place, place, n == 1 ? "F0.0 B0.0" : "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
  return simulate_text(arena, text);
}

/* One microbatch: as with states alone. Of three each but the first fetches the sum and each sends one: nothing else is
 * on the way in between, so that T grows by the copies of two more microbatches beside their passes. */
static void gradients_are_added_up_in_the_host(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const char *place = " {in=\"host\"}";
  const double bytes = 2 * 4096.0 * 8192;
  const pl_program_report one = simulate_sum(&arena, place, 1), kept = simulate_sum(&arena, "", 1);
  const pl_program_report three = simulate_sum(&arena, place, 3), on_device = simulate_sum(&arena, "", 3);
  assert_close(one.iter_time_s, kept.iter_time_s, 0);
  assert_close(one.memory[0].gradients, 0, 0);
  assert_close(kept.memory[0].gradients, bytes, 0);
  assert_close(one.memory[0].host, kept.memory[0].host + bytes, 0);
  assert_int_equal(one.n_offloads, 2);   /* the gradient out, the parameter back */
  assert_int_equal(three.n_offloads, 6); /* out; back and out; back and, to the update, out; the parameter back */
  assert_close(three.offloaded_bytes, 6 * bytes, 0);
  assert_int_equal(on_device.n_offloads, 2);
  double copies = 2 * copy_s(true, bytes, 1) + 2 * copy_s(false, bytes, 1),
         passes = on_device.iter_time_s - kept.iter_time_s;
  assert_true(three.iter_time_s > on_device.iter_time_s + copies - passes);
  assert_true(three.iter_time_s <= on_device.iter_time_s + copies);
  pl_arena_release(&arena);
}

/* Who adds and who reads agree on the place. */
static void one_gradient_lies_in_one_place(void **state) {
  (void)state;
  char text[4096];
  pl_arena arena;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  snprintf(text, sizeof text, SUMMED, 1, " {in=\"host\"}", "", "F0.0 B0.0");
  assert_int_equal(pl_ir_parse("program", text, strlen(text), &arena, &module, &error), PL_OK);
  assert_int_equal(pl_ir_check(&module, &error), PL_BAD_INPUT);
  if (strstr(error.message, "the gradient \"w\" lies on the device here and in=\"host\" in line 12") == NULL)
    fail_msg("%s", error.message);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_kept_goes_out_and_comes_back), cmocka_unit_test(the_host_updates),
      cmocka_unit_test(gradients_are_added_up_in_the_host), cmocka_unit_test(one_gradient_lies_in_one_place)};
  return cmocka_run_group_tests(tests, load, unload);
}
