/* See workloads/trace/diagnosis_ranks.h. */
#include "workloads/trace/diagnosis_ranks.h"

#include <stdlib.h>
#include <string.h>

/* ---- states: a sweep over what is under way on the rank ---- */

typedef struct stretch {
  pl_ticks date;
  int8_t step; /* +1 begins, -1 ends */
  uint8_t state;
} stretch;

static int by_date(const void *a_, const void *b_) {
  const stretch *a = a_, *b = b_;
  if (a->date != b->date) return a->date < b->date ? -1 : 1;
  if (a->state != b->state) return a->state < b->state ? -1 : 1;
  return a->step - b->step;
}

static void add(stretch *all, uint32_t *n, pl_ticks from, pl_ticks to, pl_trace_state state) {
  if (to <= from) return;
  all[(*n)++] = (stretch){from, 1, (uint8_t)state};
  all[(*n)++] = (stretch){to, -1, (uint8_t)state};
}

/* The member whose gate opened last. */
static uint32_t last_member(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t m) {
  const pl_trace_meeting *meeting = &replay->meetings->meetings[m];
  uint32_t last = replay->meetings->ops[meeting->first];
  for (uint32_t k = 1; k < meeting->n; k++) {
    uint32_t op = replay->meetings->ops[meeting->first + k];
    if (finish[replay->gate[op]] > finish[replay->gate[last]]) last = op;
  }
  return last;
}

static void add_message(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t op, stretch *all, uint32_t *n,
                        pl_ticks *waited) {
  pl_ticks start = finish[replay->gate[op]], end = finish[replay->body[op]], moves = start;
  uint32_t m = replay->meetings->of_op[op];
  const pl_trace_meeting *meeting = m != PL_NONE ? &replay->meetings->meetings[m] : NULL;
  if (m != PL_NONE && replay->join[m] != PL_NONE) {
    uint32_t last = last_member(replay, finish, m);
    moves = finish[replay->gate[last]];
    add(all, n, start, moves, PL_TRACE_WAITS_FOR_RANK);
    if (moves > start) waited[pl_trace_rank_of(replay->trace, last)] += moves - start;
  } else if (meeting != NULL && meeting->n == 2 && replay->trace->ops[op].kind == PL_TRACE_RECEIVE) {
    uint32_t send = replay->meetings->ops[meeting->first];
    if (replay->gate[send] != PL_NONE && finish[replay->gate[send]] > start) moves = finish[replay->gate[send]];
    if (moves > end) moves = end;
    add(all, n, start, moves, PL_TRACE_WAITS_FOR_DATA);
  }
  add(all, n, moves, end, PL_TRACE_EXPOSED);
}

/* Until its start a task of the device that a call launched waited for the host, if the call came after all else: that
 * call; PL_NONE. */
static uint32_t late_call(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t op) {
  uint32_t gate = replay->gate[op], last = PL_NONE;
  for (uint32_t e = replay->pred_offset[gate]; e < replay->pred_offset[gate + 1]; e++)
    if (last == PL_NONE || finish[replay->preds[e]] > finish[last]) last = replay->preds[e];
  if (last == PL_NONE || replay->role[last] != PL_TRACE_LATENCY) return PL_NONE;
  return replay->subject[replay->preds[replay->pred_offset[last]]];
}

/* On the thread of the call a wait for the device ended since `idle`: nothing was queued behind what it waited for. */
static bool follows_wait(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t call, pl_ticks idle) {
  for (uint32_t op = call; op != PL_NONE; op = pl_trace_previous(replay->trace, op)) {
    if (replay->gate[op] == PL_NONE || finish[replay->body[op]] < idle) return false;
    if (replay->trace->ops[op].kind == PL_TRACE_WAIT) return true;
  }
  return false;
}

static bool is_work(const pl_trace_replay *replay, uint32_t op, bool has_device) {
  const pl_trace_op *o = &replay->trace->ops[op];
  bool host = replay->trace->streams[o->stream].kind == PL_TRACE_HOST;
  return (o->kind == PL_TRACE_COMPUTE || o->kind == PL_TRACE_COPY) && !(host && has_device);
}

static void sweep(const stretch *all, uint32_t n, pl_ticks makespan, pl_trace_rank_times *times) {
  int32_t under_way[PL_TRACE_STATE_COUNT] = {0};
  pl_ticks date = 0, last_end = 0;
  for (uint32_t k = 0; k < n; k++)
    if (all[k].state < PL_TRACE_WAITS_AFTER_SYNC && all[k].date > last_end) last_end = all[k].date;
  for (uint32_t k = 0; k <= n; k++) {
    pl_ticks until = k < n ? all[k].date : makespan;
    if (until > date) {
      int state = 0;
      while (state < PL_TRACE_STANDS && under_way[state] == 0)
        state++;
      if (state >= PL_TRACE_WAITS_AFTER_SYNC && date >= last_end) state = PL_TRACE_IS_DONE;
      times->ticks[state] += until - date;
      date = until;
    }
    if (k < n) under_way[all[k].state] += all[k].step;
  }
}

static void read_rank(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t r, stretch *all, pl_ticks *waited,
                      pl_trace_diagnosis *out) {
  const pl_trace_rank *rank = &replay->trace->ranks[r];
  uint32_t n = 0;
  bool has_device = false;
  for (uint32_t s = 0; s < replay->trace->n_streams; s++)
    has_device |= replay->trace->streams[s].rank == r && replay->trace->streams[s].kind == PL_TRACE_DEVICE;
  memset(waited, 0, replay->trace->n_ranks * sizeof *waited);
  for (uint32_t op = rank->first_op; op < rank->first_op + rank->n_ops; op++) {
    if (replay->gate[op] == PL_NONE) continue;
    pl_ticks start = finish[replay->gate[op]];
    if (is_work(replay, op, has_device)) {
      uint32_t previous = pl_trace_previous(replay->trace, op);
      add(all, &n, start, finish[replay->body[op]], PL_TRACE_COMPUTES);
      bool first = previous == PL_NONE || replay->gate[previous] == PL_NONE;
      pl_ticks idle = first ? 0 : finish[replay->body[previous]];
      uint32_t call = late_call(replay, finish, op);
      if (call != PL_NONE)
        add(all, &n, idle, start,
            !first && follows_wait(replay, finish, call, idle) ? PL_TRACE_WAITS_AFTER_SYNC : PL_TRACE_WAITS_FOR_HOST);
    } else if (replay->trace->ops[op].message != PL_NONE) {
      add_message(replay, finish, op, all, &n, waited);
    }
  }
  qsort(all, n, sizeof *all, by_date);
  sweep(all, n, out->makespan, &out->ranks[r]);
  out->ranks[r].waited_for = PL_NONE;
  for (uint32_t other = 0; other < replay->trace->n_ranks; other++)
    if (waited[other] > out->ranks[r].waited) {
      out->ranks[r].waited = waited[other];
      out->ranks[r].waited_for = other;
    }
}

bool pl_trace_rank_times_read(const pl_trace_replay *replay, const pl_ticks *finish, pl_arena *arena,
                              pl_trace_diagnosis *out) {
  stretch *all = PL_TAKE(arena, stretch, 4 * (size_t)replay->n_ops + 4);
  pl_ticks *waited = PL_TAKE(arena, pl_ticks, replay->trace->n_ranks + 1);
  if (all == NULL || waited == NULL) return false;
  for (uint32_t r = 0; r < replay->trace->n_ranks; r++)
    read_rank(replay, finish, r, all, waited, out);
  return true;
}
