/* Which rank is on which device of the cluster (workloads/strategy/strategy.h): the order of ranks, and placements as
 * users write them.
 *
 * A placement maps ranks, not coordinates, so that one written for the ranks of a launcher (torchrun's global ranks,
 * which `order` numbers) can be used as it is. Rejected: a list per stage, which would say the order twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/strategy/strategy.h"

enum { HIGHEST_DEVICE = (1 << 24) - 1 };

/* ---- ranks and devices ---- */

/* Letters of the order say which coordinate counts fastest; replicas are data ranks times context ranks. */
static void take_letter(const pl_strategy *strategy, char letter, uint32_t *stride, pl_rank_strides *strides) {
  uint32_t *own = letter == 'd' ? &strides->data : letter == 'c' ? &strides->context : &strides->tensor;
  int32_t degree = letter == 'd' ? strategy->dp : letter == 'c' ? strides->cp : strategy->tmp;
  if (letter == 'p') {
    own = &strides->stage;
    degree = strategy->pp;
  }
  *own = *stride;
  *stride *= (uint32_t)degree;
}

pl_rank_strides pl_strategy_rank_strides(const pl_strategy *strategy) {
  pl_rank_strides strides = {.cp = pl_strategy_cp(strategy)};
  uint32_t stride = 1;
  bool has_context = strchr(strategy->order, 'c') != NULL;
  for (const char *letter = strategy->order; *letter != '\0'; letter++) {
    take_letter(strategy, *letter, &stride, &strides);
    if (*letter == 't' && !has_context) take_letter(strategy, 'c', &stride, &strides);
  }
  return strides;
}

uint32_t pl_strategy_rank(const pl_strategy *strategy, int32_t stage, int32_t replica, int32_t tensor) {
  const pl_rank_strides strides = pl_strategy_rank_strides(strategy);
  return pl_rank_at(&strides, stage, replica, tensor);
}

uint32_t pl_strategy_device(const pl_strategy *strategy, int32_t stage, int32_t replica, int32_t tensor) {
  return pl_strategy_device_of_rank(strategy, pl_strategy_rank(strategy, stage, replica, tensor));
}

/* ---- reading ---- */

static pl_code read_device(const char *text, int64_t *device, pl_error *error) {
  return pl_parse_integer(text, "strategy: placement", 0, HIGHEST_DEVICE, device, error);
}

/* "12" or "8-11"; a dash at the beginning is a sign, and refused as such. */
static pl_code read_range(char *item, int64_t *first, int64_t *last, pl_error *error) {
  char *dash = item[0] == '\0' ? NULL : strchr(item + 1, '-');
  if (dash != NULL) *dash = '\0';
  PL_TRY(read_device(item, first, error));
  *last = *first;
  return dash == NULL ? PL_OK : read_device(dash + 1, last, error);
}

/* Fills `devices` as far as it has `room`; *n is how many the text names. Takes the text apart. */
static pl_code read_devices(char *text, uint32_t *devices, int64_t room, int64_t *n, pl_error *error) {
  *n = 0;
  for (char *item; (item = strsep(&text, ":")) != NULL;) {
    int64_t first = 0, last = 0;
    PL_TRY(read_range(item, &first, &last, error));
    int64_t step = first <= last ? 1 : -1, n_more = (last - first) * step + 1;
    for (int64_t i = 0; devices != NULL && i < n_more && *n + i < room; i++)
      devices[*n + i] = (uint32_t)(first + i * step);
    *n += n_more;
  }
  return PL_OK;
}

/* Counted first: degrees may promise more ranks than fit in memory. */
pl_code pl_strategy_parse_placement(const char *text, int64_t n, pl_arena *arena, const uint32_t **placement,
                                    pl_error *error) {
  char *copies[2] = {pl_arena_strdup(arena, text), pl_arena_strdup(arena, text)};
  if (arena->failed) return pl_fail_memory(error, "the placement");
  int64_t n_given = 0;
  PL_TRY(read_devices(copies[0], NULL, 0, &n_given, error));
  if (n_given != n)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: placement names %" PRId64 " device%s, but pp * dp * cp * tmp = %" PRId64
                   " ranks need one each (ranges like 0-7:12:8-11, which names 13)",
                   n_given, n_given == 1 ? "" : "s", n);
  uint32_t *devices = PL_TAKE(arena, uint32_t, n);
  if (devices == NULL) return pl_fail_memory(error, "the placement");
  *placement = devices;
  return read_devices(copies[1], devices, n, &n_given, error);
}

/* ---- checks ---- */

static pl_code fail_twice(const pl_strategy *strategy, uint32_t rank, pl_error *error) {
  uint32_t first = 0;
  while (strategy->placement[first] != strategy->placement[rank])
    first++;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: placement gives device %" PRIu32 " to ranks %" PRIu32 " and %" PRIu32
                 "; every device can be named once",
                 strategy->placement[rank], first, rank);
}

static pl_code check_devices(const pl_strategy *strategy, uint32_t n_devices, bool *taken, pl_error *error) {
  for (uint32_t rank = 0; rank < pl_strategy_n_ranks(strategy); rank++) {
    uint32_t device = strategy->placement[rank];
    if (device >= n_devices)
      return pl_fail(error, PL_BAD_INPUT,
                     "strategy: placement gives rank %" PRIu32 " device %" PRIu32
                     ", but the platform's devices are 0 to %" PRIu32,
                     rank, device, n_devices - 1);
    if (taken[device]) return fail_twice(strategy, rank, error);
    taken[device] = true;
  }
  return PL_OK;
}

pl_code pl_strategy_check_placement(const pl_strategy *strategy, uint32_t n_devices, pl_error *error) {
  if (strategy->placement == NULL) return PL_OK;
  pl_arena scratch;
  pl_arena_init(&scratch, 1 << 12);
  bool *taken = PL_TAKE(&scratch, bool, n_devices);
  pl_code code =
      taken == NULL ? pl_fail_memory(error, "the placement") : check_devices(strategy, n_devices, taken, error);
  pl_arena_release(&scratch);
  return code;
}

/* ---- printing ---- */

int pl_strategy_format_placement(const pl_strategy *strategy, char *text, size_t size) {
  if (strategy->placement == NULL) return snprintf(text, size, "%s", "");
  const uint32_t *devices = strategy->placement;
  uint32_t n = pl_strategy_n_ranks(strategy);
  int length = 0;
  for (uint32_t i = 0, last; i < n; i = last + 1) {
    for (last = i; last + 1 < n && devices[last + 1] == devices[last] + 1;)
      last++;
    size_t left;
    char *rest = pl_strategy_rest(text, size, length, &left);
    length += snprintf(rest, left, "%s%" PRIu32, i == 0 ? "" : ":", devices[i]);
    if (last == i) continue;
    rest = pl_strategy_rest(text, size, length, &left);
    length += snprintf(rest, left, "-%" PRIu32, devices[last]);
  }
  return length;
}
