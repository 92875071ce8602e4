/* See workloads/memory/program_communicators.h. */
#include "workloads/memory/program_communicators.h"

#include <string.h>

#include "workloads/language/ir_table.h"

enum { KNOWN_MAX = 64 };

/* Passes of one kind of a class: whom they send to, and over which classes they sum. */
typedef struct meetings {
  const pl_ir_module *module;
  int32_t *seen; /* per function: the passes that it was last seen in */
  int32_t now;
  const pl_ir_op *sums[KNOWN_MAX]; /* of the class */
  const char *told[KNOWN_MAX];     /* in the passes of this kind */
  int32_t n_sums, n_told;
} meetings;

/* Of the mesh's first node the devices that differ from its first one in these axes alone. */
static uint32_t neighbours_over(const pl_ir_mesh *mesh, uint32_t axes, uint32_t in_node) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < in_node; d++) {
    bool same = true;
    for (int32_t axis = 0; axis < mesh->n_axes; axis++)
      same = same && ((axes >> axis & 1) != 0 || pl_ir_mesh_coordinate(mesh, d, axis) == 0);
    n += same;
  }
  return n;
}

/* What norms of sequence-parallel layers are owed over replicas and tensor ranks goes over the one group and then the
 * other (workloads/compile/ir_graph_sums.c), which are there for all else: none has both. Experts that tensor ranks
 * have whole have such a group. */
static bool goes_over_others(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *op, uint32_t axes) {
  const pl_ir_type *type = &f->values[op->inputs[0]].type;
  bool tensors = false, others = false;
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
    if ((axes >> axis & 1) != 0) {
      bool is = pl_ir_axis_is_of_tensors(module->mesh.axes[axis].name.text);
      tensors = tensors || is;
      others = others || !is;
    }
  return tensors && others && pl_ir_op_is(op, "all_reduce") && pl_ir_type_find(type, pl_ir_name_of("x")) < 0;
}

/* Of all classes: one for each set of axes, and that of all. */
static pl_communicators in_common(const pl_cluster *cluster, const pl_ir_module *module) {
  uint32_t known[KNOWN_MAX], n = 0, devices = pl_ir_mesh_devices(&module->mesh);
  uint32_t in_node = cluster->n_nodes == 0 ? 0 : cluster->nodes[cluster->devices[0].node].n_devices;
  if (devices < in_node) in_node = devices;
  pl_communicators all = {0};
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      uint32_t axes = 0, k = 0;
      if (pl_ir_row_at(op->row)->effect != PL_IR_COLLECTIVE || pl_ir_op_is(op, "cut")) continue;
      for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
        if (pl_ir_op_has_name(op, "over", module->mesh.axes[axis].name)) axes |= 1u << axis;
      if (goes_over_others(module, module->functions[f], op, axes)) continue;
      while (k < n && known[k] != axes)
        k++;
      if (k == n && n < KNOWN_MAX) known[n++] = axes;
    }
  for (uint32_t k = 0; k < n; k++)
    pl_communicators_add(&all, neighbours_over(&module->mesh, known[k], in_node));
  if (devices > 1) pl_communicators_add(&all, in_node);
  return all;
}

static bool sums_alike(const pl_ir_op *a, const pl_ir_op *b) {
  const pl_ir_attribute *of_a = pl_ir_attribute_find(a, "classes"), *of_b = pl_ir_attribute_find(b, "classes");
  if (of_a == NULL || of_b == NULL || of_a->n_names != of_b->n_names) return of_a == of_b;
  for (int32_t i = 0; i < of_a->n_names; i++)
    if (strcmp(of_a->names[i].text, of_b->names[i].text) != 0) return false;
  return true;
}

static void note_send(meetings *own, const char *to) {
  for (int32_t i = 0; i < own->n_told; i++)
    if (strcmp(own->told[i], to) == 0) return;
  if (own->n_told < KNOWN_MAX) own->told[own->n_told++] = to;
}

static void note_sum(meetings *own, const pl_ir_op *op) {
  for (int32_t i = 0; i < own->n_sums; i++)
    if (sums_alike(own->sums[i], op)) return;
  if (own->n_sums < KNOWN_MAX) own->sums[own->n_sums++] = op;
}

/* A function, and those that it calls, each once. */
static void go_through(meetings *own, int32_t function) {
  if (function == PL_IR_NONE || own->seen[function] == own->now) return;
  own->seen[function] = own->now;
  const pl_ir_function *f = own->module->functions[function];
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (op->callee != PL_IR_NONE) go_through(own, op->callee);
    if (pl_ir_row_at(op->row)->effect != PL_IR_SENDS) continue;
    if (pl_ir_op_is(op, "send")) note_send(own, pl_ir_text_of(op, "to"));
    if (pl_ir_op_is(op, "sum_classes")) note_sum(own, op);
  }
}

static int32_t others_of(meetings *own, const pl_ir_class *class) {
  int32_t n = 0;
  own->n_sums = 0;
  for (int kind = PL_IR_STEP_F; kind <= PL_IR_STEP_W; kind++) {
    own->now++;
    own->n_told = 0;
    for (int32_t c = 0; c < class->n_chunks; c++) {
      const pl_ir_chunk *chunk = &class->chunks[c];
      go_through(own, kind == PL_IR_STEP_F ? chunk->forward : kind == PL_IR_STEP_B ? chunk->backward : chunk->weights);
    }
    n += own->n_told;
  }
  own->n_told = 0;
  go_through(own, class->update);
  return n + own->n_told + own->n_sums;
}

const pl_communicators *pl_program_communicators_take(const pl_cluster *cluster, const pl_ir_module *module,
                                                      const int32_t *likes, pl_arena *arena) {
  pl_communicators *made = PL_TAKE(arena, pl_communicators, module->n_classes + 1);
  meetings own = {.module = module, .seen = PL_TAKE(arena, int32_t, module->n_functions + 1)};
  if (made == NULL || own.seen == NULL) return NULL;
  memset(own.seen, 0, sizeof *own.seen * ((size_t)module->n_functions + 1));
  const pl_communicators common = in_common(cluster, module);
  for (int32_t c = 0; c < module->n_classes; c++) {
    made[c] = likes[c] < c ? made[likes[c]] : common;
    for (int32_t n = likes[c] < c ? 0 : others_of(&own, &module->classes[c]); n > 0; n--)
      pl_communicators_add(&made[c], 1);
  }
  return made;
}
