/* Times of programs in closed form: what one device computes is the sum of its kernels; a collective is waited for
 * where it is read, and what does not read it runs beside it; a message is on its way between two lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/synthetic_cluster.h"
#include "workloads/compile/ir_transfers.h"
#include "workloads/cost/op_cost.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/simulate_program.h"

static pl_op product(int64_t m, int64_t n, int64_t k) {
  return (pl_op){.kind = PL_OP_GEMM,
                 .category = PL_CATEGORY_FORWARD,
                 .dtype = PL_DTYPE_FP16,
                 .batch = 1,
                 .m = m,
                 .n = n,
                 .k = k,
                 .flops = 2 * (double)m * (double)n * (double)k,
                 .bytes = 2 * (double)(m * k + k * n + m * n)};
}

static pl_ticks kernel_ticks(const pl_cluster *cluster, pl_op op) {
  return pl_ticks_from_s(pl_op_cost(&cluster->profiles[cluster->devices[0].profile], &op).time_s);
}

static pl_ticks collective_ticks(const pl_cluster *cluster, pl_collective_kind kind, uint32_t n, double bytes) {
  const pl_collective_options options = {0};
  const uint32_t members[] = {0, 1, 2, 3};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_transfers transfers;
  pl_transfer_table table;
  pl_error error = PL_ERROR_INIT;
  uint32_t spec;
  double progress;
  pl_ir_transfers_init(&transfers, cluster, &options, &arena);
  assert_int_equal(pl_ir_transfers_collective(&transfers, kind, members, n, bytes, &spec, &progress, &error), PL_OK);
  assert_int_equal(pl_ir_transfers_table(&transfers, &table, &error), PL_OK);
  pl_ticks ticks = pl_transfer_solo_ticks(&table, spec, progress);
  pl_arena_release(&arena);
  return ticks;
}

static pl_ticks iteration_ticks(const pl_cluster *cluster, const char *text) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module module;
  pl_program_report report;
  pl_error error = PL_ERROR_INIT;
  const pl_simulate_options options = {.network = PL_NETWORK_FLOW, .no_overlap_factor = true};
  if (pl_ir_parse("program", text, strlen(text), &arena, &module, &error) != PL_OK ||
      pl_ir_check(&module, &error) != PL_OK ||
      pl_simulate_program(cluster, &module, NULL, &options, &arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  pl_ticks ticks = pl_ticks_from_s(report.iter_time_s);
  pl_arena_release(&arena);
  return ticks;
}

static const char one_device[] = "plir 1 model \"one\"\n"
                                 "func @main() {\n"
                                 "  %x = input \"x\"() : fp16[b=1024, h=512]\n"
                                 "  %w = param \"w\"() : fp16[h=512, f=256]\n"
                                 "  %u = param \"u\"() : fp16[f=256, h=512]\n"
                                 "  %y = product(%x, %w) {over=h} : fp16[b=1024, f=256]\n"
                                 "  %z = product(%y, %u) {over=f} : fp16[b=1024, h=512]\n"
                                 "  keep \"z\"(%z)\n"
                                 "}\n"
                                 "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

/* T = T(1024 x 512 x 256) + T(1024 x 256 x 512) */
static void kernels_add_up(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){0});
  assert_int_equal(iteration_ticks(cluster, one_device),
                   kernel_ticks(cluster, product(1024, 256, 512)) + kernel_ticks(cluster, product(1024, 512, 256)));
  synthetic_cluster_release(cluster);
}

#define REDUCED(order)                                                                                                 \
  "plir 1 distributed \"reduced\"\nmesh tp=4\n"                                                                        \
  "func @main() {\n"                                                                                                   \
  "  %x = input \"x\"() : fp16[b=1024, h=512/tp]\n"                                                                    \
  "  %w = param \"w\"() : fp16[h=512/tp, f=256]\n"                                                                     \
  "  %v = param \"v\"() : fp16[f=256, o=64]\n"                                                                         \
  "  %other = input \"other\"() : fp16[c=2048, f=256]\n"                                                               \
  "  %part = product(%x, %w) {over=h} : fp16[b=1024, f=256] partial(tp)\n"                                             \
  "  %y = all_reduce(%part) {over=tp} : fp16[b=1024, f=256]\n" order "  keep \"z\"(%z)\n  keep \"beside\"(%beside)\n"  \
  "}\n"                                                                                                                \
  "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n"
#define READ   "  %z = product(%y, %v) {over=f} : fp16[b=1024, o=64]\n"
#define BESIDE "  %beside = product(%other, %v) {over=f} : fp16[c=2048, o=64]\n"

/* With A the first product, R the all-reduce, Z its reader and B what does not read it: Z first: A + R + Z + B;
 * B first: A + max(R, B) + Z. */
static void a_collective_is_waited_for_where_it_is_read(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1, .gpus_per_node = 4});
  pl_ticks a = kernel_ticks(cluster, product(1024, 256, 128)), z = kernel_ticks(cluster, product(1024, 64, 256));
  pl_ticks b = kernel_ticks(cluster, product(2048, 64, 256));
  pl_ticks r = collective_ticks(cluster, PL_ALL_REDUCE, 4, 2.0 * 1024 * 256);
  assert_int_equal(iteration_ticks(cluster, REDUCED(READ BESIDE)), a + r + z + b);
  assert_int_equal(iteration_ticks(cluster, REDUCED(BESIDE READ)), a + (r > b ? r : b) + z);
  synthetic_cluster_release(cluster);
}

static const char two_stages[] = "plir 1 distributed \"two\"\nmesh pp=2\nmicrobatches 2\n"
                                 "func @first() {\n"
                                 "  %x = input \"x\"() : fp16[b=1024, h=512]\n"
                                 "  %w = param \"w\"() : fp16[h=512, f=256]\n"
                                 "  %y = product(%x, %w) {over=h} : fp16[b=1024, f=256]\n"
                                 "  send(%y) {to=stage1, tag=\"y\"}\n"
                                 "}\n"
                                 "func @second() {\n"
                                 "  %y = receive() {from=stage0, tag=\"y\"} : fp16[b=1024, f=256]\n"
                                 "  %u = param \"u\"() : fp16[f=256, h=4096]\n"
                                 "  %z = product(%y, %u) {over=f} : fp16[b=1024, h=4096]\n"
                                 "  keep \"z\"(%z)\n"
                                 "}\n"
                                 "class stage0 at pp=0 {\n  chunk 0 forward @first\n  steps F0.0 F0.1\n}\n"
                                 "class stage1 at pp=1 {\n  chunk 1 forward @second\n  steps F1.0 F1.1\n}\n";

/* With A the first stage's work, S the message and B the second's, the longest of them: A + S + 2 B. */
static void a_message_is_on_its_way(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1, .gpus_per_node = 4});
  pl_ticks a = kernel_ticks(cluster, product(1024, 256, 512)), b = kernel_ticks(cluster, product(1024, 4096, 256));
  pl_ticks s = collective_ticks(cluster, PL_SEND, 2, 2.0 * 1024 * 256);
  assert_true(b > a && b > s);
  assert_int_equal(iteration_ticks(cluster, two_stages), a + s + 2 * b);
  synthetic_cluster_release(cluster);
}

#define ROUTED(work)                                                                                                   \
  "  %x = input \"x\"() : fp16[c=" work ", h=512]\n"                                                                   \
  "  %v = param \"v\"() : fp16[h=512, f=512]\n"                                                                        \
  "  %y = product(%x, %v) {over=h} : fp16[c=" work ", f=512]\n"                                                        \
  "  %t = input \"t\"() : fp16[x=8, b=4096/ep, h=512]\n"                                                               \
  "  %r = all_to_all(%t) {over=ep, from=b, to=x} : fp16[x=8/ep, b=4096, h=512]\n"                                      \
  "  %e = param \"e\"() : fp16[x=8/ep, h=512, f=512]\n"                                                                \
  "  %z = product(%r, %e) {over=h} : fp16[x=8/ep, b=4096, f=512]\n"
#define EXPERTS(work, steps)                                                                                           \
  "plir 1 distributed \"experts\"\nmesh ep=4\n"                                                                        \
  "func @choice(%p: fp32[b=4096/ep, x=8]) {\n"                                                                         \
  "  %w = top_k(%p) {over=x, k=2, sparse=1} : fp32[b=4096/ep, x=8]\n  return %w\n}\n"                                  \
  "func @main() {\n" ROUTED(work) "  keep \"z\"(%z)\n  keep \"y\"(%y)\n}\n"                                            \
                                  "func @back() {\n" ROUTED(work) "  keep \"dz\"(%z)\n  keep \"dy\"(%y)\n}\n"          \
                                                                  "class all {\n  chunk 0 forward @main" steps "}\n"

/* With A the work in front of an exchange X and B the experts behind it, of a forward and a backward pass alike: one
 * after the other 2 (A + X + B); beside each other A, A, B, B with X behind either A, and the second X behind the
 * first. */
static void joined_steps_hide_exchanges(void **state) {
  (void)state;
  for (int slow = 0; slow < 3; slow++) {
    pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1,
                                                                        .gpus_per_node = 4,
                                                                        .nvlink_Bps = slow == 0   ? 600e9
                                                                                      : slow == 1 ? 60e9
                                                                                                  : 6e9});
    pl_ticks a = kernel_ticks(cluster, product(16384, 512, 512));
    pl_ticks x = collective_ticks(cluster, PL_ALL_TO_ALL, 4, 2.0 * 8 * 4096 / 4 * 512 * 2 / 8);
    pl_ticks alone = iteration_ticks(cluster, EXPERTS("16384", "\n  steps F0.0\n"));
    pl_ticks b = alone - a - x, begin = a + (a > x ? a : x), second = begin + x;
    assert_true(b > 0 && (slow > 0 || x < a) && (slow < 2 || x > a + b));
    assert_int_equal(iteration_ticks(cluster, EXPERTS("16384", " backward @back\n  steps F0.0 B0.0\n")), 2 * alone);
    assert_int_equal(iteration_ticks(cluster, EXPERTS("16384", " backward @back\n  steps F0.0+B0.0\n")),
                     (begin + b > second ? begin + b : second) + b);
    synthetic_cluster_release(cluster);
  }
}

/* One step of a ring of four: queries and one piece of keys and values, half of it masked. */
static pl_op attention_step(double seq, double head, bool backward) {
  double piece = seq / 4, pairs = 2 * 2 * piece * piece / 2; /* sequences, heads */
  double wide = 2 * 2 * piece * head * 2, rows = 2 * 2 * piece * 4, positions = 2 * 4 * piece;
  return (pl_op){.kind = PL_OP_ATTENTION,
                 .category = backward ? PL_CATEGORY_BACKWARD : PL_CATEGORY_FORWARD,
                 .dtype = PL_DTYPE_FP16,
                 .batch = 4,
                 .m = (int64_t)piece,
                 .n = (int64_t)piece,
                 .k = (int64_t)head,
                 .flops = pairs * (backward ? 10 : 4) * head,
                 .bytes = (backward ? 8 : 4) * wide + rows + positions};
}

static pl_ticks ring_ticks(const pl_cluster *cluster, int seq, int head, bool backward) {
  char text[4096];
  char wide[256], rows[128];
  snprintf(rows, sizeof rows, "fp32[b=2, s=%d/cp, g=2, r=1]", seq);
  snprintf(wide, sizeof wide, "fp16[b=2, s=%d/cp, g=2, r=1, d=%d]", seq, head);
  int n = snprintf(text, sizeof text,
                   "plir 1 distributed \"ring\"\nmesh cp=4\n"
                   "func @main() {\n  %%q = param \"q\"() : %s\n"
                   "  %%k = param \"k\"() : fp16[b=2, t=%d/cp, g=2, d=%d]\n"
                   "  %%v = param \"v\"() : fp16[b=2, t=%d/cp, g=2, e=%d]\n"
                   "  %%at = input \"positions\"() : i32[s=%d/cp]\n"
                   "  %%of = rename(%%at) {from=s, to=t} : i32[t=%d/cp]\n",
                   wide, seq, head, seq, head, seq, seq);
  snprintf(wide, sizeof wide, "fp16[b=2, s=%d/cp, g=2, r=1, e=%d]", seq, head);
  if (!backward) {
    snprintf(text + n, sizeof text - (size_t)n,
             "  %%y, %%l = ring_attention(%%q, %%k, %%v, %%at, %%of) {over=cp, causal=1} : %s, %s\n"
             "  keep \"y\"(%%y)\n}\nclass all {\n  chunk 0 forward @main\n  steps F0.0\n}\n",
             wide, rows);
  } else {
    snprintf(
        text + n, sizeof text - (size_t)n,
        "  %%y = param \"y\"() : %s\n  %%l = param \"l\"() : %s\n  %%dy = param \"dy\"() : %s\n"
        "  %%dq, %%dk, %%dv = ring_attention_backward(%%q, %%k, %%v, %%at, %%of, %%y, %%l, %%dy) {over=cp, causal=1}"
        " : fp16[b=2, s=%d/cp, g=2, r=1, d=%d], fp16[b=2, t=%d/cp, g=2, d=%d], fp16[b=2, t=%d/cp, g=2, e=%d]\n"
        "  keep \"dq\"(%%dq)\n}\nclass all {\n  chunk 0 forward @empty backward @main\n  steps F0.0 B0.0\n}\n",
        wide, rows, wide, seq, head, seq, head, seq, head);
    const char *empty = "func @empty() {\n}\n", *at = strstr(text, "func @main");
    size_t head_bytes = (size_t)(at - text);
    PL_ASSERT(strlen(text) + strlen(empty) < sizeof text);
    memmove(text + head_bytes + strlen(empty), at, strlen(at) + 1);
    memcpy(text + head_bytes, empty, strlen(empty));
  }
  return iteration_ticks(cluster, text);
}

/* A device attends to one piece of the keys in each of n steps, with the next one on its way: with P the time of a
 * piece and G that of the ring all-gather of all of them, max(3 P, G) + P; backward twice as much goes round. */
static void a_ring_attends_to_all_pieces(void **state) {
  (void)state;
  const int seq = 8192, head = 64;
  for (int slow = 0; slow < 2; slow++) {
    pl_cluster *cluster = synthetic_cluster_create(
        &(synthetic_options){.n_nodes = 1, .gpus_per_node = 4, .nvlink_Bps = slow ? 1e9 : 400e9});
    for (int backward = 0; backward < 2; backward++) {
      double bytes = 2.0 * 2 * 2 * 2 * seq * head * (1 + backward);
      pl_ticks piece = kernel_ticks(cluster, attention_step(seq, head, backward));
      pl_ticks round = collective_ticks(cluster, PL_ALL_GATHER, 4, bytes);
      assert_int_equal(3 * piece < round, slow);
      assert_int_equal(ring_ticks(cluster, seq, head, backward), (slow ? round : 3 * piece) + piece);
    }
    synthetic_cluster_release(cluster);
  }
}

static const char shifted[] = "plir 1 distributed \"shifted\"\nmesh cp=4\n"
                              "func @main() {\n"
                              "  %x = input \"x\"() : fp16[b=4096/cp, h=512]\n"
                              "  %w = param \"w\"() : fp16[h=512, f=256]\n"
                              "  %u = param \"u\"() : fp16[f=256, o=512]\n"
                              "  %y = product(%x, %w) {over=h} : fp16[b=4096/cp, f=256]\n"
                              "  %n = shift(%y) {over=cp, by=1} : fp16[b=4096/cp, f=256]\n"
                              "  %z = product(%n, %u) {over=f} : fp16[b=4096/cp, o=512]\n"
                              "  keep \"z\"(%z)\n"
                              "}\n"
                              "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

/* All sends of a shift run at once: T = T(1024 x 512 x 256) + S + T(1024 x 256 x 512). */
static void a_shift_is_one_send_of_each(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1, .gpus_per_node = 4});
  pl_ticks a = kernel_ticks(cluster, product(1024, 256, 512)), z = kernel_ticks(cluster, product(1024, 512, 256));
  assert_int_equal(iteration_ticks(cluster, shifted), a + collective_ticks(cluster, PL_SEND, 2, 2.0 * 1024 * 256) + z);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_add_up),
                                     cmocka_unit_test(a_collective_is_waited_for_where_it_is_read),
                                     cmocka_unit_test(a_message_is_on_its_way),
                                     cmocka_unit_test(joined_steps_hide_exchanges),
                                     cmocka_unit_test(a_ring_attends_to_all_pieces),
                                     cmocka_unit_test(a_shift_is_one_send_of_each)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
