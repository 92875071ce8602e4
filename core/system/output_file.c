/* See core/system/output_file.h. */
#include "core/system/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name that cannot be had is the request's fault, everything else the machine's. */
static pl_code fail_write(const char *path, int code, pl_error *error) {
  bool request = code == ENOENT || code == ENOTDIR || code == EACCES || code == EPERM || code == ENAMETOOLONG ||
                 code == ELOOP || code == EROFS || code == EISDIR;
  return pl_fail(error, request ? PL_BAD_INPUT : PL_IO, "cannot write %s: %s", path,
                 code != 0 ? strerror(code) : "write failed");
}

static pl_code fail_exists(const char *path, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s exists; --force replaces it", path);
}

/* "out/a.csv" -> "out", "a.csv" -> "."; the caller frees it. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return strdup(".");
  return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

pl_code pl_output_file_check(const char *path, bool force, pl_error *error) {
  struct stat status;
  if (path[0] == '\0') return pl_fail(error, PL_BAD_INPUT, "the name of an output file is empty");
  bool exists = stat(path, &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return pl_fail(error, PL_BAD_INPUT, "%s is a directory; name a file", path);
  if (exists && !S_ISREG(status.st_mode)) return PL_OK;
  if (!force && lstat(path, &status) == 0) return fail_exists(path, error);
  char *folder = folder_of(path);
  if (folder == NULL) return pl_fail_memory(error, "a file name");
  int code = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
  free(folder);
  return code == 0 ? PL_OK : fail_write(path, code, error);
}

static void release(pl_output_file *file) {
  free(file->place);
  *file = (pl_output_file){.path = file->path};
}

/* What `path` is, or will be: the file behind a symbolic link. */
static char *find_place(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 ? realpath(path, NULL) : strdup(path);
}

static pl_code open_in_place(pl_output_file *file, pl_error *error) {
  int descriptor = open(file->path, O_WRONLY | O_NOCTTY);
  if (descriptor < 0) return fail_write(file->path, errno, error);
  file->stream = fdopen(descriptor, "w");
  if (file->stream != NULL) return PL_OK;
  close(descriptor);
  return pl_fail_memory(error, "an output file");
}

/* The stream has a descriptor of its own: the lock of the partial file outlasts it. */
static pl_code open_beside(pl_output_file *file, pl_error *error) {
  int failed = pl_partial_open_unnamed(&file->partial, file->place);
  if (failed != 0) return fail_write(file->path, failed, error);
  int descriptor = dup(file->partial.descriptor);
  if (descriptor >= 0) file->stream = fdopen(descriptor, "w");
  if (file->stream != NULL) return PL_OK;
  if (descriptor >= 0) close(descriptor);
  pl_partial_remove(&file->partial);
  return pl_fail_memory(error, "an output file");
}

pl_code pl_output_file_open(pl_output_file *file, const char *path, bool force, pl_error *error) {
  *file = (pl_output_file){.path = path, .force = force};
  PL_TRY(pl_output_file_check(path, force, error));
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) return open_in_place(file, error);
  file->place = find_place(path);
  pl_code code = file->place != NULL ? open_beside(file, error) : pl_fail_memory(error, "a file name");
  if (code != PL_OK) release(file);
  return code;
}

/* 0, or the errno of the first call that failed. */
static int finish(FILE *stream) {
  errno = 0;
  int code = fflush(stream) != 0 || ferror(stream) != 0 ? (errno != 0 ? errno : EIO) : 0;
  /* A pipe or a device cannot be synchronised: EINVAL. */
  if (code == 0 && fsync(fileno(stream)) != 0 && errno != EINVAL && errno != EROFS) code = errno;
  if (fclose(stream) != 0 && code == 0) code = errno;
  return code;
}

pl_code pl_output_file_close(pl_output_file *file, pl_code code, pl_error *error) {
  if (file->stream == NULL) return code;
  int failed = finish(file->stream);
  if (file->place != NULL && code == PL_OK && failed == 0)
    failed = pl_partial_publish(&file->partial, file->place, file->force);
  pl_partial_remove(&file->partial);
  if (code == PL_OK && failed != 0)
    code = failed == EEXIST ? fail_exists(file->path, error) : fail_write(file->path, failed, error);
  release(file);
  return code;
}
