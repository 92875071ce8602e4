/* Op profiles: what is read, what counts once, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/cost/op_profile.h"

#define HEADER "device,block,pass,dtype,hidden,seq,time_s"

static pl_code read(const char *text, pl_op_profile *profile, pl_error *error) {
  return pl_op_profile_parse("p.csv", text, strlen(text), &arena, profile, error);
}

static void refuse(const char *text, const char *words) {
  pl_op_profile profile;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(read(text, &profile, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL) fail_msg("'%s' is not in '%s'", words, error.message);
  assert_int_equal(profile.n_times, 0);
}

static void test_rows(void **state) {
  (void)state;
  pl_op_profile profile;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(read("device,block,pass,dtype,hidden,seq,time_s,tmp,mbs,collectives,vocab,source\n"
                        "T4,layer,forward,fp16,1024,512,0.004,,,,,a\n"
                        "T4,layer,forward,fp16,1024,512,0.006,1,1,none,,b\n"
                        "T4,head,backward,bf16,1024,512,1e-3,2,4,inside,50257,c\n"
                        "T4,layer,forward,fp16,1024,512,0.008,,,,,d\n",
                        &profile, &error),
                   PL_OK);
  assert_int_equal(profile.n_times, 2);
  const pl_pass_time *layer = &profile.times[0], *head = &profile.times[1];
  assert_string_equal(layer->device, "T4");
  assert_true(layer->block == PL_BLOCK_LAYER && layer->dtype == PL_DTYPE_FP16 && !layer->backward);
  assert_true(layer->tmp == 1 && layer->mbs == 1 && layer->hidden == 1024 && layer->seq == 512 && layer->vocab == 0);
  assert_true(layer->n_rows == 3 && fabs(layer->time_s - 0.006) < 1e-15 && !layer->has_collectives);
  assert_true(head->block == PL_BLOCK_HEAD && head->backward && head->has_collectives && head->vocab == 50257);
  assert_true(head->tmp == 2 && head->mbs == 4 && head->n_rows == 1 && head->time_s == 1e-3);
}

static void test_refused(void **state) {
  (void)state;
  refuse("", "p.csv");
  refuse(HEADER "\n", "no rows");
  refuse("device,block,pass,dtype,hidden,time_s\nT4,layer,forward,fp16,8,1\n", "column 'seq' is missing");
  refuse(HEADER ",colour\nT4,layer,forward,fp16,8,8,1,red\n", "column 'colour' is unknown; columns of an op profile");
  refuse(HEADER "\n,layer,forward,fp16,8,8,1\n", "p.csv:2: column 'device' is empty");
  refuse(HEADER "\nT4,identity,forward,fp16,8,8,1\n", "column 'block': 'identity' is unknown; choose one of embedding");
  refuse(HEADER "\nT4,layer,sideways,fp16,8,8,1\n", "'sideways' is neither forward nor backward");
  refuse(HEADER "\nT4,layer,forward,fp12,8,8,1\n", "'fp12' is unknown");
  refuse(HEADER "\nT4,layer,forward,fp16,,8,1\n", "column 'hidden' is empty");
  refuse(HEADER "\nT4,layer,forward,fp16,0,8,1\n", "column 'hidden': 0 is no whole number");
  refuse(HEADER "\nT4,layer,forward,fp16,8,8.5,1\n", "column 'seq': 8.5 is no whole number");
  refuse(HEADER "\nT4,layer,forward,fp16,8,8,0\n", "p.csv:2: column 'time_s': '0' is no time");
  refuse(HEADER "\nT4,layer,forward,fp16,8,8,\n", "column 'time_s': '' is no time");
  refuse(HEADER "\nT4,layer,forward,fp16,8,8,1\nT4,layer,forward,fp16,8,8,soon\n", "p.csv:3: column 'time_s'");
  refuse(HEADER ",collectives\nT4,layer,forward,fp16,8,8,1,some\n", "'some' is neither inside nor none");
  refuse(HEADER ",tmp\nT4,layer,forward,fp16,8,8,1,-2\n", "column 'tmp'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_rows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
