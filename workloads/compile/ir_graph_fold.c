/* See workloads/compile/ir_graph_state.h: one device of each class of interchangeable ones.
 *
 * What a program's devices ask of the network is known before its graph is made: a run of the lists on one device alone
 * notes which collectives there are (axes, kind, bytes). All their groups over all devices are the transfers of a fold
 * (netmodel/fold/fold.h); the graph is then made of one device per class, with the quotient's links and weights, and
 * has the same dates as that of all. Where messages are sent, or data go to hosts, or few devices are alike, nothing is
 * folded.
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

enum { CLASSES_MAX = 64 };

static pl_ir_pattern *find(const pl_ir_folding *fold, const pl_ir_meeting *meeting) {
  for (uint32_t i = 0; i < fold->n_patterns; i++) {
    pl_ir_pattern *at = &fold->patterns[i];
    if (at->axes == meeting->axes && at->kind == meeting->kind && at->bytes == meeting->bytes) return at;
  }
  return NULL;
}

/* ---- the run on one device ---- */

static pl_code record(pl_ir_graphing *own, const pl_ir_meeting *meeting, pl_ir_arrival *output) {
  pl_ir_folding *fold = own->fold;
  if (find(fold, meeting) == NULL) {
    fold->patterns = (pl_ir_pattern *)pl_arena_grown(fold->arena, fold->patterns, fold->n_patterns, 1,
                                                     sizeof *fold->patterns, &fold->room_patterns);
    if (fold->patterns == NULL) return pl_ir_graph_no_memory(own);
    fold->patterns[fold->n_patterns++] =
        (pl_ir_pattern){.axes = meeting->axes, .kind = meeting->kind, .bytes = meeting->bytes};
  }
  output->tasks = PL_TAKE(own->arena, uint32_t, 1);
  if (output->tasks == NULL) return pl_ir_graph_no_memory(own);
  output->tasks[0] = pl_graph_builder_delay(own->builder, 0, meeting->category, NULL, 0, PL_NONE, own->microbatch);
  return PL_OK;
}

/* ---- the fold ---- */

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static uint64_t colour_of(const pl_transfer_spec *spec, uint32_t pattern, double progress) {
  uint64_t colour = pl_hash_word(pl_hash_word(11, pattern), bits_of(progress));
  colour = pl_hash_word(pl_hash_word(colour, bits_of(spec->rate_cap_Bps)), bits_of(spec->share_weight));
  return pl_hash_word(colour, (uint64_t)spec->latency);
}

/* The groups of all patterns, and what each asks of the network. */
static pl_code take_groups(pl_ir_graphing *own, uint32_t *n_members) {
  pl_ir_folding *fold = own->fold;
  uint32_t n = fold->whole.n_devices;
  *n_members = fold->n_transfers = 0;
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    pl_ir_pattern *at = &fold->patterns[p];
    at->groups = pl_ir_graph_groups_over(own, at->axes);
    if (at->groups == NULL) return pl_ir_graph_no_memory(own);
    at->first = fold->n_transfers;
    fold->n_transfers += n / at->groups->size;
    *n_members += n;
  }
  fold->specs = PL_TAKE(fold->arena, uint32_t, fold->n_transfers + 1);
  fold->progress_bytes = PL_TAKE(fold->arena, double, fold->n_transfers + 1);
  if (fold->specs == NULL || fold->progress_bytes == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    pl_ir_pattern *at = &fold->patterns[p];
    at->group_of = PL_TAKE(fold->arena, uint32_t, n + 1);
    if (at->group_of == NULL) return pl_ir_graph_no_memory(own);
    for (uint32_t i = 0; i < n; i++)
      at->group_of[at->groups->members[i]] = i / at->groups->size;
    for (uint32_t g = 0; g < n / at->groups->size; g++) /* members of a single class are their own numbers */
      PL_TRY(pl_ir_transfers_collective(&own->transfers, at->kind, &at->groups->members[g * at->groups->size],
                                        at->groups->size, at->bytes, &fold->specs[at->first + g],
                                        &fold->progress_bytes[at->first + g], own->error));
  }
  return PL_OK;
}

static pl_code refine(pl_ir_graphing *own, uint32_t n_members) {
  pl_ir_folding *fold = own->fold;
  pl_arena *arena = fold->arena;
  const pl_cluster *cluster = own->cluster;
  uint32_t n = fold->whole.n_devices, n_uses = 0, member = 0, use = 0;
  for (uint32_t t = 0; t < fold->n_transfers; t++)
    n_uses += own->transfers.specs[fold->specs[t]].n_uses;
  pl_fold_transfer *transfers = PL_TAKE(arena, pl_fold_transfer, fold->n_transfers + 1);
  pl_fold_member *members = PL_TAKE(arena, pl_fold_member, n_members + 1);
  pl_link_use *uses = PL_TAKE(arena, pl_link_use, n_uses + 1);
  uint64_t *devices = PL_TAKE(arena, uint64_t, n), *links = PL_TAKE(arena, uint64_t, cluster->n_links + 1);
  double *capacity = PL_TAKE(arena, double, cluster->n_links + 1);
  if (arena->failed) return pl_ir_graph_no_memory(own);
  for (uint32_t d = 0; d < n; d++)
    devices[d] = pl_hash_word(3, cluster->devices[own->places[d]].profile);
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    capacity[l] = cluster->links[l].capacity_Bps;
    links[l] = pl_hash_word(bits_of(capacity[l]), cluster->links[l].policy);
  }
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    const pl_ir_pattern *at = &fold->patterns[p];
    for (uint32_t g = 0; g < n / at->groups->size; g++) {
      const pl_transfer_spec *spec = &own->transfers.specs[fold->specs[at->first + g]];
      transfers[at->first + g] = (pl_fold_transfer){.colour = colour_of(spec, p, fold->progress_bytes[at->first + g]),
                                                    .first_member = member,
                                                    .n_members = at->groups->size,
                                                    .first_use = use,
                                                    .n_uses = spec->n_uses};
      for (uint32_t i = 0; i < at->groups->size; i++)
        members[member++] = (pl_fold_member){at->groups->members[g * at->groups->size + i], 0};
      for (uint32_t i = 0; i < spec->n_uses; i++)
        uses[use++] = own->transfers.uses[spec->first_use + i];
    }
  }
  pl_fold_problem problem = {.n_devices = n,
                             .n_links = cluster->n_links,
                             .n_transfers = fold->n_transfers,
                             .device_colour = devices,
                             .link_colour = links,
                             .transfers = transfers,
                             .members = members,
                             .uses = uses};
  return pl_folding_take(&problem, transfers, uses, capacity, arena, &fold->folding, own->error);
}

/* One spec for each class of transfers, over classes of links. */
static pl_code take_table(pl_ir_graphing *own) {
  pl_ir_folding *fold = own->fold;
  const pl_quotient *quotient = &fold->folding.quotient;
  pl_transfer_spec *specs = PL_TAKE(fold->arena, pl_transfer_spec, quotient->n_transfers + 1);
  pl_ir_sent *sent = PL_TAKE(fold->arena, pl_ir_sent, quotient->n_transfers + 1);
  fold->table = PL_TAKE(fold->arena, pl_transfer_table, 1);
  if (specs == NULL || sent == NULL || fold->table == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t c = 0; c < quotient->n_transfers; c++) {
    const pl_quotient_transfer *class = &quotient->transfers[c];
    uint32_t spec = fold->specs[fold->folding.fold.transfers.first[c]];
    sent[c] = own->transfers.sent[spec];
    specs[c] = own->transfers.specs[spec];
    specs[c].first_use = class->first_use;
    specs[c].n_uses = class->n_uses;
    if (class->rate_cap_Bps < specs[c].rate_cap_Bps) specs[c].rate_cap_Bps = class->rate_cap_Bps;
  }
  fold->sent = sent;
  *fold->table = (pl_transfer_table){.link_capacity_Bps = quotient->link_capacity_Bps,
                                     .link_policy = quotient->link_policy,
                                     .n_links = quotient->n_links,
                                     .specs = specs,
                                     .n_specs = quotient->n_transfers,
                                     .uses = quotient->uses,
                                     .n_uses = quotient->n_uses};
  return PL_OK;
}

pl_code pl_ir_graph_fold(pl_ir_graphing *own, bool *folds) {
  pl_ir_folding *fold = own->fold;
  uint32_t n_members, n = fold->whole.n_devices;
  PL_TRY(take_groups(own, &n_members));
  PL_TRY(refine(own, n_members));
  const pl_partition *classes = &fold->folding.fold.devices;
  *folds = classes->n_classes <= CLASSES_MAX && 2 * classes->n_classes <= n;
  if (!*folds) return PL_OK;
  fold->is_recording = false;
  return take_table(own);
}

/* ---- the graph of one device per class ---- */

pl_code pl_ir_graph_meet_folded(pl_ir_graphing *own, const pl_ir_meeting *meeting, const uint32_t *after,
                                const pl_ir_arrival *input, pl_ir_arrival *output) {
  const pl_ir_folding *fold = own->fold;
  const pl_ir_crew *crew = own->now;
  if (fold->is_recording) return record(own, meeting, output);
  const pl_ir_pattern *at = find(fold, meeting);
  PL_ASSERT(at != NULL && crew->n_devices <= CLASSES_MAX); /* the same lists as when they were noted */
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, crew->n_devices), streams[CLASSES_MAX];
  if (tasks == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t d = 0; d < crew->n_devices; d++)
    tasks[d] = PL_NONE;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    uint32_t class = fold->folding.fold.transfers.class_of[at->first + at->group_of[crew->devices[d]]], n = 0;
    if (tasks[d] != PL_NONE) continue;
    for (uint32_t e = d; e < crew->n_devices; e++)
      if (fold->folding.fold.transfers.class_of[at->first + at->group_of[crew->devices[e]]] == class)
        streams[n++] = pl_graph_builder_stream(own->builder, e, meeting->stream);
    double progress_bytes = fold->progress_bytes[fold->folding.fold.transfers.first[class]];
    uint32_t task = pl_graph_builder_transfer(own->builder, class, progress_bytes, meeting->category, streams, n,
                                              PL_NONE, own->microbatch);
    for (uint32_t e = d; e < crew->n_devices; e++) {
      if (fold->folding.fold.transfers.class_of[at->first + at->group_of[crew->devices[e]]] != class) continue;
      tasks[e] = task;
      if (after[e] != PL_NONE) pl_graph_builder_edge(own->builder, after[e], task);
      if (input != NULL && input->tasks != NULL) pl_graph_builder_edge(own->builder, input->tasks[e], task);
    }
  }
  own->made->n_collectives += fold->whole.n_devices / at->groups->size * own->times;
  output->tasks = tasks;
  return PL_OK;
}
