/* See core/system/command.h. */
#include "core/system/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/printable.h"

pl_code pl_command_refuse_input(const char *output, const char *input, pl_error *error) {
  struct stat to, from;
  if (stat(output, &to) != 0 || stat(input, &from) != 0 || !S_ISREG(from.st_mode)) return PL_OK;
  if (to.st_dev != from.st_dev || to.st_ino != from.st_ino) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: is an input of this command; choose another output file", output);
}

const char *pl_command_quote(const char *word, pl_arena *arena) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+-";
  size_t length = strlen(word), n_quotes = 0;
  if (length > 0 && word[strspn(word, plain)] == '\0') return pl_arena_strdup(arena, word);
  for (size_t i = 0; i < length; i++)
    n_quotes += word[i] == '\'';
  char *text = PL_TAKE(arena, char, length + 3 * n_quotes + 3), *to = text;
  if (text == NULL) return NULL;
  *to++ = '\'';
  for (; *word != '\0'; word++) {
    *to++ = *word;
    if (*word != '\'') continue;
    for (const char *quote = "\\''"; *quote != '\0';) /* the quotes end, a quote by itself, the quotes begin again */
      *to++ = *quote++;
  }
  *to = '\'';
  return text;
}

const char *pl_command_quote_all(const char *name, int argc, char *const *argv, pl_arena *arena) {
  const char *text = name;
  for (int i = 1; i < argc && text != NULL; i++) {
    const char *word = pl_command_quote(argv[i], arena);
    text = word != NULL ? pl_arena_printf(arena, "%s %s", text, word) : NULL;
  }
  return text;
}

void pl_command_print_written(const char *path, const char *what_for) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return;
  fputs("written to ", stdout);
  pl_printable_put(stdout, path);
  if (what_for != NULL) printf(" (%s)", what_for);
  putchar('\n');
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
