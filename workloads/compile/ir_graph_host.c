/* See workloads/compile/ir_graph_state.h: by how much the host of an eager framework is late in the passes of a program
 * of level kernels. As of a tuple's blocks (workloads/compile/host_floor.h): over a window in which nothing makes it
 * wait, a forward and a backward pass or each by itself, the device takes at least what the host needs to launch it
 * all; what is missing is put behind the functions that a chunk calls, in proportion to what the host has to launch for
 * each. Collectives of tensor, context and expert group count on the device with what they take alone on the network.
 */
#include <math.h>
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_layer.h"
#include "workloads/language/ir_work.h"

static bool is_in_time(const pl_framework *framework) {
  return framework->launch.launch_s <= 0 && framework->launch.backward_launch_s <= 0 &&
         framework->launch.collective_s <= 0 && framework->launch.collective_rank_s <= 0 &&
         framework->launch.layer_s <= 0;
}

/* Exchanges of tokens beside which shared experts compute, until what comes with them is read; workloads/compile/
 * host_floor.c says the same of tuples. */
typedef struct hidden_exchange {
  double alone_s, since_s[PL_IR_GRAPH_PROFILES_MAX]; /* and what had been computed when it began */
} hidden_exchange;

static void hide(const pl_ir_graphing *own, double alone_s, hidden_exchange *hidden, const pl_ir_load *load) {
  for (uint32_t p = 0; hidden->alone_s == 0 && p < own->cluster->n_profiles; p++)
    hidden->since_s[p] = load->device_s[p];
  hidden->alone_s += alone_s;
}

/* What is not hidden of it counts once the op reads it. */
static void await_hidden(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                         hidden_exchange *hidden, pl_ir_load *load) {
  bool reads = false;
  for (int32_t i = 0; hidden->alone_s > 0 && i < op->n_inputs; i++) {
    int32_t maker = f->values[op->inputs[i]].op;
    reads = reads || (maker != PL_IR_NONE && pl_ir_op_is(&f->ops[maker], "all_to_all"));
  }
  if (!reads || pl_ir_op_is(op, "all_to_all")) return;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    load->device_s[p] += fmax(0, hidden->alone_s - (load->device_s[p] - hidden->since_s[p]));
  hidden->alone_s = 0;
}

/* Computing waits for all but the data group, whose collectives the host calls beside it, and those that run beside
 * products. */
static pl_code add_meeting(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, hidden_exchange *hidden,
                           pl_ir_load *load) {
  bool ring = pl_ir_row_is_ring(pl_ir_row_at(op->row));
  bool meets = pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE && !pl_ir_op_is(op, "shift");
  if (pl_ir_graph_is_leg(f, op) || pl_ir_graph_is_known(f, op)) return PL_OK;
  pl_ir_meeting meeting = {.axes = 0};
  double alone_s = 0;
  if (meets) meeting = pl_ir_graph_meeting_of(own, f, op);
  if (meets && (meeting.stream == PL_STREAM_GRADIENT || meeting.stream == PL_STREAM_EXPERT_GRADIENT)) return PL_OK;
  load->host_s += own->framework->launch.collective_s;
  if (meeting.axes != 0 && !ring && !pl_ir_graph_runs_beside(own, f, op))
    PL_TRY(pl_ir_graph_meeting_alone(own, &meeting, &alone_s));
  bool of_tokens = meets && meeting.stream == PL_STREAM_EXPERT;
  if (of_tokens && (own->has_pairs || own->framework->pipeline.token_order == PL_TOKENS_SHARED)) {
    if (own->has_pairs) load->tokens_s += alone_s;
    if (!own->has_pairs) hide(own, alone_s, hidden, load);
    return PL_OK;
  }
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    load->device_s[p] += alone_s;
  return PL_OK;
}

static bool is_grouped(const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_name experts = pl_ir_name_of("x");
  return pl_ir_op_is(op, "product") && !pl_ir_op_has_name(op, "over", experts) &&
         pl_ir_type_find(&f->values[op->inputs[0]].type, experts) >= 0 &&
         pl_ir_type_find(&f->values[op->inputs[1]].type, experts) >= 0;
}

/* Calls of a library: a grouped product is as many as there are experts (workloads/compile/host_floor.c says the same
 * of tuples). */
static double launches_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, const pl_op *kernel) {
  if (kernel->host_free) return 0;
  if (kernel->kind != PL_OP_GEMM) return 1;
  const pl_ir_function *inner = op->row == own->kernel ? own->module->functions[op->callee] : f;
  bool grouped = inner == f && is_grouped(f, op);
  for (int32_t i = 0; inner != f && i < inner->n_ops; i++)
    grouped = grouped || is_grouped(inner, &inner->ops[i]);
  return grouped ? (double)kernel->batch : 1;
}

/* Shards of gradients are added by whoever reduces them (ir_graph_gradients.c): nothing is launched beside. */
static bool adds_shards(const pl_ir_function *f, const pl_ir_op *op, uint16_t does) {
  bool all = (does & PL_IR_DOES_ONLY_ADD) != 0 && op->n_inputs > 0;
  for (int32_t i = 0; all && i < op->n_inputs; i++) {
    int32_t maker = f->values[op->inputs[i]].op;
    all = maker != PL_IR_NONE && pl_ir_op_is(&f->ops[maker], "reduce_scatter");
  }
  return all;
}

/* What the host does for a layer, in its forward pass and in its backward pass. */
static pl_code add_layer(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_load *made) {
  const pl_ir_function *forward = pl_ir_forward_of(own->module, f->name);
  if (own->framework->launch.layer_s == 0 || (forward != NULL && strstr(f->name, ".backward") == NULL)) return PL_OK;
  bool is_layer = pl_ir_is_layer(own->module, forward != NULL ? forward : f, own->arena);
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  if (is_layer) made->host_s += own->framework->launch.layer_s;
  return PL_OK;
}

/* Of a function in a pass, through its calls. */
static pl_code load_of(pl_ir_graphing *own, int32_t function, pl_category category, const pl_ir_load **load) {
  int32_t pass = category == PL_CATEGORY_FORWARD ? 0 : 1;
  pl_ir_load *made = &own->loads[2 * function + pass];
  const pl_ir_function *f = own->module->functions[function];
  *load = made;
  if (made->known) return PL_OK;
  made->known = true;
  PL_TRY(add_layer(own, f, made));
  const pl_ir_doing *doing = pl_ir_graph_doing(own, function);
  hidden_exchange hidden = {.alone_s = 0};
  int32_t outer = own->function;
  pl_category before = own->category;
  if (doing == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (op->callee != PL_IR_NONE && op->row != own->kernel) {
      const pl_ir_load *inner;
      PL_TRY(load_of(own, op->callee, category, &inner));
      made->host_s += inner->host_s;
      made->tokens_s += inner->tokens_s;
      for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
        made->device_s[p] += inner->device_s[p];
      continue;
    }
    int32_t rounds = pl_ir_ring_devices(&own->module->mesh, op);
    await_hidden(own, f, op, &hidden, made);
    if (pl_ir_graph_moves(op)) PL_TRY(add_meeting(own, f, op, &hidden, made));
    if (pl_ir_graph_moves(op) && rounds == 1) continue;
    if (adds_shards(f, op, doing->ops[i])) continue;
    own->function = function;
    own->category = category;
    const pl_ir_price *price = pl_ir_graph_price(own, op);
    own->function = outer;
    own->category = before;
    if (price == NULL) return pl_ir_graph_no_memory(own);
    if (!price->computes) continue;
    bool forward = pass == 0 || price->kernel.category == PL_CATEGORY_RECOMPUTE ||
                   price->kernel.category == PL_CATEGORY_DATA; /* copies of what was gathered */
    made->host_s += rounds * launches_of(own, f, op, &price->kernel) *
                    (forward ? own->framework->launch.launch_s : own->framework->launch.backward_launch_s);
    for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
      made->device_s[p] += rounds * pl_ticks_to_s(price->ticks[p]);
  }
  return PL_OK;
}

enum { PASSES = PL_IR_STEP_W + 1 };

/* Seconds by which the host is late in one of n passes, on each profile. */
static void find_late(pl_ir_graphing *own, int32_t n, const pl_ir_load *const *loads, int32_t which) {
  const pl_framework *framework = own->framework;
  bool waits = framework->launch.host_window == PL_HOST_PASS && own->module->n_classes > 1;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    double rest = 0, device_s = 0, tokens_s = 0, device_of[PASSES]; /* rest: that no device time covers */
    for (int32_t i = 0; i < n; i++) {
      device_s += loads[i]->device_s[p];
      tokens_s += loads[i]->tokens_s;
    }
    for (int32_t i = 0; i < n; i++) { /* of a pair what both exchange, if that is longer */
      double more_s = tokens_s > device_s ? (tokens_s - device_s) * loads[i]->tokens_s / tokens_s : 0;
      device_of[i] = loads[i]->device_s[p] + more_s;
      rest += loads[i]->host_s - device_of[i];
    }
    rest = fmax(0, rest);
    for (int32_t i = 0; i <= which; i++) {
      double alone = fmax(0, loads[i]->host_s - device_of[i]);
      own->late_s[p] = i + 1 < n ? fmin(alone, rest) : rest;
      rest -= own->late_s[p];
    }
    if (waits) own->late_s[p] = fmax(0, loads[which]->host_s - device_of[which]);
    if (framework->launch.host_window == PL_HOST_KERNEL) own->late_s[p] = loads[which]->host_s;
  }
}

pl_code pl_ir_graph_begin_step(pl_ir_graphing *own, const pl_ir_chunk *chunk, pl_ir_step_kind kind) {
  own->is_late = false;
  if (own->module->level != PL_IR_KERNELS || is_in_time(own->framework)) return PL_OK;
  const int32_t functions[PASSES] = {chunk->forward, chunk->backward, chunk->weights};
  const pl_ir_load *loads[PASSES];
  int32_t n = 0, which = 0;
  for (int32_t i = 0; i < PASSES; i++) {
    if (functions[i] == PL_IR_NONE) continue;
    if (i == (int32_t)kind) which = n;
    PL_TRY(load_of(own, functions[i], i == PL_IR_STEP_F ? PL_CATEGORY_FORWARD : PL_CATEGORY_BACKWARD, &loads[n++]));
  }
  PL_ASSERT(which < n);
  own->step = loads[which];
  find_late(own, n, loads, which);
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    own->is_late = own->is_late || own->late_s[p] > 0;
  return PL_OK;
}

pl_code pl_ir_graph_wait_for_host(pl_ir_graphing *own, int32_t function) {
  if (!own->is_late || own->depth != 1 || own->step->host_s <= 0) return PL_OK;
  const pl_ir_load *load;
  pl_ticks ticks[PL_IR_GRAPH_PROFILES_MAX];
  PL_TRY(load_of(own, function, own->category, &load));
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    ticks[p] = pl_ticks_from_s(own->late_s[p] * load->host_s / own->step->host_s);
    if (own->noted != NULL)
      own->noted->late[p] += ticks[p];
    else
      own->late_ticks[p] += (pl_ticks)own->times * ticks[p];
  }
  uint32_t name = pl_ir_graph_label(own, "host");
  return pl_ir_graph_part(own, PL_CATEGORY_HOST, ticks, NULL, name, NULL) ? PL_OK : pl_ir_graph_no_memory(own);
}
