/* Measured layers against closed forms. The job is that of tests/support/attention_job.h: a layer computes f forward
 * and b backward at tensor degree 1 and one sequence, half of that at degree 2, twice that for two sequences; k layers,
 * m microbatches; c = one all-reduce of a layer alone, of which tensor parallelism has two per pass; measured F.
 *
 *   both passes                      m k (F + B)
 *   forward only                     m k F (1 + b/f)
 *   two sequences, F of one          (m/2) k 2 F (1 + b/f)
 *   degree 2, F of 1                 all that is not computed stays; computed m k (F/f) (f + b)/2
 *   degree 2, F of 2 all-reduces inside, F1 of 1
 *                                    device min(F1/f, (F - 2c)/(f/2)) as above, and no layer below
 *                                    F forward, F (b/2 + 2c)/(f/2 + 2c) backward
 *   ... the group over two nodes     as if only F1 was there
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "workloads/cost/op_profile.h"

static const double f = 0x1p-10, b = 0x1.8p-9, port_Bps = 0x1p30;
enum { LAYERS = 3, SEQUENCES = 4 };

typedef struct measured_job {
  attention_job base;
  pl_op_entry table[6];
  pl_op_profile profile;
} measured_job;

/* Backward first, then by heads, as tables are sorted. */
static void build(measured_job *own, uint32_t n_nodes, uint32_t gpus_per_node) {
  attention_job_build(&own->base, &(attention_shape){.n_layers = LAYERS,
                                                     .forward_s = f,
                                                     .backward_s = b,
                                                     .n_nodes = n_nodes,
                                                     .gpus_per_node = gpus_per_node,
                                                     .port_Bps = port_Bps,
                                                     .nic_Bps = port_Bps,
                                                     .gbs = SEQUENCES});
  for (int i = 0; i < 6; i++) {
    own->table[i] = own->base.table[i / 3];
    own->table[i].dims[0] = ATTENTION_HEADS / 2 << i % 3;
    own->table[i].time_s *= ldexp(0.5, i % 3);
  }
  own->base.profile.ops = own->table;
  own->base.profile.n_ops = 6;
}

static void measure(measured_job *own, const char *rows) {
  char text[1024];
  pl_error error = PL_ERROR_INIT;
  int size = snprintf(text, sizeof text, "device,block,pass,dtype,hidden,seq,tmp,mbs,time_s,collectives\n%s", rows);
  if (pl_op_profile_parse("p.csv", text, (size_t)size, &own->base.arena, &own->profile, &error) != PL_OK)
    fail_msg("%s", error.message);
  own->base.job.op_profile = &own->profile;
}

static const char *row(measured_job *own, const char *pass, int tmp, int mbs, double time_s, const char *collectives) {
  return pl_arena_printf(&own->base.arena, "attention only,layer,%s,fp16,%d,%d,%d,%d,%.17g,%s\n", pass,
                         ATTENTION_HIDDEN, ATTENTION_SEQ, tmp, mbs, time_s, collectives);
}

static double simulate_s(measured_job *own, const char *text) {
  return attention_job_simulate(&own->base, text).row.iter_time_s;
}

static double plain_s(measured_job *own, const char *text) {
  own->base.job.op_profile = NULL;
  double time_s = simulate_s(own, text);
  own->base.job.op_profile = &own->profile;
  return time_s;
}

enum { TICKS = 2 * SEQUENCES * (LAYERS + 6) }; /* the parts are rounded one by one */

static void one_device(void **state) {
  (void)state;
  measured_job own;
  build(&own, 1, 1);
  const double forward_s = 0x1.7p-8, backward_s = 0x1.1p-7;
  const char *one = "pp=1,dp=1,tmp=1,mbs=1", *two = "pp=1,dp=1,tmp=1,mbs=2";
  const char *forward = row(&own, "forward", 1, 1, forward_s, ""), *back = row(&own, "backward", 1, 1, backward_s, "");
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", forward, back));
  expect_time("both passes", simulate_s(&own, one), SEQUENCES * LAYERS * (forward_s + backward_s), TICKS);
  measure(&own, forward);
  double derived_s = SEQUENCES * LAYERS * forward_s * (1 + b / f);
  expect_time("forward only", simulate_s(&own, one), derived_s, TICKS);
  expect_time("two sequences", simulate_s(&own, two), derived_s, TICKS);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", forward, row(&own, "forward", 1, 2, 3 * forward_s, "")));
  expect_time("the nearer measurement", simulate_s(&own, two), 1.5 * derived_s, TICKS);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", row(&own, "forward", 1, 2, 3 * forward_s, ""), forward));
  expect_time("the nearer one, first in the file", simulate_s(&own, two), 1.5 * derived_s, TICKS);
  expect_time("the nearer one, last in the file", simulate_s(&own, one), derived_s, TICKS);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", forward, row(&own, "forward", 1, 1, 3 * forward_s, "none")));
  expect_time("the mean of two", simulate_s(&own, one), 2 * derived_s, TICKS);
  attention_job_release(&own.base);
}

/* A measurement faster than the model makes it faster, too. */
static void faster_than_modelled(void **state) {
  (void)state;
  measured_job own;
  build(&own, 1, 1);
  measure(&own, row(&own, "forward", 1, 1, f / 8, "none"));
  expect_time("faster", simulate_s(&own, "pp=1,dp=1,tmp=1,mbs=1"), SEQUENCES * LAYERS * (f + b) / 8, TICKS);
  attention_job_release(&own.base);
}

static void tensor_group_in_a_node(void **state) {
  (void)state;
  measured_job own;
  build(&own, 1, 2);
  const char *text = "pp=1,dp=1,tmp=2,mbs=1";
  const double whole_s = 4 * f;
  double c = ring_all_reduce_s(2, 2.0 * ATTENTION_SEQ * ATTENTION_HIDDEN, port_Bps);
  double work_s = SEQUENCES * LAYERS * (f + b) / 2;
  measure(&own, row(&own, "forward", 1, 1, whole_s, "none"));
  double split_s = plain_s(&own, text) + 3 * work_s; /* F/f = 4 */
  expect_time("measured at degree 1", simulate_s(&own, text), split_s, TICKS);

  const char *whole = row(&own, "forward", 1, 1, whole_s, "none");
  double late_s = 16 * f, more = (b / 2 + 2 * c) / (f / 2 + 2 * c);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", whole, row(&own, "forward", 2, 1, late_s, "inside")));
  expect_time("a late host", simulate_s(&own, text), SEQUENCES * LAYERS * late_s * (1 + more), TICKS);

  double quick_s = f + 2 * c; /* twice as long as modelled, not four times */
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", whole, row(&own, "forward", 2, 1, quick_s, "inside")));
  expect_time("the least ratio", simulate_s(&own, text), plain_s(&own, text) + work_s, TICKS);

  measure(&own, row(&own, "forward", 2, 1, f, "none"));
  expect_time("without collectives", simulate_s(&own, text), plain_s(&own, text) + work_s, TICKS);
  attention_job_release(&own.base);
}

static void tensor_group_over_nodes(void **state) {
  (void)state;
  measured_job own;
  build(&own, 2, 1);
  const char *text = "pp=1,dp=1,tmp=2,mbs=1";
  double work_s = SEQUENCES * LAYERS * (f + b) / 2;
  const char *inside = row(&own, "forward", 2, 1, 64 * f, "inside");
  measure(&own, inside);
  expect_time("nothing counts", simulate_s(&own, text), plain_s(&own, text), 0);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", inside, row(&own, "forward", 1, 1, 2 * f, "none")));
  expect_time("degree 1 counts", simulate_s(&own, text), plain_s(&own, text) + work_s, TICKS);
  attention_job_release(&own.base);
}

/* Other widths, lengths, types and GPUs are other layers. */
static void others_stay(void **state) {
  (void)state;
  measured_job own;
  build(&own, 1, 1);
  const char *rows[] = {
      "attention only,layer,forward,fp16,512,128,1,1,1,none\n", "attention only,layer,forward,fp16,256,64,1,1,1,none\n",
      "attention only,layer,forward,bf16,256,128,1,1,1,none\n", "another,layer,forward,fp16,256,128,1,1,1,none\n",
      "attention only,layer,forward,fp16,256,128,2,1,1,inside\n"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    measure(&own, rows[i]);
    expect_time(rows[i], simulate_s(&own, "pp=1,dp=1,tmp=1,mbs=1"), SEQUENCES * LAYERS * (f + b), TICKS);
    assert_int_equal(
        i == 4, pl_op_profile_applies(&own.profile, &own.base.model, PL_DTYPE_FP16, ATTENTION_SEQ, own.base.cluster));
  }
  attention_job_release(&own.base);
}

/* Fused or not, folded or not: the same. */
static void the_same_without_shortcuts(void **state) {
  (void)state;
  measured_job own;
  build(&own, 1, 2);
  measure(&own, pl_arena_printf(&own.base.arena, "%s%s", row(&own, "forward", 1, 1, 3 * f, "none"),
                                row(&own, "forward", 2, 1, 2 * f, "inside")));
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  pl_ticks makespan[2];
  for (int plain = 0; plain < 2; plain++) {
    pl_simulate_report report;
    options.fold = options.fuse = !plain;
    assert_int_equal(pl_strategy_parse("pp=1,dp=1,tmp=2,mbs=2", &own.base.model, &own.base.arena, &strategy, &error),
                     PL_OK);
    assert_int_equal(
        pl_strategy_assign(&strategy, &own.base.model, &own.base.job, own.base.cluster, &own.base.arena, &error),
        PL_OK);
    assert_int_equal(pl_simulate(own.base.cluster, &own.base.model, &own.base.job, &strategy, &options, &own.base.arena,
                                 &report, &error),
                     PL_OK);
    makespan[plain] = pl_ticks_from_s(report.row.iter_time_s);
  }
  assert_int_equal(makespan[0], makespan[1]);
  attention_job_release(&own.base);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device),
      cmocka_unit_test(faster_than_modelled),
      cmocka_unit_test(tensor_group_in_a_node),
      cmocka_unit_test(tensor_group_over_nodes),
      cmocka_unit_test(others_stay),
      cmocka_unit_test(the_same_without_shortcuts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
