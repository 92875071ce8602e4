/* Fits of attention and memory-bound kernels: tables made from known constants give these constants back, the shipped
 * tables are fitted as well as validation/calibration/README.md says, sections survive writing and reading, bad tables
 * are refused with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "validation/fit/kernel_section.h"
#include "validation/statistics/nelder_mead.h"
#include "workloads/cost/attention_cost.h"

#define ATTENTION_HEADER                                                                                               \
  "device,multiprocessors,kernel,pass,mask,window,batch,seq,heads,kv_heads,head_size,cached,time_us\n"
#define KERNEL_HEADER "device,kind,pass,bytes,host_bound,time_us\n"

enum { TEXT_BYTES = 1 << 16 };

static pl_device_profile toy(void) {
  pl_device_profile profile = {
      .name = "Toy", .bandwidth_Bps = 1e12, .bandwidth_efficiency = 0.8, .launch_overhead_s = 4e-6};
  profile.peak_flops[PL_DTYPE_FP16] = profile.peak_flops[PL_DTYPE_BF16] = 100e12;
  return profile;
}

static double rosenbrock(const double *x, void *context) {
  ++*(int *)context;
  return 100 * pow(x[1] - x[0] * x[0], 2) + pow(1 - x[0], 2);
}

static void test_nelder_mead(void **state) {
  (void)state;
  double x[2] = {-1.2, 1};
  int calls = 0;
  double value = pl_nelder_mead(rosenbrock, &calls, x, 2, 0.5, 1e-14, 1000);
  assert_true(value < 1e-8 && fabs(x[0] - 1) < 1e-3 && fabs(x[1] - 1) < 1e-3);
  assert_true(calls <= 1004);
}

static const pl_attention_profile known = {.kernel = PL_ATTENTION_FLASH2,
                                           .n_head_sizes = 2,
                                           .head_size = {64, 128},
                                           .efficiency = {0.5, 0.6},
                                           .multiprocessors = 50,
                                           .query_tile = 128,
                                           .key_tile = 64,
                                           .prologue_keys = 100,
                                           .tail = 0.8,
                                           .overhead_s = 10e-6,
                                           .backward_ratio = 2.5,
                                           .backward_prologue_keys = 150,
                                           .backward_overhead_s = 20e-6};

/* Calls of many shapes with exactly the times that `known` gives. */
static void make_attention_table(char text[TEXT_BYTES]) {
  size_t n = (size_t)snprintf(text, TEXT_BYTES, ATTENTION_HEADER);
  for (int size = 64; size <= 128; size *= 2)
    for (int seq = 128; seq <= 8192; seq *= 2)
      for (int heads = 1; heads <= 64; heads *= 2)
        for (int backward = 0; backward < 2; backward++) {
          double s = seq, window = heads == 8 ? s / 4 : 0;
          const pl_attention_shape shape = {.heads = heads,
                                            .queries = s,
                                            .keys = s,
                                            .head_size = size,
                                            .pairs = window > 0 ? s * window - window * window / 2 : s * s / 2,
                                            .bytes = (backward ? 16.0 : 8.0) * size * s * heads + 4.0 * heads * s,
                                            .backward = backward};
          pl_attention_time t = pl_attention_time_of(&known, 100e12, 0.8e12, &shape);
          n += (size_t)snprintf(text + n, TEXT_BYTES - n, "Toy,50,flash2,%s,causal,%g,1,%d,%d,%d,%d,0,%.6f\n",
                                backward ? "backward" : "forward", window, seq, heads, heads, size,
                                1e6 * (fmax(t.compute_s, t.memory_s) + t.helpers_s + t.overhead_s));
        }
  assert_true(n < TEXT_BYTES);
}

static void near(double value, double expected, double tolerance) {
  if (fabs(value / expected - 1) > tolerance) fail_msg("%g, not %g", value, expected);
}

static void test_attention(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  char *text = PL_TAKE(&arena, char, TEXT_BYTES);
  make_attention_table(text);
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  if (pl_csv_parse("made.csv", text, strlen(text), &arena, &csv, &error) != PL_OK) fail_msg("%s", error.message);
  pl_device_profile device = toy();
  const pl_attention_fit *fits;
  uint32_t n;
  if (pl_attention_fit_take(&csv, &device, &arena, &fits, &n, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(n, 1);
  const pl_attention_profile *p = &fits->profile;
  assert_true(p->query_tile == 128 && p->key_tile == 64 && p->multiprocessors == 50);
  assert_int_equal(p->n_head_sizes, 2);
  near(p->efficiency[0], 0.5, 0.01);
  near(p->efficiency[1], 0.6, 0.01);
  near(p->overhead_s, 10e-6, 0.05);
  near(p->backward_ratio, 2.5, 0.01);
  near(p->backward_overhead_s, 20e-6, 0.05);
  assert_true(fits->has_backward);
  for (int pass = 0; pass < 2; pass++) {
    assert_true(fits->held_out[pass].n_rows > 5 && fits->held_out[pass].p90 < 0.02);
    assert_int_equal(fits->held_out[pass].n_rows + fits->fitted[pass].n_rows, (csv.n_rows) / 2);
  }
  pl_arena_release(&arena);
}

static void test_kernels(void **state) {
  (void)state;
  char text[4096];
  size_t n = (size_t)snprintf(text, sizeof text, KERNEL_HEADER);
  for (int i = 0; i < 20; i++) {
    double bytes = 1e5 * pow(2, i);
    n += (size_t)snprintf(text + n, sizeof text - n, "Toy,norm,backward,%.0f,0,%.6f\nToy,softmax,forward,%.0f,1,%.6f\n",
                          bytes, 7 + bytes / 0.3e6, bytes, fmax(80, 4 + bytes / 0.7e6));
  }
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_csv_parse("made.csv", text, n, &arena, &csv, &error), PL_OK);
  pl_device_profile device = toy();
  const pl_kernel_fit *fits;
  uint32_t n_fits;
  if (pl_kernel_fit_take(&csv, &device, &arena, &fits, &n_fits, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(n_fits, 2);
  assert_true(fits[0].kind == PL_KERNEL_NORM && fits[0].backward);
  near(fits[0].profile.bandwidth_efficiency, 0.3, 0.01);
  near(fits[0].profile.overhead_s, 4e-6 + 7e-6, 0.02); /* the launch on top of the kernel's own */
  assert_true(fits[0].host_floor_s == 0);
  assert_true(fits[1].kind == PL_KERNEL_SOFTMAX && !fits[1].backward);
  near(fits[1].profile.bandwidth_efficiency, 0.7, 0.01);
  near(fits[1].host_floor_s, 80e-6, 0.01);
  assert_true(fits[1].profile.overhead_s == 4e-6);
  pl_arena_release(&arena);
}

/* What is written is read as the same sections. */
static void test_sections(void **state) {
  (void)state;
  pl_device_profile device = toy(), again;
  device.attention = &known;
  device.n_attention = 1;
  device.kernels[PL_KERNEL_NORM][1] = (pl_kernel_profile){.bandwidth_efficiency = 0.25, .overhead_s = 7e-6};
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  fputs(
      "{\"name\": \"Toy\", \"architecture\": \"toy\", \"memory\": \"8GiB\", \"bandwidth\": \"1TBps\", \"peak_flops\": "
      "{\"fp16\": \"100Tf\"}, \"efficiency\": {\"compute\": 0.5, \"attention\": 0.25, \"bandwidth\": 0.8}, "
      "\"launch_overhead\": \"4us\", \"overlap\": {\"compute\": 0, \"communication\": 0}, \"attention\": ",
      stream);
  pl_json json;
  pl_json_init(&json, stream, false);
  pl_attention_section_write(&json, &device);
  fputs(", \"kernels\": ", stream);
  pl_json_init(&json, stream, false);
  pl_kernel_section_write(&json, &device);
  fputs("}", stream);
  fclose(stream);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  if (pl_device_profile_parse("written.json", text, size, &arena, &again, &error) != PL_OK)
    fail_msg("%s in %s", error.message, text);
  const pl_attention_profile *p = again.attention;
  assert_int_equal(again.n_attention, 1);
  assert_true(p->kernel == known.kernel && p->n_head_sizes == 2 && p->head_size[1] == 128 && p->efficiency[1] == 0.6);
  assert_true(p->multiprocessors == 50 && p->prologue_keys == 100 && p->tail == 0.8 && p->backward_ratio == 2.5);
  near(p->overhead_s, 10e-6, 1e-12);
  near(p->backward_overhead_s, 20e-6, 1e-12);
  assert_true(again.kernels[PL_KERNEL_NORM][1].bandwidth_efficiency == 0.25);
  assert_true(again.kernels[PL_KERNEL_NORM][0].bandwidth_efficiency == 0);
  free(text);
  pl_arena_release(&arena);
}

/* The shipped A100 profile is what its table gives: errors on held-out calls, and the constants themselves. */
static void test_shipped(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile device;
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  const pl_attention_fit *fits = NULL;
  uint32_t n = 0;
  if (pl_device_profile_load("platforms/devices/A100-SXM4-80GB.json", &arena, &device, &error) != PL_OK ||
      pl_csv_load("validation/calibration/attention.csv.gz", &arena, &csv, &error) != PL_OK ||
      pl_attention_fit_take(&csv, &device, &arena, &fits, &n, &error) != PL_OK)
    fail_msg("%s", error.message);
  assert_int_equal(n, 1);
  assert_true(fits->held_out_long[0].n_rows >= 40 && fits->held_out_long[0].median < 0.02);
  assert_true(fits->held_out_long[0].p90 < 0.05);
  const pl_attention_profile *p = pl_attention_choose(&device, PL_ATTENTION_FLASH2);
  near(p->efficiency[1], fits->profile.efficiency[0], 0.002);
  near(p->prologue_keys, fits->profile.prologue_keys, 0.02);
  near(p->overhead_s, fits->profile.overhead_s, 0.01);
  assert_true(!fits->has_backward && fits->profile.backward_ratio == p->backward_ratio); /* kept from the base */
  pl_arena_release(&arena);
}

/* So is H100's FlashAttention 2, whose backward pass is in the table, too; other kernels there are of other tables. */
static void test_shipped_backward(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile device;
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  const pl_attention_fit *fits = NULL;
  uint32_t n = 0;
  if (pl_device_profile_load("platforms/devices/H100-SXM5-80GB.json", &arena, &device, &error) != PL_OK ||
      pl_csv_load("validation/calibration/attention.csv.gz", &arena, &csv, &error) != PL_OK ||
      pl_attention_fit_take(&csv, &device, &arena, &fits, &n, &error) != PL_OK)
    fail_msg("%s", error.message);
  assert_true(n == 2 && fits[0].profile.kernel == PL_ATTENTION_FLASH2 && fits[0].has_backward);
  const pl_attention_profile *p = pl_attention_choose(&device, PL_ATTENTION_FLASH2);
  assert_true(fits[0].held_out_long[1].n_rows == 2 && fits[0].held_out_long[1].median < 0.03);
  near(p->backward_ratio, fits[0].profile.backward_ratio, 0.005);
  near(p->prologue_keys, fits[0].profile.prologue_keys, 0.01);
  pl_arena_release(&arena);
}

static void refuse(const char *text, const char *expected, bool kernels) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_csv_parse("bad.csv", text, strlen(text), &arena, &csv, &error), PL_OK);
  pl_device_profile device = toy();
  const pl_attention_fit *attention;
  const pl_kernel_fit *kernel;
  uint32_t n;
  pl_code code = kernels ? pl_kernel_fit_take(&csv, &device, &arena, &kernel, &n, &error)
                         : pl_attention_fit_take(&csv, &device, &arena, &attention, &n, &error);
  assert_int_equal(code, PL_BAD_INPUT);
  if (strstr(error.message, expected) == NULL || strstr(error.message, "bad.csv") == NULL)
    fail_msg("'%s' is not in '%s'", expected, error.message);
  pl_arena_release(&arena);
}

static void test_refused(void **state) {
  (void)state;
  refuse("device,kernel\nToy,flash2\n", "no column 'multiprocessors'", false);
  refuse(ATTENTION_HEADER, "no row is about Toy", false);
  refuse(ATTENTION_HEADER "Other,50,flash2,forward,causal,0,1,128,1,1,64,0,10\n", "the first is about Other", false);
  refuse(ATTENTION_HEADER "Toy,50,flash7,forward,causal,0,1,128,1,1,64,0,10\n", "bad.csv:2: column 'kernel': 'flash7'",
         false);
  refuse(ATTENTION_HEADER "Toy,50,flash2,sideways,causal,0,1,128,1,1,64,0,10\n", "'sideways'", false);
  refuse(ATTENTION_HEADER "Toy,50,flash2,forward,causal,0,1,0,1,1,64,0,10\n", "column 'seq': 0 is less than 1", false);
  refuse(ATTENTION_HEADER "Toy,50,flash2,forward,causal,0,1,128,1,1,64,0,\n", "column 'time_us' is empty", false);
  refuse(KERNEL_HEADER "Toy,norm,forward,100,0,-3\n", "column 'time_us': -3", true);
  refuse(KERNEL_HEADER "Toy,gemm,forward,100,0,3\n", "column 'kind': 'gemm'", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nelder_mead), cmocka_unit_test(test_attention),
                                     cmocka_unit_test(test_kernels),     cmocka_unit_test(test_sections),
                                     cmocka_unit_test(test_shipped),     cmocka_unit_test(test_shipped_backward),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
