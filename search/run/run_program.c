/* See search/run/run_program.h. */
#include "search/run/run_program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/order.h"
#include "core/system/command.h"
#include "search/parallel/mpi_peers.h"
#include "search/parallel/shared_counts.h"
#include "workloads/execute/executor.h"

/* ---- what ends a run of several ranks ---- */

/* A thread that looks whether ops get done: a rank that hangs, or died without its launcher's noticing, would leave the
 * others waiting for ever. */
typedef struct watch {
  const char *command;
  pl_mpi_peers *peers;
  double patience_s;
  pthread_t thread;
  bool runs;
  atomic_bool over;
} watch;

/* The first rank that has something to say says it; whoever comes later gives it time to. */
static void end_all(MPI_Comm comm, pl_shared_counts *speakers, const char *command, const pl_error *error) {
  if (speakers == NULL || pl_shared_counts_add(speakers, 0, 1) == 0) {
    pl_command_report(command, error);
    fflush(stderr);
  } else {
    sleep(2);
  }
  MPI_Abort(comm, pl_code_exit_status(error->code));
}

static void *look(void *context) {
  watch *own = (watch *)context;
  unsigned long seen = atomic_load(&own->peers->progress);
  double since_s = pl_ranks_clock_s(), looked_s = since_s;
  double patience_s = own->patience_s + 0.5 * own->peers->rank; /* the first speaks */
  while (!atomic_load(&own->over)) {
    usleep(100000);
    unsigned long now = atomic_load(&own->peers->progress);
    double now_s = pl_ranks_clock_s();
    if (now != seen || now_s - looked_s > 1) since_s = now_s; /* or this process was stopped itself */
    looked_s = now_s;
    seen = now;
    if (now_s - since_s > patience_s) {
      pl_error error = PL_ERROR_INIT;
      pl_fail(&error, PL_IO, "rank %d has waited %.0f s for others (--patience): one of them hangs or is gone",
              own->peers->rank, own->patience_s);
      pl_command_report(own->command, &error);
      _exit(pl_code_exit_status(error.code)); /* MPI may be used by one thread only; its launcher ends the others */
    }
  }
  return NULL;
}

static void start_watch(watch *own) {
  own->runs = own->patience_s > 0 && pthread_create(&own->thread, NULL, look, own) == 0;
}

static void stop_watch(watch *own) {
  if (!own->runs) return;
  atomic_store(&own->over, true);
  pthread_join(own->thread, NULL);
}

/* ---- times ---- */

/* Between the two nearest of n sorted values. */
static double quantile(const double *sorted, int32_t n, double share) {
  double place = share * (n - 1);
  int32_t below = (int32_t)place;
  double rest = place - below;
  return below + 1 < n ? sorted[below] * (1 - rest) + sorted[below + 1] * rest : sorted[below];
}

static pl_run_spread spread_of(double *values, int32_t n) {
  qsort(values, (size_t)n, sizeof(*values), pl_by_double);
  return (pl_run_spread){quantile(values, n, 0.5), quantile(values, n, 0.25), quantile(values, n, 0.75), values[0],
                         values[n - 1]};
}

static void gather(MPI_Comm comm, const void *from, void *to, size_t bytes) {
  if (comm == PL_ALONE) {
    memcpy(to, from, bytes);
  } else {
    MPI_Gather(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, 0, comm);
  }
}

static void join_iterations(MPI_Comm comm, double *iteration_s, double *losses, int32_t n) {
  if (comm == PL_ALONE) return;
  MPI_Allreduce(MPI_IN_PLACE, iteration_s, n, MPI_DOUBLE, MPI_MAX, comm);
  MPI_Allreduce(MPI_IN_PLACE, losses, n, MPI_DOUBLE, MPI_SUM, comm);
}

static void read_ops(const pl_execution *execution, const pl_ir_module *module, const pl_run_program_options *options,
                     double *scratch, pl_run_spread *ops, int32_t *runs) {
  for (int32_t f = 0, at = 0; f < module->n_functions; f++)
    for (int32_t k = 0; k < module->functions[f]->n_ops; k++, at++) {
      for (int32_t i = 0; i < options->iterations; i++)
        scratch[i] = pl_execution_op_s(execution, options->warmup + i, f, k);
      ops[at] = spread_of(scratch, options->iterations);
      runs[at] = pl_execution_op_runs(execution, f, k);
    }
}

static pl_code read_times(const pl_execution *execution, const pl_ir_module *module,
                          const pl_run_program_options *options, MPI_Comm comm, pl_arena *arena,
                          pl_run_program_times *times, pl_error *error) {
  int32_t n = options->warmup + options->iterations;
  times->n_ranks = pl_rank_count(comm);
  times->first_op = PL_TAKE(arena, int32_t, module->n_functions + 1);
  times->iteration_s = PL_TAKE(arena, double, n);
  times->losses = PL_TAKE(arena, double, n);
  double *scratch = PL_TAKE(arena, double, n);
  for (int32_t f = 0; times->first_op != NULL && f < module->n_functions; f++) {
    times->first_op[f] = times->n_ops;
    times->n_ops += module->functions[f]->n_ops;
  }
  size_t n_all = (size_t)times->n_ranks * (size_t)times->n_ops;
  pl_run_spread *mine = PL_TAKE(arena, pl_run_spread, times->n_ops);
  int32_t *runs = PL_TAKE(arena, int32_t, times->n_ops);
  times->ops = PL_TAKE(arena, pl_run_spread, n_all);
  times->runs = PL_TAKE(arena, int32_t, n_all);
  if (arena->failed) return pl_fail_memory(error, "the times of the ops");
  for (int32_t i = 0; i < n; i++) {
    times->iteration_s[i] = pl_execution_iteration_s(execution, i);
    times->losses[i] = pl_execution_loss(execution, i);
  }
  join_iterations(comm, times->iteration_s, times->losses, n);
  memcpy(scratch, times->iteration_s + options->warmup, (size_t)options->iterations * sizeof(double));
  times->iteration = spread_of(scratch, options->iterations);
  read_ops(execution, module, options, scratch, mine, runs);
  gather(comm, mine, times->ops, (size_t)times->n_ops * sizeof(*mine));
  gather(comm, runs, times->runs, (size_t)times->n_ops * sizeof(*runs));
  return PL_OK;
}

/* ---- the run ---- */

static int mesh_text(const pl_ir_mesh *mesh, char *text, size_t size) {
  int n = 0;
  text[0] = 0;
  for (int32_t axis = 0; axis < mesh->n_axes && n >= 0 && (size_t)n < size; axis++)
    n += snprintf(text + n, size - (size_t)n, "%s%s=%d", axis > 0 ? ", " : "", mesh->axes[axis].name.text,
                  mesh->axes[axis].extent);
  return n;
}

pl_code pl_run_program_check(const pl_ir_module *module, MPI_Comm comm, pl_error *error) {
  uint32_t n = pl_ir_mesh_devices(&module->mesh);
  int n_ranks = pl_rank_count(comm);
  char mesh[256];
  if (n == (uint32_t)n_ranks) return PL_OK;
  mesh_text(&module->mesh, mesh, sizeof mesh);
  return pl_fail(error, PL_BAD_INPUT, "%s is for %u device%s%s%s%s and here %s %d rank%s; start it with: mpirun -n %u",
                 module->source != NULL ? module->source : module->name, n, n == 1 ? "" : "s", mesh[0] != 0 ? " (" : "",
                 mesh, mesh[0] != 0 ? ")" : "", n_ranks == 1 ? "is" : "are", n_ranks, n_ranks == 1 ? "" : "s", n);
}

static pl_code execute(const pl_ir_module *module, const pl_run_program_options *options, pl_mpi_peers *peers,
                       pl_execution **execution, pl_error *error) {
  const pl_execution_options executing = {.seed = options->seed,
                                          .iterations = options->warmup + options->iterations,
                                          .single = options->single,
                                          .timed = true,
                                          .peers = peers != NULL ? &peers->peers : NULL,
                                          .progress = peers != NULL ? pl_mpi_peers_note_progress : NULL};
  return pl_execute(module, &executing, execution, error);
}

static pl_code run_alone(const pl_ir_module *module, const pl_run_program_options *options, pl_arena *arena,
                         pl_run_program_times *times, pl_error *error) {
  pl_execution *execution;
  PL_TRY(execute(module, options, NULL, &execution, error));
  pl_code code = read_times(execution, module, options, PL_ALONE, arena, times, error);
  pl_execution_destroy(execution);
  return code;
}

pl_code pl_run_program(const pl_ir_module *module, const pl_run_program_options *options, MPI_Comm comm,
                       pl_interrupt *interrupt, pl_arena *arena, pl_run_program_times *times, pl_error *error) {
  static const uint64_t nobody[PL_SHARED_COUNTS];
  pl_shared_counts speakers;
  pl_mpi_peers peers;
  pl_execution *execution = NULL;
  *times = (pl_run_program_times){0};
  if (comm == PL_ALONE) return run_alone(module, options, arena, times, error);
  /* Open MPI names a window's memory after its communicator, and gives parts of a split one the same name. */
  bool counts = comm == MPI_COMM_WORLD;
  if (counts) pl_shared_counts_open(&speakers, comm, nobody);
  if (counts) atomic_store(&interrupt->n_said, speakers.values);
  pl_code code = pl_mpi_peers_open(&peers, comm, error);
  watch watching = {.command = interrupt->command, .peers = &peers, .patience_s = options->patience_s};
  start_watch(&watching);
  if (code == PL_OK) code = execute(module, options, &peers, &execution, error);
  if (code != PL_OK) end_all(comm, counts ? &speakers : NULL, interrupt->command, error);
  stop_watch(&watching);
  code = read_times(execution, module, options, comm, arena, times, error);
  pl_execution_destroy(execution);
  pl_mpi_peers_close(&peers, code != PL_OK);
  atomic_store(&interrupt->n_said, NULL);
  if (counts) pl_shared_counts_close(&speakers);
  return pl_agree(comm, error);
}
