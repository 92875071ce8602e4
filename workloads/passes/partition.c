/* See workloads/passes/partition.h: the main functions cut into chunks, and the classes with their steps. */
#include "workloads/passes/partition.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/passes/partition_stages.h"
#include "workloads/passes/unlike_replicas.h"
#include "workloads/strategy/schedule.h"

enum { OPERANDS_MAX = 32 };

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "the distributed program");
}

/* ---- which chunk an op of a main function belongs to ---- */

int32_t pl_stages_chunk_of_call(const pl_stages *own, const pl_ir_module *from, const pl_ir_op *call) {
  if (call->path != NULL && call->path[0] != 0) {
    const pl_tree_module_plan *module = pl_tree_plan_module(own->plan, call->path);
    if (module != NULL) return module->chunk;
  }
  int32_t function = pl_tree_plan_function(own->plan, from->functions[call->callee]->name);
  PL_ASSERT(function != PL_IR_NONE);
  return own->plan->modules[own->plan->functions[function].module].chunk;
}

int32_t pl_stages_stage_of(const pl_stages *own, int32_t chunk) {
  int32_t stage = pl_strategy_stage_of(&own->plan->schedule, chunk);
  return own->mirrored ? own->plan->schedule.pp - 1 - stage : stage;
}

int32_t pl_stages_stage_of_module(const pl_stages *own, const char *name) {
  const pl_tree_module_plan *module = pl_tree_plan_module(own->plan, name);
  return module != NULL ? pl_stages_stage_of(own, module->chunk) : 0;
}

pl_ir_name pl_stages_class_name(int32_t stage) {
  pl_ir_name name = pl_ir_name_of("stage");
  char digits[12];
  int32_t n = 0, at = 5;
  do
    digits[n++] = (char)('0' + stage % 10);
  while ((stage /= 10) > 0);
  while (n > 0)
    name.text[at++] = digits[--n];
  return name;
}

/* ---- values that cross ---- */

/* Whole along the axes that the receivers, fewer devices, have one place of alone. */
static pl_code gather_for(pl_laying *sender, uint32_t fixed, int32_t value, int32_t *handed, pl_error *error) {
  pl_ir_type type = sender->to->values[*handed].type;
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    if ((fixed >> axis & 1) != 0) type.on[axis] = PL_IR_SAME;
  return pl_laying_convert_from(sender, value, *handed, &type, "as a stage of fewer devices takes it", handed, error);
}

static pl_code send_value(pl_stages *own, pl_laying *parts, int32_t from, int32_t to, int32_t value, const char *kind,
                          pl_error *error) {
  pl_laying *sender = &parts[from], *receiver = &parts[to];
  int32_t handed, received;
  PL_TRY(own->own->leaves != NULL ? pl_laying_settled(sender, value, &handed, error)
                                  : pl_laying_handed(sender, value, false, &handed, error));
  if (own->plan->fixed_axes != NULL)
    PL_TRY(gather_for(sender, own->plan->fixed_axes[pl_stages_stage_of(own, to)], value, &handed, error));
  const char *name = sender->from->values[value].name;
  const char *tag = pl_arena_printf(own->own->scratch, "%s %s", kind, name);
  if (tag == NULL) return no_memory(error);
  const pl_ir_type type = sender->to->values[handed].type;
  const pl_ir_name classes[] = {pl_stages_class_name(pl_stages_stage_of(own, to)),
                                pl_stages_class_name(pl_stages_stage_of(own, from))};
  const pl_ir_attribute sent[] = {pl_ir_names("to", 1, &classes[0]), pl_ir_text("tag", tag)};
  const pl_ir_attribute got[] = {pl_ir_names("from", 1, &classes[1]), pl_ir_text("tag", tag)};
  pl_ir_op_add(own->own->to, sender->to,
               &(pl_ir_making){.row = pl_ir_row_of("send"),
                               .n_inputs = 1,
                               .inputs = &handed,
                               .n_attributes = 2,
                               .attributes = sent,
                               .callee = PL_IR_NONE,
                               .reason = "to the next chunk that reads it"});
  received = pl_ir_op_add(own->own->to, receiver->to,
                          &(pl_ir_making){.row = pl_ir_row_of("receive"),
                                          .n_outputs = 1,
                                          .output_names = &name,
                                          .output_types = &type,
                                          .n_attributes = 2,
                                          .attributes = got,
                                          .callee = PL_IR_NONE});
  if (own->own->to->arena->failed) return no_memory(error);
  pl_laying_set(receiver, value, received);
  return PL_OK;
}

/* ---- a main function, cut ---- */

/* Calls are where their module is. What stands between them, sums of gradients, is where the last of its operands is
 * made: forward that is the latest chunk, backward the earliest. */
static int32_t chunk_of_op(const pl_stages *own, const pl_ir_op *op, bool forward, const int32_t *made_in) {
  if (op->callee != PL_IR_NONE) return pl_stages_chunk_of_call(own, own->own->from, op);
  int32_t chunk = op->n_inputs > 0 ? made_in[op->inputs[0]] : own->n_chunks - 1;
  for (int32_t k = 1; k < op->n_inputs; k++)
    if (forward == (made_in[op->inputs[k]] > chunk)) chunk = made_in[op->inputs[k]];
  return chunk;
}

/* functions[chunk]: those of `main` (index in `from`), named "NAMEc". */
static pl_code split_main(pl_stages *own, int32_t main, const char *kind, int32_t *functions, pl_error *error) {
  pl_partitioning *p = own->own;
  const pl_ir_function *from = p->from->functions[main];
  pl_laying *parts = PL_TAKE(p->scratch, pl_laying, own->n_chunks);
  int32_t *made_in = PL_TAKE(p->scratch, int32_t, from->n_values + 1);
  if (parts == NULL || made_in == NULL) return no_memory(error);
  for (int32_t chunk = 0; chunk < own->n_chunks; chunk++) {
    pl_ir_function *to = PL_TAKE(p->to->arena, pl_ir_function, 1);
    if (to != NULL)
      to->name = pl_arena_printf(p->to->arena, "chunk%d.%s", chunk + (own->mirrored ? own->n_chunks : 0), kind);
    PL_TRY(pl_laying_init(&parts[chunk], p, from, to, error));
  }
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    int32_t chunk = chunk_of_op(own, op, strcmp(kind, "forward") == 0, made_in);
    for (int32_t k = 0; k < op->n_inputs; k++)
      if (pl_laying_value(&parts[chunk], op->inputs[k]) == PL_IR_NONE)
        PL_TRY(send_value(own, parts, made_in[op->inputs[k]], chunk, op->inputs[k], kind, error));
    for (int32_t k = 0; k < op->n_outputs; k++)
      made_in[op->first_output + k] = chunk;
    PL_TRY(pl_laying_op(&parts[chunk], op, error));
  }
  for (int32_t chunk = 0; chunk < own->n_chunks; chunk++) {
    functions[chunk] = pl_ir_function_append(p->to, parts[chunk].to);
    if (functions[chunk] == PL_IR_NONE) return no_memory(error);
  }
  return PL_OK;
}

/* Of the second copy behind those of the first. *functions NULL: there is no such pass. */
static pl_code split_copies(pl_stages *own, int32_t main, const char *kind, int32_t **functions, pl_error *error) {
  if (main == PL_IR_NONE) return PL_OK;
  *functions = PL_TAKE(own->own->scratch, int32_t, (own->twice ? 2 : 1) * own->n_chunks);
  if (*functions == NULL) return no_memory(error);
  PL_TRY(split_main(own, main, kind, *functions, error));
  if (!own->twice) return PL_OK;
  own->mirrored = true;
  pl_code code = split_main(own, main, kind, *functions + own->n_chunks, error);
  own->mirrored = false;
  return code;
}

/* ---- classes ---- */

/* One forward and one backward pass in turn, with `most` forward passes ahead: 1F1B where that is pp - stage. */
static void take_limited_steps(const pl_tree_plan *plan, int32_t chunk, int64_t most, pl_ir_class *class) {
  const pl_ir_step forward = {.kind = PL_IR_STEP_F, .chunk = chunk}, backward = {.kind = PL_IR_STEP_B, .chunk = chunk};
  int32_t m = plan->n_microbatches, ahead = most < m ? (int32_t)most : m;
  pl_ir_step *at = class->steps;
  for (int32_t i = 0; i < m + ahead; i++) {
    if (i < m) {
      *at = forward;
      at++->microbatch = i;
    }
    if (i + 1 < ahead) continue;
    if (i + 1 - ahead >= m) break;
    *at = backward;
    at++->microbatch = i + 1 - ahead;
  }
  class->n_steps = 2 * m;
}

static pl_code take_steps(pl_stages *own, int32_t stage, bool backward, bool weights, pl_ir_class *class,
                          pl_error *error) {
  const pl_strategy *order = &own->plan->schedule;
  pl_schedule schedule = pl_schedule_of(order, own->own->to->n_microbatches, stage);
  pl_schedule_cursor cursor = {0};
  int64_t n = pl_schedule_n_steps(&schedule);
  class->steps = pl_arena_take(own->own->to->arena, (size_t)(2 * n + 1) * sizeof *class->steps, _Alignof(pl_ir_step));
  if (class->steps == NULL) return no_memory(error);
  if (own->plan->max_ongoing != NULL && backward) {
    take_limited_steps(own->plan, stage, own->plan->max_ongoing[stage], class);
    return PL_OK;
  }
  if (order->schedule == PL_SCHEDULE_1F1B && order->vpp == 1 && backward && !weights && !schedule.paired) {
    take_limited_steps(own->plan, pl_strategy_chunk_at(order, stage, 0), order->pp - stage, class);
    return PL_OK;
  }
  bool is_beside = false; /* a forward pass */
  for (int64_t i = 0; i < n; i++) {
    pl_schedule_step step = pl_schedule_next(&schedule, &cursor);
    if (!backward && step.kind != PL_STEP_FORWARD) continue;
    int32_t chunk = pl_strategy_chunk_at(order, stage, step.chunk);
    pl_ir_step made = {.chunk = chunk, .microbatch = step.microbatch};
    made.kind = step.kind == PL_STEP_FORWARD   ? PL_IR_STEP_F
                : step.kind == PL_STEP_WEIGHTS ? PL_IR_STEP_W
                                               : PL_IR_STEP_B;
    bool has_weights = step.kind == PL_STEP_BACKWARD && weights;
    made.joined = (backward && step.joined) || (is_beside && has_weights);
    class->steps[class->n_steps++] = made;
    is_beside = backward && step.joined;
    made.kind = PL_IR_STEP_W;
    made.joined = false;
    if (has_weights) class->steps[class->n_steps++] = made;
  }
  return PL_OK;
}

/* The chunk of the second copy; each copy has its half of the microbatches. */
static void take_copy(const pl_stages *own, int32_t stage, const int32_t *forward, const int32_t *backward,
                      const int32_t *weights, pl_ir_class *class) {
  int32_t chunk = pl_strategy_chunk_at(&own->plan->schedule, stage, 1), half = own->own->to->n_microbatches / 2;
  class->chunks[0].n_microbatches = half;
  class->chunks[class->n_chunks++] = (pl_ir_chunk){.chunk = chunk,
                                                   .forward = forward[chunk],
                                                   .backward = backward != NULL ? backward[chunk] : PL_IR_NONE,
                                                   .weights = weights != NULL ? weights[chunk] : PL_IR_NONE,
                                                   .first_microbatch = half,
                                                   .n_microbatches = half};
}

static pl_code take_class(pl_stages *own, int32_t stage, int32_t update, const int32_t *forward,
                          const int32_t *backward, const int32_t *weights, pl_ir_class *class, pl_error *error) {
  pl_arena *arena = own->own->to->arena;
  *class = (pl_ir_class){.name = pl_arena_strdup(arena, pl_stages_class_name(stage).text), .update = PL_IR_NONE};
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    class->at[axis] = PL_IR_NONE;
  if (own->plan->schedule.pp > 1) class->at[0] = stage;
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX && own->plan->fixed_axes != NULL; axis++)
    if ((own->plan->fixed_axes[stage] >> axis & 1) != 0) class->at[axis] = 0;
  class->chunks = PL_TAKE(arena, pl_ir_chunk, own->twice ? 2 : own->plan->schedule.vpp);
  if (class->chunks == NULL || class->name == NULL) return no_memory(error);
  for (int32_t chunk = 0; chunk < own->n_chunks; chunk++)
    if (pl_stages_stage_of(own, chunk) == stage)
      class->chunks[class->n_chunks++] = (pl_ir_chunk){.chunk = chunk,
                                                       .forward = forward[chunk],
                                                       .backward = backward != NULL ? backward[chunk] : PL_IR_NONE,
                                                       .weights = weights != NULL ? weights[chunk] : PL_IR_NONE};
  if (own->twice) take_copy(own, stage, forward, backward, weights, class);
  PL_TRY(take_steps(own, stage, backward != NULL, weights != NULL, class, error));
  return update != PL_IR_NONE ? pl_stages_update(own, update, stage, &class->update, error) : PL_OK;
}

static pl_code take_classes(pl_stages *own, pl_error *error) {
  pl_partitioning *p = own->own;
  const pl_ir_class *only = &p->from->classes[0];
  const pl_ir_chunk *chunk = &only->chunks[0];
  int32_t *forward = NULL, *backward = NULL, *weights = NULL;
  PL_TRY(split_copies(own, chunk->forward, "forward", &forward, error));
  PL_TRY(split_copies(own, chunk->backward, "backward", &backward, error));
  PL_TRY(split_copies(own, chunk->weights, "weights", &weights, error));
  p->to->classes = PL_TAKE(p->to->arena, pl_ir_class, own->plan->schedule.pp);
  if (p->to->classes == NULL) return no_memory(error);
  p->to->n_classes = own->plan->schedule.pp;
  for (int32_t stage = 0; stage < own->plan->schedule.pp; stage++)
    PL_TRY(take_class(own, stage, only->update, forward, backward, weights, &p->to->classes[stage], error));
  return PL_OK;
}

/* ---- leaves by op ---- */

static const pl_layout_rules *rules_at(const pl_tree_plan *plan, int32_t leaf) {
  return &plan->leaves[leaf].rules;
}

static const pl_layout_rules *rules_of_function(const void *context, const pl_ir_function *function) {
  const pl_tree_plan *plan = context;
  int32_t index = pl_tree_plan_function(plan, function->name);
  return rules_at(plan, index != PL_IR_NONE ? plan->functions[index].leaf : 0);
}

static const pl_layout_rules *rules_of_op(const void *context, const pl_ir_function *function, const pl_ir_op *op,
                                          bool *named) {
  const pl_tree_plan *plan = context;
  int32_t index = pl_tree_plan_function(plan, function->name);
  *named = false;
  if (index == PL_IR_NONE) return rules_at(plan, 0);
  int32_t of = pl_tree_plan_op(plan, index, function, op);
  if (of == PL_IR_NONE) return rules_at(plan, plan->functions[index].leaf);
  *named = plan->functions[index].ops[of].origin == PL_TREE_EXPLICIT;
  return rules_at(plan, plan->functions[index].ops[of].leaf);
}

static const pl_layout_rules *rules_of_path(const void *context, const pl_ir_function *function, const char *path) {
  bool named;
  const pl_ir_op op = {.path = path, .callee = PL_IR_NONE};
  return rules_of_op(context, function, &op, &named);
}

/* The leaf of what a call hands in and out. */
static int32_t leaf_of_call(const pl_tree_plan *plan, const pl_ir_module *training, const pl_ir_op *op) {
  int32_t function =
      op->callee != PL_IR_NONE ? pl_tree_plan_function(plan, training->functions[op->callee]->name) : PL_IR_NONE;
  return function != PL_IR_NONE ? plan->functions[function].leaf : -1;
}

/* Functions whose results go to others of another leaf leave partial sums to these: where the next one is cut on
 * another dimension over the same devices, a reduce-scatter is half an all-reduce. */
static void note_sums(const pl_tree_plan *plan, const pl_ir_module *training, int32_t main, bool *hands_sums) {
  if (main == PL_IR_NONE) return;
  const pl_ir_function *from = training->functions[main];
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *reader = &from->ops[i];
    for (int32_t k = 0; k < reader->n_inputs; k++) {
      int32_t at = from->values[reader->inputs[k]].op;
      const pl_ir_op *maker = at != PL_IR_NONE ? &from->ops[at] : NULL;
      if (maker == NULL || maker->callee == PL_IR_NONE || reader->callee == PL_IR_NONE) continue;
      if (leaf_of_call(plan, training, maker) != leaf_of_call(plan, training, reader)) hands_sums[maker->callee] = true;
    }
  }
}

/* ---- parameters of several modules ---- */

/* The first module that has the parameter with this whole path as its own; NULL: none. */
static const pl_tree_module_plan *owner_of(const pl_tree_plan *plan, const char *path) {
  for (int32_t i = 0; i < plan->n_modules; i++) {
    size_t length = strlen(plan->modules[i].name);
    if (strncmp(path, plan->modules[i].name, length) == 0 && path[length] == '.') return &plan->modules[i];
  }
  return NULL;
}

/* Functions without an instance read parameters of others by their whole paths: those of the embedding's table may be
 * on one other stage, all others are where the parameter is. */
static pl_code find_readers(pl_stages *own, const pl_tree_module_plan *module, pl_error *error) {
  const pl_ir_function *function = own->plan->program.functions[module->function];
  int32_t embedding = pl_stages_stage_of_module(own, "embedding"), here = pl_stages_stage_of(own, module->chunk);
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    if (!pl_ir_op_is(op, "param")) continue;
    const pl_tree_module_plan *owner = owner_of(own->plan, op->path);
    if (owner == NULL || owner == module) continue;
    int32_t there = pl_stages_stage_of(own, owner->chunk);
    if (strcmp(op->path, "embedding.table") == 0) {
      own->tied = true;
      if (own->other != embedding && here != embedding && here != own->other)
        return pl_fail(error, PL_UNSUPPORTED,
                       "the embedding's table is read on stages %d and %d besides its own: programs add up its "
                       "gradients with those of one other stage; put %s there too",
                       own->other, here, module->name);
      if (here != embedding) own->other = here;
    } else if (here != there) {
      return pl_fail(error, PL_UNSUPPORTED, "%s, on stage %d, reads %s of %s, on stage %d: put both on one stage",
                     module->name, here, op->path, owner->name, there);
    }
  }
  return PL_OK;
}

static pl_code partition(const pl_ir_module *training, const pl_tree_plan *plan, bool tied, pl_arena *scratch,
                         pl_ir_module *distributed, pl_error *error) {
  const pl_laying_leaves leaves = {
      .context = plan, .of_function = rules_of_function, .of_op = rules_of_op, .of_path = rules_of_path};
  pl_partitioning own = {.rules = rules_at(plan, 0), .from = training, .to = distributed, .scratch = scratch};
  own.prices = plan->tree->prices;
  own.unpriced = (pl_error)PL_ERROR_INIT;
  if (plan->n_leaves > 1 || plan->named_ops) own.leaves = &leaves;
  pl_stages all = {.own = &own,
                   .plan = plan,
                   .tied = tied,
                   .n_chunks = pl_strategy_n_chunks(&plan->schedule),
                   .twice = plan->schedule.schedule == PL_SCHEDULE_DUALPIPE};
  all.other = pl_stages_stage_of_module(&all, tied ? "head" : "embedding");
  for (int32_t i = 0; i < plan->n_modules; i++) {
    bool bare = strcmp(plan->modules[i].name, plan->program.functions[plan->modules[i].function]->name) == 0;
    if (bare) PL_TRY(find_readers(&all, &plan->modules[i], error));
  }
  own.made = PL_TAKE(scratch, int32_t, training->n_functions + 1);
  if (own.made == NULL) return no_memory(error);
  for (int32_t i = 0; i < training->n_functions; i++)
    own.made[i] = PL_IR_NONE;
  bool *hands_sums = PL_TAKE(scratch, bool, training->n_functions + 1);
  if (hands_sums == NULL) return no_memory(error);
  const pl_ir_chunk *chunk = &training->classes[0].chunks[0];
  if (own.leaves != NULL) {
    note_sums(plan, training, chunk->forward, hands_sums);
    note_sums(plan, training, chunk->backward, hands_sums);
    own.hands_sums = hands_sums;
  }
  return take_classes(&all, error);
}

pl_code pl_ir_partition(const pl_ir_module *training, const pl_tree_plan *plan, bool tied, pl_arena *arena,
                        pl_ir_module *distributed, pl_error *error) {
  pl_ir_module_init(distributed, arena, training->name, PL_IR_DISTRIBUTED);
  distributed->mesh = plan->mesh;
  distributed->places = plan->places;
  distributed->n_places = plan->n_places;
  distributed->n_microbatches = plan->n_microbatches;
  PL_TRY(pl_unlike_replicas(&plan->tree->strategy, distributed, error));
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_code code = partition(training, plan, tied, &scratch, distributed, error);
  pl_arena_release(&scratch);
  return code;
}
