/* The flow network against SimGrid's own engine, on random platforms, routes and flows.
 *
 * Each scenario writes a platform file, and a forked child (SimGrid has one engine per process) loads it, plays the
 * flows in the flow network and then in SimGrid's loop, and compares every finish date: within 1e-9 relative or 4
 * ticks. Both sharing rules. PACELINE_SEED repeats a run, PACELINE_SCENARIOS says how many (240), PACELINE_SCENARIO
 * plays one of them, PACELINE_KEEP keeps the files of those that fail. Latencies are whole ticks, because a cluster
 * keeps them so.
 *
 * `equal` and `rtt` run on links of 30 kB/s to 300 MB/s. On links 10,000 times faster, hundreds of contending flows
 * are over within a millisecond, 1e-9 of which is one tick, and each of their ends was rounded to a tick: the
 * difference is a random walk (in 2880 scenarios, 14 with more than 4 ticks, none with 40). `fast_links` allows 100
 * ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/flow/networks.h"
#include "netmodel/simgrid/simgrid_door.h"
#include "tests/support/random.h"

enum { MAX_HOSTS = 64, MAX_LINKS = 160, MAX_FLOWS = 500, MAX_ROUTE = 6 };

typedef struct flow_plan {
  uint32_t source, destination;
  pl_ticks start;
  double size_bytes;
} flow_plan;

typedef struct scenario {
  uint32_t n_hosts, n_links, n_flows;
  flow_plan flows[MAX_FLOWS];
  uint32_t n_pairs;
  struct {
    uint32_t source, destination;
  } pairs[MAX_FLOWS];
} scenario;

/* What a child reports. */
typedef struct report {
  bool done;
  uint32_t n_compared, n_disturbed, n_capped;
  double worst; /* difference over what is allowed */
  char message[512];
} report;

/* ---- making a scenario ---- */

/* Links l0, l1 ... of the three policies; `spread`: decades of capacity. */
static void write_links(FILE *xml, const scenario *s, char *policies, bool has_latency, bool fast, uint64_t *state) {
  double lowest_Bps = fast ? random_log(state, 1e7, 1e10) : random_log(state, 3e4, 1e6),
         spread = random_log(state, 1, 300);
  double base_ticks = random_log(state, 1e5, 1e8); /* 0.1 to 100 us */
  bool nice = random_below(state, 3) == 0;         /* few distinct capacities: ties */
  for (uint32_t l = 0; l < s->n_links; l++) {
    uint32_t draw = random_below(state, 10);
    policies[l] = l == 0 || draw < 5 ? 'S' : draw < 8 ? 'D' : 'F';
    double bandwidth_Bps =
        nice ? lowest_Bps * random_between(state, 1, 3) : random_log(state, lowest_Bps, lowest_Bps * spread);
    double latency_s = has_latency ? ldexp(floor(random_log(state, base_ticks, base_ticks * 10)), -40) : 0;
    fprintf(xml, "  <link id=\"l%u\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" sharing_policy=\"%s\"/>\n", l,
            bandwidth_Bps, latency_s,
            policies[l] == 'S'   ? "SHARED"
            : policies[l] == 'D' ? "SPLITDUPLEX"
                                 : "FATPIPE");
  }
}

/* `owner`: under RTT a FATPIPE link belongs to the first pair that crosses it, so that only flows of one latency meet
 * on it; with several, what SimGrid does depends on the rounding of a product (netmodel/flow/route_spec.c). */
static void write_route(FILE *xml, const scenario *s, const char *policies, uint32_t pair, uint32_t *owner,
                        uint64_t *state) {
  fprintf(xml, "  <route src=\"h%u\" dst=\"h%u\" symmetrical=\"NO\">", s->pairs[pair].source,
          s->pairs[pair].destination);
  uint32_t n = random_between(state, 1, MAX_ROUTE), n_crossed = 0;
  bool repeats = random_below(state, 20) == 0; /* a link crossed twice counts twice */
  uint32_t crossed[MAX_ROUTE];
  for (uint32_t i = 0; i < n; i++) {
    uint32_t link = random_below(state, s->n_links);
    bool again = false;
    for (uint32_t j = 0; j < n_crossed; j++)
      again = again || crossed[j] == link;
    if (again && !repeats) continue;
    if (policies[link] == 'F' && owner != NULL) {
      if (owner[link] != PL_NONE && owner[link] != pair) continue;
      owner[link] = pair;
    }
    crossed[n_crossed++] = link;
    fprintf(xml, policies[link] == 'D' ? "<link_ctn id=\"l%u\" direction=\"%s\"/>" : "<link_ctn id=\"l%u\"/>", link,
            random_below(state, 2) ? "UP" : "DOWN");
  }
  if (n_crossed == 0) fputs("<link_ctn id=\"l0\"/>", xml);
  fputs("</route>\n", xml);
}

static uint32_t has_pair(const scenario *s, uint32_t source, uint32_t destination) {
  for (uint32_t i = 0; i < s->n_pairs; i++)
    if (s->pairs[i].source == source && s->pairs[i].destination == destination) return 1;
  return 0;
}

static void random_flows(scenario *s, bool fast, uint64_t *state) {
  double window_s = random_log(state, 1e-5, 1) * (fast ? 1 : 1000);
  bool together = random_below(state, 4) == 0, alike = random_below(state, 4) == 0;
  double common_bytes = floor(random_log(state, 1e3, 1e8));
  for (uint32_t i = 0; i < s->n_flows; i++) {
    flow_plan *flow = &s->flows[i];
    flow->source = random_below(state, s->n_hosts);
    flow->destination = (flow->source + random_between(state, 1, s->n_hosts - 1)) % s->n_hosts;
    flow->start = together && random_below(state, 2) ? 0 : pl_ticks_from_s(random_unit(state) * window_s);
    flow->size_bytes = alike && random_below(state, 2) ? common_bytes : floor(random_log(state, 100, 1e8));
    if (random_below(state, 4) == 0) flow->size_bytes += random_below(state, 65536) / 65536.0;
    if (has_pair(s, flow->source, flow->destination)) continue;
    s->pairs[s->n_pairs].source = flow->source;
    s->pairs[s->n_pairs++].destination = flow->destination;
  }
}

static void make_scenario(scenario *s, const char *path, pl_sharing sharing, bool fast, uint64_t *state) {
  memset(s, 0, sizeof *s);
  s->n_hosts = random_between(state, 4, MAX_HOSTS);
  s->n_links = random_between(state, 2, random_below(state, 2) ? 12 : MAX_LINKS);
  s->n_flows = (uint32_t)random_log(state, 2, MAX_FLOWS + 1);
  random_flows(s, fast, state);
  FILE *xml = fopen(path, "w");
  assert_non_null(xml);
  fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n",
        xml);
  for (uint32_t h = 0; h < s->n_hosts; h++)
    fprintf(xml, "  <host id=\"h%u\" speed=\"1Gf\"><prop id=\"device\" value=\"T4\"/></host>\n", h);
  char policies[MAX_LINKS];
  uint32_t owner[MAX_LINKS];
  memset(owner, 0xff, sizeof owner);
  /* Under RTT a flow without any latency has weight 1 beside weights of 1e5: SimGrid then rounds shares to nothing. */
  bool latencies = sharing == PL_SHARING_RTT ? random_below(state, 10) != 0 : random_below(state, 2);
  write_links(xml, s, policies, latencies, fast, state);
  for (uint32_t i = 0; i < s->n_pairs; i++)
    write_route(xml, s, policies, i, sharing == PL_SHARING_RTT ? owner : NULL, state);
  fputs("</zone></platform>\n", xml);
  assert_int_equal(fclose(xml), 0);
}

/* ---- playing it ---- */

typedef struct play {
  const scenario *scenario;
  const pl_transfer_spec *specs;
  const uint32_t *device; /* of host h */
  pl_sharing sharing;
  pl_simgrid_door door;
  pl_simgrid_loop *loop;
  double finish_s[MAX_FLOWS];
  pl_ticks finish[MAX_FLOWS];
} play;

static void play_natively(play *p, const pl_transfer_table *table, pl_arena *arena) {
  const scenario *s = p->scenario;
  pl_network *network = pl_flow_network_take(table, arena);
  assert_non_null(network);
  bool started[MAX_FLOWS] = {false};
  for (pl_ticks now = 0; now != PL_TICKS_NEVER;) {
    for (uint32_t task; (task = network->ops->advance(network, now)) != PL_NONE;)
      p->finish[task] = now;
    pl_ticks next = PL_TICKS_NEVER;
    for (uint32_t i = 0; i < s->n_flows; i++) {
      if (started[i]) continue;
      if (s->flows[i].start <= now) {
        network->ops->start(network, now, i, i, s->flows[i].size_bytes);
        started[i] = true;
      } else if (s->flows[i].start < next) {
        next = s->flows[i].start;
      }
    }
    pl_ticks event = network->ops->settle(network, now);
    now = event < next ? event : next;
  }
  network->ops->destroy(network);
}

/* Task i: the wait of flow i; task n_flows + i: the flow. */
static void loop_begin(void *data, pl_simgrid_loop *loop) {
  play *p = data;
  p->loop = loop;
  for (uint32_t i = 0; i < p->scenario->n_flows; i++)
    p->door.timer(loop, i, pl_ticks_to_s(p->scenario->flows[i].start));
}

static void loop_complete(void *data, uint32_t task, double time_s) {
  play *p = data;
  const scenario *s = p->scenario;
  if (task >= s->n_flows) {
    p->finish_s[task - s->n_flows] = time_s;
    return;
  }
  const flow_plan *flow = &s->flows[task];
  p->door.send(p->loop, s->n_flows + task, p->device[flow->source], p->device[flow->destination], flow->size_bytes,
               p->sharing == PL_SHARING_EQUAL ? pl_ticks_to_s(p->specs[task].latency) : 0);
}

static void loop_flush(void *data, double time_s) {
  (void)data, (void)time_s;
}

static const char *play_in_simgrid(play *p, const pl_cluster *cluster, pl_arena *arena, char *message, size_t bytes) {
  const char **hosts = PL_TAKE(arena, const char *, cluster->n_devices);
  for (uint32_t i = 0; i < cluster->n_devices; i++)
    hosts[i] = cluster->devices[i].name;
  const pl_simgrid_loop_options options = {.hosts = hosts,
                                           .n_hosts = cluster->n_devices,
                                           .n_tasks = 2 * p->scenario->n_flows,
                                           .rtt = p->sharing == PL_SHARING_RTT};
  const pl_simgrid_loop_client client = {loop_begin, loop_complete, loop_flush, p};
  if (!pl_simgrid_door_open(&p->door, message, bytes)) return message;
  return p->door.run(&options, &client, message, bytes) ? NULL : message;
}

static void compare(const play *p, const pl_transfer_table *table, double ticks_allowed, report *out) {
  for (uint32_t i = 0; i < p->scenario->n_flows; i++) {
    double is_s = pl_ticks_to_s(p->finish[i]), should_s = p->finish_s[i];
    double excess = fabs(is_s - should_s) / fmax(1e-9 * should_s, ticks_allowed / PL_TICKS_PER_S);
    pl_ticks alone = p->scenario->flows[i].start + pl_transfer_solo_ticks(table, i, p->scenario->flows[i].size_bytes);
    out->n_compared++;
    out->n_disturbed += p->finish[i] > alone + 4;
    out->n_capped += isfinite(table->specs[i].rate_cap_Bps) != 0;
    if (!(excess <= out->worst)) out->worst = excess;
    if (!(excess <= 1) && out->message[0] == '\0')
      snprintf(out->message, sizeof out->message, "flow %u of %u (h%u to h%u, %.6g B): %.15g s, SimGrid %.15g s", i,
               p->scenario->n_flows, p->scenario->flows[i].source, p->scenario->flows[i].destination,
               p->scenario->flows[i].size_bytes, is_s, should_s);
  }
}

/* In the child. */
static void play_scenario(const scenario *s, const char *path, pl_sharing sharing, bool fast, report *out) {
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK || pl_platform_need_simgrid(platform, &error) != PL_OK) {
    memcpy(out->message, error.message, sizeof out->message);
    return;
  }
  const pl_cluster *cluster = pl_platform_cluster(platform);
  double *capacity_Bps = PL_TAKE(&arena, double, cluster->n_links);
  uint8_t *policy = PL_TAKE(&arena, uint8_t, cluster->n_links);
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    capacity_Bps[l] = cluster->links[l].capacity_Bps;
    policy[l] = cluster->links[l].policy;
  }
  uint32_t device[MAX_HOSTS];
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    device[atoi(cluster->devices[d].name + 1)] = d;
  static pl_transfer_spec specs[MAX_FLOWS];
  static pl_link_use uses[MAX_FLOWS * MAX_ROUTE];
  uint32_t n_uses = 0;
  for (uint32_t i = 0; i < s->n_flows; i++) {
    pl_link_use *list;
    if (pl_route_spec(cluster, sharing, device[s->flows[i].source], device[s->flows[i].destination], &arena, &list,
                      &specs[i], &error) != PL_OK) {
      memcpy(out->message, error.message, sizeof out->message);
      return;
    }
    specs[i].first_use = n_uses;
    for (uint32_t k = 0; k < specs[i].n_uses; k++)
      uses[n_uses++] = list[k];
  }
  pl_transfer_table table = {capacity_Bps, policy, cluster->n_links, specs, s->n_flows, uses, n_uses};
  static play p;
  p = (play){.scenario = s, .specs = specs, .device = device, .sharing = sharing};
  play_natively(&p, &table, &arena);
  if (play_in_simgrid(&p, cluster, &arena, out->message, sizeof out->message) != NULL) return;
  compare(&p, &table, fast ? 100 : 4, out);
  out->done = true;
}

static void run_scenario(uint64_t seed, uint32_t index, pl_sharing sharing, bool fast, const char *folder,
                         report *out) {
  uint64_t state = seed + UINT64_C(0x9E3779B97F4A7C15) * (2 * (uint64_t)index + (sharing == PL_SHARING_RTT));
  static scenario s;
  char path[128];
  snprintf(path, sizeof path, "%s/p%u.xml", folder, index);
  make_scenario(&s, path, sharing, fast, &state);
  memset(out, 0, sizeof *out);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    play_scenario(&s, path, sharing, fast, out);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!out->done && out->message[0] == '\0')
    snprintf(out->message, sizeof out->message, "the child ended with %d", status);
  if (out->message[0] == '\0' || getenv("PACELINE_KEEP") == NULL) unlink(path);
}

static uint32_t number_from_environment(const char *name, uint32_t otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : (uint32_t)strtoul(text, NULL, 0);
}

static void crosscheck(pl_sharing sharing, bool fast) {
  uint64_t seed = test_seed(2026);
  uint32_t n = number_from_environment("PACELINE_SCENARIOS", 240),
           only = number_from_environment("PACELINE_SCENARIO", PL_NONE);
  char folder[] = "/tmp/paceline-crosscheck-XXXXXX";
  assert_non_null(mkdtemp(folder));
  report *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(out != MAP_FAILED);
  uint32_t n_failed = 0;
  uint64_t n_compared = 0, n_disturbed = 0, n_capped = 0;
  double worst = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (only != PL_NONE && i != only) continue;
    run_scenario(seed, i, sharing, fast, folder, out);
    n_compared += out->n_compared;
    n_disturbed += out->n_disturbed;
    n_capped += out->n_capped;
    worst = fmax(worst, out->worst);
    if (out->message[0] == '\0') continue;
    printf("scenario %u: %s\n", i, out->message);
    n_failed++;
  }
  rmdir(folder);
  munmap(out, sizeof *out);
  printf(
      "%s: %llu flows, %llu of them disturbed by others, %llu with a cap; worst difference %.3g of what is allowed\n",
      sharing == PL_SHARING_RTT ? "rtt" : "equal", (unsigned long long)n_compared, (unsigned long long)n_disturbed,
      (unsigned long long)n_capped, worst);
  assert_int_equal(n_failed, 0);
}

static void equal(void **unused) {
  (void)unused;
  crosscheck(PL_SHARING_EQUAL, false);
}

static void rtt(void **unused) {
  (void)unused;
  crosscheck(PL_SHARING_RTT, false);
}

static void fast_links(void **unused) {
  (void)unused;
  crosscheck(PL_SHARING_EQUAL, true);
  crosscheck(PL_SHARING_RTT, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal), cmocka_unit_test(rtt), cmocka_unit_test(fast_links)};
  return cmocka_run_group_tests_name("flow_simgrid", tests, NULL, NULL);
}
