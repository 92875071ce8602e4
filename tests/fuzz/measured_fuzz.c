/* Tables of measurements: any bytes give rows within their limits or one message with the file's name; every row then
 * becomes a cluster, a model, a job and a strategy that is checked and whose layers are assigned, or has a reason. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/synthetic_cluster.h"
#include "validation/rows/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char known_text[] = "model,model_type,n_layers,hidden,ffn_hidden,n_heads,vocab\n"
                                 "GPT-2 nl24,,24,1024,4096,16,50257\nLlama31 405B,,126,16384,53248,128,128256\n";

static void check_row(const pl_measured_row *row) {
  PL_ASSERT(row->line >= 2 && row->n_layers >= 0 && row->zero_stage >= -1);
  double step_s = pl_measured_step_s(row);
  PL_ASSERT(isnan(step_s) || step_s >= 0);
}

static void check_case(const pl_case *c) {
  if (c->reason != NULL) return;
  PL_ASSERT(c->platform != NULL && c->model != NULL && c->model->n_layers >= 1 && c->job.gbs >= 1);
  PL_ASSERT(c->strategy.pp >= 1 && c->strategy.dp >= 1 && c->strategy.tmp >= 1 && c->strategy.mbs >= 1);
}

/* As a simulation begins: on as many devices as the row has; layers are assigned where those are few. */
static void check_strategy(const pl_case *c, pl_arena *arena) {
  enum { FEW_DEVICES = 64 };
  if (c->reason != NULL) return;
  pl_error error = PL_ERROR_INIT;
  pl_strategy strategy = c->strategy;
  PL_ASSERT(c->row->n_gpus >= 1 && c->row->n_gpus <= UINT32_MAX);
  pl_code code = pl_strategy_check(&strategy, c->model, &c->job, (uint32_t)c->row->n_gpus, &error);
  if (code == PL_OK && strategy.boundary == NULL && c->row->n_gpus <= FEW_DEVICES) {
    synthetic_options options = synthetic_cluster_defaults();
    options.gpus_per_node = (uint32_t)c->row->n_gpus;
    options.nics_per_node = 1;
    pl_cluster *cluster = synthetic_cluster_create(&options);
    code = pl_strategy_assign(&strategy, c->model, &c->job, cluster, arena, &error);
    PL_ASSERT(code != PL_OK || pl_strategy_is_cut(&strategy, c->model));
    synthetic_cluster_release(cluster);
  }
  PL_ASSERT(code == PL_OK || code == PL_BAD_INPUT || code == PL_UNSUPPORTED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_csv csv, known;
  pl_measured measured;
  pl_cases cases;
  pl_error error = PL_ERROR_INIT;
  const pl_case_options options = {.n_threads = 1};
  PL_ASSERT(pl_csv_parse("known.csv", known_text, sizeof known_text - 1, &arena, &known, &error) == PL_OK);
  pl_code code = pl_csv_parse("fuzz.csv", (const char *)data, size, &arena, &csv, &error);
  if (code == PL_OK) code = pl_measured_read(&csv, &arena, &measured, &error);
  if (code != PL_OK) {
    PL_ASSERT(code == PL_BAD_INPUT && strstr(error.message, "fuzz.csv:") == error.message);
  } else {
    for (uint32_t i = 0; i < measured.n_rows; i++)
      check_row(&measured.rows[i]);
    PL_ASSERT(pl_cases_take(&measured, 1, &arena, &cases, &error) == PL_OK);
    PL_ASSERT(pl_cases_express(&cases, &known, &options, &arena, &error) == PL_OK);
    for (uint32_t i = 0; i < cases.n_cases; i++) {
      check_case(&cases.cases[i]);
      check_strategy(&cases.cases[i], &arena);
    }
  }
  pl_arena_release(&arena);
  return 0;
}
