/* What the check passes runs: programs whose lines are left out, doubled or exchanged, or in which one word takes the
 * place of another, are refused by the check with a place, or run by the reference executor to their end. A program
 * that passes and stops there (a deadlock, a value that is not held, a message that does not fit) is a gap of the
 * check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "workloads/execute/executor.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"
#include "workloads/strategy/job_defaults.h"

static const char tiny[] = "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":2,\"n_head\":2,\"n_positions\":4,"
                           "\"vocab_size\":12}";

static const char *const strategies[] = {"pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=1", "pp=2,dp=1,tmp=2,mbs=1",
                                         "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1", "pp=1,dp=2,tmp=1,mbs=1,cp=2,zero=3"};

/* The distributed program's text; from malloc. */
static char *program_text(const char *strategy_text, size_t *size) {
  pl_model model;
  pl_strategy strategy;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_job job = {.gbs = 4, .seq = 4, .dtype = PL_DTYPE_FP32, .flash = true};
  if (pl_model_parse("tiny.json", tiny, sizeof tiny - 1, &arena, &model, &error) != PL_OK ||
      pl_strategy_parse(strategy_text, &model, &arena, &strategy, &error) != PL_OK)
    fail_msg("%s", error.message);
  pl_strategy_adopt(&strategy, &job);
  if (pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error) != PL_OK ||
      pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error) != PL_OK)
    fail_msg("%s", error.message);
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  assert_non_null(stream);
  pl_ir_print(stream, &module);
  assert_int_equal(fclose(stream), 0);
  return text;
}

/* ---- edits ---- */

typedef struct piece {
  size_t from, to;
} piece;

static piece random_line(uint64_t *random, const char *text, size_t size) {
  size_t at = random_below(random, (uint32_t)size);
  piece line = {at, at};
  while (line.from > 0 && text[line.from - 1] != '\n')
    line.from--;
  while (line.to < size && text[line.to++] != '\n') {
  }
  return line;
}

static bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '%' || c == '@';
}

static piece random_word(uint64_t *random, const char *text, size_t size) {
  size_t at = random_below(random, (uint32_t)size);
  while (!in_word(text[at]))
    at = (at + 1) % size;
  piece word = {at, at};
  while (word.from > 0 && in_word(text[word.from - 1]))
    word.from--;
  while (word.to < size && in_word(text[word.to]))
    word.to++;
  return word;
}

static char *append(char *to, const char *text, piece part) {
  memcpy(to, text + part.from, part.to - part.from);
  return to + (part.to - part.from);
}

/* `a` and `b`, which stands behind it, change places. */
static size_t exchanged(const char *text, size_t size, piece a, piece b, char *to) {
  char *at = append(to, text, (piece){0, a.from});
  at = append(at, text, b);
  at = append(at, text, (piece){a.to, b.from});
  at = append(at, text, a);
  return (size_t)(append(at, text, (piece){b.to, size}) - to);
}

static size_t edited(uint64_t *random, const char *text, size_t size, char *to) {
  uint32_t kind = random_below(random, 8);
  piece a = kind < 3 ? random_line(random, text, size) : random_word(random, text, size);
  piece b = kind < 3 ? random_line(random, text, size) : random_word(random, text, size);
  if (kind == 0) { /* left out */
    char *at = append(to, text, (piece){0, a.from});
    return (size_t)(append(at, text, (piece){a.to, size}) - to);
  }
  if (kind == 1) { /* the next line goes first */
    b = (piece){a.to, a.to};
    while (b.to < size && text[b.to++] != '\n') {
    }
    return exchanged(text, size, a, b, to);
  }
  if (kind > 3) { /* another word in its place, one of the same kind: beginning with the same sign or a letter */
    for (int tries = 0; tries < 50; tries++) {
      char first = text[a.from], other = text[b.from];
      bool digit = first >= '0' && first <= '9', sign = first == '%' || first == '@';
      if (sign ? other == first : digit ? other >= '0' && other <= '9' : other >= 'A') break;
      b = random_word(random, text, size);
    }
    char *at = append(to, text, (piece){0, a.from});
    at = append(at, text, b);
    return (size_t)(append(at, text, (piece){a.to, size}) - to);
  }
  if (a.from > b.from) {
    piece first = b;
    b = a;
    a = first;
  }
  if (a.to > b.from) { /* doubled */
    char *at = append(to, text, (piece){0, a.to});
    return (size_t)(append(at, text, (piece){a.from, size}) - to);
  }
  return exchanged(text, size, a, b, to);
}

/* ---- what becomes of them ---- */

typedef struct tally {
  uint32_t refused, ran, beyond;
} tally;

static bool is_small(const pl_ir_module *module) {
  double elements = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_values; i++)
      elements += pl_ir_type_elements(&module->functions[f]->values[i].type);
  return elements < 1e6;
}

static void check_one(const char *text, size_t size, tally *count) {
  static const pl_execution_options options = {.seed = 1, .iterations = 2};
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_ir_place place;
  pl_code code = pl_ir_parse("t", text, size, &arena, &module, &error);
  if (code == PL_OK) code = pl_ir_check(&module, &error);
  if (code != PL_OK) {
    if (code != PL_BAD_INPUT || !pl_ir_error_place(&error, "t", &place)) fail_msg("no place: %s", error.message);
    count->refused++;
    return;
  }
  pl_execution *execution;
  if (!is_small(&module)) {
    count->beyond++;
    return;
  }
  code = pl_execute(&module, &options, &execution, &error);
  if (code != PL_OK) {
    const char *path = getenv("PACELINE_FINDING");
    FILE *finding = path != NULL ? fopen(path, "w") : NULL;
    if (finding != NULL) fwrite(text, 1, size, finding);
    if (finding != NULL) fclose(finding);
    fail_msg("the check passes what does not run (PACELINE_FINDING=FILE keeps it): %s", error.message);
  }
  pl_execution_destroy(execution);
  count->ran++;
}

static void what_passes_runs(void **state) {
  (void)state;
  uint64_t random = test_seed(1729), n = test_cases(1200);
  for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
    size_t size;
    char *text = program_text(strategies[s], &size), *to = malloc(3 * size);
    assert_non_null(to);
    tally count = {0};
    check_one(text, size, &count);
    assert_int_equal(count.ran, 1);
    for (uint64_t i = 0; i < n; i++) {
      size_t length = edited(&random, text, size, to);
      pl_arena_reset(&arena);
      check_one(to, length, &count);
    }
    print_message("%s: %u refused, %u ran, %u too large to run\n", strategies[s], count.refused, count.ran,
                  count.beyond);
    assert_true(count.ran > n / 50);
    free(text);
    free(to);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(what_passes_runs, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
