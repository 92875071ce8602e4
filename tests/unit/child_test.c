/* Work in a process of its own: what it says arrives when it ends well, and one error when it fails, crashes, never
 * ends or wants all memory. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/child.h"

typedef enum ending { ENDS_WELL, FAILS, CRASHES, ENDS_NEVER, WANTS_MEMORY } ending;

static pl_code work(void *context, FILE *out, FILE *notes, pl_error *error) {
  const ending *end = context;
  fputs("half of it", out);
  fputs("a note", notes);
  puts("not for anybody");
  volatile uint64_t rounds = 0;
  switch (*end) {
  case ENDS_WELL:
    return PL_OK;
  case FAILS:
    return pl_fail(error, PL_UNSUPPORTED, "this file is of the future");
  case CRASHES:
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return PL_OK;
  case ENDS_NEVER:
    for (;;)
      rounds++;
  case WANTS_MEMORY:
    while (malloc(64 << 20) != NULL)
      continue;
    return pl_fail_memory(error, "the rows");
  }
  return PL_OK;
}

static pl_code run(ending end, char out[64], char notes[64], pl_error *error) {
  FILE *to = fmemopen(out, 64, "w"), *notes_to = fmemopen(notes, 64, "w");
  const pl_child child = {.path = "no/such/file", .kind = "HDF5", .work = work, .context = &end};
  *error = PL_ERROR_INIT;
  pl_code code = pl_child_run(&child, to, notes_to, error);
  fclose(to);
  fclose(notes_to);
  return code;
}

static void ends_well(void **state) {
  char out[64] = "", notes[64] = "";
  pl_error error;
  (void)state;
  assert_int_equal(run(ENDS_WELL, out, notes, &error), PL_OK);
  assert_string_equal(out, "half of it");
  assert_string_equal(notes, "a note");
}

static void fails(ending end, pl_code code, const char *message) {
  char out[64] = "", notes[64] = "";
  pl_error error;
  assert_int_equal(run(end, out, notes, &error), code);
  assert_int_equal(error.code, code);
  if (strstr(error.message, message) == NULL) fail_msg("said: %s", error.message);
  assert_string_equal(out, "");
  assert_string_equal(notes, "");
}

static void fails_as_the_work_does(void **state) {
  (void)state;
  fails(FAILS, PL_UNSUPPORTED, "this file is of the future");
}

static void crashes(void **state) {
  (void)state;
  fails(CRASHES, PL_BAD_INPUT, "no/such/file: is damaged HDF5: its library crashes on it (signal 11)");
}

static void never_ends(void **state) {
  (void)state;
  fails(ENDS_NEVER, PL_BAD_INPUT, "no/such/file: is damaged HDF5: reading it does not end");
}

static void wants_all_memory(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  skip(); /* perhaps under a sanitizer, whose memory is not limited */
#endif
  fails(WANTS_MEMORY, PL_BAD_INPUT, "is damaged HDF5, or too large for");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ends_well),  cmocka_unit_test(fails_as_the_work_does), cmocka_unit_test(crashes),
      cmocka_unit_test(never_ends), cmocka_unit_test(wants_all_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
