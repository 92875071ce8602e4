/* Whatever the text, the scan says what it says by expat alone: the same elements, attributes and lines, the same
 * devices, and the same message with its line and column where something is wrong. Subjects: every platform file that
 * is here, and copies of small ones in which bytes that mean something to XML, and pieces of XML, were put in, taken
 * out or changed. Also: what Paceline writes is plain, and of the changed copies many are and many are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/digest.h"
#include "netmodel/platform/plain_xml.h"
#include "netmodel/platform/platform_choice.h"
#include "netmodel/platform/platform_scan.h"
#include "tests/support/random.h"

enum { TEXT_BYTES = 1 << 14, DEFAULT_CASES = 30000 };

/* ---- what a scan says ---- */

typedef struct record {
  pl_digest digest; /* of all elements, in order, with their lines */
  uint64_t n_elements;
  pl_code code;
  pl_error error;
  uint32_t n_devices;
} record;

static void begin(void *data, const pl_platform_element *element, uint32_t line) {
  record *r = data;
  pl_digest_u64(&r->digest, line);
  pl_digest_u64(&r->digest, element->word);
  pl_digest_text(&r->digest, element->name);
  for (const char **pair = element->pairs; *pair != NULL; pair++)
    pl_digest_text(&r->digest, *pair);
  for (int a = 0; a < PL_ATTRIBUTE_COUNT; a++) {
    const char *value = pl_platform_value(element, (pl_platform_attribute)a);
    pl_digest_text(&r->digest, value != NULL ? value : "\x01");
  }
  r->n_elements++;
}

static void end(void *data, pl_platform_word word, uint32_t line) {
  record *r = data;
  pl_digest_u64(&r->digest, line);
  pl_digest_u64(&r->digest, ~(uint64_t)word);
}

static void restart(void *data) {
  *(record *)data = (record){0};
}

typedef pl_code scan_function(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                              pl_arena *arena, pl_platform_scan *scan, pl_error *error);

static void scan_into(record *r, scan_function *function, const char *text, size_t size, pl_arena *arena) {
  const pl_platform_sink sink = {begin, end, restart, r};
  pl_platform_scan scan;
  pl_error error = PL_ERROR_INIT;
  restart(r);
  pl_code code = function("file", text, size, &sink, arena, &scan, &error);
  r->code = code;
  r->error = error;
  r->n_devices = scan.n_devices;
  for (uint32_t d = 0; d < scan.n_devices; d++) {
    pl_digest_u64(&r->digest, scan.devices[d].line);
    pl_digest_text(&r->digest, scan.devices[d].type);
    pl_digest_text(&r->digest, scan.devices[d].host != NULL ? scan.devices[d].host : "\x01");
  }
}

static bool is_plain(const char *text, size_t size) {
  pl_plain_xml *reader = malloc(sizeof *reader);
  assert_non_null(reader);
  pl_plain_kind kind = pl_plain_xml_begin(reader, text, size) ? PL_PLAIN_START : PL_PLAIN_NOT;
  while (kind < PL_PLAIN_DONE)
    kind = pl_plain_xml_next(reader);
  free(reader);
  return kind == PL_PLAIN_DONE;
}

/* Both ways, from a copy that ends where the text does, so that a sanitizer sees any reading behind it. */
static void compare(const char *name, const char *given, size_t size, record *seen) {
  record by_expat;
  pl_arena arena;
  char *text = malloc(size > 0 ? size : 1);
  assert_non_null(text);
  memcpy(text, given, size);
  pl_arena_init(&arena, 0);
  scan_into(seen, pl_platform_scan_text, text, size, &arena);
  scan_into(&by_expat, pl_platform_scan_text_by_expat, text, size, &arena);
  if (seen->code != by_expat.code || strcmp(seen->error.message, by_expat.error.message) != 0 ||
      seen->n_elements != by_expat.n_elements || seen->digest.value != by_expat.digest.value ||
      seen->n_devices != by_expat.n_devices) {
    fprintf(stderr, "%.*s\n", (int)(size < 4000 ? size : 4000), text);
    fail_msg("%s: '%s' after %llu elements, by expat '%s' after %llu", name, seen->error.message,
             (unsigned long long)seen->n_elements, by_expat.error.message, (unsigned long long)by_expat.n_elements);
  }
  pl_arena_release(&arena);
  free(text);
}

/* ---- files ---- */

static void test_files(void **state) {
  (void)state;
  static const char *const patterns[] = {"platforms/*.xml", "tests/*/platforms/*.xml", "tests/fuzz/corpus/platform/*"};
  uint32_t n_files = 0, n_plain = 0;
  for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
    glob_t found;
    assert_int_equal(glob(patterns[p], 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++, n_files++) {
      pl_platform_text file;
      pl_error error = PL_ERROR_INIT;
      record seen;
      if (pl_platform_text_read(found.gl_pathv[i], &file, &error) != PL_OK) fail_msg("%s", error.message);
      compare(found.gl_pathv[i], file.text, file.size, &seen);
      n_plain += is_plain(file.text, file.size);
      free(file.text);
    }
    globfree(&found);
  }
  printf("%u files, %u of them plain\n", n_files, n_plain);
  assert_true(n_plain > 20 && n_plain < n_files);
}

/* Every machine that can be made, at a size with pods. */
static void test_made(void **state) {
  (void)state;
  static const char *const choices[] = {"dgx-a100:40", "dgx-h100:3", "dgx-h100:1,dgx-a100:1", "p3.8xlarge:3"};
  for (size_t c = 0; c < sizeof choices / sizeof choices[0]; c++) {
    pl_platform_text made;
    pl_error error = PL_ERROR_INIT;
    record seen;
    if (pl_platform_text_read(choices[c], &made, &error) != PL_OK) fail_msg("%s", error.message);
    compare(choices[c], made.text, made.size, &seen);
    assert_int_equal(seen.code, PL_OK);
    assert_true(seen.n_elements > 30 && is_plain(made.text, made.size));
    free(made.text);
  }
}

/* ---- changed copies ---- */

static const char *const pieces[] = {"<",
                                     ">",
                                     "&",
                                     "&amp;",
                                     "&lt;",
                                     "&unknown;",
                                     "&#65;",
                                     "\"",
                                     "'",
                                     "/",
                                     "=",
                                     " ",
                                     "\n",
                                     "\t",
                                     "\r\n",
                                     "-",
                                     "--",
                                     "-->",
                                     "<!--",
                                     "<!-- a > b -->",
                                     "<!---->",
                                     "<!--->-->",
                                     "<!-- \xc3\xa9 -->",
                                     "<?x?>",
                                     "<![CDATA[ ]]>",
                                     "]]>",
                                     "x",
                                     "</zone>",
                                     "<zone>",
                                     "<zone id='q' routing='Full'/>",
                                     "<router id=\"r\"/>",
                                     "<router id='r' id='s'/>",
                                     "<router id = 'r' ></router >",
                                     "<router id='a\"b'/>",
                                     "<config id='c'/>",
                                     "<host_link id='h' up='u'/>",
                                     " direction=\"UP\"",
                                     " id='again'",
                                     " speed_file=\"x\"",
                                     "\x7f",
                                     "\x01",
                                     "\xc3\xa9",
                                     "\xff",
                                     "</platform>",
                                     "<platform version='4.1'>",
                                     "<!DOCTYPE platform>"};

/* Where a tag or a line begins, more often than elsewhere. */
static size_t choose_place(uint64_t *random, const char *text, size_t size) {
  static const char marks[] = "<>\n\"= ";
  size_t at = random_below(random, (uint32_t)size + 1);
  if (random_below(random, 4) == 0) return at;
  char mark = marks[random_below(random, sizeof marks - 1)];
  const char *found = at < size ? memchr(text + at, mark, size - at) : NULL;
  return found == NULL ? at : (size_t)(found - text) + random_below(random, 2);
}

static size_t replace(char *text, size_t size, size_t at, size_t length, const char *by) {
  size_t more = strlen(by);
  if (at + length > size) length = size - at;
  if (size - length + more > TEXT_BYTES) return size;
  memmove(text + at + more, text + at + length, size - at - length);
  memcpy(text + at, by, more);
  return size - length + more;
}

static size_t change(uint64_t *random, char *text, size_t size) {
  enum { PIECES = sizeof pieces / sizeof pieces[0] };
  size_t at = choose_place(random, text, size);
  uint32_t length = random_below(random, 8), what = random_below(random, 8);
  const char *piece = pieces[random_below(random, PIECES)];
  if (what == 0) return replace(text, size, at, length, "");
  if (what == 1) return replace(text, size, at, 1, piece);
  if (what == 2) return replace(text, size, at, 0, " "); /* often still plain */
  if (what == 3) return replace(text, size, at, 0, "\n<!-- note -->");
  if (what == 4) return replace(text, size, at, 1, "q");    /* another word */
  if (what == 5 && random_below(random, 4) == 0) return at; /* cut off */
  return replace(text, size, at, 0, piece);
}

static void test_changed(void **state) {
  (void)state;
  static const char *const paths[] = {"tests/unit/platforms/two-nodes.xml", "tests/fuzz/corpus/platform/floyd.xml",
                                      "tests/fuzz/corpus/platform/flat.xml", "tests/unit/platforms/fat-tree.xml"};
  enum { PATHS = sizeof paths / sizeof paths[0] };
  uint64_t random = test_seed(1007), n_cases = test_number("PACELINE_CASES", DEFAULT_CASES);
  uint64_t n_plain = 0, n_good = 0, n_both = 0;
  pl_platform_text files[PATHS];
  char text[TEXT_BYTES];
  pl_error error = PL_ERROR_INIT;
  for (int p = 0; p < PATHS; p++)
    assert_int_equal(pl_platform_text_read(paths[p], &files[p], &error), PL_OK);
  for (uint64_t c = 0; c < n_cases; c++) {
    const pl_platform_text *file = &files[c % PATHS];
    size_t size = file->size;
    assert_true(size < TEXT_BYTES);
    memcpy(text, file->text, size);
    for (uint32_t k = random_between(&random, 1, 3); k > 0; k--)
      size = change(&random, text, size);
    record seen;
    compare(paths[c % PATHS], text, size, &seen);
    bool plain = is_plain(text, size), good = seen.code == PL_OK;
    n_plain += plain;
    n_good += good;
    n_both += plain && good;
  }
  printf("%llu cases: %llu plain, %llu good, %llu both\n", (unsigned long long)n_cases, (unsigned long long)n_plain,
         (unsigned long long)n_good, (unsigned long long)n_both);
  assert_true(n_plain > n_cases / 10 && n_plain < n_cases / 2);
  assert_true(n_both > n_cases / 20 && n_plain - n_both > n_cases / 50); /* mistakes in plain files */
  for (int p = 0; p < PATHS; p++)
    free(files[p].text);
}

/* The limits, at them and one above. */
static void test_limits(void **state) {
  (void)state;
  static char text[1 << 16];
  static const char head[] = "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"x\">\n<platform version=\"4.1\">\n";
  for (int depth = PL_PLAIN_DEPTH - 3; depth < PL_PLAIN_DEPTH + 2; depth++) {
    size_t used = (size_t)snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < depth; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "<zone id=\"z%d\" routing=\"Full\">\n", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "<router id=\"r\"/>");
    for (int i = 0; i < depth; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "</zone>");
    used += (size_t)snprintf(text + used, sizeof text - used, "</platform>");
    record seen;
    compare("depth", text, used, &seen);
    assert_int_equal(seen.code, depth < PL_PLAIN_DEPTH - 1 ? PL_OK : PL_BAD_INPUT);
    assert_true(is_plain(text, used) == (depth < PL_PLAIN_DEPTH));
  }
  for (int length = PL_PLAIN_TAG_BYTES - 20; length < PL_PLAIN_TAG_BYTES + 4; length++) {
    size_t used = (size_t)snprintf(text, sizeof text, "%s<zone id=\"", head);
    memset(text + used, 'z', (size_t)length);
    used += (size_t)length;
    used += (size_t)snprintf(text + used, sizeof text - used, "\"></zone></platform>");
    record seen;
    compare("length", text, used, &seen);
    assert_int_equal(seen.code, length <= 4096 ? PL_OK : PL_BAD_INPUT);
    assert_true(is_plain(text, used) == (length + 12 <= PL_PLAIN_TAG_BYTES));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_made),
      cmocka_unit_test(test_changed),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
