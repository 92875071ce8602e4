/* What core/text/wire_writer.h writes core/text/wire.h reads: numbers of every length, messages in messages whose
 * lengths take one, two and three bytes, and fields of large numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/text/wire.h"
#include "core/text/wire_writer.h"

static pl_wire_field next(pl_wire_message *message) {
  pl_wire_field field = {0};
  assert_true(pl_wire_next(message, &field));
  return field;
}

static void numbers_come_back(void **state) {
  (void)state;
  pl_wire_writer writer = {0};
  for (int bits = 0; bits < 64; bits++) {
    pl_wire_put_varint(&writer, (uint32_t)bits + 1, (uint64_t)1 << bits);
    pl_wire_put_varint(&writer, (uint32_t)bits + 1, ((uint64_t)1 << bits) - 1);
    pl_wire_put_fixed64(&writer, 536870911, (uint64_t)1 << bits);
  }
  pl_wire_message message = pl_wire_of(writer.bytes, writer.n);
  for (int bits = 0; bits < 64; bits++) {
    pl_wire_field field = next(&message);
    assert_true(field.number == (uint32_t)bits + 1 && field.kind == PL_WIRE_VARINT);
    assert_true(field.value == (uint64_t)1 << bits);
    assert_true(next(&message).value == ((uint64_t)1 << bits) - 1);
    field = next(&message);
    assert_true(field.number == 536870911 && field.kind == PL_WIRE_FIXED64 && field.value == (uint64_t)1 << bits);
  }
  pl_wire_field field;
  assert_false(pl_wire_next(&message, &field) || message.broken);
  free(writer.bytes);
}

static void put_nested(pl_wire_writer *writer, const char *text, int depth) {
  uint32_t opened = pl_wire_open(writer, 3);
  pl_wire_put_text(writer, 7, text);
  if (depth > 0) put_nested(writer, text, depth - 1);
  pl_wire_put_varint(writer, 9, (uint64_t)depth);
  pl_wire_close(writer, opened);
}

static void take_nested(pl_wire_message *message, const char *text, int depth) {
  pl_wire_field outer = next(message);
  assert_true(outer.number == 3 && outer.kind == PL_WIRE_BYTES);
  pl_wire_message inner = pl_wire_of(outer.data, outer.size);
  pl_wire_field field = next(&inner);
  assert_true(field.number == 7 && field.size == strlen(text));
  assert_memory_equal(field.data, text, field.size);
  if (depth > 0) take_nested(&inner, text, depth - 1);
  field = next(&inner);
  assert_true(field.number == 9 && field.value == (uint64_t)depth);
  assert_false(pl_wire_next(&inner, &field) || inner.broken);
}

static void messages_lie_in_messages(void **state) {
  (void)state;
  for (size_t length = 1; length < 40000; length = 3 * length + 1) {
    char *text = malloc(length + 1);
    memset(text, 'x', length);
    text[length] = '\0';
    pl_wire_writer writer = {0};
    put_nested(&writer, text, 3);
    pl_wire_put_bytes(&writer, 1, NULL, 0);
    assert_false(writer.failed);
    pl_wire_message message = pl_wire_of(writer.bytes, writer.n);
    take_nested(&message, text, 3);
    pl_wire_field field = next(&message);
    assert_true(field.number == 1 && field.kind == PL_WIRE_BYTES && field.size == 0);
    free(writer.bytes);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_back),
      cmocka_unit_test(messages_lie_in_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
