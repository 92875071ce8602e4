/* Files under construction: left-overs go, what somebody works on stays, and the place is taken whole. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/system/partial_file.h"

static char folder[] = "/tmp/partial_file_test-XXXXXX";
static char place[64];

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(place, sizeof place, "%s/out.h5", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return rmdir(folder); /* fails if a test left something behind */
}

static int count_files(void) {
  int n = -2;
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  while (readdir(stream) != NULL)
    n++;
  closedir(stream);
  return n;
}

static void put(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int file = open(path, O_CREAT | O_WRONLY, 0666);
  assert_true(file >= 0);
  close(file);
}

static void drop(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(unlink(path), 0);
}

static void takes_the_place(void **state) {
  (void)state;
  pl_partial_file partial;
  assert_int_equal(pl_partial_open(&partial, place), 0);
  assert_int_equal(write(partial.descriptor, "whole", 5), 5);
  assert_int_not_equal(access(place, F_OK), 0);
  assert_int_equal(pl_partial_publish(&partial, place, false), 0);
  assert_int_equal(count_files(), 1);
  assert_int_equal(pl_partial_open(&partial, place), 0);
  assert_int_equal(pl_partial_publish(&partial, place, false), EEXIST);
  assert_int_equal(pl_partial_open(&partial, place), 0);
  assert_int_equal(pl_partial_publish(&partial, place, true), 0);
  assert_int_equal(pl_partial_open(&partial, place), 0);
  pl_partial_remove(&partial);
  pl_partial_remove(&partial);
  assert_int_equal(count_files(), 1);
  unlink(place);
}

/* A child that dies with a file under construction leaves it; while it lives nobody removes it. */
static void left_overs_go(void **state) {
  (void)state;
  int ready[2], end[2];
  assert_int_equal(pipe(ready) | pipe(end), 0);
  pid_t child = fork();
  if (child == 0) {
    pl_partial_file partial;
    char byte = (char)pl_partial_open(&partial, place);
    close(end[1]);
    if (write(ready[1], &byte, 1) == 1 && read(end[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  char byte = 1;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(byte, 0);
  pl_partial_clean(place);
  pl_partial_remove_own(place);
  assert_int_equal(count_files(), 1);
  close(end[1]);
  close(end[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(count_files(), 1);
  pl_partial_file partial;
  assert_int_equal(pl_partial_open(&partial, place), 0);
  assert_int_equal(count_files(), 1);
  pl_partial_remove_own(place);
  assert_int_equal(count_files(), 0);
  pl_partial_remove(&partial);
  close(ready[0]);
  close(ready[1]);
}

/* Only names of just this form, for just this place. */
static void others_stay(void **state) {
  static const char *const names[] = {"out.h5.partial-12-abcde",
                                      "out.h5.partial-12-abcdefg",
                                      "out.h5.partial-x-abcdef",
                                      "out.h5.partial--3-abcdef",
                                      "out2.h5.partial-12-abcdef",
                                      "xout.h5.partial-12-abcdef",
                                      "out.h5",
                                      "out.h5.partial-12"};
  enum { N = sizeof names / sizeof names[0] };
  (void)state;
  for (int i = 0; i < N; i++)
    put(names[i]);
  put("out.h5.partial-12-abcdef");
  pl_partial_clean(place);
  assert_int_equal(count_files(), N);
  for (int i = 0; i < N; i++)
    drop(names[i]);
}

static void a_folder_that_is_not_there(void **state) {
  (void)state;
  pl_partial_file partial;
  assert_int_equal(pl_partial_open(&partial, "/no/such/folder/out.h5"), ENOENT);
  pl_partial_remove(&partial);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_the_place),
      cmocka_unit_test(left_overs_go),
      cmocka_unit_test(others_stay),
      cmocka_unit_test(a_folder_that_is_not_there),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
