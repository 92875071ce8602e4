/* The naive simulator and the tick by tick account of plan.h. */
#include "tests/support/plan.h"

#include <math.h>
#include <string.h>

#include "tests/support/fixed_network.h"

typedef enum phase { WAITING, RUNNING, DONE } phase;

typedef struct simulation {
  const test_plan *plan;
  plan_run *run;
  pl_network *network;
  pl_ticks network_next;
  bool touched;
  phase phase[PLAN_TASKS];
  pl_ticks due[PLAN_TASKS], updated[PLAN_TASKS];
  double remaining[PLAN_TASKS], slowdown[PLAN_TASKS]; /* of work */
  double speed[PLAN_TASKS];                           /* of transfers */
  bool is_held[PLAN_TASKS];                           /* beside a collective of the tensor group, for a place */
  uint32_t slot[PLAN_TASKS];
  int64_t bytes[PLAN_DEVICES];
} simulation;

static bool shares_stream(const plan_task *a, const plan_task *b) {
  for (uint32_t i = 0; i < a->n_streams; i++)
    for (uint32_t j = 0; j < b->n_streams; j++)
      if (a->device[i] == b->device[j] && a->stream[i] == b->stream[j]) return true;
  return false;
}

static bool may_start(const simulation *sim, uint32_t task) {
  const test_plan *plan = sim->plan;
  if (sim->phase[task] != WAITING) return false;
  for (uint32_t other = 0; other < plan->n_tasks; other++) {
    if (sim->phase[other] != DONE && plan->precedes[other][task]) return false;
    if (sim->phase[other] == RUNNING && shares_stream(&plan->tasks[other], &plan->tasks[task])) return false;
  }
  return true;
}

static void start(simulation *sim, uint32_t id, pl_ticks now) {
  const plan_task *task = &sim->plan->tasks[id];
  sim->phase[id] = RUNNING;
  sim->run->start[id] = sim->updated[id] = now;
  sim->slowdown[id] = sim->speed[id] = 1;
  sim->remaining[id] = (double)task->ticks;
  sim->due[id] = now + task->ticks;
  if (task->kind == PL_TASK_TRANSFER) {
    sim->due[id] = PL_TICKS_NEVER;
    sim->slot[id] = sim->network->ops->start(sim->network, now, id, task->spec, task->size_bytes);
    sim->touched = true;
  }
  if (task->n_streams == 0) return;
  int64_t *bytes = &sim->bytes[task->device[0]], *peak = &sim->run->peak_bytes[task->device[0]];
  *bytes += task->peak_bytes;
  if (*bytes > *peak) *peak = *bytes;
}

static void complete(simulation *sim, uint32_t id, pl_ticks now) {
  const plan_task *task = &sim->plan->tasks[id];
  sim->phase[id] = DONE;
  sim->run->finish[id] = now;
  if (now > sim->run->makespan) sim->run->makespan = now;
  if (task->n_streams > 0) sim->bytes[task->device[0]] += task->net_bytes - task->peak_bytes;
}

static void drain(simulation *sim, pl_ticks now) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
      if (sim->phase[task] == RUNNING && sim->due[task] == now) {
        complete(sim, task, now);
        again = true;
      }
    if (sim->network_next == now) {
      for (uint32_t task; (task = sim->network->ops->advance(sim->network, now)) != PL_NONE;)
        complete(sim, task, now);
      sim->network_next = PL_TICKS_NEVER;
      sim->touched = again = true;
    }
    for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
      if (may_start(sim, task)) {
        start(sim, task, now);
        again = true;
      }
  }
}

static bool runs_on(const simulation *sim, uint32_t task, uint32_t device, pl_stream_kind kind) {
  if (sim->phase[task] != RUNNING) return false;
  for (uint32_t at = 0; at < sim->plan->tasks[task].n_streams; at++)
    if (sim->plan->tasks[task].device[at] == device && sim->plan->tasks[task].stream[at] == kind) return true;
  return false;
}

static bool computes_on(const simulation *sim, uint32_t device) {
  for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
    if (sim->plan->tasks[task].kind == PL_TASK_WORK && sim->plan->tasks[task].computes &&
        runs_on(sim, task, device, PL_STREAM_COMPUTE))
      return true;
  return false;
}

static void set_compute_speed(simulation *sim, uint32_t task, pl_ticks now) {
  const plan_task *work = &sim->plan->tasks[task];
  uint32_t device = work->device[0];
  if (sim->phase[task] != RUNNING || work->kind != PL_TASK_WORK) return;
  const pl_graph_device *own = &sim->plan->devices[device];
  double slowdown = 1;
  bool is_beside_tensor = false;
  for (uint32_t other = 0; other < sim->plan->n_tasks; other++)
    if (work->computes && runs_on(sim, other, device, PL_STREAM_GRADIENT))
      slowdown = 1 + sim->plan->devices[device].overlap_compute;
  for (uint32_t other = 0; other < sim->plan->n_tasks && work->is_crowded; other++)
    if (runs_on(sim, other, device, PL_STREAM_EXPERT)) slowdown *= 1 + own->overlap_exchange;
  for (uint32_t other = 0; other < sim->plan->n_tasks && work->is_crowded; other++)
    is_beside_tensor |= runs_on(sim, other, device, PL_STREAM_FEATURE);
  if (is_beside_tensor) slowdown *= 1 + own->overlap_tensor;
  bool is_let_in = sim->is_held[task] && !is_beside_tensor;
  sim->is_held[task] = is_beside_tensor && own->waits_for_place && own->overlap_tensor > 0;
  if (slowdown == sim->slowdown[task] && !is_let_in) return;
  sim->remaining[task] = fmax(0, sim->remaining[task] - (double)(now - sim->updated[task]) / sim->slowdown[task]);
  /* What has had no place begins now at the latest, and takes as long as the whole. */
  if (is_let_in) sim->remaining[task] = fmin(sim->remaining[task] * (1 + own->overlap_tensor), (double)work->ticks);
  sim->updated[task] = now;
  sim->slowdown[task] = slowdown;
  sim->due[task] = now + llrint(sim->remaining[task] * slowdown);
}

static void set_transfer_speed(simulation *sim, uint32_t task, pl_ticks now) {
  const plan_task *transfer = &sim->plan->tasks[task];
  if (sim->phase[task] != RUNNING || transfer->kind != PL_TASK_TRANSFER) return;
  double speed = 1;
  for (uint32_t at = 0; at < transfer->n_streams; at++)
    if (transfer->stream[at] == PL_STREAM_GRADIENT && computes_on(sim, transfer->device[at]))
      speed = fmin(speed, 1 / (1 + sim->plan->devices[transfer->device[at]].overlap_communication));
  if (speed == sim->speed[task]) return;
  sim->speed[task] = speed;
  sim->network->ops->set_speed(sim->network, now, sim->slot[task], speed);
  sim->touched = true;
}

static void settle(simulation *sim, pl_ticks now) {
  for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
    set_compute_speed(sim, task, now);
  for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
    set_transfer_speed(sim, task, now);
  if (sim->touched) sim->network_next = sim->network->ops->settle(sim->network, now);
  sim->touched = false;
}

static pl_ticks next_date(const simulation *sim) {
  pl_ticks next = sim->network_next;
  for (uint32_t task = 0; task < sim->plan->n_tasks; task++)
    if (sim->phase[task] == RUNNING && sim->due[task] < next) next = sim->due[task];
  return next;
}

/* ---- accounting, tick by tick ---- */

static bool is_communication(const plan_task *task) {
  return task->kind != PL_TASK_WORK && pl_category_is_communication(task->category);
}

static bool has_stream(const plan_task *task, uint32_t device, int kind) {
  for (uint32_t at = 0; at < task->n_streams; at++)
    if (task->device[at] == device && (kind < 0 || (int)task->stream[at] == kind)) return true;
  return false;
}

/* A communication that no fused task can hide. */
static bool communicates(const plan_task *task) {
  return is_communication(task) && (task->n_streams == 0 || task->stream[0] != PL_STREAM_FEATURE);
}

static int explanation_rank(const plan_task *task) {
  if (communicates(task)) return 3;
  return task->kind == PL_TASK_WORK ? 1 : task->n_streams > 1 ? 2 : 0;
}

/* Of several that finish together: what no fused task can hide, the one that started first, of the lowest category, the
 * lowest. */
static bool explains_better(const test_plan *plan, const plan_run *run, uint32_t task, uint32_t than) {
  if (run->finish[task] != run->finish[than]) return run->finish[task] > run->finish[than];
  int rank = explanation_rank(&plan->tasks[task]), other = explanation_rank(&plan->tasks[than]);
  if (rank != other) return rank > other;
  if (run->start[task] != run->start[than]) return run->start[task] < run->start[than];
  return plan->tasks[task].category < plan->tasks[than].category;
}

static uint32_t last_predecessor(const test_plan *plan, const plan_run *run, uint32_t task) {
  uint32_t last = PL_NONE;
  for (uint32_t other = 0; other < plan->n_tasks; other++)
    if (plan->precedes[other][task] && (last == PL_NONE || explains_better(plan, run, other, last))) last = other;
  return last;
}

/* The task that starts next behind `tick`, of a feature stream only communication; among those of one start the one of
 * longest duration is last. */
static uint32_t next_on_stream(const test_plan *plan, const plan_run *run, uint32_t device, pl_stream_kind kind,
                               pl_ticks tick) {
  uint32_t next = PL_NONE;
  for (uint32_t task = 0; task < plan->n_tasks; task++) {
    if (!has_stream(&plan->tasks[task], device, (int)kind) || run->start[task] <= tick) continue;
    if (kind == PL_STREAM_FEATURE && !is_communication(&plan->tasks[task])) continue;
    if (next == PL_NONE || run->start[task] < run->start[next] ||
        (run->start[task] == run->start[next] && run->finish[task] < run->finish[next]))
      next = task;
  }
  return next;
}

/* What `device` does in [tick, tick + 1): a category, or -1 for idle. */
static int activity(const test_plan *plan, const plan_run *run, uint32_t device, pl_ticks tick) {
  static const int kinds[] = {PL_STREAM_COMPUTE, PL_STREAM_FEATURE};
  for (int at = 0; at < 2; at++)
    for (uint32_t task = 0; task < plan->n_tasks; task++)
      if (run->start[task] <= tick && tick < run->finish[task] && has_stream(&plan->tasks[task], device, kinds[at]) &&
          (at == 0 || is_communication(&plan->tasks[task])))
        return (int)plan->tasks[task].category;
  uint32_t next = next_on_stream(plan, run, device, PL_STREAM_COMPUTE, tick);
  uint32_t feature = next_on_stream(plan, run, device, PL_STREAM_FEATURE, tick);
  if (feature != PL_NONE && (next == PL_NONE || run->start[feature] < run->start[next] ||
                             (feature < next && run->finish[feature] == run->start[next])))
    next = feature;
  if (next == PL_NONE) {
    for (uint32_t task = 0; task < plan->n_tasks; task++)
      if (run->start[task] <= tick && tick < run->finish[task] &&
          has_stream(&plan->tasks[task], device, PL_STREAM_GRADIENT) && is_communication(&plan->tasks[task]))
        return PL_CATEGORY_DATA;
    return -1;
  }
  for (uint32_t cause = last_predecessor(plan, run, next); cause != PL_NONE;
       cause = last_predecessor(plan, run, cause)) {
    const plan_task *task = &plan->tasks[cause];
    if (!communicates(task) && !(is_communication(task) && has_stream(task, device, PL_STREAM_FEATURE))) return -1;
    if (run->start[cause] <= tick && tick < run->finish[cause]) return (int)task->category;
  }
  return -1;
}

void plan_simulate(const test_plan *plan, pl_arena *arena, plan_run *run) {
  simulation *sim = PL_TAKE(arena, simulation, 1);
  memset(run, 0, sizeof *run);
  sim->plan = plan;
  sim->run = run;
  sim->network = fixed_network_take(&plan->table, PLAN_TASKS, arena);
  sim->network_next = PL_TICKS_NEVER;
  for (uint32_t device = 0; device < plan->n_devices; device++)
    sim->bytes[device] = run->peak_bytes[device] = plan->devices[device].resident_bytes;
  for (pl_ticks now = 0; now != PL_TICKS_NEVER; now = next_date(sim)) {
    drain(sim, now);
    settle(sim, now);
  }
  for (uint32_t task = 0; task < plan->n_tasks; task++)
    PL_ASSERT(sim->phase[task] == DONE);
}

void plan_account(const test_plan *plan, plan_run *run) {
  for (uint32_t device = 0; device < plan->n_devices; device++)
    for (pl_ticks tick = 0; tick < run->makespan; tick++) {
      int category = activity(plan, run, device, tick);
      *(category < 0 ? &run->idle[device] : &run->spent[device][category]) += 1;
    }
}
