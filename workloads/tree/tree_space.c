/* See workloads/tree/tree_space.h. */
#include "workloads/tree/tree_space.h"

#include <string.h>
#include <unistd.h>

#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "core/text/document_copy.h"
#include "workloads/tree/tree_read.h"

static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

typedef struct gathering {
  pl_tree_space *space;
  pl_arena *arena;
  pl_error *error;
  bool inside; /* of a choice */
} gathering;

/* ---- choices in a file ---- */

static bool is_choice(const pl_node *node) {
  return pl_node_is_mapping(node) && pl_node_get(node, "choose") != NULL;
}

static pl_code check_keys(const gathering *own, const pl_node *node) {
  const char *key;
  for (size_t i = 0; i < pl_node_count(node); i++) {
    pl_node_entry(own->space->document, node, i, &key);
    if (strcmp(key, "choose") != 0 && strcmp(key, "name") != 0)
      return pl_document_fail(own->space->document, pl_node_key(node, i), own->error,
                              "'%.64s' beside choose: a choice has 'choose' and 'name' alone", key);
  }
  return PL_OK;
}

/* The name that is said, or the key that the choice stands under. */
static pl_code name_of(const gathering *own, const pl_node *node, const char *key, const char **name) {
  const pl_node *at = pl_node_get(node, "name");
  *name = key;
  if (at != NULL) PL_TRY(pl_node_as_string(own->space->document, at, name, own->error));
  size_t length = strspn(*name, word_bytes);
  if ((*name)[length] == 0 && length > 0 && length < PL_TREE_CHOICE_BYTES) return PL_OK;
  return pl_document_fail(own->space->document, at != NULL ? at : node, own->error,
                          "'%.64s' is no name of a choice: letters, digits and '_', at most %d; say another by 'name'",
                          *name, PL_TREE_CHOICE_BYTES - 1);
}

static pl_code read_label(const gathering *own, const pl_node *node, const char **label) {
  const pl_document *document = own->space->document;
  *label = pl_node_text(node);
  if (*label == NULL)
    return pl_document_fail(document, node, own->error,
                            "a list of choices has words and numbers; give others labels: choose: {label: ...}");
  size_t length = strlen(*label);
  if (length == 0 || length >= PL_TREE_LABEL_BYTES || strpbrk(*label, ",=\"'") != NULL)
    return pl_document_fail(document, node, own->error,
                            "'%.64s' is no label of a choice: 1 to %d letters without , = and quotes", *label,
                            PL_TREE_LABEL_BYTES - 1);
  return PL_OK;
}

static pl_code read_labels(const gathering *own, const pl_node *options, pl_tree_choice *choice) {
  const pl_document *document = own->space->document;
  size_t n = pl_node_count(options);
  if (n == 0 || n > PL_TREE_OPTIONS_MAX)
    return pl_document_fail(document, options, own->error,
                            "choose has a list ([4, 8]) or a mapping from labels ({few: 4, many: 8}), of 1 to %d",
                            PL_TREE_OPTIONS_MAX);
  choice->labels = PL_TAKE(own->arena, const char *, n);
  if (choice->labels == NULL) return pl_fail_memory(own->error, "a strategy space");
  for (size_t i = 0; i < n; i++) {
    const pl_node *at = pl_node_is_mapping(options) ? pl_node_key(options, i) : pl_node_at(options, i);
    PL_TRY(read_label(own, at, &choice->labels[i]));
    for (size_t k = 0; k < i; k++)
      if (strcmp(choice->labels[k], choice->labels[i]) == 0)
        return pl_document_fail(document, at, own->error, "'%s' is there twice", choice->labels[i]);
  }
  choice->n_options = (int32_t)n;
  return PL_OK;
}

static pl_tree_choice *find_choice(pl_tree_space *space, const char *name) {
  for (int32_t i = 0; i < space->n_choices; i++)
    if (strcmp(space->choices[i].name, name) == 0) return &space->choices[i];
  return NULL;
}

static bool same_labels(const pl_tree_choice *a, const pl_tree_choice *b) {
  for (int32_t i = 0; i < a->n_options; i++)
    if (i >= b->n_options || strcmp(a->labels[i], b->labels[i]) != 0) return false;
  return a->n_options == b->n_options;
}

static pl_code add_choice(const gathering *own, const pl_node *node, const pl_tree_choice *choice) {
  pl_tree_space *space = own->space;
  const pl_tree_choice *known = find_choice(space, choice->name);
  if (known != NULL && pl_node_get(node, "name") == NULL)
    return pl_document_fail(space->document, node, own->error,
                            "there is a choice '%s' at %d:%d already: say by 'name' whether they go together or not",
                            choice->name, known->line, known->column);
  if (known != NULL && !same_labels(known, choice))
    return pl_document_fail(space->document, node, own->error,
                            "the choice '%s' at %d:%d has other labels, and these go together: give both the same, in "
                            "the same order",
                            choice->name, known->line, known->column);
  if (known != NULL) return PL_OK;
  if (space->n_choices == PL_TREE_CHOICES_MAX)
    return pl_document_fail(space->document, node, own->error, "more than %d choices", PL_TREE_CHOICES_MAX);
  if ((uint64_t)space->n_candidates * (uint64_t)choice->n_options > PL_TREE_SPACE_MOST)
    return pl_document_fail(space->document, node, own->error, "more than %d combinations of choices",
                            PL_TREE_SPACE_MOST);
  space->n_candidates *= (uint32_t)choice->n_options;
  space->choices[space->n_choices++] = *choice;
  return PL_OK;
}

static pl_code gather(const gathering *own, const pl_node *node, const char *key);

static pl_code gather_children(const gathering *own, const pl_node *node, const char *key) {
  for (size_t i = 0; i < pl_node_count(node); i++) {
    const pl_node *child = pl_node_at(node, i);
    if (pl_node_is_mapping(node)) child = pl_node_entry(own->space->document, node, i, &key);
    PL_TRY(gather(own, child, key));
  }
  return PL_OK;
}

static pl_code gather(const gathering *own, const pl_node *node, const char *key) {
  if (!is_choice(node)) return gather_children(own, node, key);
  pl_tree_choice choice = {.n_options = 0};
  const pl_node *options = pl_node_get(node, "choose");
  if (own->inside)
    return pl_document_fail(own->space->document, node, own->error,
                            "a choice inside of another: list what comes together under labels of the outer one");
  pl_node_place(node, &choice.line, &choice.column);
  PL_TRY(check_keys(own, node));
  PL_TRY(name_of(own, node, key, &choice.name));
  PL_TRY(read_labels(own, options, &choice));
  PL_TRY(add_choice(own, node, &choice));
  gathering within = *own;
  within.inside = true;
  return gather_children(&within, options, key);
}

static pl_code gather_all(pl_tree_space *space, pl_arena *arena, pl_error *error) {
  const gathering own = {.space = space, .arena = arena, .error = error};
  PL_TRY(gather(&own, pl_document_root(space->document), "tree"));
  if (space->n_choices > 0) return PL_OK;
  return pl_fail(
      error, PL_BAD_INPUT,
      "%s: nothing to choose from in it: a value becomes a choice as {choose: [4, 8]}; a single tree is what "
      "'paceline simulate --strategy' takes",
      space->path);
}

/* NULL: no memory. */
static const char *find_file(const char *name, pl_arena *arena) {
  if (strchr(name, '/') != NULL || access(name, F_OK) == 0) return name;
  const char *shipped = pl_arena_printf(arena, "strategies/spaces/%s", name);
  const char *path = shipped != NULL ? pl_data_path(shipped, arena) : NULL;
  return path != NULL && access(path, F_OK) != 0 ? name : path;
}

pl_code pl_tree_space_load(const char *name, pl_arena *arena, pl_tree_space *space, pl_error *error) {
  *space = (pl_tree_space){.name = name, .n_candidates = 1};
  if (name[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "the name of a strategy space (a YAML file: .yaml, .yml) is empty");
  space->path = find_file(name, arena);
  if (space->path == NULL) return pl_fail_memory(error, "a strategy space");
  if (!pl_tree_is_file(space->path))
    return pl_fail(error, PL_BAD_INPUT, "%s: a strategy space is a YAML file (.yaml, .yml)", name);
  PL_TRY(pl_document_load(space->path, &space->document, error));
  return gather_all(space, arena, error);
}

pl_code pl_tree_space_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_tree_space *space,
                            pl_error *error) {
  *space = (pl_tree_space){.name = name, .path = name, .n_candidates = 1};
  PL_TRY(pl_document_parse(name, text, size, false, &space->document, error));
  return gather_all(space, arena, error);
}

void pl_tree_space_release(pl_tree_space *space) {
  pl_document_destroy(space->document);
  space->document = NULL;
}

uint64_t pl_tree_space_digest(const pl_tree_space *space) {
  return pl_document_digest(space->document);
}

/* ---- candidates ---- */

static int32_t option_at(const pl_tree_space *space, uint32_t index, int32_t choice) {
  uint32_t step = 1;
  for (int32_t i = choice + 1; i < space->n_choices; i++)
    step *= (uint32_t)space->choices[i].n_options;
  return (int32_t)(index / step % (uint32_t)space->choices[choice].n_options);
}

const char *pl_tree_space_label(const pl_tree_space *space, uint32_t index, int32_t choice) {
  return space->choices[choice].labels[option_at(space, index, choice)];
}

int pl_tree_space_format(const pl_tree_space *space, uint32_t index, char *text, size_t size) {
  int length = 0;
  if (size > 0) text[0] = 0;
  for (int32_t i = 0; i < space->n_choices; i++) {
    size_t left;
    char *rest = pl_strategy_rest(text, size, length, &left);
    length +=
        snprintf(rest, left, "%s%s=%s", i > 0 ? "," : "", space->choices[i].name, pl_tree_space_label(space, index, i));
  }
  return length;
}

static pl_code refuse_text(const pl_tree_space *space, const char *text, size_t length, pl_error *error) {
  char list[PL_WORDS_BYTES];
  pl_word_list words = pl_word_list_begin(list, sizeof list);
  for (int32_t i = 0; i < space->n_choices; i++)
    for (int32_t k = 0; k < space->choices[i].n_options; k++) {
      char word[PL_TREE_CHOICE_BYTES + PL_TREE_LABEL_BYTES];
      snprintf(word, sizeof word, "%s=%s", space->choices[i].name, space->choices[i].labels[k]);
      pl_word_list_add(&words, word);
    }
  return pl_fail(error, PL_BAD_INPUT, "%s: '%.*s' is none of its choices; there are %s", space->path,
                 length < 96 ? (int)length : 96, text, space->n_choices > 0 ? pl_word_list_end(&words) : "none");
}

/* The option that "name=label" of `length` bytes takes of `choice`; -1: it is of another. */
static int32_t option_of(const pl_tree_choice *choice, const char *text, size_t length) {
  size_t name = strlen(choice->name);
  if (length <= name || text[name] != '=' || memcmp(text, choice->name, name) != 0) return -1;
  for (int32_t k = 0; k < choice->n_options; k++)
    if (strlen(choice->labels[k]) == length - name - 1 &&
        memcmp(choice->labels[k], text + name + 1, length - name - 1) == 0)
      return k;
  return -1;
}

pl_code pl_tree_space_find(const pl_tree_space *space, const char *text, uint32_t *index, pl_error *error) {
  int32_t taken[PL_TREE_CHOICES_MAX];
  memset(taken, -1, sizeof taken);
  for (const char *at = text; *at != 0; at += *at == ',') {
    size_t length = strcspn(at, ",");
    int32_t i = 0, option = -1;
    while (i < space->n_choices && (option = option_of(&space->choices[i], at, length)) < 0)
      i++;
    if (option < 0) return refuse_text(space, at, length, error);
    if (taken[i] >= 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: '%s' is chosen twice", space->path, space->choices[i].name);
    taken[i] = option;
    at += length;
  }
  *index = 0;
  for (int32_t i = 0; i < space->n_choices; i++) {
    if (taken[i] < 0)
      return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: nothing is chosen of '%s': say %s=%s, or another of %d",
                     space->path, space->choices[i].line, space->choices[i].column, space->choices[i].name,
                     space->choices[i].name, space->choices[i].labels[0], space->choices[i].n_options);
    *index = *index * (uint32_t)space->choices[i].n_options + (uint32_t)taken[i];
  }
  return PL_OK;
}

typedef struct taking {
  const pl_tree_space *space;
  uint32_t index;
} taking;

/* By its place, which is in the file once. */
static int32_t choice_at(const pl_tree_space *space, const pl_node *node) {
  const char *name = NULL;
  const pl_node *at = pl_node_get(node, "name");
  int line, column;
  if (at != NULL) name = pl_node_text(at);
  pl_node_place(node, &line, &column);
  for (int32_t i = 0; i < space->n_choices; i++) {
    const pl_tree_choice *choice = &space->choices[i];
    if (name != NULL ? strcmp(choice->name, name) == 0 : choice->line == line && choice->column == column) return i;
  }
  PL_ASSERT(false);
  return 0;
}

static const pl_node *take_option(void *context, const pl_node *node) {
  const taking *own = context;
  if (!is_choice(node)) return node;
  const pl_node *options = pl_node_get(node, "choose");
  int32_t option = option_at(own->space, own->index, choice_at(own->space, node));
  const char *key;
  return pl_node_is_mapping(options) ? pl_node_entry(own->space->document, options, (size_t)option, &key)
                                     : pl_node_at(options, (size_t)option);
}

static pl_code resolve(const pl_tree_space *space, uint32_t index, pl_document **document, pl_error *error) {
  taking own = {.space = space, .index = index};
  return pl_document_copy(space->document, take_option, &own, document, error);
}

pl_code pl_tree_space_take(const pl_tree_space *space, uint32_t index, pl_arena *arena, pl_strategy_tree *tree,
                           pl_error *error) {
  pl_document *document;
  PL_TRY(resolve(space, index, &document, error));
  pl_code code = pl_tree_of_document(space->path, document, arena, tree, error);
  pl_document_destroy(document);
  return code;
}

pl_code pl_tree_space_write(const pl_tree_space *space, uint32_t index, FILE *stream, pl_error *error) {
  pl_document *document;
  PL_TRY(resolve(space, index, &document, error));
  pl_document_write_yaml(document, stream);
  pl_document_destroy(document);
  return PL_OK;
}
