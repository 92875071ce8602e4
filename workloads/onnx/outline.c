/* See workloads/onnx/outline.h. */
#include "workloads/onnx/outline.h"

#include <ctype.h>
#include <string.h>

#include "workloads/language/ir_parameters.h"
#include "workloads/onnx/outline_pieces.h"
#include "workloads/onnx/repeats.h"

/* ---- functions ---- */

typedef struct drawing {
  pl_outliner *own;
  pl_ir_function *to; /* NULL: weights are listed only */
  const char *instance, *name;
  bool bare;     /* called without an instance: paths are whole */
  int32_t *made; /* by value of `from`; PL_IR_NONE */
  int32_t *touched, n_touched;
  const char **paths; /* of its weights, in the order of their first reading, and how many */
  int32_t n_paths, at;
} drawing;

/* "model.layers.3.mlp.up.weight" -> "mlp.up.weight"; a name that an exporter made up (onnx::MatMul_123) -> NULL. */
static const char *own_part(const char *source, bool repeats) {
  const char *at = source;
  if (strstr(source, "::") != NULL || isdigit((unsigned char)source[0]) || source[0] == 0) return NULL;
  for (const char *c = source; repeats && *c != 0; c++)
    if ((c == source || c[-1] == '.') && isdigit((unsigned char)*c)) {
      while (isdigit((unsigned char)*c))
        c++;
      if (*c == '.' && c[1] != 0) {
        at = c + 1;
        break;
      }
      c--;
    }
  for (const char *c = at; *c != 0; c++)
    if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.') return NULL;
  return strlen(at) <= 100 ? at : NULL;
}

static bool is_used(const drawing *d, const char *path) {
  for (int32_t i = 0; i < d->n_paths; i++)
    if (strcmp(d->paths[i], path) == 0) return true;
  return false;
}

static const char *path_for(drawing *d, const pl_ir_op *op, const pl_ir_op *reader, bool repeats) {
  const char *base = own_part(op->path, repeats);
  const pl_ir_type *type = &d->own->from->values[op->first_output].type;
  if (base == NULL)
    base = pl_arena_printf(d->own->arena, "%s.%s", d->own->from->values[reader->first_output].name,
                           type->rank > 1 ? "weight" : "bias");
  const char *path = base;
  for (int32_t i = 2; path != NULL && is_used(d, path); i++)
    path = pl_arena_printf(d->own->arena, "%s%d", base, i);
  return path;
}

static pl_code note_weight(drawing *d, const char *path, const char *source) {
  pl_outlined *out = d->own->out;
  pl_outlined_weight *all =
      pl_arena_grown(d->own->module->arena, out->weights, (size_t)out->n_weights, 1, sizeof *all, &out->room_weights);
  if (all == NULL) return pl_outline_no_memory(d->own);
  out->weights = all;
  const char *whole = d->bare ? path : pl_ir_path_join(d->own->module->arena, d->instance, path);
  if (whole == NULL) return pl_outline_no_memory(d->own);
  out->weights[out->n_weights++] = (pl_outlined_weight){whole, source};
  return PL_OK;
}

static void set_made(drawing *d, int32_t value, int32_t made) {
  d->made[value] = made;
  d->touched[d->n_touched++] = value;
}

static pl_code draw_op(drawing *d, const pl_ir_op *op, const pl_ir_op *reader, int32_t depth);

static pl_code ready(drawing *d, int32_t value, const pl_ir_op *reader, int32_t depth) {
  if (d->made[value] != PL_IR_NONE) return PL_OK;
  int32_t op = d->own->from->values[value].op;
  PL_ASSERT(op != PL_IR_NONE);
  if (depth > 64) return pl_fail(d->own->error, PL_UNSUPPORTED, "a mask or a weight is computed in more than 64 steps");
  return draw_op(d, &d->own->from->ops[op], reader, depth + 1);
}

/* Path of the weight that this op reads: of the first instance it is found, of others it is the same. */
static pl_code weight_path(drawing *d, const pl_ir_op *op, const pl_ir_op *reader, const char **path) {
  if (d->to != NULL) {
    *path = strcmp(d->name, "embedding") == 0 && d->own->out->tied && d->own->reader[op - d->own->from->ops] < 0
                ? "table"
                : path_for(d, op, reader, strncmp(d->instance, "h.", 2) == 0);
    if (d->bare && d->own->reader[op - d->own->from->ops] < 0)
      *path = "embedding.table";
    else if (d->bare && *path != NULL)
      *path = pl_arena_printf(d->own->arena, "%s.%s", d->name, *path);
    if (*path == NULL) return pl_outline_no_memory(d->own);
    d->paths[d->n_paths++] = *path;
  } else {
    *path = d->paths[d->at++];
  }
  return note_weight(d, *path, op->path);
}

static pl_code draw_op(drawing *d, const pl_ir_op *op, const pl_ir_op *reader, int32_t depth) {
  int32_t inputs[PL_IR_OPERANDS_MAX];
  const char *names[PL_IR_OPERANDS_MAX], *path = op->path;
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  for (int32_t k = 0; k < op->n_inputs; k++) {
    PL_TRY(ready(d, op->inputs[k], op, depth));
    inputs[k] = d->made[op->inputs[k]];
  }
  if (pl_outline_is_row(op, "param")) PL_TRY(weight_path(d, op, reader != NULL ? reader : op, &path));
  for (int32_t k = 0; k < op->n_outputs; k++) {
    names[k] = pl_outline_is_row(op, "param") ? path : d->own->from->values[op->first_output + k].name;
    types[k] = d->own->from->values[op->first_output + k].type;
  }
  int32_t made = 0;
  if (d->to != NULL)
    made = pl_ir_op_add(d->own->module, d->to,
                        &(pl_ir_making){.row = op->row,
                                        .n_inputs = op->n_inputs,
                                        .inputs = inputs,
                                        .n_outputs = op->n_outputs,
                                        .output_names = names,
                                        .output_types = types,
                                        .n_attributes = op->n_attributes,
                                        .attributes = op->attributes,
                                        .path = path,
                                        .callee = PL_IR_NONE});
  if (made == PL_IR_NONE) return pl_outline_no_memory(d->own);
  for (int32_t k = 0; k < op->n_outputs; k++)
    set_made(d, op->first_output + k, made + k);
  return PL_OK;
}

/* The value of the spine that ops from `first` on read from in front of it; PL_IR_NONE: none. */
static int32_t incoming(const pl_outliner *own, int32_t first, int32_t n) {
  int32_t limit = own->spine[first];
  for (int32_t i = first; i < first + n; i++) {
    const pl_ir_op *op = &own->from->ops[own->spine[i]];
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t value = op->inputs[k];
      if (own->made_of[value] == (PL_OF_DATA | PL_OF_WEIGHTS) && own->from->values[value].op < limit) return value;
    }
  }
  return PL_IR_NONE;
}

static void forget(drawing *d) {
  while (d->n_touched > 0)
    d->made[d->touched[--d->n_touched]] = PL_IR_NONE;
}

/* Spine ops first .. first + n - 1 into d->to, or their weights listed. *out: the value that is handed on. */
static pl_code draw(drawing *d, int32_t first, int32_t n, int32_t result, int32_t *out) {
  pl_outliner *own = d->own;
  int32_t in = incoming(own, first, n);
  d->at = 0;
  forget(d);
  if (in != PL_IR_NONE)
    set_made(d, in, d->to != NULL ? pl_ir_argument(own->module, d->to, "x", &own->from->values[in].type) : 0);
  for (int32_t i = first; i < first + n; i++)
    PL_TRY(draw_op(d, &own->from->ops[own->spine[i]], NULL, 0));
  *out = first + n < own->n_spine ? incoming(own, first + n, own->n_spine - first - n) : result;
  if (*out == PL_IR_NONE) *out = result;
  if (d->to != NULL) pl_ir_results_set(own->module, d->to, 1, &d->made[*out]);
  return own->module->arena->failed || own->arena->failed ? pl_outline_no_memory(own) : PL_OK;
}

/* ---- calls ---- */

typedef struct plan {
  int32_t first, n; /* pieces of one call */
  int32_t count;    /* calls, one behind the other */
  uint64_t sign;    /* of the pieces together */
  const char *name; /* "embedding", "head"; NULL: a layer */
  int32_t function; /* made for an earlier plan with the same sign; PL_IR_NONE */
  const char **paths;
} plan;

static int32_t ops_first(const pl_outliner *own, int32_t p) {
  return own->pieces[p].first;
}

static int32_t ops_of(const pl_outliner *own, int32_t p, int32_t n) {
  int32_t ops = 0;
  for (int32_t i = 0; i < n; i++)
    ops += own->pieces[p + i].n;
  return ops;
}

static void put_plan(const pl_outliner *own, plan *plans, int32_t *n, int32_t first, int32_t pieces, int32_t count) {
  uint64_t sign = 19;
  for (int32_t i = 0; i < pieces; i++)
    sign = pl_hash_word(sign, own->signs[first + i]);
  plans[(*n)++] = (plan){first, pieces, count, sign, NULL, PL_IR_NONE, NULL};
}

/* What stands between repeats: a part for every piece that multiplies by a weight, with those behind it that do not;
 * those in front of the first go with it. */
static void put_parts(const pl_outliner *own, plan *plans, int32_t *n, int32_t first, int32_t pieces) {
  int32_t begins = first;
  bool has = false;
  for (int32_t p = first; p < first + pieces; p++) {
    if (own->pieces[p].multiplies && has) {
      put_plan(own, plans, n, begins, p - begins, 1);
      begins = p;
    }
    has = has || own->pieces[p].multiplies;
  }
  put_plan(own, plans, n, begins, first + pieces - begins, 1);
}

static bool looks_up(const pl_outliner *own, const plan *p) {
  int32_t first = ops_first(own, p->first), n = ops_of(own, p->first, p->n);
  for (int32_t i = first; i < first + n; i++)
    if (pl_outline_is_row(&own->from->ops[own->spine[i]], "embedding")) return true;
  return false;
}

static bool repeats(const plan *plans, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (plans[i].count > 1) return true;
  return false;
}

/* Names of the ends. What looks words up is @embedding, with all parts up to it; without repeats all else are layers,
 * but for the last part. */
static int32_t name_ends(const pl_outliner *own, plan *plans, int32_t n) {
  int32_t until = -1;
  for (int32_t i = 0; i < n && plans[i].count == 1; i++)
    if (looks_up(own, &plans[i])) until = i;
  if (until < 0 && n > 1 && plans[0].count == 1 && plans[1].count > 1 && repeats(plans, n)) until = 0;
  if (until > 0) { /* one function */
    plans[0].n = plans[until].first + plans[until].n - plans[0].first;
    memmove(&plans[1], &plans[until + 1], (size_t)(n - until - 1) * sizeof(*plans));
    n -= until;
  }
  if (until >= 0 && n > 1) plans[0].name = "embedding";
  if (n > 1 && plans[n - 1].count == 1 && !(n == 2 && plans[0].name != NULL)) plans[n - 1].name = "head";
  return n;
}

/* ---- weights that are read twice ---- */

typedef struct sharing {
  int32_t *call, *looked; /* by op: the first call that reads it; the call that was last looked at for it */
  int32_t *stack;
  int32_t now;
  bool may_be_tied; /* the call is the head's, and there is an embedding */
} sharing;

/* A weight that two calls read may be the table of words that the head reads too. */
static pl_code note_reading(pl_outliner *own, sharing *s, int32_t index) {
  const char *path = own->from->ops[index].path;
  if (s->call[index] == 0) s->call[index] = s->now;
  if (s->call[index] == s->now || own->reader[index] < 0) return PL_OK;
  if (s->call[index] != 1 || !s->may_be_tied)
    return pl_fail(own->error, PL_UNSUPPORTED,
                   "weight '%s' is read in two places that are no embedding and its head: programs have no name for "
                   "weights that layers share",
                   path);
  if (own->out->tied)
    return pl_fail(own->error, PL_UNSUPPORTED, "weight '%s' is a second one that embedding and head share", path);
  own->out->tied = true;
  own->reader[index] = -1;
  return PL_OK;
}

/* The op, and what floats in front of it. */
static pl_code look_at(pl_outliner *own, sharing *s, int32_t op) {
  int32_t depth = 0;
  s->stack[depth++] = op;
  while (depth > 0) {
    int32_t index = s->stack[--depth];
    const pl_ir_op *at = &own->from->ops[index];
    if (pl_outline_is_row(at, "param")) PL_TRY(note_reading(own, s, index));
    for (int32_t k = 0; k < at->n_inputs; k++) {
      int32_t maker = own->from->values[at->inputs[k]].op;
      if (pl_outline_is_spine(own, &own->from->ops[maker]) || s->looked[maker] == s->now) continue;
      s->looked[maker] = s->now;
      s->stack[depth++] = maker;
    }
  }
  return PL_OK;
}

static pl_code find_shared(pl_outliner *own, const plan *plans, int32_t n_plans) {
  sharing s = {.call = PL_TAKE(own->arena, int32_t, own->from->n_ops + 1),
               .looked = PL_TAKE(own->arena, int32_t, own->from->n_ops + 1),
               .stack = PL_TAKE(own->arena, int32_t, own->from->n_ops + 1)};
  if (s.call == NULL || s.looked == NULL || s.stack == NULL) return pl_outline_no_memory(own);
  bool embeds = plans[0].name != NULL && strcmp(plans[0].name, "embedding") == 0;
  for (int32_t p = 0; p < n_plans; p++)
    for (int32_t c = 0; c < plans[p].count; c++) {
      int32_t at = plans[p].first + c * plans[p].n, first = ops_first(own, at), n = ops_of(own, at, plans[p].n);
      s.now++;
      s.may_be_tied = embeds && p + 1 == n_plans && plans[p].name != NULL;
      for (int32_t i = first; i < first + n; i++)
        PL_TRY(look_at(own, &s, own->spine[i]));
    }
  return PL_OK;
}

static pl_code make_function(pl_outliner *own, plan *p, drawing *d, int32_t result) {
  pl_arena *arena = own->module->arena;
  pl_ir_function *function = PL_TAKE(arena, pl_ir_function, 1);
  const char *base = p->name != NULL ? p->name : "layer", *name = base;
  for (int32_t i = 2; name != NULL && pl_ir_function_find(own->module, name) != PL_IR_NONE; i++)
    name = pl_arena_printf(arena, "%s%d", base, i);
  d->paths = PL_TAKE(own->arena, const char *, own->from->n_ops + 1);
  if (function == NULL || name == NULL || d->paths == NULL) return pl_outline_no_memory(own);
  function->name = pl_arena_strdup(arena, name);
  d->to = function;
  d->name = base;
  d->n_paths = 0;
  int32_t out;
  PL_TRY(draw(d, ops_first(own, p->first), ops_of(own, p->first, p->n), result, &out));
  p->paths = d->paths;
  p->function = pl_ir_function_append(own->module, function);
  return p->function != PL_IR_NONE ? PL_OK : pl_outline_no_memory(own);
}

static pl_code call(pl_outliner *own, pl_ir_function *main, int32_t function, const char *instance, int32_t *x) {
  const pl_ir_function *callee = own->module->functions[function];
  const char *name = "x";
  const pl_ir_type type = callee->values[callee->results[0]].type;
  *x = pl_ir_op_add(own->module, main,
                    &(pl_ir_making){.row = pl_ir_row_of("call"),
                                    .n_inputs = callee->n_arguments,
                                    .inputs = x,
                                    .n_outputs = 1,
                                    .output_names = &name,
                                    .output_types = &type,
                                    .path = instance,
                                    .callee = function});
  return *x != PL_IR_NONE ? PL_OK : pl_outline_no_memory(own);
}

static pl_code make_all(pl_outliner *own, plan *plans, int32_t n_plans, pl_ir_function *main, int32_t result,
                        int32_t *x) {
  drawing d = {.own = own,
               .made = PL_TAKE(own->arena, int32_t, own->from->n_values + 1),
               .touched = PL_TAKE(own->arena, int32_t, 2 * own->from->n_values + 1)};
  if (d.made == NULL || d.touched == NULL) return pl_outline_no_memory(own);
  for (int32_t v = 0; v < own->from->n_values; v++)
    d.made[v] = PL_IR_NONE;
  *x = PL_IR_NONE;
  for (int32_t p = 0; p < n_plans; p++) {
    plan *at = &plans[p];
    for (int32_t k = 0; k < p && at->function == PL_IR_NONE && at->name == NULL; k++)
      if (plans[k].name == NULL && plans[k].sign == at->sign)
        at->function = plans[k].function, at->paths = plans[k].paths;
    for (int32_t c = 0; c < at->count; c++) {
      d.bare = at->name != NULL && strcmp(at->name, "head") == 0 && own->out->tied;
      d.instance = at->name != NULL ? at->name : pl_arena_printf(own->module->arena, "h.%d", own->out->n_layers);
      own->out->n_layers += at->name == NULL;
      if (d.instance == NULL) return pl_outline_no_memory(own);
      if (at->function == PL_IR_NONE) {
        PL_TRY(make_function(own, at, &d, result));
      } else {
        int32_t out;
        d.to = NULL;
        d.paths = at->paths;
        PL_TRY(
            draw(&d, ops_first(own, at->first + c * at->n), ops_of(own, at->first + c * at->n, at->n), result, &out));
      }
      PL_TRY(call(own, main, at->function, d.bare ? "" : d.instance, x));
    }
  }
  return PL_OK;
}

pl_code pl_outline(const pl_ir_function *from, int32_t result_of, pl_ir_module *module, pl_ir_function *main,
                   int32_t *result, pl_outlined *outlined, pl_error *error) {
  pl_arena *arena = module->arena;
  pl_outliner own = {.from = from, .module = module, .arena = arena, .error = error, .out = outlined};
  *outlined = (pl_outlined){.n_layers = 0};
  own.made_of = PL_TAKE(arena, uint8_t, from->n_values + 1);
  own.spine = PL_TAKE(arena, int32_t, from->n_ops + 1);
  own.reader = PL_TAKE(arena, int32_t, from->n_ops + 1);
  if (own.made_of == NULL || own.spine == NULL || own.reader == NULL) return pl_outline_no_memory(&own);
  pl_outline_find_spine(&own);
  if (own.n_spine == 0 || own.made_of[result_of] != (PL_OF_DATA | PL_OF_WEIGHTS))
    return pl_fail(error, PL_UNSUPPORTED, "its output is not made of data and weights: there is nothing to train");
  PL_TRY(pl_outline_find_pieces(&own, result_of));
  PL_TRY(pl_outline_take_signs(&own));
  double *weights = PL_TAKE(arena, double, own.n_pieces + 1);
  if (weights == NULL) return pl_outline_no_memory(&own);
  for (int32_t p = 0; p < own.n_pieces; p++)
    weights[p] = own.pieces[p].multiplies ? own.pieces[p].n : 0;
  int32_t n_repeats, n_plans = 0;
  const pl_repeat *found = pl_repeats_take(own.n_pieces, own.signs, weights, arena, &n_repeats);
  plan *plans = PL_TAKE(arena, plan, own.n_pieces + n_repeats + 2);
  if (found == NULL || plans == NULL) return pl_outline_no_memory(&own);
  for (int32_t r = 0; r < n_repeats; r++) {
    if (found[r].count > 1)
      put_plan(&own, plans, &n_plans, found[r].first, found[r].period, found[r].count);
    else
      put_parts(&own, plans, &n_plans, found[r].first, found[r].period);
  }
  n_plans = name_ends(&own, plans, n_plans);
  PL_TRY(find_shared(&own, plans, n_plans));
  return make_all(&own, plans, n_plans, main, result_of, result);
}
