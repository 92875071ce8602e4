/* See plan.h. */
#include "tests/support/plan.h"

#include <string.h>

#include "tests/support/random.h"

/* ---- making ---- */

static void add_edge(test_plan *plan, uint32_t before, uint32_t after) {
  if (before == PL_NONE || plan->n_edges == PLAN_EDGES) return;
  plan->before[plan->n_edges] = before;
  plan->after[plan->n_edges++] = after;
}

static plan_task *add_task(test_plan *plan, pl_task_kind kind, pl_category category) {
  plan_task *task = &plan->tasks[plan->n_tasks++];
  *task = (plan_task){.kind = kind, .category = category, .group = PL_NONE};
  return task;
}

static void add_stream(plan_task *task, uint32_t device, pl_stream_kind kind) {
  task->device[task->n_streams] = device;
  task->stream[task->n_streams++] = kind;
}

/* Short ones, so that ties, zeros and rounding all happen. */
static pl_ticks some_ticks(uint64_t *random) {
  return random_below(random, 5) == 0 ? 0 : (pl_ticks)random_between(random, 1, 24);
}

static void give_size(plan_task *task, uint64_t *random) {
  task->spec = random_below(random, PLAN_SPECS);
  task->size_bytes = random_below(random, 8) == 0 ? 0 : 30 * random_unit(random);
}

/* `last` per device: the task that the next task on the compute stream must follow. */
typedef struct plan_maker {
  test_plan *plan;
  const plan_options *options;
  uint64_t *random;
  uint32_t last[PLAN_DEVICES];
  uint32_t n_groups;
} plan_maker;

static uint32_t some_earlier(plan_maker *maker) {
  test_plan *plan = maker->plan;
  for (uint32_t attempt = 0; attempt < 8 && plan->n_tasks > 0; attempt++) {
    uint32_t back = random_below(maker->random, plan->n_tasks < 12 ? plan->n_tasks : 12);
    uint32_t task = plan->n_tasks - 1 - back, group = plan->tasks[task].group;
    /* Only the end of a group may be waited for from outside. */
    if (group == PL_NONE || task + 1 == plan->n_tasks || plan->tasks[task + 1].group != group) return task;
  }
  return PL_NONE;
}

static void add_part(plan_maker *maker, uint32_t device, bool computes, uint32_t group, uint32_t part) {
  test_plan *plan = maker->plan;
  bool on_compute = computes || maker->options->on_compute;
  plan_task *task = add_task(plan, on_compute ? PL_TASK_WORK : PL_TASK_DELAY,
                             computes ? (pl_category)random_below(maker->random, 4) : PL_CATEGORY_TENSOR);
  task->computes = computes;
  task->is_crowded = computes && random_below(maker->random, 2) == 0;
  task->group = group;
  task->part = part;
  task->ticks = some_ticks(maker->random);
  add_stream(task, device, on_compute ? PL_STREAM_COMPUTE : PL_STREAM_FEATURE);
  add_edge(plan, maker->last[device], plan->n_tasks - 1);
  maker->last[device] = plan->n_tasks - 1;
}

static void add_segment(plan_maker *maker) {
  test_plan *plan = maker->plan;
  uint32_t device = random_below(maker->random, plan->n_devices), first = plan->n_tasks;
  uint32_t n_parts = maker->options->fusable ? random_between(maker->random, 1, 6) : 1;
  uint32_t earlier = some_earlier(maker), other = some_earlier(maker);
  if (!maker->options->fusable) maker->last[device] = PL_NONE; /* stream order alone */
  bool any_computes = false; /* a segment of communication alone would not be charged like its parts */
  for (uint32_t part = 0; part < n_parts; part++) {
    bool computes = !maker->options->fusable || random_below(maker->random, 3) != 0;
    computes |= part + 1 == n_parts && !any_computes;
    any_computes |= computes;
    add_part(maker, device, computes, maker->n_groups, part);
  }
  maker->n_groups++;
  if (random_below(maker->random, 2) == 0) add_edge(plan, earlier, first);
  if (random_below(maker->random, 4) == 0) add_edge(plan, other, first);
  if (maker->options->fusable) return;
  plan_task *task = &plan->tasks[first];
  task->group = PL_NONE;
  task->computes = random_below(maker->random, 4) != 0;
  if (!task->computes) task->category = PL_CATEGORY_TENSOR;
  task->is_crowded &= task->computes;
  task->peak_bytes = random_below(maker->random, 20);
  task->net_bytes = (int64_t)random_below(maker->random, 20) - 10;
  if (task->net_bytes > task->peak_bytes) task->net_bytes = task->peak_bytes;
}

static void join_part(plan_maker *maker, const uint32_t *devices, uint32_t n_devices, uint32_t part) {
  test_plan *plan = maker->plan;
  plan_task *task = add_task(plan, PL_TASK_DELAY, PL_CATEGORY_TENSOR);
  task->group = maker->n_groups;
  task->part = part;
  task->ticks = some_ticks(maker->random);
  for (uint32_t at = 0; at < n_devices; at++) {
    add_stream(task, devices[at], PL_STREAM_FEATURE);
    add_edge(plan, maker->last[devices[at]], plan->n_tasks - 1);
    maker->last[devices[at]] = plan->n_tasks - 1;
  }
}

/* Every member computes the same, for as long. */
static void compute_part(plan_maker *maker, const uint32_t *devices, uint32_t n_devices, uint32_t part) {
  test_plan *plan = maker->plan;
  pl_ticks ticks = some_ticks(maker->random);
  pl_category category = (pl_category)random_below(maker->random, 4);
  bool is_crowded = random_below(maker->random, 2) == 0;
  for (uint32_t at = 0; at < n_devices; at++) {
    plan_task *task = add_task(plan, PL_TASK_WORK, category);
    task->computes = true;
    task->is_crowded = is_crowded;
    task->group = maker->n_groups;
    task->part = part;
    task->ticks = ticks;
    add_stream(task, devices[at], PL_STREAM_COMPUTE);
    add_edge(plan, maker->last[devices[at]], plan->n_tasks - 1);
    maker->last[devices[at]] = plan->n_tasks - 1;
  }
}

/* A joint segment of some devices: communication, then once or more computation and communication. */
static void add_joint_segment(plan_maker *maker) {
  enum { MOST_PARTS = 6 };
  test_plan *plan = maker->plan;
  uint32_t devices[PLAN_DEVICES], n_devices = 0, first = plan->n_tasks, earlier = some_earlier(maker);
  for (uint32_t device = 0; device < plan->n_devices; device++)
    if (random_below(maker->random, 3) != 0) devices[n_devices++] = device;
  if (n_devices < 2 || plan->n_tasks + MOST_PARTS * PLAN_DEVICES > PLAN_TASKS) return;
  join_part(maker, devices, n_devices, 0);
  uint32_t n_parts = 1, wanted = random_between(maker->random, 3, MOST_PARTS);
  while (n_parts + 1 < wanted) {
    if (n_parts == 1 || random_below(maker->random, 3) != 0) {
      compute_part(maker, devices, n_devices, n_parts++);
    } else {
      join_part(maker, devices, n_devices, n_parts++);
    }
  }
  join_part(maker, devices, n_devices, n_parts);
  maker->n_groups++;
  if (random_below(maker->random, 2) == 0) add_edge(plan, earlier, first);
}

/* A transfer or a delay on the streams of some devices. Gradients are asynchronous; features too unless segments may be
 * fused, in which case they block their device as a part of a segment would. */
static void add_collective(plan_maker *maker, pl_stream_kind kind) {
  test_plan *plan = maker->plan;
  uint32_t earlier[2] = {some_earlier(maker), some_earlier(maker)};
  bool is_transfer = maker->options->transfers && random_below(maker->random, 4) != 0;
  plan_task *task = add_task(plan, is_transfer ? PL_TASK_TRANSFER : PL_TASK_DELAY,
                             kind == PL_STREAM_GRADIENT ? PL_CATEGORY_DATA
                             : kind == PL_STREAM_EXPERT ? PL_CATEGORY_EXPERT
                                                        : PL_CATEGORY_TENSOR);
  uint32_t id = plan->n_tasks - 1;
  for (uint32_t device = 0; device < plan->n_devices; device++) {
    if (random_below(maker->random, 2) == 0 && (task->n_streams > 0 || device + 1 < plan->n_devices)) continue;
    add_stream(task, device, kind);
    if (kind != PL_STREAM_FEATURE || !maker->options->fusable) continue;
    add_edge(plan, maker->last[device], id);
    maker->last[device] = id;
  }
  if (is_transfer) {
    give_size(task, maker->random);
  } else {
    task->ticks = some_ticks(maker->random);
  }
  add_edge(plan, earlier[0], id);
  add_edge(plan, earlier[random_below(maker->random, 2)], id);
}

static void add_send(plan_maker *maker) {
  test_plan *plan = maker->plan;
  uint32_t from = random_below(maker->random, plan->n_devices), to = random_below(maker->random, plan->n_devices);
  bool down = from < to, is_transfer = maker->options->transfers;
  uint32_t before = maker->last[from];
  plan_task *task = add_task(plan, is_transfer ? PL_TASK_TRANSFER : PL_TASK_DELAY, PL_CATEGORY_PIPELINE);
  uint32_t id = plan->n_tasks - 1;
  task->ticks = is_transfer ? 0 : some_ticks(maker->random);
  if (is_transfer) give_size(task, maker->random);
  if (from != to) {
    add_stream(task, from, down ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP);
    add_stream(task, to, down ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP);
  } else if (is_transfer) {
    add_stream(task, from, PL_STREAM_SEND_DOWN);
  } /* else a delay without a stream */
  add_edge(plan, before != PL_NONE ? before : some_earlier(maker) == id ? PL_NONE : before, id);
}

/* By the words of the contract: the task added before it on each of its streams, and the edges. */
static void find_predecessors(test_plan *plan) {
  for (uint32_t after = 0; after < plan->n_tasks && plan->policy == PL_STREAMS_IN_ORDER; after++)
    for (uint32_t at = 0; at < plan->tasks[after].n_streams; at++)
      for (uint32_t before = after; before-- > 0;) {
        const plan_task *task = &plan->tasks[before];
        uint32_t member = 0;
        while (member < task->n_streams && (task->device[member] != plan->tasks[after].device[at] ||
                                            task->stream[member] != plan->tasks[after].stream[at]))
          member++;
        if (member == task->n_streams) continue;
        plan->precedes[before][after] = true;
        break;
      }
  for (uint32_t at = 0; at < plan->n_edges; at++)
    plan->precedes[plan->before[at]][plan->after[at]] = true;
}

void plan_make(test_plan *plan, const plan_options *options, uint64_t *random) {
  static const double gammas[] = {0, 0.1, 0.3, 1, 0.7};
  memset(plan, 0, sizeof *plan);
  plan->policy = options->policy;
  plan->n_devices = random_between(random, 1, PLAN_DEVICES);
  bool uniform = random_below(random, 2) == 0;
  for (uint32_t at = 0; at < plan->n_devices; at++) {
    pl_graph_device *device = &plan->devices[at];
    *device = (pl_graph_device){.device = at, .multiplicity = 1, .resident_bytes = random_below(random, 100)};
    device->overlap_compute = options->overlap ? gammas[random_below(random, 5)] : 0;
    device->overlap_communication = options->overlap ? gammas[random_below(random, 5)] : 0;
    device->overlap_exchange = options->overlap ? gammas[random_below(random, 5)] : 0;
    device->overlap_tensor = options->overlap ? gammas[random_below(random, 5)] : 0;
    device->waits_for_place = random_below(random, 2) == 0;
    if (uniform) device->overlap_communication = plan->devices[0].overlap_communication;
  }
  for (uint32_t at = 0; at < PLAN_SPECS; at++)
    plan->specs[at] =
        (pl_transfer_spec){.rate_cap_Bps = 0x1p40 / (1 + random_below(random, 3)), /* a byte: 1 to 3 ticks */
                           .share_weight = 1,
                           .latency = random_below(random, 2) * (pl_ticks)random_below(random, 6),
                           .source = PL_NONE,
                           .destination = PL_NONE};
  plan->table = (pl_transfer_table){.specs = plan->specs, .n_specs = PLAN_SPECS};
  plan_maker maker = {.plan = plan, .options = options, .random = random};
  for (uint32_t at = 0; at < PLAN_DEVICES; at++)
    maker.last[at] = PL_NONE;
  uint32_t wanted = random_between(random, 1, PLAN_TASKS - 8);
  while (plan->n_tasks < wanted) {
    uint32_t kind = random_below(random, 10);
    if (kind < 6) {
      if (options->joint && kind == 0) {
        add_joint_segment(&maker);
      } else {
        add_segment(&maker);
      }
    } else if (kind < 8) {
      add_collective(&maker, options->overlap && random_below(random, 2) == 0 ? PL_STREAM_EXPERT : PL_STREAM_GRADIENT);
    } else if (kind < 9) {
      add_collective(&maker, PL_STREAM_FEATURE);
    } else {
      add_send(&maker);
    }
  }
  find_predecessors(plan);
}

/* ---- building ---- */

/* The tasks [first, end) as one. */
static uint32_t build_work(const test_plan *plan, pl_graph_builder *builder, uint32_t first, uint32_t end) {
  const plan_task *task = &plan->tasks[first];
  pl_part parts[PLAN_TASKS];
  uint32_t n_parts = 0, streams[PLAN_STREAMS];
  for (uint32_t at = first; at < end; at++) {
    const plan_task *own = &plan->tasks[at];
    if (end - first > 1 && own->part < n_parts) continue; /* of another member */
    parts[n_parts++] = (pl_part){.ticks = own->ticks,
                                 .category = (uint8_t)own->category,
                                 .computes = own->computes,
                                 .is_crowded = own->is_crowded,
                                 .name = PL_NONE};
  }
  uint32_t effect = PL_NONE;
  if (task->peak_bytes != 0 || task->net_bytes != 0)
    effect = pl_graph_builder_effect(builder, task->peak_bytes, task->net_bytes);
  for (uint32_t at = 0; at < task->n_streams; at++)
    streams[at] = pl_graph_builder_stream(builder, task->device[at], PL_STREAM_COMPUTE);
  return pl_graph_builder_joint_work(builder, pl_graph_builder_segment(builder, parts, n_parts), streams,
                                     task->n_streams, effect, PL_NONE, -1);
}

static uint32_t build_task(const test_plan *plan, pl_graph_builder *builder, uint32_t first, uint32_t end) {
  const plan_task *task = &plan->tasks[first];
  uint32_t streams[PLAN_STREAMS];
  if (task->kind == PL_TASK_WORK || end - first > 1) return build_work(plan, builder, first, end);
  for (uint32_t at = 0; at < task->n_streams; at++)
    streams[at] = pl_graph_builder_stream(builder, task->device[at], task->stream[at]);
  if (task->kind == PL_TASK_TRANSFER)
    return pl_graph_builder_transfer(builder, task->spec, task->size_bytes, task->category, streams, task->n_streams,
                                     PL_NONE, -1);
  return pl_graph_builder_delay(builder, task->ticks, task->category, streams, task->n_streams, PL_NONE, -1);
}

pl_code plan_build(const test_plan *plan, bool fused, uint64_t *shuffle, pl_arena *arena, pl_graph *graph,
                   uint32_t *task_of, pl_error *error) {
  pl_graph_builder *builder = pl_graph_builder_take(arena, plan->policy);
  if (builder == NULL) return pl_fail_memory(error, "a builder");
  for (uint32_t device = 0; device < plan->n_devices; device++)
    pl_graph_builder_device(builder, &plan->devices[device]);
  pl_graph_builder_transfers(builder, &plan->table);
  for (uint32_t first = 0, end; first < plan->n_tasks; first = end) {
    uint32_t group = plan->tasks[first].group;
    for (end = first + 1; fused && group != PL_NONE && end < plan->n_tasks && plan->tasks[end].group == group;)
      end++;
    uint32_t task = build_task(plan, builder, first, end);
    for (uint32_t at = first; at < end; at++)
      task_of[at] = task;
  }
  uint32_t order[PLAN_EDGES];
  for (uint32_t at = 0; at < plan->n_edges; at++) {
    uint32_t other = shuffle == NULL ? at : random_below(shuffle, at + 1);
    order[at] = order[other];
    order[other] = at;
  }
  for (uint32_t at = 0; at < plan->n_edges; at++) {
    uint32_t before = task_of[plan->before[order[at]]], after = task_of[plan->after[order[at]]];
    if (before != after) pl_graph_builder_edge(builder, before, after);
  }
  return pl_graph_builder_freeze(builder, graph, error);
}
