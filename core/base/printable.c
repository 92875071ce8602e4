/* See core/base/printable.h. */
#include "core/base/printable.h"

#include <string.h>

enum { ESCAPE_BYTES = 11 }; /* \U0010ffff and the NUL */

size_t pl_utf8_next(const char *text, uint32_t *code_point) {
  const unsigned char *c = (const unsigned char *)text;
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  *code_point = c[0];
  if (c[0] < 0x80) return 1;
  *code_point = PL_NOT_UTF8;
  size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  if (c[0] < 0xc2 || c[0] > 0xf4) return 1;
  uint32_t value = c[0] & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((c[i] & 0xc0) != 0x80) return 1;
    value = value << 6 | (c[i] & 0x3f);
  }
  if (value < smallest[n] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 1;
  *code_point = value;
  return n;
}

bool pl_code_point_is_printable(uint32_t code_point) {
  static const uint32_t refused[][2] = {{0, 0x1f},          {0x7f, 0x9f},          {0x61c, 0x61c},   {0x200e, 0x200f},
                                        {0x2028, 0x202e},   {0x2066, 0x2069},      {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                                        {0xe0000, 0xe007f}, {0x110000, UINT32_MAX}};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if (code_point >= refused[i][0] && code_point <= refused[i][1]) return false;
  return true;
}

const char *pl_printable_end(const char *text) {
  for (;;) {
    while (*text >= ' ' && *text < 0x7f) /* nearly all there is */
      text++;
    if (*text == '\0') return text;
    uint32_t code_point;
    size_t n = pl_utf8_next(text, &code_point);
    if (!pl_code_point_is_printable(code_point)) return text;
    text += n;
  }
}

static void escape(uint32_t code_point, unsigned char byte, char out[ESCAPE_BYTES]) {
  const char *mnemonic = code_point == '\n' ? "\\n" : code_point == '\t' ? "\\t" : code_point == '\r' ? "\\r" : NULL;
  if (mnemonic != NULL)
    snprintf(out, ESCAPE_BYTES, "%s", mnemonic);
  else if (code_point == PL_NOT_UTF8)
    snprintf(out, ESCAPE_BYTES, "\\x%02x", byte);
  else
    snprintf(out, ESCAPE_BYTES, code_point > 0xffff ? "\\U%08x" : "\\u%04x", code_point & 0x1fffff);
}

/* What stands for the character at `text`: itself or its escape. */
static size_t next_piece(const char **text, char piece[ESCAPE_BYTES]) {
  uint32_t code_point;
  size_t n = pl_utf8_next(*text, &code_point);
  if (pl_code_point_is_printable(code_point)) {
    memcpy(piece, *text, n);
    piece[n] = '\0';
  } else {
    escape(code_point, (unsigned char)**text, piece);
  }
  *text += n;
  return strlen(piece);
}

char *pl_printable(const char *text, char *out, size_t size) {
  size_t used = 0;
  while (*text != '\0') {
    char piece[ESCAPE_BYTES];
    size_t n = next_piece(&text, piece);
    if (used + n >= size) break;
    memcpy(out + used, piece, n);
    used += n;
  }
  out[used] = '\0';
  return out;
}

void pl_printable_put(FILE *stream, const char *text) {
  while (*text != '\0') {
    char piece[ESCAPE_BYTES];
    size_t n = next_piece(&text, piece);
    fwrite(piece, 1, n, stream);
  }
}

char *pl_printable_strdup(pl_arena *arena, const char *text) {
  if (*pl_printable_end(text) == '\0') return pl_arena_strdup(arena, text);
  size_t size = strlen(text) * (ESCAPE_BYTES - 1) + 1;
  char *copy = pl_arena_take(arena, size, 1);
  return copy != NULL ? pl_printable(text, copy, size) : NULL;
}

const char *pl_printable_name(const char *text, pl_arena *arena) {
  return *pl_printable_end(text) == '\0' ? text : pl_printable_strdup(arena, text);
}
