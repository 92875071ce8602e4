/* See workloads/compile/ir_graph_state.h: what the steps of a list do is the same for every microbatch, but for the
 * last of a chunk, behind which gradients are reduced. Each is gone through op by op once, for all graphs of a program,
 * and what it does, act by act, is noted; a graph is made of these notes. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_alike.h"

enum { KINDS = PL_IR_STEP_W + 1 };

/* ---- which is which ---- */

/* In pl_ir_passes.steps: by chunk of the class, kind, and whether no later step does the same. Forward passes are alike
 * to the last. */
static int32_t place_of(const pl_ir_class *class, int32_t step, bool is_last) {
  const pl_ir_step *is = &class->steps[step];
  int32_t c = 0;
  while (class->chunks[c].chunk != is->chunk)
    c++;
  return (c * KINDS + is->kind) * 2 + (is_last && is->kind != PL_IR_STEP_F);
}

static int32_t place_of_update(const pl_ir_class *class) {
  return class->n_chunks * KINDS * 2;
}

const int32_t *pl_ir_graph_places(pl_ir_graphing *own, const pl_ir_class *class) {
  int32_t *places = PL_TAKE(own->arena, int32_t, class->n_steps + 1);
  bool *seen = PL_TAKE(own->arena, bool, place_of_update(class) + 1);
  if (places == NULL || seen == NULL) return NULL;
  for (int32_t s = class->n_steps; s-- > 0;) {
    int32_t place = place_of(class, s, false);
    places[s] = place_of(class, s, !seen[place]);
    seen[place] = true;
  }
  places[class->n_steps] = place_of_update(class);
  return places;
}

/* ---- notes ---- */

/* Not cleared: each act is written as a whole. */
static bool take_acts(pl_ir_graphing *own, uint32_t n, pl_ir_pass *pass) {
  pass->acts = pl_arena_take(own->arena, n * sizeof *pass->acts, _Alignof(pl_ir_act));
  pass->room_acts = n;
  return pass->acts != NULL;
}

pl_code pl_ir_graph_note(pl_ir_graphing *own, const pl_ir_act *act) {
  enum { FIRST_ACTS = 64 };
  pl_ir_pass *pass = own->noted;
  if (pass->acts == NULL && !take_acts(own, FIRST_ACTS, pass)) return pl_ir_graph_no_memory(own);
  pass->acts =
      (pl_ir_act *)pl_arena_grown(own->arena, pass->acts, pass->n_acts, 1, sizeof *pass->acts, &pass->room_acts);
  if (pass->acts == NULL) return pl_ir_graph_no_memory(own);
  pass->acts[pass->n_acts++] = *act;
  return PL_OK;
}

bool pl_ir_graph_note_run(pl_ir_graphing *own, pl_ir_price *price) {
  pl_ir_pass *pass = own->noted;
  pass->runs = (pl_ir_price **)pl_arena_grown(own->arena, (const void *)pass->runs, pass->n_runs, 1, sizeof *pass->runs,
                                              &pass->room_runs);
  if (pass->runs == NULL) return false;
  pass->runs[pass->n_runs++] = price;
  return true;
}

static bool take_passes(pl_ir_graphing *own, const pl_ir_class *class, pl_ir_passes *made) {
  size_t n = (size_t)place_of_update(class) + 1;
  *made = (pl_ir_passes){.steps = PL_TAKE(own->arena, pl_ir_pass, n),
                         .is_noted = PL_TAKE(own->arena, bool, n),
                         .is_front = PL_TAKE(own->arena, bool, n),
                         .noted = PL_TAKE(own->arena, int32_t, n)};
  return !own->arena->failed;
}

/* Whether all that the list does is noted, and what is the last of its kind comes in the order in which it did then,
 * for gradients gather in buckets from one of them to the next, and behind the same passes. */
static bool are_known(const pl_ir_passes *passes, const int32_t *places, int32_t n_places) {
  int32_t at = 0;
  bool is_behind = false;
  if (passes->steps == NULL) return false;
  for (int32_t i = 0; i < n_places; i++) {
    if (!passes->is_noted[places[i]] || (is_behind && passes->is_front[places[i]])) return false;
    if (!pl_ir_graph_is_last(places[i])) continue;
    is_behind = true;
    while (at < passes->n_noted && !pl_ir_graph_is_last(passes->noted[at]))
      at++;
    if (at == passes->n_noted || passes->noted[at++] != places[i]) return false;
  }
  return true;
}

/* Of what is noted; what follows the list is not. */
static void find_front(pl_ir_passes *passes, const int32_t *places, int32_t n_steps) {
  bool is_behind = false;
  for (int32_t i = 0; i < n_steps; i++)
    passes->is_front[places[i]] = true;
  for (int32_t i = 0; i < n_steps; i++) {
    is_behind = is_behind || pl_ir_graph_is_last(places[i]);
    if (is_behind) passes->is_front[places[i]] = false;
  }
}

/* *hands_on: a step ends with something that the next one is to wait for. */
static pl_code note_list(pl_ir_graphing *own, pl_ir_step_walk walk, const int32_t *places, pl_ir_passes *passes,
                         bool *hands_on) {
  const pl_ir_class *class = own->now->class;
  if (!take_passes(own, class, passes)) return pl_ir_graph_no_memory(own);
  PL_TRY(pl_ir_graph_find_reductions(own));
  own->heard = (pl_hash_index){.count = 0};
  for (int32_t s = 0; s <= class->n_steps; s++) {
    if (passes->is_noted[places[s]]) continue;
    pl_ir_pass *pass = own->noted = &passes->steps[places[s]];
    passes->is_noted[places[s]] = true;
    passes->noted[passes->n_noted++] = places[s];
    own->updates = false;
    PL_TRY(walk(own, s, pl_ir_graph_is_last(places[s])));
    pass->updates = own->updates;
    memcpy(pass->launch, own->launch_ticks, sizeof pass->launch);
    *hands_on = own->n_awaited > 0;
    own->n_awaited = 0;
    if (*hands_on) break;
  }
  find_front(passes, places, class->n_steps);
  return PL_OK;
}

/* ---- lists that are alike ---- */

/* The message of the class at hand that corresponds to this one of `like`. */
static pl_ir_message *message_like(pl_ir_graphing *own, const pl_ir_class *like, const pl_ir_act *act) {
  const pl_ir_class *classes = own->module->classes;
  const pl_ir_message *message = act->message;
  bool sends = act->kind == PL_IR_ACT_SEND;
  const pl_ir_telling telling = {
      .sends = sends, .other = classes[sends ? message->to : message->from].name, .tag = message->tag};
  const pl_ir_op *op = pl_ir_alike_op(own->module, like, own->now->class, &telling);
  PL_ASSERT(op != NULL);
  const pl_ir_crew *other = pl_ir_graph_crew_named(own, pl_ir_text_of(op, sends ? "to" : "from"));
  return pl_ir_graph_message(own, sends ? own->now : other, sends ? other : own->now, pl_ir_text_of(op, "tag"));
}

static bool copy_pass(pl_ir_graphing *own, const pl_ir_class *like, pl_ir_pass *pass) {
  const pl_ir_act *acts = pass->acts;
  if (!take_acts(own, pass->n_acts + 1, pass)) return false;
  for (uint32_t i = 0; i < pass->n_acts; i++) {
    pl_ir_act *act = &pass->acts[i];
    *act = acts[i];
    if (act->message != NULL && (act->message = message_like(own, like, act)) == NULL) return false;
  }
  return true;
}

/* Takes over what a list that is like this one was noted to do, message by message; arrays of tasks serve both, for
 * lists are done one after the other. *done false: what is the last of its kind does not come in the same order. */
static pl_code take_over(pl_ir_graphing *own, int32_t like, const int32_t *places, pl_ir_passes *passes, bool *done) {
  const pl_ir_class *class = own->now->class;
  const pl_ir_passes *from = &own->passes[like];
  size_t n = (size_t)place_of_update(class) + 1;
  *done = false;
  if (own->crews[like].n_devices != own->now->n_devices) return PL_OK;
  pl_ir_passes made;
  if (!take_passes(own, class, &made)) return pl_ir_graph_no_memory(own);
  memcpy(made.steps, from->steps, n * sizeof *made.steps);
  memcpy(made.is_noted, from->is_noted, n * sizeof *made.is_noted);
  memcpy(made.noted, from->noted, n * sizeof *made.noted);
  made.n_noted = from->n_noted;
  find_front(&made, places, class->n_steps);
  if (!are_known(&made, places, class->n_steps + 1)) return PL_OK;
  for (int32_t i = 0; i < made.n_noted; i++)
    if (!copy_pass(own, &own->module->classes[like], &made.steps[made.noted[i]])) return pl_ir_graph_no_memory(own);
  made.like = like + 1;
  *passes = made;
  *done = true;
  return PL_OK;
}

/* Per class the one that it is like, as far as nothing stands in the way: names are of each list's own paths, and notes
 * of graphs before may have been put together by device (ir_graph_fuse.c). NULL: none is, or no memory. */
static const int32_t *find_likes(pl_ir_graphing *own) {
  bool is_first = own->graph == 1 && !own->options->names && own->module->n_fewer == 0;
  return own->passes != NULL && is_first ? pl_ir_alike_take(own->module, own->arena) : NULL;
}

pl_code pl_ir_graph_note_passes(pl_ir_graphing *own, pl_ir_step_walk walk) {
  const int32_t *likes = find_likes(own);
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  for (int32_t c = 0; c < own->module->n_classes && own->passes != NULL; c++) {
    pl_ir_passes *passes = &own->passes[c];
    own->now = &own->crews[c];
    const pl_ir_class *class = own->now->class = &own->module->classes[c];
    const int32_t *places = pl_ir_graph_places(own, class);
    bool hands_on = false, is_taken = false;
    if (places == NULL) return pl_ir_graph_no_memory(own);
    if (are_known(passes, places, class->n_steps + 1)) continue;
    if (likes != NULL && likes[c] != c) PL_TRY(take_over(own, likes[c], places, passes, &is_taken));
    if (is_taken) continue;
    pl_code code = note_list(own, walk, places, passes, &hands_on);
    own->noted = NULL;
    if (code != PL_OK) return code;
    if (hands_on) own->passes = NULL;
  }
  return PL_OK;
}

/* ---- what was noted is done ---- */

/* Devices of the class that run the step. */
uint64_t pl_ir_graph_present(const pl_ir_graphing *own) {
  if (own->fold != NULL) return pl_ir_graph_whole_crew(own)->n_devices;
  uint64_t n = own->now->n_devices;
  for (uint32_t d = 0; own->module->n_fewer > 0 && d < own->now->n_devices; d++)
    n -= pl_ir_graph_is_absent(own, own->now->devices[d]);
  return n;
}

static void count_pass(pl_ir_graphing *own, pl_ir_pass *pass) {
  uint64_t n_on_all = pl_ir_graph_present(own) * own->times;
  pass->times += own->times;
  pass->times_on_all += n_on_all;
  own->made->n_kernels += n_on_all * pass->n_runs;
  own->made->n_collectives += pass->n_collectives * own->times;
}

static pl_code do_pass(pl_ir_graphing *own, pl_ir_pass *pass) {
  count_pass(own, pass);
  for (uint32_t i = 0; i < pass->n_acts; i++)
    PL_TRY(pl_ir_graph_do(own, &pass->acts[i]));
  return PL_OK;
}

/* ---- steps beside each other ---- */

/* Of steps that are joined the forward pass, or all others. */
typedef struct side {
  int32_t step, end; /* that it is at, and behind its last */
  uint32_t act;
  uint32_t *last; /* as the crew's */
} side;

static bool exchanges_tokens(const pl_ir_act *act) {
  return act->kind == PL_IR_ACT_MEET && act->meeting.of_tokens;
}

/* On to where it waits for tokens, or to its end. */
static pl_code do_side(pl_ir_graphing *own, const pl_ir_passes *passes, const int32_t *places, side *of) {
  uint32_t *last = own->now->last;
  bool goes_on = own->framework->pipeline.token_order == PL_TOKENS_DELAYED; /* with what waits for none */
  own->now->last = of->last;
  for (bool waits = false; of->step < of->end;) {
    const pl_ir_pass *pass = &passes->steps[places[of->step]];
    if (of->act == pass->n_acts) {
      of->step++;
      of->act = 0;
      continue;
    }
    const pl_ir_act *act = &pass->acts[of->act];
    if (waits && act->kind == PL_IR_ACT_WORK && (act->n_awaited > 0 || !goes_on))
      break; /* other exchanges may go with
               the tokens */
    of->act++;
    own->microbatch = own->now->class->steps[of->step].microbatch;
    PL_TRY(pl_ir_graph_do(own, act));
    waits = waits || exchanges_tokens(act);
  }
  own->now->last = last;
  return PL_OK;
}

static bool ever_exchanges(const pl_ir_passes *passes, const int32_t *places, const side *of) {
  for (int32_t step = of->step; step < of->end; step++) {
    const pl_ir_pass *pass = &passes->steps[places[step]];
    for (uint32_t i = 0; i < pass->n_acts; i++)
      if (exchanges_tokens(&pass->acts[i])) return true;
  }
  return false;
}

static bool begin_side(pl_ir_graphing *own, int32_t step, int32_t end, side *made) {
  *made = (side){.step = step, .end = end, .last = PL_TAKE(own->arena, uint32_t, own->now->n_devices + 1)};
  if (made->last != NULL) memcpy(made->last, own->now->last, own->now->n_devices * sizeof *made->last);
  return made->last != NULL;
}

/* The forward pass at `first` and those behind it up to `end`, in turn. Work is in the order of its stream, so whoever
 * has not what it waits for holds up the other, too. The backward passes go first if they exchange tokens, as in pairs
 * of tuples (workloads/compile/compile_state.h). What follows in the list waits for the newer of both sides' work. */
static pl_code do_joined(pl_ir_graphing *own, pl_ir_passes *passes, const int32_t *places, int32_t first, int32_t end) {
  side sides[2];
  if (!begin_side(own, first, first + 1, &sides[0]) || !begin_side(own, first + 1, end, &sides[1]))
    return pl_ir_graph_no_memory(own);
  for (int32_t s = first; s < end; s++)
    count_pass(own, &passes->steps[places[s]]);
  bool backward_first = ever_exchanges(passes, places, &sides[1]);
  while (sides[0].step < sides[0].end || sides[1].step < sides[1].end)
    for (int i = 0; i < 2; i++)
      PL_TRY(do_side(own, passes, places, &sides[backward_first ? 1 - i : i]));
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t a = sides[0].last[d], b = sides[1].last[d];
    own->now->last[d] = a == PL_NONE || (b != PL_NONE && b > a) ? b : a;
  }
  return PL_OK;
}

static bool add_insides(pl_ir_graphing *own, const pl_ir_pass *pass) {
  pl_ir_graph *made = own->made;
  if (!own->options->spendings || pass->n_insides == 0) return true;
  pl_ir_within *grown = (pl_ir_within *)pl_arena_grown(own->arena, made->insides, made->n_insides, pass->n_insides,
                                                       sizeof *grown, &own->room_insides);
  if (grown == NULL) return false;
  for (uint32_t i = 0; i < pass->n_insides; i++) {
    grown[made->n_insides] = pass->insides[i];
    grown[made->n_insides++].n = pass->times;
  }
  made->insides = grown;
  return true;
}

pl_code pl_ir_graph_do_list(pl_ir_graphing *own, void (*begin_step)(pl_ir_graphing *own, int32_t step)) {
  const pl_ir_class *class = own->now->class;
  pl_ir_passes *passes = &own->passes[own->now - own->crews];
  const int32_t *places = pl_ir_graph_places(own, class);
  if (places == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t s = 0; s <= class->n_steps; s++) {
    begin_step(own, s);
    own->microbatch = s < class->n_steps ? class->steps[s].microbatch : PL_IR_NONE;
    int32_t end = s + 1;
    while (end <= class->n_steps && class->steps[end - 1].joined)
      end++;
    PL_TRY(end > s + 1 ? do_joined(own, passes, places, s, end) : do_pass(own, &passes->steps[places[s]]));
    while (s + 1 < end) /* lists have as many steps as they have */
      begin_step(own, ++s);
  }
  const pl_ir_pass *update = &passes->steps[places[class->n_steps]];
  own->updates = update->updates;
  memcpy(own->launch_ticks, update->launch, sizeof update->launch);
  for (int32_t i = 0; i < passes->n_noted; i++) {
    pl_ir_pass *pass = &passes->steps[passes->noted[i]];
    for (uint32_t r = 0; r < pass->n_runs; r++) {
      pass->runs[r]->n_runs += pass->times;
      pass->runs[r]->n_on_all += pass->times_on_all;
    }
    for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
      own->late_ticks[p] += (pl_ticks)pass->times * pass->late[p];
    if (!add_insides(own, pass)) return pl_ir_graph_no_memory(own);
    pass->times = pass->times_on_all = 0;
  }
  return PL_OK;
}
