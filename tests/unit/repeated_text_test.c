/* A node's text for other nodes: every name of the node becomes theirs, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/make/repeated_text.h"

static void check(const char *text, uint32_t first, uint32_t n, const char *expected) {
  char *written = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&written, &size);
  assert_non_null(stream);
  assert_true(pl_repeated_text_write(text, strlen(text), first, n, stream));
  assert_int_equal(fclose(stream), 0);
  assert_string_equal(written, expected);
  free(written);
}

static void names_follow_the_node(void **state) {
  (void)state;
  check("<zone id=\"n9\"><route src=\"n9g0\" dst=\"n9local\"/></zone>\n", 9, 3,
        "<zone id=\"n9\"><route src=\"n9g0\" dst=\"n9local\"/></zone>\n"
        "<zone id=\"n10\"><route src=\"n10g0\" dst=\"n10local\"/></zone>\n"
        "<zone id=\"n11\"><route src=\"n11g0\" dst=\"n11local\"/></zone>\n");
  check("<host id=\"n0g0\"/>", 0, 1, "<host id=\"n0g0\"/>");
}

static void what_is_no_name_stays(void **state) {
  (void)state;
  /* Another node's, a value, the switch of a pod, text between the tags. */
  check("<a id=\"n1\" src=\"n12g1\"/><prop id=\"machine\" value=\"n1-standard\"/><b id=\"p1leaf1\"/> n1 \"n1\"", 1, 2,
        "<a id=\"n1\" src=\"n12g1\"/><prop id=\"machine\" value=\"n1-standard\"/><b id=\"p1leaf1\"/> n1 \"n1\""
        "<a id=\"n2\" src=\"n12g1\"/><prop id=\"machine\" value=\"n1-standard\"/><b id=\"p1leaf1\"/> n1 \"n1\"");
  check("none", 3, 2, "nonenone");
  check("", 3, 2, "");
}

/* The room is for names of any length. */
static void names_may_grow(void **state) {
  (void)state;
  char text[2001] = "", expected[8000] = "";
  for (int i = 0; i < 200; i++)
    memcpy(text + 8 * i, " a=\"n7\" ", 8);
  check(text, 7, 1, text);
  char *written = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&written, &size);
  assert_true(pl_repeated_text_write(text, strlen(text), 7, 65530, stream));
  assert_int_equal(fclose(stream), 0);
  for (int i = 0; i < 200; i++)
    strcat(expected, " a=\"n65536\" ");
  assert_string_equal(written + size - strlen(expected), expected);
  free(written);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_follow_the_node), cmocka_unit_test(what_is_no_name_stays),
                                     cmocka_unit_test(names_may_grow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
