/* Rows of one model under one framework have both at one address, however many lie between; rows that differ in a cell
 * that either comes from do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/row_fixture.h"

/* Rows 1 and 6 differ from the first in what is not of the model. */
static pl_cases of_rows(void) {
  static char text[] =
      "id,model,n_layers,hidden,ffn_hidden,n_heads,seq_len,vocab,gpu,n_gpus,framework,precision,tp,pp,dp,mbs,gbs,"
      "step_time_s,tied_embeddings\n"
      "t,GPT-3 1.7B,24,2304,9216,24,2048,51200,A100-80GB,8,Megatron-LM,bf16,1,1,8,1,64,1.0,\n"
      "t,GPT-3 1.7B,24,2304,9216,24,2048,51200,A100-80GB,8,Megatron-LM,bf16,2,1,4,1,64,1.1,\n"
      "t,GPT-3 1.7B,24,2304,9216,24,1024,51200,A100-80GB,8,Megatron-LM,bf16,2,1,4,1,64,1.1,\n"
      "t,GPT-3 1.7B,25,2304,9216,24,2048,51200,A100-80GB,8,Megatron-LM,bf16,2,1,4,1,64,1.1,\n"
      "t,GPT-3 1.7C,24,2304,9216,24,2048,51200,A100-80GB,8,Megatron-LM,bf16,2,1,4,1,64,1.1,\n"
      "t,GPT-3 1.7B,24,2304,9216,24,2048,51200,A100-80GB,8,NeMo,bf16,2,1,4,1,64,1.1,\n"
      "t,GPT-3 1.7B,24,2304,9216,24,2048,51200,A100-80GB,8,Megatron-LM,bf16,4,1,2,1,64,1.2,\n";
  return express_table(text);
}

static void rows_share_what_says_the_same(void **state) {
  (void)state;
  const pl_cases cases = of_rows();
  assert_int_equal(cases.n_cases, 7);
  for (uint32_t i = 0; i < cases.n_cases; i++)
    if (cases.cases[i].reason != NULL) fail_msg("row %u: %s", i, cases.cases[i].reason);
  const pl_case *first = &cases.cases[0];
  for (uint32_t i = 1; i < cases.n_cases; i++) {
    const pl_case *c = &cases.cases[i];
    bool same_model = i == 1 || i == 6;
    assert_int_equal(c->model == first->model, same_model);
    if (same_model) assert_ptr_equal(c->job.framework, first->job.framework);
  }
  assert_ptr_not_equal(cases.cases[5].job.framework, first->job.framework);
}

/* What is shared is what the row has for itself. */
static void what_is_shared_is_the_rows_own(void **state) {
  (void)state;
  const pl_cases cases = of_rows();
  for (uint32_t i = 0; i < cases.n_cases; i++) {
    const pl_case *c = &cases.cases[i];
    assert_string_equal(c->model->name, c->row->model);
    assert_int_equal(c->model->n_layers, c->row->n_layers);
    assert_int_equal(c->model->positions.max_positions, c->row->seq_len);
    assert_string_equal(c->job.framework->name, c->framework.name);
    assert_memory_equal(c->job.framework, &c->framework, sizeof c->framework);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_share_what_says_the_same),
                                     cmocka_unit_test(what_is_shared_is_the_rows_own)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
