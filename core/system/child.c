/* See core/system/child.h. */
#include "core/system/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAST_SECONDS = 10, BYTES_PER_SECOND = 1 << 18, LEAST_MEMORY_MIB = 1024, MEMORY_PER_BYTE = 64 };

/* What parent and child share. */
typedef struct report {
  bool ended;
  pl_error error;
} report;

typedef struct limits {
  rlim_t seconds, bytes;
} limits;

static limits limits_of(const char *path) {
  struct stat info;
  rlim_t size = stat(path, &info) == 0 && info.st_size > 0 ? (rlim_t)info.st_size : 0;
  return (limits){.seconds = LEAST_SECONDS + size / BYTES_PER_SECOND,
                  .bytes = ((rlim_t)LEAST_MEMORY_MIB << 20) + MEMORY_PER_BYTE * size};
}

/* Sanitizers reserve more address space than any limit would allow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PL_CHILD_LIMITS_MEMORY false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PL_CHILD_LIMITS_MEMORY false
#endif
#endif
#ifndef PL_CHILD_LIMITS_MEMORY
#define PL_CHILD_LIMITS_MEMORY true
#endif

static void set_limit(__rlimit_resource_t which, rlim_t value) {
  struct rlimit limit;
  if (getrlimit(which, &limit) != 0) return;
  if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max) value = limit.rlim_max;
  limit.rlim_cur = value;
  setrlimit(which, &limit);
}

static void confine(const limits *most) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, most->seconds);
  if (PL_CHILD_LIMITS_MEMORY) set_limit(RLIMIT_DATA, most->bytes);
  int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

static _Noreturn void work(const pl_child *child, const limits *most, FILE *out, FILE *notes, report *to) {
  confine(most);
  pl_error error = PL_ERROR_INIT;
  child->work(child->context, out, notes, &error);
  bool good = fflush(out) == 0 && fflush(notes) == 0;
  if (!good) pl_fail(&error, PL_IO, "no room for what is to be printed: %m");
  to->error = error;
  to->ended = true;
  _exit(0);
}

static pl_code judge(const pl_child *child, int status, const limits *most, const report *from, pl_error *error) {
  if (from->ended && from->error.code == PL_NO_MEMORY && PL_CHILD_LIMITS_MEMORY)
    return pl_fail(error, PL_BAD_INPUT, "%s: is damaged %s, or too large for %.0f MB of memory: %s", child->path,
                   child->kind, (double)most->bytes / 1e6, from->error.message);
  if (from->ended && from->error.code != PL_OK) return pl_fail(error, from->error.code, "%s", from->error.message);
  if (from->ended) return PL_OK;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    return pl_fail(error, PL_BAD_INPUT, "%s: is damaged %s: reading it does not end (stopped after %.0f s)",
                   child->path, child->kind, (double)most->seconds);
  return pl_fail(error, PL_BAD_INPUT, "%s: is damaged %s: its library crashes on it (%s %d)", child->path, child->kind,
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static pl_code run(const pl_child *child, FILE *out, FILE *notes, report *shared, pl_error *error) {
  const limits most = limits_of(child->path);
  fflush(NULL);
  pid_t id = fork();
  if (id < 0) return pl_fail(error, PL_IO, "%s: cannot fork a process to read it: %m", child->path);
  if (id == 0) work(child, &most, out, notes, shared);
  int status = 0;
  while (waitpid(id, &status, 0) < 0)
    if (errno != EINTR) return pl_fail(error, PL_IO, "%s: cannot wait for the process that reads it: %m", child->path);
  return judge(child, status, &most, shared, error);
}

static void pass_on(FILE *from, FILE *to) {
  char bytes[1 << 14];
  rewind(from);
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
    fwrite(bytes, 1, n, to);
}

/* An unnamed file in memory. */
static FILE *open_memory(const char *name) {
  int descriptor = memfd_create(name, MFD_CLOEXEC);
  FILE *stream = descriptor >= 0 ? fdopen(descriptor, "w+") : NULL;
  if (stream == NULL && descriptor >= 0) close(descriptor);
  return stream;
}

pl_code pl_child_run(const pl_child *child, FILE *out, FILE *notes, pl_error *error) {
  report *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  FILE *own_out = open_memory("paceline-out"), *own_notes = open_memory("paceline-notes");
  pl_code code = shared == MAP_FAILED || own_out == NULL || own_notes == NULL
                     ? pl_fail_memory(error, "a process to read a file in")
                     : run(child, own_out, own_notes, shared, error);
  if (code == PL_OK) {
    pass_on(own_out, out);
    pass_on(own_notes, notes);
  }
  if (own_out != NULL) fclose(own_out);
  if (own_notes != NULL) fclose(own_notes);
  if (shared != MAP_FAILED) munmap(shared, sizeof *shared);
  return code;
}
