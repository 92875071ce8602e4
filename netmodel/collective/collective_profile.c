/* See netmodel/collective/collective_profile.h: reading, matching, pricing. */
#include "netmodel/collective/collective_profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "netmodel/device/profile_field.h"

const char *const pl_protocol_names[PL_PROTOCOL_COUNT + 1] = {
    [PL_PROTOCOL_LL] = "LL", [PL_PROTOCOL_LL128] = "LL128", [PL_PROTOCOL_SIMPLE] = "Simple", NULL};
const char *const pl_tuned_names[PL_TUNED_COUNT] = {
    [PL_TUNED_RING] = "ring", [PL_TUNED_TREE] = "tree", [PL_TUNED_DIRECT] = "direct", [PL_TUNED_NVLS] = "nvls"};

double pl_protocol_factor(pl_protocol protocol) {
  static const double factors[PL_PROTOCOL_COUNT] = {
      [PL_PROTOCOL_LL] = 2, [PL_PROTOCOL_LL128] = 128.0 / 120, [PL_PROTOCOL_SIMPLE] = 1};
  return factors[protocol];
}

/* ---- reading ---- */

/* A number in [lowest, highest]. */
static pl_code read_number(const pl_document *document, const pl_node *mapping, const char *key, double lowest,
                           double highest, double *value, pl_error *error) {
  PL_TRY(pl_node_number(document, mapping, key, value, error));
  if (*value >= lowest && *value <= highest) return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error, "%s is %g: it must be from %g to %g", key, *value,
                          lowest, highest);
}

/* [lowest, highest]; left out: everything. */
static pl_code read_bounds(const pl_document *document, const pl_node *mapping, const char *key, double *least,
                           double *most, pl_error *error) {
  const pl_node *node = pl_node_get(mapping, key);
  *least = 0;
  *most = INFINITY;
  if (node == NULL) return PL_OK;
  if (!pl_node_is_sequence(node) || pl_node_count(node) != 2)
    return pl_document_fail(document, node, error, "%s must be a list of two numbers, the least and the most", key);
  PL_TRY(pl_node_as_number(document, pl_node_at(node, 0), least, error));
  PL_TRY(pl_node_as_number(document, pl_node_at(node, 1), most, error));
  if (*least >= 0 && *least <= *most) return PL_OK;
  return pl_document_fail(document, node, error, "%s: from %g to %g holds no rate or time", key, *least, *most);
}

static pl_code read_cost(const pl_document *document, const pl_node *node, pl_protocol_cost *cost, pl_error *error) {
  static const char *const known[] = {"start_us", "step_us", "rate", "ramp", NULL};
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  cost->known = true;
  PL_TRY(read_number(document, node, "start_us", 0, 1e6, &cost->start_us, error));
  PL_TRY(read_number(document, node, "step_us", 0, 1e6, &cost->step_us, error));
  PL_TRY(read_number(document, node, "rate", 1e-6, 1, &cost->rate, error));
  return read_number(document, node, "ramp", 0, 1e6, &cost->ramp, error);
}

static pl_code read_algorithm(const pl_document *document, const pl_node *node, pl_tuned algorithm, pl_wiring *wiring,
                              pl_error *error) {
  if (!pl_node_is_mapping(node)) return pl_document_fail(document, node, error, "expected an object of protocols");
  for (size_t i = 0; i < pl_node_count(node); i++) {
    const char *name;
    const pl_node *value = pl_node_entry(document, node, i, &name);
    int protocol = pl_words_find(pl_protocol_names, name);
    if (protocol < 0)
      return pl_document_fail(document, value, error, "unknown protocol '%s'; known: LL, LL128, Simple", name);
    PL_TRY(read_cost(document, value, &wiring->cost[algorithm][protocol], error));
  }
  return PL_OK;
}

static pl_code read_match(const pl_document *document, const pl_node *node, bool inside, pl_wiring *wiring,
                          pl_error *error) {
  wiring->most_us = wiring->most_pcie_GBps = wiring->most_gpus = wiring->limit_GBps = wiring->tuner_nic_us = INFINITY;
  if (!inside) {
    PL_TRY(read_bounds(document, node, "nic_GBps", &wiring->least_GBps, &wiring->most_GBps, error));
    PL_TRY(read_bounds(document, node, "nic_us", &wiring->least_us, &wiring->most_us, error));
    if (pl_node_get(node, "limit_GBps") != NULL)
      PL_TRY(read_number(document, node, "limit_GBps", 1e-6, 1e6, &wiring->limit_GBps, error));
    if (pl_node_get(node, "buffered_sends") != NULL)
      PL_TRY(pl_node_boolean(document, node, "buffered_sends", &wiring->buffers_sends, error));
    if (pl_node_get(node, "tuner_nic_us") != NULL)
      PL_TRY(read_number(document, node, "tuner_nic_us", 0, 1e6, &wiring->tuner_nic_us, error));
    PL_TRY(read_bounds(document, node, "node_gpus", &wiring->least_gpus, &wiring->most_gpus, error));
    return read_bounds(document, node, "pcie_GBps", &wiring->least_pcie_GBps, &wiring->most_pcie_GBps, error);
  }
  const char *link;
  PL_TRY(pl_node_name(document, node, "link", &link, error));
  wiring->nvlink = strcmp(link, "nvlink") == 0;
  if (!wiring->nvlink && strcmp(link, "pcie") != 0)
    return pl_document_fail(document, pl_node_get(node, "link"), error, "link '%.32s' is neither nvlink nor pcie",
                            link);
  wiring->host = false;
  if (pl_node_get(node, "host") != NULL) PL_TRY(pl_node_boolean(document, node, "host", &wiring->host, error));
  PL_TRY(read_number(document, node, "local", 0, 100, &wiring->local, error));
  return read_bounds(document, node, "link_GBps", &wiring->least_GBps, &wiring->most_GBps, error);
}

/* NULL where the key is left out. */
static pl_code read_remark(const pl_document *document, const pl_node *mapping, const char *key, pl_arena *arena,
                           const char **remark, pl_error *error) {
  const char *text;
  *remark = NULL;
  if (pl_node_get(mapping, key) == NULL) return PL_OK;
  PL_TRY(pl_node_name(document, mapping, key, &text, error));
  *remark = pl_arena_strdup(arena, text);
  return *remark != NULL ? PL_OK : pl_fail_memory(error, "a collective profile");
}

static pl_code read_wiring(const pl_document *document, const pl_node *node, bool inside, pl_arena *arena,
                           pl_wiring *wiring, pl_error *error) {
  static const char *const inside_keys[] = {"name", "link", "link_GBps", "host",       "launch_us", "local",
                                            "ring", "nvls", "direct",    "provenance", "like",      NULL};
  static const char *const between_keys[] = {
      "name", "nic_GBps", "nic_us", "pcie_GBps",  "node_gpus", "limit_GBps",     "launch_us",    "ring",
      "tree", "direct",   "nvls",   "provenance", "like",      "buffered_sends", "tuner_nic_us", NULL};
  const char *name;
  PL_TRY(pl_profile_check_keys(document, node, inside ? inside_keys : between_keys, error));
  PL_TRY(pl_node_name(document, node, "name", &name, error));
  wiring->name = pl_arena_strdup(arena, name);
  if (wiring->name == NULL) return pl_fail_memory(error, "a collective profile");
  PL_TRY(read_remark(document, node, "like", arena, &wiring->like, error));
  PL_TRY(read_remark(document, node, "provenance", arena, &wiring->provenance, error));
  PL_TRY(read_match(document, node, inside, wiring, error));
  PL_TRY(read_number(document, node, "launch_us", 0, 1e6, &wiring->launch_us, error));
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++) {
    const pl_node *costs = pl_node_get(node, pl_tuned_names[algorithm]);
    if (costs != NULL) PL_TRY(read_algorithm(document, costs, (pl_tuned)algorithm, wiring, error));
  }
  static const pl_tuned needed[] = {PL_TUNED_RING, PL_TUNED_DIRECT};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!wiring->cost[needed[i]][PL_PROTOCOL_SIMPLE].known)
      return pl_document_fail(document, node, error, "'%s' has no %s with the protocol Simple", name,
                              pl_tuned_names[needed[i]]);
  return PL_OK;
}

static pl_code read_list(const pl_document *document, const pl_node *root, const char *key, pl_arena *arena,
                         const pl_wiring **list, uint32_t *n, pl_error *error) {
  const pl_node *node = pl_node_get(root, key);
  if (node == NULL) return pl_document_fail(document, root, error, "the key '%s' is missing", key);
  if (!pl_node_is_sequence(node)) return pl_document_fail(document, node, error, "'%s' must be a list", key);
  *n = (uint32_t)pl_node_count(node);
  pl_wiring *wirings = PL_TAKE(arena, pl_wiring, *n);
  if (wirings == NULL && *n > 0) return pl_fail_memory(error, "a collective profile");
  for (uint32_t i = 0; i < *n; i++)
    PL_TRY(read_wiring(document, pl_node_at(node, i), strcmp(key, "inside") == 0, arena, &wirings[i], error));
  *list = wirings;
  return PL_OK;
}

static pl_code read_profile(const pl_document *document, const char *path, pl_arena *arena,
                            pl_collective_profile *profile, pl_error *error) {
  static const char *const known[] = {"library", "provenance", "inside", "between", NULL};
  const pl_node *root = pl_document_root(document);
  *profile = (pl_collective_profile){.digest = pl_document_digest(document), .path = pl_arena_strdup(arena, path)};
  if (profile->path == NULL) return pl_fail_memory(error, "a collective profile");
  PL_TRY(pl_profile_check_keys(document, root, known, error));
  if (pl_node_get(root, "library") == NULL)
    return pl_document_fail(document, root, error, "the key 'library' is missing, e.g. \"NCCL\"");
  PL_TRY(read_remark(document, root, "library", arena, &profile->library, error));
  PL_TRY(read_remark(document, root, "provenance", arena, &profile->provenance, error));
  PL_TRY(read_list(document, root, "inside", arena, &profile->inside, &profile->n_inside, error));
  return read_list(document, root, "between", arena, &profile->between, &profile->n_between, error);
}

pl_code pl_collective_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                    pl_collective_profile *profile, pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_parse(name, text, size, true, &document, error));
  pl_code code = read_profile(document, name, arena, profile, error);
  pl_document_destroy(document);
  return code;
}

pl_code pl_collective_profile_load(const char *path, pl_arena *arena, pl_collective_profile *profile, pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_load(path, &document, error));
  pl_code code = read_profile(document, path, arena, profile, error);
  pl_document_destroy(document);
  return code;
}

pl_code pl_collective_profile_path(const char *choice, const char *platform_path, pl_arena *arena, const char **path,
                                   pl_error *error) {
  *path = choice;
  if (choice != NULL) {
    if (strcmp(choice, "ideal") == 0) *path = NULL;
    return PL_OK;
  }
  const char *slash = strrchr(platform_path, '/');
  int length = slash != NULL ? (int)(slash - platform_path) + 1 : 0;
  bool is_file = slash != NULL || access(platform_path, F_OK) == 0;
  *path = pl_arena_printf(arena, "%.*scollectives/nccl.json", length, platform_path);
  if (*path != NULL && (!is_file || access(*path, F_OK) != 0))
    return pl_data_find("platforms/collectives/nccl.json", arena, path, error);
  return *path != NULL ? PL_OK : pl_fail_memory(error, "the name of the collective profile");
}

/* ---- matching ---- */

static bool within(double value, double least, double most) {
  return value >= least && value <= most;
}

static bool matches_inside(const pl_wiring *wiring, const pl_wiring_facts *facts) {
  bool nvlink = facts->nvlink_GBps > 0;
  double link_GBps = nvlink ? facts->nvlink_GBps : facts->pcie_GBps;
  if (wiring->host && !facts->host) return false;
  return wiring->nvlink == nvlink && link_GBps > 0 && within(link_GBps, wiring->least_GBps, wiring->most_GBps);
}

static bool matches_between(const pl_wiring *wiring, const pl_wiring_facts *facts) {
  if (facts->pcie_GBps > 0 && !within(facts->pcie_GBps, wiring->least_pcie_GBps, wiring->most_pcie_GBps)) return false;
  if (!within(facts->node_gpus, wiring->least_gpus, wiring->most_gpus)) return false;
  return facts->nic_GBps > 0 && within(facts->nic_GBps, wiring->least_GBps, wiring->most_GBps) &&
         within(facts->nic_us, wiring->least_us, wiring->most_us);
}

void pl_collective_profile_match(const pl_collective_profile *profile, const pl_wiring_facts *facts,
                                 const pl_wiring **inside, const pl_wiring **between) {
  *inside = *between = NULL;
  for (uint32_t i = 0; i < profile->n_inside && facts->inside && *inside == NULL; i++)
    if (matches_inside(&profile->inside[i], facts)) *inside = &profile->inside[i];
  for (uint32_t i = 0; i < profile->n_between && facts->between && *between == NULL; i++)
    if (matches_between(&profile->between[i], facts)) *between = &profile->between[i];
}

/* ---- pricing ---- */

/* What one level charges. Inside nodes a tree is a chain of ring steps. */
static const pl_protocol_cost *cost_at(const pl_wiring *wiring, bool inside, pl_tuned algorithm, pl_protocol protocol) {
  static const pl_protocol_cost nothing = {.known = true, .rate = 1};
  if (wiring == NULL) return &nothing;
  return &wiring->cost[inside && algorithm == PL_TUNED_TREE ? PL_TUNED_RING : algorithm][protocol];
}

/* NCCL's ring goes round piece by piece: in each channel a member begins its next piece when it has the last of the
 * round before, and what it has received it hands on slice by slice. A piece is half of the channel's buffer of 4 MiB,
 * in two slices (src/include/collectives.h: CHUNKSTEPS NCCL_STEPS / 2, SLICESTEPS NCCL_STEPS / 4;
 * src/device/all_gather.h, all_reduce.h). A round takes as long as its pieces occupy the wire, or as its first slice
 * needs to come round: the latencies of all hops, and on each hop between nodes the slice itself. The difference is
 * time in which the wire idles. What the wires of one machine room add is far below a slice's time: there it is 0. */
static double idle_us_of(const pl_tuned_work *work, double wire_us) {
  static const double piece_bytes = 2097152, n_slices = 2;
  double rounds = work->round_bytes / piece_bytes;
  if (rounds <= 1) return 0;
  double round_us = wire_us / rounds, steps = work->inside_steps + work->between_steps;
  double coming_us = work->latency_us + round_us * work->between_steps / steps / n_slices;
  return (rounds - 1) * fmax(0, coming_us - round_us);
}

/* What one kind of nodes adds to a work: microseconds. */
typedef struct kind_time {
  double start, inside, between, wire, ramp, local;
} kind_time;

static bool time_kind(const pl_tuned_kind *kind, pl_tuned algorithm, pl_protocol protocol, kind_time *time) {
  const pl_protocol_cost *in = cost_at(kind->inside, true, algorithm, protocol),
                         *out = cost_at(kind->between, false, algorithm, protocol);
  double factor = pl_protocol_factor(protocol);
  double inside_us = kind->inside_us * factor / in->rate;
  double nic_us = kind->nic_GBps > 0 ? kind->nic_us * kind->nic_GBps / kind->between->limit_GBps : 0;
  double between_us = fmax(kind->between_us / out->rate, nic_us) * factor;
  *time = (kind_time){.start = kind->between->launch_us + out->start_us,
                      .inside = kind->inside_steps * in->step_us,
                      .between = kind->between_steps * out->step_us,
                      .wire = fmax(inside_us, between_us),
                      .ramp = inside_us >= between_us ? in->ramp : out->ramp,
                      .local = kind->inside != NULL ? kind->inside->local * kind->local_us : 0};
  return in->known && out->known;
}

/* A ring passes all nodes, each with the steps of its own wiring, and moves at the pace of the slowest of them; in
 * trees and direct exchanges the slowest nodes are the way that counts. */
static pl_tuned_time time_of_kinds(const pl_tuned_work *work, pl_protocol protocol) {
  pl_tuned_time never = {.protocol = protocol, .latency_us = INFINITY, .transfer_us = INFINITY};
  bool adds = work->algorithm == PL_TUNED_RING;
  kind_time all = {.wire = -1};
  double steps_us = 0;
  for (uint32_t k = 0; k < work->n_kinds; k++) {
    kind_time own;
    if (!time_kind(&work->kinds[k], work->algorithm, protocol, &own)) return never;
    all.start = fmax(all.start, own.start);
    steps_us = adds ? steps_us + own.inside + own.between : fmax(steps_us, own.inside + own.between);
    all.local = fmax(all.local, own.local);
    if (own.wire > all.wire) {
      all.wire = own.wire;
      all.ramp = own.ramp;
    }
  }
  return (pl_tuned_time){.protocol = protocol,
                         .latency_us = all.start + work->latency_us + steps_us + idle_us_of(work, all.wire),
                         .transfer_us = all.wire + all.ramp * sqrt(all.wire) + all.local};
}

pl_tuned_time pl_tuned_time_under(const pl_wiring *inside, const pl_wiring *between, const pl_tuned_work *work,
                                  pl_protocol protocol) {
  if (work->n_kinds > 0) return time_of_kinds(work, protocol);
  pl_tuned_time time = {.protocol = protocol, .latency_us = INFINITY, .transfer_us = INFINITY};
  const pl_wiring *outer = between != NULL ? between : inside;
  const pl_protocol_cost *in = cost_at(inside, true, work->algorithm, protocol),
                         *out = cost_at(between, false, work->algorithm, protocol);
  if (!in->known || !out->known) return time;
  const pl_protocol_cost *first = between != NULL ? out : in;
  double inside_us = work->inside_us * pl_protocol_factor(protocol) / in->rate;
  /* What bounds a NIC slows its own crossing, not that of a slower link on the way to it. */
  double nic_us = between != NULL && work->nic_GBps > 0 ? work->nic_us * work->nic_GBps / between->limit_GBps : 0;
  double between_us = fmax(work->between_us / out->rate, nic_us) * pl_protocol_factor(protocol);
  bool slower_inside = inside_us >= between_us;
  double wire_us = slower_inside ? inside_us : between_us, ramp = slower_inside ? in->ramp : out->ramp;
  time.latency_us = outer->launch_us + first->start_us + work->latency_us + work->inside_steps * in->step_us +
                    work->between_steps * out->step_us + idle_us_of(work, wire_us);
  time.transfer_us = wire_us + ramp * sqrt(wire_us) + (inside != NULL ? inside->local * work->local_us : 0);
  return time;
}

pl_tuned_time pl_tuned_time_of(const pl_wiring *inside, const pl_wiring *between, const pl_tuned_work *work) {
  pl_tuned_time best = {.latency_us = INFINITY, .transfer_us = INFINITY};
  if (inside == NULL && between == NULL) return best;
  for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++) {
    pl_tuned_time time = pl_tuned_time_under(inside, between, work, (pl_protocol)protocol);
    if (time.latency_us + time.transfer_us < best.latency_us + best.transfer_us) best = time;
  }
  return best;
}
