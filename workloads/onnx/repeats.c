/* See workloads/onnx/repeats.h. */
#include "workloads/onnx/repeats.h"

typedef struct search {
  const uint64_t *signs;
  const double *before; /* weight of the signs in front of each */
  pl_repeat *found;
  int32_t n_found, n_repeats;
} search;

static double weight_of(const search *own, int32_t first, int32_t n) {
  return own->before[first + n] - own->before[first];
}

/* Of a run of signs that are equal to those `period` on: as many whole periods as there are, the last of them at its
 * end.
 */
static void consider(const search *own, int32_t first, int32_t length, int32_t period, pl_repeat *best, double *most) {
  int32_t count = length / period + 1;
  if (length < period) return;
  int32_t from = first + length + period - count * period;
  double weight = weight_of(own, from, count * period);
  if (weight_of(own, from, period) <= 0 || weight <= *most) return;
  *most = weight;
  *best = (pl_repeat){from, period, count};
}

static bool find_best(const search *own, int32_t first, int32_t n, pl_repeat *best) {
  double most = 0;
  for (int32_t period = 1; period <= n / 2 && period <= PL_REPEAT_PERIOD_MAX; period++) {
    int32_t length = 0;
    for (int32_t i = first; i + period < first + n; i++) {
      if (own->signs[i] == own->signs[i + period]) {
        length++;
        continue;
      }
      consider(own, i - length, length, period, best, &most);
      length = 0;
    }
    consider(own, first + n - period - length, length, period, best, &most);
  }
  return most > 0;
}

static void put(search *own, int32_t first, int32_t period, int32_t count) {
  if (period > 0) own->found[own->n_found++] = (pl_repeat){first, period, count};
}

static void split(search *own, int32_t first, int32_t n) {
  pl_repeat best = {0};
  if (own->n_repeats == PL_REPEATS_MAX || n < 2 || !find_best(own, first, n, &best)) {
    put(own, first, n, 1);
    return;
  }
  int32_t behind = best.first + best.period * best.count;
  own->n_repeats++;
  split(own, first, best.first - first);
  put(own, best.first, best.period, best.count);
  split(own, behind, first + n - behind);
}

pl_repeat *pl_repeats_take(int32_t n, const uint64_t *signs, const double *weights, pl_arena *arena,
                           int32_t *n_repeats) {
  double *before = PL_TAKE(arena, double, n + 1);
  search own = {.signs = signs, .before = before, .found = PL_TAKE(arena, pl_repeat, 2 * PL_REPEATS_MAX + 2)};
  if (before == NULL || own.found == NULL) return NULL;
  for (int32_t i = 0; i < n; i++)
    before[i + 1] = before[i] + weights[i];
  split(&own, 0, n);
  *n_repeats = own.n_found;
  return own.found;
}
