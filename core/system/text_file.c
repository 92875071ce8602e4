/* See core/system/text_file.h. */
#include "core/system/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Length of the UTF-8 sequence at `s` (n bytes left), 0 when it is not one: overlong forms, surrogates, beyond
 * U+10FFFF. */
static size_t utf8_length(const unsigned char *s, size_t n) {
  if (s[0] < 0x80) return 1;
  size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || length > n) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
  if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
  return length;
}

pl_code pl_text_check(const char *name, const char *text, size_t size, pl_error *error) {
  const unsigned char *s = (const unsigned char *)text;
  int line = 1, column = 1;
  for (size_t i = 0, length; i < size; i += length) {
    length = utf8_length(s + i, size - i);
    if (length == 0)
      return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: byte 0x%02x is not UTF-8", name, line, column, s[i]);
    if ((s[i] < 0x20 && s[i] != '\t' && s[i] != '\n' && s[i] != '\r') || s[i] == 0x7f)
      return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: control character 0x%02x", name, line, column, s[i]);
    column++;
    if (s[i] == '\n') {
      line++;
      column = 1;
    }
  }
  return PL_OK;
}

static pl_code read_all(const char *path, FILE *file, size_t limit, char **text, size_t *size, pl_error *error) {
  size_t capacity = (size_t)1 << 16, used = 0;
  char *buffer = malloc(capacity + 1);
  while (buffer != NULL) {
    used += fread(buffer + used, 1, capacity - used, file);
    if (used < capacity || used > limit) break;
    char *larger = realloc(buffer, 2 * capacity + 1);
    if (larger == NULL) free(buffer);
    buffer = larger;
    capacity *= 2;
  }
  if (buffer == NULL) return pl_fail_memory(error, path);
  int failed = ferror(file) ? errno : 0;
  if (failed != 0 || used > limit) {
    free(buffer);
    if (failed != 0) return pl_fail(error, PL_IO, "%s: cannot read: %s", path, strerror(failed));
    return pl_fail(error, PL_BAD_INPUT, "%s: larger than %zu MiB", path, limit >> 20);
  }
  buffer[used] = '\0';
  *text = buffer;
  *size = used;
  return PL_OK;
}

pl_code pl_text_file_load(const char *path, size_t limit_bytes, char **text, size_t *size, pl_error *error) {
  *text = NULL;
  *size = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: cannot open: %s", path, strerror(errno));
  struct stat status;
  pl_code code = PL_OK;
  if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
    code = pl_fail(error, PL_BAD_INPUT, "%s: is a directory, not a file", path);
  if (code == PL_OK) code = read_all(path, file, limit_bytes, text, size, error);
  fclose(file);
  return code;
}
