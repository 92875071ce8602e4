/* See workloads/tree/tree_show.h. */
#include "workloads/tree/tree_show.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

typedef struct showing {
  FILE *stream;
  const pl_tree_plan *plan;
  const pl_ir_module *module;
} showing;

/* ---- stages ---- */

static void show_modules(const showing *own, int32_t stage) {
  const pl_tree_plan *plan = own->plan;
  const char *between = " ";
  for (int32_t i = 0; i < plan->n_modules; i++) {
    int32_t first = i;
    if (pl_strategy_stage_of(&plan->schedule, plan->modules[i].chunk) != stage) continue;
    while (i + 1 < plan->n_modules && plan->modules[i + 1].chunk == plan->modules[first].chunk)
      i++;
    fprintf(own->stream, "%s%s", between, plan->modules[first].name);
    if (i > first) fprintf(own->stream, "%s%s", i > first + 1 ? " ... " : ", ", plan->modules[i].name);
    between = "; ";
  }
  fputc('\n', own->stream);
}

/* Runs of them: "0-3, 8". */
static void show_devices(const showing *own, uint32_t first, uint32_t n) {
  const uint32_t *places = own->plan->places;
  for (uint32_t i = 0, end; i < n; i = end) {
    uint32_t from = places != NULL ? places[first + i] : first + i;
    for (end = i + 1; end < n && (places == NULL || places[first + end] == from + (end - i));)
      end++;
    fprintf(own->stream, "%s%u", i > 0 ? ", " : "", from);
    if (end > i + 1) fprintf(own->stream, "-%u", from + (end - i) - 1);
  }
}

static void show_stages(const showing *own) {
  const pl_tree_plan *plan = own->plan;
  fprintf(own->stream, "mesh      ");
  for (int32_t i = 0; i < plan->mesh.n_axes; i++)
    fprintf(own->stream, "%s%s=%d", i > 0 ? ", " : "", plan->mesh.axes[i].name.text, plan->mesh.axes[i].extent);
  fprintf(own->stream, "%s\n", plan->mesh.n_axes == 0 ? "one device" : "");
  fprintf(own->stream, "schedule  %s, %d microbatches", pl_schedule_name(plan->schedule.schedule),
          plan->n_microbatches);
  if (plan->schedule.vpp > 1) fprintf(own->stream, ", %d chunks a stage", plan->schedule.vpp);
  fputc('\n', own->stream);
  uint32_t first = 0;
  for (int32_t stage = 0; stage < plan->schedule.pp; stage++) {
    uint32_t each = (uint32_t)plan->stage_devices[stage];
    fprintf(own->stream, "stage %-3d devices ", stage);
    show_devices(own, first, each);
    fputc(':', own->stream);
    first += each;
    show_modules(own, stage);
    if (plan->max_ongoing != NULL)
      fprintf(own->stream, "          at most %" PRId64 " forward passes in flight\n", plan->max_ongoing[stage]);
  }
}

/* ---- leaves ---- */

static void show_use(const showing *own, int32_t axis, const pl_layout_use *use) {
  static const char *const roles[] = {"", "data", "context", "tensor", "replicated"};
  fprintf(own->stream, "    %-6s %s", own->plan->mesh.axes[axis].name.text, roles[use->role]);
  for (int32_t i = 0; i < use->n_dims; i++)
    fprintf(own->stream, "%s%s", i == 0 ? ": cuts " : i + 1 < use->n_dims ? ", " : " or ", use->dims[i].text);
  for (int32_t i = 0; i < PL_LAYOUT_TENSOR_COUNT; i++)
    if (use->extra[i]) fprintf(own->stream, "; %s lie cut over it", pl_tree_tensor_names[i]);
  fputc('\n', own->stream);
}

static void show_leaves(const showing *own) {
  for (int32_t i = 0; i < own->plan->n_leaves; i++) {
    const pl_tree_leaf *leaf = &own->plan->leaves[i];
    char text[PL_TREE_PLACE_BYTES];
    pl_tree_place place = leaf->node >= 0 ? own->plan->tree->nodes[leaf->node].partition_at : (pl_tree_place){0};
    bool nobody = leaf->node < 0;
    fprintf(own->stream, "leaf %d    %s%s\n", i + 1,
            nobody ? "everything on every device" : pl_tree_place_text(place, text),
            leaf->rules.ring ? "; attention in a ring" : "");
    for (int32_t axis = own->plan->has_pipeline_axis; axis < own->plan->mesh.n_axes; axis++)
      show_use(own, axis, &leaf->rules.on[axis]);
    for (int32_t tensor = 0; tensor < PL_LAYOUT_TENSOR_COUNT; tensor++)
      if (leaf->rules.host[tensor])
        fprintf(own->stream, "    %s %s in the memory of the host%s\n", pl_tree_tensor_names[tensor],
                tensor == PL_LAYOUT_KEPT ? "lies" : "lie",
                tensor == PL_LAYOUT_STATES ? ", whose processors update" : "");
  }
}

/* ---- functions ---- */

/* The leaf, and who said so. */
static void show_origin(const showing *own, int32_t index, const pl_ir_function *function, const pl_ir_op *op) {
  const pl_tree_function_plan *plan = &own->plan->functions[index];
  const pl_ir_function *model = own->plan->program.functions[index];
  int32_t of = pl_tree_plan_op(own->plan, index, function, op);
  fprintf(own->stream, "  leaf %d", (of != PL_IR_NONE ? plan->ops[of].leaf : plan->leaf) + 1);
  if (of != PL_IR_NONE && plan->ops[of].origin == PL_TREE_EXPLICIT) fprintf(own->stream, ", explicit");
  bool inferred = of != PL_IR_NONE && plan->ops[of].from != PL_IR_NONE;
  const pl_ir_op *from = inferred ? &model->ops[plan->ops[of].from] : NULL;
  if (inferred)
    fprintf(own->stream, ", inferred from %%%s",
            from->n_outputs > 0 ? model->values[from->first_output].name : pl_ir_row_at(from->row)->name);
  fputc('\n', own->stream);
}

static bool is_cut(const pl_ir_op *op) {
  return op->reason != NULL && pl_ir_op_is(op, "cut");
}

static bool is_inserted(const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  return op->reason != NULL && (effect == PL_IR_COLLECTIVE || effect == PL_IR_SENDS || is_cut(op));
}

static void show_collective(const showing *own, const pl_ir_function *function, const pl_ir_op *op) {
  char type[PL_IR_TYPE_TEXT_BYTES], bytes[PL_UNIT_TEXT_BYTES];
  const pl_ir_value *of = &function->values[op->inputs[0]];
  const char *over = pl_ir_attribute_find(op, "over") != NULL ? " over " : "";
  fprintf(own->stream, "  %c %s%s", is_cut(op) ? '-' : '+', pl_ir_row_at(op->row)->name, over);
  const pl_ir_attribute *axes = pl_ir_attribute_find(op, "over");
  for (int32_t i = 0; axes != NULL && i < axes->n_names; i++)
    fprintf(own->stream, "%s%s", i > 0 ? ", " : "", axes->names[i].text);
  fprintf(own->stream, " of %%%s, %s a device", of->name,
          pl_format_bytes(pl_ir_type_local_bytes(&own->module->mesh, &of->type), bytes));
  if (op->n_outputs > 0) fprintf(own->stream, ": %s becomes ", pl_ir_type_text(&own->module->mesh, &of->type, type));
  if (op->n_outputs > 0)
    fprintf(own->stream, "%s", pl_ir_type_text(&own->module->mesh, &function->values[op->first_output].type, type));
  fprintf(own->stream, "; %s\n", op->reason);
}

static void show_op(const showing *own, int32_t index, const pl_ir_function *function, const pl_ir_op *op) {
  char type[PL_IR_TYPE_TEXT_BYTES];
  if (is_inserted(op)) {
    show_collective(own, function, op);
    return;
  }
  const char *name = op->n_outputs > 0 ? function->values[op->first_output].name : op->path != NULL ? op->path : "";
  fprintf(own->stream, "  %-24s %-22s", name, pl_ir_row_at(op->row)->name);
  if (op->n_outputs > 0)
    fprintf(own->stream, " %s", pl_ir_type_text(&own->module->mesh, &function->values[op->first_output].type, type));
  show_origin(own, index, function, op);
}

static void show_callers(const showing *own, int32_t function) {
  const char *between = ": ";
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    if (own->plan->modules[i].function != function) continue;
    fprintf(own->stream, "%s%s", between, own->plan->modules[i].name);
    between = ", ";
  }
}

static void show_function(const showing *own, const pl_ir_function *function) {
  int32_t index = pl_tree_plan_function(own->plan, function->name);
  fprintf(own->stream, "\n@%s", function->name);
  if (index == PL_IR_NONE) { /* a chunk, or an update of one: what is sent, and summed */
    fputc('\n', own->stream);
    for (int32_t i = 0; i < function->n_ops; i++)
      if (is_inserted(&function->ops[i])) show_collective(own, function, &function->ops[i]);
    return;
  }
  show_callers(own, index);
  uint8_t recompute = own->plan->functions[index].recompute;
  if (recompute != PL_RECOMPUTE_NONE) fprintf(own->stream, "; recompute %s", pl_recompute_names[recompute]);
  if (own->plan->functions[index].pieces > 1)
    fprintf(own->stream, "; %" PRId64 " times a microbatch, each on one part of its samples",
            own->plan->functions[index].pieces);
  fputc('\n', own->stream);
  for (int32_t i = 0; i < function->n_ops; i++)
    show_op(own, index, function, &function->ops[i]);
}

static int32_t count_inserted(const pl_ir_module *module) {
  int32_t n = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++)
      n += is_inserted(&module->functions[f]->ops[i]) && !is_cut(&module->functions[f]->ops[i]) &&
           module->functions[f]->ops[i].n_outputs > 0;
  return n;
}

void pl_tree_print_notes(FILE *stream, const pl_tree_plan *plan) {
  for (int32_t i = 0; i < plan->n_notes; i++) {
    const pl_tree_note *note = &plan->notes[i];
    char text[PL_TREE_PLACE_BYTES];
    fprintf(stream, "not cut   %s = %" PRId64 " of %s: %" PRId64 " parts do not divide it (%s)\n", note->dim.name.text,
            note->dim.extent, note->path, note->parts, pl_tree_place_text(note->place, text));
  }
  for (int32_t i = 0; i < plan->n_remarks; i++)
    fprintf(stream, "%s\n", plan->remarks[i]);
}

void pl_tree_show(FILE *stream, const pl_tree_plan *plan, const pl_ir_module *distributed) {
  const showing own = {.stream = stream, .plan = plan, .module = distributed};
  show_stages(&own);
  show_leaves(&own);
  pl_tree_print_notes(stream, plan);
  fprintf(stream, "layouts   %s\n",
          plan->tree->prices != NULL
              ? "each conversion the fastest on this platform: behind it what it takes there, and the next best"
          : plan->tree->strategy.pp > 0 ? "as frameworks have them, by bytes on the wire"
                                        : "by bytes on the wire; with --platform by what collectives take there");
  fprintf(stream, "inserted  %d collectives, each function once\n", count_inserted(distributed));
  for (int32_t i = 0; i < distributed->n_functions; i++)
    show_function(&own, distributed->functions[i]);
}
