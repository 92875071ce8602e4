/* Schedules with backward passes in halves against closed forms.
 *
 * The job is that of tests/support/attention_job.h, with one product for weights that takes time as well: a layer takes
 * f forward, b for inputs, w for weights. p stages of k layers, F = k f, B = k b, W = k w, m microbatches, no sends:
 *
 *   1F1B    m (F + B + W) + (p - 1) (F + B + W)
 *   ZB-H1   m (F + B + W) + (p - 1) max(F + B - W, F, B)              m >= p
 *   ZB-H2   m (F + B + W) + (p - 1) max(F + B - 2 W, F, B - F)        m >= 2 p - 1
 *   ZB-V    2 m (F + B + W) + (p - 1) F, with F = B = W of a chunk    m >= 2 p - 1
 *
 * Qi et al. 2023, section 3, has (p - 1) (F + B - W) and (p - 1) (F + B - 2 W) as what the stage with the longest
 * bubble waits. ZB-H1: the last stage begins after (p - 1) F and never waits. Before its last B it has run m forwards,
 * m - 1 Bs and, as its Ws stay p - 1 behind, m - p Ws, so that B ends at (p - 1) F + m (F + B) + (m - p) W. It takes p
 * - 1 Bs more to the first stage, whose last W follows: (p - 1) (F + B) + m (F + B) + (m - p + 1) W = m (F + B + W) +
 * (p - 1) (F + B - W) The last stage itself ends after (p - 1) F and its work. The first one waits for its first B
 * until p F + (p - 1) B and has run p F by then: it ends after (p - 1) B and its work at the earliest. ZB-H2: Ws stay 2
 * (p - 1) behind, so m - 2 p + 1 Ws before the last B; and the first stage runs 2 p - 1 forwards until p F + (p - 1) B.
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
#include "tests/support/model_file.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"
#include "workloads/memory/stage_replay.h"

static const double unit_s = 0x1p-10;

typedef struct weighted_job {
  attention_job job;
  pl_op_entry table[3];
} weighted_job;

/* Times of a layer in units; the product is the second one of the MLP, for weights: [4 h, s] x [s, h]. */
static void build(weighted_job *own, int32_t p, int n_layers, int64_t m, double f, double b, double w) {
  attention_job_build(&own->job, &(attention_shape){.n_layers = n_layers,
                                                    .forward_s = f * unit_s,
                                                    .backward_s = b * unit_s,
                                                    .n_nodes = 1,
                                                    .gpus_per_node = (uint32_t)p,
                                                    .gbs = m});
  memcpy(own->table, own->job.table, sizeof own->job.table);
  own->table[2] = (pl_op_entry){.kind = "gemm",
                                .dtype = PL_DTYPE_FP16,
                                .dims = {1, 4 * ATTENTION_HIDDEN, ATTENTION_HIDDEN, ATTENTION_SEQ},
                                .time_s = w * unit_s};
  own->job.profile.ops = own->table;
  own->job.profile.n_ops = 3;
}

static double larger(double a, double b, double c) {
  return fmax(a, fmax(b, c));
}

static pl_simulate_report simulate(weighted_job *own, int32_t p, const char *schedule) {
  char text[128];
  snprintf(text, sizeof text, "pp=%d,dp=1,tmp=1,mbs=1,schedule=%s", p, schedule);
  return attention_job_simulate(&own->job, text);
}

static void check_times(int32_t p, int32_t m, double f, double b, double w) {
  weighted_job own;
  double k = 16.0 / p * unit_s, F = k * f, B = k * b, W = k * w, work_s = m * (F + B + W);
  build(&own, p, 16, m, f, b, w);
  expect_time("1f1b", simulate(&own, p, "1f1b").row.iter_time_s, work_s + (p - 1) * (F + B + W), 0);
  expect_time("zb-h1", simulate(&own, p, "zb-h1").row.iter_time_s, work_s + (p - 1) * larger(F + B - W, F, B), 0);
  if (m >= 2 * p - 1)
    expect_time("zb-h2", simulate(&own, p, "zb-h2").row.iter_time_s, work_s + (p - 1) * larger(F + B - 2 * W, F, B - F),
                0);
  if (m >= 2 * p - 1 && f == b && b == w)
    expect_time("zb-v", simulate(&own, p, "zb-v").row.iter_time_s, work_s + (p - 1) * F / 2, 0);
  attention_job_release(&own.job);
}

static void bubbles_of_the_paper(void **state) {
  (void)state;
  static const double times[][3] = {{4, 4, 4}, {4, 5, 3}, {4, 8, 2}, {4, 3, 6}, {6, 4, 1}, {2, 8, 6}};
  for (int32_t p = 2; p <= 8; p *= 2)
    for (int32_t m = p; m <= 4 * p; m += p - 1)
      for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        check_times(p, m, times[i][0], times[i][1], times[i][2]);
}

/* With equal halves no stage waits between its first pass and its last: what is left is the way down to it. */
static void zero_bubble_means_no_pause(void **state) {
  (void)state;
  static const char *const schedules[] = {"zb-h2", "zb-v"};
  for (int32_t p = 2; p <= 8; p *= 2)
    for (int i = 0; i < 2; i++) {
      weighted_job own;
      build(&own, p, 16, 4 * p, 1, 1, 1);
      pl_result_row row = simulate(&own, p, schedules[i]).row;
      double F = 16.0 / p * unit_s / (i + 1);
      expect_time(schedules[i], row.bubble_s, (p - 1) * F, 0);
      attention_job_release(&own.job);
    }
}

/* The peaks that are told from the steps are those that the run finds, stage by stage. */
static void peaks_from_the_steps(void **state) {
  (void)state;
  static const char *const schedules[] = {"gpipe", "1f1b",      "interleaved,vpp=2",   "interleaved,vpp=4",
                                          "fifo",  "zb-h1",     "breadth-first,vpp=2", "zb-h2",
                                          "zb-v",  "dualpipe-v"};
  static const char *const recomputes[] = {"none", "selective", "full"};
  static const int64_t batches[] = {8, 12, 40, 44}; /* of 40 and more some rounds are left out */
  for (size_t i = 0; i < 4 * (sizeof schedules / sizeof *schedules); i++)
    for (int r = 0; r < 3; r++) {
      weighted_job own;
      char text[128];
      build(&own, 4, 16, batches[i % 4], 1, 1, 1);
      snprintf(text, sizeof text, "pp=4,dp=1,tmp=1,mbs=1,recompute=%s,schedule=%s", recomputes[r], schedules[i / 4]);
      pl_simulate_report report = attention_job_simulate(&own.job, text);
      pl_strategy strategy;
      pl_program program;
      pl_error error = PL_ERROR_INIT;
      attention_job *job = &own.job;
      assert_int_equal(pl_strategy_parse(text, &job->model, &job->arena, &strategy, &error), PL_OK);
      assert_int_equal(pl_strategy_assign(&strategy, &job->model, &job->job, job->cluster, &job->arena, &error), PL_OK);
      assert_int_equal(pl_program_take(&job->model, &job->job, &strategy, &job->arena, &program, &error), PL_OK);
      for (int32_t stage = 0; stage < 4; stage++) {
        double told = pl_stage_peak_bytes(&program, stage, true), found = report.stages[stage].peak;
        if (told != found)
          fail_msg("%s, %d microbatches, stage %d: %.0f bytes, told %.0f", text, (int)batches[i % 4], stage, found,
                   told);
      }
      attention_job_release(job);
    }
}

/* PyTorch's allocator, played step by step and tensor by tensor, comes to the same peak but for the buffers of sends,
 * which it takes when they come: nothing is let go of twice, or never. */
static void peaks_of_the_replay(void **state) {
  (void)state;
  static const char *const schedules[] = {"gpipe", "fifo", "breadth-first,vpp=2", "1f1b", "zb-h1",
                                          "zb-h2", "zb-v", "dualpipe-v"};
  static const char *const recomputes[] = {"none", "selective", "full", "alternate"};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  const pl_job job = {.gbs = 12, .seq = 1024, .dtype = PL_DTYPE_BF16, .flash = true, .bucket_bytes = 25e6};
  for (size_t i = 0; i < 4 * sizeof schedules / sizeof *schedules; i++) {
    pl_strategy strategy;
    pl_program program;
    pl_error error = PL_ERROR_INIT;
    char text[128];
    snprintf(text, sizeof text, "pp=4,dp=1,tmp=1,mbs=1,assign=uniform,recompute=%s,schedule=%s", recomputes[i % 4],
             schedules[i / 4]);
    if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
        pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error) != PL_OK ||
        pl_program_take(&model, &job, &strategy, &arena, &program, &error) != PL_OK)
      fail_msg("%s: %s", text, error.message);
    for (int32_t stage = 0; stage < 4; stage++) {
      pl_replayed_memory memory;
      if (pl_stage_replay(&program, stage, 0, &arena, &memory, &error) != PL_OK) fail_msg("%s", error.message);
      double told = pl_stage_peak_bytes(&program, stage, true);
      pl_resident_memory resident = pl_resident_memory_of(&program, stage);
      double apart = told - memory.peak;
      if (apart < -0.001 * told || apart > resident.buffers + 0.001 * told)
        fail_msg("%s, stage %d: %.0f bytes, told %.0f with buffers of %.0f", text, stage, memory.peak, told,
                 resident.buffers);
    }
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bubbles_of_the_paper),
                                     cmocka_unit_test(zero_bubble_means_no_pause),
                                     cmocka_unit_test(peaks_from_the_steps), cmocka_unit_test(peaks_of_the_replay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
