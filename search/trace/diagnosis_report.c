/* The lines and the JSON of a diagnosis (see search/trace/diagnosis_report.h). */
#include "search/trace/diagnosis_report.h"

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/text/json_writer.h"

enum { MOST_LINES = 10 };

static double percent(pl_ticks part, pl_ticks whole) {
  return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static void put_summary(FILE *out, const pl_diagnosis_report *report) {
  char measured[PL_UNIT_TEXT_BYTES], replayed[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  double measured_s = pl_ticks_to_s(pl_trace_replay_measured(report->replay));
  fprintf(out, "step %lld: measured %s, replayed %s (%+.2f %%), %u ops on %u ranks\n",
          (long long)report->replay->span.number, pl_format_time(measured_s, measured),
          pl_format_time(pl_ticks_to_s(d->makespan), replayed), 100 * (pl_ticks_to_s(d->makespan) / measured_s - 1),
          report->replay->n_ops, report->session->trace.n_ranks);
}

static void put_path(FILE *out, const pl_diagnosis_report *report) {
  char text[PL_UNIT_TEXT_BYTES], name[64];
  const pl_trace_diagnosis *d = report->diagnosis;
  fprintf(out, "\nCritical path (%u tasks, as long as the step):\n", d->n_path);
  for (int s = 0; s < PL_TRACE_SHARE_COUNT; s++)
    if (d->share[s] > 0)
      fprintf(out, "  %-20s %10s %6.1f %%\n", pl_trace_share_names[s], pl_format_time(pl_ticks_to_s(d->share[s]), text),
              percent(d->share[s], d->makespan));
  fputs("  longest ops on it:\n", out);
  for (uint32_t k = 0; k < d->n_names && k < MOST_LINES / 2; k++)
    fprintf(out, "    %10s %6.1f %%  %5u x %s\n", pl_format_time(pl_ticks_to_s(d->names[k].ticks), text),
            percent(d->names[k].ticks, d->makespan), d->names[k].n,
            pl_printable(report->session->trace.names[d->names[k].name], name, sizeof name));
}

static void put_ranks(FILE *out, const pl_diagnosis_report *report) {
  const pl_trace_diagnosis *d = report->diagnosis;
  fputs("\nPer rank, % of the step:\n  rank", out);
  static const char *const heads[] = {"computes", "exposed",  "for rank", "for data",
                                      "for sync", "for host", "stands",   "done"};
  for (int s = 0; s < PL_TRACE_STATE_COUNT; s++)
    fprintf(out, " %9s", heads[s]);
  fputs("   on path  waits most for\n", out);
  for (uint32_t r = 0; r < report->session->trace.n_ranks; r++) {
    const pl_trace_rank_times *t = &d->ranks[r];
    fprintf(out, "%6lld", (long long)report->session->trace.ranks[r].number);
    for (int s = 0; s < PL_TRACE_STATE_COUNT; s++)
      fprintf(out, " %9.1f", percent(t->ticks[s], d->makespan));
    fprintf(out, " %9.1f", percent(t->on_path, d->makespan));
    if (t->waited_for != PL_NONE)
      fprintf(out, "  rank %lld (%.1f %%)", (long long)report->session->trace.ranks[t->waited_for].number,
              percent(t->waited, d->makespan));
    fputc('\n', out);
  }
}

static void put_changes(FILE *out, const pl_diagnosis_report *report) {
  char text[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  fputs("\nChanges that would pay most, each by a replay:\n", out);
  for (uint32_t k = 0; k < d->n_changes && k < MOST_LINES; k++) {
    char what[120];
    pl_ticks makespan = d->changes[k].makespan;
    fprintf(out, "  %10s %+7.2f %%  %s\n", pl_format_time(pl_ticks_to_s(makespan), text),
            100 * ((double)makespan / (double)d->makespan - 1), pl_printable(d->changes[k].what, what, sizeof what));
  }
  if (d->are_served) fputs("  Links serve the message that is ready first, as they did in the recording.\n", out);
}

/* What each rank's slowness costs, and all of it together. */
static void put_stragglers(FILE *out, const pl_diagnosis_report *report) {
  char text[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  const pl_trace *trace = &report->session->trace;
  if (d->balanced == PL_TICKS_NEVER) return;
  fprintf(out, "\nStragglers: the step if ops took the median over the ranks\n  %10s %+7.2f %%  all ranks\n",
          pl_format_time(pl_ticks_to_s(d->balanced), text), 100 * ((double)d->balanced / (double)d->makespan - 1));
  uint32_t worst = 0, least = 0;
  for (uint32_t r = 1; r < trace->n_ranks; r++) {
    if (d->ranks[r].without < d->ranks[worst].without) worst = r;
    if (d->ranks[r].compared < d->ranks[least].compared) least = r;
  }
  pl_ticks without = d->ranks[worst].without;
  fprintf(out, "  %10s %+7.2f %%  rank %lld alone, the rank that costs most\n",
          pl_format_time(pl_ticks_to_s(without), text), 100 * ((double)without / (double)d->makespan - 1),
          (long long)trace->ranks[worst].number);
  if (!d->are_alike)
    fprintf(
        out,
        "  The ranks do not all do the same: ops are compared by name and order where ranks have as many of them, on "
        "rank %lld %.0f %% of its own time, elsewhere more.\n",
        (long long)trace->ranks[least].number, 100 * d->ranks[least].compared);
}

void pl_diagnosis_report_text(FILE *stream, const pl_diagnosis_report *report) {
  put_summary(stream, report);
  pl_replay_session_put_lacking(stream, report->session);
  put_path(stream, report);
  put_ranks(stream, report);
  put_stragglers(stream, report);
  put_changes(stream, report);
}

void pl_diagnosis_report_json(FILE *stream, const pl_diagnosis_report *report) {
  pl_json json;
  const pl_trace_diagnosis *d = report->diagnosis;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_integer(&json, "step", report->replay->span.number);
  pl_json_put_number(&json, "measured_s", pl_ticks_to_s(pl_trace_replay_measured(report->replay)));
  pl_json_put_number(&json, "replayed_s", pl_ticks_to_s(d->makespan));
  pl_json_put_integer(&json, "critical_tasks", d->n_path);
  pl_json_put_boolean(&json, "ranks_alike", d->are_alike);
  if (d->balanced != PL_TICKS_NEVER) pl_json_put_number(&json, "step_if_all_median_s", pl_ticks_to_s(d->balanced));
  pl_json_key(&json, "critical_path_s");
  pl_json_open_object(&json);
  for (int s = 0; s < PL_TRACE_SHARE_COUNT; s++)
    pl_json_put_number(&json, pl_trace_share_names[s], pl_ticks_to_s(d->share[s]));
  pl_json_close_object(&json);
  pl_json_key(&json, "ranks");
  pl_json_open_array(&json);
  for (uint32_t r = 0; r < report->session->trace.n_ranks; r++) {
    const pl_trace_rank_times *t = &d->ranks[r];
    pl_json_open_object(&json);
    pl_json_put_integer(&json, "rank", report->session->trace.ranks[r].number);
    for (int s = 0; s < PL_TRACE_STATE_COUNT; s++)
      pl_json_put_number(&json, pl_trace_state_names[s], pl_ticks_to_s(t->ticks[s]));
    pl_json_put_number(&json, "on_critical_path", pl_ticks_to_s(t->on_path));
    if (t->waited_for != PL_NONE)
      pl_json_put_integer(&json, "waits_most_for", report->session->trace.ranks[t->waited_for].number);
    if (d->balanced != PL_TICKS_NEVER) {
      pl_json_put_number(&json, "step_if_median_s", pl_ticks_to_s(t->without));
      pl_json_put_number(&json, "compared", t->compared);
    }
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_key(&json, "changes");
  pl_json_open_array(&json);
  for (uint32_t k = 0; k < d->n_changes; k++) {
    pl_json_open_object(&json);
    pl_json_put_string(&json, "change", d->changes[k].what);
    pl_json_put_number(&json, "step_s", pl_ticks_to_s(d->changes[k].makespan));
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}
