/* See workloads/formats/json_events.h. */
#include "workloads/formats/json_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>
#define ZLIB_CONST
#include <zlib.h>

enum { CHUNK_BYTES = 1 << 18 };

typedef struct pump {
  const char *name;
  const pl_json_reader *reader;
  yajl_handle parser;
  pl_error *error;
  pl_code code;
  uint32_t depth;
  bool begun;
  uint64_t text_bytes, lines, last_token; /* fed so far; where the last token came */
} pump;

static int take(pump *own, pl_json_token token, const void *text, size_t size) {
  own->begun = true;
  own->last_token = own->text_bytes;
  if (token == PL_JSON_OPEN_OBJECT || token == PL_JSON_OPEN_ARRAY) {
    if (++own->depth > PL_JSON_EVENTS_DEPTH) {
      own->code = pl_fail(own->error, PL_BAD_INPUT, "%s: nested deeper than %d", own->name, PL_JSON_EVENTS_DEPTH);
      return 0;
    }
  } else if (token == PL_JSON_CLOSE_OBJECT || token == PL_JSON_CLOSE_ARRAY) {
    own->depth--;
  }
  own->code = own->reader->token(own->reader->context, token, text, size, own->error);
  return own->code == PL_OK;
}

static int take_null(void *own) {
  return take(own, PL_JSON_NULL, "", 0);
}
static int take_boolean(void *own, int value) {
  return take(own, value ? PL_JSON_TRUE : PL_JSON_FALSE, "", 0);
}
static int take_number(void *own, const char *text, size_t size) {
  return take(own, PL_JSON_NUMBER, text, size);
}
static int take_string(void *own, const unsigned char *text, size_t size) {
  return take(own, PL_JSON_STRING, text, size);
}
static int take_key(void *own, const unsigned char *text, size_t size) {
  return take(own, PL_JSON_KEY, text, size);
}
static int open_object(void *own) {
  return take(own, PL_JSON_OPEN_OBJECT, "", 0);
}
static int close_object(void *own) {
  return take(own, PL_JSON_CLOSE_OBJECT, "", 0);
}
static int open_array(void *own) {
  return take(own, PL_JSON_OPEN_ARRAY, "", 0);
}
static int close_array(void *own) {
  return take(own, PL_JSON_CLOSE_ARRAY, "", 0);
}

static const yajl_callbacks callbacks = {take_null,   take_boolean, NULL,         NULL,       take_number, take_string,
                                         open_object, take_key,     close_object, open_array, close_array};

static uint64_t count_lines(const char *text, size_t size) {
  uint64_t n = 0;
  for (const char *end = text + size; (text = memchr(text, '\n', (size_t)(end - text))) != NULL; text++)
    n++;
  return n;
}

static pl_code complain(pump *own, const char *text, size_t size) {
  size_t consumed = yajl_get_bytes_consumed(own->parser);
  if (consumed > size) consumed = size;
  unsigned char *said = yajl_get_error(own->parser, 0, NULL, 0);
  const char *colon = said != NULL ? strstr((const char *)said, ": ") : NULL;
  size_t length = colon != NULL ? strcspn(colon + 2, "\n") : 0;
  pl_fail(own->error, PL_BAD_INPUT, "%s:%llu: is no JSON: %.*s", own->name,
          (unsigned long long)(own->lines + count_lines(text, consumed) + 1), (int)length,
          colon != NULL ? colon + 2 : "");
  if (said != NULL) yajl_free_error(own->parser, said);
  return PL_BAD_INPUT;
}

static pl_code feed(pump *own, const char *text, size_t size) {
  own->text_bytes += size;
  yajl_status status = yajl_parse(own->parser, (const unsigned char *)text, size);
  if (own->code != PL_OK) return own->code;
  if (status != yajl_status_ok) return complain(own, text, size);
  if (own->text_bytes - own->last_token > PL_JSON_EVENTS_TOKEN_BYTES)
    return pl_fail(own->error, PL_BAD_INPUT, "%s: %d MiB without a JSON value: is no trace", own->name,
                   PL_JSON_EVENTS_TOKEN_BYTES >> 20);
  own->lines += count_lines(text, size);
  return PL_OK;
}

static pl_code begin(pump *own, const char *name, const pl_json_reader *reader, pl_error *error) {
  *own = (pump){.name = name, .reader = reader, .error = error};
  own->parser = yajl_alloc(&callbacks, NULL, own);
  if (own->parser == NULL) return pl_fail_memory(error, "a JSON parser");
  yajl_config(own->parser, yajl_dont_validate_strings, 1);
  return PL_OK;
}

/* A blank ends a number that the end of the text would leave open. */
static pl_code finish(pump *own, pl_json_end *end) {
  bool closed = own->begun && own->depth == 0;
  if (own->begun && !closed && yajl_parse(own->parser, (const unsigned char *)" ", 1) != yajl_status_ok &&
      own->code != PL_OK)
    return own->code;
  end->text_bytes = own->text_bytes;
  end->is_cut = !closed;
  if (!own->begun) return pl_fail(own->error, PL_BAD_INPUT, "%s: is empty: no JSON value in it", own->name);
  return PL_OK;
}

pl_code pl_json_events_parse(const char *name, const char *data, size_t size, const pl_json_reader *reader,
                             pl_json_end *end, pl_error *error) {
  pump own;
  *end = (pl_json_end){0};
  PL_TRY(begin(&own, name, reader, error));
  pl_code code = feed(&own, data, size);
  if (code == PL_OK) code = finish(&own, end);
  yajl_free(own.parser);
  return code;
}

/* ---- files ---- */

typedef struct source {
  FILE *file;
  uint64_t size_bytes, done_bytes;
  z_stream stream;
  unsigned char in[CHUNK_BYTES], out[CHUNK_BYTES];
} source;

static void tell(const source *from, const pl_json_reader *reader) {
  if (reader->progress != NULL) reader->progress(reader->context, from->done_bytes, from->size_bytes);
}

static pl_code refill(source *from, const char *name, size_t *n, pl_error *error) {
  *n = fread(from->in, 1, CHUNK_BYTES, from->file);
  from->done_bytes += *n;
  return ferror(from->file) ? pl_fail(error, PL_IO, "%s: %s", name, strerror(errno)) : PL_OK;
}

static pl_code read_plain(source *from, pump *own, size_t n) {
  while (n > 0) {
    PL_TRY(feed(own, (const char *)from->in, n));
    tell(from, own->reader);
    PL_TRY(refill(from, own->name, &n, own->error));
  }
  return PL_OK;
}

/* All that the bytes in stream->next_in give. */
static pl_code expand(source *from, pump *own, bool *ended) {
  z_stream *stream = &from->stream;
  do {
    if (*ended) { /* another member may follow; what is none is left alone, as gzip does with padding */
      if (inflateReset(stream) != Z_OK) return pl_fail_memory(own->error, own->name);
      *ended = false;
    }
    stream->next_out = from->out;
    stream->avail_out = CHUNK_BYTES;
    int status = inflate(stream, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) return pl_fail_memory(own->error, own->name);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      return pl_fail(own->error, PL_BAD_INPUT, "%s: is a damaged gzip file: %s", own->name,
                     stream->msg != NULL ? stream->msg : "its stream makes no sense");
    PL_TRY(feed(own, (const char *)from->out, CHUNK_BYTES - stream->avail_out));
    if (own->text_bytes > (uint64_t)1 << 26 && own->text_bytes / PL_JSON_EVENTS_EXPANSION > from->done_bytes)
      return pl_fail(own->error, PL_BAD_INPUT, "%s: expands to more than %d times its size: is no trace", own->name,
                     PL_JSON_EVENTS_EXPANSION);
    *ended = status == Z_STREAM_END;
    if (*ended && (stream->avail_in < 2 || stream->next_in[0] != 0x1f)) return PL_OK;
  } while (stream->avail_in > 0 || stream->avail_out == 0);
  return PL_OK;
}

static pl_code read_gzip(source *from, pump *own, size_t n, pl_json_end *end) {
  if (inflateInit2(&from->stream, 15 + 16) != Z_OK) return pl_fail_memory(own->error, own->name);
  pl_code code = PL_OK;
  bool ended = false;
  while (n > 0 && code == PL_OK) {
    from->stream.next_in = from->in;
    from->stream.avail_in = (uInt)n;
    code = expand(from, own, &ended);
    tell(from, own->reader);
    if (code == PL_OK) code = refill(from, own->name, &n, own->error);
  }
  end->is_gzip_cut = code == PL_OK && !ended;
  inflateEnd(&from->stream);
  return code;
}

pl_code pl_json_events_read(const char *path, const pl_json_reader *reader, pl_json_end *end, pl_error *error) {
  *end = (pl_json_end){0};
  source *from = calloc(1, sizeof *from);
  if (from == NULL) return pl_fail_memory(error, path);
  from->file = fopen(path, "rb");
  if (from->file == NULL) {
    free(from);
    return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  }
  if (fseeko(from->file, 0, SEEK_END) == 0) from->size_bytes = (uint64_t)ftello(from->file);
  rewind(from->file);
  pump own;
  pl_code code = begin(&own, path, reader, error);
  if (code == PL_OK) {
    size_t n;
    bool gzip_cut = false;
    code = refill(from, path, &n, error);
    bool is_gzip = n >= 2 && from->in[0] == 0x1f && from->in[1] == 0x8b;
    if (code == PL_OK) code = is_gzip ? read_gzip(from, &own, n, end) : read_plain(from, &own, n);
    gzip_cut = end->is_gzip_cut;
    if (code == PL_OK) code = finish(&own, end);
    end->is_gzip_cut = gzip_cut;
    yajl_free(own.parser);
  }
  fclose(from->file);
  free(from);
  return code;
}

int pl_json_find_word(const pl_json_word *words, const char *text, size_t size, int otherwise) {
  for (; words->text != NULL; words++)
    if (strlen(words->text) == size && memcmp(words->text, text, size) == 0) return words->meaning;
  return otherwise;
}

/* ---- numbers ---- */

typedef struct decimal {
  uint64_t digits;
  int exponent; /* of ten, behind the digits that are kept */
  bool negative;
} decimal;

static bool read_decimal(const char *text, size_t size, decimal *number) {
  size_t at = 0;
  bool point = false, any = false;
  *number = (decimal){.digits = 0};
  if (at < size && (text[at] == '-' || text[at] == '+')) number->negative = text[at++] == '-';
  for (; at < size && ((text[at] >= '0' && text[at] <= '9') || (text[at] == '.' && !point)); at++) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    uint64_t digit = (uint64_t)(text[at] - '0');
    if (number->digits <= (UINT64_MAX - 9) / 10) {
      number->digits = number->digits * 10 + digit;
      if (point) number->exponent--;
    } else if (!point) {
      number->exponent++;
    }
  }
  if (at < size && (text[at] == 'e' || text[at] == 'E')) {
    int sign = 1, power = 0;
    at++;
    if (at < size && (text[at] == '-' || text[at] == '+')) sign = text[at++] == '-' ? -1 : 1;
    if (at == size) return false;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
      if (power < 10000) power = 10 * power + (text[at] - '0');
    number->exponent += sign * power;
  }
  return any && at == size;
}

bool pl_fixed_point(const char *text, size_t size, int shift, int64_t *value) {
  decimal number;
  if (!read_decimal(text, size, &number)) return false;
  int power = number.exponent + shift;
  uint64_t digits = number.digits;
  for (; power < 0 && digits > 0; power++)
    digits /= 10;
  for (; power > 0 && digits > 0; power--) {
    if (digits > INT64_MAX / 10) return false;
    digits *= 10;
  }
  if (digits > INT64_MAX) return false;
  *value = number.negative ? -(int64_t)digits : (int64_t)digits;
  return true;
}
