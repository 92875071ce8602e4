/* Gradients and updated parameters under a framework's switches. The job is that of tests/support/attention_job.h.
 *
 *   bucket_unit layer    a full bucket closes behind a block: as many reductions as blocks with parameters at most
 *   bucket_unit tensor   ... behind a matrix: a layer of 4 matrices has 4; together they are what layers are
 *   bucket all           ZeRO 2 and 3: a block's
 *   bucket_unit parameter   behind the last backward pass, a reduction for every parameter tensor
 *   shard s of n = s c   what ZeRO shards is shared by s neighbours, here a node: forward and backward gathers and the
 *                        scatter take 3 (s - 1)/s S/W of NVLink, and the shares' all-reduce 2 (c - 1)/c S/s/V of a NIC
 *   copies_gathered, keeps_last   how many units are gathered in front of a pass
 *   copies_per_tensor    ZeRO 1: n (1 + number of tensors) launches behind the gather of what was updated
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

enum { LAYERS = 4, RANKS = 4 };

static void build(attention_job *own) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = 0x1p-10,
                                              .backward_s = 0x1p-9,
                                              .n_nodes = 1,
                                              .gpus_per_node = RANKS,
                                              .gbs = RANKS});
}

typedef struct reductions {
  uint32_t n;
  double bytes, least_bytes; /* least: of all but the last */
} reductions;

static reductions reductions_in(const pl_program *program, const pl_pass *pass) {
  const pl_family *family = &program->families[program->family_of[0][PL_FAMILY_DATA]];
  reductions found = {.least_bytes = INFINITY};
  double last = INFINITY;
  for (uint32_t i = 0; i < pass->n; i++) {
    if (pass->instructions[i].kind != PL_INSTRUCTION_REDUCE) continue;
    found.least_bytes = fmin(found.least_bytes, last);
    last = family->ops[pass->instructions[i].op].size_bytes;
    found.bytes += last;
    found.n++;
  }
  return found;
}

/* The job's framework is as long there as the program. */
static void make_program(attention_job *own, const pl_framework *framework, const char *text, pl_strategy *strategy,
                         pl_program *program) {
  pl_error error = PL_ERROR_INIT;
  own->job.framework = framework;
  if (pl_strategy_parse(text, &own->model, &own->arena, strategy, &error) != PL_OK ||
      pl_strategy_check(strategy, &own->model, &own->job, RANKS, &error) != PL_OK ||
      pl_strategy_assign(strategy, &own->model, &own->job, own->cluster, &own->arena, &error) != PL_OK ||
      pl_program_take(&own->model, &own->job, strategy, &own->arena, program, &error) != PL_OK)
    fail_msg("%s", error.message);
}

static reductions reductions_under(attention_job *own, pl_bucket_unit unit, double bucket_bytes, const char *text) {
  pl_framework framework = pl_framework_ideal;
  framework.gradients.bucket_unit = unit;
  own->job.bucket_bytes = bucket_bytes;
  pl_strategy strategy;
  pl_program program;
  make_program(own, &framework, text, &strategy, &program);
  const pl_stage_program *stage = &program.stages[0];
  return reductions_in(&program, strategy.overlap ? &stage->last_backward[0] : &stage->epilogue);
}

static reductions reductions_of(attention_job *own, pl_bucket_unit unit, double bucket_bytes, bool overlap) {
  return reductions_under(own, unit, bucket_bytes,
                          overlap ? "pp=1,dp=4,tmp=1,mbs=1" : "pp=1,dp=4,tmp=1,mbs=1,overlap=0");
}

/* Gathers that are asked for in front of the first that is waited for, and from there to the next. */
typedef struct gathers {
  uint32_t first, next;
} gathers;

static gathers gathers_in(const pl_pass *pass) {
  gathers found = {0};
  uint32_t n_awaited = 0;
  for (uint32_t i = 0; i < pass->n; i++) {
    n_awaited += pass->instructions[i].kind == PL_INSTRUCTION_AWAIT;
    if (pass->instructions[i].kind != PL_INSTRUCTION_GATHER) continue;
    found.first += n_awaited == 0;
    found.next += n_awaited == 1;
  }
  return found;
}

/* A unit is gathered when the one before it begins, two in front of a pass; where copies are what gathers of a forward
 * pass wait for (FSDP 2), a unit earlier. The head, which comes first backward, may be there already, and its norm:
 * then the last layer comes in front of it and the one before when it is through. */
static void gathered_ahead(void **state) {
  (void)state;
  attention_job own;
  build(&own);
  const struct {
    bool copies, keeps;
    uint32_t forward, backward; /* in front of the first that is waited for, with the norm, which is no unit */
  } cases[] = {{false, false, 2, 2 + 1}, {true, false, 3, 2 + 1}, {false, true, 2, 2}, {true, true, 3, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_framework framework = pl_framework_ideal;
    framework.gathers.copies_gathered = cases[i].copies;
    framework.gathers.keeps_last = cases[i].keeps;
    pl_strategy strategy;
    pl_program program;
    make_program(&own, &framework, "pp=1,dp=4,tmp=1,mbs=1,zero=3", &strategy, &program);
    const gathers forward = gathers_in(&program.stages[0].forward[0]),
                  backward = gathers_in(&program.stages[0].last_backward[0]);
    assert_int_equal(forward.first, cases[i].forward);
    assert_int_equal(forward.next, 1);
    assert_int_equal(backward.first, cases[i].backward);
  }
  own.job.framework = NULL;
  attention_job_release(&own);
}

/* One bucket of all gradients is one reduction, but where ranks keep a share of them: there it is one per block, and no
 * more is whole at a time than the largest block's. */
static void all_in_one_is_for_whole_gradients(void **state) {
  (void)state;
  attention_job own;
  build(&own);
  double all = attention_job_all_gradient_bytes(&own);
  assert_int_equal(reductions_under(&own, PL_BUCKET_LAYER, HUGE_VAL, "pp=1,dp=4,tmp=1,mbs=1,zero=1").n, 1);
  reductions sharded = reductions_under(&own, PL_BUCKET_LAYER, HUGE_VAL, "pp=1,dp=4,tmp=1,mbs=1,zero=2");
  reductions blocks = reductions_under(&own, PL_BUCKET_LAYER, 1, "pp=1,dp=4,tmp=1,mbs=1,zero=2");
  assert_true(sharded.n == blocks.n && sharded.n >= LAYERS && sharded.bytes == all);
  own.job.framework = &pl_framework_ideal;
  own.job.bucket_bytes = HUGE_VAL;
  int64_t whole = attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2").row.mem_buffers_bytes;
  own.job.bucket_bytes = 1;
  assert_true(whole == attention_job_simulate(&own, "pp=1,dp=4,tmp=1,mbs=1,zero=2").row.mem_buffers_bytes);
  assert_true((double)whole < all / 2);
  attention_job_release(&own);
}

static void buckets_close_behind_tensors(void **state) {
  (void)state;
  attention_job own;
  build(&own);
  double all = attention_job_all_gradient_bytes(&own), h = ATTENTION_HIDDEN;
  reductions layers = reductions_of(&own, PL_BUCKET_LAYER, 1, true);
  reductions tensors = reductions_of(&own, PL_BUCKET_TENSOR, 1, true);
  assert_true(layers.bytes == all && tensors.bytes == all);
  assert_int_equal(tensors.n, layers.n + LAYERS * 3);

  /* a bucket of 8 h^2 is the MLP's last matrix and the first; what is left is open when the next layer begins */
  reductions wide = reductions_of(&own, PL_BUCKET_TENSOR, 2 * 8 * h * h, true);
  assert_true(wide.bytes == all && wide.least_bytes >= 2 * 8 * h * h && wide.n < tensors.n);
  reductions one = reductions_of(&own, PL_BUCKET_TENSOR, HUGE_VAL, true);
  assert_true(one.n == 1 && one.bytes == all);
  attention_job_release(&own);
}

static double time_of(attention_job *own, const pl_framework *framework, const char *text) {
  own->job.framework = framework;
  return attention_job_simulate(own, text).row.iter_time_s;
}

static uint32_t tensors_of(attention_job *own, pl_block_kind kind) {
  pl_block_program block = attention_job_block(own, kind, 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < block.n_tensors; i++)
    n += block.tensors[i].kind == PL_TENSOR_PARAMETER;
  return n;
}

static void updates_are_copied_by_tensor(void **state) {
  (void)state;
  attention_job own;
  build(&own);
  own.profile.launch_overhead_s = 0x1p-16;
  uint32_t n = 0;
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
    if (kind != PL_BLOCK_EXPERT_LAYER)
      n += tensors_of(&own, (pl_block_kind)kind) * (kind == PL_BLOCK_LAYER ? LAYERS : 1);
  pl_framework plain = pl_framework_ideal, copying = pl_framework_ideal;
  copying.gathers.copies_per_tensor = true;
  const char *const zero_1 = "pp=1,dp=4,tmp=1,mbs=1,zero=1", *const zero_0 = "pp=1,dp=4,tmp=1,mbs=1";
  double copies_s = RANKS * (1.0 + n) * own.profile.launch_overhead_s;
  expect_time("copies", time_of(&own, &copying, zero_1), time_of(&own, &plain, zero_1) + copies_s, 4);
  expect_time("without ZeRO", time_of(&own, &copying, zero_0), time_of(&own, &plain, zero_0), 0);
  attention_job_release(&own);
}

/* ---- shard ---- */

enum { NODES = 2, REPLICAS = NODES * RANKS };

static void build_nodes(attention_job *own, double port_Bps, double nic_Bps) {
  attention_job_build(own, &(attention_shape){.n_layers = LAYERS,
                                              .forward_s = 0x1p-10,
                                              .backward_s = 0x1p-9,
                                              .n_nodes = NODES,
                                              .gpus_per_node = RANKS,
                                              .port_Bps = port_Bps,
                                              .nic_Bps = nic_Bps,
                                              .gbs = REPLICAS});
}

static void hybrid_shards_stay_in_a_node(void **state) {
  (void)state;
  const double port_Bps = 4e9, nic_Bps = 1e9, compute_s = LAYERS * (0x1p-10 + 0x1p-9);
  attention_job own;
  build_nodes(&own, port_Bps, nic_Bps);
  pl_framework framework = pl_framework_ideal;
  framework.gathers.gathers_ahead = false;
  double all = attention_job_all_gradient_bytes(&own), inside_s = (RANKS - 1.0) / RANKS * all / port_Bps;
  double across_s = 2 * (NODES - 1.0) / NODES * all / RANKS / nic_Bps;
  expect_time("zero 3", time_of(&own, &framework, "pp=1,dp=8,tmp=1,mbs=1,zero=3,overlap=0,shard=4"),
              compute_s + 3 * inside_s + across_s, 400);
  expect_time("zero 1", time_of(&own, &framework, "pp=1,dp=8,tmp=1,mbs=1,zero=1,overlap=0,shard=4"),
              compute_s + 2 * inside_s + across_s, 400);
  expect_time("all", time_of(&own, &framework, "pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=8"),
              time_of(&own, &framework, "pp=1,dp=8,tmp=1,mbs=1,zero=3"), 0);

  /* overlapped, the copies' all-reduces run beside the next reduce-scatters: at least the slower of both remains */
  own.job.bucket_bytes = 1;
  double beside_s = time_of(&own, &framework, "pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=4");
  assert_true(beside_s < compute_s + 3 * inside_s + across_s && beside_s > LAYERS * 0x1p-10 + inside_s + across_s);
  attention_job_release(&own);
}

static void hybrid_shards_hold_more(void **state) {
  (void)state;
  attention_job own;
  build_nodes(&own, 0, 0);
  double psi = attention_job_all_gradient_bytes(&own) / 2;
  for (int32_t zero = 1; zero < 4; zero++) {
    char text[64];
    snprintf(text, sizeof text, "pp=1,dp=8,tmp=1,mbs=1,zero=%d,shard=4", zero);
    own.job.framework = NULL;
    pl_result_row row = attention_job_simulate(&own, text).row;
    assert_true(row.mem_parameters_bytes == 2 * psi / (zero == 3 ? RANKS : 1));
    assert_true(row.mem_gradients_bytes == 2 * psi / (zero >= 2 ? RANKS : 1));
    assert_true(row.mem_optimizer_bytes == 12 * psi / RANKS);
  }
  attention_job_release(&own);
}

static void check_says(attention_job *own, const char *text, const char *words) {
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_parse(text, &own->model, &own->arena, &strategy, &error), PL_OK);
  assert_int_equal(pl_strategy_check(&strategy, &own->model, &own->job, REPLICAS, &error), PL_BAD_INPUT);
  if (strstr(error.message, words) == NULL) fail_msg("'%s' lacks '%s'", error.message, words);
}

static void shards_that_cannot_be(void **state) {
  (void)state;
  attention_job own;
  build_nodes(&own, 0, 0);
  check_says(&own, "pp=1,dp=8,tmp=1,mbs=1,shard=4", "zero=0 shards nothing");
  check_says(&own, "pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=3", "shard=3 does not divide; it divides the dp * cp = 8 ranks");
  check_says(&own, "pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=16", "does not divide");
  check_says(&own, "pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=1", "shard=1 shards nothing");
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  char text[256];
  pl_code code = pl_strategy_parse("pp=1,dp=8,tmp=1,mbs=1,zero=3,shard=4", &own.model, &own.arena, &strategy, &error);
  assert_int_equal(code, PL_OK);
  assert_true(pl_strategy_format(&strategy, &own.model, text, sizeof text) < (int)sizeof text);
  assert_non_null(strstr(text, ",shard=4,"));
  attention_job_release(&own);
}

static void parameters_are_reduced_by_themselves(void **state) {
  (void)state;
  attention_job own;
  build(&own);
  uint32_t n = 0;
  for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
    if (kind != PL_BLOCK_EXPERT_LAYER)
      n += tensors_of(&own, (pl_block_kind)kind) * (kind == PL_BLOCK_LAYER ? LAYERS : 1);
  double all_bytes = attention_job_all_gradient_bytes(&own);
  reductions apart = reductions_of(&own, PL_BUCKET_PARAMETER, 25e6, false);
  reductions whole = reductions_of(&own, PL_BUCKET_TENSOR, 25e6, false);
  if (apart.n != n) fail_msg("%u reductions, %u parameter tensors", apart.n, n);
  assert_true(whole.n == 1 && fabs(whole.bytes - all_bytes) < 1);
  assert_true(fabs(apart.bytes - whole.bytes) < 1 && apart.least_bytes == 2.0 * ATTENTION_HIDDEN);
  reductions overlapped = reductions_of(&own, PL_BUCKET_PARAMETER, 1, true);
  assert_int_equal(overlapped.n, reductions_of(&own, PL_BUCKET_TENSOR, 1, true).n);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gathered_ahead),
      cmocka_unit_test(buckets_close_behind_tensors),
      cmocka_unit_test(all_in_one_is_for_whole_gradients),
      cmocka_unit_test(updates_are_copied_by_tensor),
      cmocka_unit_test(hybrid_shards_stay_in_a_node),
      cmocka_unit_test(hybrid_shards_hold_more),
      cmocka_unit_test(shards_that_cannot_be),
      cmocka_unit_test(parameters_are_reduced_by_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
