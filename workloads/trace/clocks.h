/* The clocks of a job's hosts, made one.
 *
 * Per host an offset and a drift (dPRO, Hu et al. 2022, section 4.2): aligned = own + offset + drift * (own - middle).
 * Processes of one host share a clock. Looked for is what makes
 *   - the members of a collective that ends for all at once end together,
 *   - transfers of one size between two hosts take the same time, where the sender was last (if messages go one way
 * only, those of one size take the same time on all such pairs), with robust weights (Cauchy), so that what is late for
 * a reason of its own does not pull; under the constraints that no message arrives before it was sent and no collective
 * ends before its last member has come. The paper lets transfers of one direction vary least, which leaves the offset
 * to the constraints alone: here both directions are one family. Drifts of real oscillators stay within some 100 ppm;
 * short recordings say less about them than that does, so it counts as one observation.
 *
 * Where a host's clock would have to drift by more than any oscillator does, what was taken for the same messages are
 * different ones, as in traces from which events were left out. Its dates are then left as recorded (a host that is
 * more than a second off is brought near by the median of its messages).
 */
#ifndef PL_WORKLOADS_TRACE_CLOCKS_H
#define PL_WORKLOADS_TRACE_CLOCKS_H

#include "workloads/trace/meetings.h"
#include "workloads/trace/trace.h"

typedef struct pl_trace_clock {
  uint32_t host;     /* name */
  int64_t offset_ns; /* first estimate; the whole is offset_ns + more_ns */
  double more_ns, drift_ns_per_s;
  double offset_sd_ns, drift_sd_ns_per_s; /* one standard deviation, from the residuals */
  uint32_t n_ties;                        /* observations that tie it to others */
  bool is_tied;                           /* to the reference, the first host; else left as it is */
  bool is_contradicted; /* by its own messages; drift_ns_per_s is then 0, contradiction_ns_per_s what they asked for */
  double contradiction_ns_per_s;
} pl_trace_clock;

typedef struct pl_trace_clocks {
  pl_trace_clock *clocks;
  uint32_t n;
  uint32_t *clock_of_rank;
  int64_t base_ns;                              /* aligned dates count from here */
  int64_t middle_ns;                            /* drift acts around this aligned date */
  double end_residual_ns, transfer_residual_ns; /* standard deviation, robust; NAN: no such observation */
  uint32_t n_ends, n_transfers, n_constraints, n_violated;
  double worst_violation_ns;
} pl_trace_clocks;

/* Arrays are released by pl_trace_clocks_release, also after a failure. O(iterations * (messages + hosts^3)). */
pl_code pl_trace_clocks_make(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks,
                             pl_error *error);
/* The recorded dates as they are, hosts apart by whatever their clocks are. */
pl_code pl_trace_clocks_raw(const pl_trace *trace, pl_trace_clocks *clocks, pl_error *error);
void pl_trace_clocks_release(pl_trace_clocks *clocks);

/* A rank's date on the common clock. */
int64_t pl_trace_clocks_date(const pl_trace *trace, const pl_trace_clocks *clocks, uint32_t rank, int64_t date_ns);

#endif
