/* See core/system/partial_file.h. */
#include "core/system/partial_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark[] = ".partial-";
enum { RANDOM_LETTERS = 6 };

/* ---- left-overs ---- */

/* Whether `name` is that of a file under construction for `base`; of process `wanted` (0 = of any). */
static bool is_partial_of(const char *name, const char *base, long wanted) {
  size_t length = strlen(base);
  if (strncmp(name, base, length) != 0 || strncmp(name + length, mark, sizeof mark - 1) != 0) return false;
  char *end;
  long process = strtol(name + length + sizeof mark - 1, &end, 10);
  return process > 0 && *end == '-' && strlen(end + 1) == RANDOM_LETTERS && (wanted == 0 || process == wanted);
}

/* Unless somebody holds it. The lock is kept until it is gone: who has just made it waits for that (see lock()). */
static void remove_left_over(int folder, const char *name) {
  int file = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
  close(file);
}

/* Folder of `place`; the caller frees it. */
static char *folder_of(const char *place) {
  const char *slash = strrchr(place, '/');
  return slash == NULL ? strdup(".") : strndup(place, slash == place ? 1 : (size_t)(slash - place));
}

static void remove_beside(const char *place, long process) {
  const char *slash = strrchr(place, '/'), *base = slash != NULL ? slash + 1 : place;
  char *folder = folder_of(place);
  DIR *stream = folder != NULL ? opendir(folder) : NULL;
  free(folder);
  if (stream == NULL) return;
  for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
    if (!is_partial_of(entry->d_name, base, process)) continue;
    if (process != 0) {
      unlinkat(dirfd(stream), entry->d_name, 0);
    } else {
      remove_left_over(dirfd(stream), entry->d_name);
    }
  }
  closedir(stream);
}

void pl_partial_clean(const char *place) {
  remove_beside(place, 0);
}

void pl_partial_remove_own(const char *place) {
  remove_beside(place, (long)getpid());
}

/* ---- one's own ---- */

/* mkstemp makes private files; a result has the rights that any new file has. */
static int give_rights(int descriptor) {
  mode_t mask = umask(0);
  umask(mask);
  return fchmod(descriptor, 0666 & ~mask) == 0 ? 0 : errno;
}

/* Locks the file; false if somebody took it for a left-over before that. A file system without locks has no left-overs
 * either: nobody can tell them. */
static bool lock(int descriptor) {
  struct stat status;
  flock(descriptor, LOCK_EX);
  return fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

static size_t name_bytes(const char *place) {
  return strlen(place) + sizeof mark + 32;
}

static int create(pl_partial_file *partial, const char *place) {
  size_t bytes = name_bytes(place);
  partial->name = malloc(bytes);
  if (partial->name == NULL) return ENOMEM;
  do {
    snprintf(partial->name, bytes, "%s%s%ld-XXXXXX", place, mark, (long)getpid());
    partial->descriptor = mkostemp(partial->name, O_CLOEXEC);
    if (partial->descriptor < 0) return errno;
  } while (!lock(partial->descriptor) && close(partial->descriptor) == 0);
  return give_rights(partial->descriptor);
}

int pl_partial_open(pl_partial_file *partial, const char *place) {
  *partial = (pl_partial_file){.descriptor = -1};
  pl_partial_clean(place);
  int failed = create(partial, place);
  if (failed == 0) return 0;
  if (partial->descriptor >= 0) unlink(partial->name);
  if (partial->descriptor >= 0) close(partial->descriptor);
  free(partial->name);
  *partial = (pl_partial_file){.descriptor = -1};
  return failed;
}

/* 0 where there is /proc to give the file a name through. */
static int create_unnamed(pl_partial_file *partial, const char *place) {
  char *folder = folder_of(place);
  partial->name = malloc(name_bytes(place));
  if (folder != NULL && partial->name != NULL && access("/proc/self/fd", X_OK) == 0)
    partial->descriptor = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  free(folder);
  if (partial->descriptor < 0) {
    free(partial->name);
    return -1;
  }
  snprintf(partial->name, name_bytes(place), "%s%s%ld-XXXXXX", place, mark, (long)getpid());
  partial->is_unnamed = true;
  return 0;
}

int pl_partial_open_unnamed(pl_partial_file *partial, const char *place) {
  *partial = (pl_partial_file){.descriptor = -1};
  pl_partial_clean(place);
  return create_unnamed(partial, place) == 0 ? 0 : pl_partial_open(partial, place);
}

/* Under `name`: EEXIST if that is taken. */
static int name_it(const pl_partial_file *partial, const char *name) {
  char own[64];
  snprintf(own, sizeof own, "/proc/self/fd/%d", partial->descriptor);
  return linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* The last letters of its name are the file's own number: no other file of this process has them at this time. */
static void finish_name(const pl_partial_file *partial) {
  struct stat status;
  unsigned long number = fstat(partial->descriptor, &status) == 0 ? (unsigned long)status.st_ino : 0;
  char *letters = partial->name + strlen(partial->name) - RANDOM_LETTERS;
  for (int i = 0; i < RANDOM_LETTERS; i++, number /= 26)
    letters[i] = (char)('a' + number % 26);
}

void pl_partial_remove(pl_partial_file *partial) {
  if (partial->name == NULL) return;
  if (!partial->is_unnamed) unlink(partial->name);
  close(partial->descriptor);
  free(partial->name);
  *partial = (pl_partial_file){.descriptor = -1};
}

static int place_it(const char *name, const char *place, bool replace) {
  if (!replace) {
    if (link(name, place) == 0) return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno; /* no links here */
    if (access(place, F_OK) == 0) return EEXIST;
  }
  return rename(name, place) == 0 ? 0 : errno;
}

int pl_partial_publish(pl_partial_file *partial, const char *place, bool replace) {
  int failed = 0;
  if (partial->is_unnamed && !replace) {
    failed = name_it(partial, place);
  } else {
    if (partial->is_unnamed) finish_name(partial);
    if (partial->is_unnamed) failed = name_it(partial, partial->name);
    if (failed == 0) partial->is_unnamed = false;
    if (failed == 0) failed = place_it(partial->name, place, replace);
  }
  pl_partial_remove(partial); /* after rename() there is nothing left to remove */
  return failed;
}
