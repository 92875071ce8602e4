/* See search/trace/trace_report.h. */
#include "search/trace/trace_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/text/json_writer.h"
#include "workloads/trace/clocks.h"
#include "workloads/trace/meetings.h"
#include "workloads/trace/op_times.h"
#include "workloads/trace/steps.h"

static void put_notes(FILE *stream, const pl_trace *trace) {
  for (uint32_t k = 0; k < trace->n_notes; k++) {
    fputs("  ", stream);
    pl_printable_put(stream, trace->names[trace->notes[k]]);
    fputc('\n', stream);
  }
}

void pl_trace_report_import(FILE *out, FILE *notes, const pl_trace *trace, const char *path) {
  if (trace->n_notes > 0) {
    fputs("paceline trace import: assumed or left out:\n", notes);
    put_notes(notes, trace);
  }
  fprintf(out, "%u rank%s, %u ops, %u messages, %u step%s of ranks: ", trace->n_ranks, trace->n_ranks == 1 ? "" : "s",
          trace->n_ops, trace->n_messages, trace->n_steps, trace->n_steps == 1 ? "" : "s");
  pl_printable_put(out, path);
  fputc('\n', out);
}

/* ---- check ---- */

static void count_kinds(const pl_trace *trace, uint32_t rank, uint32_t counts[PL_TRACE_OP_KIND_COUNT]) {
  const pl_trace_rank *r = &trace->ranks[rank];
  memset(counts, 0, PL_TRACE_OP_KIND_COUNT * sizeof *counts);
  for (uint32_t k = r->first_op; k < r->first_op + r->n_ops; k++)
    counts[trace->ops[k].kind]++;
}

static void put_ranks(FILE *out, const pl_trace *trace) {
  fprintf(out, "%6s  %-24s %6s %8s %8s %8s %8s %8s\n", "rank", "host", "steps", "compute", "copies", "messages",
          "calls", "waits");
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    uint32_t n[PL_TRACE_OP_KIND_COUNT];
    char host[PL_PRINTABLE_BYTES];
    count_kinds(trace, r, n);
    pl_printable(trace->names[trace->ranks[r].host], host, 25);
    fprintf(out, "%6" PRId64 "  %-24s %6u %8u %8u %8u %8u %8u\n", trace->ranks[r].number, host, trace->ranks[r].n_steps,
            n[PL_TRACE_COMPUTE], n[PL_TRACE_COPY], n[PL_TRACE_COLLECTIVE] + n[PL_TRACE_SEND] + n[PL_TRACE_RECEIVE],
            n[PL_TRACE_CALL], n[PL_TRACE_WAIT]);
  }
}

static void put_steps(FILE *out, const pl_trace_step_list *steps) {
  char mean[PL_UNIT_TEXT_BYTES], low[PL_UNIT_TEXT_BYTES], high[PL_UNIT_TEXT_BYTES], spread[PL_UNIT_TEXT_BYTES];
  if (steps->n == 0) return;
  pl_trace_step_spread s = pl_trace_steps_spread(steps);
  fprintf(out, "\n%u step%s on all ranks: mean %s, %s to %s", steps->n, steps->n == 1 ? "" : "s",
          pl_format_time(s.mean_s, mean), pl_format_time(s.least_s, low), pl_format_time(s.most_s, high));
  if (steps->n > 1) fprintf(out, ", standard deviation %s", pl_format_time(s.deviation_s, spread));
  fputs(" (first start to last end)\n", out);
  if (steps->n > 1 && s.most_s > 1.5 * s.least_s)
    fputs("  the steps are of different lengths: the longest takes over 1.5 times the shortest\n", out);
  if (steps->n_partial > 0)
    fprintf(out, "  %u step%s not on all ranks: left out of the mean and of replay\n", steps->n_partial,
            steps->n_partial == 1 ? " is" : "s are");
  if (steps->is_whole) fputs("  no step is marked: all that was recorded counts as one\n", out);
}

/* `most` of them. */
static void put_ops(FILE *out, const pl_trace *trace, const pl_trace_step_list *steps, const pl_trace_op_times *times,
                    uint32_t n, uint32_t most) {
  fprintf(
      out,
      "\nOps that took most time, averaged over %u step%s (%u kinds of ops; +-: standard deviation of the steps):\n",
      steps->n, steps->n == 1 ? "" : "s", n);
  fprintf(out, "  %12s %10s %10s %8s  %-10s  %s\n", "per step", "a step", "each", "+- %", "kind", "op");
  for (uint32_t k = 0; k < n && k < most; k++) {
    char all[PL_UNIT_TEXT_BYTES], each[PL_UNIT_TEXT_BYTES], name[PL_PRINTABLE_BYTES];
    const pl_trace_op_times *t = &times[k];
    fprintf(out, "  %12.6g %10s %10s %8.1f  %-10s  %s\n", t->per_step, pl_format_time(t->mean_s * t->per_step, all),
            pl_format_time(t->mean_s, each), t->mean_s > 0 ? 100 * t->deviation_s / t->mean_s : 0,
            pl_trace_op_kind_names[t->kind], pl_printable(trace->names[t->name], name, 80));
  }
}

static void put_ops_json(pl_json *json, const pl_trace *trace, const pl_trace_op_times *times, uint32_t n,
                         uint32_t most) {
  pl_json_key(json, "op_times");
  pl_json_open_array(json);
  for (uint32_t k = 0; k < n && k < most; k++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "name", trace->names[times[k].name]);
    pl_json_put_string(json, "kind", pl_trace_op_kind_names[times[k].kind]);
    pl_json_put_integer(json, "steps", times[k].n_steps);
    pl_json_put_number(json, "per_step", times[k].per_step);
    pl_json_put_number(json, "mean_s", times[k].mean_s);
    pl_json_put_number(json, "deviation_s", times[k].deviation_s);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_meetings(FILE *out, const pl_trace_meetings *m) {
  fprintf(out, "\n%u collectives, %u transfers", m->n_collectives, m->n_transfers);
  fprintf(out, "; unmatched: %u collectives, %u transfers", m->n_unmatched_collectives, m->n_unmatched_transfers);
  if (m->n_absent > 0) fprintf(out, "; with members that were not recorded: %u", m->n_absent);
  fputc('\n', out);
}

static void put_clocks(FILE *out, const pl_trace *trace, const pl_trace_clocks *clocks) {
  fputs("\nClocks, against that of the first host:\n", out);
  fprintf(out, "  %-24s %20s %12s %12s %12s %8s\n", "host", "offset [us]", "+- [us]", "drift [ppm]", "+- [ppm]",
          "ties");
  for (uint32_t h = 0; h < clocks->n; h++) {
    const pl_trace_clock *c = &clocks->clocks[h];
    char host[PL_PRINTABLE_BYTES];
    pl_printable(trace->names[c->host], host, 25);
    if (h == 0) {
      fprintf(out, "  %-24s %20s\n", host, "reference");
    } else if (!c->is_tied) {
      fprintf(out, "  %-24s %20s  no message ties it to the others: left as it is\n", host, "");
    } else if (c->is_contradicted) {
      fprintf(
          out,
          "  %-24s %20s  its messages contradict each other (a drift of %.0f ppm would be needed; clocks drift by 100 "
          "at most):\n  %-24s %20s  left as recorded. Were events left out of a rank's trace?\n",
          host, "", c->contradiction_ns_per_s / 1e3, "", "");
    } else {
      int64_t fine = llrint(c->more_ns);
      int64_t whole = c->offset_ns + fine;
      fprintf(out, "  %-24s %s%" PRId64 ".%03d %12.3f %12.3f %12.3f %8u\n", host,
              whole < 0 ? "           -" : "            ", (whole < 0 ? -whole : whole) / 1000,
              (int)((whole < 0 ? -whole : whole) % 1000), c->offset_sd_ns / 1e3, c->drift_ns_per_s / 1e3,
              c->drift_sd_ns_per_s / 1e3, c->n_ties);
    }
  }
  if (clocks->n_ends > 0)
    fprintf(out, "  ends of collectives agree within %.3f us (robust standard deviation of %u)\n",
            clocks->end_residual_ns / 1e3, clocks->n_ends);
  if (clocks->n_transfers > 0)
    fprintf(out, "  transfers of one size between two hosts agree within %.3f us (of %u)\n",
            clocks->transfer_residual_ns / 1e3, clocks->n_transfers);
  if (clocks->n_constraints > 0)
    fprintf(out, "  %u of %u messages arrive before they were sent", clocks->n_violated, clocks->n_constraints);
  if (clocks->n_violated > 0) fprintf(out, ", by %.3f us at most", clocks->worst_violation_ns / 1e3);
  if (clocks->n_constraints > 0) fputc('\n', out);
}

static void put_json(FILE *out, const pl_trace *trace, const pl_trace_meetings *m, const pl_trace_clocks *clocks,
                     const pl_trace_step_list *steps, const pl_trace_op_times *times, uint32_t n, uint32_t most) {
  pl_json json;
  pl_json_init(&json, out, true);
  pl_json_open_object(&json);
  pl_json_put_integer(&json, "ranks", trace->n_ranks);
  pl_json_put_integer(&json, "ops", trace->n_ops);
  pl_json_put_integer(&json, "collectives", m->n_collectives);
  pl_json_put_integer(&json, "transfers", m->n_transfers);
  pl_json_put_integer(&json, "unmatched_collectives", m->n_unmatched_collectives);
  pl_json_put_integer(&json, "unmatched_transfers", m->n_unmatched_transfers);
  pl_json_put_integer(&json, "with_absent_members", m->n_absent);
  pl_json_key(&json, "steps_s");
  pl_json_open_array(&json);
  for (uint32_t s = 0; s < steps->n; s++)
    pl_json_number(&json, (double)(steps->steps[s].end_ns - steps->steps[s].start_ns) * 1e-9);
  pl_json_close_array(&json);
  pl_json_key(&json, "clocks");
  pl_json_open_array(&json);
  for (uint32_t h = 0; h < clocks->n; h++) {
    const pl_trace_clock *c = &clocks->clocks[h];
    pl_json_open_object(&json);
    pl_json_put_string(&json, "host", trace->names[c->host]);
    pl_json_put_boolean(&json, "tied", c->is_tied);
    pl_json_put_boolean(&json, "contradicted", c->is_contradicted);
    pl_json_put_number(&json, "offset_ns", (double)c->offset_ns + c->more_ns);
    pl_json_put_number(&json, "offset_sd_ns", c->offset_sd_ns);
    pl_json_put_number(&json, "drift_ppm", c->drift_ns_per_s / 1e3);
    pl_json_put_number(&json, "drift_sd_ppm", c->drift_sd_ns_per_s / 1e3);
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_put_integer(&json, "clocks_middle_ns", clocks->middle_ns); /* drifts act around it */
  pl_json_put_number(&json, "end_residual_ns", clocks->end_residual_ns);
  pl_json_put_number(&json, "transfer_residual_ns", clocks->transfer_residual_ns);
  pl_json_put_integer(&json, "violated", clocks->n_violated);
  if (most > 0) put_ops_json(&json, trace, times, n, most);
  pl_json_key(&json, "notes");
  pl_json_open_array(&json);
  for (uint32_t k = 0; k < trace->n_notes; k++)
    pl_json_string(&json, trace->names[trace->notes[k]]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}

static pl_code report(FILE *out, const pl_trace *trace, const pl_trace_meetings *meetings, bool json, uint32_t n_ops,
                      pl_error *error) {
  pl_trace_clocks clocks;
  pl_arena arena;
  const pl_trace_op_times *times = NULL;
  uint32_t n = 0;
  pl_arena_init(&arena, 0);
  pl_trace_step_list steps = {.n = 0};
  pl_code code = pl_trace_clocks_make(trace, meetings, &clocks, error);
  if (code == PL_OK) code = pl_trace_steps_make(trace, &clocks, &steps, error);
  if (code == PL_OK && n_ops > 0) code = pl_trace_op_times_take(trace, &steps, &arena, &times, &n, error);
  if (code == PL_OK && json) {
    put_json(out, trace, meetings, &clocks, &steps, times, n, n_ops);
  } else if (code == PL_OK) {
    put_steps(out, &steps);
    if (n_ops > 0) put_ops(out, trace, &steps, times, n, n_ops);
    put_meetings(out, meetings);
    put_clocks(out, trace, &clocks);
  }
  pl_trace_steps_release(&steps);
  pl_trace_clocks_release(&clocks);
  pl_arena_release(&arena);
  return code;
}

pl_code pl_trace_report_check(FILE *out, const pl_trace *trace, bool json, uint32_t n_ops, pl_error *error) {
  if (!json) put_ranks(out, trace);
  if (!json && trace->n_notes > 0) {
    fputs("\nAssumed or left out when it was imported:\n", out);
    put_notes(out, trace);
  }
  pl_trace_meetings meetings;
  pl_code code = pl_trace_meetings_make(trace, &meetings, error);
  if (code == PL_OK) code = report(out, trace, &meetings, json, n_ops, error);
  pl_trace_meetings_release(&meetings);
  return code;
}
