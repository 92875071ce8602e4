/* Files of protobuf messages, each behind its length, as Chakra writes them; gzipped or not. One message is in memory
 * at a time. */
#ifndef PL_WORKLOADS_FORMATS_PROTOBUF_RECORDS_H
#define PL_WORKLOADS_FORMATS_PROTOBUF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { PL_RECORD_BYTES = 4 << 20, PL_RECORDS_EXPANSION = 300 }; /* most that is read: of a message, of a gzip file */

typedef struct pl_records_end {
  uint64_t n;
  bool is_cut; /* the file ends within a message */
} pl_records_end;

typedef struct pl_records_reader {
  /* What it returns but PL_OK ends the reading. */
  pl_code (*record)(void *context, const uint8_t *data, size_t size, pl_error *error);
  /* May be NULL. Bytes of the file read so far, and its size. */
  void (*progress)(void *context, uint64_t done_bytes, uint64_t size_bytes);
  void *context;
} pl_records_reader;

pl_code pl_records_read(const char *path, const pl_records_reader *reader, pl_records_end *end, pl_error *error);
/* The same from memory. `name` stands for the path. */
pl_code pl_records_parse(const char *name, const uint8_t *data, size_t size, const pl_records_reader *reader,
                         pl_records_end *end, pl_error *error);

#endif
