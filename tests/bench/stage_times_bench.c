/* Whether the ops of a layer add up to the layer: sums of predicted op times beside measured pipeline stages and layers
 * (validation/calibration/stage_times.csv, layer_times.csv). Prints the two tables of validation/calibration/README.md;
 * run from the repository. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/csv.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "tests/support/bench.h"
#include "workloads/cost/op_cost.h"
#include "workloads/framework/framework.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

enum { MOST_RATIOS = 256 };

static void check(pl_code code, const pl_error *error) {
  if (code == PL_OK) return;
  fprintf(stderr, "%s\n", error->message);
  exit(1);
}

static double cell(const pl_csv *csv, uint32_t row, const char *column) {
  return strtod(pl_csv_cell(csv, row, pl_csv_column(csv, column)), NULL);
}

typedef struct job {
  const pl_device_profile *profile;
  const pl_framework *framework;
  pl_model model;
  pl_block_shard shard;
  pl_arena *arena;
} job;

static void add_block(const job *j, pl_block_kind kind, double times, double *seconds) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  check(pl_block_program_take(&j->model, kind, &j->shard, j->arena, &program, &error), &error);
  const pl_op_list *lists[] = {&program.forward, &program.backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass]->n_ops; i++)
      if (lists[pass]->ops[i].kind != PL_OP_COLLECTIVE)
        seconds[pass] += times * pl_op_cost(j->profile, &lists[pass]->ops[i]).time_s;
}

static void set_up(job *j, const char *device, const char *framework, double dropout, int hidden, int heads,
                   int64_t seq, int64_t vocab, int mbs) {
  pl_error error = PL_ERROR_INIT;
  char path[256], config[512];
  snprintf(path, sizeof path, "platforms/devices/%s.json", device);
  pl_device_profile *profile = PL_TAKE(j->arena, pl_device_profile, 1);
  check(pl_device_profile_load(path, j->arena, profile, &error), &error);
  pl_framework *chosen = PL_TAKE(j->arena, pl_framework, 1);
  check(pl_framework_load(framework, j->arena, chosen, &error), &error);
  j->profile = profile;
  j->framework = chosen;
  int size = snprintf(config, sizeof config,
                      "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":4,\"n_head\":%d,\"n_positions\":8192,"
                      "\"vocab_size\":%lld,\"tie_word_embeddings\":false,\"attn_pdrop\":%g,\"resid_pdrop\":%g}",
                      hidden, heads, (long long)vocab, dropout, dropout);
  check(pl_model_parse("model", config, (size_t)size, j->arena, &j->model, &error), &error);
  j->shard = (pl_block_shard){.tmp = 1, .mbs = mbs, .seq = seq, .dtype = PL_DTYPE_FP16, .framework = chosen};
}

typedef struct ratios {
  double values[MOST_RATIOS];
  uint32_t n;
} ratios;

static void print_pair(double predicted_s, double measured_us, ratios *all) {
  if (all->n < MOST_RATIOS) all->values[all->n++] = 1e6 * predicted_s / measured_us;
  printf(" %.1f | %.1f | %+.0f %% |", 1e3 * predicted_s, 1e-3 * measured_us,
         100 * (1e6 * predicted_s / measured_us - 1));
}

/* Stages 0, 3 and 7 of eight: with the embedding, of layers only, with the head. */
static void stages(pl_arena *arena, pl_attention_kernel kernel, ratios *all) {
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  check(pl_csv_load("validation/calibration/stage_times.csv", arena, &csv, &error), &error);
  printf("| seq | vocabulary | stage | forward ms: predicted | measured | | backward ms: predicted | measured | |\n"
         "|--:|--:|---|--:|--:|--:|--:|--:|--:|\n");
  for (uint32_t row = 0; row < csv.n_rows; row++) {
    int stage = (int)cell(&csv, row, "stage");
    if (stage != 0 && stage != 3 && stage != 7) continue;
    job j = {.arena = arena};
    int64_t seq = (int64_t)cell(&csv, row, "seq"), vocab = (int64_t)cell(&csv, row, "vocab");
    set_up(&j, "A100-SXM4-80GB", "megatron-core", 0, 3072, 24, seq, vocab, 1);
    j.shard.flash = kernel != PL_ATTENTION_KERNEL_COUNT;
    j.shard.attention_kernel = j.shard.flash ? kernel : PL_ATTENTION_ANY;
    double seconds[2] = {0};
    if (stage == 0) add_block(&j, PL_BLOCK_EMBEDDING, 1, seconds);
    add_block(&j, PL_BLOCK_LAYER, 4, seconds);
    if (stage == 7) {
      add_block(&j, PL_BLOCK_FINAL_NORM, 1, seconds);
      add_block(&j, PL_BLOCK_HEAD, 1, seconds);
      add_block(&j, PL_BLOCK_LOSS, 1, seconds);
    }
    printf("| %lld | %lld | %s |", (long long)seq, (long long)vocab,
           stage == 0   ? "embedding, 4 layers"
           : stage == 3 ? "4 layers"
                        : "4 layers, head, loss");
    print_pair(seconds[0], cell(&csv, row, "forward_us"), all);
    print_pair(seconds[1], cell(&csv, row, "backward_us"), all);
    printf("\n");
  }
}

/* Forward only: the backward of the profiler's matrix products is the data gradient alone. */
static void layers(pl_arena *arena, ratios *all) {
  pl_csv csv;
  pl_error error = PL_ERROR_INIT;
  check(pl_csv_load("validation/calibration/layer_times.csv", arena, &csv, &error), &error);
  printf("| device | hidden, heads | mbs | forward ms: predicted | measured | |\n"
         "|---|---|--:|--:|--:|--:|\n");
  for (uint32_t row = 0; row < csv.n_rows; row++) {
    job j = {.arena = arena};
    const char *device = pl_csv_cell(&csv, row, pl_csv_column(&csv, "device"));
    int hidden = (int)cell(&csv, row, "hidden"), heads = (int)cell(&csv, row, "heads"),
        mbs = (int)cell(&csv, row, "mbs");
    set_up(&j, device, "megatron-lm-2021", 0.1, hidden, heads, (int64_t)cell(&csv, row, "seq"), 50304, mbs);
    double seconds[2] = {0};
    add_block(&j, PL_BLOCK_LAYER, 1, seconds);
    printf("| %s | %d, %d | %d |", device, hidden, heads, mbs);
    print_pair(seconds[0], cell(&csv, row, "forward_us"), all);
    printf("\n");
  }
}

int main(int argc, char **argv) {
  bench b = bench_begin("stage_times_bench", &argc, argv);
  ratios stage = {.n = 0}, layer = {.n = 0};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  int kernel = argc > 1 ? pl_attention_kernel_from_name(argv[1]) : PL_ATTENTION_FLASH2;
  stages(&arena, kernel < 0 ? PL_ATTENTION_KERNEL_COUNT : (pl_attention_kernel)kernel,
         &stage); /* another word: unfused */
  printf("\n");
  layers(&arena, &layer);
  pl_arena_release(&arena);
  bench_ratio(&b, "predicted time of a pass of a stage", "measured", stage.values, stage.n);
  bench_ratio(&b, "predicted time of a pass of a layer", "measured", layer.values, layer.n);
  return bench_end(&b);
}
