/* Chakra execution traces (mlcommons/chakra, et_def.proto 1.0): one .et file per rank, a graph of nodes.
 *
 * Most have durations and dependencies but no dates: those are then made by a list schedule, each lane (thread, stream,
 * or the device's computing, copying and communicating) serving what is ready in the order of readiness, as simulators
 * do. Dates and what else the format has no place for are attributes of our own in files that we write: start_ns,
 * duration_ns, stream_name, stream_kind, op_kind, step, step_start_ns ... (chakra_write.c).
 */
#ifndef PL_WORKLOADS_FORMATS_CHAKRA_H
#define PL_WORKLOADS_FORMATS_CHAKRA_H

#include <stdio.h>

#include "workloads/formats/kineto_events.h"
#include "workloads/trace/trace.h"

/* Node types and collectives of et_def.proto. */
typedef enum pl_chakra_type {
  PL_CHAKRA_INVALID = 0,
  PL_CHAKRA_METADATA,
  PL_CHAKRA_LOAD,
  PL_CHAKRA_STORE,
  PL_CHAKRA_COMPUTE,
  PL_CHAKRA_SEND,
  PL_CHAKRA_RECEIVE,
  PL_CHAKRA_COLLECTIVE,
  PL_CHAKRA_TYPE_COUNT
} pl_chakra_type;

/* Groups of our files count from 1: to ASTRA-sim 0 is all ranks. */
enum { PL_CHAKRA_COLLECTIVES = 10, PL_CHAKRA_FIRST_GROUP = 1 };
extern const uint8_t pl_chakra_collectives[PL_CHAKRA_COLLECTIVES]; /* comm_type -> pl_trace_message_kind */

/* Groups of ranks by name, as ASTRA-sim's comm_group.json has them: {"0": [0, 1], ...}. */
typedef struct pl_chakra_groups {
  uint32_t *names, *groups; /* into the trace */
  uint32_t n, room;
} pl_chakra_groups;

pl_code pl_chakra_groups_load(const char *path, pl_trace *trace, pl_chakra_groups *groups, pl_error *error);
pl_code pl_chakra_groups_parse(const char *name, const char *data, size_t size, pl_trace *trace,
                               pl_chakra_groups *groups, pl_error *error);
void pl_chakra_groups_release(pl_chakra_groups *groups);

/* Adds the rank that the file holds; `number` is its rank where the file does not say so (-1: unknown). Its host is the
 * empty name where the file does not say it. */
pl_code pl_chakra_load(const char *path, int64_t number, const pl_chakra_groups *groups, pl_trace *trace,
                       const pl_trace_progress *progress, pl_error *error);
pl_code pl_chakra_parse(const char *name, const uint8_t *data, size_t size, int64_t number,
                        const pl_chakra_groups *groups, pl_trace *trace, pl_error *error);

/* Per op of rank `rank`, counted from its first: the send or collective that the rank did before it, which is another
 * one (PL_NONE: none, or it is neither). In files that is a dependency, and `order_after` says that it is no other. */
bool pl_chakra_order(const pl_trace *trace, uint32_t rank, uint32_t *before);

/* Rank `rank` as an .et file; whole or not at all is the caller's affair. */
pl_code pl_chakra_write(FILE *file, const pl_trace *trace, uint32_t rank, pl_error *error);

#endif
