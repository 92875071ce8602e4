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

static pl_trace_latency_fit *find_fit(pl_trace_fits *fits, uint8_t kind, uint32_t n_members) {
  for (uint32_t f = 0; f < fits->n; f++)
    if (fits->fits[f].kind == kind && fits->fits[f].n_members == n_members) return &fits->fits[f];
  return NULL;
}

typedef struct sums {
  double n, x, y, xx, xy;
} sums;

static void fit_line(pl_trace_latency_fit *fit, const sums *s) {
  double spread = s->xx - s->x * s->x / s->n;
  fit->n = (uint32_t)s->n;
  fit->is_line = spread > 1e-9 * s->xx;
  if (!fit->is_line) return;
  fit->slope_s_per_byte = fmax(0, (s->xy - s->x * s->y / s->n) / spread);
  fit->latency_s = (s->y - fit->slope_s_per_byte * s->x) / s->n;
  if (fit->latency_s < 0) {
    fit->latency_s = 0;
    fit->slope_s_per_byte = s->xy / s->xx;
  }
}

pl_code pl_trace_fits_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_fits *fits, pl_error *error) {
  enum { MOST = 256 }; /* kinds times sizes of groups; what comes after counts as without latency */
  fits->n = 0;
  fits->fits = PL_TAKE(arena, pl_trace_latency_fit, MOST);
  sums *all = PL_TAKE(arena, sums, MOST);
  if (fits->fits == NULL || all == NULL) return pl_fail_memory(error, "the messages of a step");
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
    if (!pl_trace_task_moves_data(replay, t)) continue;
    const pl_trace_message *message = message_of(replay, t);
    /* of a message the flight, or the send; what a receive takes beside these is no time by size */
    bool receives = replay->trace->ops[pl_trace_task_op(replay, t)].kind == PL_TRACE_RECEIVE;
    if (message->size_bytes < 0 || (receives && replay->role[t] == PL_TRACE_BODY)) continue;
    pl_trace_latency_fit *fit = find_fit(fits, message->kind, members_of(replay, t));
    if (fit == NULL && fits->n < MOST) {
      fit = &fits->fits[fits->n++];
      *fit = (pl_trace_latency_fit){.kind = message->kind, .n_members = members_of(replay, t)};
    }
    if (fit == NULL) continue;
    sums *s = &all[fit - fits->fits];
    double x = (double)message->size_bytes, y = pl_ticks_to_s(replay->ticks[t]);
    *s = (sums){s->n + 1, s->x + x, s->y + y, s->xx + x * x, s->xy + x * y};
  }
  for (uint32_t f = 0; f < fits->n; f++)
    fit_line(&fits->fits[f], &all[f]);
  return PL_OK;
}

/* ---- scales ---- */

static pl_ticks times(pl_ticks ticks, double factor) {
  double scaled = (double)ticks * factor;
  return scaled >= (double)PL_TICKS_MAX ? PL_TICKS_MAX : (pl_ticks)llrint(scaled);
}

static pl_ticks on_link(const pl_trace_replay *replay, const pl_trace_fits *fits, uint32_t task, pl_ticks ticks,
                        double factor) {
  const pl_trace_latency_fit *fit =
      find_fit((pl_trace_fits *)fits, message_of(replay, task)->kind, members_of(replay, task));
  pl_ticks latency = fit != NULL && fit->is_line ? pl_ticks_from_s(fit->latency_s) : 0;
  return ticks <= latency ? ticks : pl_ticks_sum(latency, times(ticks - latency, 1 / factor));
}

static pl_ticks scaled(const pl_trace_replay *replay, const pl_trace_fits *fits, const pl_trace_scale *scale,
                       uint32_t task, pl_ticks ticks) {
  const pl_trace_op *op = &replay->trace->ops[pl_trace_task_op(replay, task)];
  bool host = replay->trace->streams[op->stream].kind == PL_TRACE_HOST;
  bool moves = pl_trace_task_moves_data(replay, task);
  switch (scale->kind) {
  case PL_TRACE_SCALE_LINK:
    return moves ? on_link(replay, fits, task, ticks, scale->factor) : ticks;
  case PL_TRACE_SCALE_HOST: {
    bool works =
        replay->role[task] == PL_TRACE_GATE || (replay->role[task] == PL_TRACE_BODY && op->kind == PL_TRACE_CALL);
    return host && works ? times(ticks, scale->factor) : ticks;
  }
  default:
    if (replay->role[task] != PL_TRACE_BODY && replay->role[task] != PL_TRACE_JOIN) return ticks;
    if (op->kind == PL_TRACE_COLLECTIVE && replay->role[task] == PL_TRACE_BODY) return ticks; /* it only leaves */
    return fnmatch(scale->pattern, replay->trace->names[op->name], 0) == 0 ? times(ticks, scale->factor) : ticks;
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
