/* See workloads/tree/tree_planning.h: which nodes speak of which modules and ops, and who holds. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_planning.h"

enum { NAMES_MAX = 4000, REMARKS_MAX = 64 };

/* ---- what a node says ---- */

static bool says(const pl_tree_node *node, int32_t key) {
  switch (key) {
  case PL_TREE_KEY_PARTITION:
    return node->n_cuts >= 0;
  case PL_TREE_KEY_RING:
    return node->has_ring;
  case PL_TREE_KEY_DEVICES:
    return node->has_devices;
  case PL_TREE_KEY_MAX_ONGOING:
    return node->schedule.max_ongoing > 0;
  case PL_TREE_KEY_MICROBATCHES:
    return node->parent >= 0 && node->schedule.microbatches > 0;
  case PL_TREE_KEY_RECOMPUTE:
    return node->schedule.has_recompute;
  default:
    return node->memory[key - PL_TREE_KEY_MEMORY].is_said;
  }
}

static pl_tree_place place_of(const pl_tree_node *node, int32_t key) {
  switch (key) {
  case PL_TREE_KEY_PARTITION:
    return node->partition_at;
  case PL_TREE_KEY_RING:
    return node->ring_at;
  case PL_TREE_KEY_DEVICES:
    return node->devices_at;
  case PL_TREE_KEY_MAX_ONGOING:
    return node->schedule.max_ongoing_at;
  case PL_TREE_KEY_MICROBATCHES:
    return node->schedule.microbatches_at;
  case PL_TREE_KEY_RECOMPUTE:
    return node->schedule.recompute_at;
  default:
    return node->memory[key - PL_TREE_KEY_MEMORY].place;
  }
}

static const char *name_of(int32_t key) {
  static const char *const names[] = {"partition", "ring", "devices", "max_ongoing", "microbatches", "recompute"};
  return key < PL_TREE_KEY_MEMORY ? names[key] : pl_tree_tensor_names[key - PL_TREE_KEY_MEMORY];
}

static bool same_cuts(const pl_tree_node *a, const pl_tree_node *b) {
  if (a->n_cuts != b->n_cuts) return false;
  for (int32_t i = 0; i < a->n_cuts; i++) {
    const pl_tree_cut *x = &a->cuts[i], *y = &b->cuts[i];
    if (x->n_dims != y->n_dims || x->degree != y->degree || x->n_axes != y->n_axes) return false;
    if (memcmp(x->dims, y->dims, sizeof(x->dims)) != 0 || memcmp(x->axes, y->axes, sizeof(x->axes)) != 0) return false;
  }
  return true;
}

static bool same(const pl_tree_node *a, const pl_tree_node *b, int32_t key) {
  const pl_tree_spread *x, *y;
  switch (key) {
  case PL_TREE_KEY_PARTITION:
    return same_cuts(a, b);
  case PL_TREE_KEY_RING:
    return a->ring == b->ring;
  case PL_TREE_KEY_DEVICES:
    return pl_tree_same_devices(a, b);
  case PL_TREE_KEY_MAX_ONGOING:
    return a->schedule.max_ongoing == b->schedule.max_ongoing;
  case PL_TREE_KEY_MICROBATCHES:
    return a->schedule.microbatches == b->schedule.microbatches && a->schedule.kind == b->schedule.kind;
  case PL_TREE_KEY_RECOMPUTE:
    return a->schedule.recompute == b->schedule.recompute;
  default:
    x = &a->memory[key - PL_TREE_KEY_MEMORY];
    y = &b->memory[key - PL_TREE_KEY_MEMORY];
    return x->n == y->n && x->host == y->host && memcmp(x->over, y->over, sizeof(x->over)) == 0 &&
           memcmp(x->degree, y->degree, sizeof(x->degree)) == 0;
  }
}

/* ---- who holds ---- */

/* The deepest node, then the one that names more components, then one that picks ops, then the nearest file. */
static int64_t rank_of(const pl_tree_node *node, int32_t components) {
  return (((int64_t)node->depth * 1024 + components) * 2 + (node->n_rows > 0)) * 64 - node->level;
}

static pl_code take_settings(const pl_tree_planning *own, int32_t index, int32_t components, const char *path,
                             pl_tree_settings *settings) {
  const pl_tree_node *node = pl_tree_node_at(own, index);
  int64_t rank = rank_of(node, components);
  for (int32_t key = 0; key < PL_TREE_KEY_COUNT; key++) {
    if (!says(node, key)) continue;
    int32_t held = settings->node[key];
    if (held >= 0 && settings->rank[key] > rank) continue;
    if (held >= 0 && settings->rank[key] == rank && !same(pl_tree_node_at(own, held), node, key)) {
      char text[PL_TREE_PLACE_BYTES];
      return pl_tree_fail(place_of(node, key), own->error,
                          "%s of %s is said here and otherwise at %s, by nodes that are as good; name one of them more "
                          "closely, or make it a child of the other",
                          name_of(key), path, pl_tree_place_text(place_of(pl_tree_node_at(own, held), key), text));
    }
    settings->node[key] = index;
    settings->rank[key] = rank;
  }
  return PL_OK;
}

static pl_tree_settings nobody(void) {
  pl_tree_settings settings = {0};
  for (int32_t key = 0; key < PL_TREE_KEY_COUNT; key++)
    settings.node[key] = -1;
  return settings;
}

/* ---- modules ---- */

typedef enum matching { NOT = 0, WHOLE, INSIDE } matching;

/* The components that the best pattern takes; 0: none matches. */
static int32_t matched(pl_tree_planning *own, int32_t index, const char *path, bool counts) {
  const pl_tree_node *node = pl_tree_node_at(own, index);
  int32_t most = 0, components;
  for (int32_t i = 0; i < node->n_patterns; i++) {
    own->plan->n_visits++;
    if (!pl_tree_matches(node->patterns[i].text, path, &components)) continue;
    if (components > most) most = components;
    if (counts) own->used[index][i] = true;
  }
  return most;
}

static bool reaches_into(pl_tree_planning *own, int32_t index, const char *path) {
  const pl_tree_node *node = pl_tree_node_at(own, index);
  for (int32_t i = 0; i < node->n_patterns; i++) {
    own->plan->n_visits++;
    if (pl_tree_reaches_into(node->patterns[i].text, path)) return true;
  }
  return false;
}

/* How each node matches the module; false: none looks inside it. */
static pl_code match_module(pl_tree_planning *own, int32_t module, uint8_t *how, bool *inside) {
  const char *name = own->plan->modules[module].name;
  pl_tree_settings *settings = &own->calls[module].settings;
  *inside = false;
  for (int32_t i = 0; i < own->tree->n_nodes; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, i);
    how[i] = NOT;
    if (i > 0 && how[node->parent] == NOT) continue;
    bool whole = i == 0 || how[node->parent] == WHOLE;
    int32_t components = i == 0 ? 0 : matched(own, i, name, whole && node->n_rows == 0);
    if (whole && node->n_rows == 0 && (i == 0 || components > 0)) {
      how[i] = WHOLE;
      own->n_used[i]++;
      own->plan->modules[module].node = i;
      PL_TRY(take_settings(own, i, components, name, settings));
    } else if (components > 0 || reaches_into(own, i, name)) {
      how[i] = INSIDE;
      *inside = true;
    }
  }
  return PL_OK;
}

/* ---- ops ---- */

const char *pl_tree_op_path(const pl_tree_planning *own, int32_t module, int32_t op, char text[PL_TREE_PATH_BYTES]) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  const pl_ir_op *at = &function->ops[op];
  const char *last = at->path != NULL    ? at->path
                     : at->n_outputs > 0 ? function->values[at->first_output].name
                                         : pl_ir_row_at(at->row)->name;
  snprintf(text, PL_TREE_PATH_BYTES, "%s.%s", own->plan->modules[module].name, last);
  return text;
}

static bool has_row(const pl_tree_node *node, const pl_ir_op *op) {
  const char *name = pl_ir_row_at(op->row)->name;
  for (int32_t i = 0; i < node->n_rows; i++)
    if (strcmp(node->rows[i].text, name) == 0) return true;
  return node->n_rows == 0;
}

/* Inside a module there are partitions, memory and recomputation; the rest is by module. */
static pl_code check_inside(const pl_tree_planning *own, int32_t index, const char *path) {
  const pl_tree_node *node = pl_tree_node_at(own, index);
  static const int32_t of_modules[] = {PL_TREE_KEY_DEVICES, PL_TREE_KEY_MAX_ONGOING, PL_TREE_KEY_MICROBATCHES};
  for (size_t i = 0; i < sizeof(of_modules) / sizeof(of_modules[0]); i++)
    if (says(node, of_modules[i]))
      return pl_tree_fail(place_of(node, of_modules[i]), own->error,
                          "%s is chosen by module, and %s lies inside one: match the module", name_of(of_modules[i]),
                          path);
  bool some = says(node, PL_TREE_KEY_RECOMPUTE) && node->schedule.recompute != PL_RECOMPUTE_NONE &&
              node->schedule.recompute != PL_RECOMPUTE_FULL;
  if (!some) return PL_OK;
  return pl_tree_fail(node->schedule.recompute_at, own->error,
                      "%s of %s, which lies inside a module, is none or full: it is these ops that are kept or made "
                      "again",
                      name_of(PL_TREE_KEY_RECOMPUTE), path);
}

/* Whether a node says how ops lie; else they lie as if it were not there. */
static bool says_layout(const pl_tree_node *node) {
  bool any = says(node, PL_TREE_KEY_PARTITION) || says(node, PL_TREE_KEY_RING);
  for (int32_t i = 0; i < PL_LAYOUT_TENSOR_COUNT; i++)
    any = any || says(node, PL_TREE_KEY_MEMORY + i);
  return any;
}

/* What is said of the op alone. */
static uint8_t again_of(const pl_tree_planning *own, int32_t module, const pl_tree_settings *settings) {
  int32_t node = settings->node[PL_TREE_KEY_RECOMPUTE];
  if (node == own->calls[module].settings.node[PL_TREE_KEY_RECOMPUTE]) return PL_RECOMPUTE_OP_AS_FUNCTION;
  bool again = pl_tree_node_at(own, node)->schedule.recompute == PL_RECOMPUTE_FULL;
  return again ? PL_RECOMPUTE_OP_AGAIN : PL_RECOMPUTE_OP_KEPT;
}

static pl_code match_op(pl_tree_planning *own, int32_t module, int32_t op, const uint8_t *how, uint8_t *hits,
                        pl_tree_op_plan *made) {
  char path[PL_TREE_PATH_BYTES];
  pl_tree_settings settings = own->calls[module].settings;
  bool named = false;
  pl_tree_op_path(own, module, op, path);
  for (int32_t i = 0; i < own->tree->n_nodes; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, i);
    hits[i] = how[i] == WHOLE;
    if (how[i] != INSIDE || !hits[node->parent] || !has_row(node, &pl_tree_callee(own, module)->ops[op])) continue;
    int32_t components = matched(own, i, path, true);
    if (components == 0) continue;
    hits[i] = true;
    own->n_used[i]++;
    PL_TRY(check_inside(own, i, path));
    PL_TRY(take_settings(own, i, components, path, &settings));
    named = named || says_layout(node);
  }
  made->again = again_of(own, module, &settings);
  if (!named) return PL_OK;
  made->origin = PL_TREE_EXPLICIT;
  return pl_tree_spec_take(own, &settings, settings.node[PL_TREE_KEY_PARTITION], &made->leaf);
}

static pl_code match_ops(pl_tree_planning *own, int32_t module, const uint8_t *how, uint8_t *hits) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  pl_tree_op_plan *ops = PL_TAKE(own->arena, pl_tree_op_plan, function->n_ops + 1);
  if (ops == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < function->n_ops; i++) {
    ops[i] = (pl_tree_op_plan){.leaf = -1, .from = PL_IR_NONE};
    PL_TRY(match_op(own, module, i, how, hits, &ops[i]));
  }
  own->calls[module].ops = ops;
  return PL_OK;
}

/* ---- patterns that match nothing ---- */

static void add_name(const char **names, int32_t *n, const char *name) {
  for (int32_t i = 0; i < *n; i++)
    if (strcmp(names[i], name) == 0) return;
  if (*n < NAMES_MAX) names[(*n)++] = name;
}

/* Which ops there are of what the pattern names. *n 0: it names nothing. */
static void rows_of(const pl_tree_planning *own, const pl_tree_pattern *pattern, const char **names, int32_t *n) {
  char path[PL_TREE_PATH_BYTES];
  int32_t components;
  for (int32_t module = 0; module < own->plan->n_modules; module++)
    for (int32_t i = 0; i < pl_tree_callee(own, module)->n_ops; i++)
      if (pl_tree_matches(pattern->text, pl_tree_op_path(own, module, i, path), &components))
        add_name(names, n, pl_ir_row_at(pl_tree_callee(own, module)->ops[i].row)->name);
}

static pl_code fail_rows(const pl_tree_planning *own, const pl_tree_node *node, const pl_tree_pattern *pattern,
                         const char *const *names) {
  char asked[PL_WORDS_BYTES], list[PL_WORDS_BYTES];
  size_t at = 0;
  for (int32_t i = 0; i < node->n_rows && at < sizeof asked; i++)
    at += (size_t)snprintf(asked + at, sizeof asked - at, "%s%s", i > 0 ? " or " : "", node->rows[i].text);
  return pl_tree_fail(pattern->place, own->error, "no op of '%s' is %s; they are %s", pattern->text, asked,
                      pl_words_list(names, list, sizeof list));
}

/* Where the text goes on behind so many components; its end. */
static const char *behind(const char *text, int32_t components) {
  for (; components > 0 && *text != 0; components--) {
    text += strcspn(text, ".");
    if (*text == '.' && components > 1) text++;
  }
  return text;
}

static int32_t components_of(const char *text) {
  int32_t n = 1;
  for (; (text = strchr(text, '.')) != NULL; text++)
    n++;
  return n;
}

/* What could have been meant inside a module: as much of the paths there as the pattern has, its module called as the
 * pattern calls it ("h.*.mlp"). */
static bool add_inside(pl_tree_planning *own, const char *pattern, int32_t module, const char **names, int32_t *n) {
  char path[PL_TREE_PATH_BYTES];
  int32_t outside = components_of(own->plan->modules[module].name), all = components_of(pattern);
  const char *own_end = behind(pattern, outside);
  for (int32_t i = 0; i < pl_tree_callee(own, module)->n_ops; i++) {
    pl_tree_op_path(own, module, i, path);
    const char *inside = behind(path, outside), *end = behind(path, all);
    const char *name =
        pl_arena_printf(own->scratch, "%.*s%.*s", (int)(own_end - pattern), pattern, (int)(end - inside), inside);
    if (name == NULL) return false;
    add_name(names, n, name);
  }
  return true;
}

/* Modules, and the ops of the first one that the pattern looks into. */
static pl_code fail_pattern(pl_tree_planning *own, int32_t index, const pl_tree_pattern *pattern) {
  const pl_tree_node *node = pl_tree_node_at(own, index);
  char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
  const char **names = PL_TAKE(own->scratch, const char *, NAMES_MAX + 1);
  int32_t n = 0, into = -1;
  if (names == NULL) return pl_fail_memory(own->error, "a strategy tree");
  if (node->n_rows > 0) rows_of(own, pattern, names, &n);
  if (n > 0) return fail_rows(own, node, pattern, names);
  for (int32_t i = 0; i < own->plan->n_modules && into < 0; i++)
    if (pl_tree_reaches_into(pattern->text, own->plan->modules[i].name)) into = i;
  if (into >= 0 && !add_inside(own, pattern->text, into, names, &n))
    return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; into < 0 && i < own->plan->n_modules && n < NAMES_MAX; i++)
    names[n++] = own->plan->modules[i].name;
  if (own->scratch->failed) return pl_fail_memory(own->error, "a strategy tree");
  const char *where = node->parent > 0 ? " that its parent matches too" : "";
  return pl_tree_fail(pattern->place, own->error, "'%s' matches nothing%s; there are %s%s", pattern->text, where,
                      pl_words_list(names, list, sizeof(list) / 2), pl_words_hint(names, pattern->text, hint));
}

pl_code pl_tree_remark(pl_tree_planning *own, const char *format, ...) {
  char text[512];
  va_list arguments;
  if (own->plan->n_remarks == REMARKS_MAX) return PL_OK;
  if (own->plan->remarks == NULL) own->plan->remarks = PL_TAKE(own->arena, const char *, REMARKS_MAX);
  if (own->plan->remarks == NULL) return pl_fail_memory(own->error, "a strategy tree");
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *made = pl_arena_strdup(own->arena, text);
  if (made == NULL) return pl_fail_memory(own->error, "a strategy tree");
  own->plan->remarks[own->plan->n_remarks++] = made;
  return PL_OK;
}

/* "h.2-9" of a model whose last layer is h.3: what is meant may be another model. The first range of a pattern. */
static pl_code remark_range(pl_tree_planning *own, const pl_tree_pattern *pattern) {
  size_t at = 0, length = strcspn(pattern->text, ".");
  long first, last, most = -1;
  char behind;
  for (; sscanf(pattern->text + at, "%ld-%ld%c", &first, &last, &behind) < 2;
       length = strcspn(pattern->text + at, ".")) {
    if (pattern->text[at + length] == 0) return PL_OK;
    at += length + 1;
  }
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    const char *name = own->plan->modules[i].name;
    if (strncmp(name, pattern->text, at) != 0 || name[at] < '0' || name[at] > '9') continue;
    long number = strtol(name + at, NULL, 10);
    if (number > most) most = number;
  }
  char place[PL_TREE_PLACE_BYTES];
  if (most < 0 || last <= most) return PL_OK;
  return pl_tree_remark(own, "pattern   '%s' (%s) reaches beyond %.*s%ld, the last that there is", pattern->text,
                        pl_tree_place_text(pattern->place, place), (int)at, pattern->text, most);
}

static pl_code check_patterns(pl_tree_planning *own) {
  for (int32_t i = 1; i < own->tree->n_nodes; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, i);
    for (int32_t k = 0; k < node->n_patterns; k++)
      if (!own->used[i][k] && pl_tree_is_said(node->patterns[k].place)) return fail_pattern(own, i, &node->patterns[k]);
    for (int32_t k = 0; k < node->n_patterns; k++)
      if (pl_tree_is_said(node->patterns[k].place)) PL_TRY(remark_range(own, &node->patterns[k]));
  }
  return PL_OK;
}

pl_code pl_tree_match(pl_tree_planning *own) {
  int32_t n_nodes = own->tree->n_nodes;
  uint8_t *how = PL_TAKE(own->scratch, uint8_t, n_nodes), *hits = PL_TAKE(own->scratch, uint8_t, n_nodes);
  own->used = PL_TAKE(own->scratch, bool *, n_nodes);
  own->n_used = PL_TAKE(own->scratch, int32_t, n_nodes);
  if (how == NULL || hits == NULL || own->used == NULL || own->n_used == NULL)
    return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < n_nodes; i++)
    if ((own->used[i] = PL_TAKE(own->scratch, bool, own->tree->nodes[i].n_patterns + 1)) == NULL)
      return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t module = 0; module < own->plan->n_modules; module++) {
    bool inside;
    own->calls[module].settings = nobody();
    PL_TRY(match_module(own, module, how, &inside));
    if (inside) PL_TRY(match_ops(own, module, how, hits));
  }
  return check_patterns(own);
}

/* ---- specs ---- */

static pl_code take_spec(pl_tree_planning *own, const pl_tree_spec *wanted, int32_t *spec) {
  for (*spec = 0; *spec < own->n_specs; (*spec)++)
    if (memcmp(&own->specs[*spec], wanted, sizeof(*wanted)) == 0) return PL_OK;
  pl_tree_spec *specs =
      pl_arena_grown(own->scratch, own->specs, (size_t)own->n_specs, 1, sizeof *specs, &own->room_specs);
  if (specs == NULL) return pl_fail_memory(own->error, "a strategy tree");
  own->specs = specs;
  own->specs[own->n_specs++] = *wanted;
  return PL_OK;
}

pl_code pl_tree_spec_take(pl_tree_planning *own, const pl_tree_settings *settings, int32_t partition, int32_t *spec) {
  pl_tree_spec wanted = {.partition = partition, .ring = settings->node[PL_TREE_KEY_RING], .leaf = -1};
  for (int32_t i = 0; i < PL_LAYOUT_TENSOR_COUNT; i++)
    wanted.memory[i] = settings->node[PL_TREE_KEY_MEMORY + i];
  return take_spec(own, &wanted, spec);
}

pl_code pl_tree_spec_with(pl_tree_planning *own, int32_t of, int32_t partition, int32_t *spec) {
  pl_tree_spec wanted = own->specs[of];
  wanted.partition = partition;
  return take_spec(own, &wanted, spec);
}
