/* See core/command.h. */
#include "core/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

pl_code pl_command_refuse_input(const char *output, const char *input, pl_error *error) {
  struct stat to, from;
  if (stat(output, &to) != 0 || stat(input, &from) != 0 || !S_ISREG(from.st_mode)) return PL_OK;
  if (to.st_dev != from.st_dev || to.st_ino != from.st_ino) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: is an input of this command; choose another output file", output);
}

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
