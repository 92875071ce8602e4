/* Programs of blocks, frozen: a digest of all that they say, per shipped model, over shards of every kind under every
 * shipped framework. A change of any op, tensor, byte count or name shows up as a line of
 * tests/golden/block_programs.csv. After a change that is meant: PACELINE_UPDATE_GOLDEN=1 and this test's binary.
 * Shards are drawn in the order of the table, behind which new models are written, so that a new model changes no line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/block_cases.h"
#include "tests/support/random.h"

enum { SHARDS = 6, LINE = 160 };

typedef struct frozen {
  uint32_t n;
  pl_digest digest;
} frozen;

static void add_programs(frozen *made, const pl_model *model, const pl_block_shard *shard, pl_arena *arena) {
  for (int32_t c = 0; c < pl_model_n_classes(model); c++) {
    pl_block_program program;
    pl_error refused = PL_ERROR_INIT;
    if (pl_block_class_program_take(model, c, shard, arena, &program, &refused) != PL_OK) continue;
    block_program_digest(&made->digest, &program);
    made->n++;
  }
}

static const char *const path = PACELINE_SOURCE_DIR "/tests/golden/block_programs.csv";

/* Models that the table has, in its order, in front of all others. */
static void sort_as_frozen(block_cases *cases) {
  char line[LINE];
  uint32_t n = 0;
  FILE *table = fopen(path, "r");
  while (table != NULL && fgets(line, sizeof line, table) != NULL) {
    line[strcspn(line, ",")] = '\0';
    for (uint32_t m = n; m < cases->n_models; m++) {
      if (strcmp(cases->models[m].name, line) != 0) continue;
      pl_model found = cases->models[m];
      memmove(&cases->models[n + 1], &cases->models[n], (m - n) * sizeof found);
      cases->models[n++] = found;
      break;
    }
  }
  if (table != NULL) fclose(table);
}

static void write_table(FILE *file) {
  static block_cases cases;
  uint64_t random = 1107;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  block_cases_load(&cases, &arena);
  sort_as_frozen(&cases);
  fprintf(file, "model,programs,digest\n");
  for (uint32_t m = 0; m < cases.n_models; m++) {
    frozen made = {0};
    pl_digest_init(&made.digest);
    for (uint32_t f = 0; f < cases.n_frameworks; f++)
      for (int i = 0; i < SHARDS; i++) {
        pl_arena_mark mark = pl_arena_mark_here(&arena);
        const pl_block_shard shard = block_cases_shard(&random, &cases.models[m], &cases.frameworks[f]);
        add_programs(&made, &cases.models[m], &shard, &arena);
        pl_arena_release_to(&arena, mark);
      }
    char text[PL_DIGEST_TEXT_BYTES];
    fprintf(file, "%s,%u,%s\n", cases.models[m].name, made.n, pl_digest_format(made.digest.value, text));
  }
  pl_arena_release(&arena);
}

static void programs_are_as_frozen(void **state) {
  (void)state;
  if (getenv("PACELINE_UPDATE_GOLDEN") != NULL) {
    FILE *renewed = fopen(PACELINE_SOURCE_DIR "/tests/golden/block_programs.csv.new", "w");
    assert_non_null(renewed);
    write_table(renewed);
    fclose(renewed);
    assert_int_equal(rename(PACELINE_SOURCE_DIR "/tests/golden/block_programs.csv.new", path), 0);
    return;
  }
  FILE *expected = fopen(path, "r"), *made = tmpfile();
  char should[LINE], is[LINE];
  int differences = 0;
  assert_non_null(expected);
  assert_non_null(made);
  write_table(made);
  rewind(made);
  while (fgets(should, sizeof should, expected) != NULL) {
    if (fgets(is, sizeof is, made) == NULL) is[0] = '\0';
    if (strcmp(should, is) == 0) continue;
    print_message("frozen %sis     %s", should, is);
    differences++;
  }
  assert_null(fgets(is, sizeof is, made));
  fclose(expected);
  fclose(made);
  assert_int_equal(differences, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs_are_as_frozen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
