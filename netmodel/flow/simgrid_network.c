/* pl_simgrid_run: the reference network. The graph is played in SimGrid's own event loop
 * (netmodel/simgrid/simgrid_run.h) in a forked child, because SimGrid has one engine and one clock per process and a
 * run uses them up.
 *
 * The child drives an engine through pl_engine_host and writes every completion, in order, into a page shared with the
 * parent. The parent then drives a second engine with that record and takes the result from it: start dates, parts,
 * peaks and breakdown come out of the same code as in a native run, and nothing but (task, tick) crosses the processes.
 * The child touches neither MPI nor HDF5 and leaves with _exit.
 *
 * Dates are rounded to ticks as they are reported. Comms run on SimGrid's doubles in between. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netmodel/flow/networks.h"
#include "netmodel/simgrid/simgrid_door.h"

typedef struct record_entry {
  pl_ticks now;
  uint32_t task; /* PL_NONE: flush */
} record_entry;

/* Shared between child and parent. */
typedef struct run_record {
  bool complete;
  char message[256];
  uint64_t count, room;
  record_entry entries[];
} run_record;

typedef struct player {
  const pl_graph *graph;
  const pl_cluster *cluster;
  pl_sharing sharing;
  const double *delays_s; /* per spec: slept before the send */
  pl_engine *engine;
  pl_simgrid_door door;
  pl_simgrid_loop *loop;
  run_record *record;
} player;

/* ---- what the child does ---- */

static void note(run_record *record, uint32_t task, pl_ticks now) {
  PL_ASSERT(record->count < record->room);
  record->entries[record->count++] = (record_entry){.now = now, .task = task};
}

static void host_timer(void *data, uint32_t task, pl_ticks finish) {
  player *play = data;
  play->door.timer(play->loop, task, pl_ticks_to_s(finish));
}

static void host_transfer(void *data, pl_ticks now, uint32_t task, uint32_t spec_index, double size_bytes) {
  player *play = data;
  const pl_transfer_spec *spec = &play->graph->transfers.specs[spec_index];
  if (size_bytes > 0) {
    play->door.send(play->loop, task, spec->source, spec->destination, size_bytes, play->delays_s[spec_index]);
  } else {
    play->door.timer(play->loop, task, pl_ticks_to_s(now + spec->latency));
  }
}

static void host_transfer_speed(void *data, pl_ticks now, uint32_t task, double speed) {
  (void)data, (void)now, (void)task;
  PL_ASSERT(speed == 1); /* graphs that slow transfers are refused */
}

static void loop_begin(void *data, pl_simgrid_loop *loop) {
  player *play = data;
  play->loop = loop;
  pl_engine_begin(play->engine);
}

static void loop_complete(void *data, uint32_t task, double time_s) {
  player *play = data;
  pl_ticks now = pl_ticks_from_s(time_s);
  note(play->record, task, now);
  pl_engine_complete(play->engine, task, now);
}

static void loop_flush(void *data, double time_s) {
  player *play = data;
  pl_ticks now = pl_ticks_from_s(time_s);
  note(play->record, PL_NONE, now);
  pl_engine_flush(play->engine, now);
}

static const char **host_names(const pl_cluster *cluster, pl_arena *arena) {
  const char **names = PL_TAKE(arena, const char *, cluster->n_devices);
  for (uint32_t i = 0; names != NULL && i < cluster->n_devices; i++)
    names[i] = cluster->devices[i].name;
  return names;
}

static void play_in_child(player *play) {
  run_record *shared = play->record;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_engine_host host = {host_timer, host_transfer, host_transfer_speed};
  const char **names = host_names(play->cluster, &arena);
  play->engine = pl_engine_take(play->graph, &(pl_engine_options){.record_parts = false}, &host, play, &arena);
  if (names == NULL || play->engine == NULL) {
    strcpy(shared->message, "out of memory");
    return;
  }
  const pl_simgrid_loop_options options = {.hosts = names,
                                           .n_hosts = play->cluster->n_devices,
                                           .n_tasks = play->graph->n_tasks,
                                           .rtt = play->sharing == PL_SHARING_RTT};
  const pl_simgrid_loop_client client = {loop_begin, loop_complete, loop_flush, play};
  if (!pl_simgrid_door_open(&play->door, shared->message, sizeof shared->message)) return;
  if (!play->door.run(&options, &client, shared->message, sizeof shared->message)) return;
  shared->complete = true;
}

/* ---- what the parent does ---- */

static pl_code refuse_what_simgrid_cannot(const pl_graph *graph, pl_error *error) {
  for (uint32_t i = 0; i < graph->n_devices; i++) {
    if (graph->devices[i].overlap_communication > 0)
      return pl_fail(error, PL_UNSUPPORTED,
                     "--network simgrid cannot slow transfers while computation overlaps them, but a device has the "
                     "overlap factor %g for communication; use --network flow, or a device profile with "
                     "overlap_communication 0",
                     graph->devices[i].overlap_communication);
    if (graph->devices[i].multiplicity > 1)
      return pl_fail(error, PL_UNSUPPORTED, "--network simgrid needs the unfolded graph: add --no-fold");
  }
  for (uint32_t i = 0; i < graph->n_tasks; i++) {
    const pl_task *task = &graph->tasks[i];
    if (task->kind != PL_TASK_TRANSFER) continue;
    const pl_transfer_spec *spec = &graph->transfers.specs[task->index];
    if (spec->source == PL_NONE || spec->destination == PL_NONE)
      return pl_fail(
          error, PL_UNSUPPORTED,
          "--network simgrid plays point-to-point transfers only, but task %u%s%s is a whole collective as one "
          "fluid transfer; add --collectives chunked",
          i, task->label == PL_NONE ? "" : " ", task->label == PL_NONE ? "" : graph->names[task->label]);
  }
  return PL_OK;
}

/* EQUAL sleeps the whole latency of a spec; RTT leaves the route's own to SimGrid. Also checks that the table was made
 * for this rule of sharing. */
static pl_code delays_take(const pl_cluster *cluster, const pl_transfer_table *table, pl_sharing sharing,
                           pl_arena *arena, const double **delays_s, pl_error *error) {
  double *delays = PL_TAKE(arena, double, table->n_specs);
  if (delays == NULL) return pl_fail_memory(error, "the latencies of transfers");
  for (uint32_t i = 0; i < table->n_specs; i++) {
    const pl_transfer_spec *spec = &table->specs[i];
    if (spec->source == PL_NONE || spec->destination == PL_NONE) continue;
    pl_transfer_spec plain;
    pl_link_use *uses;
    PL_TRY(pl_route_spec(cluster, sharing, spec->source, spec->destination, arena, &uses, &plain, error));
    if (fabs(spec->share_weight - plain.share_weight) > 1e-9 * plain.share_weight)
      return pl_fail(error, PL_UNSUPPORTED,
                     "--network simgrid: the transfer from %s to %s has share weight %g, but %s "
                     "sharing gives it %g; compile the graph with the same --sharing",
                     cluster->devices[spec->source].name, cluster->devices[spec->destination].name, spec->share_weight,
                     sharing == PL_SHARING_RTT ? "rtt" : "equal", plain.share_weight);
    pl_ticks delay = sharing == PL_SHARING_RTT ? spec->latency - plain.latency : spec->latency;
    delays[i] = delay > 0 ? pl_ticks_to_s(delay) : 0;
  }
  *delays_s = delays;
  return PL_OK;
}

static void ignore_timer(void *data, uint32_t task, pl_ticks finish) {
  (void)data, (void)task, (void)finish;
}
static void ignore_transfer(void *data, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes) {
  (void)data, (void)now, (void)task, (void)spec, (void)size_bytes;
}
static void ignore_speed(void *data, pl_ticks now, uint32_t task, double speed) {
  (void)data, (void)now, (void)task, (void)speed;
}

static pl_code replay(const pl_graph *graph, const run_record *record, const pl_engine_options *options,
                      pl_arena *arena, pl_engine_result *result, pl_error *error) {
  const pl_engine_host host = {ignore_timer, ignore_transfer, ignore_speed};
  pl_engine *engine = pl_engine_take(graph, options, &host, NULL, arena);
  if (engine == NULL) return pl_fail_memory(error, "the engine");
  pl_engine_begin(engine);
  for (uint64_t i = 0; i < record->count; i++) {
    if (record->entries[i].task == PL_NONE) {
      pl_engine_flush(engine, record->entries[i].now);
    } else {
      pl_engine_complete(engine, record->entries[i].task, record->entries[i].now);
    }
  }
  return pl_engine_finish(engine, result, error);
}

static pl_code run_child(player *play, pl_error *error) {
  fflush(NULL); /* SimGrid flushes in the child what it inherited */
  pid_t child = fork();
  if (child < 0) return pl_fail(error, PL_IO, "cannot fork a process for SimGrid: %m");
  if (child == 0) {
    play_in_child(play);
    _exit(play->record->complete ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return pl_fail(error, PL_IO, "cannot wait for the SimGrid process: %m");
  if (play->record->complete) return PL_OK;
  if (play->record->message[0] != '\0') return pl_fail(error, PL_BAD_INPUT, "SimGrid: %s", play->record->message);
  return pl_fail(error, PL_IO, "the SimGrid process ended with %s %d before its run was over",
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

pl_code pl_simgrid_run(const pl_platform *platform, const pl_graph *graph, pl_sharing sharing,
                       const pl_engine_options *options, pl_arena *arena, pl_engine_result *result, pl_error *error) {
  player play = {.graph = graph, .cluster = pl_platform_cluster(platform), .sharing = sharing};
  PL_TRY(refuse_what_simgrid_cannot(graph, error));
  PL_TRY(pl_platform_need_simgrid(platform, error));
  PL_TRY(delays_take(play.cluster, &graph->transfers, sharing, arena, &play.delays_s, error));
  uint64_t room = 2 * (uint64_t)graph->n_tasks + 2; /* a completion and a flush each at most */
  size_t size = sizeof(run_record) + room * sizeof(record_entry);
  play.record = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (play.record == MAP_FAILED) return pl_fail_memory(error, "the record of the SimGrid run");
  play.record->room = room;
  pl_code code = run_child(&play, error);
  if (code == PL_OK) code = replay(graph, play.record, options, arena, result, error);
  munmap(play.record, size);
  return code;
}
