/* What both ways to find out where each device's time went share: of a finished run (engine_spent.c), and of one that
 * goes on (engine_running.c). In engine_charge.c: one stretch in which the compute stream of a device stands still.
 * Part of the engine's own state.
 */
#ifndef PL_CORE_ENGINE_ACCOUNT_H
#define PL_CORE_ENGINE_ACCOUNT_H

#include "core/engine/engine_state.h"

/* The tasks of a stream in the order in which they ran. Listed are feature and both gradient streams, and with ready
 * streams all. [all, end) are those that are known, [first, end) those that have not been gone past. */
typedef struct pl_account_run {
  uint32_t *all, *first, *end;
} pl_account_run;

typedef struct pl_account {
  const pl_engine *engine;
  const pl_graph *graph;
  pl_account_run *runs;                      /* per stream */
  bool *is_listed;                           /* per stream */
  uint32_t (*streams)[PL_STREAM_KIND_COUNT]; /* per device */
  pl_ticks (*totals)[PL_CATEGORY_COUNT];     /* of segments with several parts */
  uint32_t *totals_of;                       /* per segment */
  uint32_t n_totals;
  uint32_t *last; /* per device: task on the compute stream so far, PL_NONE: none */
  pl_ticks *spent, *idle;
  pl_charges *charges; /* NULL: not asked for */
  pl_ticks weight;     /* how often the gap that is being charged comes in the extended run */
  /* Only where lanes drift: dates are those that what is being charged sees, and if it is copied, so must be all that
   * is looked at. */
  const pl_drift_place *place;
  uint32_t copied; /* PL_NONE: it is not */
  /* Only where there are islands: dates are those that the device sees which is charged. */
  uint32_t island;
} pl_account;

static inline bool pl_account_is_communication(const pl_task *task) {
  return task->kind != PL_TASK_WORK && pl_category_is_communication((pl_category)task->category);
}

/* Arrays but for runs, spent, idle and charges. False: no memory. */
bool pl_account_take(pl_account *account);
bool pl_account_take_charges(const pl_account *account, pl_charges *charges);

/* Dates of tasks as what is charged sees them: what that is, and where a task is then. PL_NONE: behind the last task of
 * all. */
void pl_account_look_from(pl_account *account, uint32_t task);
/* What is looked at for the sake of a copied task must be copied with it. */
static inline void pl_account_look_at(const pl_account *account, uint32_t task) {
  pl_drift *drift = account->engine->drift;
  PL_DEBUG_ASSERT(account->copied == PL_NONE || drift != NULL);
  if (account->copied != PL_NONE && (task == PL_NONE || !pl_drift_together(drift, account->copied, task)))
    drift->lost = true;
}

pl_ticks pl_account_shift(const pl_account *account, uint32_t task);

static inline bool pl_account_shifts(const pl_account *account) {
  return account->place != NULL || account->engine->leaps.island_of != NULL;
}

static inline pl_ticks pl_account_start(const pl_account *account, uint32_t task) {
  pl_ticks start = pl_engine_start(account->engine, task);
  return pl_account_shifts(account) ? start + pl_account_shift(account, task) : start;
}

static inline pl_ticks pl_account_finish(const pl_account *account, uint32_t task) {
  pl_ticks finish = pl_engine_finish_of(account->engine, task);
  return pl_account_shifts(account) ? finish + pl_account_shift(account, task) : finish;
}

/* The gap [from, to] before `task` on the compute stream. */
void pl_account_charge_gap(const pl_account *account, uint32_t device, pl_ticks from, pl_ticks to, uint32_t task);
/* What comes behind the last task of the compute stream. */
void pl_account_charge_tail(pl_account *account, uint32_t device, pl_ticks to);
/* Adds what the overlap factor has added while the run went on. */
void pl_account_add_disturbances(const pl_account *account);

#endif
