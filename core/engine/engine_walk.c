/* How the devices of a segment go through its parts (core/engine/engine_walk.h). */
#include "core/engine/engine_walk.h"

/* Adds to a sum of the device, of the task that runs on its compute stream. */
static void add(pl_engine *engine, const pl_walker *walker, int kind, pl_ticks *sum, pl_ticks ticks) {
  *sum += ticks;
  if (engine->options.drifts && ticks != 0)
    pl_drift_note(engine, walker->task, pl_walker_device(engine, walker), (uint8_t)kind, ticks);
}

static void begin_part(pl_walker *walker, pl_ticks ticks, pl_ticks date) {
  walker->part_start = walker->updated = date;
  walker->part_finish = pl_later(date, ticks);
  walker->remaining = (double)ticks;
  walker->slowdown = 1.0;
}

/* The last member has got to a communication of a joint segment. */
static void end_waiting(pl_engine *engine, const pl_task *record, pl_ticks ticks) {
  pl_walker *first = pl_walker_of(engine, record, 0);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_of(engine, record, member);
    add(engine, walker, PL_DRIFT_WAITING, &engine->overlap->waiting[pl_walker_device(engine, walker)],
        first->last_arrival - walker->part_start);
    walker->waits = false;
    begin_part(walker, ticks, first->last_arrival);
  }
  first->n_waiting = 0;
}

/* The member gets to its current part at `date`, and begins it at speed 1 unless others are to come. */
static void enter_part(pl_engine *engine, const pl_task *record, pl_walker *walker, pl_ticks date) {
  const pl_part *part = &engine->graph->parts[walker->part];
  if (record->n_streams == 1 || part->computes) {
    begin_part(walker, part->ticks, date);
    return;
  }
  pl_walker *first = pl_walker_of(engine, record, 0);
  walker->waits = true;
  walker->part_start = date;
  walker->part_finish = PL_TICKS_NEVER;
  if (first->n_waiting == 0 || date > first->last_arrival) first->last_arrival = date;
  if (++first->n_waiting == record->n_streams) end_waiting(engine, record, part->ticks);
}

void pl_walk_begin(pl_engine *engine, uint32_t task) {
  const pl_task *record = pl_engine_task(engine, task);
  const pl_segment *segment = &engine->graph->segments[record->index];
  pl_ticks start = pl_engine_start(engine, task);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_of(engine, record, member);
    walker->walked = true;
    walker->part = segment->first_part;
    walker->end_part = segment->first_part + segment->n_parts;
    walker->run_end = 0;
    walker->rest = segment->ticks - engine->graph->parts[walker->part].ticks;
    walker->key = member == 0 ? pl_later(start, segment->ticks) : PL_TICKS_NEVER;
    enter_part(engine, record, walker, start);
  }
}

static void leave_part(pl_engine *engine, const pl_task *record, uint32_t member, const pl_walker *walker) {
  const pl_part *part = &engine->graph->parts[walker->part];
  if (engine->graph->segments[record->index].n_parts > 1)
    add(engine, walker, part->category,
        &engine->overlap->extra[(size_t)pl_walker_device(engine, walker) * PL_CATEGORY_COUNT + part->category],
        walker->part_finish - walker->part_start - part->ticks);
  if (engine->spans != NULL)
    engine->spans[engine->n_spans++] = (pl_part_span){.task = walker->task,
                                                      .part = walker->part,
                                                      .member = member,
                                                      .start = walker->part_start,
                                                      .finish = walker->part_finish};
}

/* The first part from `part` on that has not ended after `ticks`, with the parts run one after the other at speed 1. */
static uint32_t part_after(const uint64_t *elapsed, uint32_t part, uint32_t end, uint64_t ticks) {
  uint64_t origin = elapsed[part];
  uint32_t low = part, step = 1; /* all before `low` have ended */
  while (low + step <= end && elapsed[low + step] - origin <= ticks) {
    low += step;
    step *= 2;
  }
  for (; step > 0; step /= 2)
    if (low + step <= end && elapsed[low + step] - origin <= ticks) low += step;
  return low;
}

/* Leaves at once every part that has ended by `now` if all members are in step: behind the current part they run at
 * speed 1 and nobody waits, so the sums of the ticks say where they are. Part by part this was a fifth of a sweep's
 * time, as a segment has some hundred parts and every rival that comes or goes asks. (Timelines want every part.) */
static void skip_parts(pl_engine *engine, const pl_task *record, pl_walker *first, pl_ticks now) {
  if (engine->spans != NULL || first->part == first->end_part || first->flows || first->part_finish > now ||
      pl_later(first->part_finish, first->rest) == PL_TICKS_MAX || !pl_walk_is_in_step(engine, record, first))
    return;
  const uint64_t *elapsed = engine->overlap->elapsed;
  uint32_t next = first->part + 1, part = first->end_part;
  if (first->part_finish + first->rest > now)
    part = part_after(elapsed, next, part, (uint64_t)(now - first->part_finish));
  pl_ticks date = first->part_finish + (pl_ticks)(elapsed[part] - elapsed[next]);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    pl_walker *walker = pl_walker_at(engine, record, first, member);
    leave_part(engine, record, member, walker);
    walker->part = part;
    walker->rest -= (pl_ticks)(elapsed[part + (part < walker->end_part)] - elapsed[next]);
    if (part < walker->end_part) begin_part(walker, engine->graph->parts[part].ticks, date);
  }
}

/* Leaves every part that the member has ended by `now`. Whether there was one. */
static bool walk_member(pl_engine *engine, const pl_task *record, pl_walker *walker, uint32_t member, pl_ticks now) {
  bool moved = false;
  while (walker->part < walker->end_part && !walker->flows && walker->part_finish <= now) {
    leave_part(engine, record, member, walker);
    moved = true;
    if (++walker->part == walker->end_part) break;
    walker->rest -= engine->graph->parts[walker->part].ticks;
    enter_part(engine, record, walker, walker->part_finish);
  }
  return moved;
}

void pl_walk_run(pl_engine *engine, const pl_task *record, pl_walker *walker, pl_ticks now) {
  const double slowdown = walker->slowdown;
  while (walker->part < walker->run_end && walker->part_finish <= now) {
    pl_ticks date = walker->part_finish;
    leave_part(engine, record, 0, walker);
    if (date > walker->part_start && date < walker->key) pl_engine_count_event(engine, walker->task, false);
    if (++walker->part == walker->end_part) return;
    walker->rest -= engine->graph->parts[walker->part].ticks;
    begin_part(walker, engine->graph->parts[walker->part].ticks, date);
    if (walker->part < walker->run_end) pl_walk_change_speed(walker, date, slowdown);
  }
}

bool pl_walk_to(pl_engine *engine, const pl_task *record, pl_walker *first, pl_ticks now) {
  if (first->part < first->run_end) pl_walk_run(engine, record, first, now);
  skip_parts(engine, record, first, now);
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t member = 0; member < record->n_streams; member++)
      moved |= walk_member(engine, record, pl_walker_at(engine, record, first, member), member, now);
    if (record->n_streams == 1) break;
  }
  return first->part < first->end_part;
}
