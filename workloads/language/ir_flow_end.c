/* See workloads/language/ir_flow.h: where lists stop before their end, and what nobody has received. */
#include <stdio.h>

#include "workloads/language/ir_flow.h"
#include "workloads/language/ir_text.h"

/* The class that `c` waits for; of a sum the first one that has not come. */
static int32_t waits_for(const pl_flow *state, int32_t c) {
  const pl_flow_meeting *own = state->lanes[c].waits;
  if (own->other != PL_IR_NONE) return own->other;
  const pl_ir_attribute *classes = pl_ir_attribute_find(own->op, "classes");
  for (int32_t i = 0; i < classes->n_names; i++) {
    int32_t other = pl_ir_class_find(state->checking, classes->names[i]);
    const pl_flow_meeting *theirs = state->lanes[other].waits;
    if (theirs == NULL || theirs->tag != own->tag) return other;
  }
  return c;
}

static const char *waiting_text(const pl_flow *state, int32_t c, char text[PL_ERROR_MESSAGE_BYTES / 4]) {
  char step[PL_IR_WHERE_BYTES], where[PL_IR_WHERE_BYTES];
  const pl_flow_meeting *own = state->lanes[c].waits;
  const pl_ir_attribute *tag = pl_ir_attribute_find(own->op, "tag");
  snprintf(text, PL_ERROR_MESSAGE_BYTES / 4, "%s waits in %s for %s%s%.60s%s", pl_flow_step_text(state, c, step),
           pl_ir_where(own->function, own->op, where), pl_ir_row_at(own->op->row)->name, tag != NULL ? " \"" : "",
           tag != NULL ? tag->text : "", tag != NULL ? "\"" : "");
  return text;
}

/* Whether the rest of the list of `other` has what `c` waits for. */
static bool comes_later(const pl_flow *state, int32_t c, int32_t other) {
  const pl_flow_meeting *wanted = state->lanes[c].waits;
  const pl_ir_class *class = &state->checking->module->classes[other];
  int32_t microbatch = pl_flow_microbatch_at(state, c, state->lanes[c].step), at = state->lanes[other].at;
  int32_t first = state->lanes[other].step;
  while (!state->lanes[other].sends && first > 0 && first <= class->n_steps && class->steps[first - 1].joined)
    first--, at = 0; /* none of them has sent anything */
  for (int32_t step = first; step <= class->n_steps; step++, at = 0) {
    const pl_flow_meetings *list = pl_flow_meetings_at(state, other, step);
    for (; list != NULL && at < list->n; at++) {
      const pl_flow_meeting *next = &list->list[at];
      if (next->tag != wanted->tag) continue;
      if (wanted->other == PL_IR_NONE) return true;
      if (next->op->n_inputs > 0 && next->other == c && pl_flow_microbatch_at(state, other, step) == microbatch)
        return true;
    }
  }
  return false;
}

/* Follows who waits for whom until what is waited for is not there, or a list is met again: a ring that waits. */
static pl_code report_stop(const pl_flow *state, int32_t first) {
  const pl_ir_module *module = state->checking->module;
  char one[PL_ERROR_MESSAGE_BYTES / 4], two[PL_ERROR_MESSAGE_BYTES / 4];
  int32_t c = first, other = waits_for(state, c);
  for (int32_t i = 0; i < module->n_classes && comes_later(state, c, other); i++) {
    c = other;
    other = waits_for(state, c);
  }
  const pl_flow_meeting *own = state->lanes[c].waits;
  if (!comes_later(state, c, other))
    return pl_ir_check_fail(state->checking, own->op->place, own->function, own->op,
                            "this never comes: %s from class %s, in whose list there is no %s for it any more",
                            waiting_text(state, c, one), module->classes[other].name,
                            own->other == PL_IR_NONE ? "sum_classes of the same classes"
                                                     : "send of this tag and microbatch");
  return pl_ir_check_fail(state->checking, own->op->place, own->function, own->op,
                          "deadlock: %s from class %s, and %s: another order of their steps is needed",
                          waiting_text(state, c, one), module->classes[other].name, waiting_text(state, other, two));
}

pl_code pl_flow_check_end(const pl_flow *state) {
  const pl_ir_module *module = state->checking->module;
  for (int32_t c = 0; c < module->n_classes; c++)
    if (state->lanes[c].waits != NULL) return report_stop(state, c);
  for (int64_t i = 0; i < state->n_all; i++) {
    const pl_flow_channel *way = state->all[i];
    if (way->sent == NULL || way->received) continue;
    char microbatch[48] = "in the update";
    if (way->microbatch != PL_IR_NONE) snprintf(microbatch, sizeof microbatch, "in microbatch %d", way->microbatch);
    return pl_ir_check_fail(state->checking, way->sent->op->place, way->sent->function, way->sent->op,
                            "what class %s sends %s under the tag \"%.60s\" is never received by class %s",
                            module->classes[way->on->from].name, microbatch,
                            pl_ir_attribute_find(way->sent->op, "tag")->text, module->classes[way->on->to].name);
  }
  return PL_OK;
}
