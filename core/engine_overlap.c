/* What disturbs a segment while it runs. The overlap factor (Proteus, section VI-C): compute and gradient communication
 * of one device slow each other down while they really overlap. And rivals: transfers that contend with the
 * communication in the segment.
 *
 * Per device a walker follows the segment on the compute stream, but only while something disturbs it: otherwise one
 * event stands for the whole rest of the segment, and the parts that it has passed are caught up with when a gradient
 * task or a rival starts or the segment ends. A communication part that a rival finds half done goes on on the network
 * from there. Speeds are looked at once per tick, when all its events are in, and dates are made anew only if a speed
 * really changed; so a segment of many parts and the same parts as tasks of their own see the same sequence of
 * roundings, and end on the same ticks.
 */
#include <math.h>

#include "core/engine_state.h"

bool pl_overlap_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  pl_overlap *overlap = PL_TAKE(arena, pl_overlap, 1);
  if (overlap == NULL) return false;
  overlap->walkers = PL_TAKE(arena, pl_walker, graph->n_devices);
  overlap->dirty = PL_TAKE(arena, uint32_t, graph->n_devices);
  overlap->transfers = PL_TAKE(arena, pl_gradient_transfer, graph->n_streams);
  overlap->changed = PL_TAKE(arena, uint32_t, graph->n_streams);
  overlap->extra = PL_TAKE(arena, pl_ticks, (size_t)graph->n_devices * PL_CATEGORY_COUNT);
  if (overlap->walkers == NULL || overlap->dirty == NULL || overlap->transfers == NULL || overlap->changed == NULL ||
      overlap->extra == NULL)
    return false;
  overlap->uniform = true;
  for (uint32_t at = 0; at < graph->n_devices; at++) {
    const pl_graph_device *device = &graph->devices[at];
    overlap->walkers[at] = (pl_walker){
        .task = PL_NONE, .gradient = PL_NONE, .acts = device->overlap_compute > 0 || device->overlap_communication > 0};
    overlap->uniform &= device->overlap_communication == graph->devices[0].overlap_communication;
  }
  for (uint32_t at = 0; graph->rivals != NULL && at < graph->rival_offset[graph->transfers.n_specs]; at++)
    overlap->walkers[graph->rivals[at]].contends = true;
  overlap->uniform_speed = 1 / (1 + graph->devices[0].overlap_communication);
  engine->overlap = overlap;
  return true;
}

static void mark(pl_overlap *overlap, uint32_t device) {
  if (overlap->walkers[device].dirty) return;
  overlap->walkers[device].dirty = true;
  overlap->dirty[overlap->n_dirty++] = device;
}

/* ---- what runs where ---- */

static void note_compute_start(pl_overlap *overlap, uint32_t device, uint32_t task) {
  pl_walker *walker = &overlap->walkers[device];
  walker->task = task;
  walker->walked = false;
  if (walker->gradient != PL_NONE || walker->n_rivals > 0) mark(overlap, device);
}

/* A transfer that starts or ends: those whose segments it contends with. */
static void note_rival(pl_engine *engine, const pl_task *transfer, uint32_t change) {
  const pl_graph *graph = engine->graph;
  if (graph->rivals == NULL) return;
  for (uint32_t at = graph->rival_offset[transfer->index]; at < graph->rival_offset[transfer->index + 1]; at++) {
    pl_walker *walker = &engine->overlap->walkers[graph->rivals[at]];
    walker->n_rivals += change;
    if (walker->task != PL_NONE) mark(engine->overlap, graph->rivals[at]);
  }
}

static void note_gradient_start(pl_overlap *overlap, uint32_t device, uint32_t task) {
  pl_walker *walker = &overlap->walkers[device];
  walker->gradient = task;
  walker->slows = false;
  mark(overlap, device);
}

void pl_overlap_note_start(pl_engine *engine, uint32_t task, uint32_t network_slot) {
  const pl_task *record = &engine->tasks[task];
  const uint32_t *streams = pl_task_streams(engine, record);
  pl_overlap *overlap = engine->overlap;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &engine->graph->streams[streams[member]];
    const pl_walker *walker = &overlap->walkers[stream->device];
    if (!walker->acts && !walker->contends) continue;
    if (stream->kind == PL_STREAM_COMPUTE && record->kind == PL_TASK_WORK)
      note_compute_start(overlap, stream->device, task);
    if (stream->kind == PL_STREAM_GRADIENT && walker->acts) note_gradient_start(overlap, stream->device, task);
  }
  if (record->kind == PL_TASK_TRANSFER) note_rival(engine, record, 1);
  if (record->kind == PL_TASK_TRANSFER && record->n_streams > 0)
    overlap->transfers[streams[0]] = (pl_gradient_transfer){.task = task, .network_slot = network_slot, .speed = 1.0};
}

void pl_overlap_note_finish(pl_engine *engine, uint32_t task) {
  const pl_task *record = &engine->tasks[task];
  const uint32_t *streams = pl_task_streams(engine, record);
  pl_overlap *overlap = engine->overlap;
  if (record->kind == PL_TASK_TRANSFER) note_rival(engine, record, UINT32_MAX);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &engine->graph->streams[streams[member]];
    pl_walker *walker = &overlap->walkers[stream->device];
    if (stream->kind == PL_STREAM_COMPUTE && walker->task == task) {
      walker->task = PL_NONE;
      walker->walked = false;
      if (walker->gradient != PL_NONE) mark(overlap, stream->device);
    } else if (stream->kind == PL_STREAM_GRADIENT && walker->gradient == task) {
      walker->gradient = PL_NONE;
      mark(overlap, stream->device);
    }
  }
}

/* ---- walking ---- */

static double ticks_left(double remaining) {
  return remaining > 0 ? remaining : 0;
}

static pl_ticks date_after(pl_ticks now, double ticks) {
  return ticks >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : pl_later(now, (pl_ticks)llrint(ticks));
}

/* The current part starts at `date`, at speed 1. */
static void enter_part(pl_walker *walker, const pl_graph *graph, pl_ticks date) {
  pl_ticks ticks = graph->parts[walker->part].ticks;
  walker->part_start = walker->updated = date;
  walker->part_finish = pl_later(date, ticks);
  walker->remaining = (double)ticks;
  walker->slowdown = 1.0;
}

static void begin_walk(pl_walker *walker, const pl_engine *engine) {
  const pl_segment *segment = &engine->graph->segments[engine->tasks[walker->task].index];
  pl_ticks start = engine->start[walker->task];
  walker->walked = true;
  walker->part = segment->first_part;
  walker->end_part = segment->first_part + segment->n_parts;
  walker->rest = segment->ticks - engine->graph->parts[walker->part].ticks;
  walker->key = pl_later(start, segment->ticks);
  enter_part(walker, engine->graph, start);
}

static void leave_part(pl_engine *engine, uint32_t device, const pl_walker *walker) {
  const pl_part *part = &engine->graph->parts[walker->part];
  if (engine->graph->segments[engine->tasks[walker->task].index].n_parts > 1)
    engine->overlap->extra[(size_t)device * PL_CATEGORY_COUNT + part->category] +=
        walker->part_finish - walker->part_start - part->ticks;
  if (engine->spans != NULL)
    engine->spans[engine->n_spans++] = (pl_part_span){
        .task = walker->task, .part = walker->part, .start = walker->part_start, .finish = walker->part_finish};
}

/* Leaves every part that has ended by `now`. False: the segment is over. */
static bool walk_to(pl_engine *engine, uint32_t device, pl_ticks now) {
  pl_walker *walker = &engine->overlap->walkers[device];
  while (walker->part < walker->end_part && !walker->flows && walker->part_finish <= now) {
    leave_part(engine, device, walker);
    if (++walker->part == walker->end_part) break;
    walker->rest -= engine->graph->parts[walker->part].ticks;
    enter_part(walker, engine->graph, walker->part_finish);
  }
  return walker->part < walker->end_part;
}

bool pl_overlap_is_over(pl_engine *engine, uint32_t task, pl_ticks now) {
  uint32_t device = engine->graph->streams[*pl_task_streams(engine, &engine->tasks[task])].device;
  pl_walker *walker = &engine->overlap->walkers[device];
  if (walker->task != task || !walker->walked || !walk_to(engine, device, now)) return true;
  walker->key = PL_TICKS_NEVER; /* the event is used up */
  mark(engine->overlap, device);
  return false;
}

bool pl_overlap_flow_is_over(pl_engine *engine, uint32_t task, pl_ticks now) {
  uint32_t device = engine->graph->streams[*pl_task_streams(engine, &engine->tasks[task])].device;
  pl_walker *walker = &engine->overlap->walkers[device];
  PL_ASSERT(walker->task == task && walker->flows);
  walker->flows = false;
  walker->part_finish = now;
  if (!walk_to(engine, device, now)) return true;
  mark(engine->overlap, device);
  return false;
}

/* ---- when the tick is drained ---- */

static void change_speed(pl_walker *walker, pl_ticks now, double slowdown) {
  if (slowdown == walker->slowdown) return;
  walker->remaining = ticks_left(walker->remaining - (double)(now - walker->updated) / walker->slowdown);
  walker->updated = now;
  walker->slowdown = slowdown;
  walker->part_finish = date_after(now, walker->remaining * slowdown);
}

/* The current part goes on on the network, and no timer is set for it. */
static void begin_flow(pl_engine *engine, pl_walker *walker, pl_ticks now) {
  const pl_part *part = &engine->graph->parts[walker->part];
  walker->flows = true;
  if (walker->key != PL_TICKS_NEVER) pl_engine_clear_timer(engine, walker->task);
  walker->key = PL_TICKS_NEVER;
  engine->network->ops->resume(engine->network, now, walker->task, part->spec, part->size_bytes, walker->part_start);
  engine->network_touched = true;
}

/* Speed and date of what runs on the compute stream. Returns whether that is a computing part which overlaps. */
static bool settle_compute(pl_engine *engine, uint32_t device, pl_ticks now) {
  pl_walker *walker = &engine->overlap->walkers[device];
  bool overlaps = walker->gradient != PL_NONE, disturbed = overlaps || walker->n_rivals > 0;
  if (walker->task == PL_NONE || (!disturbed && !walker->walked)) return false;
  if (!walker->walked) begin_walk(walker, engine);
  walk_to(engine, device, now);
  const pl_part *part = &engine->graph->parts[walker->part];
  if (part->transfers && walker->n_rivals > 0 && !walker->flows) begin_flow(engine, walker, now);
  if (walker->flows) return false;
  bool computes = overlaps && part->computes;
  change_speed(walker, now, computes ? 1 + engine->graph->devices[device].overlap_compute : 1.0);
  pl_ticks key = disturbed ? walker->part_finish : pl_later(walker->part_finish, walker->rest);
  if (key != walker->key) pl_engine_set_timer(engine, walker->task, walker->key = key);
  return computes;
}

static void count_slowing(pl_engine *engine, uint32_t device, bool computes) {
  pl_overlap *overlap = engine->overlap;
  pl_walker *walker = &overlap->walkers[device];
  if (walker->gradient == PL_NONE || engine->tasks[walker->gradient].kind != PL_TASK_TRANSFER) return;
  if (computes == walker->slows) return;
  walker->slows = computes;
  pl_gradient_transfer *transfer = &overlap->transfers[*pl_task_streams(engine, &engine->tasks[walker->gradient])];
  transfer->n_slowing += computes ? 1u : UINT32_MAX;
  if (transfer->changed) return;
  transfer->changed = true;
  overlap->changed[overlap->n_changed++] = walker->gradient;
}

/* The smallest speed over the members that compute. With one gamma for all, counting suffices; else every member is
 * asked. */
static double speed_of(const pl_engine *engine, const pl_gradient_transfer *transfer) {
  if (transfer->n_slowing == 0) return 1.0;
  if (engine->overlap->uniform) return engine->overlap->uniform_speed;
  const pl_task *record = &engine->tasks[transfer->task];
  double greatest = 0;
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    uint32_t device = engine->graph->streams[stream].device;
    const pl_walker *walker = &engine->overlap->walkers[device];
    if (walker->gradient != transfer->task || !walker->slows) continue;
    greatest = fmax(greatest, engine->graph->devices[device].overlap_communication);
  }
  return 1 / (1 + greatest);
}

static void settle_transfers(pl_engine *engine, pl_ticks now) {
  pl_overlap *overlap = engine->overlap;
  if (overlap->n_changed > 1) pl_sort_tasks(overlap->changed, overlap->n_changed);
  for (uint32_t at = 0; at < overlap->n_changed; at++) {
    pl_gradient_transfer *transfer =
        &overlap->transfers[*pl_task_streams(engine, &engine->tasks[overlap->changed[at]])];
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
    count_slowing(engine, device, settle_compute(engine, device, now));
  }
  overlap->n_dirty = 0;
  settle_transfers(engine, now);
}
