/* See workloads/layout/laying.h: what brings a value from one layout to another. */
#include "workloads/layout/laying_change.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"

typedef pl_layout_change change;

const char *pl_layout_row_between(int8_t from, int8_t to) {
  if (from == PL_IR_MAXIMUM) return to == PL_IR_SAME ? "all_reduce" : NULL;
  if (from == PL_IR_PARTIAL) return to == PL_IR_SAME ? "all_reduce" : to >= 0 ? "reduce_scatter" : NULL;
  if (from == PL_IR_SAME) return to >= 0 ? "cut" : NULL;
  return to == PL_IR_SAME ? "all_gather" : to >= 0 ? "all_to_all" : NULL;
}

/* What is scattered is less to hand over: in front of the exchanges. */
static void scatter_first(int32_t n, change *changes) {
  for (int32_t i = 1; i < n; i++)
    for (int32_t at = i;
         at > 0 && strcmp(changes[at].row, "reduce_scatter") == 0 && strcmp(changes[at - 1].row, "all_to_all") == 0;
         at--) {
      const change exchange = changes[at - 1];
      changes[at - 1] = changes[at];
      changes[at] = exchange;
    }
}

static int32_t changes_of(const pl_ir_mesh *mesh, const pl_ir_type *from, const pl_ir_type *to, change *changes) {
  int32_t n = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (from->on[axis] == to->on[axis]) continue;
    const char *row = pl_layout_row_between(from->on[axis], to->on[axis]);
    if (row == NULL) return -1;
    int32_t i = 0;
    while (i < n && (changes[i].from != from->on[axis] || changes[i].to != to->on[axis]))
      i++;
    if (i == n) changes[n++] = (change){.row = row, .from = from->on[axis], .to = to->on[axis]};
    changes[i].axis[changes[i].n_axes++] = axis;
  }
  scatter_first(n, changes);
  return n;
}

static bool takes_part(const change *made, int32_t axis) {
  for (int32_t i = 0; i < made->n_axes; i++)
    if (made->axis[i] == axis) return true;
  return false;
}

/* Axes that cut a dimension now, or will when the change is made, divide it. */
static bool divides(const pl_ir_mesh *mesh, const pl_ir_type *now, const change *made) {
  int64_t parts = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (now->on[axis] == made->to || takes_part(made, axis)) parts *= mesh->axes[axis].extent;
  return made->to < 0 || now->dims[made->to].extent % parts == 0;
}

bool pl_layout_change_is_next(const pl_ir_mesh *mesh, const pl_ir_type *now, const change *made) {
  for (int32_t axis = made->axis[0] + 1; axis < mesh->n_axes; axis++)
    if (!takes_part(made, axis) && now->on[axis] >= 0 && (now->on[axis] == made->from || now->on[axis] == made->to))
      return false;
  return divides(mesh, now, made);
}

/* Seconds of moving `size_bytes` a device over these axes. */
static double seconds_of(const pl_laying *part, pl_collective_kind kind, uint32_t axes, double size_bytes) {
  pl_partitioning *own = part->own;
  double time_s = 0;
  if (own->unpriced.code != PL_OK) return 0;
  own->prices->seconds(own->prices->context, own->to, kind, axes, size_bytes, &time_s, &own->unpriced);
  return time_s;
}

static pl_collective_kind collective_of(const char *row) {
  return strcmp(row, "all_reduce") == 0       ? PL_ALL_REDUCE
         : strcmp(row, "reduce_scatter") == 0 ? PL_REDUCE_SCATTER
         : strcmp(row, "all_gather") == 0     ? PL_ALL_GATHER
                                              : PL_ALL_TO_ALL;
}

double pl_layout_change_price(const pl_laying *part, const pl_ir_type *now, const change *made) {
  uint32_t axes = 0;
  double size_bytes = pl_ir_type_local_bytes(&part->own->rules->mesh, now);
  if (strcmp(made->row, "cut") == 0) return 0;
  for (int32_t i = 0; i < made->n_axes; i++) {
    axes |= 1u << made->axis[i];
    if (made->to == PL_IR_SAME && made->from >= 0) size_bytes *= part->own->rules->mesh.axes[made->axis[i]].extent;
  }
  return seconds_of(part, collective_of(made->row), axes, size_bytes);
}

/* The op of one change; returns its output. */
static int32_t change_made(pl_laying *part, int32_t value, const change *made, const char *reason) {
  pl_ir_type type = part->to->values[value].type;
  pl_ir_attribute attributes[3];
  pl_ir_name axes[PL_IR_AXES_MAX];
  int32_t n = 0;
  for (int32_t i = 0; i < made->n_axes; i++)
    axes[i] = part->own->rules->mesh.axes[made->axis[i]].name;
  attributes[n++] = pl_ir_names("over", made->n_axes, axes);
  if (strcmp(made->row, "all_to_all") == 0) {
    attributes[n++] = pl_ir_names("from", 1, &type.dims[made->from].name);
    attributes[n++] = pl_ir_names("to", 1, &type.dims[made->to].name);
  } else if (made->to >= 0) {
    attributes[n++] = pl_ir_names("dim", 1, &type.dims[made->to].name);
  } else if (made->from >= 0) {
    attributes[n++] = pl_ir_names("dim", 1, &type.dims[made->from].name);
  }
  for (int32_t i = 0; i < made->n_axes; i++)
    type.on[made->axis[i]] = made->to;
  const char *name = part->to->values[value].name;
  return pl_ir_op_add(part->own->to, part->to,
                      &(pl_ir_making){.row = pl_ir_row_of(made->row),
                                      .n_inputs = 1,
                                      .inputs = &value,
                                      .n_outputs = 1,
                                      .output_names = &name,
                                      .output_types = &type,
                                      .n_attributes = n,
                                      .attributes = attributes,
                                      .reason = reason,
                                      .callee = PL_IR_NONE});
}

/* Whether the op that is laid out makes a forward pass again, and the value is one of that pass, or was kept for it. */
static bool is_of_pass(const pl_laying *part, int32_t value) {
  int32_t maker = part->from->values[value].op;
  bool kept = maker != PL_IR_NONE && pl_ir_op_is(&part->from->ops[maker], "kept");
  return part->lays_again && maker != PL_IR_NONE && (kept || part->again[maker]);
}

bool pl_laying_is_by_expert(const pl_ir_type *type) {
  return pl_ir_type_find(type, pl_ir_name_of("x")) >= 0 && pl_ir_type_find(type, pl_ir_name_of("y")) < 0 &&
         pl_ir_type_find(type, pl_ir_name_of("b")) >= 0;
}

/* What came to experts, or for another part as large, is what is computed with, in both passes: frameworks hold it, or
 * have kept it. */
static bool is_held(const pl_laying *part, int32_t made) {
  int32_t maker = part->to->values[made].op;
  bool came = maker != PL_IR_NONE &&
              (pl_ir_op_is(&part->to->ops[maker], "all_to_all") || pl_ir_op_is(&part->to->ops[maker], "kept"));
  return came || pl_laying_is_by_expert(&part->to->values[made].type);
}

static int32_t known(const pl_laying *part, int32_t value, const pl_ir_type *wanted) {
  const pl_variants *variants = &part->variants[value];
  bool again = is_of_pass(part, value);
  for (int32_t i = 0; i < variants->n; i++)
    if ((i == 0 || variants->again[i] == again || is_held(part, variants->value[i])) &&
        memcmp(part->to->values[variants->value[i]].type.on, wanted->on, sizeof(wanted->on)) == 0)
      return variants->value[i];
  return PL_IR_NONE;
}

static void remember(pl_laying *part, int32_t value, int32_t made) {
  pl_variants *variants = &part->variants[value];
  if (variants->n == PL_VARIANTS_MAX) return;
  variants->again[variants->n] = is_of_pass(part, value);
  variants->value[variants->n++] = made;
}

/* One change after the other, as long as one can be made; the rest is left. */
static pl_code make_changes(pl_laying *part, int32_t value, const pl_ir_type *wanted, const char *reason, int32_t *at,
                            pl_error *error) {
  const pl_ir_mesh *mesh = &part->own->rules->mesh;
  change changes[PL_IR_AXES_MAX];
  int32_t n = changes_of(mesh, &part->to->values[*at].type, wanted, changes);
  if (n < 0)
    return pl_fail(error, PL_UNSUPPORTED, "@%s: nothing brings %%%s to the layout that %s needs", part->from->name,
                   part->from->values[value].name, reason);
  for (int32_t left = n; left > 0; left--) {
    int32_t i = 0;
    while (i < left && !pl_layout_change_is_next(mesh, &part->to->values[*at].type, &changes[i]))
      i++;
    if (i == left) return PL_OK;
    *at = change_made(part, *at, &changes[i], reason);
    if (*at == PL_IR_NONE) return pl_fail_memory(error, "the distributed program");
    remember(part, value, *at);
    for (; i + 1 < left; i++)
      changes[i] = changes[i + 1];
  }
  return PL_OK;
}

/* Whole along every axis that cuts a dimension which changes: from there any layout is only cuts away. */
static pl_ir_type gathered(const pl_ir_mesh *mesh, const pl_ir_type *is, const pl_ir_type *wanted) {
  pl_ir_type type = *is;
  bool changes[PL_IR_RANK_MAX] = {false};
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (is->on[axis] == wanted->on[axis]) continue;
    if (is->on[axis] >= 0) changes[is->on[axis]] = true;
    if (wanted->on[axis] >= 0) changes[wanted->on[axis]] = true;
  }
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (is->on[axis] != wanted->on[axis] || (is->on[axis] >= 0 && changes[is->on[axis]])) type.on[axis] = PL_IR_SAME;
  return type;
}

static bool lies_so(const pl_laying *part, int32_t at, const pl_ir_type *wanted) {
  return memcmp(part->to->values[at].type.on, wanted->on, sizeof(wanted->on)) == 0;
}

/* By the rule: one change for all axes that change alike, in the order of axes; where that leads nowhere, whole first.
 */
static pl_code convert_by_rule(pl_laying *part, int32_t value, int32_t at, const pl_ir_type *wanted, const char *reason,
                               int32_t *converted, pl_error *error) {
  PL_TRY(make_changes(part, value, wanted, reason, &at, error));
  if (!lies_so(part, at, wanted)) {
    const pl_ir_type whole = gathered(&part->own->rules->mesh, &part->to->values[at].type, wanted);
    PL_TRY(make_changes(part, value, &whole, reason, &at, error));
    PL_TRY(make_changes(part, value, wanted, reason, &at, error));
  }
  *converted = at;
  return PL_OK;
}

/* ---- the cheapest ---- */

enum { ROUTE_TEXT_BYTES = 320 };

/* "all_gather over tp0, cut 131 us" */
static const char *route_text(const pl_ir_mesh *mesh, const pl_layout_route *route, char text[ROUTE_TEXT_BYTES]) {
  char time[PL_UNIT_TEXT_BYTES];
  size_t at = 0;
  for (int32_t i = 0; i < route->n && at < ROUTE_TEXT_BYTES; i++) {
    const change *made = &route->changes[i];
    at += (size_t)snprintf(text + at, ROUTE_TEXT_BYTES - at, "%s%s", i > 0 ? ", " : "", made->row);
    for (int32_t k = 0; k < made->n_axes && at < ROUTE_TEXT_BYTES; k++)
      at += (size_t)snprintf(text + at, ROUTE_TEXT_BYTES - at, "%s%s", k > 0 ? "+" : " over ",
                             mesh->axes[made->axis[k]].name.text);
  }
  if (at < ROUTE_TEXT_BYTES) snprintf(text + at, ROUTE_TEXT_BYTES - at, " %s", pl_format_time(route->time_s, time));
  return text;
}

/* The reason with what it takes, and what the next best would. */
static const char *priced_reason(pl_laying *part, const char *reason, const pl_layout_route *route,
                                 const pl_layout_route *other) {
  char best[PL_UNIT_TEXT_BYTES], next[ROUTE_TEXT_BYTES];
  pl_format_time(route->time_s, best);
  if (other->source == PL_IR_NONE)
    return pl_arena_printf(part->own->scratch, "%s: %s%s", reason, best, route->n > 1 ? " in all" : "");
  return pl_arena_printf(part->own->scratch, "%s: %s%s, against %s", reason, best, route->n > 1 ? " in all" : "",
                         route_text(&part->own->rules->mesh, other, next));
}

/* The cheapest way from one of the values; *converted PL_IR_NONE: no way was found. */
static pl_code convert_cheapest(pl_laying *part, int32_t value, int32_t n, const int32_t *from,
                                const pl_ir_type *wanted, const char *reason, int32_t *converted, pl_error *error) {
  pl_layout_route route, other;
  *converted = PL_IR_NONE;
  bool found = pl_layout_route_find(part, n, from, wanted, &route, &other);
  if (part->own->unpriced.code != PL_OK)
    return pl_fail(error, part->own->unpriced.code, "%s", part->own->unpriced.message);
  if (!found) return PL_OK;
  const char *why = part->own->prices->tells && route.time_s > 0 ? priced_reason(part, reason, &route, &other) : reason;
  if (why == NULL) return pl_fail_memory(error, "the distributed program");
  int32_t at = route.source;
  for (int32_t i = 0; i < route.n; i++) {
    at = change_made(part, at, &route.changes[i], why);
    if (at == PL_IR_NONE) return pl_fail_memory(error, "the distributed program");
    remember(part, value, at);
  }
  *converted = at;
  return PL_OK;
}

/* From `at`, or from any of the value's variants. */
static pl_code convert(pl_laying *part, int32_t value, int32_t at, const pl_ir_type *wanted, const char *reason,
                       int32_t *converted, pl_error *error) {
  *converted = known(part, value, wanted);
  if (*converted != PL_IR_NONE) return PL_OK;
  if (part->own->prices != NULL) {
    const pl_variants *all = &part->variants[value];
    bool any = at == all->value[0];
    const int32_t from[PL_VARIANTS_MAX] = {at};
    PL_TRY(convert_cheapest(part, value, any ? all->n : 1, any ? all->value : from, wanted, reason, converted, error));
    if (*converted != PL_IR_NONE) return PL_OK;
  }
  return convert_by_rule(part, value, at, wanted, reason, converted, error);
}

double pl_laying_cost(const pl_laying *part, int8_t from, int8_t to, int32_t axis, double whole_bytes) {
  int32_t n = part->own->rules->mesh.axes[axis].extent;
  double share = (double)(n - 1) / n, parts = HUGE_VAL;
  const char *row = from == to ? NULL : pl_layout_row_between(from, to);
  if (from == to) return 0;
  if (row == NULL) return HUGE_VAL;
  if (part->own->prices != NULL && strcmp(row, "cut") != 0)
    return seconds_of(part, collective_of(row), 1u << axis,
                      strcmp(row, "all_to_all") == 0 ? whole_bytes / n : whole_bytes);
  if (strcmp(row, "all_reduce") == 0) parts = 2 * share;
  if (strcmp(row, "reduce_scatter") == 0 || strcmp(row, "all_gather") == 0) parts = share;
  if (strcmp(row, "all_to_all") == 0) parts = share / n;
  if (strcmp(row, "cut") == 0) parts = 0;
  return parts * whole_bytes;
}

pl_code pl_laying_convert_from(pl_laying *part, int32_t value, int32_t at, const pl_ir_type *wanted, const char *reason,
                               int32_t *converted, pl_error *error) {
  return convert(part, value, at, wanted, reason, converted, error);
}

pl_code pl_laying_convert(pl_laying *part, int32_t value, const pl_ir_type *wanted, const char *reason,
                          int32_t *converted, pl_error *error) {
  return convert(part, value, part->variants[value].value[0], wanted, reason, converted, error);
}

int32_t pl_laying_value(const pl_laying *part, int32_t value) {
  return part->variants[value].n > 0 ? part->variants[value].value[0] : PL_IR_NONE;
}

void pl_laying_set(pl_laying *part, int32_t value, int32_t made) {
  part->variants[value] = (pl_variants){.n = 1, .value = {made}};
}

pl_code pl_laying_handed(pl_laying *part, int32_t value, bool sums, int32_t *handed, pl_error *error) {
  const pl_ir_type is = part->to->values[pl_laying_value(part, value)].type;
  pl_ir_type type = is;
  pl_layout_handed(part->handing, &type);
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    if (sums && is.on[axis] == PL_IR_PARTIAL) type.on[axis] = PL_IR_PARTIAL;
  return pl_laying_convert(part, value, &type, "as functions hand it on", handed, error);
}

pl_code pl_laying_settled(pl_laying *part, int32_t value, int32_t *settled, pl_error *error) {
  pl_ir_type type = part->to->values[pl_laying_value(part, value)].type;
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    if (type.on[axis] == PL_IR_PARTIAL || type.on[axis] == PL_IR_MAXIMUM) type.on[axis] = PL_IR_SAME;
  return pl_laying_convert(part, value, &type, "as it is sent", settled, error);
}
