/* Writes Protocol Buffers' wire format (core/text/wire.h reads it) into memory, field by field. A message inside a
 * message is opened and closed; its length is put in front of it when it is closed. Failure is sticky.
 */
#ifndef PL_CORE_WIRE_WRITER_H
#define PL_CORE_WIRE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_wire_writer {
  uint8_t *bytes; /* free() it at the end */
  uint32_t n, room;
  bool failed; /* no memory: what was written is not whole */
} pl_wire_writer;

void pl_wire_put_varint(pl_wire_writer *writer, uint32_t field, uint64_t value);
void pl_wire_put_fixed64(pl_wire_writer *writer, uint32_t field, uint64_t value);
void pl_wire_put_bytes(pl_wire_writer *writer, uint32_t field, const void *data, size_t size);
void pl_wire_put_text(pl_wire_writer *writer, uint32_t field, const char *text);

/* What is written until the close is the field's message; returns what to close. O(length of the message) to close. */
uint32_t pl_wire_open(pl_wire_writer *writer, uint32_t field);
void pl_wire_close(pl_wire_writer *writer, uint32_t opened);

#endif
