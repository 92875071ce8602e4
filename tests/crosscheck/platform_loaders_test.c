/* The tree of zones and SimGrid make the same cluster of a file, to the bit: arrays, and all routes (of large ones a
 * sample). On the platforms that come with Paceline, on made ones, and on random nests of zones with Full and Floyd
 * routing, flat clusters, links of every policy, routes one way and both, and gateways of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/make/node_kind.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "tests/support/random.h"

enum { ZONES_MAX = 64, MEMBERS_MAX = 6, RANDOM_FILES = 150 };

static bool is_same(const char *path, const char *folder, pl_error *error) {
  pl_platform *tree = NULL, *simgrid = NULL;
  pl_code code = pl_platform_load(path, folder, &tree, error);
  if (code == PL_OK && pl_platform_is_from_simgrid(tree))
    code = pl_fail(error, PL_BAD_INPUT, "%s: the tree of zones does not understand it", path);
  if (code == PL_OK) code = pl_platform_load_by_simgrid(path, folder, &simgrid, error);
  if (code == PL_OK) code = pl_platform_check_same(tree, simgrid, error);
  pl_platform_destroy(tree);
  pl_platform_destroy(simgrid);
  return code == PL_OK;
}

static void expect_same(const char *path, const char *folder) {
  pl_error error = PL_ERROR_INIT;
  if (!is_same(path, folder, &error)) fail_msg("%s", error.message);
}

static void test_shipped(void **state) {
  (void)state;
  glob_t files;
  assert_int_equal(glob("platforms/*.xml", 0, NULL, &files), 0);
  assert_true(files.gl_pathc >= 12);
  for (size_t i = 0; i < files.gl_pathc; i++)
    expect_same(files.gl_pathv[i], "platforms/devices");
  globfree(&files);
  expect_same("tests/unit/platforms/two-nodes.xml", "tests/unit/platforms/devices");
}

static void test_made(void **state) {
  (void)state;
  static const char *const kinds[] = {"dgx-a100", "dgx-h100", "dgx-1v"};
  char path[] = "/tmp/paceline_loaders_XXXXXX.xml";
  close(mkstemps(path, 4));
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t sockets = 0; sockets < 2; sockets++) {
      pl_platform_plan plan = {.n_parts = 1,
                               .parts = {{.kind = pl_node_kind_find(kinds[i]), .n_nodes = i == 0 ? 64 : 24}},
                               .pod_nodes = 20,
                               .oversubscription = 1 + i,
                               .sockets = sockets ? PL_SOCKETS_ALWAYS : PL_SOCKETS_NEVER};
      pl_error error = PL_ERROR_INIT;
      if (pl_platform_plan_check(&plan, &error) != PL_OK || pl_platform_make_file(&plan, path, true, &error) != PL_OK)
        fail_msg("%s", error.message);
      expect_same(path, "platforms/devices");
    }
  unlink(path);
}

/* ---- random files ---- */

typedef struct writer {
  FILE *out;
  uint64_t random;
  uint32_t n_zones, n_links;
} writer;

/* What a zone offers to its surroundings. */
typedef struct offer {
  char zone[32], gateways[MEMBERS_MAX][32];
  uint32_t n_gateways;
} offer;

static uint32_t below(writer *w, uint32_t n) {
  return random_below(&w->random, n);
}

static const char *wire(writer *w) {
  static const char *const wires[] = {"bandwidth=\"25Gbps\" latency=\"1.3us\"", "bandwidth=\"12.5GBps\" latency=\"0\"",
                                      "bandwidth=\"3GiBps\" latency=\"0.7ms\"",
                                      "bandwidth=\"1e9Bps\" latency=\"1e-6s\"",
                                      "bandwidth=\"0.3Tibps\" latency=\"17ns\""};
  return wires[below(w, 5)];
}

/* Declares 1 to 3 links and says how they are crossed. */
static void put_links(writer *w, char hops[512]) {
  static const char *const policies[] = {"", "SHARED", "FATPIPE", "SPLITDUPLEX", "FULLDUPLEX"};
  static const char *const kinds[] = {"nvlink", "pcie", "nic", "fabric"};
  int used = 0;
  for (uint32_t n = 1 + below(w, 3); n > 0; n--) {
    uint32_t policy = below(w, 5), link = w->n_links++;
    const char *direction = policy < 3 ? "" : below(w, 2) ? " direction=\"UP\"" : " direction=\"DOWN\"";
    const char *half = policy >= 3 && below(w, 4) == 0 ? (direction = "", "_UP") : "";
    fprintf(w->out, "<link id=\"l%u\" %s", link, wire(w));
    if (policy > 0) fprintf(w->out, " sharing_policy=\"%s\"", policies[policy]);
    if (below(w, 2))
      fprintf(w->out, "><prop id=\"kind\" value=\"%s\"/></link>\n", kinds[below(w, 4)]);
    else
      fputs("/>\n", w->out);
    used += snprintf(hops + used, 512 - (size_t)used, "<link_ctn id=\"l%u%s\"%s/>", link, half, direction);
  }
}

typedef struct pending_route {
  char text[1024];
} pending_route;

/* Links now, the route later: SimGrid wants all links of a zone in front of its routes. */
static void plan_route(writer *w, const char *element, const char *from, const char *to, const char *gateways,
                       pending_route *routes, uint32_t *n) {
  char hops[512];
  bool both = below(w, 3) > 0;
  put_links(w, hops);
  snprintf(routes[(*n)++].text, sizeof routes->text, "<%s src=\"%s\" dst=\"%s\"%s%s>%s</%s>\n", element, from, to,
           gateways, both ? "" : " symmetrical=\"NO\"", hops, element);
  if (both) return;
  /* The other way with links of its own; gateways change sides. */
  char other[256] = "";
  const char *source = strstr(gateways, "gw_src=\""), *destination = strstr(gateways, "gw_dst=\"");
  if (source != NULL)
    snprintf(other, sizeof other, " gw_src=\"%.*s\" gw_dst=\"%.*s\"", (int)strcspn(destination + 8, "\""),
             destination + 8, (int)strcspn(source + 8, "\""), source + 8);
  put_links(w, hops);
  snprintf(routes[(*n)++].text, sizeof routes->text, "<%s src=\"%s\" dst=\"%s\"%s symmetrical=\"no\">%s</%s>\n",
           element, to, from, other, hops, element);
}

static void put_leaf(writer *w, offer *offered) {
  bool is_full = below(w, 2);
  uint32_t own = w->n_zones++, n_hosts = 1 + below(w, 4), n_routes = 0;
  pending_route routes[2 * MEMBERS_MAX * MEMBERS_MAX];
  offered->n_gateways = 0;
  snprintf(offered->zone, sizeof offered->zone, "z%u", own);
  fprintf(w->out, "<zone id=\"z%u\" routing=\"%s\"><prop id=\"a\" value=\"b\"/>\n", own, is_full ? "Full" : "Floyd");
  for (uint32_t i = 0; i < n_hosts; i++) {
    snprintf(offered->gateways[offered->n_gateways++], 32, "h%u.%u", own, i);
    if (i == 0 || below(w, 3) > 0)
      fprintf(w->out, "<host id=\"h%u.%u\" speed=\"1Gf\"><prop id=\"device\" value=\"Toy-%s\"/></host>\n", own, i,
              below(w, 2) ? "8GB" : "16GB");
    else
      fprintf(w->out, "<host id=\"h%u.%u\" speed=\"2.5Gf\" core=\"%u\"><prop id=\"cpu\" value=\"X\"/></host>\n", own, i,
              1 + below(w, 64));
  }
  snprintf(offered->gateways[offered->n_gateways++], 32, "r%u", own);
  fprintf(w->out, "<router id=\"r%u\"/>\n", own);
  for (uint32_t i = 0; i < offered->n_gateways; i++)
    for (uint32_t j = 0; j < i; j++)
      if (is_full || j + 1 == i || below(w, 4) == 0)
        plan_route(w, "route", offered->gateways[i], offered->gateways[j], "", routes, &n_routes);
  for (uint32_t i = 0; i < n_routes; i++)
    fputs(routes[i].text, w->out);
  fputs("</zone>\n", w->out);
}

static void put_cluster(writer *w, offer *offered) {
  static const char *const policies[] = {"", " sharing_policy=\"SHARED\"", " sharing_policy=\"FATPIPE\"",
                                         " sharing_policy=\"SPLITDUPLEX\""};
  static const char *const backbones[] = {"", " bb_bw=\"10GBps\"", " bb_bw=\"10GBps\" bb_lat=\"3us\"",
                                          " bb_bw=\"1GBps\" bb_lat=\"1us\" bb_sharing_policy=\"FATPIPE\""};
  uint32_t own = w->n_zones++;
  snprintf(offered->zone, sizeof offered->zone, "z%u", own);
  fprintf(w->out,
          "<cluster id=\"z%u\" prefix=\"c%u.\" suffix=\".x\" radical=\"3-4,8\" speed=\"1Gf\" bw=\"5GBps\" "
          "lat=\"2us\"%s%s><prop id=\"device\" value=\"Toy-8GB\"/></cluster>\n",
          own, own, policies[below(w, 4)], backbones[below(w, 4)]);
  snprintf(offered->gateways[0], 32, "c%u.8.x", own);
  snprintf(offered->gateways[1], 32, "c%u.z%u_router.x", own, own);
  offered->n_gateways = 2;
}

static void put_zone(writer *w, uint32_t depth, offer *offered);

static void put_inner(writer *w, uint32_t depth, offer *offered) {
  offer inside[5];
  bool is_full = below(w, 2);
  uint32_t own = w->n_zones++, n = 2 + below(w, 4), n_routes = 0;
  pending_route *routes = calloc(64, sizeof *routes);
  fprintf(w->out, "<zone id=\"z%u\" routing=\"%s\">\n", own, is_full ? "full" : "Floyd");
  for (uint32_t i = 0; i < n; i++)
    put_zone(w, depth + 1, &inside[i]);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < i; j++) {
      if (!is_full && j + 1 != i && below(w, 4) > 0) continue;
      char gateways[128];
      snprintf(gateways, sizeof gateways, " gw_src=\"%s\" gw_dst=\"%s\"",
               inside[i].gateways[below(w, inside[i].n_gateways)], inside[j].gateways[below(w, inside[j].n_gateways)]);
      plan_route(w, "zoneRoute", inside[i].zone, inside[j].zone, gateways, routes, &n_routes);
    }
  for (uint32_t i = 0; i < n_routes; i++)
    fputs(routes[i].text, w->out);
  free(routes);
  fputs("</zone>\n", w->out);
  snprintf(offered->zone, sizeof offered->zone, "z%u", own);
  offered->n_gateways = 0;
  for (uint32_t i = 0; i < n && i < MEMBERS_MAX; i++)
    snprintf(offered->gateways[offered->n_gateways++], 32, "%s", inside[i].gateways[0]);
}

static void put_zone(writer *w, uint32_t depth, offer *offered) {
  uint32_t choice = below(w, depth < 3 ? 4 : 3);
  if (depth == 0 || choice == 3)
    put_inner(w, depth, offered);
  else if (choice == 2)
    put_cluster(w, offered);
  else
    put_leaf(w, offered);
}

/* In a child each: SimGrid keeps static counters, and what it refuses ends it. */
static void test_random(void **state) {
  (void)state;
  uint64_t seed = test_seed(20261122);
  char path[] = "/tmp/paceline_loaders_XXXXXX.xml";
  close(mkstemps(path, 4));
  writer w = {.random = seed};
  for (int i = 0; i < RANDOM_FILES; i++) {
    offer offered;
    w.n_zones = w.n_links = 0;
    w.out = fopen(path, "w");
    assert_non_null(w.out);
    fputs("<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "
          "version=\"4.1\">\n",
          w.out);
    put_zone(&w, 0, &offered);
    fputs("</platform>\n", w.out);
    assert_int_equal(fclose(w.out), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      pl_error error = PL_ERROR_INIT;
      bool same = is_same(path, "tests/unit/platforms/devices", &error);
      if (!same) fprintf(stderr, "%s\n", error.message);
      _exit(same ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
      fail_msg("file %d of seed %llu: status 0x%x; the file is %s", i, (unsigned long long)seed, (unsigned)status,
               path);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped), cmocka_unit_test(test_made),
                                     cmocka_unit_test(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
