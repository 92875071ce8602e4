/* See core/json_writer.h. */
#include "core/json_writer.h"

#include <math.h>
#include <stdlib.h>

#include "core/status.h"

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

/* Bytes from 0x80 are passed on: what comes in is UTF-8 (readers have checked it). */
static void write_text(FILE *stream, const char *text) {
  putc('"', stream);
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    switch (*c) {
    case '"':
      fputs("\\\"", stream);
      break;
    case '\\':
      fputs("\\\\", stream);
      break;
    case '\n':
      fputs("\\n", stream);
      break;
    case '\t':
      fputs("\\t", stream);
      break;
    case '\r':
      fputs("\\r", stream);
      break;
    default:
      if (*c < 0x20 || *c == 0x7f) {
        fprintf(stream, "\\u%04x", *c);
      } else {
        putc(*c, stream);
      }
    }
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
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, value);
      if (strtod(text, NULL) == value) break;
    }
    fputs(text, json->stream);
  }
  end_outermost(json);
}

void pl_json_integer(pl_json *json, int64_t value) {
  separate(json);
  fprintf(json->stream, "%lld", (long long)value);
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

void pl_json_put_boolean(pl_json *json, const char *key, bool value) {
  pl_json_key(json, key);
  pl_json_boolean(json, value);
}
