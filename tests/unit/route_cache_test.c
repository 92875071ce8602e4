/* The route cache under many threads: every thread sees every route right, each pair is resolved once, failures are not
 * kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "netmodel/platform/route_cache.h"

enum { DEVICES = 96, LINKS = 64, THREADS = 8, ROUNDS = 3 };

typedef struct fake {
  _Atomic uint32_t calls, inside;
  uint32_t failing_source; /* PL_NONE: none */
} fake;

static uint32_t links_of(uint32_t source, uint32_t destination) {
  return 1 + (source * 7 + destination * 3) % 5;
}

static uint32_t link_of(uint32_t source, uint32_t destination, uint32_t i) {
  return (source + 5 * destination + 11 * i) % LINKS;
}

static pl_code fake_resolve(void *context, uint32_t source, uint32_t destination, uint32_t *links, uint32_t *n_links,
                            pl_error *error) {
  fake *f = context;
  PL_ASSERT(atomic_fetch_add(&f->inside, 1) == 0); /* SimGrid stands one caller at a time */
  atomic_fetch_add(&f->calls, 1);
  *n_links = links_of(source, destination);
  for (uint32_t i = 0; i < *n_links; i++)
    links[i] = link_of(source, destination, i);
  atomic_fetch_sub(&f->inside, 1);
  return source == f->failing_source ? pl_fail(error, PL_BAD_INPUT, "no route from %u", source) : PL_OK;
}

static void make_links(pl_link links[LINKS]) {
  for (uint32_t i = 0; i < LINKS; i++)
    links[i] = (pl_link){.latency = 1000 + (pl_ticks)i};
}

typedef struct worker {
  pl_route_cache *cache;
  uint32_t number;
  uint32_t wrong;
} worker;

static uint32_t check_route(pl_route_cache *cache, uint32_t source, uint32_t destination) {
  pl_route route;
  if (pl_route_cache_get(cache, source, destination, &route, NULL) != PL_OK) return 1;
  pl_ticks latency = 0;
  uint32_t wrong = route.n_links != links_of(source, destination);
  for (uint32_t i = 0; i < route.n_links; i++) {
    wrong += route.links[i] != link_of(source, destination, i);
    latency += 1000 + (pl_ticks)route.links[i];
  }
  return wrong + (latency != route.latency);
}

/* Each thread goes through all pairs from another start, so that threads miss, hit and grow the table at once. */
static void *work(void *argument) {
  worker *w = argument;
  for (uint32_t round = 0; round < ROUNDS; round++)
    for (uint32_t i = 0; i < DEVICES * DEVICES; i++) {
      uint32_t pair = (i + w->number * 977) % (DEVICES * DEVICES), source = pair / DEVICES,
               destination = pair % DEVICES;
      if (source != destination) w->wrong += check_route(w->cache, source, destination);
    }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  pl_link links[LINKS];
  make_links(links);
  fake f = {.failing_source = PL_NONE};
  pl_route_cache *cache = pl_route_cache_create(fake_resolve, &f, links, DEVICES);
  assert_non_null(cache);
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (uint32_t t = 0; t < THREADS; t++) {
    workers[t] = (worker){.cache = cache, .number = t};
    assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  }
  for (uint32_t t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(workers[t].wrong, 0);
  }
  assert_int_equal(atomic_load(&f.calls), DEVICES * (DEVICES - 1));
  assert_int_equal(pl_route_cache_count(cache), DEVICES * (DEVICES - 1));
  pl_route_cache_destroy(cache);
}

enum { SAME_ROUNDS = 50 };

typedef struct same_worker {
  pl_route_cache *cache;
  pthread_barrier_t *barrier;
  uint32_t wrong;
} same_worker;

static void *ask_for_the_same(void *argument) {
  same_worker *w = argument;
  for (uint32_t round = 0; round < SAME_ROUNDS; round++) {
    pthread_barrier_wait(w->barrier);
    w->wrong += check_route(w->cache, round, round + 1);
  }
  return NULL;
}

static pl_code slow_resolve(void *context, uint32_t source, uint32_t destination, uint32_t *links, uint32_t *n_links,
                            pl_error *error) {
  nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* long enough for the others to queue up */
  return fake_resolve(context, source, destination, links, n_links, error);
}

/* All threads miss the same pair at the same time: one of them resolves it. */
static void test_same_miss(void **state) {
  (void)state;
  pl_link links[LINKS];
  make_links(links);
  fake f = {.failing_source = PL_NONE};
  pl_route_cache *cache = pl_route_cache_create(slow_resolve, &f, links, DEVICES);
  pthread_barrier_t barrier;
  assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
  pthread_t threads[THREADS];
  same_worker workers[THREADS];
  for (uint32_t t = 0; t < THREADS; t++) {
    workers[t] = (same_worker){.cache = cache, .barrier = &barrier};
    assert_int_equal(pthread_create(&threads[t], NULL, ask_for_the_same, &workers[t]), 0);
  }
  for (uint32_t t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(workers[t].wrong, 0);
  }
  pthread_barrier_destroy(&barrier);
  assert_int_equal(atomic_load(&f.calls), SAME_ROUNDS);
  pl_route_cache_destroy(cache);
}

/* What a caller holds must not move when the table grows. */
static void test_routes_stay(void **state) {
  (void)state;
  pl_link links[LINKS];
  make_links(links);
  fake f = {.failing_source = PL_NONE};
  pl_route_cache *cache = pl_route_cache_create(fake_resolve, &f, links, 1 << 20);
  pl_route first, again;
  assert_int_equal(pl_route_cache_get(cache, 1, 2, &first, NULL), PL_OK);
  for (uint32_t i = 0; i < 100000; i++)
    assert_int_equal(check_route(cache, i, i + 1), 0);
  assert_int_equal(pl_route_cache_get(cache, 1, 2, &again, NULL), PL_OK);
  assert_ptr_equal(first.links, again.links);
  assert_int_equal(first.links[0], link_of(1, 2, 0));
  /* 16-byte slots at 1/4 to 1/2 load, twice for the old tables; records of 16 to 36 bytes. */
  assert_true(pl_route_cache_bytes(cache) < 100001 * (2 * 16 * 4 + 40) + (4 << 20));
  pl_route_cache_destroy(cache);
}

/* What is checked is looked for and not kept; what is kept is not looked for. */
static void test_checks_keep_nothing(void **state) {
  (void)state;
  pl_link links[LINKS];
  make_links(links);
  fake f = {.failing_source = 3};
  pl_route_cache *cache = pl_route_cache_create(fake_resolve, &f, links, DEVICES);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_route_cache_check(cache, 1, 2, &error), PL_OK);
  assert_int_equal(pl_route_cache_count(cache), 0);
  assert_int_equal(check_route(cache, 1, 2), 0);
  assert_int_equal(pl_route_cache_check(cache, 1, 2, &error), PL_OK);
  assert_int_equal(atomic_load(&f.calls), 2);
  assert_int_equal(pl_route_cache_check(cache, 3, 4, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "no route from 3");
  pl_route_cache_destroy(cache);
}

static void test_failures_are_not_kept(void **state) {
  (void)state;
  pl_link links[LINKS];
  make_links(links);
  fake f = {.failing_source = 3};
  pl_route_cache *cache = pl_route_cache_create(fake_resolve, &f, links, DEVICES);
  pl_route route;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_route_cache_get(cache, 3, 4, &route, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "no route from 3");
  assert_int_equal(pl_route_cache_count(cache), 0);
  f.failing_source = PL_NONE;
  assert_int_equal(check_route(cache, 3, 4), 0);
  pl_route_cache_destroy(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_same_miss),
      cmocka_unit_test(test_routes_stay),
      cmocka_unit_test(test_checks_keep_nothing),
      cmocka_unit_test(test_failures_are_not_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
