/* The pool of threads without MPI: every candidate once, whole blocks delivered once, by the master alone; a failed
 * delivery stops it. Under ThreadSanitizer with Archer this is the race test of the sweep. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <omp.h>
#include <string.h>
#include <time.h>

#include "search/parallel/work_pool.h"

enum { CANDIDATES = 1000 };

typedef struct run {
  uint32_t next, block_rows, fail_at; /* delivery number that fails; UINT32_MAX = none */
  uint32_t n_deliveries;
  bool exhausted;
  int32_t computed[CANDIDATES]; /* each written by one thread */
  double delivered[CANDIDATES];
} run;

static bool claim(void *context, pl_work_block *block) {
  run *r = context;
  assert_int_equal(omp_get_thread_num(), 0);
  assert_false(r->exhausted);
  if (r->next == CANDIDATES) {
    r->exhausted = true;
    return false;
  }
  uint32_t count = 1 + r->next % r->block_rows; /* uneven blocks */
  if (count > CANDIDATES - r->next) count = CANDIDATES - r->next;
  *block = (pl_work_block){.first = r->next, .count = count};
  r->next += count;
  return true;
}

/* Unequal costs, and every candidate leaves its number in its row through the arena of the thread. */
static void compute(void *context, uint32_t index, pl_worker *worker, pl_result_row *row) {
  run *r = context;
  const struct timespec pause = {.tv_nsec = index % 97 == 0 ? 300000 : 1000};
  nanosleep(&pause, NULL);
  double *value = PL_TAKE(&worker->arena, double, 100);
  value[99] = index * 0.5;
  r->computed[index]++;
  memset(row, 0, sizeof *row);
  row->iter_time_s = value[99];
  row->status = PL_RESULT_DONE;
}

static pl_code deliver(void *context, const pl_work_block *block, const pl_result_row *rows, pl_error *error) {
  run *r = context;
  if (omp_get_thread_num() != 0) return pl_fail(error, PL_IO, "not the master");
  if (r->n_deliveries++ == r->fail_at) return pl_fail(error, PL_IO, "the disk is full");
  for (uint32_t i = 0; i < block->count; i++)
    r->delivered[block->first + i] += rows[i].iter_time_s + 1;
  return PL_OK;
}

static pl_code run_pool(run *r, uint32_t n_threads, pl_error *error) {
  const pl_work_pool pool = {.n_threads = n_threads,
                             .block_rows = r->block_rows,
                             .context = r,
                             .claim = claim,
                             .compute = compute,
                             .deliver = deliver};
  return pl_work_pool_run(&pool, error);
}

static void every_candidate_once(void **state) {
  (void)state;
  for (uint32_t n_threads = 1; n_threads <= 8; n_threads *= 2)
    for (uint32_t block_rows = 1; block_rows <= 64; block_rows *= 8) {
      static const run fresh = {.fail_at = UINT32_MAX};
      run r = fresh;
      r.block_rows = block_rows;
      pl_error error = PL_ERROR_INIT;
      assert_int_equal(run_pool(&r, n_threads, &error), PL_OK);
      for (uint32_t i = 0; i < CANDIDATES; i++) {
        assert_int_equal(r.computed[i], 1);
        assert_true(r.delivered[i] == i * 0.5 + 1);
      }
    }
}

static void a_failed_delivery_stops_it(void **state) {
  (void)state;
  for (uint32_t n_threads = 1; n_threads <= 4; n_threads++) {
    run r = {.block_rows = 8, .fail_at = 5};
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(run_pool(&r, n_threads, &error), PL_IO);
    assert_string_equal(error.message, "the disk is full");
    assert_int_equal(r.n_deliveries, 6);
    assert_true(r.next < CANDIDATES / 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_candidate_once),
      cmocka_unit_test(a_failed_delivery_stops_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
