/* See workloads/trace/what_if.h. */
#include "workloads/trace/what_if.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"

pl_code pl_trace_scale_parse(char *text, pl_trace_scale *scale, pl_error *error) {
  char *equals = strrchr(text, '=');
  if (equals == NULL || equals == text)
    return pl_fail(error, PL_BAD_INPUT, "--scale '%s': is no op:PATTERN=F, link=F or host=F", text);
  *equals = '\0';
  PL_TRY(pl_parse_number(equals + 1, "--scale", &scale->factor, error));
  if (!(scale->factor >= 0 && scale->factor <= 1e6))
    return pl_fail(error, PL_BAD_INPUT, "--scale %s=%s: the factor must be from 0 to 10^6", text, equals + 1);
  if (strncmp(text, "op:", 3) == 0 && text[3] != '\0') {
    *scale = (pl_trace_scale){PL_TRACE_SCALE_OP, text + 3, scale->factor};
  } else if (strcmp(text, "link") == 0) {
    if (scale->factor < 1e-6) return pl_fail(error, PL_BAD_INPUT, "--scale link=%s: links need a speed", equals + 1);
    *scale = (pl_trace_scale){PL_TRACE_SCALE_LINK, NULL, scale->factor};
  } else if (strcmp(text, "host") == 0) {
    *scale = (pl_trace_scale){PL_TRACE_SCALE_HOST, NULL, scale->factor};
  } else {
    return pl_fail(error, PL_BAD_INPUT, "--scale '%s': is no op:PATTERN, link or host", text);
  }
  return PL_OK;
}

uint32_t pl_trace_task_op(const pl_trace_replay *replay, uint32_t task) {
  uint32_t subject = replay->subject[task];
  return replay->role[task] == PL_TRACE_JOIN ? replay->meetings->ops[replay->meetings->meetings[subject].first]
                                             : subject;
}

bool pl_trace_task_moves_data(const pl_trace_replay *replay, uint32_t task) {
  if (replay->role[task] == PL_TRACE_JOIN || replay->role[task] == PL_TRACE_FLIGHT) return true;
  uint8_t kind = replay->trace->ops[pl_trace_task_op(replay, task)].kind;
  return replay->role[task] == PL_TRACE_BODY && (kind == PL_TRACE_SEND || kind == PL_TRACE_RECEIVE);
}

/* ---- latency and slope ---- */

static const pl_trace_message *message_of(const pl_trace_replay *replay, uint32_t task) {
  return &replay->trace->messages[replay->trace->ops[pl_trace_task_op(replay, task)].message];
}

static uint32_t members_of(const pl_trace_replay *replay, uint32_t task) {
  return replay->role[task] == PL_TRACE_JOIN ? replay->meetings->meetings[replay->subject[task]].n : 2;
}

const pl_trace_fit *pl_trace_fits_find(const pl_trace_fits *fits, uint8_t kind, uint32_t n_members) {
  for (uint32_t f = 0; f < fits->n; f++)
    if (fits->fits[f].kind == kind && fits->fits[f].n_members == n_members) return &fits->fits[f];
  return NULL;
}

void pl_trace_fits_add(const pl_trace_replay *replay, pl_trace_fits *fits) {
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
    if (!pl_trace_task_moves_data(replay, t)) continue;
    const pl_trace_message *message = message_of(replay, t);
    /* of a message the flight, or the send; what a receive takes beside these is no time by size */
    bool receives = replay->trace->ops[pl_trace_task_op(replay, t)].kind == PL_TRACE_RECEIVE;
    if (message->size_bytes < 0 || (receives && replay->role[t] == PL_TRACE_BODY)) continue;
    uint32_t n_members = members_of(replay, t);
    const pl_trace_fit *known = pl_trace_fits_find(fits, message->kind, n_members);
    if (known == NULL && fits->n == PL_TRACE_MOST_FITS) continue;
    if (known == NULL) fits->fits[fits->n] = (pl_trace_fit){.kind = message->kind, .n_members = n_members};
    pl_trace_fit *fit = &fits->fits[known != NULL ? (uint32_t)(known - fits->fits) : fits->n++];
    pl_message_sums_add(&fit->sums, (double)message->size_bytes, pl_ticks_to_s(replay->ticks[t]));
  }
  for (uint32_t f = 0; f < fits->n; f++)
    fits->fits[f].line = pl_message_line_fit(&fits->fits[f].sums);
}

/* ---- scales ---- */

static pl_ticks on_link(const pl_trace_replay *replay, const pl_trace_fits *fits, uint32_t task, pl_ticks ticks,
                        double factor) {
  const pl_trace_fit *fit = pl_trace_fits_find(fits, message_of(replay, task)->kind, members_of(replay, task));
  pl_ticks latency = fit != NULL && fit->line.is_line ? pl_ticks_from_s(fit->line.latency_s) : 0;
  return ticks <= latency ? ticks : pl_ticks_sum(latency, pl_ticks_scaled(ticks - latency, 1 / factor));
}

static pl_ticks scaled(const pl_trace_replay *replay, const pl_trace_fits *fits, const pl_trace_scale *scale,
                       uint32_t task, pl_ticks ticks) {
  const pl_trace_op *op = &replay->trace->ops[pl_trace_task_op(replay, task)];
  bool host = replay->trace->streams[op->stream].kind == PL_TRACE_HOST;
  bool moves = pl_trace_task_moves_data(replay, task);
  switch (scale->kind) {
  case PL_TRACE_SCALE_LINK:
    if (moves && message_of(replay, task)->kind == PL_TRACE_BARRIER) return ticks; /* has no bytes */
    return moves ? on_link(replay, fits, task, ticks, scale->factor) : ticks;
  case PL_TRACE_SCALE_HOST: {
    bool works =
        replay->role[task] == PL_TRACE_GATE || (replay->role[task] == PL_TRACE_BODY && op->kind == PL_TRACE_CALL);
    return host && works ? pl_ticks_scaled(ticks, scale->factor) : ticks;
  }
  default:
    if (replay->role[task] != PL_TRACE_BODY && replay->role[task] != PL_TRACE_JOIN) return ticks;
    if (op->kind == PL_TRACE_COLLECTIVE && replay->role[task] == PL_TRACE_BODY) return ticks; /* it only leaves */
    return fnmatch(scale->pattern, replay->trace->names[op->name], 0) == 0 ? pl_ticks_scaled(ticks, scale->factor)
                                                                           : ticks;
  }
}

uint32_t pl_trace_scale_apply(const pl_trace_replay *replay, const pl_trace_fits *fits, const pl_trace_scale *scale,
                              pl_ticks *ticks, uint32_t *changed) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
    pl_ticks now = scaled(replay, fits, scale, t, ticks[t]);
    if (now == ticks[t]) continue;
    ticks[t] = now;
    if (changed != NULL) changed[n] = t;
    n++;
  }
  return n;
}
