/* Ctrl-C, and what ends a run from outside (SIGINT, SIGTERM, SIGHUP; mpirun passes them on): removes what is half-made,
 * says how to go on, and lets the signal end the process as it always does.
 *
 * A thread waits for them while all others have them blocked; so it may do anything that a program may, which a signal
 * handler may not, and needs no static state. Rejected: to ask in the main loop whether there was one (a candidate, or
 * the bounds of a large space, may take seconds). A signal that is ignored stays ignored (nohup).
 */
#ifndef PL_SEARCH_INTERRUPT_H
#define PL_SEARCH_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pl_interrupt {
  const char *command;              /* "search" */
  const char *path;                 /* of the results; NULL: nothing is written */
  const char *again;                /* the command line that goes on with them */
  bool silent;                      /* another rank speaks */
  atomic_bool has_rows;             /* the file at `path` is one to go on with */
  _Atomic(const uint64_t *) n_said; /* not 0 there: another rank has said why this one is ended; NULL: none can */
  sigset_t signals, before;
  pthread_t thread;
  int wake; /* one of the signals, which ends the wait when it is over; 0: nobody waits */
  atomic_bool over;
} pl_interrupt;

/* Before there are other threads and before MPI starts: they inherit what is blocked. `interrupt` stays where it is.
 * Without a thread signals do what they do by themselves. */
void pl_interrupt_start(pl_interrupt *interrupt);
void pl_interrupt_stop(pl_interrupt *interrupt);

#endif
