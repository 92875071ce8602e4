/* Strategy spaces: which candidates a file stands for and in which order, what is taken of each choice, trees written
 * and read again, what is refused and where; documents copied and written as YAML; every allocation that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/text/document_copy.h"
#include "workloads/tree/tree_space.h"

static char folder[] = "/tmp/tree_space_XXXXXX";
static char path[64];

static pl_code load(const char *text, pl_arena *arena, pl_tree_space *space, pl_error *error) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  return pl_tree_space_load(path, arena, space, error);
}

static const char two[] = "mesh: {name: layout, choose: {data: {dp: 4}, both: {dp: 2, tp: 2}}}\n"
                          "schedule: {microbatches: {choose: [2, 4, 8]}}\n"
                          "partition:\n"
                          "  name: layout\n"
                          "  choose:\n"
                          "    data: {b: dp}\n"
                          "    both: {b: dp, v|g|r|f: tp}\n"
                          "children:\n"
                          "  - {match: 'h.*', schedule: {recompute: full}}\n";

static void candidates(void **state) {
  static const char *const texts[] = {"layout=data,microbatches=2", "layout=data,microbatches=4",
                                      "layout=data,microbatches=8", "layout=both,microbatches=2",
                                      "layout=both,microbatches=4", "layout=both,microbatches=8"};
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_tree_space space;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(load(two, &arena, &space, &error), PL_OK);
  assert_int_equal(space.n_candidates, 6);
  for (uint32_t i = 0; i < 6; i++) {
    char text[PL_TREE_TAKEN_BYTES];
    uint32_t index;
    pl_strategy_tree tree, again;
    assert_int_equal(pl_tree_space_format(&space, i, text, sizeof text), (int)strlen(texts[i]));
    assert_string_equal(text, texts[i]);
    assert_int_equal(pl_tree_space_find(&space, text, &index, &error), PL_OK);
    assert_int_equal(index, i);
    assert_int_equal(pl_tree_space_take(&space, i, &arena, &tree, &error), PL_OK);
    assert_int_equal(tree.nodes[0].schedule.microbatches, 2 << i % 3);
    assert_int_equal(tree.mesh.n_axes, i < 3 ? 1 : 2);
    assert_int_equal(tree.nodes[0].n_cuts, i < 3 ? 1 : 2);
    char *yaml = NULL;
    size_t size;
    FILE *stream = open_memstream(&yaml, &size);
    assert_int_equal(pl_tree_space_write(&space, i, stream, &error), PL_OK);
    fclose(stream);
    assert_null(strstr(yaml, "choose"));
    assert_int_equal(pl_tree_parse("again.yaml", yaml, size, &arena, &again, &error), PL_OK);
    assert_int_equal(again.n_nodes, tree.n_nodes);
    assert_int_equal(again.nodes[0].schedule.microbatches, tree.nodes[0].schedule.microbatches);
    assert_int_equal(again.nodes[1].schedule.recompute, PL_RECOMPUTE_FULL);
    assert_string_equal(again.nodes[1].patterns[0].text, "h.*");
    free(yaml);
  }
  uint32_t index;
  assert_int_equal(pl_tree_space_find(&space, "microbatches=8,layout=both", &index, &error), PL_OK);
  assert_int_equal(index, 5);
  assert_int_equal(pl_tree_space_find(&space, "layout=both", &index, &error), PL_BAD_INPUT);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_tree_space_find(&space, "layout=both,layout=data", &index, &error), PL_BAD_INPUT);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_tree_space_find(&space, "layout=none", &index, &error), PL_BAD_INPUT);
  pl_tree_space_release(&space);
  pl_arena_release(&arena);
}

static void refusals(void **state) {
  static const struct {
    const char *text, *said;
  } cases[] = {
      {"partition: {b: 2}\n", "nothing to choose from"},
      {"partition: {b: {choose: []}}\n", ":1:25: choose has a list"},
      {"partition: {b: {choose: [2, 2]}}\n", ":1:29: '2' is there twice"},
      {"partition: {b: {choose: [{a: 1}]}}\n", ":1:26: a list of choices has words"},
      {"partition: {b: {choose: [2, 4], of: x}}\n", ":1:33: 'of' beside choose"},
      {"partition: {v|g: {choose: [2, 4]}}\n", ":1:18: 'v|g' is no name of a choice"},
      {"partition: {b: {choose: {'a,b': 2}}}\n", ":1:26: 'a,b' is no label"},
      {"partition: {b: {choose: [2, 4]}}\nmemory: {b: {choose: [2, 4]}}\n",
       ":2:13: there is a choice 'b' at 1:16 already"},
      {"partition: {b: {choose: [2, 4]}, s: {choose: [4, 2], name: b}}\n", ":1:37: the choice 'b' at 1:16 has other"},
      {"partition: {choose: {x: {b: {choose: [2, 4]}}}}\n", ":1:29: a choice inside of another"},
      {"schedule: {a: {choose: [1]}, b: {choose: [1]}, c: {choose: [1]}, d: {choose: [1]}, e: {choose: [1]}, f: "
       "{choose: [1]}, g: {choose: [1]}, h: {choose: [1]}, i: {choose: [1]}}\n",
       "more than 8 choices"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_tree_space space;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(load(cases[i].text, &arena, &space, &error), PL_BAD_INPUT);
    if (strstr(error.message, cases[i].said) == NULL) fail_msg("%s\nsaid: %s", cases[i].text, error.message);
    pl_tree_space_release(&space);
    pl_arena_release(&arena);
  }
}

/* Of a candidate, places are those of the space's file; a tree has no choices. */
static void places(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_tree_space space;
  pl_strategy_tree tree;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(load("partition:\n  b: {choose: [2, many]}\n", &arena, &space, &error), PL_OK);
  assert_int_equal(pl_tree_space_take(&space, 0, &arena, &tree, &error), PL_OK);
  assert_int_equal(pl_tree_space_take(&space, 1, &arena, &tree, &error), PL_BAD_INPUT);
  if (strstr(error.message, "t.yaml:2:") == NULL || strstr(error.message, "'many' is no axis") == NULL)
    fail_msg("said: %s", error.message);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_tree_load(path, &arena, &tree, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "t.yaml:2:"));
  pl_tree_space_release(&space);
  pl_arena_release(&arena);
}

/* What is written of a document reads as the same. */
static void written(void **state) {
  glob_t found;
  (void)state;
  assert_int_equal(glob("workloads/strategies/*.yaml", 0, NULL, &found), 0);
  assert_int_equal(glob("workloads/strategies/spaces/*.yaml", GLOB_APPEND, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    pl_document *document, *again;
    pl_error error = PL_ERROR_INIT;
    char *text[2] = {NULL, NULL};
    size_t size;
    assert_int_equal(pl_document_load(found.gl_pathv[i], &document, &error), PL_OK);
    FILE *stream = open_memstream(&text[0], &size);
    pl_document_write_yaml(document, stream);
    fclose(stream);
    assert_int_equal(pl_document_parse("again.yaml", text[0], size, false, &again, &error), PL_OK);
    stream = open_memstream(&text[1], &size);
    pl_document_write_yaml(again, stream);
    fclose(stream);
    assert_string_equal(text[0], text[1]);
    pl_document_destroy(again);
    pl_document_destroy(document);
    free(text[0]);
    free(text[1]);
  }
  globfree(&found);
}

static void awkward_scalars(void **state) {
  static const char text[] =
      "a: [[1, 'x: y'], {b: \"q\\\"\\\\\", 'v|g': ~}]\nc: {}\nd: []\ne:\n  - - 1\n    - {f: {g: [h, 'i, j']}}\n";
  static const char wanted[] = "a:\n"
                               "  - [1, \"x: y\"]\n"
                               "  - {b: \"q\\\"\\\\\", \"v|g\": ~}\n"
                               "c: {}\n"
                               "d: []\n"
                               "e:\n"
                               "  - - 1\n"
                               "    - f:\n"
                               "        g: [h, \"i, j\"]\n";
  (void)state;
  pl_document *document;
  pl_error error = PL_ERROR_INIT;
  char *made = NULL;
  size_t size;
  assert_int_equal(pl_document_parse("t.yaml", text, strlen(text), false, &document, &error), PL_OK);
  FILE *stream = open_memstream(&made, &size);
  pl_document_write_yaml(document, stream);
  fclose(stream);
  assert_string_equal(made, wanted);
  pl_document_destroy(document);
  free(made);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  for (int64_t k = 0;; k++) {
    pl_arena arena;
    pl_tree_space space;
    pl_strategy_tree tree;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_code code = load(two, &arena, &space, &error);
    if (code == PL_OK) code = pl_tree_space_take(&space, 3, &arena, &tree, &error);
    bool failed = arena.failed;
    pl_tree_space_release(&space);
    pl_arena_release(&arena);
    if (code == PL_OK && !failed) return;
    if (code != PL_NO_MEMORY) fail_msg("allocation %lld: %s", (long long)k, error.message);
  }
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/t.yaml", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(candidates),      cmocka_unit_test(refusals),
                                     cmocka_unit_test(places),          cmocka_unit_test(written),
                                     cmocka_unit_test(awkward_scalars), cmocka_unit_test(every_allocation_fails_once)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
