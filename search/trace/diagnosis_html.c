/* A diagnosis as a page (see search/trace/diagnosis_report.h). */
#include <math.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/text/xml_text.h"
#include "search/trace/diagnosis_report.h"

static const char page_style[] =
    ":root{color-scheme:light dark}body{font:14px/1.45 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "max-width:1200px;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}table{border-collapse:collapse;margin:.5em "
    "0 "
    "1.5em}th,td{padding:.2em .7em;border-bottom:1px solid #8c959f55;text-align:right}td{white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left;white-space:normal}th{overflow-wrap:normal}"
    ".wide{overflow-x:auto}.bar{display:flex;width:100%;min-width:10em;max-width:520px;height:14px}td .bar{width:24em}"
    ".bar i{display:block;height:100%}"
    ".c0{background:#0969da}.c1{background:#d4580a}.c2{background:#bf3989}.c3{background:#8250df}.c4{background:#"
    "1a7f37}"
    ".c5{background:#8c959f}.c6{background:#d0d7de}.c7{background:#57606a}.note{color:#6e7781}.note span{white-space:"
    "nowrap}@media(max-width:600px){body{margin:1em auto}th,td{padding:.2em .4em}td .bar{width:10em}}";

static double percent(pl_ticks part, pl_ticks whole) {
  return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* What a name holds beside printable characters is escaped before markup is. */
static void put_text(FILE *stream, const char *text) {
  char shown[512];
  pl_xml_text(stream, pl_printable(text, shown, sizeof shown));
}

static void put_bar(FILE *stream, const pl_ticks *parts, int n, pl_ticks whole, const char *const *names) {
  fputs("<div class=\"bar\">", stream);
  for (int k = 0; k < n; k++)
    if (parts[k] > 0)
      fprintf(stream, "<i class=\"c%d\" style=\"width:%.2f%%\" title=\"%s %.1f %%\"></i>", k, percent(parts[k], whole),
              names[k], percent(parts[k], whole));
  fputs("</div>", stream);
}

static void put_legend(FILE *stream, int n, const char *const *names) {
  fputs("<p class=\"note\">", stream);
  for (int k = 0; k < n; k++)
    fprintf(stream, "<span><b class=\"c%d\">&#160;&#160;</b> %s</span> ", k, names[k]);
  fputs("</p>\n", stream);
}

static void put_path(FILE *stream, const pl_diagnosis_report *report) {
  enum { MOST = 20 };
  char text[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  fprintf(stream, "<h2>Critical path</h2>\n<p>%u tasks over all ranks, together as long as the step.</p>\n", d->n_path);
  put_legend(stream, PL_TRACE_SHARE_COUNT, pl_trace_share_names);
  put_bar(stream, d->share, PL_TRACE_SHARE_COUNT, d->makespan, pl_trace_share_names);
  fputs("<table><tr><th>op</th><th>times</th><th>on the path</th><th>% of the step</th></tr>\n", stream);
  for (uint32_t k = 0; k < d->n_names && k < MOST; k++) {
    fputs("<tr><td>", stream);
    put_text(stream, report->session->trace.names[d->names[k].name]);
    fprintf(stream, "</td><td>%u</td><td>%s</td><td>%.1f</td></tr>\n", d->names[k].n,
            pl_format_time(pl_ticks_to_s(d->names[k].ticks), text), percent(d->names[k].ticks, d->makespan));
  }
  fputs("</table>\n", stream);
}

static void put_ranks(FILE *stream, const pl_diagnosis_report *report) {
  char text[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  const pl_trace *trace = &report->session->trace;
  fputs("<h2>Ranks</h2>\n", stream);
  put_legend(stream, PL_TRACE_STATE_COUNT, pl_trace_state_names);
  fputs("<div class=\"wide\"><table><tr><th>rank</th><th>its time</th><th>computes %</th><th>exposed communication "
        "%</th><th>on the "
        "critical path %</th><th>waits most for</th><th>step if it were like the median</th></tr>\n",
        stream);
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank_times *t = &d->ranks[r];
    fprintf(stream, "<tr><td>%lld</td><td>", (long long)trace->ranks[r].number);
    put_bar(stream, t->ticks, PL_TRACE_STATE_COUNT, d->makespan, pl_trace_state_names);
    fprintf(stream, "</td><td>%.1f</td><td>%.1f</td><td>%.1f</td><td>",
            percent(t->ticks[PL_TRACE_COMPUTES], d->makespan), percent(t->ticks[PL_TRACE_EXPOSED], d->makespan),
            percent(t->on_path, d->makespan));
    if (t->waited_for != PL_NONE)
      fprintf(stream, "rank %lld (%s)", (long long)trace->ranks[t->waited_for].number,
              pl_format_time(pl_ticks_to_s(t->waited), text));
    fputs("</td><td>", stream);
    if (d->balanced != PL_TICKS_NEVER)
      fprintf(stream, "%s (%+.2f %%)", pl_format_time(pl_ticks_to_s(t->without), text),
              100 * ((double)t->without / (double)d->makespan - 1));
    fputs("</td></tr>\n", stream);
  }
  fputs("</table></div>\n", stream);
  if (d->balanced == PL_TICKS_NEVER) return;
  fprintf(stream, "<p class=\"note\">With all ranks like the median the step would take %s (%+.2f %%).%s</p>\n",
          pl_format_time(pl_ticks_to_s(d->balanced), text), 100 * ((double)d->balanced / (double)d->makespan - 1),
          d->are_alike ? ""
                       : " The ranks do not all do the same: ops are compared by name and order where ranks have as "
                         "many of them.");
}

static void put_changes(FILE *stream, const pl_diagnosis_report *report) {
  enum { MOST = 10 };
  char text[PL_UNIT_TEXT_BYTES];
  const pl_trace_diagnosis *d = report->diagnosis;
  fprintf(stream,
          "<h2>Changes that would pay most</h2>\n<p class=\"note\">%u replays of the whole step.</p>\n<table><tr><th>"
          "change</th><th>step</th><th>%%</th></tr>\n",
          d->n_replays);
  for (uint32_t k = 0; k < d->n_changes && k < MOST; k++) {
    fputs("<tr><td>", stream);
    put_text(stream, d->changes[k].what);
    fprintf(stream, "</td><td>%s</td><td>%+.2f</td></tr>\n",
            pl_format_time(pl_ticks_to_s(d->changes[k].makespan), text),
            100 * ((double)d->changes[k].makespan / (double)d->makespan - 1));
  }
  fputs("</table>\n", stream);
  if (report->diagnosis->are_served)
    fputs("<p class=\"note\">Links serve the message that is ready first, as they did in the recording.</p>\n", stream);
}

static void put_clocks(FILE *stream, const pl_diagnosis_report *report) {
  const pl_trace_clocks *clocks = &report->session->clocks;
  if (clocks->n < 2) return;
  fputs("<h2>Clocks</h2>\n<div class=\"wide\"><table><tr><th>host</th><th>offset us</th><th>+- us</th><th>drift "
        "ppm</th><th>+- ppm</th>"
        "</tr>\n",
        stream);
  for (uint32_t h = 1; h < clocks->n; h++) {
    const pl_trace_clock *c = &clocks->clocks[h];
    fputs("<tr><td>", stream);
    put_text(stream, report->session->trace.names[c->host]);
    if (c->is_contradicted) {
      fputs("</td><td colspan=\"4\">left as recorded: its messages contradict each other</td></tr>\n", stream);
      continue;
    }
    fprintf(stream, "</td><td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td></tr>\n",
            ((double)c->offset_ns + c->more_ns) / 1e3, c->offset_sd_ns / 1e3, c->drift_ns_per_s / 1e3,
            c->drift_sd_ns_per_s / 1e3);
  }
  fprintf(
      stream,
      "</table></div>\n<p class=\"note\">Against the first host; %u of %u messages arrive before they were sent.</p>\n",
      clocks->n_violated, clocks->n_constraints);
}

static void put_notes(FILE *stream, const pl_diagnosis_report *report) {
  const pl_trace *trace = &report->session->trace;
  if (trace->n_notes == 0) return;
  fputs("<h2>Assumed or left out</h2>\n<ul>\n", stream);
  for (uint32_t k = 0; k < trace->n_notes; k++) {
    fputs("<li>", stream);
    put_text(stream, trace->names[trace->notes[k]]);
    fputs("</li>\n", stream);
  }
  fputs("</ul>\n", stream);
}

void pl_diagnosis_report_html(FILE *stream, const pl_diagnosis_report *report) {
  char measured[PL_UNIT_TEXT_BYTES], replayed[PL_UNIT_TEXT_BYTES];
  double measured_s = pl_ticks_to_s(pl_trace_replay_measured(report->replay));
  double replayed_s = pl_ticks_to_s(report->diagnosis->makespan);
  fprintf(stream,
          "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
          "<title>Diagnosis</title><style>%s</style></head><body>\n<h1>Step %lld of ",
          page_style, (long long)report->replay->span.number);
  put_text(stream, report->path);
  fprintf(stream, "</h1>\n<p>Measured %s, replayed %s (%+.2f %%): %u ops on %u ranks.</p>\n",
          pl_format_time(measured_s, measured), pl_format_time(replayed_s, replayed),
          100 * (replayed_s / measured_s - 1), report->replay->n_ops, report->session->trace.n_ranks);
  put_changes(stream, report);
  put_path(stream, report);
  put_ranks(stream, report);
  put_clocks(stream, report);
  put_notes(stream, report);
  fputs("</body></html>\n", stream);
}
