/* See workloads/execute/executor_internal.h: ops that read and write what stays on the devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/execute/data.h"
#include "workloads/execute/executor_internal.h"

/* ---- names of what is kept ---- */

const char *pl_execution_joined(pl_execution *own, const char *prefix, const char *path) {
  if (prefix[0] == 0) return path;
  return path == NULL || path[0] == 0 ? prefix : pl_arena_printf(&own->arena, "%s.%s", prefix, path);
}

static const char *key_of(pl_execution *own, const pl_member *m, pl_special what, const pl_frame *f,
                          const pl_ir_op *op) {
  const char *path = pl_execution_joined(own, f->prefix, op->path);
  if (path == NULL) return NULL;
  if (what == PL_SPECIAL_KEEP || what == PL_SPECIAL_KEPT)
    return pl_arena_printf(&own->arena, "%d/%d/%lld/%s", m->chunk, m->microbatch, (long long)f->piece.index, path);
  const pl_ir_attribute *slot = pl_ir_attribute_find(op, "slot");
  return slot != NULL ? pl_arena_printf(&own->arena, "%s:%s", path, slot->text) : path;
}

pl_code pl_execution_no_memory(pl_error *error) {
  return pl_fail_memory(error, "the values of the program");
}

/* ---- ops with state ---- */

typedef pl_code (*giver)(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error);

/* What the source has of this path, to every device. */
static pl_code take_given(pl_execution *own, giver give, const char *path, pl_member *m, pl_holding *to, bool *given,
                          pl_error *error) {
  int64_t n = (int64_t)pl_ir_type_elements(&to->type);
  *given = false;
  if (give == NULL) return PL_OK;
  double *whole = malloc(((size_t)n + 1) * sizeof(double));
  if (whole == NULL) return pl_execution_no_memory(error);
  pl_code code = give(own->options.source->context, path, n, whole, given, error);
  for (uint32_t d = 0; code == PL_OK && *given && d < m->crew.n_devices; d++)
    pl_data_part_of(whole, &to->parts[d]);
  free(whole);
  return code;
}

static pl_code read_parameter(pl_execution *own, pl_member *m, const pl_ir_type *type, pl_kept *entry,
                              pl_error *error) {
  bool given;
  if (entry->holding != NULL) return PL_OK;
  entry->holding = pl_holding_create(&m->crew, type);
  if (entry->holding == NULL) return pl_execution_no_memory(error);
  giver give = own->options.source != NULL ? own->options.source->parameter : NULL;
  PL_TRY(take_given(own, give, entry->key, m, entry->holding, &given, error));
  for (uint32_t d = 0; !given && d < m->crew.n_devices; d++)
    pl_data_parameter(own->options.seed, entry->key, &entry->holding->parts[d]);
  return PL_OK;
}

static pl_code fill_input(pl_execution *own, pl_member *m, const pl_ir_function *function, pl_ir_piece piece,
                          const pl_ir_op *op, pl_holding **input, pl_error *error) {
  bool given;
  pl_holding *made = pl_holding_create(&m->crew, &function->values[op->first_output].type);
  if (made == NULL) return pl_execution_no_memory(error);
  *input = made;
  giver give = own->options.source != NULL ? own->options.source->input : NULL;
  if (give != NULL && piece.of > 1)
    return pl_fail(error, PL_UNSUPPORTED,
                   "input \"%s\" from elsewhere is of a whole batch, and here is read in %lld pieces", op->path,
                   (long long)piece.of);
  PL_TRY(take_given(own, give, op->path, m, made, &given, error));
  for (uint32_t d = 0; !given && d < m->crew.n_devices; d++)
    pl_data_input(own->options.seed, op, own->iteration, m->turns[d], piece, &made->parts[d]);
  return PL_OK;
}

/* The next of those that were made early, or one that is made now and noted for the iterations to come. */
static pl_code read_input(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  pl_holding **input = &f->values[op->first_output];
  if (!own->makes_early) return fill_input(own, m, f->function, f->piece, op, input, error);
  if (own->next_input < own->n_inputs) {
    pl_early_input *early = &own->inputs[own->next_input++];
    PL_ASSERT(early->op == op && early->turn.microbatch == m->microbatch && early->piece.index == f->piece.index &&
              early->holding != NULL);
    *input = early->holding;
    early->holding = NULL;
    return PL_OK;
  }
  void *inputs = pl_arena_grown(&own->arena, own->inputs, own->n_inputs, 1, sizeof(*own->inputs), &own->room_inputs);
  if (inputs == NULL) return pl_execution_no_memory(error);
  own->inputs = (pl_early_input *)inputs;
  own->inputs[own->n_inputs++] =
      (pl_early_input){.op = op, .function = f->function, .turn = m->turns[0], .piece = f->piece};
  own->next_input = own->n_inputs;
  return fill_input(own, m, f->function, f->piece, op, input, error);
}

pl_code pl_execution_make_inputs(pl_execution *own, pl_member *m, pl_error *error) {
  for (uint32_t i = 0; i < own->n_inputs; i++) {
    pl_early_input *early = &own->inputs[i];
    m->turns[0] = early->turn; /* one device is here */
    PL_TRY(fill_input(own, m, early->function, early->piece, early->op, &early->holding, error));
  }
  own->next_input = 0;
  return PL_OK;
}

static void replace(pl_member *m, pl_kept *entry, pl_holding *holding) {
  pl_holding_drop(&m->crew, entry->holding);
  entry->holding = pl_holding_share(holding);
}

static pl_code add_to(pl_member *m, pl_kept *entry, const pl_holding *more, pl_error *error) {
  if (entry->holding == NULL && (entry->holding = pl_holding_create(&m->crew, &more->type)) == NULL)
    return pl_execution_no_memory(error);
  if (!pl_ir_type_equal(&entry->holding->type, &more->type))
    return pl_fail(error, PL_BAD_INPUT, "the gradient of %s is accumulated with two layouts", entry->key);
  PL_ASSERT(entry->holding != NULL);
  for (uint32_t d = 0; d < m->crew.n_devices; d++) {
    if (m->absent != NULL && m->absent[d]) continue;
    double *sum = entry->holding->parts[d].data;
    const double *added = more->parts[d].data;
    PL_ASSERT(more->parts[d].n == 0 || (sum != NULL && added != NULL));
    for (int64_t i = 0; i < more->parts[d].n; i++)
      sum[i] += added[i];
  }
  return PL_OK;
}

/* Whether this process's device is the first of those that hold the same. */
static bool speaks(const pl_execution *own, const pl_member *m, const pl_ir_type *type) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_SAME &&
        pl_ir_mesh_coordinate(mesh, own->options.peers->device, axis) != pl_ir_mesh_coordinate(mesh, m->all[0], axis))
      return false;
  return true;
}

static pl_code add_loss(pl_execution *own, pl_member *m, pl_holding *value) {
  PL_ASSERT(m->crew.n_devices > 0 && value->parts[0].data != NULL);
  for (uint32_t d = 0; m->absent != NULL && d < m->crew.n_devices; d++)
    if (m->absent[d]) memset(value->parts[d].data, 0, (size_t)value->parts[d].n * sizeof(double));
  double whole = value->parts[0].data[0];
  if (own->options.peers == NULL) {
    pl_holding_whole(&m->crew, value, &whole);
  } else if (!speaks(own, m, &value->type)) {
    return PL_OK;
  }
  own->losses[own->iteration] += whole;
  return PL_OK;
}

static int32_t kind_of(pl_special what, const pl_ir_op *op) {
  switch (what) {
  case PL_SPECIAL_KEEP:
  case PL_SPECIAL_KEPT:
    return PL_EXECUTION_KEPT;
  case PL_SPECIAL_ACCUMULATE:
  case PL_SPECIAL_GRADIENT:
    return PL_EXECUTION_GRADIENT;
  default:
    return pl_ir_attribute_find(op, "slot") != NULL ? PL_EXECUTION_STATE : PL_EXECUTION_PARAMETER;
  }
}

pl_code pl_execution_run_state(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                               pl_error *error) {
  pl_holding *input = op->n_inputs > 0 ? f->values[op->inputs[0]] : NULL;
  if (what == PL_SPECIAL_LOSS) return add_loss(own, m, input);
  if (what == PL_SPECIAL_INPUT) return read_input(own, m, f, op, error);
  const char *key = key_of(own, m, what, f, op);
  pl_kept *entry = key == NULL ? NULL : pl_store_entry(&m->store, kind_of(what, op), key, &own->arena);
  if (entry == NULL) return pl_execution_no_memory(error);
  if (what == PL_SPECIAL_ACCUMULATE) return add_to(m, entry, input, error);
  if (what == PL_SPECIAL_KEEP || what == PL_SPECIAL_STORE) {
    replace(m, entry, input);
    return what == PL_SPECIAL_KEEP ? pl_execution_keep(own, m, f, op, entry, error) : PL_OK;
  }
  const pl_ir_type *type = &f->function->values[op->first_output].type;
  if (what == PL_SPECIAL_PARAM) PL_TRY(read_parameter(own, m, type, entry, error));
  if (what == PL_SPECIAL_KEPT && entry->holding == NULL)
    return pl_fail(error, PL_BAD_INPUT, "%s is read and was not kept", key);
  if (entry->holding == NULL && (entry->holding = pl_holding_create(&m->crew, type)) == NULL)
    return pl_execution_no_memory(error);
  if (!pl_ir_type_equal(&entry->holding->type, type))
    return pl_fail(error, PL_BAD_INPUT, "%s is held in another layout than it is read in", key);
  f->values[op->first_output] = pl_holding_share(entry->holding);
  if (what == PL_SPECIAL_KEPT) pl_execution_let_go(m, entry);
  return PL_OK;
}

void pl_execution_forget_kept(pl_member *m) {
  char text[32];
  int length = snprintf(text, sizeof(text), "%d/%d/", m->chunk, m->microbatch);
  for (int32_t i = 0; i < m->store.n_entries; i++) {
    pl_kept *entry = m->store.entries[i];
    if (entry->kind != PL_EXECUTION_KEPT || entry->holding == NULL || strncmp(entry->key, text, (size_t)length) != 0)
      continue;
    pl_holding_drop(&m->crew, entry->holding);
    entry->holding = NULL;
  }
}
