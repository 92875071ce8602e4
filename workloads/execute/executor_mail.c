/* See workloads/execute/executor_internal.h: what classes send each other. */
#include <stdlib.h>
#include <string.h>

#include "workloads/execute/executor_internal.h"

/* ---- between classes ---- */

/* A copy that belongs to the mail. */
static pl_code post(pl_execution *own, const char *key, const pl_holding *value, pl_error *error) {
  pl_kept *entry = key == NULL ? NULL : pl_store_entry(&own->mail, PL_EXECUTION_MAIL, key, &own->arena);
  if (entry == NULL) return pl_execution_no_memory(error);
  if (entry->holding != NULL) return pl_fail(error, PL_BAD_INPUT, "%s is sent twice", key);
  entry->holding = pl_holding_share((pl_holding *)(uintptr_t)value);
  return PL_OK;
}

/* Where the device of a crew that this one hears from stands in it. */
static uint32_t position_of(const pl_execution *own, const pl_member *in, uint32_t device) {
  uint32_t wanted = pl_ir_class_partner(own->module, in->class, device), low = 0, high = in->crew.n_devices;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    *(in->crew.devices[middle] <= wanted ? &low : &high) = middle;
  }
  return low;
}

/* `sender`: whose parts those of `from` are; NULL: of as many devices in the same order. */
static pl_code take(const pl_execution *own, pl_member *m, const pl_member *sender, const pl_holding *from,
                    const pl_ir_type *type, pl_holding **to, pl_error *error) {
  if (!pl_ir_type_equal(&from->type, type))
    return pl_fail(error, PL_BAD_INPUT, "what is received was sent with another type or layout");
  *to = pl_holding_create(&m->crew, type);
  if (*to == NULL) return pl_execution_no_memory(error);
  bool unlike = sender != NULL && own->module->places != NULL;
  for (uint32_t d = 0; d < m->crew.n_devices; d++) {
    const pl_ir_tensor *part = &from->parts[unlike ? position_of(own, sender, m->crew.devices[d]) : d];
    if (part->n > 0) memcpy((*to)->parts[d].data, part->data, (size_t)part->n * sizeof(double));
  }
  return PL_OK;
}

static const char *mail_key(pl_execution *own, const pl_member *m, const char *from, const char *to,
                            const pl_ir_op *op) {
  return pl_arena_printf(&own->arena, "%s to %s, microbatch %d of iteration %d%s%s", from, to, m->microbatch,
                         own->iteration, pl_ir_text_of(op, "tag")[0] != 0 ? ", " : "", pl_ir_text_of(op, "tag"));
}

pl_member *pl_execution_member(const pl_execution *own, const char *name) {
  for (int32_t c = 0; c < own->module->n_classes; c++)
    if (strcmp(own->module->classes[c].name, name) == 0) return &own->members[c];
  return NULL;
}

static pl_code run_receive(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const char *from = pl_ir_text_of(op, "from"), *key = mail_key(own, m, from, m->class->name, op);
  pl_kept *entry = key == NULL ? NULL : pl_store_entry(&own->mail, PL_EXECUTION_MAIL, key, &own->arena);
  if (entry == NULL) return pl_execution_no_memory(error);
  m->blocked = entry->holding == NULL;
  if (m->blocked) return PL_OK;
  pl_member *sender = pl_execution_member(own, from);
  PL_TRY(take(own, m, sender, entry->holding, &f->function->values[op->first_output].type, &f->values[op->first_output],
              error));
  pl_holding_drop(sender != NULL ? &sender->crew : &own->nobody, entry->holding);
  entry->holding = NULL;
  return PL_OK;
}

static pl_kept *term_of(pl_execution *own, const pl_frame *f, const pl_ir_op *op, const char *class) {
  const char *key = pl_arena_printf(&own->arena, "%s's term of %s.%s in iteration %d", class, f->prefix,
                                    pl_ir_text_of(op, "tag"), own->iteration);
  return key == NULL ? NULL : pl_store_entry(&own->mail, PL_EXECUTION_MAIL, key, &own->arena);
}

/* Every class posts its term and waits until all of them are there. */
static pl_code run_sum(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const pl_ir_attribute *classes = pl_ir_attribute_find(op, "classes");
  bool mine = false;
  for (int32_t i = 0; classes != NULL && i < classes->n_names; i++) {
    pl_kept *entry = term_of(own, f, op, classes->names[i].text);
    if (entry == NULL) return pl_execution_no_memory(error);
    bool is_me = strcmp(classes->names[i].text, m->class->name) == 0;
    mine = mine || is_me;
    if (is_me && entry->holding == NULL) entry->holding = pl_holding_share(f->values[op->inputs[0]]);
    m->blocked = m->blocked || entry->holding == NULL;
  }
  if (!mine) return pl_fail(error, PL_BAD_INPUT, "sum_classes in %s, which is not among its classes", m->class->name);
  pl_holding *sum = NULL;
  for (int32_t i = 0; !m->blocked && i < classes->n_names; i++) {
    const pl_holding *term = term_of(own, f, op, classes->names[i].text)->holding;
    if (sum == NULL) {
      PL_TRY(take(own, m, NULL, term, &f->function->values[op->first_output].type, &sum, error));
      f->values[op->first_output] = sum;
      continue;
    }
    for (uint32_t d = 0; d < m->crew.n_devices; d++)
      for (int64_t k = 0; k < sum->parts[d].n; k++)
        sum->parts[d].data[k] += term->parts[d].data[k];
  }
  return PL_OK;
}

pl_code pl_execution_run_mail(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_special what,
                              pl_error *error) {
  if (what == PL_SPECIAL_RECEIVE) return run_receive(own, m, f, op, error);
  if (what == PL_SPECIAL_SUM_CLASSES) return run_sum(own, m, f, op, error);
  return post(own, mail_key(own, m, m->class->name, pl_ir_text_of(op, "to"), op), f->values[op->inputs[0]], error);
}
