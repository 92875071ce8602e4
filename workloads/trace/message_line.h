/* What of a message is latency and what goes by its size: a line through the recorded ones of its kind.
 *
 *   time = latency + size * slope
 *
 * by least squares of what it is off in parts of each: a message of a hundred times the size strays a hundred times as
 * far. Where sizes are large and their times vary, the latency that such a line has at size 0 is mostly noise. What is
 * known beforehand then counts: that messages of libraries take some tens of microseconds. A Cauchy distribution of
 * 20 us is the prior, so tails are heavy: a latency that stands out of the noise stays as the line has it, of whatever
 * size, and one that does not is a likely one.
 */
#ifndef PL_WORKLOADS_TRACE_MESSAGE_LINE_H
#define PL_WORKLOADS_TRACE_MESSAGE_LINE_H

#include <stdbool.h>

typedef struct pl_message_sums {
  double n, w, x, y, xx, xy; /* weighted but for n */
} pl_message_sums;

typedef struct pl_message_line {
  double latency_s, slope_s_per_byte;
  double latency_sd_s; /* 0 with less than three messages */
  bool is_line;        /* there were two sizes or more; else all of a message's time counts as moving data */
} pl_message_line;

/* Messages of no time say nothing and are left out. */
void pl_message_sums_add(pl_message_sums *sums, double size_bytes, double time_s);
pl_message_line pl_message_line_fit(const pl_message_sums *sums);

#endif
