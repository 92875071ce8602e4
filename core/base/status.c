/* See core/base/status.h. */
#include "core/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"

#undef pl_fail
#undef pl_fail_memory

pl_code pl_fail(pl_error *error, pl_code code, const char *format, ...) {
  if (error == NULL) return code;
  if (error->code != PL_OK) return error->code;
  error->code = code;
  char text[PL_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof text) memcpy(text + sizeof text - 4, "...", 4);
  pl_printable(text, error->message, sizeof error->message);
  return code;
}

pl_code pl_fail_memory(pl_error *error, const char *what) {
  return pl_fail(error, PL_NO_MEMORY, "out of memory: no room for %s", what);
}

int pl_code_exit_status(pl_code code) {
  switch (code) {
  case PL_OK:
    return 0;
  case PL_BAD_INPUT:
  case PL_UNSUPPORTED:
    return 2;
  case PL_NO_MEMORY:
  case PL_IO:
    return 1;
  case PL_DOES_NOT_FIT:
    return 3;
  }
  return 1;
}

void pl_assert_failed(const char *condition, const char *file, int line) {
  fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  abort();
}
