/* See core/system/gzip.h. */
#include "core/system/gzip.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST /* next_in points to const */
#include <zlib.h>

bool pl_gzip_is(const char *data, size_t size) {
  return size >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

/* Doubles *text, up to the limit; one byte more than *held is always there, for the NUL. */
static pl_code grow(const char *name, size_t limit_bytes, char **text, size_t *held, pl_error *error) {
  if (*held >= limit_bytes)
    return pl_fail(error, PL_BAD_INPUT, "%s: expands to more than %zu MiB", name, limit_bytes >> 20);
  size_t next = *held == 0 ? (size_t)1 << 16 : 2 * *held;
  if (next > limit_bytes) next = limit_bytes;
  char *larger = realloc(*text, next + 1);
  if (larger == NULL) return pl_fail_memory(error, name);
  *text = larger;
  *held = next;
  return PL_OK;
}

static pl_code expand(const char *name, z_stream *stream, const char *data, size_t size, size_t limit_bytes,
                      char **text, size_t *text_size, pl_error *error) {
  size_t held = 0, used = 0, read = 0;
  for (bool ended = false; !ended;) {
    if (used == held) PL_TRY(grow(name, limit_bytes, text, &held, error));
    size_t in = size - read < UINT_MAX ? size - read : UINT_MAX, out = held - used < UINT_MAX ? held - used : UINT_MAX;
    stream->next_in = (const Bytef *)data + read;
    stream->avail_in = (uInt)in;
    stream->next_out = (Bytef *)*text + used;
    stream->avail_out = (uInt)out;
    int code = inflate(stream, Z_NO_FLUSH);
    read += in - stream->avail_in;
    used += out - stream->avail_out;
    if (code == Z_MEM_ERROR) return pl_fail_memory(error, name);
    if (code == Z_STREAM_END) {
      ended = !pl_gzip_is(data + read, size - read);
      if (!ended && inflateReset(stream) != Z_OK) return pl_fail_memory(error, name);
    } else if (code != Z_OK) {
      const char *cause = read == size ? "the file ends too early" : stream->msg != NULL ? stream->msg : "damaged";
      return pl_fail(error, PL_BAD_INPUT, "%s: is no whole gzip file: %s", name, cause);
    }
  }
  (*text)[used] = '\0';
  *text_size = used;
  return PL_OK;
}

pl_code pl_gzip_expand(const char *name, const char *data, size_t size, size_t limit_bytes, char **text,
                       size_t *text_size, pl_error *error) {
  z_stream stream = {.next_in = NULL};
  *text = NULL;
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return pl_fail_memory(error, name);
  pl_code code = expand(name, &stream, data, size, limit_bytes, text, text_size, error);
  inflateEnd(&stream);
  if (code != PL_OK) {
    free(*text);
    *text = NULL;
  }
  return code;
}
