/* What the plain format says by name, looked up once all of the file is read. */
#include <stdlib.h>

#include "workloads/formats/plain_state.h"

static pl_code resolve_group(pl_plain *own, uint32_t k, pl_error *error) {
  pl_trace_op *op = &own->trace->ops[own->rank.first_op + k];
  if (op->kind != PL_TRACE_COLLECTIVE) return PL_OK;
  uint32_t name = own->trace->messages[op->message].group;
  for (uint32_t g = own->n_groups; g-- > 0;)
    if (own->groups[g].name == name) {
      own->trace->messages[op->message].group = own->groups[g].index;
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "%s: op %u is a collective of group '%s', which 'groups' does not have",
                 own->path, k, own->trace->names[name]);
}

static pl_code resolve_step(pl_plain *own, uint32_t k, pl_error *error) {
  pl_trace_op *op = &own->trace->ops[own->rank.first_op + k];
  if (op->step == PL_NONE) return PL_OK;
  int64_t number = own->step_numbers[op->step];
  for (uint32_t s = own->trace->n_steps; s-- > own->rank.first_step;)
    if (own->trace->steps[s].number == number) {
      op->step = s;
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "%s: op %u is of step %lld, which 'steps' does not have", own->path, k,
                 (long long)number);
}

static pl_code resolve_waits(pl_plain *own, pl_error *error) {
  uint32_t n_lost = 0;
  PL_TRY(pl_edges_by_id_add(&own->edges, own->trace, own->rank.first_op, own->path, "op",
                            own->end.is_cut ? &n_lost : NULL, error));
  if (n_lost > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u ops wait for ops behind the end of the file", own->path,
                      (long long)own->rank.number, n_lost);
  return PL_OK;
}

static void choose_kinds(pl_plain *own) {
  pl_trace *trace = own->trace;
  for (uint32_t s = 0; s < own->n_streams; s++) {
    pl_trace_stream *stream = &trace->streams[own->streams[s].index];
    if (stream->kind != PL_TRACE_STREAM_KIND_COUNT) continue;
    bool calls = false, computes = false;
    for (uint32_t k = own->rank.first_op; k < trace->n_ops; k++) {
      if (trace->ops[k].stream != own->streams[s].index) continue;
      calls |= trace->ops[k].kind == PL_TRACE_CALL || trace->ops[k].kind == PL_TRACE_WAIT;
      computes |= trace->ops[k].kind == PL_TRACE_COMPUTE || trace->ops[k].kind == PL_TRACE_COPY;
    }
    stream->kind = (uint8_t)(calls ? PL_TRACE_HOST : computes ? PL_TRACE_DEVICE : PL_TRACE_NETWORK);
  }
}

pl_code pl_plain_finish(pl_plain *own, pl_error *error) {
  pl_trace *trace = own->trace;
  if (own->version < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: does not say \"paceline_trace\": %d", own->path, PL_TRACE_PLAIN_VERSION);
  if (own->rank.number < 0) return pl_fail(error, PL_BAD_INPUT, "%s: does not say which \"rank\" it is", own->path);
  if (own->n_ops == 0) return pl_fail(error, PL_BAD_INPUT, "%s: has no \"ops\"", own->path);
  if (trace->n_steps > own->rank.first_step)
    qsort(trace->steps + own->rank.first_step, trace->n_steps - own->rank.first_step, sizeof *trace->steps,
          pl_trace_step_by_start);
  for (uint32_t k = 0; k < own->n_ops; k++) {
    PL_TRY(resolve_group(own, k, error));
    PL_TRY(resolve_step(own, k, error));
  }
  choose_kinds(own);
  PL_TRY(resolve_waits(own, error));
  if (own->end.is_cut || own->end.is_gzip_cut)
    pl_trace_add_note(trace, "%s: rank %lld: ends too early; read as far as it goes", own->path,
                      (long long)own->rank.number);
  if (own->n_negative > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u ops with negative durations, taken as 0", own->path,
                      (long long)own->rank.number, own->n_negative);
  trace->ranks[own->index] = own->rank;
  return pl_trace_end_rank(trace, own->index, own->first_edge, error);
}
