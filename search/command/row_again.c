/* See search/command/row_again.h. */
#include "search/command/row_again.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/command.h"
#include "search/command/recorded_job.h"
#include "search/command/recorded_rows.h"
#include "workloads/command/cmd_explain.h"
#include "workloads/command/cmd_simulate.h"

typedef int run(int argc, char **argv);

/* The value of --from, and how many words it takes at argv[*at]; NULL: no results are named. */
static const char *results_of(int argc, char **argv, int *at, int *n, pl_error *error) {
  static const char option[] = "--from";
  size_t length = strlen(option);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], option, length) != 0 || (argv[i][length] != '=' && argv[i][length] != '\0')) continue;
    *at = i;
    *n = argv[i][length] == '=' ? 1 : 2;
    const char *value = *n == 1 ? argv[i] + length + 1 : i + 1 < argc ? argv[i + 1] : "";
    int64_t row;
    bool is_results = pl_recorded_is_results(value, pl_recorded_row_split(value, &row)) ||
                      pl_recorded_row_check(value, error) != PL_OK;
    return is_results ? value : NULL;
  }
  return NULL;
}

/* What the recorded command gave for a long option; "": nothing. */
static const char *value_of(char **words, int n, const char *option) {
  size_t length = strlen(option);
  for (int i = 0; i < n; i++)
    if (strncmp(words[i], option, length) == 0) {
      if (words[i][length] == '=') return words[i] + length + 1;
      if (words[i][length] == '\0' && i + 1 < n) return words[i + 1];
    }
  return "";
}

/* "ROW SECONDS STRATEGY", the first line. */
static pl_code strategy_of(const char *path, char *line, char **words, int n, char **strategy, pl_error *error) {
  line[strcspn(line, "\n")] = '\0';
  char *behind;
  unsigned long row = strtoul(line, &behind, 10);
  strtod(behind, &behind);
  *strategy = behind + strspn(behind, " ");
  if (**strategy != '?') return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "%s: row %lu is of a tree; 'paceline strategy choose %s --take %s -o row.yaml' writes it, and "
                 "--strategy row.yaml takes it",
                 path, row, value_of(words, n, "--strategy-space"), *strategy + 1);
}

static pl_code read(const char *value, pl_arena *arena, char **strategy, char **words, int *n, pl_error *error) {
  int64_t row;
  size_t length = pl_recorded_row_split(value, &row);
  const char *path = pl_arena_printf(arena, "%.*s", (int)length, value);
  pl_recorded_rows rows;
  if (path == NULL) return pl_fail_memory(error, "a row of results");
  PL_TRY(pl_recorded_rows_take(path, row >= 0 ? value + length + 1 : NULL, arena, &rows, error));
  *n = pl_recorded_words(rows.command, words);
  return strategy_of(path, rows.lines, words, *n, strategy, error);
}

/* The command with the row's job and strategy in place of --from, in front of all else, which is stronger. */
static int run_again(const char *name, run *command, int argc, char **argv) {
  int at = 0, n_words = 0, n_made = 0, n_recorded = 0;
  pl_error error = PL_ERROR_INIT;
  const char *value = results_of(argc, argv, &at, &n_words, &error);
  if (value == NULL) return command(argc, argv);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  char *recorded[PL_RECORDED_WORDS + 1], option[] = "--strategy", program[] = "--as-program", *strategy = option;
  pl_code code = error.code;
  if (code == PL_OK) code = read(value, &arena, &strategy, recorded, &n_recorded, &error);
  char **made = PL_TAKE(&arena, char *, 2 * PL_RECORDED_WORDS + argc + 8);
  if (code == PL_OK && made == NULL) code = pl_fail_memory(&error, "a row of results");
  if (code != PL_OK) {
    int status = pl_command_report(name, &error);
    pl_arena_release(&arena);
    return pl_command_finish(name, status);
  }
  made[n_made++] = argv[0];
  pl_recorded_job(recorded, n_recorded, made, &n_made);
  made[n_made++] = option;
  made[n_made++] = strategy;
  /* Where some strategies of a space offload, all are simulated as programs. */
  if (strstr(strategy, ",offload=") != NULL) made[n_made++] = program;
  for (int n = 1; n < argc; n++)
    if (n < at || n >= at + n_words) made[n_made++] = argv[n];
  made[n_made] = NULL;
  int status = command(n_made, made);
  pl_arena_release(&arena);
  return status;
}

int pl_cmd_simulate_again(int argc, char **argv) {
  return run_again("simulate", pl_cmd_simulate, argc, argv);
}

int pl_cmd_explain_again(int argc, char **argv) {
  return run_again("explain", pl_cmd_explain, argc, argv);
}
