/* The critical path and the changes (see workloads/trace/diagnosis.h). */
#include "workloads/trace/diagnosis.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/trace/diagnosis_medians.h"
#include "workloads/trace/diagnosis_ranks.h"
#include "workloads/trace/replay_links.h"

const char *const pl_trace_share_names[] = {"computing", "copies",         "data between ranks", "runtime calls",
                                            "host",      "launch latency", "unexplained lag",    "step before"};
const char *const pl_trace_state_names[] = {"computes",
                                            "exposed communication",
                                            "waits for a rank",
                                            "waits for data",
                                            "waits after a synchronisation",
                                            "waits for the host",
                                            "stands still",
                                            "is done"};

static pl_trace_share share_of(const pl_trace_replay *replay, uint32_t task) {
  const pl_trace_op *op = &replay->trace->ops[pl_trace_task_op(replay, task)];
  bool host = replay->trace->streams[op->stream].kind == PL_TRACE_HOST;
  switch ((pl_trace_role)replay->role[task]) {
  case PL_TRACE_JOIN:
  case PL_TRACE_FLIGHT:
    return PL_TRACE_ON_DATA;
  case PL_TRACE_LATENCY:
    return PL_TRACE_ON_LAUNCH;
  case PL_TRACE_RELEASE:
    return PL_TRACE_ON_EARLIER;
  case PL_TRACE_GATE:
    return host ? PL_TRACE_ON_HOST : PL_TRACE_ON_LAG;
  default:
    return op->kind == PL_TRACE_COMPUTE                             ? PL_TRACE_ON_COMPUTE
           : op->kind == PL_TRACE_COPY                              ? PL_TRACE_ON_COPY
           : op->kind == PL_TRACE_CALL || op->kind == PL_TRACE_WAIT ? PL_TRACE_ON_CALL
                                                                    : PL_TRACE_ON_DATA;
  }
}

/* ---- the path ---- */

static int by_name(const void *a_, const void *b_) {
  const pl_trace_on_path *a = a_, *b = b_;
  return a->name < b->name ? -1 : a->name > b->name;
}

static int by_time(const void *a_, const void *b_) {
  const pl_trace_on_path *a = a_, *b = b_;
  if (a->ticks != b->ticks) return a->ticks > b->ticks ? -1 : 1;
  return by_name(a, b);
}

static bool read_path(const pl_trace_replay *replay, const pl_ticks *finish, pl_arena *arena, pl_trace_diagnosis *out) {
  uint32_t *path = PL_TAKE(arena, uint32_t, replay->graph.n_tasks + 1);
  if (path == NULL) return false;
  out->path = path;
  out->n_path = pl_trace_replay_critical(replay, replay->ticks, finish, path);
  out->names = PL_TAKE(arena, pl_trace_on_path, out->n_path + 1);
  if (out->names == NULL) return false;
  uint32_t n = 0;
  for (uint32_t k = 0; k < out->n_path; k++) {
    pl_ticks ticks = replay->ticks[path[k]];
    uint32_t op = pl_trace_task_op(replay, path[k]);
    pl_trace_role role = replay->role[path[k]];
    out->share[share_of(replay, path[k])] += ticks;
    out->ranks[pl_trace_rank_of(replay->trace, op)].on_path += ticks;
    if (ticks > 0 && (role == PL_TRACE_BODY || role == PL_TRACE_JOIN || role == PL_TRACE_FLIGHT))
      out->names[n++] = (pl_trace_on_path){replay->trace->ops[op].name, ticks, 1};
  }
  qsort(out->names, n, sizeof *out->names, by_name);
  for (uint32_t k = 0; k < n; k++) {
    pl_trace_on_path *last = out->n_names > 0 ? &out->names[out->n_names - 1] : NULL;
    if (last != NULL && last->name == out->names[k].name) {
      last->ticks += out->names[k].ticks;
      last->n++;
    } else {
      out->names[out->n_names++] = out->names[k];
    }
  }
  qsort(out->names, out->n_names, sizeof *out->names, by_time);
  return true;
}

/* ---- changes ---- */

typedef struct trial {
  const pl_trace_window *window;
  const pl_trace_replay *replay; /* of the window */
  const pl_trace_fits *fits;
  pl_trace_links links;
  pl_arena *arena;
  pl_ticks *ticks, *finish;
  pl_trace_diagnosis *out;
} trial;

/* The step with the durations as they are now, as `replay --scale` does it; -1: no memory. */
static pl_ticks play(trial *own) {
  pl_ticks makespan = PL_TICKS_NEVER;
  own->out->n_replays++;
  if (own->links.are_served) makespan = pl_trace_links_run(own->replay, &own->links, own->ticks, own->finish);
  if (makespan == PL_TICKS_NEVER) makespan = pl_trace_replay_run(own->replay, own->ticks, own->finish);
  return makespan < 0 ? makespan : pl_trace_window_time(own->window, own->finish);
}

static void reset(trial *own) {
  memcpy(own->ticks, own->replay->ticks, own->replay->graph.n_tasks * sizeof *own->ticks);
}

static bool add_change(trial *own, char *what) {
  if (what == NULL) return false;
  pl_ticks makespan = play(own);
  own->out->changes[own->out->n_changes++] = (pl_trace_change){what, makespan};
  return makespan >= 0;
}

static bool try_name(trial *own, uint32_t name) {
  const pl_trace_replay *replay = own->replay;
  reset(own);
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
    pl_trace_role role = replay->role[t];
    const pl_trace_op *op = &replay->trace->ops[pl_trace_task_op(replay, t)];
    bool leaves = op->kind == PL_TRACE_COLLECTIVE && role == PL_TRACE_BODY;
    if (op->name == name && !leaves && (role == PL_TRACE_BODY || role == PL_TRACE_JOIN || role == PL_TRACE_FLIGHT))
      own->ticks[t] /= 2;
  }
  return add_change(own, pl_arena_printf(own->arena, "%.200s in half the time", replay->trace->names[name]));
}

static bool try_scale(trial *own, pl_trace_scale scale, const char *what) {
  reset(own);
  if (pl_trace_scale_apply(own->replay, own->fits, &scale, own->ticks, NULL) == 0) return true;
  return add_change(own, pl_arena_strdup(own->arena, what));
}

static bool try_launches(trial *own) {
  bool any = false;
  reset(own);
  for (uint32_t t = 0; t < own->replay->graph.n_tasks; t++)
    if (own->replay->role[t] == PL_TRACE_LATENCY) {
      own->ticks[t] = 0;
      any = true;
    }
  return !any || add_change(own, pl_arena_strdup(own->arena, "no launch latency (graphs of kernels)"));
}

/* Each rank like the median of the ranks, and all of them at once. */
static bool try_medians(trial *own, const pl_trace_medians *medians) {
  pl_trace_diagnosis *out = own->out;
  for (uint32_t r = 0; r < own->replay->trace->n_ranks; r++) {
    reset(own);
    pl_trace_medians_apply(medians, own->replay, r, own->ticks);
    char *what = pl_arena_printf(own->arena, "rank %lld as fast as the median of the ranks",
                                 (long long)own->replay->trace->ranks[r].number);
    if (!add_change(own, what)) return false;
    out->ranks[r].without = out->changes[out->n_changes - 1].makespan;
    out->ranks[r].compared = medians->share[r];
  }
  reset(own);
  pl_trace_medians_apply(medians, own->replay, PL_NONE, own->ticks);
  out->balanced = play(own);
  return out->balanced >= 0;
}

static int by_makespan(const void *a_, const void *b_) {
  const pl_trace_change *a = a_, *b = b_;
  if (a->makespan != b->makespan) return a->makespan < b->makespan ? -1 : 1;
  return strcmp(a->what, b->what);
}

enum { MOST_NAMES = 24, OTHER_CHANGES = 4 };

static bool try_changes(trial *own, const pl_trace_medians *medians) {
  pl_trace_diagnosis *out = own->out;
  uint32_t n_ranks = own->replay->trace->n_ranks;
  out->changes = PL_TAKE(own->arena, pl_trace_change, MOST_NAMES + OTHER_CHANGES + n_ranks);
  if (out->changes == NULL) return false;
  out->balanced = out->ranks[0].without = PL_TICKS_NEVER;
  for (uint32_t k = 0; k < out->n_names && k < MOST_NAMES; k++)
    if (!try_name(own, out->names[k].name)) return false;
  const pl_trace_scale link = {PL_TRACE_SCALE_LINK, NULL, 2}, host = {PL_TRACE_SCALE_HOST, NULL, 0.5};
  if (!try_scale(own, link, "links twice as fast") || !try_scale(own, host, "the host's work in half the time") ||
      !try_launches(own))
    return false;
  if (n_ranks > 1 && !try_medians(own, medians)) return false;
  qsort(out->changes, out->n_changes, sizeof *out->changes, by_makespan);
  return true;
}

static bool take_room(trial *own, uint32_t n_tasks) {
  own->ticks = PL_TAKE(own->arena, pl_ticks, (size_t)n_tasks + 1);
  own->finish = PL_TAKE(own->arena, pl_ticks, (size_t)n_tasks + 1);
  return own->ticks != NULL && own->finish != NULL;
}

pl_code pl_trace_diagnosis_take(const pl_trace_replay *replay, const pl_trace_window *window, const pl_trace_fits *fits,
                                pl_arena *arena, pl_trace_diagnosis *out, pl_error *error) {
  pl_trace_medians medians = {.are_alike = false};
  *out = (pl_trace_diagnosis){.n_path = 0};
  trial own = {.window = window, .replay = &window->replay, .fits = fits, .arena = arena, .out = out};
  PL_TRY(pl_trace_links_take(own.replay, arena, &own.links, error));
  out->are_served = own.links.are_served;
  pl_ticks *finish = PL_TAKE(arena, pl_ticks, (size_t)replay->graph.n_tasks + 1);
  out->ranks = PL_TAKE(arena, pl_trace_rank_times, replay->trace->n_ranks + 1);
  bool good = finish != NULL && out->ranks != NULL && take_room(&own, own.replay->graph.n_tasks);
  if (good) {
    out->n_replays++;
    out->makespan = pl_trace_replay_run(replay, replay->ticks, finish);
    good = read_path(replay, finish, arena, out) && pl_trace_rank_times_read(replay, finish, arena, out) &&
           pl_trace_medians_take(own.replay, arena, &medians) && try_changes(&own, &medians);
    out->are_alike = medians.are_alike;
  }
  return good ? PL_OK : pl_fail_memory(error, "a diagnosis");
}
