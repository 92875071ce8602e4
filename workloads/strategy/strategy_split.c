/* Replicas with different numbers of microbatches (workloads/strategy/strategy.h).
 *
 * A data-parallel group over unlike devices waits for its slowest member, unless that one has less to do. Every replica
 * still uses one size of microbatch, so that op shapes, and with them the blocks of a program, are the same for all;
 * rejected: different microbatch sizes, which would make a program of its own for each and other rounding in training.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/strategy/strategy.h"

enum { MOST_MICROBATCHES = 1 << 24 };

/* ---- reading ---- */

static pl_code read_number(const char *text, int64_t *number, pl_error *error) {
  return pl_parse_integer(text, "strategy: split", 1, MOST_MICROBATCHES, number, error);
}

/* "3" or "3x2". */
static pl_code read_run(char *item, int64_t *number, int64_t *times, pl_error *error) {
  char *cross = strchr(item, 'x');
  if (cross != NULL) *cross = '\0';
  *times = 1;
  PL_TRY(read_number(item, number, error));
  return cross == NULL ? PL_OK : read_number(cross + 1, times, error);
}

/* Fills `split` as far as it has `room`; *n is how many the text has. Takes the text apart. */
static pl_code read_runs(char *text, int32_t *split, int64_t room, int64_t *n, pl_error *error) {
  *n = 0;
  for (char *item; (item = strsep(&text, ":")) != NULL;) {
    int64_t number = 0, times = 0;
    PL_TRY(read_run(item, &number, &times, error));
    for (int64_t i = 0; split != NULL && i < times && *n + i < room; i++)
      split[*n + i] = (int32_t)number;
    *n += times;
  }
  return PL_OK;
}

pl_code pl_strategy_parse_split(const char *text, int32_t n, pl_arena *arena, const int32_t **split, pl_error *error) {
  char *copies[2] = {pl_arena_strdup(arena, text), pl_arena_strdup(arena, text)};
  if (arena->failed) return pl_fail_memory(error, "the split");
  int64_t n_given = 0;
  PL_TRY(read_runs(copies[0], NULL, 0, &n_given, error));
  if (n_given != n)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: split has %" PRId64 " number%s of microbatches, but dp=%d replicas need one each",
                   n_given, n_given == 1 ? "" : "s", n);
  int32_t *numbers = PL_TAKE(arena, int32_t, n);
  if (numbers == NULL) return pl_fail_memory(error, "the split");
  *split = numbers;
  return read_runs(copies[1], numbers, n, &n_given, error);
}

/* ---- checks ---- */

static pl_code check_sum(const pl_strategy *strategy, const pl_job *job, pl_error *error) {
  int64_t sum = 0;
  for (int32_t data = 0; data < strategy->dp; data++) {
    if (strategy->split[data] < 1)
      return pl_fail(error, PL_BAD_INPUT, "strategy: split gives replica %d %d microbatches; each needs one or more",
                     data, strategy->split[data]);
    sum += strategy->split[data];
  }
  if (job->gbs % strategy->mbs == 0 && sum == job->gbs / strategy->mbs) return PL_OK; /* the product may overflow */
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: split gives out %" PRId64
                 " microbatches of mbs=%d sequences, which are not the global batch "
                 "of %" PRId64 " sequences",
                 sum, strategy->mbs, job->gbs);
}

static bool is_even(const int32_t *split, int64_t first, int64_t last) {
  for (int64_t data = first + 1; data <= last; data++)
    if (split[data] != split[first]) return false;
  return true;
}

/* Expert groups are neighbours among the dp * cp * tmp ranks of a stage, data ranks outermost; among dp * cp where
 * experts are cut over the tensor ranks. */
static pl_code check_experts(const pl_strategy *strategy, pl_error *error) {
  int64_t per_replica = (int64_t)pl_strategy_cp(strategy) * (pl_strategy_cuts_experts(strategy) ? 1 : strategy->tmp);
  int64_t ep = pl_strategy_ep(strategy);
  if (ep == 1) return PL_OK;
  for (int64_t first = 0; first < strategy->dp * per_replica; first += ep) {
    int64_t last = (first + ep - 1) / per_replica;
    if (last < strategy->dp && is_even(strategy->split, first / per_replica, last)) continue;
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: ep=%d joins replicas %" PRId64 " and %" PRId64 ", to which split gives different numbers "
                   "of microbatches: their all-to-alls would not meet",
                   strategy->ep, first / per_replica, last);
  }
  return PL_OK;
}

pl_code pl_strategy_check_split(const pl_strategy *strategy, const pl_job *job, pl_error *error) {
  PL_TRY(check_sum(strategy, job, error));
  if (is_even(strategy->split, 0, strategy->dp - 1)) return PL_OK;
  if (strategy->zero >= 2)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: zero=%d reduces gradients once per microbatch over all replicas and cannot be combined "
                   "with an uneven split; use zero=1",
                   strategy->zero);
  return check_experts(strategy, error);
}

/* ---- printing ---- */

int pl_strategy_format_split(const pl_strategy *strategy, char *text, size_t size) {
  if (strategy->split == NULL) return snprintf(text, size, "%s", "");
  const int32_t *split = strategy->split;
  int length = 0;
  for (int32_t i = 0, times; i < strategy->dp; i += times) {
    for (times = 1; i + times < strategy->dp && split[i + times] == split[i];)
      times++;
    size_t left;
    char *rest = pl_strategy_rest(text, size, length, &left);
    length += times == 1 ? snprintf(rest, left, "%s%d", i == 0 ? "" : ":", split[i])
                         : snprintf(rest, left, "%s%dx%d", i == 0 ? "" : ":", split[i], times);
  }
  return length;
}
