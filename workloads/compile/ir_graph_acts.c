/* See workloads/compile/ir_graph_state.h: what acts make of the graph, on all devices of the crew. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

pl_code pl_ir_graph_act(pl_ir_graphing *own, const pl_ir_act *act) {
  return own->noted != NULL ? pl_ir_graph_note(own, act) : pl_ir_graph_do(own, act);
}

static void depends(pl_ir_graphing *own, uint32_t task, uint32_t d, const uint32_t *input) {
  if (task == PL_NONE) return; /* whoever hears it passes over the step */
  if (own->now->last[d] != PL_NONE) pl_graph_builder_edge(own->builder, own->now->last[d], task);
  if (input != NULL) pl_graph_builder_edge(own->builder, input[d], task);
}

/* ---- work ---- */

static bool same_part(const pl_part *a, const pl_part *b) {
  return a->ticks == b->ticks && a->category == b->category && a->name == b->name && a->transfers == b->transfers &&
         a->is_crowded == b->is_crowded && a->spec == b->spec && a->size_bytes == b->size_bytes;
}

static uint64_t hash_of_parts(const pl_part *parts, uint32_t n) {
  uint64_t hash = pl_hash_word(12, n);
  for (uint32_t i = 0; i < n; i++)
    hash = pl_hash_word(hash,
                        (uint64_t)parts[i].ticks ^ (uint64_t)parts[i].category << 56 ^ (uint64_t)parts[i].name << 24);
  return hash;
}

/* A segment of the graph, and of whom names are asked where the origins of its parts are. */
typedef struct known_segment {
  uint32_t segment, first_origin;
} known_segment;

/* Parts that take as long may be of unlike kernels all the same. */
static bool is_segment(const pl_ir_graphing *own, const known_segment *of, const pl_part *parts,
                       const pl_ir_origin *const *origins, uint32_t n) {
  uint32_t n_known, at = 0;
  const pl_part *known = pl_graph_builder_parts(own->builder, of->segment, &n_known);
  while (n_known == n && at < n && same_part(&known[at], &parts[at]) &&
         (origins == NULL || own->made->origins[of->first_origin + at] == origins[at]))
    at++;
  return at == n;
}

/* Of the parts that the builder has been given. False: no memory. */
static bool add_origins(pl_ir_graphing *own, const pl_ir_origin *const *origins, uint32_t n) {
  pl_ir_graph *made = own->made;
  if (origins == NULL) return true;
  const pl_ir_origin **grown = (const pl_ir_origin **)pl_arena_grown(
      own->arena, (const void *)made->origins, own->n_origins, n, sizeof *grown, &own->room_made_origins);
  if (grown == NULL) return false;
  memcpy((void *)(grown + own->n_origins), (const void *)origins, n * sizeof *grown);
  own->n_origins += n;
  made->origins = grown;
  return true;
}

/* One that has been in the graph before, if there is: passes of a chunk compute the same, microbatch by microbatch. */
static uint32_t segment_of(pl_ir_graphing *own, const pl_part *parts, const pl_ir_origin *const *origins, uint32_t n) {
  uint64_t hash = hash_of_parts(parts, n);
  uint32_t probe = 0;
  const known_segment *known;
  while ((known = (const known_segment *)pl_hash_index_find(&own->segments, hash, &probe)) != NULL)
    if (is_segment(own, known, parts, origins, n)) return known->segment;
  known_segment *made = PL_TAKE(own->arena, known_segment, 1);
  if (made == NULL) return PL_NONE;
  *made = (known_segment){pl_graph_builder_segment(own->builder, parts, n), own->n_origins};
  if (made->segment == PL_NONE) return PL_NONE; /* the builder knows why */
  if (!add_origins(own, origins, n)) return PL_NONE;
  return pl_hash_index_put(&own->segments, hash, made, own->arena) ? made->segment : PL_NONE;
}

static const uint32_t *segments_of(pl_ir_graphing *own, pl_ir_stretch *stretch) {
  for (uint32_t i = 0; i < stretch->n_kinds && stretch->graph != own->graph; i++)
    stretch->segments[i] = segment_of(own, stretch->parts[i], stretch->origins, stretch->n_parts);
  stretch->graph = own->graph;
  return stretch->segments;
}

static void work(pl_ir_graphing *own, const pl_ir_act *act) {
  const uint32_t *segments = act->stretch != NULL ? segments_of(own, act->stretch) : NULL;
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t device = own->now->devices[d];
    if (pl_ir_graph_is_absent(own, device)) continue;
    uint32_t stream = pl_graph_builder_stream(own->builder, own->now->numbers[d], PL_STREAM_COMPUTE);
    bool is_fused = act->stretch != NULL && act->stretch->is_fused;
    uint32_t kind = is_fused ? d : own->cluster->devices[own->places[device]].profile;
    uint32_t task =
        segments != NULL
            ? pl_graph_builder_work(own->builder, segments[kind], stream, PL_NONE, PL_NONE, own->microbatch)
            : pl_graph_builder_delay(own->builder, 0, (pl_category)act->category, &stream, 1, PL_NONE, own->microbatch);
    for (uint32_t i = 0; i < act->n_awaited; i++)
      if (act->awaited[i][d] != PL_NONE) pl_graph_builder_edge(own->builder, act->awaited[i][d], task);
    own->now->last[d] = task;
  }
}

/* ---- collectives ---- */

/* One per group of devices. */
static pl_code meet(pl_ir_graphing *own, const pl_ir_act *act) {
  const pl_ir_meeting *meeting = &act->meeting;
  const uint32_t *const after_of[] = {own->now->last, own->unit, own->unit_before}, *after = after_of[act->behind];
  if (own->fold != NULL) return pl_ir_graph_meet_folded(own, act, after);
  const pl_ir_groups *groups = pl_ir_graph_groups_over(own, meeting->axes);
  uint32_t n = own->now->n_devices;
  uint32_t *streams = PL_TAKE(own->arena, uint32_t, n), *devices = PL_TAKE(own->arena, uint32_t, n);
  if (groups == NULL || own->arena->failed) return pl_ir_graph_no_memory(own);
  for (uint32_t first = 0; first < n; first += groups->size) {
    const uint32_t *members = &groups->members[first];
    if (pl_ir_graph_is_absent(own, own->now->devices[members[0]])) { /* as all of them */
      for (uint32_t i = 0; i < groups->size; i++)
        act->output[members[i]] = PL_NONE;
      continue;
    }
    for (uint32_t i = 0; i < groups->size; i++) {
      devices[i] = own->now->devices[members[i]];
      streams[i] = pl_graph_builder_stream(own->builder, devices[i], meeting->stream);
    }
    uint32_t spec;
    double progress;
    double bytes = pl_ir_transfers_bytes(&own->transfers, meeting->of_tokens, devices, groups->size, meeting->bytes);
    PL_TRY(pl_ir_transfers_collective(&own->transfers, meeting->kind, devices, groups->size, bytes, &spec, &progress,
                                      own->error));
    uint32_t task = pl_graph_builder_transfer(own->builder, spec, progress, meeting->category, streams, groups->size,
                                              pl_ir_graph_label(own, meeting->label), own->microbatch);
    for (uint32_t i = 0; i < groups->size; i++) {
      uint32_t d = members[i];
      act->output[d] = task;
      if (after[d] != PL_NONE) pl_graph_builder_edge(own->builder, after[d], task);
      if (act->input != NULL) pl_graph_builder_edge(own->builder, act->input[d], task);
    }
    own->made->n_collectives += own->times;
  }
  return PL_OK;
}

/* ---- messages ---- */

pl_ir_message *pl_ir_graph_message(pl_ir_graphing *own, const pl_ir_crew *from, const pl_ir_crew *to, const char *tag) {
  int32_t sender = (int32_t)(from - own->crews), receiver = (int32_t)(to - own->crews);
  uint64_t hash = pl_hash_text(pl_hash_word(pl_hash_word(3, (uint64_t)sender), (uint64_t)receiver), tag);
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(&own->messages, hash, &probe)) != NULL;) {
    pl_ir_message *known = (pl_ir_message *)(uintptr_t)found; /* ours */
    if (known->from == sender && known->to == receiver && strcmp(known->tag, tag) == 0) return known;
  }
  pl_ir_message *made = PL_TAKE(own->arena, pl_ir_message, 1);
  if (made == NULL) return NULL;
  *made = (pl_ir_message){.from = sender, .to = receiver, .tag = tag};
  return pl_hash_index_put(&own->messages, hash, made, own->arena) ? made : NULL;
}

/* Where the device of a crew that this one hears from stands in it. */
static uint32_t position_of(const pl_ir_graphing *own, const pl_ir_crew *in, uint32_t device) {
  uint32_t wanted = pl_ir_class_partner(own->module, in->class, device), low = 0, high = in->n_devices;
  if (own->fold != NULL) return own->fold->place_of[own->fold->folding.fold.devices.class_of[wanted]];
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    *(in->devices[middle] <= wanted ? &low : &high) = middle;
  }
  return low;
}

/* One transfer for each device that receives. */
static pl_code tell(pl_ir_graphing *own, const pl_ir_act *act, uint32_t *tasks) {
  const pl_ir_message *message = act->message;
  const pl_ir_crew *from = &own->crews[message->from], *to = &own->crews[message->to];
  if (own->fold != NULL) pl_ir_graph_message_folded(own, act, tasks);
  for (uint32_t d = 0; d < to->n_devices; d++) {
    if (own->fold != NULL && tasks[d] != PL_NONE) continue;
    tasks[d] = PL_NONE;
    if (pl_ir_graph_is_absent(own, to->devices[d])) continue;
    uint32_t pair[] = {from->devices[position_of(own, from, to->devices[d])], to->devices[d]}, spec;
    double progress;
    if (own->fold != NULL || pair[0] == pair[1]) { /* two chunks of one stage */
      tasks[d] = pl_graph_builder_delay(own->builder, 0, PL_CATEGORY_PIPELINE, NULL, 0, PL_NONE, own->microbatch);
      continue;
    }
    PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_SEND, pair, 2, act->bytes, &spec, &progress, own->error));
    tasks[d] = pl_graph_builder_transfer(own->builder, spec, progress, PL_CATEGORY_PIPELINE, NULL, 0,
                                         pl_ir_graph_label(own, message->tag), own->microbatch);
    own->made->n_sends += own->times;
  }
  return PL_OK;
}

/* Tasks of this microbatch, made if nobody has come before. */
static pl_code hear(pl_ir_graphing *own, const pl_ir_act *act, const uint32_t **tasks) {
  pl_ir_message *message = act->message;
  if (message->graph != own->graph) {
    message->tasks = PL_TAKE(own->arena, uint32_t *, (size_t)own->module->n_microbatches + 1);
    message->graph = own->graph;
  }
  if (message->tasks == NULL) return pl_ir_graph_no_memory(own);
  uint32_t **of_one = &message->tasks[own->microbatch == PL_IR_NONE ? 0 : own->microbatch + 1];
  if (*of_one == NULL) {
    *of_one = PL_TAKE(own->arena, uint32_t, own->crews[message->to].n_devices);
    if (*of_one == NULL) return pl_ir_graph_no_memory(own);
    PL_TRY(tell(own, act, *of_one));
  }
  *tasks = *of_one;
  return PL_OK;
}

static pl_code send(pl_ir_graphing *own, const pl_ir_act *act) {
  const pl_ir_crew *to = &own->crews[act->message->to];
  const uint32_t *tasks = NULL;
  PL_TRY(hear(own, act, &tasks));
  PL_ASSERT(tasks != NULL);
  for (uint32_t d = 0; d < to->n_devices; d++)
    depends(own, tasks[d], position_of(own, own->now, to->devices[d]), act->input);
  return PL_OK;
}

static pl_code receive(pl_ir_graphing *own, const pl_ir_act *act) {
  const uint32_t *tasks = NULL;
  PL_TRY(hear(own, act, &tasks));
  PL_ASSERT(tasks != NULL);
  memcpy(act->output, tasks, own->now->n_devices * sizeof *tasks);
  return PL_OK;
}

/* ---- sums over classes ---- */

/* Tasks under a key, made by whoever comes first. */
typedef struct promised {
  const char *key;
  uint32_t *tasks;
} promised;

/* *fresh: nobody had asked for them. */
static uint32_t *promise(pl_ir_graphing *own, const char *key, uint32_t n, bool *fresh) {
  uint64_t hash = pl_hash_text(3, key);
  uint32_t probe = 0;
  const promised *known;
  *fresh = false;
  while ((known = (const promised *)pl_hash_index_find(&own->promises, hash, &probe)) != NULL)
    if (strcmp(known->key, key) == 0) return known->tasks;
  promised *made = PL_TAKE(own->arena, promised, 1);
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, n);
  if (made == NULL || tasks == NULL) return NULL;
  *made = (promised){.key = key, .tasks = tasks};
  *fresh = true;
  return pl_hash_index_put(&own->promises, hash, made, own->arena) ? tasks : NULL;
}

static pl_code sum_folded(pl_ir_graphing *own, const pl_ir_act *act) {
  uint32_t n = pl_ir_graph_folded_transfers(own);
  bool fresh = false;
  uint32_t *known = promise(own, act->key, n, &fresh);
  if (known == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t t = 0; t < n && fresh; t++)
    known[t] = PL_NONE;
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    act->output[d] = pl_ir_graph_sum_folded(own, act, known, d);
    depends(own, act->output[d], d, act->input);
  }
  return PL_OK;
}

static pl_code sum(pl_ir_graphing *own, const pl_ir_act *act) {
  bool fresh;
  if (own->fold != NULL) return sum_folded(own, act);
  uint32_t *tasks = promise(own, act->key, own->now->n_devices, &fresh);
  uint32_t *members = PL_TAKE(own->arena, uint32_t, act->classes->n_names);
  if (tasks == NULL || members == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t n = 0, spec;
    double progress;
    for (int32_t i = 0; fresh && i < act->classes->n_names; i++)
      members[n++] = pl_ir_graph_crew_named(own, act->classes->names[i].text)->devices[d];
    if (fresh) {
      PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_ALL_REDUCE, members, n, act->bytes, &spec, &progress,
                                        own->error));
      tasks[d] = pl_graph_builder_transfer(own->builder, spec, progress, PL_CATEGORY_DATA, NULL, 0,
                                           pl_ir_graph_label(own, "sum_classes"), own->microbatch);
      own->made->n_collectives += own->times;
    }
    act->output[d] = tasks[d];
    depends(own, tasks[d], d, act->input);
  }
  return PL_OK;
}

/* ---- any of them ---- */

static void begin_unit(pl_ir_graphing *own) {
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    own->unit_before[d] = own->unit[d];
    own->unit[d] = own->now->last[d];
  }
}

pl_code pl_ir_graph_do(pl_ir_graphing *own, const pl_ir_act *act) {
  pl_code code = PL_OK;
  bool everybody = own->everybody;
  own->everybody = act->everybody;
  switch ((pl_ir_act_kind)act->kind) {
  case PL_IR_ACT_WORK:
    work(own, act);
    break;
  case PL_IR_ACT_MEET:
    code = meet(own, act);
    break;
  case PL_IR_ACT_SEND:
    code = send(own, act);
    break;
  case PL_IR_ACT_RECEIVE:
    code = receive(own, act);
    break;
  case PL_IR_ACT_SUM:
    code = sum(own, act);
    break;
  case PL_IR_ACT_UNIT:
    begin_unit(own);
    break;
  }
  own->everybody = everybody;
  return code;
}
