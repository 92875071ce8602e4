/* See workloads/language/ir_recurrence.h. */
#include "workloads/language/ir_recurrence.h"

#include <stdlib.h>
#include <string.h>

/* Steps of one pass that are tried as the next period's: as many microbatches as a round may have. */
enum { ROUND_MAX = 256, PASS_KINDS = PL_IR_STEP_W + 1 };

/* A class while its phases are looked for. Passes are numbered by chunk of the class and kind. */
typedef struct looking {
  const pl_ir_class *class;
  int32_t fewest, carried, n_passes;
  int64_t *keys;     /* per step: pass, whether it is joined, and microbatch (key_of) */
  int32_t *last;     /* per pass: its last step; PL_IR_NONE: it has none */
  int32_t last_from; /* in front of it there is no last step of a backward pass */
  bool all_run;      /* every device runs all microbatches */
  int32_t *anchor;   /* per pass: its step of the middle one of the microbatches that everybody runs */
  int32_t *count;    /* per pass: scratch */
  int32_t *phase_of; /* per pass; -1: not yet found */
  int n_phases;
  pl_lane_phase phases[PL_LANE_PHASES];
  int32_t period[PL_LANE_PHASES], by[PL_LANE_PHASES]; /* steps, and microbatches with their sign */
} looking;

/* ---- one class ---- */

static int32_t pass_of(const pl_ir_class *class, const pl_ir_step *step) {
  int32_t c = 0;
  while (class->chunks[c].chunk != step->chunk)
    c++;
  return c * PASS_KINDS + step->kind;
}

enum { PASS_SHIFT = 33, JOINED_SHIFT = 32 };

/* Steps of one pass have keys as far apart as their microbatches, if they are joined alike. */
static inline int64_t key_of(int32_t pass, const pl_ir_step *step) {
  return ((int64_t)pass << PASS_SHIFT) + ((int64_t)step->joined << JOINED_SHIFT) + step->microbatch;
}

static inline int32_t pass_at(const looking *own, int32_t step) {
  return (int32_t)(own->keys[step] >> PASS_SHIFT);
}

static bool look_at(const pl_ir_class *class, int32_t fewest, bool all_run, pl_arena *arena, looking *made) {
  int32_t n_passes = class->n_chunks * PASS_KINDS;
  *made = (looking){.class = class, .fewest = fewest, .n_passes = n_passes, .all_run = all_run};
  made->keys = pl_arena_take(arena, (size_t)(class->n_steps + 1) * sizeof *made->keys, _Alignof(int64_t));
  made->last = PL_TAKE(arena, int32_t, n_passes + 1);
  made->anchor = PL_TAKE(arena, int32_t, n_passes + 1);
  made->count = PL_TAKE(arena, int32_t, n_passes + 1);
  made->phase_of = PL_TAKE(arena, int32_t, n_passes + 1);
  if (arena->failed) return false;
  for (int32_t p = 0; p < n_passes; p++) {
    made->last[p] = made->anchor[p] = PL_IR_NONE;
    made->phase_of[p] = -1;
  }
  int32_t *last = made->last, chunk = PL_IR_NONE, first = 0;
  for (int32_t s = 0; s < class->n_steps; s++) {
    const pl_ir_step *step = &class->steps[s];
    if (step->chunk != chunk) {
      chunk = step->chunk;
      first = pass_of(class, step) - step->kind;
    }
    made->keys[s] = key_of(first + step->kind, step);
    last[first + step->kind] = s;
    if (step->microbatch == fewest / 2) made->anchor[first + step->kind] = s;
  }
  made->last_from = class->n_steps;
  for (int32_t p = 0; p < n_passes; p++)
    if (p % PASS_KINDS != PL_IR_STEP_F && last[p] != PL_IR_NONE && last[p] < made->last_from) made->last_from = last[p];
  return true;
}

/* Whether the step so much later is its likeness. */
static inline bool recurs(const looking *own, int32_t step, int32_t period, int32_t by) {
  int32_t later = step + period;
  if (later >= own->class->n_steps || own->keys[later] != own->keys[step] + by) return false;
  const pl_ir_step *a = &own->class->steps[step], *b = &own->class->steps[later];
  if (a->microbatch >= own->fewest || b->microbatch >= own->fewest) return false;
  return b->kind == PL_IR_STEP_F || own->last[pass_at(own, later)] != later;
}

/* Steps from this one on, in front of any last one, that are in keys `by` behind those a period before: where all
 * microbatches are everybody's these recur. */
static int32_t alike_behind(const looking *own, int32_t step, int32_t period, int32_t by) {
  const int64_t *keys = own->keys;
  while (step + period < own->last_from && keys[step + period] == keys[step] + by)
    step++;
  return step;
}

static int32_t alike_before(const looking *own, int32_t step, int32_t period, int32_t by) {
  const int64_t *keys = own->keys;
  while (step > 0 && step - 1 + period < own->last_from && keys[step - 1 + period] == keys[step - 1] + by)
    step--;
  return step;
}

static pl_lane_phase stretch_around(const looking *own, int32_t step, int32_t period, int32_t by) {
  int32_t from = step, to = own->all_run ? alike_behind(own, step, period, by) : step;
  while (recurs(own, to, period, by))
    to++;
  if (to == step) return (pl_lane_phase){0, 0};
  if (own->all_run) from = alike_before(own, from, period, by);
  while (from > 0 && recurs(own, from - 1, period, by))
    from--;
  return (pl_lane_phase){.from = (uint32_t)from, .to = (uint32_t)(to + period)};
}

/* Each of its passes is in a period as often as it goes on by microbatches. */
static bool is_a_round(looking *own, const pl_lane_phase *phase, int32_t period, int32_t by) {
  bool is_one = true;
  memset(own->count, 0, (size_t)own->n_passes * sizeof *own->count);
  for (int32_t s = 0; s < period; s++)
    own->count[pass_at(own, (int32_t)phase->from + s)]++;
  for (int32_t p = 0; p < own->n_passes; p++)
    is_one = is_one && (own->count[p] == 0 || (own->count[p] == abs(by) && own->phase_of[p] < 0));
  return is_one;
}

/* The phase around the middle step of a pass: the shortest period that holds for half of the microbatches. */
static bool find_phase(looking *own, int32_t pass) {
  int32_t anchor = own->anchor[pass], n_tried = 0;
  if (anchor == PL_IR_NONE || own->n_phases == PL_LANE_PHASES) return false;
  for (int32_t s = anchor + 1; s < own->class->n_steps && n_tried < ROUND_MAX; s++) {
    if (pass_at(own, s) != pass) continue;
    int32_t period = s - anchor, by = own->class->steps[s].microbatch - own->class->steps[anchor].microbatch;
    pl_lane_phase phase = stretch_around(own, anchor, period, by);
    int32_t n_periods = (int32_t)(phase.to - phase.from) / period;
    n_tried++;
    if (by == 0 || 2 * (int64_t)n_periods * abs(by) < own->fewest || !is_a_round(own, &phase, period, by)) continue;
    for (int32_t p = 0; p < own->n_passes; p++)
      if (own->count[p] > 0) own->phase_of[p] = own->n_phases;
    phase.from += (uint32_t)(own->carried * period);
    n_periods = phase.to > phase.from ? (int32_t)(phase.to - phase.from) / period : 0;
    phase.to = phase.from + (uint32_t)(n_periods * period);
    own->period[own->n_phases] = period;
    own->by[own->n_phases] = by;
    own->phases[own->n_phases++] = phase;
    return n_periods > 0;
  }
  return false;
}

static void put_first_first(looking *own) {
  if (own->n_phases < 2 || own->phases[0].from < own->phases[1].from) return;
  const pl_lane_phase phase = own->phases[0];
  int32_t period = own->period[0], by = own->by[0];
  own->phases[0] = own->phases[1];
  own->period[0] = own->period[1];
  own->by[0] = own->by[1];
  own->phases[1] = phase;
  own->period[1] = period;
  own->by[1] = by;
  for (int32_t p = 0; p < own->n_passes; p++)
    if (own->phase_of[p] >= 0) own->phase_of[p] = 1 - own->phase_of[p];
}

static bool find_phases(looking *own) {
  for (int32_t pass = 0; pass < own->n_passes; pass++)
    if (own->last[pass] != PL_IR_NONE && own->phase_of[pass] < 0 && !find_phase(own, pass)) return false;
  put_first_first(own);
  return own->n_phases > 0 && (own->n_phases == 1 || own->phases[0].to <= own->phases[1].from);
}

/* ---- all classes ---- */

/* Kinds of passes in a phase, one bit each. */
static uint32_t kinds_in(const looking *own, int phase) {
  uint32_t kinds = 0;
  for (int32_t p = 0; p < own->n_passes; p++)
    if (own->phase_of[p] == phase) kinds |= 1u << p % PASS_KINDS;
  return kinds;
}

static bool agree(const looking *a, const looking *b) {
  if (a->n_phases != b->n_phases) return false;
  for (int p = 0; p < a->n_phases; p++)
    if (a->period[p] != b->period[p] || a->by[p] != b->by[p] || abs(a->by[p]) != abs(a->by[0]) ||
        kinds_in(a, p) != kinds_in(b, p))
      return false;
  return true;
}

static int32_t fewest_of(const pl_ir_module *module) {
  int32_t fewest = module->n_microbatches;
  for (int32_t i = 0; i < module->n_fewer; i++)
    if (module->fewer[i].n_microbatches < fewest) fewest = module->fewer[i].n_microbatches;
  return fewest;
}

/* Microbatches that are under way in a period of forward and backward passes in turn; 0: it is none. */
static int32_t under_way(const looking *own) {
  int32_t forward = PL_IR_NONE, backward = PL_IR_NONE;
  for (int32_t s = 0; s < own->period[0] && own->n_phases == 1 && own->by[0] == 1; s++) {
    const pl_ir_step *step = &own->class->steps[(int32_t)own->phases[0].from + s];
    if (step->kind == PL_IR_STEP_F) forward = step->microbatch;
    if (step->kind == PL_IR_STEP_B) backward = step->microbatch;
  }
  return forward != PL_IR_NONE && backward != PL_IR_NONE ? forward - backward + 1 : 0;
}

static bool find_in_class(const pl_ir_class *class, const pl_ir_recurrence *of, bool all_run, pl_arena *arena,
                          looking *made, bool *found) {
  if (!look_at(class, of->fewest, all_run, arena, made)) return false;
  made->carried = of->carried;
  *found = find_phases(made);
  return true;
}

bool pl_ir_recurrence_find(const pl_ir_module *module, int32_t carried, pl_arena *arena, pl_ir_recurrence *recurrence) {
  *recurrence = (pl_ir_recurrence){.fewest = fewest_of(module), .carried = carried};
  pl_ir_phases *phases = PL_TAKE(arena, pl_ir_phases, module->n_classes + 1);
  looking first = {.n_phases = 0};
  bool found = true;
  if (phases == NULL) return false;
  for (int32_t c = 0; c < module->n_classes && found; c++) {
    looking own;
    if (!find_in_class(&module->classes[c], recurrence, module->n_fewer == 0, arena, &own, &found)) return false;
    if (c == 0) first = own;
    found = found && agree(&first, &own);
    if (found && under_way(&own) > recurrence->under_way) recurrence->under_way = under_way(&own);
    for (int p = 0; p < own.n_phases && found; p++) {
      int32_t inside = (int32_t)(own.phases[p].to - own.phases[p].from) / own.period[p] * abs(own.by[p]);
      phases[c][p] = own.phases[p];
      if (recurrence->fewest - inside > recurrence->filling) recurrence->filling = recurrence->fewest - inside;
    }
  }
  if (!found) return true;
  recurrence->n_phases = first.n_phases;
  recurrence->round = abs(first.by[0]);
  recurrence->phases = (const pl_ir_phases *)phases;
  for (int p = 0; p < first.n_phases; p++) {
    recurrence->period[p] = (uint32_t)first.period[p];
    recurrence->backwards[p] = first.by[p] < 0;
  }
  return true;
}

/* ---- fewer microbatches ---- */

typedef struct shortening {
  const pl_ir_recurrence *recurrence;
  int32_t leapt, n_left;        /* microbatches */
  uint32_t cut[PL_LANE_PHASES]; /* steps that are taken out of each phase */
  pl_arena *arena;
} shortening;

/* Of a class: what it takes to take steps out of it. */
typedef struct cutting {
  const pl_ir_class *class;
  const pl_lane_phase *phases;
  int *phase_of;  /* per pass: the phase that it is in */
  bool *is_there; /* per pass and microbatch that is left */
} cutting;

/* The step behind those that are taken out from this one on; itself where it stays. */
static uint32_t behind_cut(const shortening *own, const cutting *of, uint32_t step) {
  for (int p = 0; p < PL_LANE_PHASES; p++)
    if (step >= of->phases[p].from && step < of->phases[p].from + own->cut[p]) step = of->phases[p].from + own->cut[p];
  return step;
}

/* Microbatches behind those that are taken out move up. What is left has each microbatch of each pass once. */
static bool shorten_class(const shortening *own, const cutting *of, pl_ir_step *steps, int32_t *n_steps) {
  const pl_ir_class *class = of->class;
  *n_steps = 0;
  for (uint32_t s = behind_cut(own, of, 0); s < (uint32_t) class->n_steps; s = behind_cut(own, of, s + 1)) {
    pl_ir_step step = class->steps[s];
    int32_t pass = pass_of(class, &step);
    int p = of->phase_of[pass];
    if ((s >= of->phases[p].from + own->cut[p]) != own->recurrence->backwards[p]) step.microbatch -= own->leapt;
    if (step.microbatch < 0 || step.microbatch >= own->n_left) return false;
    bool *known = &of->is_there[(int64_t)pass * own->n_left + step.microbatch];
    if (*known) return false;
    *known = true;
    steps[(*n_steps)++] = step;
  }
  return true;
}

static bool take_class(const shortening *own, const pl_ir_class *class, const pl_lane_phase *phases, pl_ir_class *made,
                       bool *is_possible) {
  int32_t n_steps = class->n_steps, n_passes = class->n_chunks * PASS_KINDS;
  for (int p = 0; p < PL_LANE_PHASES; p++)
    n_steps -= (int32_t)own->cut[p];
  pl_ir_step *steps = PL_TAKE(own->arena, pl_ir_step, n_steps + 1);
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  cutting of = {.class = class,
                .phases = phases,
                .phase_of = PL_TAKE(own->arena, int, n_passes + 1),
                .is_there = PL_TAKE(own->arena, bool, (size_t)n_passes *(size_t)own->n_left + 1)};
  if (own->arena->failed) return false;
  for (int p = 0; p < own->recurrence->n_phases; p++)
    for (uint32_t s = phases[p].from; s < phases[p].from + own->recurrence->period[p]; s++)
      of.phase_of[pass_of(class, &class->steps[s])] = p;
  *made = *class;
  *is_possible = shorten_class(own, &of, steps, &made->n_steps);
  made->steps = steps;
  pl_arena_release_to(own->arena, mark);
  return true;
}

static bool take_fewer(const pl_ir_module *module, int32_t leapt, pl_arena *arena, pl_ir_module *made) {
  pl_ir_fewer *fewer = PL_TAKE(arena, pl_ir_fewer, module->n_fewer + 1);
  for (int32_t i = 0; fewer != NULL && i < module->n_fewer; i++) {
    fewer[i] = module->fewer[i];
    fewer[i].n_microbatches -= leapt;
  }
  made->fewer = fewer;
  return fewer != NULL;
}

bool pl_ir_recurrence_shorten(const pl_ir_module *module, const pl_ir_recurrence *recurrence, int32_t leapt,
                              pl_arena *arena, pl_ir_played *played, bool *is_possible) {
  shortening own = {.recurrence = recurrence, .leapt = leapt, .n_left = module->n_microbatches - leapt, .arena = arena};
  uint32_t n_more = (uint32_t)(leapt / recurrence->round);
  *played = (pl_ir_played){.module = *module, .n_phases = recurrence->n_phases, .n_more = n_more};
  *is_possible = leapt % recurrence->round == 0;
  pl_ir_class *classes = PL_TAKE(arena, pl_ir_class, module->n_classes + 1);
  pl_ir_phases *phases = PL_TAKE(arena, pl_ir_phases, module->n_classes + 1);
  if (arena->failed || !take_fewer(module, leapt, arena, &played->module)) return false;
  for (int p = 0; p < recurrence->n_phases; p++) {
    played->period[p] = recurrence->period[p];
    own.cut[p] = n_more * recurrence->period[p];
  }
  for (int32_t c = 0; c < module->n_classes && *is_possible; c++) {
    uint32_t gone = 0;
    for (int p = 0; p < recurrence->n_phases; p++) {
      const pl_lane_phase *whole = &recurrence->phases[c][p];
      *is_possible = *is_possible && whole->to - whole->from >= own.cut[p] + recurrence->period[p];
      phases[c][p] = (pl_lane_phase){.from = whole->from - gone, .to = whole->to - gone - own.cut[p]};
      gone += own.cut[p];
    }
    if (*is_possible && !take_class(&own, &module->classes[c], recurrence->phases[c], &classes[c], is_possible))
      return false;
  }
  played->module.n_microbatches = own.n_left;
  played->module.classes = classes;
  played->phases = (const pl_ir_phases *)phases;
  return true;
}

/* The last period of a phase, which nothing in front of it reaches into. */
uint64_t pl_ir_played_times(const pl_ir_played *played, int32_t class, int32_t step) {
  for (int p = 0; p < played->n_phases; p++) {
    const pl_lane_phase *phase = &played->phases[class][p];
    if ((uint32_t)step + played->period[p] >= phase->to && (uint32_t)step < phase->to) return 1 + played->n_more;
  }
  return 1;
}
