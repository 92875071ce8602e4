/* What disturbs a segment while it runs. The overlap factor (Proteus, section VI-C): compute and gradient communication
 * of one device slow each other down while they really overlap. The multiprocessors that exchanges of experts and
 * collectives of the tensor group take from what computing bounds meanwhile; they have theirs and keep their pace. And
 * rivals: transfers that contend with the communication in the segment.
 *
 * Where the devices of a segment are is engine_walk.c's business. A communication part that a rival finds half done
 * goes on on the network from there. Speeds are looked at once per tick, when all its events are in, and dates are made
 * anew only if a speed really changed. What runs beside a segment slows its computing parts alike, one after the other,
 * so these need no events of their own: one stands for the end of the last of such a run, whose dates are made as the
 * events would have made them. (Of the events of a sweep's runs a third were of such parts.) Once the members of a
 * joint segment are in step and nothing disturbs any of them, one event stands for the rest again.
 */
#include "core/engine/engine_walk.h"

static void mark(pl_overlap *overlap, uint32_t device) {
  if (overlap->walkers[device].dirty) return;
  overlap->walkers[device].dirty = true;
  overlap->dirty[overlap->n_dirty++] = device;
}

/* ---- what runs where ---- */

static bool has_gradient(const pl_walker *walker) {
  return walker->gradient[0] != PL_NONE || walker->gradient[1] != PL_NONE;
}

static bool has_crowd(const pl_walker *walker) {
  return walker->crowd[PL_CROWDING_EXPERT] != PL_NONE || walker->crowd[PL_CROWDING_TENSOR] != PL_NONE;
}

/* Whether something on its other streams slows what it computes. */
static bool is_beside(const pl_walker *walker) {
  return has_gradient(walker) || has_crowd(walker);
}

static void note_work_start(pl_engine *engine, const pl_task *record, uint32_t task) {
  bool is_disturbed = false;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_walker *walker = pl_walker_of(engine, record, member);
    is_disturbed |= is_beside(walker) || walker->n_rivals > 0;
  }
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_of(engine, record, member);
    walker->task = task;
    walker->stream = pl_task_streams(engine, record)[member];
    walker->walked = false;
  }
  if (is_disturbed) mark(engine->overlap, pl_walker_device(engine, pl_walker_of(engine, record, 0)));
}

/* A transfer that starts or ends: those whose segments it contends with. */
static void note_rival(pl_engine *engine, const pl_task *transfer, uint32_t change) {
  const pl_graph *graph = engine->graph;
  for (uint32_t at = graph->rival_offset[transfer->index]; at < graph->rival_offset[transfer->index + 1]; at++) {
    pl_walker *walker = &engine->overlap->walkers[graph->rivals[at]];
    walker->n_rivals += change;
    if (walker->task != PL_NONE) mark(engine->overlap, graph->rivals[at]);
  }
}

static void note_gradient_start(pl_engine *engine, const pl_task *record, uint32_t task, uint32_t network_slot) {
  pl_overlap *overlap = engine->overlap;
  const uint32_t *streams = pl_task_streams(engine, record);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &engine->graph->streams[streams[member]];
    pl_walker *walker = &overlap->walkers[stream->device];
    int which = pl_gradient_stream(stream);
    if (which < 0 || !walker->acts) continue;
    walker->gradient[which] = task;
    walker->slows[which] = false;
    mark(overlap, stream->device);
  }
  if (record->kind == PL_TASK_TRANSFER)
    overlap->transfers[streams[0]] = (pl_gradient_transfer){.task = task, .network_slot = network_slot, .speed = 1.0};
}

/* A collective that starts and takes multiprocessors, and PL_NONE where it ends. */
static void note_crowd(pl_engine *engine, const pl_task *record, uint32_t task) {
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_of(engine, record, member);
    int which = pl_crowding_stream(&engine->graph->streams[pl_task_streams(engine, record)[member]]);
    if (which < 0 || !walker->is_crowded[which]) continue;
    walker->crowd[which] = task;
    if (walker->task != PL_NONE) mark(engine->overlap, pl_walker_device(engine, walker));
  }
}

void pl_overlap_note_start(pl_engine *engine, const pl_task *record, uint32_t task, uint32_t network_slot) {
  uint8_t concerns = engine->overlap->concerns[record - engine->tasks];
  if ((concerns & PL_CONCERN_WORK) != 0) note_work_start(engine, record, task);
  if ((concerns & PL_CONCERN_GRADIENT) != 0) note_gradient_start(engine, record, task, network_slot);
  if ((concerns & PL_CONCERN_CROWD) != 0) note_crowd(engine, record, task);
  if ((concerns & PL_CONCERN_RIVAL) != 0) note_rival(engine, record, 1);
}

void pl_overlap_note_finish(pl_engine *engine, const pl_task *record, uint32_t task) {
  const uint32_t *streams = pl_task_streams(engine, record);
  pl_overlap *overlap = engine->overlap;
  uint8_t concerns = overlap->concerns[record - engine->tasks];
  if ((concerns & PL_CONCERN_RIVAL) != 0) note_rival(engine, record, UINT32_MAX);
  if ((concerns & PL_CONCERN_CROWD) != 0) note_crowd(engine, record, PL_NONE);
  if ((concerns & (PL_CONCERN_WORK | PL_CONCERN_GRADIENT)) == 0) return;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &engine->graph->streams[streams[member]];
    pl_walker *walker = &overlap->walkers[stream->device];
    int which = pl_gradient_stream(stream);
    if (stream->kind == PL_STREAM_COMPUTE && walker->task == task) {
      walker->task = PL_NONE;
      walker->walked = false;
      if (is_beside(walker)) mark(overlap, stream->device);
    } else if (which >= 0 && walker->gradient[which] == task) {
      walker->gradient[which] = PL_NONE;
      mark(overlap, stream->device);
    }
  }
}

/* ---- events of segments ---- */

bool pl_overlap_is_over(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks now) {
  pl_walker *first = pl_walker_of(engine, record, 0);
  if (first->task != task || !first->walked) return true;
  bool is_over = !pl_walk_to(engine, record, first, now);
  if (is_over && record->n_streams == 1) return true;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_at(engine, record, first, member);
    if (is_over) {
      pl_engine_clear_timer(engine, walker->stream); /* of members that were at the end at this tick, too */
    } else if (walker->key <= now) {
      walker->key = PL_TICKS_NEVER; /* the event is used up */
    }
  }
  if (!is_over) mark(engine->overlap, pl_walker_device(engine, first));
  return is_over;
}

bool pl_overlap_flow_is_over(pl_engine *engine, uint32_t task, pl_ticks now) {
  const pl_task *record = pl_engine_task(engine, task);
  pl_walker *first = pl_walker_of(engine, record, 0);
  PL_ASSERT(first->task == task && first->flows);
  first->flows = false;
  for (uint32_t member = 0; member < record->n_streams; member++)
    pl_walker_at(engine, record, first, member)->part_finish = now;
  if (!pl_walk_to(engine, record, first, now)) return true;
  mark(engine->overlap, pl_walker_device(engine, first));
  return false;
}

/* ---- when the tick is drained ---- */

static void set_date(pl_engine *engine, pl_walker *walker, pl_ticks date) {
  if (date == walker->key) return;
  walker->key = date;
  if (date == PL_TICKS_NEVER) {
    pl_engine_clear_timer(engine, walker->stream);
  } else {
    pl_engine_set_member_timer(engine, walker->task, walker->stream, date);
  }
}

/* The current part goes on on the network, and no timer is set for it. */
static void begin_flow(pl_engine *engine, const pl_task *record, pl_ticks now) {
  pl_walker *first = pl_walker_of(engine, record, 0);
  const pl_part *part = &engine->graph->parts[first->part];
  first->flows = true;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_at(engine, record, first, member);
    set_date(engine, walker, PL_TICKS_NEVER);
    walker->part_finish = PL_TICKS_NEVER;
  }
  engine->network->ops->resume(engine->network, now, first->task, part->spec, part->size_bytes, first->part_start);
  engine->network_touched = true;
}

static void count_slowing_of(pl_engine *engine, pl_walker *walker, int which, bool computes) {
  pl_overlap *overlap = engine->overlap;
  uint32_t task = walker->gradient[which];
  if (task == PL_NONE || pl_engine_task(engine, task)->kind != PL_TASK_TRANSFER || computes == walker->slows[which])
    return;
  walker->slows[which] = computes;
  pl_gradient_transfer *transfer = &overlap->transfers[*pl_task_streams(engine, pl_engine_task(engine, task))];
  transfer->n_slowing += computes ? 1u : UINT32_MAX;
  if (transfer->changed) return;
  transfer->changed = true;
  overlap->changed[overlap->n_changed++] = task;
}

static inline void count_slowing(pl_engine *engine, uint32_t device, bool computes) {
  if (!has_gradient(&engine->overlap->walkers[device])) return;
  for (int which = 0; which < PL_GRADIENT_STREAMS; which++)
    count_slowing_of(engine, &engine->overlap->walkers[device], which, computes);
}

/* The end of the run of parts that nobody on the network can disturb. */
static pl_ticks quiet_until(const pl_engine *engine, const pl_walker *walker) {
  const pl_overlap *overlap = engine->overlap;
  pl_ticks end = pl_later(walker->part_finish, walker->rest);
  uint32_t next = walker->part + 1, transfer = overlap->next_transfer[next];
  if (transfer >= walker->end_part) return end;
  if (end == PL_TICKS_MAX) return walker->part_finish;
  return walker->part_finish + (pl_ticks)(overlap->elapsed[transfer] - overlap->elapsed[next]);
}

/* What may happen to a segment before it is looked at again. */
typedef struct outlook {
  bool overlaps; /* gradients or collectives that crowd a member are under way: every part may have another speed */
  bool has_rivals;
  bool together; /* all members are in the same part, and will be as long as nothing overlaps */
} outlook;

static outlook outlook_of(const pl_engine *engine, const pl_task *record, const pl_walker *first) {
  outlook found = {.has_rivals = first->n_rivals > 0, .overlaps = is_beside(first)};
  for (uint32_t member = 1; member < record->n_streams; member++)
    found.overlaps |= is_beside(pl_walker_of(engine, record, member));
  return found;
}

/* By how much longer what is under way beside the part lets it take. */
static double slowdown_of(const pl_engine *engine, const pl_walker *walker, uint32_t device) {
  const pl_part *part = &engine->graph->parts[walker->part];
  const pl_graph_device *own = &engine->graph->devices[device];
  double slowdown = 1.0;
  if (has_gradient(walker) && part->computes) slowdown = 1 + own->overlap_compute;
  if (!part->is_crowded) return slowdown;
  if (walker->crowd[PL_CROWDING_EXPERT] != PL_NONE) slowdown *= 1 + own->overlap_exchange;
  if (walker->crowd[PL_CROWDING_TENSOR] != PL_NONE) slowdown *= 1 + own->overlap_tensor;
  return slowdown;
}

/* The collective has gone that the part was beside: that of it which has had no place begins now at the latest, and
 * takes as long as the part. Beside the collective to its end the part would have taken 1 + overlap_tensor times as
 * long: rounds of its thread blocks, of which those under way keep their pace. */
static void let_in(const pl_engine *engine, pl_walker *walker, uint32_t device, pl_ticks now) {
  double rounds = 1 + engine->graph->devices[device].overlap_tensor;
  double left = (walker->remaining - (double)(now - walker->updated) / walker->slowdown) * rounds;
  walker->remaining = fmin(fmax(left, 0), (double)engine->graph->parts[walker->part].ticks);
  walker->updated = now;
  walker->part_finish = pl_walk_date_after(now, walker->remaining * walker->slowdown);
}

static void change_pace(const pl_engine *engine, pl_walker *walker, uint32_t device, pl_ticks now) {
  const pl_graph_device *own = &engine->graph->devices[device];
  bool is_beside_tensor = walker->crowd[PL_CROWDING_TENSOR] != PL_NONE && engine->graph->parts[walker->part].is_crowded;
  if (walker->is_held && !is_beside_tensor && walker->slowdown != 1.0) let_in(engine, walker, device, now);
  pl_walk_change_speed(walker, now, slowdown_of(engine, walker, device));
  walker->is_held = is_beside_tensor && own->waits_for_place && own->overlap_tensor > 0;
}

/* Makes a run of the part that the walker is in and those behind it that compute at the same pace, as long as what is
 * beside it stays. Returns its end. */
static pl_ticks begin_run(const pl_engine *engine, pl_walker *walker) {
  const pl_part *parts = engine->graph->parts;
  uint8_t beside = (uint8_t)(has_gradient(walker) | (walker->crowd[PL_CROWDING_EXPERT] != PL_NONE) << 1 |
                             (walker->crowd[PL_CROWDING_TENSOR] != PL_NONE) << 2);
  if (walker->part < walker->run_end && walker->run_beside == beside) return walker->key;
  const bool is_crowded = parts[walker->part].is_crowded;
  pl_ticks date = walker->part_finish;
  uint32_t part = walker->part + 1;
  for (; part < walker->end_part && parts[part].computes; part++) {
    if (has_crowd(walker) && parts[part].is_crowded != is_crowded) break;
    date = walker->slowdown == 1.0 ? pl_later(date, parts[part].ticks)
                                   : pl_walk_date_after(date, (double)parts[part].ticks * walker->slowdown);
  }
  walker->run_end = part;
  walker->run_beside = beside;
  return date;
}

/* Speed and date of one member, which is in a part. One event is enough for all members while they are together. */
static void settle_member(pl_engine *engine, const pl_task *record, uint32_t member, pl_walker *walker,
                          const outlook *ahead, pl_ticks now) {
  uint32_t device = pl_walker_device(engine, walker);
  bool computes = engine->graph->parts[walker->part].computes, slows = has_gradient(walker) && computes;
  change_pace(engine, walker, device, now);
  pl_ticks date = walker->part_finish;
  if (!ahead->together && computes && record->n_streams == 1) {
    date = begin_run(engine, walker);
  } else {
    walker->run_end = 0;
    if (ahead->together)
      date = ahead->has_rivals ? quiet_until(engine, walker) : pl_later(walker->part_finish, walker->rest);
  }
  bool is_told = member > 0 && (ahead->together || !computes); /* the event of the first member says it */
  set_date(engine, walker, is_told ? PL_TICKS_NEVER : date);
  count_slowing(engine, device, slows);
}

/* What runs on the compute stream of `device`: the work of this device and of those that it has a joint segment with.
 */
static void settle_work(pl_engine *engine, uint32_t task, pl_ticks now) {
  const pl_task *record = pl_engine_task(engine, task);
  pl_walker *first = pl_walker_of(engine, record, 0);
  outlook ahead = outlook_of(engine, record, first);
  if (!ahead.overlaps && !ahead.has_rivals && !first->walked) return;
  if (!first->walked) pl_walk_begin(engine, task);
  pl_walk_to(engine, record, first, now);
  if (ahead.has_rivals && !first->flows && !first->waits && engine->graph->parts[first->part].transfers)
    begin_flow(engine, record, now);
  ahead.together = !ahead.overlaps && pl_walk_is_in_step(engine, record, first);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_at(engine, record, first, member);
    if (first->flows || walker->waits) {
      set_date(engine, walker, PL_TICKS_NEVER);
      count_slowing(engine, pl_walker_device(engine, walker), false);
    } else {
      settle_member(engine, record, member, walker, &ahead, now);
    }
  }
}

/* The smallest speed over the members that compute. With one gamma for all, counting suffices; else every member is
 * asked. */
static double speed_of(const pl_engine *engine, const pl_gradient_transfer *transfer) {
  if (transfer->n_slowing == 0) return 1.0;
  if (engine->overlap->uniform) return engine->overlap->uniform_speed;
  const pl_task *record = pl_engine_task(engine, transfer->task);
  double greatest = 0;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    uint32_t device = engine->graph->streams[stream].device;
    const pl_walker *walker = &engine->overlap->walkers[device];
    int which = walker->gradient[0] == transfer->task ? 0 : 1;
    if (walker->gradient[which] != transfer->task || !walker->slows[which]) continue;
    greatest = fmax(greatest, engine->graph->devices[device].overlap_communication);
  }
  return 1 / (1 + greatest);
}

static void settle_transfers(pl_engine *engine, pl_ticks now) {
  pl_overlap *overlap = engine->overlap;
  if (overlap->n_changed > 1) pl_sort_tasks(overlap->changed, overlap->n_changed);
  for (uint32_t at = 0; at < overlap->n_changed; at++) {
    pl_gradient_transfer *transfer =
        &overlap->transfers[*pl_task_streams(engine, pl_engine_task(engine, overlap->changed[at]))];
    double speed = speed_of(engine, transfer);
    transfer->changed = false;
    if (speed == transfer->speed) continue;
    transfer->speed = speed;
    if (engine->is_native) {
      engine->network->ops->set_speed(engine->network, now, transfer->network_slot, speed);
      engine->network_touched = true;
    } else {
      engine->host.transfer_speed(engine->host_data, now, transfer->task, speed);
    }
  }
  overlap->n_changed = 0;
}

void pl_overlap_settle(pl_engine *engine, pl_ticks now) {
  pl_overlap *overlap = engine->overlap;
  for (uint32_t at = 0; at < overlap->n_dirty; at++) {
    uint32_t device = overlap->dirty[at];
    overlap->walkers[device].dirty = false;
    if (overlap->walkers[device].task == PL_NONE) {
      count_slowing(engine, device, false);
    } else {
      settle_work(engine, overlap->walkers[device].task, now);
    }
  }
  overlap->n_dirty = 0;
  settle_transfers(engine, now);
}
