/* Documents: values and positions of good ones, one clear message for each kind of bad one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/digest.h"
#include "core/text/document.h"

static pl_document *parse(const char *text, bool json) {
  pl_document *document = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_document_parse("f", text, strlen(text), json, &document, &error) != PL_OK)
    fail_msg("refused: %s", error.message);
  return document;
}

static void refuse_bytes(const char *text, size_t size, bool json, const char *message) {
  pl_document *document = (pl_document *)1;
  pl_error error = PL_ERROR_INIT;
  if (pl_document_parse("f", text, size, json, &document, &error) == PL_OK) fail_msg("accepted: %s", text);
  assert_null(document);
  assert_int_equal(error.code, PL_BAD_INPUT);
  if (strncmp(error.message, message, strlen(message)) != 0)
    fail_msg("%s\n  said: %s\n  not:  %s", text, error.message, message);
}

static void refuse(const char *text, bool json, const char *message) {
  refuse_bytes(text, strlen(text), json, message);
}

static void json_values(void **state) {
  (void)state;
  pl_document *d = parse("\xef\xbb\xbf{\"name\": \"gpt2 \\u00e9\\ud83d\\ude00\\n\", \"layers\": 24, \"eps\": 1e-05,\n"
                         " \"tied\": true, \"none\": null, \"dims\": [1, -2.5, [], {}], \"round\": 64.0, \"big\": 1e9}",
                         true);
  const pl_node *root = pl_document_root(d), *dims = pl_node_get(root, "dims");
  pl_error error = PL_ERROR_INIT;
  const char *name, *key;
  int64_t integer;
  double number;
  bool flag;
  assert_string_equal(pl_document_name(d), "f");
  assert_true(pl_node_is_mapping(root) && !pl_node_is_sequence(root));
  assert_int_equal(pl_node_count(root), 8);
  assert_int_equal(pl_node_string(d, root, "name", &name, &error), PL_OK);
  assert_string_equal(name, "gpt2 \xc3\xa9\xf0\x9f\x98\x80\n");
  assert_int_equal(pl_node_integer(d, root, "layers", 1, 100, &integer, &error), PL_OK);
  assert_int_equal(integer, 24);
  assert_int_equal(pl_node_integer(d, root, "round", 1, 100, &integer, &error), PL_OK);
  assert_int_equal(integer, 64);
  assert_int_equal(pl_node_integer(d, root, "big", 1, INT64_MAX, &integer, &error), PL_OK);
  assert_int_equal(integer, 1000000000);
  assert_int_equal(pl_node_number(d, root, "eps", &number, &error), PL_OK);
  assert_true(number == 1e-05);
  assert_int_equal(pl_node_boolean(d, root, "tied", &flag, &error), PL_OK);
  assert_true(flag);
  assert_null(pl_node_get(root, "none"));
  assert_null(pl_node_get(root, "absent"));
  assert_int_equal(pl_node_count(dims), 4);
  assert_int_equal(pl_node_as_number(d, pl_node_at(dims, 1), &number, &error), PL_OK);
  assert_true(number == -2.5);
  assert_true(pl_node_is_sequence(pl_node_at(dims, 2)) && pl_node_count(pl_node_at(dims, 2)) == 0);
  assert_null(pl_node_at(dims, 4));
  assert_non_null(pl_node_entry(d, root, 1, &key));
  assert_string_equal(key, "layers");
  assert_null(pl_node_entry(d, root, 8, &key));
  pl_document_destroy(d);
}

static void yaml_values(void **state) {
  (void)state;
  pl_document *d = parse(
      "# a comment\nname: gpt2\ncount: 3\nlist:\n  - 1\n  - {a: ~}\nflag: false\ntext: >\n  two\n  lines\n", false);
  const pl_node *root = pl_document_root(d);
  pl_error error = PL_ERROR_INIT;
  const char *text;
  bool flag = true;
  assert_int_equal(pl_node_string(d, root, "name", &text, &error), PL_OK);
  assert_string_equal(text, "gpt2");
  assert_int_equal(pl_node_string(d, root, "count", &text, &error), PL_OK); /* plain text is a string if you want one */
  assert_string_equal(text, "3");
  assert_int_equal(pl_node_string(d, root, "text", &text, &error), PL_OK);
  assert_string_equal(text, "two lines\n");
  assert_int_equal(pl_node_boolean(d, root, "flag", &flag, &error), PL_OK);
  assert_false(flag);
  assert_null(pl_node_get(pl_node_at(pl_node_get(root, "list"), 1), "a"));
  pl_document_destroy(d);
}

static void failures_name_position_key_and_value(void **state) {
  (void)state;
  pl_document *d =
      parse("{\n  \"a\": \"x\",\n  \"b\": {},\n  \"c\": 1.5, \"d\": 1e400, \"e\": 99999999999999999999\n}", true);
  const pl_node *root = pl_document_root(d);
  int64_t integer = 7;
  double number = 7.0;
  bool flag;
  const char *text;
#define SAYS(call, words)                                                                                              \
  do {                                                                                                                 \
    pl_error error = PL_ERROR_INIT;                                                                                    \
    assert_int_equal((call), PL_BAD_INPUT);                                                                            \
    assert_string_equal(error.message, words);                                                                         \
  } while (0)
  SAYS(pl_node_integer(d, root, "a", 0, 9, &integer, &error), "f:2:8: 'a' must be an integer, not a string 'x'");
  SAYS(pl_node_number(d, root, "b", &number, &error), "f:3:8: 'b' must be a number, not a mapping");
  SAYS(pl_node_integer(d, root, "c", 0, 9, &integer, &error), "f:4:8: 'c' must be an integer, not a number '1.5'");
  SAYS(pl_node_number(d, root, "d", &number, &error), "f:4:18: 1e400 is too large a number");
  SAYS(pl_node_integer(d, root, "e", 0, 9, &integer, &error),
       "f:4:30: 'e' is 99999999999999999999, out of the range 0 to 9");
  SAYS(pl_node_integer(d, root, "e", 0, INT64_MAX, &integer, &error),
       "f:4:30: 'e' is 99999999999999999999, out of the range 0 to 9223372036854775807");
  SAYS(pl_node_integer(d, root, "z", 0, 9, &integer, &error), "f:1:1: the key 'z' is missing");
  SAYS(pl_node_boolean(d, root, "c", &flag, &error), "f:4:8: 'c' must be true or false, not a number '1.5'");
  SAYS(pl_node_string(d, root, "c", &text, &error), "f:4:8: 'c' must be a string, not a number '1.5'");
  SAYS(pl_node_as_string(d, pl_node_get(root, "b"), &text, &error), "f:3:8: expected a string, found a mapping");
  SAYS(pl_node_string(d, pl_node_get(root, "a"), "k", &text, &error), "f:2:8: expected a mapping with the key 'k'");
  SAYS(pl_document_fail(d, pl_node_get(root, "b"), &error, "bad %d", 3), "f:3:8: bad 3");
  SAYS(pl_document_fail(d, NULL, &error, "bad"), "f: bad");
#undef SAYS
  assert_int_equal(integer, 7);
  assert_true(number == 7.0);
  pl_document_destroy(d);
}

static void json_is_strict(void **state) {
  (void)state;
  static const char *const bad[] = {"{a:1}",
                                    "{'a':1}",
                                    "{\"a\":1,}",
                                    "[1,]",
                                    "[1 2]",
                                    "[,1]",
                                    "{\"a\":01}",
                                    "[NaN]",
                                    "[+1]",
                                    "[1.]",
                                    "[.5]",
                                    "[-]",
                                    "[0x1]",
                                    "[tru]",
                                    "[TRUE]",
                                    "[~]",
                                    "{\"a\"}",
                                    "{\"a\" 1}",
                                    "{\"a\":1 \"b\":2}",
                                    "{\"a\":1}{}",
                                    "{\"a\":1} x",
                                    "{\"a\":1}]",
                                    "[\"x]",
                                    "[",
                                    "]",
                                    "{",
                                    "[1]#c",
                                    "--- [1]",
                                    "[1]\n...\n",
                                    "[\"\\x\"]",
                                    "[\"\\ud800\"]",
                                    "[&a 1]",
                                    "[!!int 1]",
                                    "[\"a\nb\"]",
                                    "[\"\t\"]",
                                    "{1:2}",
                                    "[*a]",
                                    "[Infinity]",
                                    "// c\n[1]",
                                    "[1e]",
                                    "[\"\\u12\"]"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuse(bad[i], true, "f:");
}

/* As Python's readers have it: of three the last, in its own mapping alone; too many are refused. */
static void of_repeated_keys_the_last_counts(void **state) {
  (void)state;
  static const char text[] = "a: 1\nb: {a: 5, c: 6}\na: 2\nb: {d: 7, d: 8}\na: 3\n";
  pl_document *document = NULL;
  pl_error error = PL_ERROR_INIT;
  double number;
  assert_int_equal(pl_document_parse_loose("f", text, strlen(text), false, &document, &error), PL_OK);
  const pl_node *root = pl_document_root(document);
  assert_int_equal(pl_node_number(document, root, "a", &number, &error), PL_OK);
  assert_true(number == 3);
  assert_int_equal(pl_node_number(document, pl_node_get(root, "b"), "d", &number, &error), PL_OK);
  assert_true(number == 8 && pl_node_get(pl_node_get(root, "b"), "c") == NULL);
  int lines[4] = {0}, column, n = 0;
  for (const pl_node *key; (key = pl_document_repeated(document, (size_t)n)) != NULL; n++) {
    assert_true(n < 4);
    pl_node_place(key, &lines[n], &column);
  }
  assert_true(n == 4 && lines[0] + lines[1] + lines[2] + lines[3] == 3 + 4 + 4 + 5);
  pl_document_destroy(document);
  char many[2048] = "";
  for (int i = 0; i < 66; i++)
    strcat(many, "a: 1\n"); /* NOLINT: 330 bytes */
  assert_int_equal(pl_document_parse_loose("f", many, strlen(many), false, &document, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "f:2:1: key 'a' occurs twice (first in line 1)");
}

static void bad_documents(void **state) {
  (void)state;
  refuse("", true, "f:1:1: the document is empty");
  refuse(" \n\t", false, "f:1:1: the document is empty");
  refuse("# only a comment\n", false, "f:1:1: the document is empty");
  refuse("{\"a\":1,\n \"a\":2}", true, "f:2:2: key 'a' occurs twice (first in line 1)");
  refuse("a: 1\nb: 2\na: 3\n", false, "f:3:1: key 'a' occurs twice (first in line 1)");
  refuse("[\"\\u0000\"]", true, "f:1:2: a string with a NUL character in it");
  refuse("a: 1\n---\nb: 2\n", false, "f:2:1: more than one document");
  refuse("a: &x 1\nb: *x\n", false, "f:2:5: aliases (*name) are not supported");
  refuse("[a]: 1\n", false, "f:1:1: a key must be a string");
  refuse("? [a]\n: 1\n", false, "f:1:1: a key must be a string");
  refuse("a:\n  - ? a:\t:\n", false, "f:2:5: a key must be a string"); /* on which libfyaml crashes */
  refuse("?", false, "f:1:1: a key must be a string");
  refuse("a: 1\n b: 2\n", false, "f:1:4: ");
  refuse("{\"a\":\n \"\xff\"}", true, "f:2:3: byte 0xff is not UTF-8");
  refuse("%\xff\xfe\na: 1", false, "f:1:2: byte 0xff is not UTF-8");   /* libfyaml would not come back from this one */
  refuse("[\"\xed\xa0\x80\"]", true, "f:1:3: byte 0xed is not UTF-8"); /* a surrogate */
  refuse("[\"\xc0\xaf\"]", true, "f:1:3: byte 0xc0 is not UTF-8");     /* overlong */
  refuse("[\"\xf4\x90\x80\x80\"]", true, "f:1:3: byte 0xf4 is not UTF-8"); /* beyond U+10FFFF */
  refuse("[\"\x01\"]", true, "f:1:3: control character 0x01");
  refuse_bytes("[1]\0", 4, true, "f:1:4: control character 0x00");
  refuse_bytes("[\"\xe2\x82", 4, true, "f:1:3: byte 0xe2 is not UTF-8"); /* cut off */
  refuse_bytes("\n", 1, true, "f:1:1: the document is empty");
}

static void deep_nesting_is_refused(void **state) {
  (void)state;
  char text[2001];
  for (int levels = 60; levels <= 1000; levels += 470) {
    memset(text, '[', (size_t)levels);
    memset(text + levels, ']', (size_t)levels);
    text[2 * levels] = '\0';
    if (levels > 64) {
      refuse(text, true, "f:1:");
      refuse(text, false, "f:1:");
    } else {
      pl_document_destroy(parse(text, true));
    }
  }
}

/* Element i in O(1), duplicates in O(n log n): quadratic code would take minutes here. */
static void large_documents(void **state) {
  (void)state;
  enum { N = 200000 };
  char *text = malloc(N * 24);
  size_t size = 0;
  text[size++] = '{';
  for (int i = 0; i < N; i++)
    size += (size_t)sprintf(text + size, "%s\"key%d\":[%d]", i > 0 ? "," : "", i, i);
  text[size++] = '}';
  pl_document *d = NULL;
  assert_int_equal(pl_document_parse("f", text, size, true, &d, NULL), PL_OK);
  assert_int_equal(pl_node_count(pl_document_root(d)), N);
  for (size_t i = 0; i < N; i++) {
    const char *key;
    double value;
    const pl_node *entry = pl_node_entry(d, pl_document_root(d), i, &key);
    assert_int_equal(pl_node_as_number(d, pl_node_at(entry, 0), &value, NULL), PL_OK);
    assert_true(value == (double)i);
  }
  pl_document_destroy(d);
  free(text);
}

static void files(void **state) {
  (void)state;
  char folder[] = "/tmp/paceline-document-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  pl_document *d = NULL;
  pl_error error = PL_ERROR_INIT;
  snprintf(path, sizeof path, "%s/m.json", folder);
  assert_int_equal(pl_document_load(path, &d, &error), PL_BAD_INPUT);
  assert_null(d);
  assert_non_null(strstr(error.message, "m.json: cannot open: No such file"));
  error = PL_ERROR_INIT;
  assert_int_equal(pl_document_load(folder, &d, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "is a directory"));
  FILE *file = fopen(path, "w");
  fputs("{\"a\": 1}\n", file);
  fclose(file);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_document_load(path, &d, &error), PL_OK);
  assert_string_equal(pl_document_name(d), path);
  assert_true(pl_document_digest(d) == pl_hash_bytes("{\"a\": 1}\n", 9, 0));
  pl_document_destroy(d);
  unlink(path);
  snprintf(path, sizeof path, "%s/m.yaml", folder);
  file = fopen(path, "w");
  fputs("a: 1\n", file);
  fclose(file);
  assert_int_equal(pl_document_load(path, &d, &error), PL_OK);
  pl_document_destroy(d);
  unlink(path);
  rmdir(folder);
}

static void nothing_is_printed(void **state) {
  (void)state;
  int kept = dup(2), pipes[2];
  assert_int_equal(pipe(pipes), 0);
  dup2(pipes[1], 2);
  pl_document *d = NULL;
  (void)pl_document_parse("f", "{\"a\": [1 2", 10, true, &d, NULL);
  (void)pl_document_parse("f", "a: 1\n b: [", 10, false, &d, NULL);
  dup2(kept, 2);
  close(kept);
  close(pipes[1]);
  char byte;
  assert_int_equal(read(pipes[0], &byte, 1), 0);
  close(pipes[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(json_values),        cmocka_unit_test(yaml_values),
      cmocka_unit_test(json_is_strict),     cmocka_unit_test(failures_name_position_key_and_value),
      cmocka_unit_test(bad_documents),      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(large_documents),    cmocka_unit_test(files),
      cmocka_unit_test(nothing_is_printed), cmocka_unit_test(of_repeated_keys_the_last_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
