/* One candidate, from strategy to result row: program, folding, compilation, engine, memory, breakdown. */
#ifndef PL_WORKLOADS_SIMULATE_H
#define PL_WORKLOADS_SIMULATE_H

#include <stdio.h>

#include "core/engine/timeline.h"
#include "core/graph/result.h"
#include "netmodel/collective/topology_cache.h"
#include "netmodel/flow/networks.h"
#include "workloads/lower/block_cache.h"
#include "workloads/run/collective_entries.h"
#include "workloads/run/explanation.h"
#include "workloads/run/interval.h"
#include "workloads/run/stragglers.h"
#include "workloads/strategy/strategy.h"
#include "workloads/trace/trace.h"

/* What plays the graph: the engine, or Proteus's executor (core/engine/htae.h), without rules or with some. */
typedef enum pl_executor {
  PL_EXECUTOR_ENGINE = 0,
  PL_EXECUTOR_PROTEUS,
  PL_EXECUTOR_PROTEUS_PLAIN,
  PL_EXECUTOR_PROTEUS_OVERLAP,
  PL_EXECUTOR_PROTEUS_SHARING
} pl_executor;

extern const char *const pl_executor_names[]; /* "engine", "proteus" ...; NULL ends them */

typedef struct pl_simulate_options {
  pl_network_kind network;
  pl_sharing sharing;
  pl_collective_algorithm algorithm;
  bool chunked;                                    /* chunked collectives; implies no folding and no fusing */
  const pl_collective_profile *collective_profile; /* what fluid collectives cost beyond the wires; NULL: ideal */
  bool fold, fuse;
  bool leap; /* microbatches that only repeat others are not played (workloads/run/leap.h). Not with `trace`, `diagram`
                and PL_NETWORK_SIMGRID */
  uint64_t left_out;           /* tests: as pl_engine_options has it ... */
  bool sweeps_always;          /* ... likewise */
  bool no_overlap_factor;      /* computing and communication do not slow each other down (profiles' overlap) */
  pl_executor executor;        /* Proteus's implies ready streams, and no folding, fusing and leaps; not with `chunked`,
                                  SimGrid, `explanation`, `features` and `recording` */
  pl_stream_policy streams;    /* READY implies no folding and no fusing */
  const pl_platform *platform; /* only for PL_NETWORK_SIMGRID */
  FILE *trace;                 /* timeline, as `view` has it; NULL = none */
  const pl_timeline_view *view; /* of the trace, but for the names of devices; NULL = all of it */
  pl_trace *recording; /* empty; filled with the run as its ranks would have recorded it. Implies no folding and no
                          fusing; not with `chunked` and PL_NETWORK_SIMGRID. NULL = none */
  FILE *diagram;       /* the run as an SVG (core/engine/timeline_svg.h), a row per stage; NULL = none */
  const char *diagram_title, *diagram_subtitle; /* of that */
  FILE *print_program;                          /* NULL = none */
  pl_explanation *explanation; /* where each second comes from; NULL = nobody asks. Holds as long as the arena and until
                                  the cache's next use */
  struct pl_program_explanation *of_program; /* the same of a program (workloads/run/explain_program.h) */
  bool program_times;        /* of a program how each list's busiest device spends its time, for reports */
  double *features;          /* filled as core/graph/features.h says; NULL = nobody asks. Not beside `explanation`. */
  uint32_t n_feature_stages; /* that `features` has room for; at least pp */
  const pl_residuals *residuals; /* fills the report's interval; NULL = nobody asks. No effect on chunked runs and READY
                                    streams, which calibration never saw */
  const pl_aspects *program_aspects;         /* of a program: what it is like; without them it has no interval */
  const struct pl_ir_recurrence *recurrence; /* of a program: what is known to recur; NULL = it is looked for */
  /* What certainly does not fit in memory is not run: its report has the row's strategy and memory, NaN for times and 0
   * tasks. Of runs whose peaks are not known beforehand (ready streams, chunked collectives, unlike numbers of
   * microbatches) all are run. */
  bool skip_oom;
  /* Devices that compute slower than their profiles say. The run has the factors of --slow; NULL = none. Jitter implies
   * no folding. */
  const pl_stragglers *stragglers;
  pl_straggling *straggling; /* filled by more runs of the same graph; NULL = nobody asks */
  /* Times of the report are multiplied by what remains there (workloads/run/site_remains.h), and by nothing else of the
   * site; NULL = none. Of a program what it is of, without which nothing remains of it. */
  const struct pl_site_remains *remains;
  double remains_size; /* pl_configuration_size of the model; 0: not known, and found for each run that asks */
  const struct pl_configuration *program_configuration;
  /* Of the calling thread, kept between simulations; NULL = none. They change no result. */
  pl_topology_cache *cache;
  pl_block_cache *blocks;
  struct pl_siblings *siblings; /* workloads/run/siblings.h. The report holds until it is used again */
} pl_simulate_options;

#define PL_SIMULATE_OPTIONS_DEFAULT                                                                                    \
  ((pl_simulate_options){                                                                                              \
      .network = PL_NETWORK_FLOW, .sharing = PL_SHARING_EQUAL, .fold = true, .fuse = true, .leap = true})

/* For runs beside one with `options`: without what that writes and tells besides its time, and its caches. */
pl_simulate_options pl_simulate_options_quiet(const pl_simulate_options *options);

typedef struct pl_stage_memory {
  double parameters, gradients, optimizer, activations, buffers; /* bytes, at the stage's peak */
  double peak, capacity;
  double reserved, device; /* what the allocator holds at that peak; and what is taken of the device */
} pl_stage_memory;

/* The iteration of one device, divided exactly (core/engine/engine.h, `spent`): in this order, which adds up. */
enum { PL_STAGE_PARTS = 7 };
extern const char *const pl_stage_part_names[PL_STAGE_PARTS]; /* "compute_s", as the columns of results */
typedef struct pl_stage_times {
  double part_s[PL_STAGE_PARTS];
} pl_stage_times;
/* Of a device, by category and idle as a run has them (pl_engine_result). */
pl_stage_times pl_stage_times_of(const pl_ticks *spent, pl_ticks idle);

/* What `simulate` prints beyond the row; arrays from the arena. */
typedef struct pl_simulate_report {
  pl_result_row row;
  const pl_stage_memory *stages; /* pp entries: the worst device of each stage */
  const pl_stage_times *times;   /* likewise: the busiest one, which is idle least */
  int32_t n_stages;
  uint32_t n_devices; /* that work */
  uint32_t n_device_classes, n_transfer_classes;
  uint64_t n_events;
  int32_t n_played; /* microbatches of row.n_microbatches */
  int64_t n_rows;   /* of the graph: fewer than row.n_tasks if it was rolled (core/graph/graph_roll.h) */
  const char
      *bottleneck_link; /* name of the link with the highest mean utilisation while in use by the run; NULL when none */
  double bottleneck_utilisation; /* bytes carried / (capacity * iteration time) */
  double remains_factor;         /* that the row's times were multiplied by; 1: nothing remains */
  pl_interval interval;          /* NaN: nobody asked */
  pl_collective_entries entries;
} pl_simulate_report;

/* The interval of the report and of its row. */
void pl_simulate_report_mark(pl_simulate_report *report, const pl_interval *interval);

/* `strategy` must have passed pl_strategy_check and have boundaries. All memory from `arena` (the caller resets it).
 * Thread-safe for distinct arenas and caches. A candidate that does not fit in memory is simulated and reported
 * (row.fits = 0, status OOM) unless options->skip_oom. */
pl_code pl_simulate(const pl_cluster *cluster, const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                    const pl_simulate_options *options, pl_arena *arena, pl_simulate_report *report, pl_error *error);

#endif
