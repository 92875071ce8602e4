/* Messages of an execution trace and of a profile of the same run. See workloads/formats/execution.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/execution.h"

static int by_external(const void *a_, const void *b_) {
  const pl_kineto_communication *a = *(pl_kineto_communication *const *)a_, *b = *(pl_kineto_communication *const *)b_;
  if (a->external != b->external) return a->external < b->external ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* Ranks that stand at one distance, as text, for that is how profiles have them. */
static uint32_t ranks_of(const pl_execution_message *says, pl_trace *trace) {
  enum { MOST = 4096, BYTES = 12 };
  if (says->group_size < 1 || says->group_size > MOST || says->first_rank < 0 || says->rank_stride < 1 ||
      says->first_rank > INT32_MAX || says->rank_stride > INT32_MAX / MOST)
    return PL_NONE;
  char *text = malloc((size_t)says->group_size * BYTES + 1);
  size_t n = 0;
  for (int64_t r = 0; text != NULL && r < says->group_size; r++)
    n += (size_t)snprintf(text + n, BYTES + 1, "%lld ", (long long)(says->first_rank + r * says->rank_stride));
  uint32_t name = text != NULL ? pl_trace_name(trace, text, n) : PL_NONE;
  free(text);
  return name;
}

static bool is_wait(const pl_execution_message *says, const pl_trace *trace) {
  return says->collective == PL_NONE || strcmp(trace->names[says->collective], "wait") == 0;
}

static void complete(const pl_execution_message *says, pl_kineto_communication *message, pl_trace *trace) {
  if (message->collective == PL_NONE) message->collective = says->collective;
  if (message->group == PL_NONE) message->group = says->group;
  if (message->type == PL_NONE) message->type = says->type;
  if (message->in_elements < 0) message->in_elements = says->in_elements;
  if (message->out_elements < 0) message->out_elements = says->out_elements;
  if (message->group_size < 0) message->group_size = says->group_size;
  if (message->ranks == PL_NONE) message->ranks = ranks_of(says, trace);
}

pl_code pl_execution_join(const pl_execution_trace *execution, pl_kineto *kineto, pl_error *error) {
  pl_trace *trace = kineto->trace;
  pl_kineto_communication **list = malloc(((size_t)kineto->n_communications + 1) * sizeof *list);
  if (list == NULL) return pl_fail_memory(error, execution->path);
  uint32_t n = 0, n_joined = 0;
  for (uint32_t k = 0; k < kineto->n_events; k++) {
    const pl_kineto_event *event = &kineto->events[k];
    if (event->communication > 0 && strcmp(trace->names[event->name], "record_param_comms") == 0 &&
        kineto->communications[event->communication - 1].external >= 0)
      list[n++] = &kineto->communications[event->communication - 1];
  }
  if (n > 1) qsort(list, n, sizeof(pl_kineto_communication *), by_external);
  for (uint32_t k = 0; n == execution->n && k < n; k++)
    if (!is_wait(&execution->messages[k], trace)) {
      complete(&execution->messages[k], list[k], trace);
      n_joined++;
    }
  free(list);
  if (n != execution->n)
    pl_trace_add_note(trace, "%s: has %u messages where %s has %u: not of the same steps, or cut off; not joined",
                      execution->path, execution->n, kineto->path, n);
  else
    pl_trace_add_note(trace, "%s: joined with %s: %u messages completed", execution->path, kineto->path, n_joined);
  return PL_OK;
}
