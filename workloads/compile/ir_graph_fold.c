/* See workloads/compile/ir_graph_state.h: one device of each class of interchangeable ones.
 *
 * What a program's devices ask of the network is known before its graph is made: what steps do has been noted
 * (ir_graph_pass.c). All their collectives, messages and sums over all devices are the transfers of a
 * fold (netmodel/fold/fold.h); the graph is then made of one device per class, with the quotient's links and weights,
 * and has the same dates as that of all. Where something moves otherwise, or data go to hosts, or few devices are
 * alike, nothing is folded.
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

enum { CLASSES_MAX = 256 };

static bool same_classes(const pl_ir_attribute *a, const pl_ir_attribute *b) {
  if (a == NULL || b == NULL) return a == b;
  if (a->n_names != b->n_names) return false;
  for (int32_t i = 0; i < a->n_names; i++)
    if (!pl_ir_name_equal(a->names[i], b->names[i])) return false;
  return true;
}

static pl_ir_pattern *find(const pl_ir_folding *fold, const pl_ir_pattern *pattern) {
  for (uint32_t i = 0; i < fold->n_patterns; i++) {
    pl_ir_pattern *at = &fold->patterns[i];
    if (at->class != pattern->class && at->classes == NULL) continue; /* as most of them */
    if (at->from == pattern->from && at->axes == pattern->axes && at->kind == pattern->kind &&
        at->of_tokens == pattern->of_tokens && at->bytes == pattern->bytes &&
        same_classes(at->classes, pattern->classes))
      return at;
  }
  return NULL;
}

static int32_t class_of_crew(const pl_ir_graphing *own, const pl_ir_crew *crew) {
  return (int32_t)(crew - own->crews);
}

static pl_ir_pattern pattern_of_meeting(const pl_ir_graphing *own, const pl_ir_meeting *meeting) {
  return (pl_ir_pattern){.class = class_of_crew(own, own->now),
                         .from = PL_IR_NONE,
                         .axes = meeting->axes,
                         .kind = meeting->kind,
                         .of_tokens = meeting->of_tokens,
                         .bytes = meeting->bytes};
}

pl_ir_crew *pl_ir_graph_whole_crew(const pl_ir_graphing *own) {
  return &own->fold->whole[class_of_crew(own, own->now)];
}

/* ---- what lists do together ---- */

static bool note(pl_ir_folding *fold, const pl_ir_pattern *pattern, uint32_t *index) {
  const pl_ir_pattern *known = find(fold, pattern);
  *index = 1 + (known != NULL ? (uint32_t)(known - fold->patterns) : fold->n_patterns);
  if (known != NULL) return true;
  fold->patterns = (pl_ir_pattern *)pl_arena_grown(fold->arena, fold->patterns, fold->n_patterns, 1,
                                                   sizeof *fold->patterns, &fold->room_patterns);
  if (fold->patterns == NULL) return false;
  fold->patterns[fold->n_patterns++] = *pattern;
  return true;
}

static pl_ir_pattern pattern_of_message(const pl_ir_message *message, double bytes) {
  return (pl_ir_pattern){.class = message->to, .from = message->from, .kind = PL_SEND, .bytes = bytes};
}

static pl_ir_pattern pattern_of_sum(const pl_ir_graphing *own, const pl_ir_act *act) {
  return (pl_ir_pattern){.class = class_of_crew(own, own->now),
                         .from = PL_IR_NONE,
                         .classes = act->classes,
                         .kind = PL_ALL_REDUCE,
                         .bytes = act->bytes};
}

/* False: it asks nothing of the network. */
static bool pattern_of_act(const pl_ir_graphing *own, const pl_ir_act *act, pl_ir_pattern *pattern) {
  switch (act->kind) {
  case PL_IR_ACT_MEET:
    *pattern = pattern_of_meeting(own, &act->meeting);
    return true;
  case PL_IR_ACT_SEND:
  case PL_IR_ACT_RECEIVE:
    *pattern = pattern_of_message(act->message, act->bytes);
    return true;
  case PL_IR_ACT_SUM:
    *pattern = pattern_of_sum(own, act);
    return true;
  default:
    return false;
  }
}

static bool note_act(pl_ir_graphing *own, pl_ir_act *act) {
  pl_ir_pattern pattern;
  return !pattern_of_act(own, act, &pattern) || note(own->fold, &pattern, &act->pattern);
}

static bool note_acts(pl_ir_graphing *own) {
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    const pl_ir_passes *passes = &own->passes[c];
    own->now = &own->crews[c];
    for (int32_t i = 0; i < passes->n_noted; i++)
      for (uint32_t k = 0; k < passes->steps[passes->noted[i]].n_acts; k++)
        if (!note_act(own, &passes->steps[passes->noted[i]].acts[k])) return false;
  }
  return true;
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

/* Transfers of a pattern, as lists of members. */
typedef struct listing {
  pl_ir_graphing *own;
  pl_fold_member *members;
  uint32_t *first_member; /* per transfer, and the end */
  uint32_t n_members, n_transfers;
} listing;

static const pl_ir_crew *whole_named(const pl_ir_graphing *own, const char *name) {
  for (int32_t c = 0; c < own->module->n_classes; c++)
    if (strcmp(own->module->classes[c].name, name) == 0) return &own->fold->whole[c];
  return NULL;
}

/* The most members that a pattern's transfers have together. */
static uint32_t room_of(const pl_ir_folding *fold, const pl_ir_pattern *pattern) {
  uint32_t n = fold->whole[pattern->class].n_devices;
  return pattern->classes != NULL ? n * (uint32_t)pattern->classes->n_names : pattern->from != PL_IR_NONE ? 2 * n : n;
}

static void add_member(listing *to, pl_ir_pattern *pattern, uint32_t device, uint32_t role) {
  to->members[to->n_members++] = (pl_fold_member){device, role};
  if (pattern->from == PL_IR_NONE || role == 1) pattern->transfer_of[device] = to->n_transfers;
}

static void end_transfer(listing *to) {
  to->first_member[++to->n_transfers] = to->n_members;
}

static bool list_collectives(listing *to, pl_ir_pattern *pattern) {
  const pl_ir_crew *whole = &to->own->fold->whole[pattern->class];
  to->own->now = &to->own->crews[pattern->class];
  const pl_ir_groups *groups = pl_ir_graph_groups_over(to->own, pattern->axes);
  if (groups == NULL) return false;
  for (uint32_t first = 0; first < whole->n_devices; first += groups->size) {
    for (uint32_t i = 0; i < groups->size; i++)
      add_member(to, pattern, whole->devices[groups->members[first + i]], 0);
    end_transfer(to);
  }
  return true;
}

static void list_messages(listing *to, pl_ir_pattern *pattern) {
  const pl_ir_module *module = to->own->module;
  const pl_ir_crew *whole = &to->own->fold->whole[pattern->class];
  for (uint32_t d = 0; d < whole->n_devices; d++) {
    uint32_t sender = pl_ir_class_partner(module, &module->classes[pattern->from], whole->devices[d]);
    if (sender == whole->devices[d]) continue;
    add_member(to, pattern, sender, 0);
    add_member(to, pattern, whole->devices[d], 1);
    end_transfer(to);
  }
}

static void list_sums(listing *to, pl_ir_pattern *pattern) {
  for (uint32_t d = 0; d < to->own->fold->whole[pattern->class].n_devices; d++) {
    for (int32_t i = 0; i < pattern->classes->n_names; i++)
      add_member(to, pattern, whole_named(to->own, pattern->classes->names[i].text)->devices[d], 0);
    end_transfer(to);
  }
}

static pl_code list_transfers(listing *to) {
  pl_ir_graphing *own = to->own;
  pl_ir_folding *fold = own->fold;
  uint32_t n_mesh = pl_ir_mesh_devices(&own->module->mesh), n_members = 0;
  for (uint32_t p = 0; p < fold->n_patterns; p++)
    n_members += room_of(fold, &fold->patterns[p]);
  to->members = pl_arena_take(fold->arena, (n_members + 1) * sizeof *to->members, _Alignof(pl_fold_member));
  to->first_member = pl_arena_take(fold->arena, (n_members + 1) * sizeof *to->first_member, _Alignof(uint32_t));
  if (to->members == NULL || to->first_member == NULL) return pl_ir_graph_no_memory(own);
  to->first_member[0] = 0; /* no transfer is without members */
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    pl_ir_pattern *at = &fold->patterns[p];
    at->first = to->n_transfers;
    at->transfer_of = pl_arena_take(fold->arena, n_mesh * sizeof *at->transfer_of, _Alignof(uint32_t));
    if (at->transfer_of == NULL) return pl_ir_graph_no_memory(own);
    memset(at->transfer_of, 0xff, n_mesh * sizeof *at->transfer_of); /* PL_NONE */
    if (at->classes != NULL)
      list_sums(to, at);
    else if (at->from != PL_IR_NONE)
      list_messages(to, at);
    else if (!list_collectives(to, at))
      return pl_ir_graph_no_memory(own);
    at->n_transfers = to->n_transfers - at->first;
  }
  return PL_OK;
}

/* What each transfer asks of the network. */
static pl_code take_specs(pl_ir_graphing *own, const listing *of) {
  pl_ir_folding *fold = own->fold;
  uint32_t most = pl_ir_mesh_devices(&own->module->mesh);
  uint32_t *devices = PL_TAKE(fold->arena, uint32_t, most + 1);
  fold->n_transfers = of->n_transfers;
  fold->specs = pl_arena_take(fold->arena, (fold->n_transfers + 1) * sizeof *fold->specs, _Alignof(uint32_t));
  fold->progress_bytes =
      pl_arena_take(fold->arena, (fold->n_transfers + 1) * sizeof *fold->progress_bytes, _Alignof(double));
  if (devices == NULL || fold->specs == NULL || fold->progress_bytes == NULL ||
      !pl_ir_transfers_expect(&own->transfers, fold->n_transfers))
    return pl_ir_graph_no_memory(own);
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    const pl_ir_pattern *at = &fold->patterns[p];
    for (uint32_t t = at->first; t < at->first + at->n_transfers; t++) {
      uint32_t n = of->first_member[t + 1] - of->first_member[t];
      for (uint32_t i = 0; i < n; i++)
        devices[i] = of->members[of->first_member[t] + i].device;
      double bytes = pl_ir_transfers_bytes(&own->transfers, at->of_tokens, devices, n, at->bytes);
      PL_TRY(pl_ir_transfers_collective(&own->transfers, at->kind, devices, n, bytes, &fold->specs[t],
                                        &fold->progress_bytes[t], own->error));
    }
  }
  return PL_OK;
}

static void colour_devices(const pl_ir_graphing *own, uint64_t *devices) {
  const uint32_t *marks = own->options->marks;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    for (uint32_t d = 0; d < own->fold->whole[c].n_devices; d++) {
      uint32_t device = own->fold->whole[c].devices[d], place = own->places[device];
      devices[device] = pl_hash_word(pl_hash_word(3, (uint64_t)c), own->cluster->devices[place].profile);
      if (marks != NULL) devices[device] = pl_hash_word(devices[device], marks[place]);
    }
}

static pl_code refine(pl_ir_graphing *own, const listing *of) {
  pl_ir_folding *fold = own->fold;
  pl_arena *arena = fold->arena;
  const pl_cluster *cluster = own->cluster;
  uint32_t n = pl_ir_mesh_devices(&own->module->mesh), n_uses = 0, use = 0;
  for (uint32_t t = 0; t < fold->n_transfers; t++)
    n_uses += own->transfers.specs[fold->specs[t]].n_uses;
  pl_fold_transfer *transfers =
      pl_arena_take(arena, (fold->n_transfers + 1) * sizeof *transfers, _Alignof(pl_fold_transfer));
  pl_link_use *uses = pl_arena_take(arena, (n_uses + 1) * sizeof *uses, _Alignof(pl_link_use));
  uint64_t *devices = PL_TAKE(arena, uint64_t, n), *links = PL_TAKE(arena, uint64_t, cluster->n_links + 1);
  double *capacity = PL_TAKE(arena, double, cluster->n_links + 1);
  if (arena->failed) return pl_ir_graph_no_memory(own);
  colour_devices(own, devices);
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    capacity[l] = cluster->links[l].capacity_Bps;
    links[l] = pl_hash_word(bits_of(capacity[l]), cluster->links[l].policy);
  }
  for (uint32_t p = 0; p < fold->n_patterns; p++) {
    const pl_ir_pattern *at = &fold->patterns[p];
    for (uint32_t t = at->first; t < at->first + at->n_transfers; t++) {
      const pl_transfer_spec *spec = &own->transfers.specs[fold->specs[t]];
      transfers[t] = (pl_fold_transfer){.colour = colour_of(spec, p, fold->progress_bytes[t]),
                                        .first_member = of->first_member[t],
                                        .n_members = of->first_member[t + 1] - of->first_member[t],
                                        .first_use = use,
                                        .n_uses = spec->n_uses};
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
                             .members = of->members,
                             .uses = uses};
  return pl_folding_take(&problem, transfers, uses, capacity, arena, &fold->folding, own->error);
}

/* Which transfers join devices of one class alone. */
static bool take_members(pl_ir_folding *fold, const listing *of) {
  const pl_partition *transfers = &fold->folding.fold.transfers, *devices = &fold->folding.fold.devices;
  fold->member_of = PL_TAKE(fold->arena, uint32_t, transfers->n_classes + 1);
  for (uint32_t c = 0; fold->member_of != NULL && c < transfers->n_classes; c++) {
    uint32_t first = of->first_member[transfers->first[c]], end = of->first_member[transfers->first[c] + 1];
    fold->member_of[c] = devices->class_of[of->members[first].device];
    for (uint32_t i = first; i < end; i++)
      if (devices->class_of[of->members[i].device] != fold->member_of[c]) fold->member_of[c] = PL_NONE;
  }
  return fold->member_of != NULL;
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
    sent[c].n_alike = fold->folding.fold.transfers.size[c];
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
  listing all = {.own = own};
  if (!note_acts(own)) return pl_ir_graph_no_memory(own);
  PL_TRY(list_transfers(&all));
  PL_TRY(take_specs(own, &all));
  PL_TRY(refine(own, &all));
  const pl_partition *classes = &fold->folding.fold.devices;
  *folds = classes->n_classes <= CLASSES_MAX && 2 * classes->n_classes <= pl_ir_mesh_devices(&own->module->mesh);
  if (*folds && !take_members(fold, &all)) return pl_ir_graph_no_memory(own);
  return *folds ? take_table(own) : PL_OK;
}

/* ---- the graph of one device per class ---- */

const pl_ir_pattern *pl_ir_graph_pattern(const pl_ir_graphing *own, const pl_ir_act *act) {
  if (act->pattern > 0) return &own->fold->patterns[act->pattern - 1];
  pl_ir_pattern pattern;
  const pl_ir_pattern *at = pattern_of_act(own, act, &pattern) ? find(own->fold, &pattern) : NULL;
  PL_ASSERT(at != NULL); /* the same passes as when they were noted */
  return at;
}

uint32_t pl_ir_graph_class_of_transfer(const pl_ir_graphing *own, const pl_ir_pattern *pattern, uint32_t device) {
  uint32_t transfer = pattern->transfer_of[device];
  return transfer == PL_NONE ? PL_NONE : own->fold->folding.fold.transfers.class_of[transfer];
}

double pl_ir_graph_progress_of_class(const pl_ir_graphing *own, uint32_t class) {
  return own->fold->progress_bytes[own->fold->folding.fold.transfers.first[class]];
}

pl_code pl_ir_graph_meet_folded(pl_ir_graphing *own, const pl_ir_act *act, const uint32_t *after) {
  const pl_ir_crew *crew = own->now;
  const pl_ir_meeting *meeting = &act->meeting;
  const pl_ir_pattern *at = pl_ir_graph_pattern(own, act);
  uint32_t *tasks = act->output, streams[CLASSES_MAX];
  PL_ASSERT(crew->n_devices <= CLASSES_MAX);
  for (uint32_t d = 0; d < crew->n_devices; d++)
    tasks[d] = PL_NONE;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    uint32_t class = pl_ir_graph_class_of_transfer(own, at, crew->devices[d]), n = 0;
    if (tasks[d] != PL_NONE) continue;
    for (uint32_t e = d; e < crew->n_devices; e++)
      if (pl_ir_graph_class_of_transfer(own, at, crew->devices[e]) == class)
        streams[n++] = pl_graph_builder_stream(own->builder, crew->numbers[e], meeting->stream);
    uint32_t task =
        pl_graph_builder_transfer(own->builder, class, pl_ir_graph_progress_of_class(own, class), meeting->category,
                                  streams, n, pl_ir_graph_label(own, meeting->label), own->microbatch);
    for (uint32_t e = d; e < crew->n_devices; e++) {
      if (pl_ir_graph_class_of_transfer(own, at, crew->devices[e]) != class) continue;
      tasks[e] = task;
      if (after[e] != PL_NONE) pl_graph_builder_edge(own->builder, after[e], task);
      if (act->input != NULL) pl_graph_builder_edge(own->builder, act->input[e], task);
    }
  }
  own->made->n_collectives += at->n_transfers * own->times;
  return PL_OK;
}

void pl_ir_graph_message_folded(pl_ir_graphing *own, const pl_ir_act *act, uint32_t *tasks) {
  const pl_ir_message *message = act->message;
  const pl_ir_crew *to = &own->crews[message->to];
  const pl_ir_pattern *at = pl_ir_graph_pattern(own, act);
  for (uint32_t d = 0; d < to->n_devices; d++) {
    uint32_t class = pl_ir_graph_class_of_transfer(own, at, to->devices[d]);
    tasks[d] = class == PL_NONE
                   ? PL_NONE
                   : pl_graph_builder_transfer(own->builder, class, pl_ir_graph_progress_of_class(own, class),
                                               PL_CATEGORY_PIPELINE, NULL, 0, pl_ir_graph_label(own, message->tag),
                                               own->microbatch);
  }
  own->made->n_sends += at->n_transfers * own->times;
}

uint32_t pl_ir_graph_folded_transfers(const pl_ir_graphing *own) {
  return own->fold->folding.quotient.n_transfers;
}

uint32_t pl_ir_graph_sum_folded(pl_ir_graphing *own, const pl_ir_act *act, uint32_t *known, uint32_t d) {
  const pl_ir_pattern *at = pl_ir_graph_pattern(own, act);
  uint32_t class = pl_ir_graph_class_of_transfer(own, at, own->now->devices[d]);
  PL_ASSERT(class != PL_NONE);
  if (known[class] == PL_NONE) {
    known[class] =
        pl_graph_builder_transfer(own->builder, class, pl_ir_graph_progress_of_class(own, class), PL_CATEGORY_DATA,
                                  NULL, 0, pl_ir_graph_label(own, "sum_classes"), own->microbatch);
    own->made->n_collectives += own->fold->folding.fold.transfers.size[class] * own->times;
  }
  return known[class];
}
