/* See search/trace/replay_session.h. */
#include "search/trace/replay_session.h"

#include <stdlib.h>

#include "search/trace/job_file.h"
#include "workloads/trace/meeting_gaps.h"

pl_code pl_replay_session_open(const char *path, pl_replay_session *session, pl_error *error) {
  *session = (pl_replay_session){.meetings = {.n = 0}};
  pl_trace_init(&session->trace);
  PL_TRY(pl_job_file_open(path, &session->trace, error));
  PL_TRY(pl_trace_meetings_make(&session->trace, &session->meetings, error));
  PL_TRY(pl_trace_clocks_make(&session->trace, &session->meetings, &session->clocks, error));
  PL_TRY(pl_trace_steps_make(&session->trace, &session->clocks, &session->steps, error));
  if (session->steps.n == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: no step is on all ranks; were they recorded over the same steps?", path);
  return PL_OK;
}

pl_code pl_replay_session_fit(const pl_replay_session *session, pl_arena *arena, pl_trace_fits *fits, pl_error *error) {
  pl_code code = PL_OK;
  fits->n = 0;
  for (uint32_t s = 0; s < session->steps.n && code == PL_OK; s++) {
    pl_trace_replay replay;
    pl_arena_reset(arena);
    code = pl_replay_session_take(session, s, arena, &replay, error);
    if (code == PL_OK) pl_trace_fits_add(&replay, fits);
  }
  pl_arena_reset(arena);
  return code;
}

static uint32_t count_lacking(const pl_replay_session *session) {
  uint32_t n = 0;
  pl_trace_gap *gaps = malloc(((size_t)session->trace.n_ranks + 1) * sizeof *gaps);
  if (gaps == NULL) return 0; /* it is but a remark */
  pl_trace_gaps_find(&session->trace, &session->meetings, gaps);
  for (uint32_t r = 0; r < session->trace.n_ranks; r++)
    n += gaps[r].first != PL_NONE;
  free(gaps);
  return n;
}

void pl_replay_session_put_lacking(FILE *out, const pl_replay_session *session) {
  uint32_t n = count_lacking(session);
  if (n == 0) return;
  fprintf(out,
          "%u rank%s messages that others did with %s: what is left of these takes its recorded time, also in a "
          "what-if; paceline trace check says which\n",
          n, n == 1 ? " lacks" : "s lack", n == 1 ? "it" : "them");
}

void pl_replay_session_release(pl_replay_session *session) {
  pl_trace_steps_release(&session->steps);
  pl_trace_clocks_release(&session->clocks);
  pl_trace_meetings_release(&session->meetings);
  pl_trace_release(&session->trace);
}

static int64_t length(const pl_trace_span *span) {
  return span->end_ns - span->start_ns;
}

pl_code pl_replay_session_step(const pl_replay_session *session, const char *path, int64_t number, uint32_t *step,
                               pl_error *error) {
  const pl_trace_step_list *steps = &session->steps;
  for (uint32_t s = 0; s < steps->n; s++) {
    uint32_t shorter = 0;
    for (uint32_t o = 0; o < steps->n; o++)
      shorter += length(&steps->steps[o]) < length(&steps->steps[s]) ||
                 (length(&steps->steps[o]) == length(&steps->steps[s]) && o < s);
    if (number == INT64_MIN ? shorter == (steps->n - 1) / 2 : steps->steps[s].number == number) {
      *step = s;
      return PL_OK;
    }
  }
  return pl_fail(error, PL_BAD_INPUT, "%s: has no step %lld on all ranks; it has %lld to %lld", path, (long long)number,
                 (long long)steps->steps[0].number, (long long)steps->steps[steps->n - 1].number);
}
