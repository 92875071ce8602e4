/* Output files are there whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/system/output_file.h"

static char folder[] = "/tmp/output_file_test-XXXXXX";

enum { PATH_BYTES = 256 };

static const char *in_folder(const char *name, char path[PATH_BYTES]) {
  snprintf(path, PATH_BYTES, "%s/%s", folder, name);
  return path;
}

static int set_up(void **state) {
  (void)state;
  return mkdtemp(folder) != NULL ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  return rmdir(folder); /* fails if a test left something behind */
}

static uint32_t count_files(void) {
  uint32_t n = 0;
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  while (readdir(stream) != NULL)
    n++;
  closedir(stream);
  return n - 2;
}

static void put(const char *path, const char *text) {
  FILE *stream = fopen(path, "w");
  assert_non_null(stream);
  fputs(text, stream);
  fclose(stream);
}

static void expect_content(const char *path, const char *expected) {
  char text[64] = "";
  FILE *stream = fopen(path, "r");
  assert_non_null(stream);
  fgets(text, sizeof text, stream);
  fclose(stream);
  assert_string_equal(text, expected);
}

/* Writes "new" with `force` and ends with `code`; the code that comes of it. */
static pl_code write_file(const char *path, bool force, pl_code code, pl_error *error) {
  pl_output_file file;
  pl_code opened = pl_output_file_open(&file, path, force, error);
  if (opened != PL_OK) {
    assert_null(file.stream);
    assert_int_equal(pl_output_file_close(&file, opened, error), opened);
    return opened;
  }
  fputs("new", file.stream);
  return pl_output_file_close(&file, code, error);
}

static void test_new_file(void **state) {
  (void)state;
  char path[PATH_BYTES];
  pl_error error = PL_ERROR_INIT;
  in_folder("a.csv", path);
  assert_int_equal(pl_output_file_check(path, false, &error), PL_OK);
  assert_int_equal(count_files(), 0);
  mode_t mask = umask(027);
  assert_int_equal(write_file(path, false, PL_OK, &error), PL_OK);
  umask(mask);
  expect_content(path, "new");
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  assert_int_equal(count_files(), 1);
  unlink(path);
}

/* While it is being written, and when that fails, the old file is what it was. */
static void test_old_file(void **state) {
  (void)state;
  char path[PATH_BYTES];
  pl_error error = PL_ERROR_INIT;
  put(in_folder("a.csv", path), "old");
  assert_int_equal(write_file(path, false, PL_OK, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "a.csv exists; --force replaces it"));
  assert_int_equal(write_file(path, true, PL_IO, &error), PL_IO);
  expect_content(path, "old");
  assert_int_equal(count_files(), 1);
  pl_output_file file;
  assert_int_equal(pl_output_file_open(&file, path, true, &error), PL_OK);
  fputs("half", file.stream);
  expect_content(path, "old");
  assert_int_equal(pl_output_file_close(&file, PL_OK, &error), PL_OK);
  expect_content(path, "half");
  unlink(path);
}

/* A file that appears while ours is written is somebody else's. */
static void test_taken_meanwhile(void **state) {
  (void)state;
  char path[PATH_BYTES];
  pl_error error = PL_ERROR_INIT;
  pl_output_file file;
  assert_int_equal(pl_output_file_open(&file, in_folder("a.csv", path), false, &error), PL_OK);
  put(path, "theirs");
  assert_int_equal(pl_output_file_close(&file, PL_OK, &error), PL_BAD_INPUT);
  expect_content(path, "theirs");
  assert_int_equal(count_files(), 1);
  unlink(path);
}

static void test_link(void **state) {
  (void)state;
  char path[PATH_BYTES], link_path[PATH_BYTES], there[PATH_BYTES];
  pl_error error = PL_ERROR_INIT;
  put(in_folder("a.csv", path), "old");
  assert_int_equal(symlink("a.csv", in_folder("link", link_path)), 0);
  assert_int_equal(symlink("nowhere", in_folder("dangling", there)), 0);
  assert_int_equal(pl_output_file_check(there, false, &error), PL_BAD_INPUT);
  assert_int_equal(write_file(link_path, true, PL_OK, &error), PL_OK);
  struct stat status;
  assert_int_equal(lstat(link_path, &status), 0);
  assert_true(S_ISLNK(status.st_mode));
  expect_content(path, "new");
  unlink(path);
  unlink(link_path);
  unlink(there);
}

static void test_device(void **state) {
  (void)state;
  char path[PATH_BYTES], start[4] = "";
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(write_file("/dev/null", false, PL_OK, &error), PL_OK);
  assert_int_equal(write_file("/dev/full", false, PL_OK, &error), PL_IO);
  assert_string_equal(error.message, "cannot write /dev/full: No space left on device");
  assert_int_equal(mkfifo(in_folder("pipe", path), 0600), 0);
  int reader = open(path, O_RDWR | O_NONBLOCK);
  assert_true(reader >= 0);
  assert_int_equal(write_file(path, true, PL_OK, &error), PL_OK);
  assert_int_equal(read(reader, start, 3), 3);
  assert_string_equal(start, "new");
  close(reader);
  unlink(path);
}

static void test_impossible_names(void **state) {
  (void)state;
  char path[PATH_BYTES], below[PATH_BYTES];
  put(in_folder("a.csv", path), "old");
  in_folder("a.csv/b.csv", below);
  const char *const names[] = {"", folder, "/nosuch/folder/a.csv", below};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_output_file_check(names[i], true, &error), PL_BAD_INPUT);
    assert_int_equal(write_file(names[i], true, PL_OK, &error), PL_BAD_INPUT);
  }
  assert_int_equal(count_files(), 1);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_new_file), cmocka_unit_test(test_old_file), cmocka_unit_test(test_taken_meanwhile),
      cmocka_unit_test(test_link),     cmocka_unit_test(test_device),   cmocka_unit_test(test_impossible_names),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
