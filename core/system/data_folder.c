/* See core/system/data_folder.h. */
#include "core/system/data_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/words.h"

/* The folder of the running program in `path`; "." if the system does not say. */
static void program_folder(char *path, size_t size) {
  ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0) {
    memcpy(path, ".", 2);
    return;
  }
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
}

/* In an order that a build tree and an installation agree about; the last one is named where there is none. */
static const char *find_folder(pl_arena *arena) {
  static const char *const places[] = {"share/paceline", "../share/paceline"};
  const char *environment = getenv("PACELINE_DATA");
  if (environment != NULL && environment[0] != '\0') return environment;
  char program[PATH_MAX];
  program_folder(program, sizeof program);
  const char *path = NULL;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    path = pl_arena_printf(arena, "%s/%s", program, places[i]);
    if (path == NULL || access(path, F_OK) == 0) break;
  }
  return path;
}

const char *pl_data_path(const char *name, pl_arena *arena) {
  const char *folder = find_folder(arena);
  return folder != NULL ? pl_arena_printf(arena, "%s/%s", folder, name) : NULL;
}

pl_code pl_data_find(const char *name, pl_arena *arena, const char **path, pl_error *error) {
  *path = pl_data_path(name, arena);
  if (*path == NULL) return pl_fail_memory(error, "a file name");
  if (access(*path, F_OK) == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: not found; it is among the data that come with Paceline, whose folder (share/paceline of an "
                 "installation) PACELINE_DATA names",
                 *path);
}

static bool is_file(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

static bool ends_in(const char *text, const char *ending) {
  size_t length = strlen(text), tail = strlen(ending);
  return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* "meta-llama/Llama-3.1-8B": an owner and a name, as model hubs have them, where no such folder is. */
static bool is_hub_name(const char *choice) {
  const char *slash = strchr(choice, '/');
  return choice[0] != '.' && choice[0] != '~' && slash != choice && slash[1] != '\0' &&
         strchr(slash + 1, '/') == NULL && access(choice, F_OK) != 0;
}

pl_code pl_data_choose(const char *choice, const char *folder, const char *ending, pl_arena *arena, const char **path,
                       pl_error *error) {
  *path = choice;
  if (choice[0] == '\0' || ends_in(choice, ending) || is_file(choice)) return PL_OK;
  if (strchr(choice, '/') != NULL) {
    if (is_hub_name(choice)) *path = NULL;
    return PL_OK;
  }
  const char *own = pl_data_path(folder, arena);
  *path = own != NULL ? pl_arena_printf(arena, "%s/%s%s", own, choice, ending) : NULL;
  if (*path == NULL) return pl_fail_memory(error, "a file name");
  if (is_file(*path)) return PL_OK;
  *path = access(choice, F_OK) == 0 ? choice : NULL; /* a folder: refused as such */
  return PL_OK;
}

/* Letters and digits alone, small. */
static void squeeze(const char *text, char *to, size_t size) {
  size_t n = 0;
  for (; *text != '\0' && n + 1 < size; text++)
    if (isalnum((unsigned char)*text)) to[n++] = (char)tolower((unsigned char)*text);
  to[n] = '\0';
}

/* The nearest; else the shortest that has it somewhere ("h100", "GPT-3"); -1: none. */
static int nearest_name(const char *const *names, const char *choice) {
  enum { LONGEST = 128, SHORTEST = 2 };
  char own[LONGEST], other[LONGEST];
  const char *slash = strrchr(choice, '/');
  if (slash != NULL) choice = slash + 1;
  int near = pl_words_nearest(names, choice);
  squeeze(choice, own, sizeof own);
  if (near >= 0 || names == NULL || strlen(own) < SHORTEST) return near;
  size_t least = SIZE_MAX;
  for (int i = 0; names[i] != NULL; i++) {
    squeeze(names[i], other, sizeof other);
    if (strstr(other, own) == NULL || strlen(other) >= least) continue;
    least = strlen(other);
    near = i;
  }
  return near;
}

pl_code pl_data_refuse(const char *choice, const char *what, const char *const *names, const char *lists,
                       pl_error *error) {
  int near = nearest_name(names, choice);
  return pl_fail(error, PL_BAD_INPUT, "'%.128s' is neither a file nor %s that comes with Paceline; %s%s%s'%s' lists %s",
                 choice, what, near >= 0 ? "did you mean " : "", near >= 0 ? names[near] : "", near >= 0 ? "? " : "",
                 lists, near >= 0 ? "all" : "them");
}

/* ---- names ---- */

static void add_name(pl_data_names *list, const char *name, pl_arena *arena) {
  if (list->n + 1 >= list->capacity) { /* one more for the NULL */
    size_t capacity = list->capacity ? 2 * list->capacity : 64;
    const char **larger = PL_TAKE(arena, const char *, capacity);
    if (larger == NULL) return;
    if (list->n > 0) memcpy(larger, list->names, list->n * sizeof *larger);
    list->names = larger;
    list->capacity = capacity;
  }
  if (name != NULL) list->names[list->n++] = name;
}

void pl_data_names_add(pl_data_names *list, const char *folder, const char *ending, pl_arena *arena) {
  DIR *stream = opendir(folder);
  size_t tail = strlen(ending);
  if (stream == NULL) return;
  /* Safe in any thread: the stream is this call's own. readdir_r, which cppcheck proposes, is deprecated. */
  /* cppcheck-suppress readdirCalled */
  for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (length > tail && strcmp(entry->d_name + length - tail, ending) == 0)
      add_name(list, pl_arena_printf(arena, "%.*s", (int)(length - tail), entry->d_name), arena);
  }
  closedir(stream);
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void pl_data_names_end(pl_data_names *list, pl_arena *arena) {
  if (list->n > 1) qsort(list->names, list->n, sizeof *list->names, compare_names);
  size_t n = 0;
  for (size_t i = 0; i < list->n; i++)
    if (n == 0 || strcmp(list->names[n - 1], list->names[i]) != 0) list->names[n++] = list->names[i];
  list->n = n;
  if (list->capacity == 0) list->names = PL_TAKE(arena, const char *, list->capacity = 1);
  if (list->names != NULL) list->names[n] = NULL;
}
