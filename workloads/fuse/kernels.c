/* See workloads/fuse/kernels.h: functions written again, with what is one kernel in functions of their own.
 *
 * Ops are written in their order, a kernel where its first op stood, whatever it needs in front of it. Where that
 * cannot be, because a kernel would need what is made of what it makes, its ops stay by themselves.
 */
#include "workloads/fuse/kernels.h"

#include <string.h>

#include "workloads/fuse/kernel_groups.h"
#include "workloads/fuse/kernel_narrow.h"
#include "workloads/fuse/kernel_steps.h"

typedef enum writing_mark { UNSEEN = 0, UNDER_WAY, WRITTEN } writing_mark;

typedef struct writing {
  const pl_ir_module *from;
  pl_ir_module *to;
  pl_arena *scratch;
  pl_kernel_finding own;
  bool whole; /* pl_kernels_options */
  pl_ir_function *function;
  int32_t *map;    /* per value of the old function: of the new one */
  int32_t *inside; /* per value: of the kernel that is written */
  int32_t *order;  /* ops and groups (by their first op) in the order that they are written in */
  int32_t n_order;
  uint8_t *marks;        /* per op that is a group's first: writing_mark */
  int32_t *next_of;      /* per op: the next of its group, PL_IR_NONE: none */
  int32_t *callees;      /* per function of the module before: in the new one */
  int32_t *meets_before; /* per op that meets others: the one before it */
  pl_kernel_narrowing narrowing;
} writing;

/* ---- order ---- */

static bool meets(const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  return effect == PL_IR_COLLECTIVE || effect == PL_IR_SENDS || effect == PL_IR_CALLS;
}

/* Collectives that stand in an order of their own: of parameters, which are asked for ahead of a function or in front
 * of what reads them wherever they are written; of gradients that are copied all at once. */
static int own_order(const writing *w, int32_t op) {
  const pl_framework *framework = w->own.framework;
  int32_t at = op;
  if (!pl_read_is_collective(&w->own.read, op)) return 0;
  if (pl_read_is(&w->own.read, pl_read_made(&w->own.read, op, 0), "param")) return 1;
  if (framework->gradients.gradient_path == PL_GRADIENTS_ADDED) return 0;
  while (pl_read_is(&w->own.read, at, "cast") || pl_read_is_collective(&w->own.read, at))
    at = pl_kernel_next(&w->own, at);
  return pl_read_is(&w->own.read, at, "accumulate") ? 2 : 0;
}

/* Chains of the ops of a group, and of those that meet other devices, whose order is everybody's. */
static void chain_ops(writing *w) {
  int32_t last[] = {PL_IR_NONE, PL_IR_NONE, PL_IR_NONE},
          *latest = w->order; /* not yet needed: by group, its op that was seen last */
  for (int32_t i = 0; i < w->own.read.f->n_ops; i++)
    latest[i] = PL_IR_NONE;
  for (int32_t i = w->own.read.f->n_ops; i-- > 0;) {
    int32_t group = pl_kernel_group(&w->own, i);
    w->next_of[i] = latest[group];
    latest[group] = i;
  }
  for (int32_t i = 0; i < w->own.read.f->n_ops; i++) {
    if (!meets(pl_read_op(&w->own.read, i))) continue;
    int order = own_order(w, i);
    w->meets_before[i] = last[order];
    last[order] = i;
  }
}

static bool order_group(writing *w, int32_t group, int32_t *loop);

/* What makes the operands of an op, if these are collectives, or if they are not. */
static bool order_makers(writing *w, int32_t group, const pl_ir_op *op, bool collectives, int32_t *loop) {
  for (int32_t k = 0; k < op->n_inputs; k++) {
    int32_t maker = pl_read_maker(&w->own.read, op->inputs[k]);
    if (maker == PL_IR_NONE || pl_kernel_group(&w->own, maker) == group) continue;
    if (pl_read_is_collective(&w->own.read, maker) != collectives) continue;
    if (!order_group(w, pl_kernel_group(&w->own, maker), loop)) return false;
  }
  return true;
}

/* A group, behind all that it needs: collectives behind all else, so that each stands in front of who reads it. A group
 * that needs itself on the way is given back in *loop. */
static bool order_group(writing *w, int32_t group, int32_t *loop) {
  if (w->marks[group] == WRITTEN) return true;
  if (w->marks[group] == UNDER_WAY) {
    *loop = group;
    return false;
  }
  w->marks[group] = UNDER_WAY;
  for (int collectives = 0; collectives < 2; collectives++)
    for (int32_t i = group; i != PL_IR_NONE; i = w->next_of[i]) {
      const pl_ir_op *op = pl_read_op(&w->own.read, i);
      int32_t before = collectives == 0 && meets(op) ? w->meets_before[i] : PL_IR_NONE;
      if (before != PL_IR_NONE && !order_group(w, pl_kernel_group(&w->own, before), loop)) return false;
      if (order_makers(w, group, op, collectives == 1, loop)) continue;
      if (w->next_of[*loop] == PL_IR_NONE) *loop = group; /* one of the groups on the way is to blame */
      return false;
    }
  w->marks[group] = WRITTEN;
  w->order[w->n_order++] = group;
  return true;
}

static void take_apart(writing *w, int32_t group) {
  for (int32_t i = group, next; i != PL_IR_NONE; i = next) {
    next = w->next_of[i];
    w->own.parent[i] = i;
  }
}

/* False: no memory. */
static bool order_ops(writing *w) {
  for (bool again = true; again;) {
    int32_t loop = PL_IR_NONE;
    chain_ops(w);
    memset(w->marks, UNSEEN, (size_t)w->own.read.f->n_ops);
    w->n_order = 0;
    again = false;
    for (int32_t i = 0; i < w->own.read.f->n_ops && !again; i++)
      again = pl_kernel_group(&w->own, i) == i && !order_group(w, i, &loop);
    if (again) take_apart(w, loop);
  }
  /* Nothing runs beside products in NVFP4 (workloads/lower/block_program.c). */
  bool beside = (w->own.framework->pipeline.overlaps_tensor && w->narrowing.element != PL_IR_F4) ||
                w->own.framework->pipeline.overlaps_tensor_backward;
  if (beside || w->whole) pl_kernel_order_beside(&w->own, w->order, w->n_order);
  return pl_kernel_order_tokens(&w->own, w->own.framework->pipeline.token_order, w->order, w->n_order, w->scratch);
}

/* ---- kernels ---- */

static bool is_inside(const writing *w, int32_t group, int32_t value) {
  int32_t maker = pl_read_maker(&w->own.read, value);
  return maker != PL_IR_NONE && pl_kernel_group(&w->own, maker) == group;
}

/* Values from outside that a group reads, each once; those that others read of it. False: more than an op may have. */
static bool take_border(const writing *w, int32_t group, int32_t *inputs, int32_t *n_inputs, int32_t *outputs,
                        int32_t *n_outputs) {
  *n_inputs = *n_outputs = 0;
  for (int32_t i = group; i != PL_IR_NONE; i = w->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&w->own.read, i);
    for (int32_t k = 0; k < op->n_inputs; k++) {
      bool known = is_inside(w, group, op->inputs[k]);
      for (int32_t n = 0; n < *n_inputs; n++)
        known = known || inputs[n] == op->inputs[k];
      if (known) continue;
      if (*n_inputs == PL_IR_OPERANDS_MAX) return false;
      inputs[(*n_inputs)++] = op->inputs[k];
    }
    for (int32_t k = 0; k < op->n_outputs; k++) {
      int32_t value = op->first_output + k, inner = 0;
      for (int32_t r = group; r != PL_IR_NONE; r = w->next_of[r])
        for (int32_t n = 0; n < pl_read_op(&w->own.read, r)->n_inputs; n++)
          inner += pl_read_op(&w->own.read, r)->inputs[n] == value;
      if (inner == w->own.n_readers[value]) continue;
      if (*n_outputs == PL_IR_OPERANDS_MAX) return false;
      outputs[(*n_outputs)++] = value;
    }
  }
  return true;
}

/* By a kernel, or by a function that is still to be written. */
static bool is_taken(const writing *w, const char *name) {
  return pl_ir_function_find(w->to, name) != PL_IR_NONE || pl_ir_function_find(w->from, name) != PL_IR_NONE;
}

/* "layer.attended.2": after what it gives last, or the path that it adds to. */
static const char *name_of(const writing *w, int32_t group, int32_t n_outputs, const int32_t *outputs) {
  const char *made = n_outputs > 0 ? w->own.read.f->values[outputs[n_outputs - 1]].name : NULL;
  for (int32_t i = group; i != PL_IR_NONE && made == NULL; i = w->next_of[i])
    if (pl_read_op(&w->own.read, i)->path != NULL) made = pl_read_op(&w->own.read, i)->path;
  if (made == NULL) made = "kernel";
  char *stem = pl_arena_printf(w->to->arena, "%s.%s", w->own.read.f->name, made), *name = stem;
  for (char *c = stem; c != NULL && *c != 0; c++) /* paths may have any letters */
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.')) *c = '_';
  for (int n = 2; name != NULL && is_taken(w, name); n++)
    name = pl_arena_printf(w->to->arena, "%s.%d", stem, n);
  return name;
}

static bool write_kernel(writing *w, int32_t group) {
  int32_t inputs[PL_IR_OPERANDS_MAX], outputs[PL_IR_OPERANDS_MAX], n_inputs, n_outputs;
  if (!take_border(w, group, inputs, &n_inputs, outputs, &n_outputs)) return false;
  const char *name = name_of(w, group, n_outputs, outputs), *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  pl_ir_function *kernel = name != NULL ? pl_ir_function_add(w->to, name) : NULL;
  if (kernel == NULL) return true; /* arena->failed says it */
  int32_t callee = w->to->n_functions - 1, n_ops = 0, n_values = n_inputs;
  for (int32_t i = group; i != PL_IR_NONE; i = w->next_of[i], n_ops++)
    n_values += pl_read_op(&w->own.read, i)->n_outputs;
  pl_ir_function_expect(w->to, kernel, n_ops, n_values);
  for (int32_t i = 0; i < n_inputs; i++) {
    const pl_ir_value *value = &w->own.read.f->values[inputs[i]];
    int32_t given = w->map[inputs[i]];
    if (given == PL_IR_NONE) return true; /* no memory */
    w->inside[inputs[i]] = pl_ir_argument(w->to, kernel, value->name, &w->function->values[given].type);
  }
  for (int32_t i = group; i != PL_IR_NONE; i = w->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&w->own.read, i);
    int32_t first = pl_kernel_copy(w->to, kernel, w->own.read.f, op, w->inside, PL_IR_NONE);
    for (int32_t k = 0; k < op->n_outputs; k++)
      w->inside[op->first_output + k] = first == PL_IR_NONE ? PL_IR_NONE : first + k;
  }
  for (int32_t i = 0; i < n_outputs; i++) {
    names[i] = w->own.read.f->values[outputs[i]].name;
    types[i] = w->own.read.f->values[outputs[i]].type;
  }
  int32_t results[PL_IR_OPERANDS_MAX], operands[PL_IR_OPERANDS_MAX];
  for (int32_t i = 0; i < n_outputs; i++)
    results[i] = w->inside[outputs[i]];
  pl_ir_results_set(w->to, kernel, n_outputs, results);
  for (int32_t i = 0; i < n_inputs; i++)
    operands[i] = w->map[inputs[i]];
  int32_t first = pl_ir_op_add(w->to, w->function,
                               &(pl_ir_making){.row = pl_ir_row_of("kernel"),
                                               .n_inputs = n_inputs,
                                               .n_outputs = n_outputs,
                                               .inputs = operands,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = "",
                                               .callee = callee});
  for (int32_t i = 0; i < n_outputs; i++)
    w->map[outputs[i]] = first == PL_IR_NONE ? PL_IR_NONE : first + i;
  return true;
}

static void write_op(writing *w, int32_t index) {
  const pl_ir_op *op = pl_read_op(&w->own.read, index);
  int32_t callee = op->callee != PL_IR_NONE ? w->callees[op->callee] : PL_IR_NONE;
  int32_t first = pl_kernel_copy(w->to, w->function, w->own.read.f, op, w->map, callee);
  for (int32_t k = 0; k < op->n_outputs; k++)
    w->map[op->first_output + k] = first == PL_IR_NONE ? PL_IR_NONE : first + k;
}

static void write_group(writing *w, int32_t group) {
  bool several = w->next_of[group] != PL_IR_NONE;
  if (!several && pl_narrowing_writes(&w->narrowing, group)) return;
  pl_narrowing_swap(&w->narrowing, group);
  for (int32_t i = several && write_kernel(w, group) ? PL_IR_NONE : group; i != PL_IR_NONE; i = w->next_of[i])
    write_op(w, i);
  pl_narrowing_swap_back(&w->narrowing);
}

/* ---- functions ---- */

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "a program's kernels");
}

static bool take_room(writing *w, const pl_ir_function *from) {
  w->map = PL_TAKE(w->scratch, int32_t, from->n_values + 1);
  w->inside = PL_TAKE(w->scratch, int32_t, from->n_values + 1);
  w->order = PL_TAKE(w->scratch, int32_t, from->n_ops + 1);
  w->marks = PL_TAKE(w->scratch, uint8_t, from->n_ops + 1);
  w->next_of = PL_TAKE(w->scratch, int32_t, from->n_ops + 1);
  w->meets_before = PL_TAKE(w->scratch, int32_t, from->n_ops + 1);
  w->function = PL_TAKE(w->to->arena, pl_ir_function, 1);
  return !w->scratch->failed && w->function != NULL;
}

static pl_code write_function(writing *w, const pl_ir_module *from, int32_t index, const pl_framework *framework,
                              const pl_kernel_packs *packs, const pl_ir_routing *routing, pl_error *error) {
  const pl_ir_function *f = from->functions[index];
  pl_arena_mark mark = pl_arena_mark_here(w->scratch);
  if (!pl_kernel_finding_init(&w->own, from, index, framework, packs, w->scratch) || !take_room(w, f))
    return no_memory(error);
  w->own.routing = routing;
  pl_kernel_groups_find(&w->own);
  if (!order_ops(w) || !pl_narrowing_begin(&w->narrowing, &w->own, w->function, w->next_of, w->map, w->scratch))
    return no_memory(error);
  w->function->name = pl_arena_strdup(w->to->arena, f->name);
  w->function->place = f->place;
  pl_ir_function_expect(w->to, w->function, f->n_ops, f->n_values);
  for (int32_t i = 0; i < f->n_arguments; i++)
    w->map[i] = pl_ir_argument(w->to, w->function, f->values[i].name, &f->values[i].type);
  for (int32_t i = 0; i < w->n_order && !w->to->arena->failed; i++)
    write_group(w, w->order[i]);
  int32_t *results = PL_TAKE(w->scratch, int32_t, f->n_results + 1);
  if (results == NULL || w->to->arena->failed) return no_memory(error);
  for (int32_t i = 0; i < f->n_results; i++)
    results[i] = w->map[f->results[i]];
  pl_ir_results_set(w->to, w->function, f->n_results, results);
  w->callees[index] = pl_ir_function_append(w->to, w->function);
  pl_arena_release_to(w->scratch, mark);
  return w->callees[index] != PL_IR_NONE ? PL_OK : no_memory(error);
}

static int32_t renamed(const writing *w, int32_t function) {
  return function != PL_IR_NONE ? w->callees[function] : PL_IR_NONE;
}

static pl_code write_classes(const writing *w, const pl_ir_module *from, pl_error *error) {
  pl_arena *arena = w->to->arena;
  w->to->classes = PL_TAKE(arena, pl_ir_class, from->n_classes + 1);
  if (w->to->classes == NULL) return no_memory(error);
  w->to->n_classes = from->n_classes;
  for (int32_t c = 0; c < from->n_classes; c++) {
    const pl_ir_class *is = &from->classes[c];
    pl_ir_class *made = &w->to->classes[c];
    *made = *is;
    made->name = pl_arena_strdup(arena, is->name);
    made->chunks = PL_TAKE(arena, pl_ir_chunk, is->n_chunks + 1);
    if (arena->failed) return no_memory(error); /* the steps are the same ones */
    for (int32_t i = 0; i < is->n_chunks; i++)
      made->chunks[i] = (pl_ir_chunk){.chunk = is->chunks[i].chunk,
                                      .forward = renamed(w, is->chunks[i].forward),
                                      .backward = renamed(w, is->chunks[i].backward),
                                      .weights = renamed(w, is->chunks[i].weights),
                                      .place = is->chunks[i].place,
                                      .first_microbatch = is->chunks[i].first_microbatch,
                                      .n_microbatches = is->chunks[i].n_microbatches};
    made->update = renamed(w, is->update);
  }
  return PL_OK;
}

static pl_code write(const pl_ir_module *from, const pl_kernels_options *options, pl_arena *scratch, pl_ir_module *made,
                     pl_error *error) {
  const pl_framework *framework = options->framework;
  pl_kernel_packs packs;
  writing w = {.from = from,
               .whole = options->whole,
               .to = made,
               .scratch = scratch,
               .callees = PL_TAKE(scratch, int32_t, from->n_functions + 1)};
  if (w.callees == NULL || !pl_kernel_packs_find(from, framework, scratch, &packs)) return no_memory(error);
  pl_narrowing_init(&w.narrowing, from, made, framework);
  const pl_ir_routing routing = pl_ir_routing_even(from);
  for (int32_t i = 0; i < from->n_functions; i++)
    PL_TRY(write_function(&w, from, i, framework, &packs, &routing, error));
  return write_classes(&w, from, error);
}

pl_code pl_ir_kernels(const pl_ir_module *module, const pl_kernels_options *options, pl_arena *arena,
                      pl_ir_module *made, pl_error *error) {
  pl_arena scratch;
  pl_ir_module stepped;
  const pl_kernels_options own = {.framework = pl_framework_or_ideal(options->framework),
                                  .update_bytes = options->update_bytes,
                                  .kept_bytes = options->kept_bytes,
                                  .reduced_bytes = options->reduced_bytes,
                                  .whole = options->whole};
  pl_arena_init(&scratch, 1 << 16);
  pl_ir_module_init_like(made, arena, module, PL_IR_KERNELS);
  pl_code code = pl_kernel_steps(module, &own, &scratch, &stepped, error);
  stepped.classes = module->classes;
  stepped.n_classes = module->n_classes;
  if (code == PL_OK) code = write(&stepped, &own, &scratch, made, error);
  pl_arena_release(&scratch);
  return code;
}
