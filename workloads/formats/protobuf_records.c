/* See workloads/formats/protobuf_records.h. */
#include "workloads/formats/protobuf_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

typedef struct source {
  const char *name;
  gzFile file;         /* or */
  const uint8_t *data; /* what is left of it */
  size_t size;
  uint64_t file_bytes, taken;
  bool is_cut;
} source;

static pl_code fail_read(const source *from, int status, pl_error *error) {
  if (status == Z_ERRNO) return pl_fail(error, PL_IO, "%s: %s", from->name, strerror(errno));
  if (status == Z_MEM_ERROR) return pl_fail_memory(error, from->name);
  return pl_fail(error, PL_BAD_INPUT, "%s: is a damaged gzip file", from->name);
}

/* *n bytes or, where the file ends, less. */
static pl_code take(source *from, uint8_t *into, size_t *n, pl_error *error) {
  if (from->file == NULL) {
    if (*n > from->size) *n = from->size;
    if (*n > 0) memcpy(into, from->data, *n);
    from->data += *n;
    from->size -= *n;
    return PL_OK;
  }
  int got = gzread(from->file, into, (unsigned)*n), status = Z_OK;
  gzerror(from->file, &status);
  if (got < 0 && status == Z_BUF_ERROR) got = 0; /* the gzip file ends too early */
  if (status == Z_BUF_ERROR) from->is_cut = true;
  if (got < 0) return fail_read(from, status, error);
  *n = (size_t)got;
  from->taken += *n;
  if (from->taken > (uint64_t)1 << 22 && from->taken / PL_RECORDS_EXPANSION > from->file_bytes)
    return pl_fail(error, PL_BAD_INPUT, "%s: expands to more than %d times its size: is no trace", from->name,
                   PL_RECORDS_EXPANSION);
  return PL_OK;
}

/* The length before a message; *more is false at the end of the file. */
static pl_code take_length(source *from, uint64_t *length, bool *more, pl_error *error) {
  *length = 0;
  *more = false;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte;
    size_t n = 1;
    PL_TRY(take(from, &byte, &n, error));
    if (n == 0) {
      from->is_cut |= shift > 0;
      return PL_OK;
    }
    *length |= (uint64_t)(byte & 0x7f) << shift;
    *more = byte < 0x80;
    if (*more) return PL_OK;
  }
  return pl_fail(error, PL_BAD_INPUT, "%s: a message without a length: is no file of Chakra", from->name);
}

static pl_code read_all(source *from, const pl_records_reader *reader, uint8_t *record, pl_records_end *end,
                        pl_error *error) {
  uint64_t length;
  bool more;
  for (;;) {
    PL_TRY(take_length(from, &length, &more, error));
    if (!more) break;
    if (length == 0 && end->n > 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: message %llu is empty: is no file of Chakra", from->name,
                     (unsigned long long)end->n);
    if (length > PL_RECORD_BYTES)
      return pl_fail(error, PL_BAD_INPUT, "%s: message %llu has %llu bytes, more than %d MiB: is no file of Chakra",
                     from->name, (unsigned long long)end->n, (unsigned long long)length, PL_RECORD_BYTES >> 20);
    size_t n = (size_t)length;
    PL_TRY(take(from, record, &n, error));
    if (n < length) {
      from->is_cut = true;
      break;
    }
    PL_TRY(reader->record(reader->context, record, n, error));
    end->n++;
    if (reader->progress != NULL && from->file != NULL)
      reader->progress(reader->context, (uint64_t)gzoffset(from->file), from->file_bytes);
  }
  end->is_cut = from->is_cut;
  return PL_OK;
}

static pl_code read_source(source *from, const pl_records_reader *reader, pl_records_end *end, pl_error *error) {
  *end = (pl_records_end){.n = 0};
  uint8_t *record = malloc(PL_RECORD_BYTES);
  if (record == NULL) return pl_fail_memory(error, from->name);
  pl_code code = read_all(from, reader, record, end, error);
  free(record);
  return code;
}

pl_code pl_records_read(const char *path, const pl_records_reader *reader, pl_records_end *end, pl_error *error) {
  struct stat info;
  if (stat(path, &info) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  source from = {.name = path, .file = gzopen(path, "rb"), .file_bytes = (uint64_t)info.st_size};
  if (from.file == NULL)
    return errno == ENOMEM || errno == 0 ? pl_fail_memory(error, path)
                                         : pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  gzbuffer(from.file, 1 << 17);
  pl_code code = read_source(&from, reader, end, error);
  gzclose(from.file);
  return code;
}

pl_code pl_records_parse(const char *name, const uint8_t *data, size_t size, const pl_records_reader *reader,
                         pl_records_end *end, pl_error *error) {
  source from = {.name = name, .data = data, .size = size};
  return read_source(&from, reader, end, error);
}
