/* See workloads/compile/ir_graph.h: what a microbatch takes of each list, and of its way through all of them and back,
 * read from what was noted that their steps do. What contends takes longer than that, so it is a hint and no more.
 */
#include "workloads/compile/ir_graph_state.h"

/* Of a pass on one device of the crew, for which nobody waits outside of it: work and what stands between works; and
 * the longest message that it sends. */
typedef struct taken {
  pl_ticks work, sent;
} taken;

static pl_ticks ticks_of(const pl_part *parts, uint32_t n_parts) {
  pl_ticks sum = 0;
  for (uint32_t i = 0; i < n_parts; i++)
    sum = pl_ticks_sum(sum, parts[i].ticks);
  return sum;
}

static pl_ticks ticks_of_transfer(const pl_ir_graphing *own, const pl_ir_pattern *pattern, uint32_t device) {
  uint32_t class = pl_ir_graph_class_of_transfer(own, pattern, device);
  return class == PL_NONE ? 0
                          : pl_transfer_solo_ticks(own->fold->table, class, pl_ir_graph_progress_of_class(own, class));
}

static taken of_pass(pl_ir_graphing *own, const pl_ir_pass *pass, uint32_t d) {
  uint32_t device = own->now->devices[d];
  taken sum = {0};
  for (uint32_t i = 0; i < pass->n_acts; i++) {
    const pl_ir_act *act = &pass->acts[i];
    if (act->kind == PL_IR_ACT_WORK && act->stretch != NULL) {
      uint32_t kind = act->stretch->is_fused ? d : own->cluster->devices[own->places[device]].profile;
      sum.work = pl_ticks_sum(sum.work, ticks_of(act->stretch->parts[kind], act->stretch->n_parts));
    } else if (act->kind == PL_IR_ACT_MEET && act->meeting.stream == PL_STREAM_FEATURE &&
               act->behind == PL_IR_BEHIND_WORK) {
      sum.work = pl_ticks_sum(sum.work, ticks_of_transfer(own, pl_ir_graph_pattern(own, act), device));
    } else if (act->kind == PL_IR_ACT_SEND) {
      const pl_ir_crew *to = &own->crews[act->message->to];
      pl_ticks sent = to->n_devices > 0 ? ticks_of_transfer(own, pl_ir_graph_pattern(own, act), to->devices[0]) : 0;
      if (sent > sum.sent) sum.sent = sent;
    }
  }
  return sum;
}

/* Adds a class, which has one chunk, to the pace. False: its steps are others. */
static bool add_class(pl_ir_graphing *own, const pl_ir_passes *passes, pl_ir_pace *pace) {
  const pl_ir_class *class = own->now->class;
  pl_ticks longest = 0, way = 0;
  if (class->n_chunks != 1 || own->now->n_devices == 0) return false;
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    pl_ticks busy = 0, back_and_forth = 0;
    for (int kind = PL_IR_STEP_F; kind <= PL_IR_STEP_W; kind++) {
      int32_t place = 2 * kind;
      if (!passes->is_noted[place] || !passes->is_front[place]) {
        if (kind != PL_IR_STEP_W) return false;
        continue;
      }
      taken of = of_pass(own, &passes->steps[place], d);
      busy = pl_ticks_sum(busy, of.work);
      if (kind != PL_IR_STEP_W) back_and_forth = pl_ticks_sum(back_and_forth, pl_ticks_sum(of.work, of.sent));
    }
    if (busy > longest) longest = busy;
    if (back_and_forth > way) way = back_and_forth;
  }
  if (longest > pace->busiest) pace->busiest = longest;
  pace->way = pl_ticks_sum(pace->way, way);
  return true;
}

bool pl_ir_graph_pace_of(pl_ir_graphing *own, pl_ir_pace *pace) {
  *pace = (pl_ir_pace){0};
  if (own->fold == NULL || own->passes == NULL) return false;
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    own->now = &own->crews[c];
    if (!add_class(own, &own->passes[c], pace)) return false;
  }
  return true;
}

static bool has_units(const pl_ir_pass *pass) {
  for (uint32_t i = 0; i < pass->n_acts; i++)
    if (pass->acts[i].kind == PL_IR_ACT_UNIT || pass->acts[i].behind != PL_IR_BEHIND_WORK) return true;
  return false;
}

static bool has_weights(const pl_ir_class *class) {
  for (int32_t i = 0; i < class->n_chunks; i++)
    if (class->chunks[i].weights != PL_IR_NONE) return true;
  return false;
}

/* What is not noted may; what is noted ends with its step, but for functions whose parameters are gathered. Runs with
 * passes for weights settle later, as if they did: GPT-2 345M over 4 stages, zb-h1, shows its recurrence with 16
 * microbatches so, and would with 20. */
bool pl_ir_graph_carries(const pl_ir_graphing *own) {
  if (own->passes == NULL) return true;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    if (has_weights(&own->module->classes[c])) return true;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    for (int32_t i = 0; i < own->passes[c].n_noted; i++)
      if (has_units(&own->passes[c].steps[own->passes[c].noted[i]])) return true;
  return false;
}
