/* See workloads/language/ir_checking.h: whether all lists together come to their end.
 *
 * A class is one list; its devices run it together, so that collectives inside a class meet by themselves. What can
 * stop it comes from other classes: a receive waits for the send of the same pair, tag and microbatch, a sum over
 * classes for all of them. Sends do not wait. No choice is open to anybody, so one order of running the lists tells for
 * all orders whether they end: each runs until it waits, and goes on when what it waits for has come.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_flow.h"
#include "workloads/language/ir_text.h"

/* ---- meetings of a function ---- */

typedef struct tag_record {
  const char *text;
  int32_t number;
} tag_record;

static int32_t number_of(pl_flow *state, const char *text) {
  uint32_t probe = 0;
  uint64_t hash = pl_hash_bytes(text, strlen(text), 0);
  for (const tag_record *known; (known = pl_hash_index_find(&state->tags, hash, &probe)) != NULL;)
    if (strcmp(known->text, text) == 0) return known->number;
  tag_record *made = PL_TAKE(state->checking->scratch, tag_record, 1);
  if (made == NULL) return PL_IR_NONE;
  *made = (tag_record){.text = pl_arena_strdup(state->checking->scratch, text), .number = state->n_tags};
  if (made->text == NULL || !pl_hash_index_put(&state->tags, hash, made, state->checking->scratch)) return PL_IR_NONE;
  return state->n_tags++;
}

/* The classes that a meeting is with. */
static pl_code find_other(pl_flow *state, const pl_ir_function *function, const pl_ir_op *op, pl_ir_name name,
                          int32_t *other) {
  *other = pl_ir_class_find(state->checking, name);
  if (*other != PL_IR_NONE) return PL_OK;
  const pl_ir_module *module = state->checking->module;
  char list[256];
  size_t used = 0;
  list[0] = '\0';
  for (int32_t c = 0; c < module->n_classes && used + PL_IR_NAME_MAX + 8 < sizeof list; c++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", c > 0 ? ", " : "", module->classes[c].name);
  return pl_ir_check_fail(state->checking, op->place, function, op, "'%s' is not a class (there are: %s%s)", name.text,
                          list, used + PL_IR_NAME_MAX + 8 < sizeof list ? "" : " ...");
}

static pl_code name_sum(pl_flow *state, const pl_ir_function *function, const pl_ir_op *op, const char *instance,
                        pl_flow_meeting *made) {
  const pl_ir_attribute *classes = pl_ir_attribute_find(op, "classes");
  char text[UINT8_MAX * (PL_IR_NAME_MAX + 1) + 2 * PL_IR_TEXT_MAX + 8];
  /* No tag of a send begins so: those have '-' in front. */
  size_t used = (size_t)snprintf(text, sizeof text, "+%s%s\n", instance, pl_ir_attribute_find(op, "tag")->text);
  if (classes->n_names < 2)
    return pl_ir_check_fail(state->checking, op->place, function, op, "a sum over classes is over two or more");
  for (int32_t i = 0; i < classes->n_names; i++) {
    int32_t other;
    PL_TRY(find_other(state, function, op, classes->names[i], &other));
    for (int32_t k = 0; k < i; k++)
      if (pl_ir_name_equal(classes->names[k], classes->names[i]))
        return pl_ir_check_fail(state->checking, op->place, function, op, "class %s is named twice",
                                classes->names[i].text);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s,", classes->names[i].text);
  }
  made->other = PL_IR_NONE;
  made->tag = number_of(state, text);
  return made->tag != PL_IR_NONE ? PL_OK : pl_ir_check_no_memory(state->checking);
}

static pl_code name_message(pl_flow *state, const pl_ir_function *function, const pl_ir_op *op, pl_flow_meeting *made) {
  char tag[PL_IR_TEXT_MAX + 2];
  const pl_ir_attribute *other = pl_ir_attribute_find(op, op->n_inputs > 0 ? "to" : "from");
  if (other->n_names != 1)
    return pl_ir_check_fail(state->checking, op->place, function, op, "%s names %d classes; it needs one",
                            other->name.text, other->n_names);
  PL_TRY(find_other(state, function, op, other->names[0], &made->other));
  snprintf(tag, sizeof tag, "-%s", pl_ir_attribute_find(op, "tag")->text);
  made->tag = number_of(state, tag);
  return made->tag != PL_IR_NONE ? PL_OK : pl_ir_check_no_memory(state->checking);
}

static pl_code add_meeting(pl_flow *state, pl_ir_inside *inside, const pl_ir_op *op, pl_flow_meeting *made) {
  const pl_ir_frame *frame = &inside->frames[inside->depth - 1];
  *made = (pl_flow_meeting){.function = frame->function, .op = op};
  if (pl_ir_attribute_find(op, "classes") == NULL) return name_message(state, frame->function, op, made);
  inside->prefix[frame->prefix_length] = '\0';
  return name_sum(state, frame->function, op, inside->prefix, made);
}

static bool meets(const pl_ir_row *row) {
  return row->effect == PL_IR_SENDS;
}

static int32_t count_meetings(const pl_flow *state, int32_t function) {
  pl_ir_inside walk;
  int32_t n = 0;
  pl_ir_inside_begin(&walk, state->checking->module, state->picked, function);
  while (pl_ir_inside_next(&walk) != NULL)
    n++;
  return n;
}

static pl_code find_meetings(pl_flow *state, int32_t function) {
  if (function == PL_IR_NONE || state->by_function[function].known) return PL_OK;
  pl_flow_meetings *own = &state->by_function[function];
  pl_flow_meeting *list = PL_TAKE(state->checking->scratch, pl_flow_meeting, count_meetings(state, function) + 1);
  if (list == NULL) return pl_ir_check_no_memory(state->checking);
  pl_ir_inside walk;
  pl_ir_inside_begin(&walk, state->checking->module, state->picked, function);
  for (const pl_ir_op *op; (op = pl_ir_inside_next(&walk)) != NULL;)
    PL_TRY(add_meeting(state, &walk, op, &list[own->n++]));
  own->list = list;
  own->known = true;
  return PL_OK;
}

/* ---- the lists ---- */

static int32_t function_at(const pl_flow *state, const pl_ir_step *step) {
  const pl_ir_chunk *chunk = state->chunks[step->chunk];
  return step->kind == PL_IR_STEP_F ? chunk->forward : step->kind == PL_IR_STEP_B ? chunk->backward : chunk->weights;
}

const pl_flow_meetings *pl_flow_meetings_at(const pl_flow *state, int32_t c, int32_t step) {
  const pl_ir_class *own = &state->checking->module->classes[c];
  int32_t function = step < own->n_steps ? function_at(state, &own->steps[step]) : own->update;
  return function != PL_IR_NONE ? &state->by_function[function] : NULL;
}

int32_t pl_flow_microbatch_at(const pl_flow *state, int32_t c, int32_t step) {
  const pl_ir_class *own = &state->checking->module->classes[c];
  return step < own->n_steps ? own->steps[step].microbatch : PL_IR_NONE;
}

/* "F0.3 of class stage1" */
const char *pl_flow_step_text(const pl_flow *state, int32_t c, char text[PL_IR_WHERE_BYTES]) {
  const pl_ir_class *own = &state->checking->module->classes[c];
  int32_t step = state->lanes[c].step;
  if (step >= own->n_steps) {
    snprintf(text, PL_IR_WHERE_BYTES, "the update of class %s", own->name);
  } else {
    snprintf(text, PL_IR_WHERE_BYTES, "%c%d.%d of class %s", "FBW"[own->steps[step].kind], own -> steps[step].chunk,
             own->steps[step].microbatch, own->name);
  }
  return text;
}

static pl_flow_route *find_route(pl_flow *state, int32_t from, int32_t to, int32_t tag) {
  uint64_t hash = pl_hash_word((uint64_t)(uint32_t)from << 32 | (uint32_t)to, (uint64_t)(uint32_t)tag);
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(&state->routes, hash, &probe)) != NULL;) {
    pl_flow_route *own = (pl_flow_route *)(uintptr_t)found; /* ours */
    if (own->from == from && own->to == to && own->tag == tag) return own;
  }
  pl_flow_route *made = PL_TAKE(state->checking->scratch, pl_flow_route, 1);
  if (made == NULL) return NULL;
  *made = (pl_flow_route){.from = from, .to = to, .tag = tag};
  return pl_hash_index_put(&state->routes, hash, made, state->checking->scratch) ? made : NULL;
}

static pl_flow_channel *find_channel(pl_flow *state, pl_flow_meeting *on, int32_t from, int32_t to,
                                     int32_t microbatch) {
  if (on->route == NULL || on->route->from != from || on->route->to != to)
    on->route = find_route(state, from, to, on->tag);
  if (on->route == NULL) return NULL;
  if (microbatch != PL_IR_NONE && on->route->channels == NULL)
    on->route->channels =
        PL_TAKE(state->checking->scratch, pl_flow_channel, (size_t)state->checking->module->n_microbatches + 1);
  if (state->checking->scratch->failed) return NULL;
  pl_flow_channel *own = microbatch != PL_IR_NONE ? &on->route->channels[microbatch] : &on->route->of_update;
  if (own->is_known) return own;
  if (state->n_all == state->room_all) return NULL;
  own->on = on->route; /* the rest is clear */
  own->microbatch = microbatch;
  own->is_known = true;
  return state->all[state->n_all++] = own;
}

/* ---- going on ---- */

static void wake(pl_flow *state, int32_t c) {
  state->lanes[c].waits = NULL;
  state->lanes[c].at++;
  state->ready[state->n_ready++] = c;
}

static pl_code check_types(pl_flow *state, const pl_flow_meeting *one, const pl_ir_type *is,
                           const pl_flow_meeting *other, const pl_ir_type *should) {
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES], where[PL_IR_WHERE_BYTES];
  if (pl_ir_type_equal(is, should)) return PL_OK;
  return pl_ir_check_fail(state->checking, one->op->place, one->function, one->op,
                          "%s of %s meets %s of %s in %s: they have one type", pl_ir_row_at(one->op->row)->name,
                          pl_ir_type_text(&state->checking->module->mesh, is, a), pl_ir_row_at(other->op->row)->name,
                          pl_ir_type_text(&state->checking->module->mesh, should, b),
                          pl_ir_where(other->function, other->op, where));
}

static const pl_ir_type *type_of(const pl_flow_meeting *own) {
  return &own->function->values[own->op->n_inputs > 0 ? own->op->inputs[0] : own->op->first_output].type;
}

/* A message and its receive, microbatch by microbatch the same two. */
static pl_code check_message(pl_flow *state, const pl_flow_meeting *receive, const pl_flow_meeting *sent) {
  pl_flow_route *on = receive->route;
  if (on->received == receive && on->sent == sent) return PL_OK;
  on->received = receive;
  on->sent = sent;
  return check_types(state, receive, type_of(receive), sent, type_of(sent));
}

static pl_code run_send(pl_flow *state, int32_t c, pl_flow_meeting *own) {
  int32_t microbatch = pl_flow_microbatch_at(state, c, state->lanes[c].step);
  pl_flow_channel *way = find_channel(state, own, c, own->other, microbatch);
  if (way == NULL) return pl_ir_check_no_memory(state->checking);
  if (way->sent != NULL) {
    char where[PL_IR_WHERE_BYTES];
    return pl_ir_check_fail(state->checking, own->op->place, own->function, own->op,
                            "class %s sends to class %s under the tag \"%.60s\" twice in one microbatch: in %s too",
                            state->checking->module->classes[c].name, state->checking->module->classes[own->other].name,
                            pl_ir_attribute_find(own->op, "tag")->text,
                            pl_ir_where(way->sent->function, way->sent->op, where));
  }
  state->lanes[c].at++;
  way->sent = own;
  if (!way->waits) return PL_OK;
  const pl_flow_meeting *receive = state->lanes[way->on->to].waits;
  way->received = true;
  PL_TRY(check_message(state, receive, own));
  wake(state, way->on->to);
  return PL_OK;
}

/* *stops: nothing has come yet. */
static pl_code run_receive(pl_flow *state, int32_t c, pl_flow_meeting *own, bool *stops) {
  pl_flow_channel *way = find_channel(state, own, own->other, c, pl_flow_microbatch_at(state, c, state->lanes[c].step));
  if (way == NULL) return pl_ir_check_no_memory(state->checking);
  *stops = way->sent == NULL || way->received;
  if (*stops) {
    way->waits = true;
    state->lanes[c].waits = own;
    return PL_OK;
  }
  way->received = true;
  state->lanes[c].at++;
  return check_message(state, own, way->sent);
}

/* *stops: others have yet to come. The last one wakes them, and itself. */
static pl_code run_sum(pl_flow *state, int32_t c, const pl_flow_meeting *own, bool *stops) {
  const pl_ir_attribute *classes = pl_ir_attribute_find(own->op, "classes");
  pl_flow_gathering *there = &state->gatherings[own->tag];
  bool named = false;
  for (int32_t i = 0; i < classes->n_names; i++)
    named = named || pl_ir_class_find(state->checking, classes->names[i]) == c;
  if (!named)
    return pl_ir_check_fail(state->checking, own->op->place, own->function, own->op,
                            "class %s runs this sum over classes and is not one of them",
                            state->checking->module->classes[c].name);
  if (there->n_come == classes->n_names)
    return pl_ir_check_fail(state->checking, own->op->place, own->function, own->op,
                            "this sum over classes has been met in this iteration: another one needs another tag");
  if (there->n_come > 0) PL_TRY(check_types(state, own, type_of(own), there->first, type_of(there->first)));
  if (there->n_come == 0) there->first = own;
  state->lanes[c].waits = own;
  *stops = true;
  if (++there->n_come < classes->n_names) return PL_OK;
  for (int32_t i = 0; i < classes->n_names; i++)
    wake(state, pl_ir_class_find(state->checking, classes->names[i]));
  return PL_OK;
}

static bool is_joined(const pl_ir_class *class, int32_t step) {
  return step < class->n_steps && (class->steps[step].joined || (step > 0 && class->steps[step - 1].joined));
}

/* On to the next step; through steps that are joined a second time, for what they send. */
static void next_step(pl_flow_lane *own, const pl_ir_class *class) {
  own->at = 0;
  if (own->step < class->n_steps && class->steps[own->step].joined) {
    own->step++;
    return;
  }
  if (is_joined(class, own->step) && !own->sends) {
    while (own->step > 0 && class->steps[own->step - 1].joined)
      own->step--;
    own->sends = true;
    return;
  }
  own->sends = false;
  own->step++;
}

static pl_code run_lane(pl_flow *state, int32_t c) {
  pl_flow_lane *own = &state->lanes[c];
  const pl_ir_class *class = &state->checking->module->classes[c];
  for (bool stops = false; own->step <= class->n_steps; next_step(own, class)) {
    const pl_flow_meetings *list = pl_flow_meetings_at(state, c, own->step);
    bool joined = is_joined(class, own->step);
    while (list != NULL && own->at < list->n) {
      pl_flow_meeting *next = &list->list[own->at];
      bool is_send = next->other != PL_IR_NONE && next->op->n_inputs > 0;
      if (joined && is_send != own->sends) {
        own->at++;
      } else if (next->other == PL_IR_NONE) {
        PL_TRY(run_sum(state, c, next, &stops));
      } else if (next->op->n_inputs > 0) {
        PL_TRY(run_send(state, c, next));
      } else {
        PL_TRY(run_receive(state, c, next, &stops));
      }
      if (stops) return PL_OK;
    }
  }
  return PL_OK;
}

/* ---- all of it ---- */

static pl_code prepare(pl_flow *state, int64_t *n) {
  const pl_ir_module *module = state->checking->module;
  *n = 0;
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_ir_class *own = &module->classes[c];
    for (int32_t i = 0; i < own->n_chunks; i++) {
      state->chunks[own->chunks[i].chunk] = &own->chunks[i];
      PL_TRY(find_meetings(state, own->chunks[i].forward));
      PL_TRY(find_meetings(state, own->chunks[i].backward));
      PL_TRY(find_meetings(state, own->chunks[i].weights));
    }
    PL_TRY(find_meetings(state, own->update));
    for (int32_t step = 0; step <= own->n_steps; step++) {
      const pl_flow_meetings *list = pl_flow_meetings_at(state, c, step);
      *n += list != NULL ? list->n : 0;
    }
    if (*n > PL_IR_MEETINGS_MAX)
      return pl_ir_check_fail(state->checking, own->place, NULL, NULL,
                              "up to class %s the steps have more than %d sends, receives and sums over classes",
                              own->name, PL_IR_MEETINGS_MAX);
  }
  return PL_OK;
}

pl_code pl_ir_check_flow(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  pl_flow state = {.checking = checking};
  int64_t n_chunks = 0;
  for (int32_t c = 0; c < module->n_classes; c++)
    n_chunks += module->classes[c].n_chunks;
  state.picked = pl_ir_inside_pick(checking, meets);
  state.chunks = (const pl_ir_chunk **)PL_TAKE(checking->scratch, pl_ir_chunk *, n_chunks + 1);
  state.by_function = PL_TAKE(checking->scratch, pl_flow_meetings, module->n_functions + 1);
  state.lanes = PL_TAKE(checking->scratch, pl_flow_lane, module->n_classes + 1);
  state.ready = PL_TAKE(checking->scratch, int32_t, 2 * module->n_classes + 1);
  if (state.picked == NULL || state.chunks == NULL || state.by_function == NULL || state.lanes == NULL ||
      state.ready == NULL)
    return pl_ir_check_no_memory(checking);
  PL_TRY(prepare(&state, &state.room_all));
  if (state.room_all == 0) return PL_OK;
  state.gatherings = PL_TAKE(checking->scratch, pl_flow_gathering, state.n_tags + 1);
  state.all = PL_TAKE(checking->scratch, pl_flow_channel *, state.room_all + 1);
  if (state.gatherings == NULL || state.all == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t c = module->n_classes - 1; c >= 0; c--)
    state.ready[state.n_ready++] = c;
  while (state.n_ready > 0)
    PL_TRY(run_lane(&state, state.ready[--state.n_ready]));
  return pl_flow_check_end(&state);
}
