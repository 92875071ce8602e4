/* Numbers with units, as users write them in files and on the command line.
 *
 * Bytes: B, kB MB GB TB (10^3), KiB MiB GiB TiB (2^10). Rates: a byte unit followed by "ps" (25GBps, 600GBps)
 * or bits per second with a lower-case b (100Gbps = 12.5 GB/s). Work: f, kf, Mf, Gf, Tf, Pf (flop/s, as SimGrid
 * writes speeds). Time: s, ms, us, ns, ps. A bare number is in base units. No spaces inside; nothing after the unit.
 * Negative, NaN, infinite and overflowing values are refused. `what` names the quantity in the message, e.g.
 * "--bucket-bytes".
 */
#ifndef PL_CORE_UNITS_H
#define PL_CORE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

pl_code pl_parse_bytes(const char *text, const char *what, double *size_bytes, pl_error *error);
pl_code pl_parse_rate(const char *text, const char *what, double *rate_Bps, pl_error *error);
pl_code pl_parse_flops(const char *text, const char *what, double *speed_flops, pl_error *error);
pl_code pl_parse_power(const char *text, const char *what, double *power_W,
                       pl_error *error); /* "500W"; needs its unit */
pl_code pl_parse_time(const char *text, const char *what, double *time_s, pl_error *error);
/* A plain integer in [lowest, highest]. */
pl_code pl_parse_integer(const char *text, const char *what, int64_t lowest, int64_t highest, int64_t *value,
                         pl_error *error);
pl_code pl_parse_number(const char *text, const char *what, double *value, pl_error *error);

enum { PL_UNIT_TEXT_BYTES = 32 };
/* Three significant digits and the largest unit that keeps the figure >= 1: "24.6 GiB", "25 GB/s", "1.53 s". */
const char *pl_format_bytes(double size_bytes, char text[PL_UNIT_TEXT_BYTES]);
const char *pl_format_flops(double flops, char text[PL_UNIT_TEXT_BYTES]); /* "1.53 T" */
const char *pl_format_rate(double rate_Bps, char text[PL_UNIT_TEXT_BYTES]);
const char *pl_format_time(double time_s, char text[PL_UNIT_TEXT_BYTES]);
/* Four significant digits and never an exponent: "25190", "67.99", "1760000". */
const char *pl_format_figure(double value, char text[PL_UNIT_TEXT_BYTES]);
/* The shortest of %.15g, %.16g and %.17g that gives the same double when it is read back. */
const char *pl_format_exact(double value, char text[PL_UNIT_TEXT_BYTES]);

#endif
