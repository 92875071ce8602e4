/* Loading of platforms through SimGrid, and what is refused before and by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"

#define FOLDER "tests/unit/platforms"

static pl_platform *load(const char *path) {
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  return platform;
}

/* Loads a copy of two-nodes.xml in which `from` is replaced by `to` everywhere. */
static char *edit(const char *from, const char *to) {
  FILE *in = fopen(FOLDER "/two-nodes.xml", "r");
  assert_non_null(in);
  char *text = calloc(1, 1 << 16), *result = calloc(1, 1 << 16);
  assert_true(fread(text, 1, (1 << 16) - 1, in) > 0);
  fclose(in);
  char *at = text, *found;
  assert_non_null(strstr(text, from));
  while ((found = strstr(at, from)) != NULL) {
    strncat(result, at, (size_t)(found - at));
    strcat(result, to);
    at = found + strlen(from);
  }
  strcat(result, at);
  free(text);
  return result;
}

static void store(const char *path, const char *text) {
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

typedef void (*check_in_child)(pl_code code, const pl_error *error, pl_platform *platform);

/* Loads the edited file in a child, because a load that SimGrid itself refuses can happen once per process; returns its
 * message. */
static pl_code load_edited(const char *from, const char *to, bool check_routes, char message[PL_ERROR_MESSAGE_BYTES]) {
  char path[] = "/tmp/paceline_platform_XXXXXX.xml";
  int file = mkstemps(path, 4), channel[2];
  assert_true(file >= 0 && pipe(channel) == 0);
  close(file);
  char *text = edit(from, to);
  store(path, text);
  free(text);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pl_error error = PL_ERROR_INIT;
    pl_platform *platform;
    if (pl_platform_load(path, FOLDER "/devices", &platform, &error) == PL_OK && check_routes)
      (void)pl_platform_check(platform, &error);
    ssize_t written = write(channel[1], &error, sizeof error);
    _exit(written == (ssize_t)sizeof error ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("'%s' for '%s': child ended with %d", to, from, status);
  pl_error error;
  assert_int_equal(read(channel[0], &error, sizeof error), sizeof error);
  close(channel[0]);
  close(channel[1]);
  unlink(path);
  memcpy(message, error.message, sizeof error.message);
  return error.code;
}

static void test_arrays(void **state) {
  (void)state;
  pl_platform *platform = load(FOLDER "/two-nodes.xml");
  const pl_cluster *cluster = pl_platform_cluster(platform);
  assert_int_equal(cluster->n_devices, 3);
  assert_int_equal(cluster->n_nodes, 2);
  assert_int_equal(cluster->n_profiles, 2);
  assert_int_equal(cluster->n_links, 6);
  /* File order, not SimGrid's order by name; the CPU is no device. */
  const char *const names[] = {"gpu9", "gpu10", "gpu0"};
  const uint32_t nodes[] = {0, 0, 1}, locals[] = {0, 1, 0};
  for (uint32_t d = 0; d < 3; d++) {
    assert_string_equal(cluster->devices[d].name, names[d]);
    assert_int_equal(cluster->devices[d].node, nodes[d]);
    assert_int_equal(cluster->devices[d].local_index, locals[d]);
  }
  assert_string_equal(cluster->nodes[0].name, "node10");
  assert_int_equal(cluster->nodes[0].n_devices, 2);
  assert_string_equal(cluster->nodes[1].name, "node2");
  assert_int_equal(cluster->nodes[1].first_device, 2);
  assert_string_equal(pl_cluster_profile(cluster, 2)->name, "Toy-16GB");
  const char *const links[] = {"nvlink_UP", "nvlink_DOWN", "nic10_UP", "nic10_DOWN", "pcie2", "backbone"};
  const double rates[] = {50e9, 50e9, 12.5e9, 12.5e9, 16e9, 1e12},
               latencies_s[] = {1e-6, 1e-6, 2e-6, 2e-6, 500e-9, 3e-6};
  const uint8_t kinds[] = {PL_LINK_NVLINK, PL_LINK_NVLINK, PL_LINK_NIC, PL_LINK_NIC, PL_LINK_PCIE, PL_LINK_FABRIC};
  for (uint32_t l = 0; l < 6; l++) {
    assert_string_equal(cluster->links[l].name, links[l]);
    assert_true(cluster->links[l].capacity_Bps == rates[l]);
    assert_int_equal(cluster->links[l].latency, pl_ticks_from_s(latencies_s[l]));
    assert_int_equal(cluster->links[l].kind, kinds[l]);
    assert_int_equal(cluster->links[l].policy, l == 5 ? PL_LINK_FATPIPE : PL_LINK_SHARED);
  }
  uint32_t n_zones;
  const pl_platform_zone *zones = pl_platform_zones(platform, &n_zones);
  assert_int_equal(n_zones, 3);
  assert_string_equal(zones[0].name, "cluster");
  assert_true(zones[0].parent == PL_NONE && zones[0].node == PL_NONE);
  assert_true(zones[1].parent == 0 && zones[1].node == 0 && zones[2].parent == 0 && zones[2].node == 1);
  const uint32_t link_zones[] = {1, 1, 1, 1, 2, 0};
  assert_memory_equal(pl_platform_link_zones(platform), link_zones, sizeof link_zones);
  pl_platform_destroy(platform);
}

static void expect_route(const pl_cluster *cluster, uint32_t from, uint32_t to, uint32_t n, const uint32_t *links) {
  pl_route route;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_cluster_route(cluster, from, to, &route, &error), PL_OK);
  assert_int_equal(route.n_links, n);
  pl_ticks latency = 0;
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(route.links[i], links[i]);
    latency += cluster->links[links[i]].latency;
  }
  assert_int_equal(route.latency, latency);
}

static void test_routes(void **state) {
  (void)state;
  pl_platform *platform = load(FOLDER "/two-nodes.xml");
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_check(platform, &error), PL_OK);
  expect_route(cluster, 0, 1, 1, (const uint32_t[]){0});
  expect_route(cluster, 1, 0, 1, (const uint32_t[]){1});
  expect_route(cluster, 0, 2, 3, (const uint32_t[]){2, 5, 4});
  expect_route(cluster, 2, 1, 3, (const uint32_t[]){4, 5, 3});
  pl_platform_destroy(platform);
}

/* Hosts and links that SimGrid names itself: one node, and links that are fabric. */
static void test_cluster_element(void **state) {
  (void)state;
  pl_platform *platform = load(FOLDER "/fat-tree.xml");
  const pl_cluster *cluster = pl_platform_cluster(platform);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_check(platform, &error), PL_OK);
  assert_int_equal(cluster->n_devices, 4);
  assert_int_equal(cluster->n_nodes, 1);
  assert_string_equal(cluster->nodes[0].name, "rack");
  assert_string_equal(cluster->devices[3].name, "gpu3");
  assert_int_equal(cluster->n_links, 16); /* 4 + 4 cables, two directions each */
  for (uint32_t l = 0; l < cluster->n_links; l++)
    assert_int_equal(cluster->links[l].kind, PL_LINK_FABRIC);
  pl_route route;
  assert_int_equal(pl_cluster_route(cluster, 0, 2, &route, &error), PL_OK);
  assert_int_equal(route.n_links, 4); /* up, up, down, down */
  pl_platform_destroy(platform);
}

static pl_platform *load_by_simgrid(const char *path) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load_by_simgrid(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  return platform;
}

/* SimGrid holds one at a time: a second load is refused, and possible once the first is gone, with the same result. */
static void test_second_load(void **state) {
  (void)state;
  pl_platform *first = load_by_simgrid(FOLDER "/two-nodes.xml"), *second = NULL;
  uint64_t digest = pl_platform_cluster(first)->digest;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_load_by_simgrid(FOLDER "/two-nodes.xml", NULL, &second, &error), PL_UNSUPPORTED);
  assert_null(second);
  assert_non_null(strstr(error.message, "already"));
  expect_route(pl_platform_cluster(first), 0, 1, 1, (const uint32_t[]){0});
  pl_platform_destroy(first);
  second = load_by_simgrid(FOLDER "/two-nodes.xml");
  assert_true(pl_platform_cluster(second)->digest == digest);
  expect_route(pl_platform_cluster(second), 0, 2, 3, (const uint32_t[]){2, 5, 4});
  pl_platform_destroy(second);
}

/* Without SimGrid any number; SimGrid takes one of them when it is asked to. */
static void test_several(void **state) {
  (void)state;
  pl_platform *first = load(FOLDER "/two-nodes.xml"), *second = load(FOLDER "/two-nodes.xml");
  pl_error error = PL_ERROR_INIT;
  assert_false(pl_platform_is_from_simgrid(first));
  assert_int_equal(pl_platform_need_simgrid(first, &error), PL_OK);
  assert_int_equal(pl_platform_need_simgrid(first, &error), PL_OK);
  assert_int_equal(pl_platform_need_simgrid(second, &error), PL_UNSUPPORTED);
  pl_platform_destroy(first);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_need_simgrid(second, &error), PL_OK);
  expect_route(pl_platform_cluster(second), 0, 2, 3, (const uint32_t[]){2, 5, 4});
  pl_platform_destroy(second);
}

/* A pair X has halves X_UP and X_DOWN, which routes may name and no other link may be called. Where a name is used
 * twice, SimGrid is asked, which lets some pass. */
static void test_halves(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
    pl_code code;
    bool is_from_simgrid;
  } cases[] = {
      {"<link_ctn id=\"nvlink\" direction=\"UP\"/>", "<link_ctn id=\"nvlink_UP\"/>", PL_OK, false},
      {"<link_ctn id=\"nvlink\" direction=\"UP\"/>", "<link_ctn id=\"nvlink_UP\" direction=\"NONE\"/>", PL_OK, false},
      {"<link_ctn id=\"nvlink\" direction=\"UP\"/>", "<link_ctn id=\"nvlink_UP\" direction=\"UP\"/>", PL_BAD_INPUT,
       true},
      {"<link_ctn id=\"nvlink\" direction=\"UP\"/>", "<link_ctn id=\"pcie2_UP\"/>", PL_BAD_INPUT, true},
      {"\"pcie2\"", "\"other_UP\"", PL_OK, false},
      {"\"pcie2\"", "\"nvlink_UP\"", PL_BAD_INPUT, true},
      {"\"nic10\"", "\"nvlink_UP\"", PL_OK, true},         /* a pair whose name is a half's */
      {"id=\"nvlink\"", "id=\"nic10_DOWN\"", PL_OK, true}, /* which comes first */
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    char path[] = "/tmp/paceline_platform_XXXXXX.xml";
    close(mkstemps(path, 4));
    char *text = edit(cases[c].from, cases[c].to);
    store(path, text);
    free(text);
    pid_t child = fork();
    if (child == 0) {
      pl_error error = PL_ERROR_INIT;
      pl_platform *platform = NULL;
      pl_code code = pl_platform_load(path, FOLDER "/devices", &platform, &error);
      if (code == PL_OK && pl_platform_is_from_simgrid(platform) != cases[c].is_from_simgrid) _exit(100);
      if (code == PL_OK && !cases[c].is_from_simgrid)
        expect_route(pl_platform_cluster(platform), 0, 1, 1, (const uint32_t[]){0});
      _exit((int)code);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != (int)cases[c].code)
      fail_msg("'%s' for '%s': child ended with %d", cases[c].to, cases[c].from, status);
  }
}

/* The file may not change between the two readings. */
static void test_changed(void **state) {
  (void)state;
  char path[] = "/tmp/paceline_platform_XXXXXX.xml", message[] = "has changed since it was read";
  close(mkstemps(path, 4));
  char *good = edit("3us", "3us"), *other = edit("3us", "4us");
  store(path, good);
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_load(path, FOLDER "/devices", &platform, &error), PL_OK);
  store(path, other);
  assert_int_equal(pl_platform_need_simgrid(platform, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, message));
  pl_platform_destroy(platform);
  unlink(path);
  free(good);
  free(other);
}

enum { THREADS = 8 };

typedef struct asker {
  const pl_cluster *cluster;
  uint32_t number;
  uint64_t n_links, wrong;
} asker;

/* All ordered pairs, each thread from another start. */
static void *ask(void *argument) {
  asker *a = argument;
  uint32_t n = a->cluster->n_devices;
  for (uint32_t i = 0; i < n * n; i++) {
    uint32_t pair = (i + a->number * 1999) % (n * n);
    pl_route route;
    if (pair / n == pair % n) continue;
    if (pl_cluster_route(a->cluster, pair / n, pair % n, &route, NULL) != PL_OK)
      a->wrong++;
    else
      a->n_links += route.n_links;
  }
  return NULL;
}

static void ask_from_threads(pl_platform *platform) {
  pthread_t threads[THREADS];
  asker askers[THREADS];
  for (uint32_t t = 0; t < THREADS; t++) {
    askers[t] = (asker){.cluster = pl_platform_cluster(platform), .number = t};
    assert_int_equal(pthread_create(&threads[t], NULL, ask, &askers[t]), 0);
  }
  for (uint32_t t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_true(askers[t].wrong == 0 && askers[t].n_links == askers[0].n_links && askers[t].n_links > 0);
  }
  pl_platform_destroy(platform);
}

/* SimGrid, too, answers threads other than the one that loaded the platform. */
static void test_threads(void **state) {
  (void)state;
  ask_from_threads(load("platforms/dgx-a100-16.xml"));
  ask_from_threads(load_by_simgrid("platforms/dgx-a100-16.xml"));
}

static void on_signal(int number) {
  (void)number;
}

/* SimGrid's engine installs handlers of its own for both; a load must not leave them behind. */
static void test_signal_handlers_stay(void **state) {
  (void)state;
  const int signals[] = {SIGINT, SIGSEGV};
  struct sigaction ours = {.sa_handler = on_signal}, before[2], after;
  for (int i = 0; i < 2; i++)
    sigaction(signals[i], &ours, &before[i]);
  pl_platform_destroy(load_by_simgrid(FOLDER "/two-nodes.xml"));
  for (int i = 0; i < 2; i++) {
    sigaction(signals[i], &before[i], &after);
    assert_true(after.sa_handler == on_signal);
  }
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *expected;
    pl_code code;
  } cases[] = {
      {"</platform>", "", ".xml:27: malformed XML: no element found", PL_BAD_INPUT},
      {"</zone>", "</zonk>", ".xml:16: malformed XML: mismatched tag", PL_BAD_INPUT},
      {"Toy-16GB", "Toy-17GB", ".xml:18: unknown device 'Toy-17GB'; known are: Toy-16GB, Toy-8GB", PL_BAD_INPUT},
      {"Toy-16GB", "../../x", ".xml:18: device '../../x' is not the name", PL_BAD_INPUT},
      {"id=\"device\"", "id=\"devise\"", "no GPU in it", PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "bandwidth=\"0GBps\"",
       ".xml:20: bandwidth of <link id=\"pcie2\"> is '0GBps': it must be more than", PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "bandwidth=\"-1GBps\"", ".xml:20: bandwidth of <link id=\"pcie2\"> is '-1GBps'",
       PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "bandwidth=\"nan\"", ".xml:20: bandwidth", PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "bandwidth=\"fast\"", ".xml:20: bandwidth", PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "bandwidth=\"16Goops\"", ".xml:20: unknown unit", PL_BAD_INPUT},
      {"bandwidth=\"16GBps\"", "", ".xml:20: ", PL_BAD_INPUT},
      {"latency=\"500ns\"", "latency=\"-1us\"", ".xml:20: latency of <link id=\"pcie2\"> is '-1us'", PL_BAD_INPUT},
      {"value=\"pcie\"", "value=\"pice\"", ".xml:20: link kind 'pice' is none of nvlink", PL_BAD_INPUT},
      {"<platform version=\"4.1\">", "<platform version=\"3\">", ".xml:4: platform version '3' is not 4.1",
       PL_BAD_INPUT},
      {"<platform version=\"4.1\">", "<platform version=\"5\">", ".xml:4: platform version '5' is not 4.1",
       PL_BAD_INPUT},
      {"<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">", "", ".xml:4: SimGrid wants <!DOCTYPE",
       PL_BAD_INPUT},
      {"platform", "svg", ".xml:4: the outermost element is <svg>", PL_BAD_INPUT},
      {"\"Floyd\"", "\"Vivaldi\"", ".xml:5: routing=\"Vivaldi\"", PL_UNSUPPORTED},
      {"\"Floyd\"", "\"Fractal\"", ".xml:5: ", PL_BAD_INPUT},
      {"latency=\"500ns\"", "latency=\"500ns\" bandwidth_file=\"/etc/passwd\"", ".xml:20:7: bandwidth_file of <link>",
       PL_UNSUPPORTED},
      {"<link_ctn id=\"pcie2\"/>", "<link_ctn id=\"pcie3\"/>", ".xml:21: Link not found: pcie3", PL_BAD_INPUT},
      {"src=\"gpu9\" dst=\"gpu10\"", "src=\"cluster\" dst=\"gpu10\"",
       ".xml:13: src=\"cluster\" of <route> is the zone around it", PL_BAD_INPUT},
      {"gw_dst=\"node2_out\"", "gw_dst=\"nowhere\"", ".xml:24: zoneRoute gw_dst='nowhere' names no host", PL_BAD_INPUT},
      {"\"gpu10\"", "\"gpu9\"", ": Refusing to create a second host named 'gpu9'", PL_BAD_INPUT},
      {"<route src=\"gpu9\" dst=\"gpu10\"><link_ctn id=\"nvlink\" direction=\"UP\"/></route>", "",
       "no route from GPU 'gpu9' (", PL_BAD_INPUT},
      {"<zoneRoute src=\"node10\" dst=\"node2\" gw_src=\"node10_out\" gw_dst=\"node2_out\"><link_ctn "
       "id=\"backbone\"/></zoneRoute>",
       "", "to GPU 'gpu0' (", PL_BAD_INPUT},
      {"<route src=\"gpu0\" dst=\"node2_out\"><link_ctn id=\"pcie2\"/></route>", "", "to GPU 'gpu0' (", PL_BAD_INPUT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char message[PL_ERROR_MESSAGE_BYTES];
    pl_code code = load_edited(cases[i].from, cases[i].to, true, message);
    if (code != cases[i].code || strstr(message, cases[i].expected) == NULL || strchr(message, '\n') != NULL)
      fail_msg("'%s' for '%s': code %d: %s", cases[i].to, cases[i].from, (int)code, message);
  }
}

static void expect_refused(const char *path, const char *expected) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_platform_load(path, NULL, &platform, &error), PL_BAD_INPUT);
  if (strstr(error.message, expected) == NULL) fail_msg("%s", error.message);
}

static void test_no_file(void **state) {
  (void)state;
  char path[] = "/tmp/paceline_platform_XXXXXX.xml";
  close(mkstemps(path, 4));
  expect_refused("tests/unit/nowhere.xml", "tests/unit/nowhere.xml: No such file");
  expect_refused("tests/unit", "tests/unit: is a directory");
  expect_refused("/dev/null", "not a regular file");
  expect_refused(path, ":1: the file is empty");
  unlink(path);
}

static uint64_t digest_of(const char *path) {
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  if (pl_platform_load(path, FOLDER "/devices", &platform, &error) != PL_OK) fail_msg("%s", error.message);
  uint64_t digest = pl_platform_cluster(platform)->digest;
  pl_platform_destroy(platform);
  return digest;
}

static void test_digest(void **state) {
  (void)state;
  char path[] = "/tmp/paceline_platform_XXXXXX.xml";
  close(mkstemps(path, 4));
  char *same = edit("3us", "3us"), *other = edit("3us", "4us");
  store(path, same);
  uint64_t first = digest_of(path);
  bool path_counts = digest_of(FOLDER "/two-nodes.xml") != first;
  store(path, other);
  bool bytes_count = digest_of(path) != first;
  unlink(path);
  free(same);
  free(other);
  assert_true(bytes_count && !path_counts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),         cmocka_unit_test(test_no_file),
      cmocka_unit_test(test_arrays),          cmocka_unit_test(test_routes),
      cmocka_unit_test(test_cluster_element), cmocka_unit_test(test_digest),
      cmocka_unit_test(test_second_load),     cmocka_unit_test(test_several),
      cmocka_unit_test(test_halves),          cmocka_unit_test(test_changed),
      cmocka_unit_test(test_threads),         cmocka_unit_test(test_signal_handlers_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
