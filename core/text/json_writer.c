/* See core/text/json_writer.h. */
#include "core/text/json_writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/units.h"

void pl_json_init(pl_json *json, FILE *stream, bool pretty) {
  *json = (pl_json){.stream = stream, .pretty = pretty};
}

static void new_line(const pl_json *json) {
  if (json->pretty) fprintf(json->stream, "\n%*s", 2 * (int)json->depth, "");
}

/* What comes in front of a value or a key: the comma and the line, unless a key just did. */
static void separate(pl_json *json) {
  if (json->after_key) {
    json->after_key = false;
    return;
  }
  if (json->depth == 0) return;
  if (json->has_entry[json->depth - 1]) putc(',', json->stream);
  json->has_entry[json->depth - 1] = true;
  new_line(json);
}

static void end_outermost(const pl_json *json) {
  if (json->depth == 0 && json->pretty) putc('\n', json->stream);
}

static void open_container(pl_json *json, char bracket) {
  separate(json);
  PL_ASSERT(json->depth < PL_JSON_DEPTH);
  putc(bracket, json->stream);
  json->has_entry[json->depth++] = false;
}

static void close_container(pl_json *json, char bracket) {
  PL_ASSERT(json->depth > 0 && !json->after_key);
  json->depth--;
  if (json->has_entry[json->depth]) new_line(json);
  putc(bracket, json->stream);
  end_outermost(json);
}

void pl_json_open_object(pl_json *json) {
  open_container(json, '{');
}
void pl_json_close_object(pl_json *json) {
  close_container(json, '}');
}
void pl_json_open_array(pl_json *json) {
  open_container(json, '[');
}
void pl_json_close_array(pl_json *json) {
  close_container(json, ']');
}

/* One character: as it is, or as JSON's escape of its code point. Reading it back gives the same text, but for bytes
 * that are no UTF-8, which JSON cannot carry: they become U+FFFD. */
static void write_character(FILE *stream, const char *text, size_t n_bytes, uint32_t code_point) {
  static const char plain[] = "\"\\\n\t\r", escaped[] = "\"\\ntr";
  const char *known = code_point != 0 && code_point < 0x80 ? strchr(plain, (int)code_point) : NULL;
  if (known != NULL) {
    putc('\\', stream);
    putc(escaped[known - plain], stream);
  } else if (pl_code_point_is_printable(code_point)) {
    fwrite(text, 1, n_bytes, stream);
  } else if (code_point == PL_NOT_UTF8) {
    fputs("\\ufffd", stream);
  } else if (code_point > 0xffff) {
    fprintf(stream, "\\u%04x\\u%04x", 0xd7c0 + (code_point >> 10), 0xdc00 + (code_point & 0x3ff));
  } else {
    fprintf(stream, "\\u%04x", code_point);
  }
}

static void write_text(FILE *stream, const char *text) {
  putc('"', stream);
  while (*text != '\0') {
    uint32_t code_point;
    size_t n = pl_utf8_next(text, &code_point);
    write_character(stream, text, n, code_point);
    text += n;
  }
  putc('"', stream);
}

void pl_json_key(pl_json *json, const char *key) {
  PL_ASSERT(!json->after_key);
  separate(json);
  write_text(json->stream, key);
  fputs(json->pretty ? ": " : ":", json->stream);
  json->after_key = true;
}

void pl_json_string(pl_json *json, const char *text) {
  separate(json);
  if (text == NULL) {
    fputs("null", json->stream);
  } else {
    write_text(json->stream, text);
  }
  end_outermost(json);
}

void pl_json_number(pl_json *json, double value) {
  separate(json);
  if (!isfinite(value)) {
    fputs("null", json->stream);
  } else {
    char text[PL_UNIT_TEXT_BYTES];
    fputs(pl_format_exact(value, text), json->stream);
  }
  end_outermost(json);
}

void pl_json_integer(pl_json *json, int64_t value) {
  separate(json);
  fprintf(json->stream, "%lld", (long long)value);
  end_outermost(json);
}

void pl_json_thousandths(pl_json *json, int64_t value) {
  unsigned long long size = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
  separate(json);
  fprintf(json->stream, "%s%llu.%03llu", value < 0 ? "-" : "", size / 1000, size % 1000);
  end_outermost(json);
}

void pl_json_boolean(pl_json *json, bool value) {
  separate(json);
  fputs(value ? "true" : "false", json->stream);
  end_outermost(json);
}

void pl_json_put_string(pl_json *json, const char *key, const char *text) {
  pl_json_key(json, key);
  pl_json_string(json, text);
}

void pl_json_put_number(pl_json *json, const char *key, double value) {
  pl_json_key(json, key);
  pl_json_number(json, value);
}

void pl_json_put_integer(pl_json *json, const char *key, int64_t value) {
  pl_json_key(json, key);
  pl_json_integer(json, value);
}

void pl_json_put_thousandths(pl_json *json, const char *key, int64_t value) {
  pl_json_key(json, key);
  pl_json_thousandths(json, value);
}

void pl_json_put_boolean(pl_json *json, const char *key, bool value) {
  pl_json_key(json, key);
  pl_json_boolean(json, value);
}
