/* See core/system/processes.h. */
#include "core/system/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1024 };

/* Of one child. */
typedef struct outcome {
  uint32_t index; /* of the task that failed, or that it is at */
  bool ended;     /* came to the end, with a failure or without */
  pl_error error;
} outcome;

typedef struct shared {
  atomic_uint next;
  atomic_bool failed;
  outcome outcomes[];
} shared;

typedef struct crew {
  shared *board;
  uint32_t n_tasks;
  pl_process_task *task;
  void *context;
} crew;

void *pl_shared_take(size_t bytes) {
  void *memory = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : NULL; // cppcheck-suppress memleak
}

void pl_shared_release(void *memory, size_t bytes) {
  if (memory != NULL) munmap(memory, bytes > 0 ? bytes : 1);
}

static _Noreturn void work(const crew *c, outcome *own) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (!atomic_load(&c->board->failed)) {
    uint32_t index = atomic_fetch_add(&c->board->next, 1);
    if (index >= c->n_tasks) break;
    own->index = index;
    if (c->task(c->context, index, &own->error) != PL_OK) atomic_store(&c->board->failed, true);
  }
  own->ended = true;
  _exit(0);
}

static pl_code wait_for(pid_t id, outcome *own, pl_error *error) {
  int status = 0;
  while (waitpid(id, &status, 0) < 0)
    if (errno != EINTR) return pl_fail(error, PL_IO, "cannot wait for a process: %m");
  if (own->ended) return PL_OK;
  own->error = PL_ERROR_INIT;
  pl_fail(&own->error, PL_IO, "a process of this command ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return PL_OK;
}

static pl_code judge(const shared *board, uint32_t n, pl_error *error) {
  const outcome *first = NULL;
  for (uint32_t i = 0; i < n; i++) {
    const outcome *own = &board->outcomes[i];
    if (own->error.code != PL_OK && (first == NULL || own->index < first->index)) first = own;
  }
  return first == NULL ? PL_OK : pl_fail(error, first->error.code, "%s", first->error.message);
}

static pl_code run(const crew *c, uint32_t n, pl_error *error) {
  pid_t ids[PROCESSES_MAX];
  uint32_t n_made = 0;
  fflush(NULL);
  for (; n_made < n; n_made++) {
    ids[n_made] = fork();
    if (ids[n_made] == 0) work(c, &c->board->outcomes[n_made]);
    if (ids[n_made] < 0) break;
  }
  pl_code code = n_made > 0 ? PL_OK : pl_fail(error, PL_IO, "cannot fork a process: %m");
  for (uint32_t i = 0; i < n_made; i++) {
    pl_code waited = wait_for(ids[i], &c->board->outcomes[i], error);
    if (code == PL_OK) code = waited;
  }
  return code == PL_OK ? judge(c->board, n_made, error) : code;
}

pl_code pl_processes_run(uint32_t n_processes, uint32_t n_tasks, pl_process_task *task, void *context,
                         pl_error *error) {
  uint32_t n = n_processes < n_tasks ? n_processes : n_tasks;
  if (n > PROCESSES_MAX) n = PROCESSES_MAX;
  if (n == 0) return PL_OK;
  size_t bytes = sizeof(shared) + n * sizeof(outcome);
  crew c = {.board = pl_shared_take(bytes), .n_tasks = n_tasks, .task = task, .context = context};
  if (c.board == NULL) return pl_fail_memory(error, "the processes");
  pl_code code = run(&c, n, error);
  pl_shared_release(c.board, bytes);
  return code;
}
