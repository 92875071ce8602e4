/* Protocol Buffers' wire format, field by field, where it lies: nothing is copied and nothing is allocated, so that
 * a message of gigabytes (an ONNX file with its weights) is walked through in no memory. Who knows the message's schema
 * asks for the numbers it wants and passes over all others.
 *
 * Generated readers (protobuf-c) were not taken for such files: they copy every byte field into their heap, those that
 * their schema lacks too.
 */
#ifndef PL_CORE_WIRE_H
#define PL_CORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_wire_kind {
  PL_WIRE_VARINT = 0,
  PL_WIRE_FIXED64 = 1,
  PL_WIRE_BYTES = 2,
  PL_WIRE_FIXED32 = 5
} pl_wire_kind;

typedef struct pl_wire_message {
  const uint8_t *at, *end;
  bool broken; /* bytes that are no field; there are no fields behind them */
} pl_wire_message;

typedef struct pl_wire_field {
  uint32_t number;
  pl_wire_kind kind;
  uint64_t value;      /* of a varint or a fixed number, its bits */
  const uint8_t *data; /* of BYTES: in the message itself */
  size_t size;
} pl_wire_field;

/* NULL is a message without fields: offsets of NULL mean nothing in C, 0 included. */
static inline pl_wire_message pl_wire_of(const void *data, size_t size) {
  const uint8_t *first = (const uint8_t *)data;
  return (pl_wire_message){first, first != NULL ? first + size : NULL, false};
}

/* The next field; false at the end, and where the bytes are broken or cut off (wire->broken). */
bool pl_wire_next(pl_wire_message *wire, pl_wire_field *field);
/* A bare varint, as packed lists have them. */
bool pl_wire_varint(pl_wire_message *wire, uint64_t *value);

static inline float pl_wire_float(uint64_t bits) {
  union {
    uint32_t bits;
    float value;
  } as = {(uint32_t)bits};
  return as.value;
}

static inline double pl_wire_double(uint64_t bits) {
  union {
    uint64_t bits;
    double value;
  } as = {bits};
  return as.value;
}

#endif
