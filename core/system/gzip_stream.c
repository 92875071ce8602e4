/* See core/system/gzip_stream.h. */
#include "core/system/gzip_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>

enum { ROOM = 1 << 16, LEVEL = 6 };

typedef struct gzip_stream {
  z_stream z;
  FILE *to;
  unsigned char room[ROOM];
} gzip_stream;

bool pl_gzip_is_wanted(const char *path) {
  size_t length = strlen(path);
  return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

/* All that is compressed so far goes out. */
static bool drain(gzip_stream *gzip, int flush) {
  do {
    gzip->z.next_out = gzip->room;
    gzip->z.avail_out = ROOM;
    if (deflate(&gzip->z, flush) == Z_STREAM_ERROR) return false;
    size_t n = ROOM - gzip->z.avail_out;
    if (n > 0 && fwrite(gzip->room, 1, n, gzip->to) != n) return false;
  } while (gzip->z.avail_out == 0);
  return true;
}

static ssize_t write_some(void *cookie, const char *text, size_t size) {
  gzip_stream *gzip = cookie;
  unsigned char *copy = malloc(size); /* zlib does not promise to leave its input alone */
  if (copy == NULL) return 0;
  memcpy(copy, text, size);
  gzip->z.next_in = copy;
  gzip->z.avail_in = (uInt)size;
  bool good = drain(gzip, Z_NO_FLUSH);
  free(copy);
  return good ? (ssize_t)size : 0;
}

static int finish(void *cookie) {
  gzip_stream *gzip = cookie;
  gzip->z.next_in = gzip->room;
  gzip->z.avail_in = 0;
  bool good = drain(gzip, Z_FINISH);
  deflateEnd(&gzip->z);
  free(gzip);
  return good ? 0 : EOF;
}

FILE *pl_gzip_stream_open(FILE *to) {
  enum { GZIP = 16, WINDOW = 15, MEMORY = 8 };
  gzip_stream *gzip = calloc(1, sizeof *gzip);
  if (gzip == NULL) return NULL;
  gzip->to = to;
  bool good = deflateInit2(&gzip->z, LEVEL, Z_DEFLATED, WINDOW + GZIP, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
  FILE *stream = good ? fopencookie(gzip, "w", (cookie_io_functions_t){.write = write_some, .close = finish}) : NULL;
  if (stream != NULL) {
    setvbuf(stream, NULL, _IOFBF, ROOM);
    return stream;
  }
  if (good) deflateEnd(&gzip->z);
  free(gzip);
  return NULL;
}
