/* See core/text/wire.h. */
#include "core/text/wire.h"

static bool breaks(pl_wire_message *wire) {
  wire->broken = true;
  return false;
}

bool pl_wire_varint(pl_wire_message *wire, uint64_t *value) {
  uint64_t made = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (wire->at == wire->end) return breaks(wire);
    uint8_t byte = *wire->at++;
    made |= (uint64_t)(byte & 0x7f) << shift;
    if ((byte & 0x80) != 0) continue;
    *value = made;
    return true;
  }
  return breaks(wire);
}

static bool take_fixed(pl_wire_message *wire, size_t bytes, uint64_t *value) {
  if ((size_t)(wire->end - wire->at) < bytes) return breaks(wire);
  *value = 0;
  for (size_t i = 0; i < bytes; i++)
    *value |= (uint64_t)wire->at[i] << (8 * i);
  wire->at += bytes;
  return true;
}

static bool take_bytes(pl_wire_message *wire, pl_wire_field *field) {
  uint64_t size;
  if (!pl_wire_varint(wire, &size)) return false;
  if (size > (uint64_t)(wire->end - wire->at)) return breaks(wire);
  field->data = wire->at;
  field->size = (size_t)size;
  wire->at += size;
  return true;
}

bool pl_wire_next(pl_wire_message *wire, pl_wire_field *field) {
  uint64_t key;
  if (wire->broken || wire->at == wire->end || !pl_wire_varint(wire, &key)) return false;
  *field = (pl_wire_field){.number = (uint32_t)(key >> 3), .kind = (pl_wire_kind)(key & 7)};
  if (key >> 32 != 0 || field->number == 0) return breaks(wire);
  switch (field->kind) {
  case PL_WIRE_VARINT:
    return pl_wire_varint(wire, &field->value);
  case PL_WIRE_FIXED64:
    return take_fixed(wire, 8, &field->value);
  case PL_WIRE_FIXED32:
    return take_fixed(wire, 4, &field->value);
  case PL_WIRE_BYTES:
    return take_bytes(wire, field);
  }
  return breaks(wire);
}
