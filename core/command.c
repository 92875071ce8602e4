/* See core/command.h. */
#include "core/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int pl_command_report(const char *command, const pl_error *error) {
  fflush(stdout);
  fprintf(stderr, "paceline %s: %s\n", command, error->message);
  return pl_code_exit_status(error->code);
}

int pl_command_finish(const char *command, int exit_status) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return exit_status;
  fprintf(stderr, "paceline %s: cannot write standard output: %s\n", command, errno ? strerror(errno) : "write failed");
  return exit_status == 0 ? 1 : exit_status;
}
