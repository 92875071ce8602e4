/* What if: durations of a step's tasks changed by factors, for another replay.
 *
 *   op:PATTERN=F  ops whose name fits the shell pattern take F times as long; collectives too, the time in which data
 *                 moves
 *   link=F        links are F times as fast: of a message, what its size accounts for is divided by F
 *   host=F        calls, and the host's own work between them, take F times as long
 *
 * What of a message its size accounts for comes from a line through the recorded ones of its kind
 * (workloads/trace/message_line.h); where they are all of one size, all of the time counts.
 */
#ifndef PL_WORKLOADS_TRACE_WHAT_IF_H
#define PL_WORKLOADS_TRACE_WHAT_IF_H

#include "workloads/trace/message_line.h"
#include "workloads/trace/replay.h"

typedef enum pl_trace_scale_kind {
  PL_TRACE_SCALE_OP = 0,
  PL_TRACE_SCALE_LINK,
  PL_TRACE_SCALE_HOST
} pl_trace_scale_kind;

typedef struct pl_trace_scale {
  pl_trace_scale_kind kind;
  const char *pattern; /* op: within the text that was parsed */
  double factor;
} pl_trace_scale;

/* `text` is cut at its '=' and must outlive the scale. */
pl_code pl_trace_scale_parse(char *text, pl_trace_scale *scale, pl_error *error);

/* Lines through the messages, by kind and number of members: of one step, or of several, which tells latencies from
 * noise better. */
typedef struct pl_trace_fit {
  uint8_t kind;
  uint32_t n_members;
  pl_message_sums sums;
  pl_message_line line;
} pl_trace_fit;

enum { PL_TRACE_MOST_FITS = 256 }; /* kinds times sizes of groups; what comes after counts as without latency */

typedef struct pl_trace_fits {
  pl_trace_fit fits[PL_TRACE_MOST_FITS];
  uint32_t n;
} pl_trace_fits;

/* Adds the messages of a step, and draws the lines anew. `fits` zeroed before the first. */
void pl_trace_fits_add(const pl_trace_replay *replay, pl_trace_fits *fits);
/* NULL: no message of that kind. */
const pl_trace_fit *pl_trace_fits_find(const pl_trace_fits *fits, uint8_t kind, uint32_t n_members);

/* Applies the scale to `ticks`; returns how many tasks it changed. Of `changed` (may be NULL; room for n_tasks) those.
 */
uint32_t pl_trace_scale_apply(const pl_trace_replay *replay, const pl_trace_fits *fits, const pl_trace_scale *scale,
                              pl_ticks *ticks, uint32_t *changed);
/* The op whose name, kind and stream the task goes by. */
uint32_t pl_trace_task_op(const pl_trace_replay *replay, uint32_t task);
/* The task is one in which data moves between ranks: the join of a collective, the body of a send or receive. */
bool pl_trace_task_moves_data(const pl_trace_replay *replay, uint32_t task);

#endif
