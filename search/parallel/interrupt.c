/* See search/parallel/interrupt.h. */
#include "search/parallel/interrupt.h"

#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/system/partial_file.h"
#include "search/parallel/progress_line.h"

static void say(const pl_interrupt *interrupt) {
  if (pl_progress_on_terminal()) dprintf(STDERR_FILENO, "\r\033[K"); /* the "^C", and the line of the progress */
  if (interrupt->path == NULL) {
    dprintf(STDERR_FILENO, "paceline %s: interrupted\n", interrupt->command);
  } else if (!atomic_load(&interrupt->has_rows)) {
    dprintf(STDERR_FILENO, "paceline %s: interrupted; nothing was written to %s\n", interrupt->command,
            interrupt->path);
  } else {
    dprintf(STDERR_FILENO, "paceline %s: interrupted; what is done is in %s, and this goes on: %s\n",
            interrupt->command, interrupt->path, interrupt->again);
  }
}

static void *wait_for_it(void *context) {
  pl_interrupt *interrupt = context;
  int which;
  if (sigwait(&interrupt->signals, &which) != 0 || atomic_load(&interrupt->over)) return NULL;
  if (interrupt->path != NULL && !interrupt->silent) pl_partial_remove_own(interrupt->path);
  const volatile uint64_t *n_said = atomic_load(&interrupt->n_said); /* other ranks write it */
  if (!interrupt->silent && (n_said == NULL || *n_said == 0)) say(interrupt);
  signal(which, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &interrupt->signals, NULL);
  raise(which);
  return NULL;
}

/* Libraries that start threads when they are loaded may do so before anything is blocked, and a signal that
 * finds a thread where it is not would end the process there and then. Such a thread blocks it from here on and sends
 * it once more, until all have and it waits for who waits for it. */
static void pass_on(int which, siginfo_t *info, void *context) {
  (void)info;
  sigaddset(&((ucontext_t *)context)->uc_sigmask, which);
  kill(getpid(), which);
}

/* Those of the signals that are waited for. */
static void set_handlers(const pl_interrupt *interrupt, bool pass) {
  static const int which[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_flags = pass ? SA_SIGINFO | SA_RESTART : 0};
  if (pass) action.sa_sigaction = pass_on;
  for (size_t i = 0; i < sizeof which / sizeof which[0]; i++)
    if (sigismember(&interrupt->signals, which[i]) == 1) sigaction(which[i], &action, NULL);
}

void pl_interrupt_start(pl_interrupt *interrupt) {
  static const int which[] = {SIGINT, SIGTERM, SIGHUP};
  sigemptyset(&interrupt->signals);
  for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
    struct sigaction action;
    if (sigaction(which[i], NULL, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    sigaddset(&interrupt->signals, which[i]);
    interrupt->wake = which[i];
  }
  if (interrupt->wake == 0) return;
  pthread_sigmask(SIG_BLOCK, &interrupt->signals, &interrupt->before);
  if (pthread_create(&interrupt->thread, NULL, wait_for_it, interrupt) == 0) {
    set_handlers(interrupt, true);
    return;
  }
  pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
  interrupt->wake = 0;
}

void pl_interrupt_stop(pl_interrupt *interrupt) {
  if (interrupt->wake == 0) return;
  atomic_store(&interrupt->over, true);
  pthread_kill(interrupt->thread, interrupt->wake);
  pthread_join(interrupt->thread, NULL);
  set_handlers(interrupt, false);
  pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
  interrupt->wake = 0;
}
