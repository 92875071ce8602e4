/* Nothing that SimGrid does to a broken platform reaches the caller: copies of a good file with a few words changed are
 * loaded, checked and destroyed in children; each must end by itself, silent, with success or with one message. And
 * what the tree of zones takes without SimGrid, SimGrid takes too, as the same platform. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "tests/support/random.h"

enum { TEXT_BYTES = 1 << 16, DEFAULT_CASES = 400 };

/* Where words begin and end: everything between quotes, angle brackets, blanks and signs. */
static size_t find_words(const char *text, size_t begins[], size_t ends[], size_t limit) {
  static const char separators[] = "<>/=\"' \t\n?!";
  size_t n = 0, at = 0, size = strlen(text);
  while (at < size && n < limit) {
    at += strspn(text + at, separators);
    size_t length = strcspn(text + at, separators);
    if (length == 0) break;
    begins[n] = at;
    ends[n++] = at + length;
    at += length;
  }
  return n;
}

/* One word replaced by another of the file, by a troublesome one, or an element taken out or doubled. */
static void mutate(char *text, uint64_t *random) {
  static const char *const trouble[] = {"",
                                        "0",
                                        "-1",
                                        "nan",
                                        "inf",
                                        "1e400",
                                        "NONE",
                                        "DOWN",
                                        "Dijkstra",
                                        "DijkstraCache",
                                        "Cluster",
                                        "None",
                                        "Empty",
                                        "Star",
                                        "Wifi",
                                        "cluster",
                                        "zone",
                                        "config",
                                        "backbone",
                                        "cabinet",
                                        "peer",
                                        "storage",
                                        "4.0",
                                        "5",
                                        "0x10",
                                        "%s%n",
                                        "A",
                                        "&amp;",
                                        "WIFI",
                                        "SPLITDUPLEX",
                                        "65536",
                                        "Full",
                                        "Floyd",
                                        "YES",
                                        "no",
                                        "TORUS",
                                        "DRAGONFLY",
                                        "FAT_TREE",
                                        "0-3",
                                        "3-0",
                                        "2,2",
                                        "2,1;2,1;2,1;1",
                                        "2;4,4;1,2;1,2",
                                        "0-99999999",
                                        "99999999"};
  static size_t const n_trouble = sizeof trouble / sizeof trouble[0];
  enum { WORDS_MAX = 4096 };
  size_t *begins = malloc(WORDS_MAX * sizeof *begins), *ends = malloc(WORDS_MAX * sizeof *ends);
  char *copy = strdup(text);
  assert_true(begins != NULL && ends != NULL && copy != NULL);
  size_t n = find_words(text, begins, ends, WORDS_MAX);
  /* Mostly values: other words hardly ever leave well-formed XML behind. */
  size_t to = random_below(random, (uint32_t)n);
  for (int again = 0; again < 20 && (begins[to] == 0 || text[begins[to] - 1] != '"'); again++)
    to = random_below(random, (uint32_t)n);
  size_t from = random_below(random, (uint32_t)n);
  uint32_t how = random_below(random, 8);
  if (how < 6) {
    const char *word = how < 3 ? trouble[random_below(random, (uint32_t)n_trouble)] : copy + begins[from];
    int length = how < 3 ? (int)strlen(word) : (int)(ends[from] - begins[from]);
    snprintf(text, TEXT_BYTES, "%.*s%.*s%s", (int)begins[to], copy, length, word, copy + ends[to]);
  } else { /* a line out, or twice */
    char *line = copy + begins[to], *end;
    while (line > copy && line[-1] != '\n')
      line--;
    end = strchr(line, '\n');
    if (end != NULL)
      snprintf(text, TEXT_BYTES, "%.*s%s", (int)(how == 6 ? line - copy : end + 1 - copy), copy,
               how == 6 ? end + 1 : line);
  }
  free(begins);
  free(ends);
  free(copy);
}

static pl_code check_same(const char *path, const pl_platform *platform, pl_error *error) {
  pl_platform *other = NULL;
  pl_code code = pl_platform_load_by_simgrid(path, "tests/unit/platforms/devices", &other, error);
  if (code != PL_OK)
    puts("two loaders: SimGrid refuses it");
  else
    code = pl_platform_check_same(platform, other, error);
  pl_platform_destroy(other);
  return code;
}

static void load_in_child(const char *path, int report) {
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  signal(SIGSEGV, SIG_DFL); /* not to cmocka */
  signal(SIGFPE, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
  signal(SIGILL, SIG_DFL);
  if (dup2(report, 1) < 0 || dup2(report, 2) < 0) _exit(3); /* whatever is printed is seen by the parent */
  pl_code code = pl_platform_load(path, "tests/unit/platforms/devices", &platform, &error);
  if (code == PL_OK) code = pl_platform_check(platform, &error);
  if (code == PL_OK && !pl_platform_is_from_simgrid(platform)) code = check_same(path, platform, &error);
  bool has_message = error.message[0] != '\0';
  pl_platform_destroy(platform);
  if (has_message && strstr(error.message, "loaders") != NULL) puts(error.message);
  fflush(stdout);
  _exit(code != error.code || has_message != (code != PL_OK) ? 4 : code == PL_OK ? 0 : 1);
}

static void try_file(const char *base) {
  uint64_t seed = test_seed(20260801);
  const char *wish = getenv("PACELINE_CASES");
  int n_cases = wish != NULL ? atoi(wish) : DEFAULT_CASES, n_good = 0;
  char *good = calloc(1, TEXT_BYTES), *text = calloc(1, TEXT_BYTES);
  FILE *file = fopen(base, "r");
  assert_true(file != NULL && good != NULL && text != NULL);
  assert_true(fread(good, 1, TEXT_BYTES - 1, file) > 0);
  fclose(file);
  char path[] = "/tmp/paceline_load_XXXXXX.xml", printed[256];
  close(mkstemps(path, 4));
  uint64_t random = seed;
  for (int i = 0; i < n_cases; i++) {
    memcpy(text, good, TEXT_BYTES);
    for (uint32_t k = 1 + random_below(&random, 3); k > 0; k--)
      mutate(text, &random);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    int channel[2], status;
    assert_int_equal(pipe(channel), 0);
    fflush(NULL); /* or the child prints what is left in our buffers once more */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(20);
      load_in_child(path, channel[1]);
    }
    close(channel[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    ssize_t n_printed = read(channel[0], printed, sizeof printed - 1);
    printed[n_printed > 0 ? n_printed : 0] = '\0';
    close(channel[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1 || n_printed > 0)
      fail_msg("case %d of seed %llu: status 0x%x, printed '%s'; the file is %s", i, (unsigned long long)seed,
               (unsigned)status, printed, path);
    n_good += WEXITSTATUS(status) == 0;
  }
  print_message("%d files: %d good, %d refused\n", n_cases, n_good, n_cases - n_good);
  assert_true(n_good > 0 && n_good < n_cases);
  unlink(path);
  free(good);
  free(text);
}

static void test_zones(void **state) {
  (void)state;
  try_file("tests/unit/platforms/two-nodes.xml");
}

static void test_cluster(void **state) {
  (void)state;
  try_file("tests/unit/platforms/fat-tree.xml");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_zones), cmocka_unit_test(test_cluster)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
