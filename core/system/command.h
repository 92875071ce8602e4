/* The front door's table: one entry per command; each command is a file cmd_<name>.c in the room it serves. */
#ifndef PL_CORE_COMMAND_H
#define PL_CORE_COMMAND_H

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_command {
  const char *name;
  const char *summary; /* one line for `paceline --help` */
  /* argv[0] is "paceline <name>". Returns the exit status: 0, 1 (failure), 2 (bad input). Options are parsed
   * with argp; `--help` prints to stdout and exits 0; a bad option is exit status 2. */
  int (*run)(int argc, char **argv);
} pl_command;

#define PACELINE_VERSION "0.1.0"

/* Refuses an output that is the file `input`, also under another name: --force is no leave to destroy what is read. */
pl_code pl_command_refuse_input(const char *output, const char *input, pl_error *error);
/* `word` as a POSIX shell takes it back: itself where every character is plain, else in single quotes. In `arena`;
 * NULL: no memory. */
const char *pl_command_quote(const char *word, pl_arena *arena);
/* `name` and the words behind argv[0], so that a shell takes them back. In `arena`; NULL: no memory. */
const char *pl_command_quote_all(const char *name, int argc, char *const *argv, pl_arena *arena);
/* "written to PATH", with what to do with it ("open it in a browser"; NULL: nothing to say), on stdout;
 * nothing of a pipe or a device, which may be stdout itself. */
void pl_command_print_written(const char *path, const char *what_for);
/* Prints "paceline <command>: <message>" to stderr and returns the exit status of the code. */
int pl_command_report(const char *command, const pl_error *error);
/* Flushes stdout and turns a failed write (a full disk, a closed pipe) into exit status 1 with a message. Call it
 * last in every command: `return pl_command_finish("show", status);` */
int pl_command_finish(const char *command, int exit_status);

#endif
