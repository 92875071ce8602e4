/* JSON writer: exact text, doubles that come back unchanged, and output that our own strict reader takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/document.h"
#include "core/text/json_writer.h"

typedef struct sink {
  char *text;
  size_t size;
  FILE *stream;
  pl_json json;
} sink;

static void open_sink(sink *s, bool pretty) {
  s->stream = open_memstream(&s->text, &s->size);
  pl_json_init(&s->json, s->stream, pretty);
}

static void expect(sink *s, const char *expected) {
  fclose(s->stream);
  assert_string_equal(s->text, expected);
  free(s->text);
}

static void write_sample(pl_json *json) {
  pl_json_open_object(json);
  pl_json_put_string(json, "name", "a\"b\\c\n\t\x01\x7f\xc3\xa9");
  pl_json_put_number(json, "nan", NAN);
  pl_json_put_number(json, "tenth", 0.1);
  pl_json_put_integer(json, "big", INT64_MIN);
  pl_json_put_boolean(json, "yes", true);
  pl_json_put_string(json, "none", NULL);
  pl_json_key(json, "list");
  pl_json_open_array(json);
  pl_json_integer(json, 1);
  pl_json_open_object(json);
  pl_json_close_object(json);
  pl_json_open_array(json);
  pl_json_close_array(json);
  pl_json_boolean(json, false);
  pl_json_close_array(json);
  pl_json_close_object(json);
}

static void compact(void **state) {
  (void)state;
  sink s;
  open_sink(&s, false);
  write_sample(&s.json);
  expect(&s, "{\"name\":\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\xc3\xa9\",\"nan\":null,\"tenth\":0.1,"
             "\"big\":-9223372036854775808,\"yes\":true,\"none\":null,\"list\":[1,{},[],false]}");
}

static void pretty(void **state) {
  (void)state;
  sink s;
  open_sink(&s, true);
  pl_json_open_object(&s.json);
  pl_json_put_integer(&s.json, "a", 1);
  pl_json_key(&s.json, "b");
  pl_json_open_array(&s.json);
  pl_json_string(&s.json, "x");
  pl_json_string(&s.json, "y");
  pl_json_close_array(&s.json);
  pl_json_close_object(&s.json);
  expect(&s, "{\n  \"a\": 1,\n  \"b\": [\n    \"x\",\n    \"y\"\n  ]\n}\n");
}

static void our_reader_takes_it(void **state) {
  (void)state;
  for (int indented = 0; indented <= 1; indented++) {
    sink s;
    open_sink(&s, indented != 0);
    write_sample(&s.json);
    fclose(s.stream);
    pl_document *d = NULL;
    pl_error error = PL_ERROR_INIT;
    if (pl_document_parse("out", s.text, s.size, true, &d, &error) != PL_OK) fail_msg("%s", error.message);
    const char *name;
    assert_int_equal(pl_node_string(d, pl_document_root(d), "name", &name, &error), PL_OK);
    assert_string_equal(name, "a\"b\\c\n\t\x01\x7f\xc3\xa9");
    pl_document_destroy(d);
    free(s.text);
  }
}

static void doubles_come_back(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    double value;
    memcpy(&value, &random, sizeof value);
    char text[64];
    FILE *stream = fmemopen(text, sizeof text, "w");
    pl_json json;
    pl_json_init(&json, stream, false);
    pl_json_number(&json, value);
    fclose(stream);
    if (isfinite(value)) {
      assert_true(strtod(text, NULL) == value);
    } else {
      assert_string_equal(text, "null");
    }
  }
}

static void shortest_forms(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *text;
  } cases[] = {{0.0, "0"},        {17.0, "17"},   {0.1, "0.1"},       {1.0 / 3.0, "0.3333333333333333"},
               {1e300, "1e+300"}, {-2.5, "-2.5"}, {INFINITY, "null"}, {DBL_TRUE_MIN, "4.94065645841247e-324"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sink s;
    open_sink(&s, false);
    pl_json_number(&s.json, cases[i].value);
    expect(&s, cases[i].text);
  }
}

/* What a terminal should not get is escaped, and what is no UTF-8 replaced, so that the document is JSON whatever came
 * in. */
static void escapes(void **state) {
  (void)state;
  sink s;
  open_sink(&s, false);
  pl_json_string(&s.json, "\x1b[1m\xc2\x9b|\xe2\x80\xae|\xf3\xa0\x81\x81|\xff|\xe2\x82\xac|/\r");
  expect(&s, "\"\\u001b[1m\\u009b|\\u202e|\\udb40\\udc41|\\ufffd|\xe2\x82\xac|/\\r\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compact),
      cmocka_unit_test(escapes),
      cmocka_unit_test(pretty),
      cmocka_unit_test(our_reader_takes_it),
      cmocka_unit_test(doubles_come_back),
      cmocka_unit_test(shortest_forms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
