/* See workloads/compile/ir_graph_state.h: collectives become parts of the work around them, as in passes of tuples
 * (workloads/compile/pieces.h), so that a pass is a task or two.
 *
 * In a folded graph a collective over devices of one class that comes right behind work of theirs, and that nothing but
 * their next work waits for, is a part of both if all collectives on that stream of theirs are waited for by their next
 * work. On links that are theirs alone it takes what it takes alone: all that crosses these joins the same devices, and
 * in the passes that are fused none of it runs beside work. Else it has rivals, with which the engine plays it
 * (core/graph/graph.h, "Disturbed segments"); of each class of devices one kind of collective may have some, so that
 * what they cost is its, and only one class's may be on a link.
 *
 * What begins behind the first step that is the last of its chunk (gradients) is behind all passes that come before;
 * those behind are not fused.
 */
#include <stdlib.h>
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

#define SEVERAL (PL_NONE - 1)

/* Arrays of tasks, by address. */
typedef struct waits {
  uintptr_t *tasks;
  uint32_t n;
} waits;

typedef struct fusing {
  pl_ir_graphing *own;
  waits *waits;        /* per class of the program, for which its acts wait */
  bool *is_beside;     /* per class of transfers: it runs beside work in a pass that could be fused */
  bool *is_in_turn;    /* per class of the program: in such passes no collective of tensor groups does */
  uint32_t *owner;     /* per class of links: the class of devices whose it is; PL_NONE: nobody's; or SEVERAL */
  uint32_t *n_between; /* per class of transfers: how often it is between works, all by itself */
  uint32_t *disturbed; /* per class of devices: the class of transfers that may have rivals; PL_NONE: none */
  uint32_t *contender; /* per class of links: the class of devices whose disturbed transfers are on it; likewise */
} fusing;

static bool is_in_front(const pl_ir_passes *passes, int32_t i) {
  return passes->is_front[passes->noted[i]];
}

/* ---- what contends ---- */

/* Whether the next work waits for it. */
static bool is_between(const pl_ir_pass *pass, uint32_t i) {
  const uint32_t *tasks = pass->acts[i].output;
  uint32_t next = i + 1;
  while (next < pass->n_acts && pass->acts[next].kind == PL_IR_ACT_MEET)
    next++;
  if (pass->acts[i].behind != PL_IR_BEHIND_WORK || next == pass->n_acts || pass->acts[next].kind != PL_IR_ACT_WORK)
    return false;
  for (uint32_t k = 0; k < pass->acts[next].n_awaited; k++)
    if (pass->acts[next].awaited[k] == tasks) return true;
  return false;
}

static void note_beside(fusing *state, const pl_ir_pass *pass) {
  pl_ir_graphing *own = state->own;
  for (uint32_t i = 0; i < pass->n_acts; i++) {
    if (pass->acts[i].kind != PL_IR_ACT_MEET || is_between(pass, i)) continue;
    if (pass->acts[i].meeting.stream == PL_STREAM_FEATURE) state->is_in_turn[own->now - own->crews] = false;
    const pl_ir_pattern *pattern = pl_ir_graph_pattern(own, &pass->acts[i]);
    for (uint32_t d = 0; d < own->now->n_devices; d++)
      state->is_beside[pl_ir_graph_class_of_transfer(own, pattern, own->now->devices[d])] = true;
  }
}

static void find_owners(fusing *state) {
  const pl_ir_folding *fold = state->own->fold;
  const pl_quotient *quotient = &fold->folding.quotient;
  for (uint32_t t = 0; t < quotient->n_transfers; t++) {
    uint32_t own = state->is_beside[t] || fold->member_of[t] == PL_NONE ? SEVERAL : fold->member_of[t];
    const pl_quotient_transfer *transfer = &quotient->transfers[t];
    for (uint32_t use = transfer->first_use; use < transfer->first_use + transfer->n_uses; use++) {
      uint32_t *owner = &state->owner[quotient->uses[use].link];
      *owner = *owner == PL_NONE || *owner == own ? own : SEVERAL;
    }
  }
}

static bool is_alone(const fusing *state, uint32_t t) {
  const pl_ir_folding *fold = state->own->fold;
  const pl_quotient *quotient = &fold->folding.quotient;
  const pl_quotient_transfer *transfer = &quotient->transfers[t];
  bool is_one = !state->is_beside[t] && fold->member_of[t] != PL_NONE;
  for (uint32_t use = transfer->first_use; use < transfer->first_use + transfer->n_uses; use++)
    is_one = is_one && state->owner[quotient->uses[use].link] == fold->member_of[t];
  return is_one;
}

/* ---- acts ---- */

static int compare(const void *a, const void *b) {
  uintptr_t first = *(const uintptr_t *)a, second = *(const uintptr_t *)b;
  return (first > second) - (first < second);
}

/* All that acts of the class wait for, in order. */
static bool take_waits(fusing *state, int32_t class) {
  const pl_ir_passes *passes = &state->own->passes[class];
  waits *made = &state->waits[class];
  if (passes->like > 0) { /* a class before */
    *made = state->waits[passes->like - 1];
    return true;
  }
  for (int fills = 0; fills < 2; fills++) {
    made->n = 0;
    for (int32_t i = 0; i < passes->n_noted; i++) {
      const pl_ir_pass *pass = &passes->steps[passes->noted[i]];
      for (uint32_t a = 0; a < pass->n_acts; a++)
        for (uint32_t k = 0; k <= pass->acts[a].n_awaited; k++) {
          const uint32_t *tasks = k < pass->acts[a].n_awaited ? pass->acts[a].awaited[k] : pass->acts[a].input;
          if (tasks == NULL) continue;
          if (fills > 0) made->tasks[made->n] = (uintptr_t)tasks;
          made->n++;
        }
    }
    if (fills == 0 && (made->tasks = pl_arena_take(state->own->arena, (made->n + 1) * sizeof *made->tasks,
                                                   _Alignof(uintptr_t))) == NULL)
      return false;
  }
  qsort(made->tasks, made->n, sizeof *made->tasks, compare);
  return true;
}

static bool has_one_reader(const waits *of, const uint32_t *tasks) {
  uintptr_t wanted = (uintptr_t)tasks;
  const uintptr_t *found = bsearch(&wanted, of->tasks, of->n, sizeof wanted, compare);
  return found != NULL && (found == of->tasks || found[-1] != wanted) &&
         (found + 1 == of->tasks + of->n || found[1] != wanted);
}

/* Whether the collective behind act `i` is all that stands between the work there and that behind. */
static bool stands_between(const fusing *state, const pl_ir_pass *pass, uint32_t i) {
  if (i + 2 >= pass->n_acts || pass->acts[i].kind != PL_IR_ACT_WORK || pass->acts[i].stretch == NULL) return false;
  const pl_ir_act *meet = &pass->acts[i + 1], *next = &pass->acts[i + 2];
  return meet->kind == PL_IR_ACT_MEET && meet->meeting.stream == PL_STREAM_FEATURE &&
         meet->behind == PL_IR_BEHIND_WORK && meet->input == NULL && next->kind == PL_IR_ACT_WORK &&
         next->stretch != NULL && next->n_awaited == 1 && next->awaited[0] == meet->output &&
         has_one_reader(&state->waits[state->own->now - state->own->crews], meet->output);
}

static uint32_t transfer_of(const fusing *state, const pl_ir_act *meet, uint32_t d) {
  pl_ir_graphing *own = state->own;
  return pl_ir_graph_class_of_transfer(own, pl_ir_graph_pattern(own, meet), own->now->devices[d]);
}

static bool may_fuse(const fusing *state, const pl_ir_pass *pass, uint32_t i) {
  pl_ir_graphing *own = state->own;
  if (!state->is_in_turn[own->now - own->crews] || !stands_between(state, pass, i)) return false;
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t t = transfer_of(state, &pass->acts[i + 1], d);
    if (!is_alone(state, t) && state->disturbed[own->now->numbers[d]] != t) return false;
  }
  return true;
}

/* ---- collectives that have rivals ---- */

static void count_between(fusing *state, const pl_ir_pass *pass) {
  for (uint32_t i = 0; i < pass->n_acts; i++)
    for (uint32_t d = 0; d < state->own->now->n_devices && stands_between(state, pass, i); d++)
      state->n_between[transfer_of(state, &pass->acts[i + 1], d)]++;
}

/* Of each class of devices the most frequent. */
static void choose_disturbed(fusing *state) {
  const pl_ir_folding *fold = state->own->fold;
  for (uint32_t t = 0; t < fold->folding.quotient.n_transfers; t++) {
    if (state->n_between[t] == 0 || fold->member_of[t] == PL_NONE || state->is_beside[t] || is_alone(state, t))
      continue;
    uint32_t *best = &state->disturbed[fold->member_of[t]];
    if (*best == PL_NONE || state->n_between[t] > state->n_between[*best]) *best = t;
  }
}

/* Those that two classes of devices have on one link are none, of either. */
static void drop_shared(fusing *state) {
  const pl_quotient *quotient = &state->own->fold->folding.quotient;
  uint32_t n_devices = state->own->fold->folding.fold.devices.n_classes;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t d = 0; d < n_devices; d++) {
      if (state->disturbed[d] == PL_NONE) continue;
      const pl_quotient_transfer *transfer = &quotient->transfers[state->disturbed[d]];
      for (uint32_t use = transfer->first_use; use < transfer->first_use + transfer->n_uses; use++) {
        uint32_t *contender = &state->contender[quotient->uses[use].link];
        if (pass == 0) *contender = *contender == PL_NONE || *contender == d ? d : SEVERAL;
        if (pass == 1 && *contender == SEVERAL) state->disturbed[d] = PL_NONE;
      }
    }
}

/* The classes of devices whose work transfers of a class disturb, appended to `rivals` unless it is NULL. */
static uint32_t rivals_of(const fusing *state, uint32_t t, uint32_t *seen, uint32_t stamp, uint32_t *rivals) {
  const pl_quotient *quotient = &state->own->fold->folding.quotient;
  const pl_quotient_transfer *transfer = &quotient->transfers[t];
  uint32_t n = 0;
  for (uint32_t use = transfer->first_use; use < transfer->first_use + transfer->n_uses; use++) {
    uint32_t d = state->contender[quotient->uses[use].link];
    if (d >= SEVERAL || state->disturbed[d] == PL_NONE || state->disturbed[d] == t || seen[d] == stamp) continue;
    seen[d] = stamp;
    if (rivals != NULL) rivals[n] = d;
    n++;
  }
  return n;
}

static bool list_rivals(fusing *state) {
  pl_ir_folding *fold = state->own->fold;
  uint32_t n = fold->folding.quotient.n_transfers, stamp = 0;
  uint32_t *offset = PL_TAKE(fold->arena, uint32_t, n + 1);
  uint32_t *seen = PL_TAKE(fold->arena, uint32_t, fold->folding.fold.devices.n_classes + 1);
  if (fold->arena->failed) return false;
  for (uint32_t t = 0; t < n; t++)
    offset[t + 1] = offset[t] + rivals_of(state, t, seen, ++stamp, NULL);
  uint32_t *rivals = PL_TAKE(fold->arena, uint32_t, offset[n] + 1);
  for (uint32_t t = 0; t < n && rivals != NULL; t++)
    rivals_of(state, t, seen, ++stamp, &rivals[offset[t]]);
  fold->rival_offset = offset;
  fold->rivals = rivals;
  return rivals != NULL;
}

/* ---- fused work ---- */

static uint32_t profile_of(const pl_ir_graphing *own, uint32_t d) {
  return own->cluster->devices[own->places[own->now->devices[d]]].profile;
}

static bool add_inside(const pl_ir_graphing *own, pl_ir_pass *pass, const pl_ir_within *inside) {
  pass->insides = (pl_ir_within *)pl_arena_grown(own->arena, pass->insides, pass->n_insides, 1, sizeof *pass->insides,
                                                 &pass->room_insides);
  if (pass->insides == NULL) return false;
  pass->insides[pass->n_insides++] = *inside;
  return true;
}

/* The parts of acts `first` ... `end` - 1 on one device of the crew. */
static const pl_part *parts_of(const fusing *state, pl_ir_pass *pass, uint32_t first, uint32_t end, uint32_t d,
                               uint32_t n_parts) {
  pl_ir_graphing *own = state->own;
  pl_part *parts = pl_arena_take(own->arena, n_parts * sizeof *parts, _Alignof(pl_part));
  uint32_t n = 0;
  for (uint32_t i = first; parts != NULL && i < end; i++) {
    const pl_ir_act *act = &pass->acts[i];
    if (act->kind == PL_IR_ACT_WORK) {
      memcpy(&parts[n], act->stretch->parts[profile_of(own, d)], act->stretch->n_parts * sizeof *parts);
      n += act->stretch->n_parts;
      continue;
    }
    const pl_ir_pattern *pattern = pl_ir_graph_pattern(own, act);
    uint32_t spec = pl_ir_graph_class_of_transfer(own, pattern, own->now->devices[d]);
    double progress = pl_ir_graph_progress_of_class(own, spec);
    const pl_ir_within inside = {.device = own->now->numbers[d],
                                 .spec = spec,
                                 .ticks = pl_transfer_solo_ticks(own->fold->table, spec, progress),
                                 .is_disturbed = !is_alone(state, spec)};
    parts[n++] = (pl_part){.ticks = inside.ticks,
                           .category = (uint8_t)act->meeting.category,
                           .name = PL_NONE,
                           .transfers = inside.is_disturbed,
                           .spec = inside.is_disturbed ? spec : PL_NONE,
                           .size_bytes = inside.is_disturbed ? progress : 0};
    if (d == 0) pass->n_collectives += pattern->n_transfers;
    if (!add_inside(own, pass, &inside)) return NULL;
  }
  return parts;
}

/* One stretch of acts `first` ... `end` - 1. NULL: no memory. */
static pl_ir_stretch *fused(const fusing *state, pl_ir_pass *pass, uint32_t first, uint32_t end) {
  pl_ir_graphing *own = state->own;
  pl_ir_stretch *made = PL_TAKE(own->arena, pl_ir_stretch, 1);
  if (made == NULL) return NULL;
  *made = (pl_ir_stretch){.n_kinds = own->now->n_devices, .is_fused = true};
  for (uint32_t i = first; i < end; i++)
    made->n_parts += pass->acts[i].kind == PL_IR_ACT_WORK ? pass->acts[i].stretch->n_parts : 1;
  made->parts = PL_TAKE(own->arena, const pl_part *, made->n_kinds + 1);
  made->segments = PL_TAKE(own->arena, uint32_t, made->n_kinds + 1);
  for (uint32_t d = 0; !own->arena->failed && d < made->n_kinds; d++)
    made->parts[d] = parts_of(state, pass, first, end, d, made->n_parts);
  return own->arena->failed ? NULL : made;
}

static bool fuse_pass(const fusing *state, pl_ir_pass *pass) {
  uint32_t n = 0;
  for (uint32_t i = 0, end; i < pass->n_acts; i = end) {
    end = i + 1;
    while (may_fuse(state, pass, end - 1))
      end += 2;
    pl_ir_act act = pass->acts[i];
    if (end > i + 1 && (act.stretch = fused(state, pass, i, end)) == NULL) return false;
    pass->acts[n++] = act; /* none that comes later is read again: their outputs have one reader */
  }
  pass->n_acts = n;
  return true;
}

/* ---- all passes ---- */

static void each_in_front(fusing *state, void (*look_at)(fusing *state, const pl_ir_pass *pass)) {
  pl_ir_graphing *own = state->own;
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    const pl_ir_passes *passes = &own->passes[c];
    own->now = &own->crews[c];
    for (int32_t i = 0; i < passes->n_noted; i++)
      if (is_in_front(passes, i)) look_at(state, &passes->steps[passes->noted[i]]);
  }
}

static bool take(fusing *state) {
  pl_arena *arena = state->own->arena;
  const pl_quotient *quotient = &state->own->fold->folding.quotient;
  uint32_t n_devices = state->own->fold->folding.fold.devices.n_classes;
  state->is_beside = PL_TAKE(arena, bool, quotient->n_transfers + 1);
  state->waits = PL_TAKE(arena, waits, state->own->module->n_classes + 1);
  state->is_in_turn = PL_TAKE(arena, bool, state->own->module->n_classes + 1);
  state->n_between = PL_TAKE(arena, uint32_t, quotient->n_transfers + 1);
  state->owner = PL_TAKE(arena, uint32_t, quotient->n_links + 1);
  state->contender = PL_TAKE(arena, uint32_t, quotient->n_links + 1);
  state->disturbed = PL_TAKE(arena, uint32_t, n_devices + 1);
  if (arena->failed) return false;
  for (int32_t c = 0; c < state->own->module->n_classes; c++)
    if (!take_waits(state, c)) return false;
  memset(state->is_in_turn, 1, (size_t)state->own->module->n_classes);
  memset(state->owner, 0xff, quotient->n_links * sizeof *state->owner); /* PL_NONE */
  memset(state->contender, 0xff, quotient->n_links * sizeof *state->contender);
  memset(state->disturbed, 0xff, n_devices * sizeof *state->disturbed);
  return true;
}

pl_code pl_ir_graph_fuse(pl_ir_graphing *own) {
  fusing state = {.own = own};
  if (own->fold->is_fused) return PL_OK;
  if (!take(&state)) return pl_ir_graph_no_memory(own);
  each_in_front(&state, note_beside);
  find_owners(&state);
  each_in_front(&state, count_between);
  choose_disturbed(&state);
  drop_shared(&state);
  if (!list_rivals(&state)) return pl_ir_graph_no_memory(own);
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    pl_ir_passes *passes = &own->passes[c];
    own->now = &own->crews[c];
    for (int32_t i = 0; i < passes->n_noted; i++)
      if (is_in_front(passes, i) && !fuse_pass(&state, &passes->steps[passes->noted[i]]))
        return pl_ir_graph_no_memory(own);
  }
  own->fold->is_fused = true;
  return PL_OK;
}
