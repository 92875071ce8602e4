/* What a kernel of a program may be: what a device computes by itself, in programs of level kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/arena.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"

#define HEAD      "mesh dp=2\nmicrobatches 1\n"
#define CLASS     "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n"
#define MAIN(op)  "func @main() {\n  %x = input \"pictures\"() : fp32[b=4/dp, h=8]\n  " op "\n}\n"
#define TYPE      "fp32[b=4/dp, h=8]"
#define TWICE(op) "func @k(%x: " TYPE ") {\n  " op "\n  return %y\n}\n"

static const struct {
  const char *text, *says; /* NULL: in order */
} cases[] = {
    {"plir 1 kernels m\n" HEAD TWICE("%y = relu(%x) : " TYPE) MAIN("%y = kernel @k(%x) : " TYPE) CLASS, NULL},
    {"plir 1 distributed m\n" HEAD TWICE("%y = relu(%x) : " TYPE) MAIN("%y = kernel @k(%x) : " TYPE) CLASS,
     "t:10:8: kernel stands in programs of level kernels only; this one is of level distributed"},
    {"plir 1 kernels m\n" HEAD TWICE("%y = relu(%x) : " TYPE) MAIN("%y = kernel @k \"h.0\"(%x) : " TYPE) CLASS,
     "t:10:8: a kernel is no instance of anything: leave out \"h.0\""},
    {"plir 1 kernels m\n" HEAD TWICE("%y = all_gather(%x) {over=dp, dim=b} : fp32[b=4, h=8]")
         MAIN("%y = kernel @k(%x) : fp32[b=4, h=8]") CLASS,
     "t:10:8: @k is no kernel: it has all_gather, and a kernel is what a device computes by itself"},
    {"plir 1 kernels m\n" HEAD "func @r(%x: " TYPE ") {\n  %y = relu(%x) : " TYPE
     "\n  return %y\n}\n" TWICE("%y = call @r(%x) : " TYPE) MAIN("%y = kernel @k(%x) : " TYPE) CLASS,
     "t:14:8: @k is no kernel: it has call, *"},
    {"plir 1 kernels m\n" HEAD TWICE("%y = relu(%x) : " TYPE) MAIN("%y = kernel @k() : " TYPE) CLASS,
     "t:10:8: @k has 0 operands; it takes 1"},
};

static void each_has_its_place(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_arena arena;
    pl_ir_module module;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    pl_code code = pl_ir_parse("t", cases[i].text, strlen(cases[i].text), &arena, &module, &error);
    if (code == PL_OK) code = pl_ir_check(&module, &error);
    bool as_it_should =
        cases[i].says == NULL ? code == PL_OK : code == PL_BAD_INPUT && fnmatch(cases[i].says, error.message, 0) == 0;
    if (!as_it_should) printf("case %zu says %s\n", i, code == PL_OK ? "nothing" : error.message);
    wrong += !as_it_should;
    pl_arena_release(&arena);
  }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
