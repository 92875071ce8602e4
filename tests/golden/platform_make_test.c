/* `paceline platform make`: every file in platforms/ is what the command recorded in it writes; bad requests; files
 * that cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/make/platform_make.h"

enum { WORDS_MAX = 32, PATH_BYTES = 256, TEXT_BYTES = 4096, REQUEST_BYTES = 8192 };

static char folder[] = "/tmp/paceline_make_XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static char *path_in_folder(const char *name) {
  static char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static uint32_t count_files(void) {
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  uint32_t n = 0;
  while (readdir(dir) != NULL)
    n++;
  closedir(dir);
  return n - 2;
}

static int remove_folder(void **state) {
  (void)state;
  char command[TEXT_BYTES];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, size + 1);
  assert_int_equal(fread(text, 1, size, file), size);
  fclose(file);
  return text;
}

/* Runs "platform make ARGUMENTS" in a child, because argp may exit; returns the exit status, and what it printed on
 * stderr. A file size limit stands for a disk that fills up. */
static int run(const char *arguments, rlim_t file_limit, char message[TEXT_BYTES]) {
  char text[REQUEST_BYTES], *argv[WORDS_MAX] = {"paceline platform make"}, *rest = text, *word;
  int argc = 1, channel[2], status;
  snprintf(text, sizeof text, "%s", arguments);
  while ((word = strsep(&rest, " ")) != NULL && argc < WORDS_MAX - 1)
    if (*word != '\0') argv[argc++] = word;
  assert_int_equal(pipe(channel), 0);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (dup2(channel[1], STDERR_FILENO) < 0 || close(channel[0]) != 0) _exit(99);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {file_limit, file_limit};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
    exit(pl_platform_make_run(argc, argv));
  }
  close(channel[1]);
  ssize_t got, used = 0;
  while ((got = read(channel[0], message + used, (size_t)(TEXT_BYTES - 1 - used))) > 0)
    used += got;
  message[used] = '\0';
  close(channel[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* The arguments recorded in a platform file. */
static void find_command(const char *text, char arguments[TEXT_BYTES]) {
  static const char mark[] = "<prop id=\"made_by\" value=\"paceline platform make ";
  const char *start = strstr(text, mark);
  assert_non_null(start);
  start += strlen(mark);
  size_t length = strcspn(start, "\"");
  assert_true(length < TEXT_BYTES);
  memcpy(arguments, start, length);
  arguments[length] = '\0';
}

static void test_files_are_what_make_writes(void **state) {
  (void)state;
  DIR *dir = opendir("platforms");
  assert_non_null(dir);
  uint32_t n_files = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (length < 4 || strcmp(entry->d_name + length - 4, ".xml") != 0) continue;
    char path[TEXT_BYTES], arguments[TEXT_BYTES], request[REQUEST_BYTES], message[TEXT_BYTES];
    snprintf(path, sizeof path, "platforms/%s", entry->d_name);
    char *committed = read_file(path);
    find_command(committed, arguments);
    snprintf(request, sizeof request, "%s -o %s --force", arguments, path_in_folder("made.xml"));
    assert_int_equal(run(request, RLIM_INFINITY, message), 0);
    char *made = read_file(path_in_folder("made.xml"));
    if (strcmp(made, committed) != 0)
      fail_msg("%s differs from what 'paceline platform make %s' writes", path, arguments);
    free(committed);
    free(made);
    n_files++;
  }
  closedir(dir);
  assert_int_equal(unlink(path_in_folder("made.xml")), 0);
  assert_true(n_files >= 12);
}

static void test_bad_requests(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *says;
  } cases[] = {
      {"", "which machine"},
      {"dgx-x", "'dgx-x' is not a machine; known are dgx-1v"},
      {"dgx-a100 --nodes 0", "--nodes"},
      {"dgx-a100 --nodes many", "many"},
      {"dgx-a100 --nodes -3", "-3"},
      {"dgx-a100 --nodes 99999999999999999999", "--nodes"},
      {"dgx-a100 --nodes 65536 --pod-nodes 1", "65536 pods"},
      {"dgx-a100 --gpus-per-node 0", "--gpus-per-node: 0 is out of range: 1 to 72"},
      {"dgx-a100 --gpus-per-node two", "--gpus-per-node: 'two' is not a whole number"},
      {"dgx-a100 --gpus-per-node 9", "--gpus-per-node 9: dgx-a100 has 8 GPUs"},
      {"dgx-1v:1,p3.8xlarge:1 --gpus-per-node 5", "--gpus-per-node 5: p3.8xlarge has 4 GPUs"},
      {"dgx-a100 --nodes 4 --fabric torus", "torus"},
      {"dgx-a100 --nodes 64 --pod-nodes 0", "--pod-nodes"},
      {"dgx-a100 --nodes 64 --oversubscription 0.5", "0.5"},
      {"dgx-a100 --nodes 64 --oversubscription nan", "nan"},
      {"dgx-a100 --nodes 4 --oversubscription 2", "one pod of 20"},
      {"dgx-a100 --nodes 4 --nic-rate 200", "--nic-rate 200"},
      {"dgx-a100 --nodes 4 --nic-rate 200Gb", "200Gb"},
      {"dgx-a100 --nodes 4 --transport socket --delay 3s", "--delay 3s: must be from 0 to 2s"},
      {"dgx-a100 --nodes 4 --transport socket --delay 10", "--delay 10"},
      {"dgx-a100 --nodes 4 --delay 10ms", "--delay 10ms: collectives over distant InfiniBand"},
      {"dgx-a100 --sockets maybe", "--sockets maybe: must be always, never or auto"},
      {"dgx-a100 --device A100", "--device A100 is unknown; known are TitanXp"},
      {"p3.8xlarge --nodes 4 --pod-nodes 2", "no pods"},
      {"p3.8xlarge --nodes 4 --oversubscription 2", "no uplinks"},
      {"p3.8xlarge:3,g4dn.12xlarge", "lacks a count"},
      {"p3.8xlarge:3,g4dn.12xlarge:1 --nodes 4", "already has counts"},
      {"p3.8xlarge:0,g4dn.12xlarge:1", "nodes of p3.8xlarge: 0"},
      {"dgx-1v:1,dgx-2:1 --fabric rail", "machines of one kind"},
      {"hc1 --nodes 2", "no network card"},
      {"dgx-a100 dgx-h100", "one KIND only"},
      {"dgx-a100 --colour red", "colour"},
      {"dgx-a100 -o /tmp", "is a directory"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char request[REQUEST_BYTES], message[TEXT_BYTES];
    snprintf(request, sizeof request, "%s%s%s", cases[i].arguments, strstr(cases[i].arguments, "-o ") ? "" : " -o ",
             strstr(cases[i].arguments, "-o ") ? "" : path_in_folder("bad.xml"));
    int status = run(request, RLIM_INFINITY, message);
    if (status != 2 || strstr(message, cases[i].says) == NULL)
      fail_msg("'%s' ended with %d and said: %s", cases[i].arguments, status, message);
    assert_int_equal(count_files(), 0);
  }
}

/* Made with these arguments; the caller frees the text. */
static char *make(const char *arguments) {
  char request[REQUEST_BYTES], message[TEXT_BYTES];
  snprintf(request, sizeof request, "%s -o %s", arguments, path_in_folder("cut.xml"));
  if (run(request, RLIM_INFINITY, message) != 0) fail_msg("'%s' said: %s", arguments, message);
  char *text = read_file(path_in_folder("cut.xml"));
  assert_int_equal(unlink(path_in_folder("cut.xml")), 0);
  return text;
}

/* Behind the header comment, which tells which GPUs are left out. */
static char *body_of(char *text) {
  char *body = strstr(text, "<platform ");
  assert_non_null(body);
  return body;
}

static uint32_t count(const char *text, const char *word) {
  uint32_t n = 0;
  for (; (text = strstr(text, word)) != NULL; text += strlen(word))
    n++;
  return n;
}

/* No GPU from the n-th on: neither the host nor its NVLinks to anybody. */
static void check_gone(const char *cut, uint32_t n, uint32_t n_gpus) {
  char name[32];
  for (uint32_t gone = n; gone < n_gpus; gone++) {
    snprintf(name, sizeof name, "\"n3g%u\"", gone);
    assert_null(strstr(cut, name));
    for (uint32_t peer = 0; peer < n_gpus; peer++) {
      snprintf(name, sizeof name, "\"n3nv%u-%u\"", peer < gone ? peer : gone, peer < gone ? gone : peer);
      assert_null(strstr(cut, name));
    }
  }
}

/* Every line is one of the whole machine's file, but for the recorded command and for pairs whose relay is gone. */
static uint32_t count_new_lines(char *cut, const char *whole) {
  uint32_t n = 0;
  for (char *line; (line = strsep(&cut, "\n")) != NULL;)
    n += strstr(whole, line) == NULL && strstr(line, "<route ") == NULL;
  return n;
}

static void test_first_gpus_of_each_node(void **state) {
  (void)state;
  static const char *const kinds[] = {"dgx-1v", "dgx-2", "dgx-a100", "hc2"};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    char arguments[REQUEST_BYTES], recorded[TEXT_BYTES];
    snprintf(arguments, sizeof arguments, "%s --nodes 6 --fabric fat-tree --pod-nodes 4", kinds[k]);
    char *whole = make(arguments);
    uint32_t n_gpus = count(body_of(whole), "<host id=\"n3g");
    for (uint32_t n = 1; n <= n_gpus; n++) {
      snprintf(arguments, sizeof arguments, "%s --nodes 6 --gpus-per-node %u --fabric fat-tree --pod-nodes 4", kinds[k],
               n);
      char *cut = make(arguments);
      find_command(cut, recorded);
      assert_string_equal(recorded, arguments);
      assert_int_equal(count(body_of(cut), "<prop id=\"device\""), 6 * n);
      assert_int_equal(count(body_of(cut), "<prop id=\"cpu\""), 6 * 2); /* sockets stay, with or without GPUs */
      check_gone(body_of(cut), n, n_gpus);
      assert_ptr_equal(strstr(strstr(cut, "<!--") + 4, "--"), strstr(cut, "-->")); /* XML: no -- in a comment */
      assert_int_equal(count_new_lines(body_of(cut), whole), 1);                   /* takes the text apart */
      free(cut);
    }
    free(whole);
  }
}

static void test_existing_file(void **state) {
  (void)state;
  char request[REQUEST_BYTES], message[TEXT_BYTES];
  FILE *file = fopen(path_in_folder("kept.xml"), "w");
  fputs("kept", file);
  fclose(file);
  snprintf(request, sizeof request, "dgx-1v -o %s", path_in_folder("kept.xml"));
  assert_int_equal(run(request, RLIM_INFINITY, message), 2);
  assert_non_null(strstr(message, "exists; --force replaces it"));
  char *text = read_file(path_in_folder("kept.xml"));
  assert_string_equal(text, "kept");
  free(text);
  /* Through a symbolic link the file behind it is replaced and the link stays. */
  assert_int_equal(symlink("kept.xml", path_in_folder("link.xml")), 0);
  snprintf(request, sizeof request, "dgx-1v --force -o %s", path_in_folder("link.xml"));
  assert_int_equal(run(request, RLIM_INFINITY, message), 0);
  struct stat status;
  assert_int_equal(lstat(path_in_folder("link.xml"), &status), 0);
  assert_true(S_ISLNK(status.st_mode));
  text = read_file(path_in_folder("kept.xml"));
  assert_non_null(strstr(text, "dgx-1v"));
  free(text);
  assert_int_equal(unlink(path_in_folder("kept.xml")), 0);
  assert_int_equal(unlink(path_in_folder("link.xml")), 0);
}

/* The disk fills up at any point: status 1, one message, no file, nothing left over; an older file is untouched. */
static void test_full_disk(void **state) {
  (void)state;
  static const rlim_t limits[] = {0, 1, 4096, 9000};
  char request[REQUEST_BYTES], message[TEXT_BYTES];
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    snprintf(request, sizeof request, "dgx-1v -o %s", path_in_folder("new.xml"));
    assert_int_equal(run(request, limits[i], message), 1);
    assert_non_null(strstr(message, "cannot write"));
    assert_int_equal(count_files(), 0);
  }
  FILE *file = fopen(path_in_folder("old.xml"), "w");
  fputs("old", file);
  fclose(file);
  snprintf(request, sizeof request, "dgx-1v --force -o %s", path_in_folder("old.xml"));
  assert_int_equal(run(request, 4096, message), 1);
  assert_int_equal(count_files(), 1);
  char *text = read_file(path_in_folder("old.xml"));
  assert_string_equal(text, "old");
  free(text);
  assert_int_equal(unlink(path_in_folder("old.xml")), 0);
  snprintf(request, sizeof request, "dgx-1v -o %s", "/dev/full");
  assert_int_equal(run(request, RLIM_INFINITY, message), 1);
  assert_non_null(strstr(message, "No space left"));
  snprintf(request, sizeof request, "dgx-1v -o %s", path_in_folder("missing/x.xml"));
  assert_int_equal(run(request, RLIM_INFINITY, message), 2);
}

/* A pipe (or a device) is written to and stays what it is, even with --force. */
static void test_pipe(void **state) {
  (void)state;
  char request[REQUEST_BYTES], message[TEXT_BYTES], start[6] = "";
  assert_int_equal(mkfifo(path_in_folder("pipe"), 0600), 0);
  int reader = open(path_in_folder("pipe"), O_RDWR | O_NONBLOCK); /* holds the whole file: 64 KiB */
  assert_true(reader >= 0);
  snprintf(request, sizeof request, "dgx-1v --force -o %s", path_in_folder("pipe"));
  assert_int_equal(run(request, RLIM_INFINITY, message), 0);
  assert_int_equal(read(reader, start, 5), 5);
  assert_string_equal(start, "<?xml");
  close(reader);
  struct stat status;
  assert_true(stat(path_in_folder("pipe"), &status) == 0 && S_ISFIFO(status.st_mode));
  assert_int_equal(unlink(path_in_folder("pipe")), 0);
}

/* Sockets by default up to 256 nodes; both ends of the limit, and asking for the opposite. The file says which. */
static void test_sockets(void **state) {
  (void)state;
  static const struct {
    const char *arguments;
    uint32_t n_sockets;
  } cases[] = {{"p3.8xlarge --nodes 256", 256},
               {"p3.8xlarge --nodes 257", 0},
               {"p3.8xlarge --nodes 257 --sockets auto", 0},
               {"p3.8xlarge --nodes 257 --sockets always", 257},
               {"dgx-a100 --nodes 2 --sockets never", 0},
               {"dgx-a100 --nodes 2", 4},
               {"hc1", 2},
               {"p3.8xlarge:2,g4dn.12xlarge:3", 5}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *text = make(cases[i].arguments);
    assert_int_equal(count(text, "<prop id=\"cpu\""), cases[i].n_sockets);
    assert_int_equal(count(text, "CPU sockets are hosts"), cases[i].n_sockets > 0);
    assert_int_equal(count(text, "are left out (option sockets is"), cases[i].n_sockets == 0);
    assert_int_equal(count(text, "qpi\" bandwidth"),
                     cases[i].n_sockets > 0 && cases[i].arguments[0] != 'p' ? cases[i].n_sockets / 2 : 0);
    free(text);
  }
}

/* On rails a socket leaves by the leaf of its NIC; the socket without a NIC of its own goes over the bus. */
static void test_ways_out_of_sockets(void **state) {
  (void)state;
  char *text = make("dgx-a100 --nodes 4 --pod-nodes 2");
  assert_int_equal(count(text, "<route src=\"n3cpu1\" dst=\"n3spine\"><link_ctn id=\"n3psw2\" direction=\"DOWN\"/>"
                               "<link_ctn id=\"n3nic4\" direction=\"UP\"/><link_ctn id=\"p1leaf4\" direction=\"UP\"/>"
                               "</route>"),
                   1);
  free(text);
  text = make("hc2");
  assert_int_equal(count(text, "<route src=\"n1cpu1\" dst=\"n1local\"><link_ctn id=\"n1qpi\" direction=\"DOWN\"/>"
                               "<link_ctn id=\"n1psw1\" direction=\"DOWN\"/><link_ctn id=\"n1nic0\" direction=\"UP\"/>"
                               "</route>"),
                   1);
  free(text);
}

/* Without its sockets a machine keeps every wire that GPUs use: the uplinks and the bus of HC1. */
static void test_wires_without_sockets(void **state) {
  (void)state;
  char *text = make("hc1 --sockets never");
  assert_int_equal(count(text, "<link id=\"n0psw"), 4);
  assert_int_equal(count(text, "<link id=\"n0qpi"), 1);
  assert_non_null(strstr(text, "made_by\" value=\"paceline platform make hc1 --sockets never\""));
  free(text);
  text = make("dgx-1v --sockets never");
  assert_int_equal(count(text, "<link id=\"n0psw"), 0);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files_are_what_make_writes),
      cmocka_unit_test(test_sockets),
      cmocka_unit_test(test_ways_out_of_sockets),
      cmocka_unit_test(test_wires_without_sockets),
      cmocka_unit_test(test_bad_requests),
      cmocka_unit_test(test_first_gpus_of_each_node),
      cmocka_unit_test(test_existing_file),
      cmocka_unit_test(test_full_disk),
      cmocka_unit_test(test_pipe),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
