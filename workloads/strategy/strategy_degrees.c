/* See workloads/strategy/strategy.h: degrees that a text leaves out. */
#include <inttypes.h>
#include <stdio.h>

#include "workloads/strategy/strategy.h"

pl_code pl_strategy_spread(pl_strategy *strategy, uint32_t n_devices, pl_error *error) {
  if ((strategy->assumed & PL_ASSUMED_DP) == 0) return PL_OK;
  int64_t ranks = (int64_t)strategy->pp * strategy->tmp; /* each is at most 2^24: three of them may overflow */
  if (ranks <= n_devices) ranks *= pl_strategy_cp(strategy);
  if (ranks > n_devices) return PL_OK; /* too many for the devices, which the check says */
  int64_t dp = (int64_t)n_devices / ranks;
  if (n_devices % ranks != 0 && !strategy->idle)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: dp is left out, and pp * cp * tmp = %" PRId64 " does not divide %" PRIu32
                   " devices; with idle=1 %" PRId64 " of them are left over",
                   ranks, n_devices, n_devices - dp * ranks);
  strategy->dp = (int32_t)dp;
  return PL_OK;
}

const char *pl_strategy_assumed(const pl_strategy *strategy, char text[PL_ASSUMED_TEXT_BYTES]) {
  size_t used = 0;
  text[0] = '\0';
  if (strategy->assumed & PL_ASSUMED_PP) used += (size_t)snprintf(text, PL_ASSUMED_TEXT_BYTES, "pp=1");
  if (strategy->assumed & PL_ASSUMED_TMP)
    used += (size_t)snprintf(text + used, PL_ASSUMED_TEXT_BYTES - used, "%stmp=1", used > 0 ? ", " : "");
  if (strategy->assumed & PL_ASSUMED_DP)
    snprintf(text + used, PL_ASSUMED_TEXT_BYTES - used, "%sdp=%d", used > 0 ? ", " : "", strategy->dp);
  return text;
}

void pl_strategy_assumed_print(FILE *stream, int column, const pl_strategy *strategy) {
  char text[PL_ASSUMED_TEXT_BYTES];
  if (strategy->assumed == 0) return;
  fprintf(stream, "%-*s%s: not given\n", column, "assumed", pl_strategy_assumed(strategy, text));
}
