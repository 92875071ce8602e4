/* See workloads/language/ir_text.h: the line of the source that a message is about. */
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/system/text_file.h"
#include "workloads/language/ir_text.h"

bool pl_ir_error_place(const pl_error *error, const char *name, pl_ir_place *place) {
  char printed[PL_ERROR_MESSAGE_BYTES];
  size_t length = strlen(pl_printable(name, printed, sizeof printed));
  if (strncmp(error->message, printed, length) != 0 || error->message[length] != ':') return false;
  char *end;
  long line = strtol(error->message + length + 1, &end, 10);
  if (*end != ':' || line < 1 || line > INT32_MAX) return false;
  long column = strtol(end + 1, &end, 10);
  *place = (pl_ir_place){(int32_t)line, (int32_t)column};
  return *end == ':' && column >= 1 && column <= INT32_MAX;
}

enum { SHOWN = 112, SHOWN_BEFORE = 72 }; /* letters of a long line, and those of them in front of the column */

/* One character, a tab as a space; what cannot be printed as '?', so that each is one column wide. */
static void put_character(FILE *stream, const char *text, size_t length, uint32_t code_point) {
  if (code_point == '\t') {
    fputc(' ', stream);
  } else if (code_point == PL_NOT_UTF8 || !pl_code_point_is_printable(code_point)) {
    fputc('?', stream);
  } else {
    fwrite(text, 1, length, stream);
  }
}

static const char *find_line(const char *text, const char *end, int32_t line) {
  for (; line > 1 && text != NULL; line--) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    text = next != NULL ? next + 1 : NULL;
  }
  return text;
}

/* Like pl_utf8_next of text that no NUL ends. */
static size_t next_character(const char *at, const char *end, uint32_t *code_point) {
  char piece[5] = {0};
  memcpy(piece, at, (size_t)(end - at) < 4 ? (size_t)(end - at) : 4);
  if (piece[0] != '\0') return pl_utf8_next(piece, code_point);
  *code_point = PL_NOT_UTF8;
  return 1;
}

void pl_ir_source_show(FILE *stream, const char *text, size_t size, pl_ir_place place) {
  const char *end = text + size, *at = find_line(text, end, place.line);
  if (at == NULL) return;
  int32_t from = place.column > SHOWN - 8 ? place.column - SHOWN_BEFORE : 1;
  char number[16];
  int margin = snprintf(number, sizeof number, "%5d", place.line);
  fprintf(stream, "%s | %s", number, from > 1 ? "..." : "");
  for (int32_t column = 1; at < end && *at != '\n' && *at != '\r'; column++) {
    uint32_t code_point;
    size_t length = next_character(at, end, &code_point);
    if (column == from + SHOWN) {
      fputs("...", stream);
      break;
    }
    if (column >= from) put_character(stream, at, length, code_point);
    at += length;
  }
  fprintf(stream, "\n%*s | %*s^\n", margin, "", place.column - from + (from > 1 ? 3 : 0), "");
}

void pl_ir_error_show(FILE *stream, const pl_error *error, const char *path) {
  pl_ir_place place;
  char *text;
  size_t size;
  if (!pl_ir_error_place(error, path, &place)) return;
  if (pl_text_file_load(path, PL_IR_TEXT_LIMIT_BYTES, &text, &size, NULL) != PL_OK) return;
  pl_ir_source_show(stream, text, size, place);
  free(text);
}
