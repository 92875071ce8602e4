/* Counts of a row within what a strategy and a job hold (see validation/rows/row.h). */
#include <inttypes.h>

#include "validation/rows/row.h"

static pl_code check_count(const char *name, int64_t value, int64_t most, pl_error *error) {
  if (value <= most) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "count: %s %" PRId64 " is more than %" PRId64, name, value, most);
}

static pl_code check_product(const char *names, const int64_t *degrees, int n, pl_error *error) {
  int64_t product = 1;
  for (int i = 0; i < n; i++)
    if (__builtin_mul_overflow(product, degrees[i] > 0 ? degrees[i] : 1, &product) || product > PL_ROW_RANKS_MAX)
      return pl_fail(error, PL_UNSUPPORTED, "count: %s is more than %d", names, PL_ROW_RANKS_MAX);
  return PL_OK;
}

pl_code pl_row_check_counts(const pl_measured_row *row, const pl_row_habits *habits, pl_error *error) {
  const struct {
    const char *name;
    int64_t value, most;
  } counts[] = {{"tp", row->tp, PL_ROW_RANKS_MAX},
                {"pp", row->pp, PL_ROW_RANKS_MAX},
                {"vpp", row->vpp, PL_ROW_RANKS_MAX},
                {"dp", row->dp, PL_ROW_RANKS_MAX},
                {"cp", row->cp, PL_ROW_RANKS_MAX},
                {"ep", row->ep, PL_ROW_RANKS_MAX},
                {"mbs", row->mbs, PL_ROW_RANKS_MAX},
                {"n_gpus", row->n_gpus, PL_ROW_RANKS_MAX},
                {"gpus_per_node", row->gpus_per_node, PL_ROW_RANKS_MAX},
                {"gbs", row->gbs, INT32_MAX},
                {"seq_len", row->seq_len, INT32_MAX},
                {"zero_stage", row->zero_stage, 3},
                {"sp", row->sp, 1}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    PL_TRY(check_count(counts[i].name, counts[i].value, counts[i].most, error));
  const int64_t ranks[] = {row->tp, row->pp, row->cp, row->dp};
  const int64_t chunks[] = {row->pp, row->vpp > 0 ? row->vpp : habits->vpp};
  PL_TRY(check_product("tp * pp * cp * dp", ranks, 4, error));
  return check_product("pp * vpp", chunks, 2, error);
}
