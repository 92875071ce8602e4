/* A job as it was recorded: what each rank did, when, on which stream, and which messages tied the ranks together.
 *
 * The plain data model that every reader of a trace format fills and that alignment, replay and reports read; it is
 * what job.h5 holds. Nothing in it is derived: matching, clocks and graphs are made anew from it, so they cannot be
 * stale.
 *
 * Time is whole nanoseconds of the rank's own clock (absolute microseconds with fractions do not fit a double), counted
 * from the earliest start of the rank (`epoch_ns`), so that differences of clocks of any size stay small numbers.
 *
 * Ops stand by rank, within it by stream, within that by start. A stream does one op after the other; `edges` say what
 * else an op waited for on its rank. Ranks meet in messages only: a collective is the n-th of its group in its step, a
 * send meets the receive with the same ends, tag and place. Sizes: 32 bytes an op, 8 an edge.
 */
#ifndef PL_WORKLOADS_TRACE_TRACE_H
#define PL_WORKLOADS_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/hash_index.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"

typedef enum pl_trace_op_kind {
  PL_TRACE_COMPUTE = 0, /* a kernel, or an op of a rank without GPU */
  PL_TRACE_COPY,        /* a copy or fill of memory by the device */
  PL_TRACE_COLLECTIVE,
  PL_TRACE_SEND,
  PL_TRACE_RECEIVE,
  PL_TRACE_CALL, /* of the host into the device's runtime */
  PL_TRACE_WAIT, /* the host waits for the device: the call's duration is no work */
  PL_TRACE_OP_KIND_COUNT
} pl_trace_op_kind;

typedef enum pl_trace_stream_kind {
  PL_TRACE_HOST = 0, /* a thread */
  PL_TRACE_DEVICE,   /* a stream of the GPU */
  PL_TRACE_NETWORK,  /* sends or receives of a communication library */
  PL_TRACE_STREAM_KIND_COUNT
} pl_trace_stream_kind;

typedef enum pl_trace_message_kind {
  PL_TRACE_ALL_REDUCE = 0,
  PL_TRACE_REDUCE_SCATTER,
  PL_TRACE_ALL_GATHER,
  PL_TRACE_BROADCAST,
  PL_TRACE_ALL_TO_ALL,
  PL_TRACE_REDUCE,
  PL_TRACE_BARRIER,
  PL_TRACE_OTHER_COLLECTIVE,
  PL_TRACE_POINT_TO_POINT,
  PL_TRACE_MESSAGE_KIND_COUNT
} pl_trace_message_kind;

extern const char *const pl_trace_op_kind_names[PL_TRACE_OP_KIND_COUNT + 1];
extern const char *const pl_trace_stream_kind_names[PL_TRACE_STREAM_KIND_COUNT + 1];
extern const char *const pl_trace_message_kind_names[PL_TRACE_MESSAGE_KIND_COUNT + 1];

typedef struct pl_trace_op {
  int64_t start_ns, duration_ns; /* since the rank's epoch; duration >= 0 */
  uint32_t stream;               /* into streams */
  uint32_t message;              /* into messages; PL_NONE: none */
  uint32_t step;                 /* into steps; PL_NONE: outside of every step */
  uint32_t name : 28, kind : 4;  /* into names; pl_trace_op_kind */
} pl_trace_op;

/* Of ops of one rank. */
typedef struct pl_trace_edge {
  uint32_t before;
  uint32_t after : 31, from_start : 1; /* from_start: once `before` has started (a launch), not finished */
} pl_trace_edge;

typedef struct pl_trace_stream {
  uint32_t rank; /* into ranks */
  uint32_t name;
  uint8_t kind; /* pl_trace_stream_kind */
} pl_trace_stream;

typedef struct pl_trace_message {
  uint8_t kind;       /* pl_trace_message_kind */
  uint32_t group;     /* collectives: into groups; else PL_NONE */
  int32_t peer;       /* point to point: the other end's rank number */
  uint32_t tag;       /* into names; PL_NONE: none */
  int64_t sequence;   /* as recorded; -1: unknown */
  int64_t size_bytes; /* of what this rank puts in (collectives: its whole buffer); -1: unknown */
} pl_trace_message;

typedef struct pl_trace_group {
  uint32_t name;                    /* as recorded; members decide who meets whom */
  uint32_t first_member, n_members; /* rank numbers, ascending, into members */
} pl_trace_group;

/* Memory that a rank's allocator gave out. Which op it belongs to is concluded where that is asked for. */
typedef struct pl_trace_block {
  int64_t taken_ns, freed_ns;          /* since the rank's epoch; freed_ns INT64_MAX: not while it was recorded */
  uint32_t taken_stream, freed_stream; /* threads; PL_NONE: not freed */
  int64_t size_bytes;
} pl_trace_block;

typedef struct pl_trace_step {
  uint32_t rank;
  int64_t number; /* as the framework counts */
  int64_t start_ns, duration_ns;
} pl_trace_step;

/* By start, then by number; for qsort. */
int pl_trace_step_by_start(const void *left, const void *right);

typedef struct pl_trace_rank {
  int64_t number;   /* of the job, from 0 */
  int64_t epoch_ns; /* the rank's clock at its earliest start */
  uint32_t host;    /* into names: ranks of one host share a clock */
  uint32_t file;    /* into names */
  uint32_t first_op, n_ops;
  uint32_t first_step, n_steps;
  int64_t world_size; /* as recorded; 0: not said */
} pl_trace_rank;

enum { PL_TRACE_ARRAYS = 11, PL_TRACE_MOST_NAMES = (1 << 28) - 1 };
#define PL_TRACE_SPAN_NS ((int64_t)30 * 86400 * 1000000000) /* of a rank at most: ticks hold it */

typedef struct pl_trace {
  pl_arena texts;
  pl_hash_index index;
  const char **names;
  uint32_t n_names;
  pl_trace_op *ops;
  uint32_t n_ops;
  pl_trace_edge *edges;
  uint32_t n_edges;
  pl_trace_stream *streams;
  uint32_t n_streams;
  pl_trace_message *messages;
  uint32_t n_messages;
  pl_trace_group *groups;
  uint32_t n_groups;
  int64_t *members;
  uint32_t n_members;
  pl_trace_step *steps;
  uint32_t n_steps;
  pl_trace_rank *ranks; /* by number once the trace is finished */
  uint32_t n_ranks;
  uint32_t *notes; /* into names: what was assumed or left out while reading, a line each */
  uint32_t n_notes;
  pl_trace_block *blocks; /* by rank */
  uint32_t n_blocks;
  uint32_t room[PL_TRACE_ARRAYS];
} pl_trace;

void pl_trace_init(pl_trace *trace);
void pl_trace_release(pl_trace *trace);

/* All `add`s return the index, PL_NONE without memory. */
uint32_t pl_trace_name(pl_trace *trace, const char *text, size_t size); /* interned */
uint32_t pl_trace_add_op(pl_trace *trace, pl_trace_op op);
uint32_t pl_trace_add_edge(pl_trace *trace, uint32_t before, uint32_t after, bool from_start);
uint32_t pl_trace_add_stream(pl_trace *trace, uint32_t rank, uint32_t name, pl_trace_stream_kind kind);
uint32_t pl_trace_add_message(pl_trace *trace, pl_trace_message message);
/* Members in any order; the group with these members and this name if there is one. */
uint32_t pl_trace_add_group(pl_trace *trace, uint32_t name, const int64_t *members, uint32_t n_members);
uint32_t pl_trace_add_step(pl_trace *trace, pl_trace_step step);
uint32_t pl_trace_add_rank(pl_trace *trace, pl_trace_rank rank);
uint32_t pl_trace_add_block(pl_trace *trace, pl_trace_block block); /* of a rank that is not ended yet */
uint32_t pl_trace_add_note(pl_trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends rank `rank`, whose ops and edges stand behind `first_op` and `first_edge`: dates count from its epoch, ops are
 * sorted, edges follow them, ops without a step get the one that they start in. */
pl_code pl_trace_end_rank(pl_trace *trace, uint32_t rank, uint32_t first_edge, pl_error *error);

/* Every index in range and the order kept: holds of what readers made, and is asked of job.h5. */
bool pl_trace_is_valid(const pl_trace *trace);

static inline pl_trace_op pl_trace_op_of(int64_t start_ns, int64_t duration_ns, uint32_t name, uint32_t stream,
                                         uint32_t message, uint32_t step, pl_trace_op_kind kind) {
  return (pl_trace_op){.start_ns = start_ns,
                       .duration_ns = duration_ns,
                       .stream = stream,
                       .message = message,
                       .step = step,
                       .name = name & PL_TRACE_MOST_NAMES,
                       .kind = (unsigned)kind & 15};
}
static inline int64_t pl_trace_end_ns(const pl_trace_op *op) {
  return op->start_ns + op->duration_ns;
}
static inline uint32_t pl_trace_rank_of(const pl_trace *trace, uint32_t op) {
  return trace->streams[trace->ops[op].stream].rank;
}
static inline const char *pl_trace_op_name(const pl_trace *trace, uint32_t op) {
  return trace->names[trace->ops[op].name];
}
/* The op before `op` on its stream; PL_NONE: it is the first one. */
static inline uint32_t pl_trace_previous(const pl_trace *trace, uint32_t op) {
  return op > 0 && trace->ops[op - 1].stream == trace->ops[op].stream ? op - 1 : PL_NONE;
}
/* Index of the rank with this number, PL_NONE: not recorded. O(log ranks). */
uint32_t pl_trace_find_rank(const pl_trace *trace, int64_t number);

#endif
