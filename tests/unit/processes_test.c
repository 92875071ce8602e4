/* Tasks on processes (core/system/processes.h): every task is done once, whatever fails is one error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/system/processes.h"

enum { N_TASKS = 100 };

typedef struct record {
  uint32_t done[N_TASKS];
  int processes[N_TASKS];
} record;

static pl_code note(void *context, uint32_t index, pl_error *error) {
  (void)error;
  record *own = context;
  own->done[index]++;
  own->processes[index] = (int)getpid();
  return PL_OK;
}

static void every_task_is_done_once_by_children(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 7; n += 3) {
    record *own = pl_shared_take(sizeof *own);
    pl_error error = PL_ERROR_INIT;
    assert_non_null(own);
    assert_int_equal(pl_processes_run(n, N_TASKS, note, own, &error), PL_OK);
    for (int i = 0; i < N_TASKS; i++)
      assert_true(own->done[i] == 1 && own->processes[i] != (int)getpid());
    pl_shared_release(own, sizeof *own);
  }
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_processes_run(3, 0, note, NULL, &error), PL_OK);
}

static pl_code fail_at(void *context, uint32_t index, pl_error *error) {
  (void)context;
  return index >= 5 ? pl_fail(error, PL_UNSUPPORTED, "task %u", index) : PL_OK;
}

static void a_failure_is_that_of_the_first_task(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 4; n++) {
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_processes_run(n, N_TASKS, fail_at, NULL, &error), PL_UNSUPPORTED);
    assert_string_equal(error.message, "task 5"); /* taken before any later one, and ended with */
  }
}

static pl_code die(void *context, uint32_t index, pl_error *error) {
  (void)context;
  (void)error;
  if (index == 2) raise(SIGKILL);
  return PL_OK;
}

static void a_dead_child_is_an_error(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_processes_run(2, 4, die, NULL, &error), PL_IO);
  assert_string_equal(error.message, "a process of this command ended with signal 9");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_task_is_done_once_by_children),
      cmocka_unit_test(a_failure_is_that_of_the_first_task),
      cmocka_unit_test(a_dead_child_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
