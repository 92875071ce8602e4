/* See workloads/tree/tree.h: files, includes, nodes and their schedules. */
#include "workloads/tree/tree_read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "core/system/text_file.h"

enum { INCLUDES_MAX = 16, NODES_MAX = 4096, MESH_MAX = 6 };

/* ---- what readers share ---- */

pl_tree_place pl_tree_reading_place(const pl_tree_reading *own, const pl_node *node) {
  int line, column;
  pl_node_place(node, &line, &column);
  return (pl_tree_place){.file = own->file, .line = line, .column = column};
}

static pl_code refuse_choice(const pl_document *document, const pl_node *node, pl_error *error) {
  return pl_document_fail(document, node, error,
                          "a choice: 'paceline sweep' and 'search' take such a file by --strategy-space, and 'paceline "
                          "strategy choose' writes the tree that is wanted (choices stand in that file itself, not in "
                          "one that it includes)");
}

pl_code pl_tree_reading_check_keys(const pl_tree_reading *own, const pl_node *mapping, const char *what,
                                   const char *const *keys) {
  const char *key;
  if (!pl_node_is_mapping(mapping))
    return pl_document_fail(own->document, mapping, own->error, "%s is a mapping (key: value)", what);
  for (size_t i = 0; i < pl_node_count(mapping); i++) {
    pl_node_entry(own->document, mapping, i, &key);
    if (pl_words_find(keys, key) >= 0) continue;
    if (strcmp(key, "choose") == 0) return refuse_choice(own->document, mapping, own->error);
    char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
    return pl_document_fail(own->document, pl_node_key(mapping, i), own->error,
                            "'%.64s' is no key of %s; there are %s%s", key, what,
                            pl_words_list(keys, list, sizeof(list)), pl_words_hint(keys, key, hint));
  }
  return PL_OK;
}

pl_code pl_tree_reading_integer(const pl_tree_reading *own, const pl_node *node, const char *what, int64_t most,
                                int64_t *value) {
  double number;
  if (pl_node_is_mapping(node) && pl_node_get(node, "choose") != NULL)
    return refuse_choice(own->document, node, own->error);
  PL_TRY(pl_node_as_number(own->document, node, &number, own->error));
  if (number >= 1 && number <= (double)most && number == (double)(int64_t)number) {
    *value = (int64_t)number;
    return PL_OK;
  }
  return pl_document_fail(own->document, node, own->error, "%s is a whole number from 1 to %lld, not %g", what,
                          (long long)most, number);
}

pl_code pl_tree_reading_word(const pl_tree_reading *own, const pl_node *node, const char *what,
                             const char *const *words, int *found) {
  const char *word;
  if (pl_node_is_mapping(node) && pl_node_get(node, "choose") != NULL)
    return refuse_choice(own->document, node, own->error);
  PL_TRY(pl_node_as_string(own->document, node, &word, own->error));
  *found = pl_words_find(words, word);
  if (*found >= 0) return PL_OK;
  char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
  return pl_document_fail(own->document, node, own->error, "%s '%.64s' is unknown; there are %s%s", what, word,
                          pl_words_list(words, list, sizeof(list)), pl_words_hint(words, word, hint));
}

pl_code pl_tree_reading_name(const pl_tree_reading *own, const pl_node *node, const char *what, pl_ir_name *name) {
  const char *word;
  PL_TRY(pl_node_as_string(own->document, node, &word, own->error));
  size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  bool fits = word[length] == 0 && length > 0 && length < PL_IR_NAME_MAX && (word[0] < '0' || word[0] > '9');
  if (!fits)
    return pl_document_fail(own->document, node, own->error,
                            "'%.64s' is no name of %s: letters, digits, '_' and '.', no digit first, at most %d", word,
                            what, PL_IR_NAME_MAX - 1);
  *name = pl_ir_name_of(word);
  return PL_OK;
}

size_t pl_tree_reading_count(const pl_node *node) {
  return pl_node_is_sequence(node) ? pl_node_count(node) : 1;
}

const pl_node *pl_tree_reading_item(const pl_node *node, size_t index) {
  return pl_node_is_sequence(node) ? pl_node_at(node, index) : node;
}

/* ---- schedules ---- */

/* Of a child: the order in which its pieces run. */
static pl_code check_kind(const pl_tree_reading *own, const pl_node *at, const pl_tree_node *node) {
  const pl_tree_schedule *schedule = &node->schedule;
  if (node->parent < 0) return PL_OK;
  if (schedule->microbatches == 0)
    return pl_document_fail(own->document, at, own->error,
                            "kind of a child is the order of its microbatches, and it has none: say microbatches "
                            "beside it, or kind at the top of the tree");
  if (schedule->kind == PL_SCHEDULE_GPIPE || schedule->kind == PL_SCHEDULE_BREADTH_FIRST) return PL_OK;
  return pl_document_fail(own->document, at, own->error,
                          "microbatches of a child run one behind the other through all of its modules (gpipe), or "
                          "module by module (breadth-first), not %s: forward passes come before backward passes",
                          pl_schedule_name(schedule->kind));
}

/* All microbatches of a child run forward before the first of them runs backward. */
static pl_code check_ongoing(const pl_tree_reading *own, const pl_node *at, const pl_tree_node *node) {
  const pl_tree_schedule *schedule = &node->schedule;
  if (node->parent < 0 || schedule->microbatches == 0 || schedule->max_ongoing >= schedule->microbatches) return PL_OK;
  return pl_document_fail(own->document, at, own->error,
                          "all %lld microbatches of a child run forward before the first of them runs backward: "
                          "max_ongoing is %lld or more; recompute: full lets go of what they keep",
                          (long long)schedule->microbatches, (long long)schedule->microbatches);
}

static pl_code read_schedule(const pl_tree_reading *own, const pl_node *value, pl_tree_node *node) {
  static const char *const keys[] = {"microbatches", "max_ongoing", "kind", "recompute", NULL};
  pl_tree_schedule *schedule = &node->schedule;
  int found;
  PL_TRY(pl_tree_reading_check_keys(own, value, "schedule", keys));
  const pl_node *at = pl_node_get(value, "microbatches");
  if (at != NULL) {
    PL_TRY(pl_tree_reading_integer(own, at, "microbatches", INT32_MAX, &schedule->microbatches));
    schedule->microbatches_at = pl_tree_reading_place(own, at);
  }
  if ((at = pl_node_get(value, "max_ongoing")) != NULL) {
    PL_TRY(pl_tree_reading_integer(own, at, "max_ongoing", INT32_MAX, &schedule->max_ongoing));
    PL_TRY(check_ongoing(own, at, node));
    schedule->max_ongoing_at = pl_tree_reading_place(own, at);
  }
  if ((at = pl_node_get(value, "kind")) != NULL) {
    PL_TRY(pl_tree_reading_word(own, at, "schedule", pl_schedule_names, &found));
    schedule->kind = (pl_schedule_kind)found;
    PL_TRY(check_kind(own, at, node));
    schedule->has_kind = true;
    schedule->kind_at = pl_tree_reading_place(own, at);
  }
  if ((at = pl_node_get(value, "recompute")) != NULL) {
    PL_TRY(pl_tree_reading_word(own, at, "recompute", pl_recompute_names, &found));
    schedule->recompute = (pl_recompute)found;
    schedule->has_recompute = true;
    schedule->recompute_at = pl_tree_reading_place(own, at);
  }
  return PL_OK;
}

/* ---- the root ---- */

static pl_code read_mesh(const pl_tree_reading *own, const pl_node *value) {
  pl_ir_mesh *mesh = &own->tree->mesh;
  if (!pl_node_is_mapping(value) || pl_node_count(value) == 0 || pl_node_count(value) > MESH_MAX)
    return pl_document_fail(own->document, value, own->error,
                            "mesh names what the devices of a stage are cut into, outermost first: {dp: 2, tp: 4}, at "
                            "most %d of them",
                            MESH_MAX);
  *mesh = (pl_ir_mesh){0};
  for (size_t i = 0; i < pl_node_count(value); i++) {
    const char *key;
    int64_t extent = 0;
    const pl_node *entry = pl_node_entry(own->document, value, i, &key);
    pl_ir_axis *axis = &mesh->axes[mesh->n_axes];
    PL_TRY(pl_tree_reading_name(own, pl_node_key(value, i), "an axis", &axis->name));
    PL_TRY(pl_tree_reading_integer(own, entry, "an extent", PL_TREE_DEGREE_MAX, &extent));
    if (strcmp(axis->name.text, "pp") == 0)
      return pl_document_fail(own->document, pl_node_key(value, i), own->error,
                              "the mesh is that of one stage: say 'pipeline: {stages: %lld}' in place of the axis pp",
                              (long long)extent);
    axis->extent = (int32_t)extent;
    mesh->n_axes++;
  }
  own->tree->mesh_at = pl_tree_reading_place(own, value);
  return PL_OK;
}

static pl_code read_cut(const pl_tree_reading *own, const pl_node *value, pl_tree_pipeline *pipeline) {
  size_t n = pl_node_count(value);
  if (!pl_node_is_sequence(value) || n != (size_t)pipeline->stages * (size_t)pipeline->chunks + 1)
    return pl_document_fail(own->document, value, own->error,
                            "cut lists the first layer of each chunk, and how many layers there are: %lld numbers from "
                            "0, for %d stages of %d chunks",
                            (long long)pipeline->stages * pipeline->chunks + 1, pipeline->stages, pipeline->chunks);
  int32_t *cut = PL_TAKE(own->tree->arena, int32_t, n);
  if (cut == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (size_t i = 0; i < n; i++) {
    double number;
    PL_TRY(pl_node_as_number(own->document, pl_node_at(value, i), &number, own->error));
    bool rises = i == 0 ? number == 0 : number > cut[i - 1] && number <= INT32_MAX && number == (double)(int64_t)number;
    if (!rises)
      return pl_document_fail(own->document, pl_node_at(value, i), own->error,
                              "cut rises from 0, a layer or more at a time: %g stands behind %d", number,
                              i > 0 ? cut[i - 1] : 0);
    cut[i] = (int32_t)number;
  }
  pipeline->cut = cut;
  pipeline->cut_at = pl_tree_reading_place(own, value);
  return PL_OK;
}

static pl_code read_pipeline(const pl_tree_reading *own, const pl_node *value) {
  static const char *const keys[] = {"stages", "chunks", "cut", NULL};
  pl_tree_pipeline *pipeline = &own->tree->pipeline;
  int64_t stages = 1, chunks = 1;
  PL_TRY(pl_tree_reading_check_keys(own, value, "pipeline", keys));
  const pl_node *at = pl_node_get(value, "stages");
  if (at == NULL) return pl_document_fail(own->document, value, own->error, "pipeline: the key 'stages' is missing");
  PL_TRY(pl_tree_reading_integer(own, at, "stages", 4096, &stages));
  if ((at = pl_node_get(value, "chunks")) != NULL) PL_TRY(pl_tree_reading_integer(own, at, "chunks", 4096, &chunks));
  *pipeline = (pl_tree_pipeline){.stages = (int32_t)stages, .chunks = (int32_t)chunks};
  pipeline->place = pl_tree_reading_place(own, value);
  if ((at = pl_node_get(value, "cut")) != NULL) return read_cut(own, at, pipeline);
  return PL_OK;
}

/* ---- nodes ---- */

static pl_code read_children(const pl_tree_reading *own, const pl_node *value, int32_t parent);

static pl_code read_into(const pl_tree_reading *own, const pl_node *value, int32_t index) {
  pl_tree_node *node = &own->tree->nodes[index];
  const pl_node *at;
  if ((at = pl_node_get(value, "match")) != NULL) PL_TRY(pl_tree_reading_patterns(own, at, node));
  if ((at = pl_node_get(value, "ops")) != NULL) PL_TRY(pl_tree_reading_rows(own, at, node));
  if ((at = pl_node_get(value, "devices")) != NULL) PL_TRY(pl_tree_reading_devices(own, at, node));
  if ((at = pl_node_get(value, "schedule")) != NULL) PL_TRY(read_schedule(own, at, node));
  if ((at = pl_node_get(value, "partition")) != NULL) PL_TRY(pl_tree_reading_partition(own, at, node));
  if ((at = pl_node_get(value, "memory")) != NULL) PL_TRY(pl_tree_reading_memory(own, at, node));
  if ((at = pl_node_get(value, "ring")) != NULL) {
    PL_TRY(pl_node_boolean(own->document, value, "ring", &node->ring, own->error));
    node->has_ring = true;
    node->ring_at = pl_tree_reading_place(own, at);
  }
  if ((at = pl_node_get(value, "children")) != NULL) return read_children(own, at, index);
  return PL_OK;
}

static pl_code read_child(const pl_tree_reading *own, const pl_node *value, int32_t parent) {
  static const char *const keys[] = {"match",  "ops",  "devices",  "schedule", "partition",
                                     "memory", "ring", "children", NULL};
  PL_TRY(pl_tree_reading_check_keys(own, value, "a child", keys));
  if (pl_node_get(value, "match") == NULL)
    return pl_document_fail(own->document, value, own->error,
                            "match is missing: the modules or ops that the child is about (match: h.*.mlp)");
  if (own->tree->n_nodes >= NODES_MAX || own->tree->nodes[parent].depth + 1 >= PL_TREE_DEPTH_MAX)
    return pl_document_fail(own->document, value, own->error, "too large a tree (%d nodes, %d levels)", NODES_MAX,
                            PL_TREE_DEPTH_MAX);
  pl_tree_node *node = pl_tree_add(own->tree, parent);
  if (node == NULL) return pl_fail_memory(own->error, "a strategy tree");
  node->place = pl_tree_reading_place(own, value);
  node->level = own->level;
  return read_into(own, value, own->tree->n_nodes - 1);
}

static pl_code read_children(const pl_tree_reading *own, const pl_node *value, int32_t parent) {
  if (!pl_node_is_sequence(value))
    return pl_document_fail(own->document, value, own->error, "children is a list (- match: ...)");
  for (size_t i = 0; i < pl_node_count(value); i++)
    PL_TRY(read_child(own, pl_node_at(value, i), parent));
  return PL_OK;
}

/* ---- files ---- */

static pl_code read_file(const char *path, const pl_document *document, const pl_tree_reading *within,
                         pl_strategy_tree *tree, pl_error *error);

/* "PATH:12:3: ...": what is wrong inside. Else the file itself is, and who includes it has to be named. */
static bool names_line(const char *message, const char *path) {
  size_t n = strlen(path);
  return strncmp(message, path, n) == 0 && message[n] == ':' && message[n + 1] >= '0' && message[n + 1] <= '9';
}

static pl_code read_include(const pl_tree_reading *own, const pl_node *at) {
  const char *name;
  PL_TRY(pl_node_as_string(own->document, at, &name, own->error));
  const char *slash = strrchr(own->file, '/');
  int folder = name[0] == '/' || slash == NULL ? 0 : (int)(slash - own->file) + 1;
  const char *path = pl_arena_printf(own->tree->arena, "%.*s%s", folder, own->file, name);
  if (path == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (const pl_tree_reading *outer = own; outer != NULL; outer = outer->within)
    if (strcmp(outer->file, path) == 0)
      return pl_document_fail(own->document, at, own->error, "%s includes itself%s%s", path,
                              outer == own ? "" : ", by way of ", outer == own ? "" : own->file);
  if (own->level + 1 >= INCLUDES_MAX)
    return pl_document_fail(own->document, at, own->error, "%d files include one another: too many", INCLUDES_MAX);
  pl_document *document;
  pl_error reason = PL_ERROR_INIT;
  pl_code code = pl_document_load(path, &document, &reason);
  if (code == PL_BAD_INPUT && !names_line(reason.message, path))
    return pl_document_fail(own->document, at, own->error, "include: %s", reason.message);
  if (code != PL_OK) return pl_fail(own->error, code, "%s", reason.message);
  code = read_file(path, document, own, own->tree, own->error);
  pl_document_destroy(document);
  return code;
}

/* What is included comes first, so that what stands beside it is said over it. */
static pl_code read_file(const char *path, const pl_document *document, const pl_tree_reading *within,
                         pl_strategy_tree *tree, pl_error *error) {
  static const char *const keys[] = {"include",   "mesh",   "pipeline", "devices",  "schedule",
                                     "partition", "memory", "ring",     "children", NULL};
  pl_tree_reading own = {.document = document,
                         .file = pl_arena_strdup(tree->arena, path),
                         .tree = tree,
                         .level = within != NULL ? within->level + 1 : 0,
                         .within = within,
                         .error = error};
  const pl_node *root = pl_document_root(document), *at;
  if (own.file == NULL) return pl_fail_memory(error, "a strategy tree");
  PL_TRY(pl_tree_reading_check_keys(&own, root, "a strategy tree", keys));
  if ((at = pl_node_get(root, "include")) != NULL)
    for (size_t i = 0; i < pl_tree_reading_count(at); i++)
      PL_TRY(read_include(&own, pl_tree_reading_item(at, i)));
  if ((at = pl_node_get(root, "mesh")) != NULL) PL_TRY(read_mesh(&own, at));
  if ((at = pl_node_get(root, "pipeline")) != NULL) PL_TRY(read_pipeline(&own, at));
  tree->nodes[0].place = pl_tree_reading_place(&own, root);
  return read_into(&own, root, 0);
}

/* ---- what can be said without a model ---- */

static pl_code check_axis(const pl_strategy_tree *tree, pl_ir_name name, pl_tree_place place, pl_error *error) {
  if (pl_ir_mesh_find(&tree->mesh, name) >= 0) return PL_OK;
  const char *names[PL_IR_AXES_MAX + 1] = {NULL};
  for (int32_t i = 0; i < tree->mesh.n_axes; i++)
    names[i] = tree->mesh.axes[i].name.text;
  if (tree->mesh.n_axes == 0)
    return pl_tree_fail(place, error, "'%s' is no axis: the tree has no mesh (mesh: {%s: 2}), so degrees are numbers",
                        name.text, name.text);
  char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
  return pl_tree_fail(place, error, "'%s' is no axis of the mesh, which has %s%s", name.text,
                      pl_words_list(names, list, sizeof(list)), pl_words_hint(names, name.text, hint));
}

/* There, and once in a list. */
static pl_code check_axes(const pl_strategy_tree *tree, const pl_tree_cut *cut, pl_error *error) {
  for (int32_t k = 0; k < cut->n_axes; k++) {
    PL_TRY(check_axis(tree, cut->axes[k], cut->place, error));
    for (int32_t before = 0; before < k; before++)
      if (pl_ir_name_equal(cut->axes[before], cut->axes[k]))
        return pl_tree_fail(cut->place, error, "axis %s stands twice in this list: the devices along an axis cut once",
                            cut->axes[k].text);
  }
  return PL_OK;
}

static pl_code check_tree(const pl_strategy_tree *tree, pl_error *error) {
  for (int32_t i = 0; i < tree->n_nodes; i++)
    for (int32_t c = 0; c < tree->nodes[i].n_cuts; c++)
      PL_TRY(check_axes(tree, &tree->nodes[i].cuts[c], error));
  for (int32_t i = 0; tree->pipeline.stages > 0 && i < tree->n_nodes; i++)
    if (tree->nodes[i].has_devices && i > 0)
      return pl_tree_fail(tree->nodes[i].devices_at, error,
                          "devices of a child stand beside pipeline, which cuts devices and layers itself: leave one "
                          "of them out");
  return PL_OK;
}

pl_code pl_tree_of_document(const char *path, const pl_document *document, pl_arena *arena, pl_strategy_tree *tree,
                            pl_error *error) {
  PL_TRY(pl_tree_init(tree, path, arena, error));
  PL_TRY(read_file(path, document, NULL, tree, error));
  return check_tree(tree, error);
}

pl_code pl_tree_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_strategy_tree *tree,
                      pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_parse(name, text, size, false, &document, error));
  pl_code code = pl_tree_of_document(name, document, arena, tree, error);
  pl_document_destroy(document);
  return code;
}

static bool ends_as_tree(const char *text) {
  const char *point = strrchr(text, '.');
  return point != NULL && (strcmp(point, ".yaml") == 0 || strcmp(point, ".yml") == 0);
}

/* The file, or the shipped tree of that name, with its ending or without. NULL: no memory. */
static const char *find_file(const char *name, pl_arena *arena) {
  if (strchr(name, '/') != NULL || access(name, F_OK) == 0) return name;
  const char *shipped = pl_arena_printf(arena, "strategies/%s%s", name, ends_as_tree(name) ? "" : ".yaml");
  const char *path = shipped != NULL ? pl_data_path(shipped, arena) : NULL;
  if (path == NULL) return NULL;
  return access(path, F_OK) == 0 ? path : name;
}

const char *const *pl_tree_names(pl_arena *arena) {
  pl_data_names list = {0};
  const char *folder = pl_data_path("strategies", arena);
  if (folder != NULL) pl_data_names_add(&list, folder, ".yaml", arena);
  pl_data_names_end(&list, arena);
  for (size_t i = 0; i < list.n && !arena->failed; i++)
    list.names[i] = pl_arena_printf(arena, "%s.yaml", list.names[i]);
  return arena->failed ? NULL : list.names;
}

static pl_code refuse_name(const char *name, pl_arena *arena, pl_error *error) {
  const char *const *names = pl_tree_names(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of strategy trees");
  return pl_data_refuse(name, "a strategy tree", names, "paceline list strategies", error);
}

/* "pp=4,dp=4,mbs=1": one line of key=value, with commas between. */
static bool is_tuple(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  for (;; text++) {
    size_t key = strspn(text, letters);
    if (key == 0 || text[key] != '=') return false;
    text += key + strcspn(text + key, ", \t\r\n");
    if (*text != ',') return *text == '\0';
  }
}

/* Of what could not be read as a tree: a file that holds a tuple. */
static void tell_tuple(const char *path, pl_error *error) {
  enum { BYTES = 4096 };
  char *text = NULL;
  size_t size = 0;
  if (error->code != PL_BAD_INPUT || pl_text_file_load(path, BYTES, &text, &size, NULL) != PL_OK) return;
  while (size > 0 && isspace((unsigned char)text[size - 1]))
    text[--size] = '\0';
  if (is_tuple(text)) {
    *error = PL_ERROR_INIT;
    (void)pl_fail(error, PL_BAD_INPUT,
                  "%s:1: a tuple, and a tree is read from files (YAML); tuples are given as they are: --strategy "
                  "%.400s",
                  path, text);
  }
  free(text);
}

/* The first choice in the file; NULL: there is none. */
static const pl_node *find_choice(const pl_document *document, const pl_node *node) {
  const char *key;
  if (pl_node_is_mapping(node) && pl_node_get(node, "choose") != NULL) return node;
  const pl_node *found = NULL;
  for (size_t i = 0; i < pl_node_count(node) && found == NULL; i++)
    found =
        find_choice(document, pl_node_is_mapping(node) ? pl_node_entry(document, node, i, &key) : pl_node_at(node, i));
  return found;
}

/* Of what could not be read as a tree: a space of them. */
static void tell_space(const pl_document *document, pl_error *error) {
  const pl_node *choice = error->code == PL_BAD_INPUT ? find_choice(document, pl_document_root(document)) : NULL;
  if (choice == NULL) return;
  *error = PL_ERROR_INIT;
  (void)refuse_choice(document, choice, error);
}

pl_code pl_tree_load(const char *name, pl_arena *arena, pl_strategy_tree *tree, pl_error *error) {
  pl_document *document;
  if (name[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT,
                   "the name of a strategy tree (a file, .yaml) is empty; 'paceline list strategies' names those that "
                   "are there");
  const char *path = find_file(name, arena);
  if (path == NULL) return pl_fail_memory(error, "a strategy tree");
  if (strchr(path, '/') == NULL && access(path, F_OK) != 0) return refuse_name(path, arena, error);
  pl_code code = pl_document_load(path, &document, error);
  if (code == PL_OK) {
    code = pl_tree_of_document(path, document, arena, tree, error);
    if (code != PL_OK) tell_space(document, error);
    pl_document_destroy(document);
  }
  if (code == PL_BAD_INPUT) tell_tuple(path, error);
  return code;
}

bool pl_tree_is_file(const char *text) {
  if (ends_as_tree(text)) return true;
  if (text[0] == '\0' || strpbrk(text, "=/") != NULL) return false;
  pl_arena arena;
  pl_arena_init(&arena, 1 << 12);
  const char *path = find_file(text, &arena);
  bool is_shipped = path != NULL && path != text;
  pl_arena_release(&arena);
  return is_shipped;
}
