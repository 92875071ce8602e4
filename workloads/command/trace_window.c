/* See workloads/command/trace_window.h. */
#include "workloads/command/trace_window.h"

#include <stdio.h>

static pl_code read_window(const char *option, const char *text, int32_t *from, int32_t *to, pl_error *error) {
  int first = 0, last = 0, end = 0;
  bool good = sscanf(text, "%d-%d%n", &first, &last, &end) == 2 && text[end] == '\0';
  if (!good) {
    good = sscanf(text, "%d%n", &first, &end) == 1 && text[end] == '\0';
    last = first;
  }
  if (!good || first < 0 || last < first)
    return pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is neither a microbatch (3) nor a range (0-3)", option, text);
  *from = first;
  *to = last;
  return PL_OK;
}

pl_code pl_trace_windows_read(const char *microbatches, const char *ops, pl_timeline_view *view, pl_error *error) {
  view->is_window = microbatches != NULL;
  view->has_ops_window = ops != NULL;
  if (microbatches != NULL)
    PL_TRY(read_window("--trace-microbatches", microbatches, &view->first_microbatch, &view->last_microbatch, error));
  return ops != NULL ? read_window("--trace-ops", ops, &view->first_ops, &view->last_ops, error) : PL_OK;
}

pl_code pl_trace_window_of(const char *microbatches, const char *trace_path, int32_t n_microbatches,
                           pl_timeline_view *view, pl_error *error) {
  if (microbatches == NULL) return PL_OK;
  if (trace_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: of a timeline; add --trace FILE", microbatches);
  PL_TRY(pl_trace_windows_read(microbatches, NULL, view, error));
  if (view->first_microbatch < n_microbatches) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: there are microbatches 0 to %d", microbatches,
                 n_microbatches - 1);
}
