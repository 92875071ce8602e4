/* See workloads/compile/ir_graph_state.h: collectives that nobody can contend with become parts of the work around
 * them, as in passes of tuples (workloads/compile/pieces.h), so that a pass is a task or two.
 *
 * In a folded graph a collective over devices of one class that comes right behind work of theirs, and that nothing but
 * their next work waits for, takes what it takes alone if its links are theirs: all that crosses these joins the same
 * devices, and in the passes that are fused none of it runs beside work. What begins behind the first step that is the
 * last of its chunk (gradients), may: it is behind all passes that come before, and those behind are not fused.
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

#define SEVERAL (PL_NONE - 1)

typedef struct fusing {
  pl_ir_graphing *own;
  bool *is_beside; /* per class of transfers: it runs beside work in a pass that could be fused */
  uint32_t *owner; /* per class of links: the class of devices whose it is; PL_NONE: nobody's; or SEVERAL */
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
  if (pass->acts[i].after_unit || next == pass->n_acts || pass->acts[next].kind != PL_IR_ACT_WORK) return false;
  for (uint32_t k = 0; k < pass->acts[next].n_awaited; k++)
    if (pass->acts[next].awaited[k] == tasks) return true;
  return false;
}

static void note_beside(fusing *state, const pl_ir_pass *pass) {
  pl_ir_graphing *own = state->own;
  for (uint32_t i = 0; i < pass->n_acts; i++) {
    if (pass->acts[i].kind != PL_IR_ACT_MEET || is_between(pass, i)) continue;
    const pl_ir_pattern *pattern = pl_ir_graph_pattern_of_meeting(own, &pass->acts[i].meeting);
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

/* Acts, here or in another pass of the class, that wait for these tasks. */
static uint32_t count_readers(const pl_ir_passes *passes, const uint32_t *tasks) {
  uint32_t n = 0;
  for (int32_t i = 0; i < passes->n_noted; i++) {
    const pl_ir_pass *pass = &passes->steps[passes->noted[i]];
    for (uint32_t a = 0; a < pass->n_acts; a++) {
      n += pass->acts[a].input == tasks;
      for (uint32_t k = 0; k < pass->acts[a].n_awaited; k++)
        n += pass->acts[a].awaited[k] == tasks;
    }
  }
  return n;
}

/* Whether the collective is all that stands between the work in front of it and that behind. */
static bool may_fuse(const fusing *state, const pl_ir_passes *passes, const pl_ir_pass *pass, uint32_t i) {
  pl_ir_graphing *own = state->own;
  if (i + 2 >= pass->n_acts || pass->acts[i].stretch == NULL) return false;
  const pl_ir_act *meet = &pass->acts[i + 1], *next = &pass->acts[i + 2];
  if (meet->kind != PL_IR_ACT_MEET || meet->meeting.stream != PL_STREAM_FEATURE || meet->after_unit ||
      meet->input != NULL || next->kind != PL_IR_ACT_WORK || next->stretch == NULL || next->n_awaited != 1 ||
      next->awaited[0] != meet->output)
    return false;
  const pl_ir_pattern *pattern = pl_ir_graph_pattern_of_meeting(own, &meet->meeting);
  for (uint32_t d = 0; d < own->now->n_devices; d++)
    if (!is_alone(state, pl_ir_graph_class_of_transfer(own, pattern, own->now->devices[d]))) return false;
  return count_readers(passes, meet->output) == 1;
}

static uint32_t profile_of(const pl_ir_graphing *own, uint32_t d) {
  return own->cluster->devices[own->places[own->now->devices[d]]].profile;
}

static bool add_inside(const pl_ir_graphing *own, pl_ir_pass *pass, uint32_t device, uint32_t spec, pl_ticks ticks) {
  pass->insides = (pl_ir_within *)pl_arena_grown(own->arena, pass->insides, pass->n_insides, 1, sizeof *pass->insides,
                                                 &pass->room_insides);
  if (pass->insides == NULL) return false;
  pass->insides[pass->n_insides++] = (pl_ir_within){.device = device, .spec = spec, .ticks = ticks};
  return true;
}

/* The parts of acts `first` ... `end` - 1 on one device of the crew. */
static const pl_part *parts_of(pl_ir_graphing *own, pl_ir_pass *pass, uint32_t first, uint32_t end, uint32_t d,
                               uint32_t n_parts) {
  pl_part *parts = PL_TAKE(own->arena, pl_part, n_parts);
  uint32_t n = 0;
  for (uint32_t i = first; parts != NULL && i < end; i++) {
    const pl_ir_act *act = &pass->acts[i];
    if (act->kind == PL_IR_ACT_WORK) {
      memcpy(&parts[n], act->stretch->parts[profile_of(own, d)], act->stretch->n_parts * sizeof *parts);
      n += act->stretch->n_parts;
      continue;
    }
    const pl_ir_pattern *pattern = pl_ir_graph_pattern_of_meeting(own, &act->meeting);
    uint32_t spec = pl_ir_graph_class_of_transfer(own, pattern, own->now->devices[d]);
    pl_ticks ticks = pl_transfer_solo_ticks(own->fold->table, spec, pl_ir_graph_progress_of_class(own, spec));
    parts[n++] =
        (pl_part){.ticks = ticks, .category = (uint8_t)act->meeting.category, .name = PL_NONE, .spec = PL_NONE};
    if (d == 0) pass->n_collectives += pattern->n_transfers;
    if (!add_inside(own, pass, own->now->numbers[d], spec, ticks)) return NULL;
  }
  return parts;
}

/* One stretch of acts `first` ... `end` - 1. NULL: no memory. */
static pl_ir_stretch *fused(pl_ir_graphing *own, pl_ir_pass *pass, uint32_t first, uint32_t end) {
  pl_ir_stretch *made = PL_TAKE(own->arena, pl_ir_stretch, 1);
  if (made == NULL) return NULL;
  *made = (pl_ir_stretch){.n_kinds = own->now->n_devices, .is_fused = true};
  for (uint32_t i = first; i < end; i++)
    made->n_parts += pass->acts[i].kind == PL_IR_ACT_WORK ? pass->acts[i].stretch->n_parts : 1;
  made->parts = PL_TAKE(own->arena, const pl_part *, made->n_kinds + 1);
  made->segments = PL_TAKE(own->arena, uint32_t, made->n_kinds + 1);
  for (uint32_t d = 0; !own->arena->failed && d < made->n_kinds; d++)
    made->parts[d] = parts_of(own, pass, first, end, d, made->n_parts);
  return own->arena->failed ? NULL : made;
}

static bool fuse_pass(const fusing *state, const pl_ir_passes *passes, pl_ir_pass *pass) {
  uint32_t n = 0;
  for (uint32_t i = 0, end; i < pass->n_acts; i = end) {
    end = i + 1;
    while (pass->acts[i].kind == PL_IR_ACT_WORK && may_fuse(state, passes, pass, end - 1))
      end += 2;
    pl_ir_act act = pass->acts[i];
    if (end > i + 1 && (act.stretch = fused(state->own, pass, i, end)) == NULL) return false;
    pass->acts[n++] = act; /* none that comes later is read again: their outputs have one reader */
  }
  pass->n_acts = n;
  return true;
}

/* ---- all passes ---- */

pl_code pl_ir_graph_fuse(pl_ir_graphing *own) {
  const pl_quotient *quotient = &own->fold->folding.quotient;
  fusing state = {.own = own};
  bool any = false;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    any = any || !own->passes[c].is_fused;
  if (!any) return PL_OK;
  state.is_beside = PL_TAKE(own->arena, bool, quotient->n_transfers + 1);
  state.owner = PL_TAKE(own->arena, uint32_t, quotient->n_links + 1);
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  memset(state.owner, 0xff, quotient->n_links * sizeof *state.owner); /* PL_NONE */
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    own->now = &own->crews[c];
    for (int32_t i = 0; i < own->passes[c].n_noted; i++)
      if (is_in_front(&own->passes[c], i)) note_beside(&state, &own->passes[c].steps[own->passes[c].noted[i]]);
  }
  find_owners(&state);
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    pl_ir_passes *passes = &own->passes[c];
    own->now = &own->crews[c];
    for (int32_t i = 0; i < passes->n_noted && !passes->is_fused; i++)
      if (is_in_front(passes, i) && !fuse_pass(&state, passes, &passes->steps[passes->noted[i]]))
        return pl_ir_graph_no_memory(own);
    passes->is_fused = true;
  }
  return PL_OK;
}
