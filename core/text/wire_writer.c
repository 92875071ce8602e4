/* See core/text/wire_writer.h. */
#include "core/text/wire_writer.h"

#include <string.h>

#include "core/base/growing.h"
#include "core/text/wire.h"

enum { VARINT_BYTES = 10 };

/* Where `size` more bytes go; NULL: nowhere. */
static uint8_t *take(pl_wire_writer *writer, size_t size) {
  if (size > UINT32_MAX / 4 || !pl_grow(&writer->bytes, writer->n, (uint32_t)size, &writer->room, 1))
    writer->failed = true;
  if (writer->failed) return NULL;
  uint8_t *at = writer->bytes + writer->n;
  writer->n += (uint32_t)size;
  return at;
}

static size_t encode(uint8_t *to, uint64_t value) {
  size_t n = 0;
  for (; value >= 0x80; value >>= 7)
    to[n++] = (uint8_t)(value | 0x80);
  to[n++] = (uint8_t)value;
  return n;
}

static void put_number(pl_wire_writer *writer, uint64_t value) {
  uint8_t bytes[VARINT_BYTES];
  size_t n = encode(bytes, value);
  uint8_t *at = take(writer, n);
  if (at != NULL) memcpy(at, bytes, n);
}

static void put_key(pl_wire_writer *writer, uint32_t field, pl_wire_kind kind) {
  put_number(writer, (uint64_t)field << 3 | kind);
}

void pl_wire_put_varint(pl_wire_writer *writer, uint32_t field, uint64_t value) {
  put_key(writer, field, PL_WIRE_VARINT);
  put_number(writer, value);
}

void pl_wire_put_fixed64(pl_wire_writer *writer, uint32_t field, uint64_t value) {
  put_key(writer, field, PL_WIRE_FIXED64);
  uint8_t *at = take(writer, 8);
  for (int i = 0; at != NULL && i < 8; i++)
    at[i] = (uint8_t)(value >> (8 * i));
}

void pl_wire_put_bytes(pl_wire_writer *writer, uint32_t field, const void *data, size_t size) {
  put_key(writer, field, PL_WIRE_BYTES);
  put_number(writer, size);
  uint8_t *at = size > 0 ? take(writer, size) : NULL;
  if (at != NULL) memcpy(at, data, size);
}

void pl_wire_put_text(pl_wire_writer *writer, uint32_t field, const char *text) {
  pl_wire_put_bytes(writer, field, text, strlen(text));
}

uint32_t pl_wire_open(pl_wire_writer *writer, uint32_t field) {
  put_key(writer, field, PL_WIRE_BYTES);
  return writer->n;
}

void pl_wire_close(pl_wire_writer *writer, uint32_t opened) {
  uint8_t length[VARINT_BYTES];
  if (writer->failed) return;
  uint32_t size = writer->n - opened;
  size_t n = encode(length, size);
  if (take(writer, n) == NULL) return;
  memmove(writer->bytes + opened + n, writer->bytes + opened, size);
  memcpy(writer->bytes + opened, length, n);
}
