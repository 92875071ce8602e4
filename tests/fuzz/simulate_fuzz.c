/* The whole way from bytes to a row: a line of numbers (platform, options, batch, sequence), a line with a strategy,
 * and the text of a model. Either one message, or a row that holds together: times positive and adding up, memory
 * adding up, and the same to the bit folded and unfolded. Behind each of the readers that have targets of their own
 * stand checks that only this one reaches: assignments, programs, the compiler, networks and the memory of stages.
 *
 * What would only be large is passed over: thousands of devices or microbatches are the benches' business. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/synthetic_cluster.h"
#include "workloads/assign/assign.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_LAYERS = 64, MOST_MICROBATCHES = 24, MOST_SEQ = 4096, MOST_BLOCKS = 256, MOST_CLASSES = 16 };

typedef struct job_text {
  unsigned platform, options;
  long long gbs, seq;
  const char *strategy, *model;
} job_text;

/* False: not of the form at the top of this file. */
static bool split_text(char *text, job_text *job) {
  char *strategy = strchr(text, '\n'), *model = strategy == NULL ? NULL : strchr(strategy + 1, '\n');
  if (model == NULL) return false;
  *strategy++ = *model++ = '\0';
  *job = (job_text){.strategy = strategy, .model = model};
  return sscanf(text, "%3u %3u %9lld %9lld", &job->platform, &job->options, &job->gbs, &job->seq) == 4;
}

static pl_cluster *make_cluster(unsigned number) {
  return number % 8 == 0 ? synthetic_cluster_random_regular(number, 16) : synthetic_cluster_random(number, 16);
}

static bool is_small(const pl_model *model, const pl_job *job, const pl_strategy *strategy) {
  if (model->n_layers > MOST_LAYERS || pl_model_n_blocks(model) > MOST_BLOCKS || job->seq > MOST_SEQ) return false;
  for (int32_t d = 0; d < strategy->dp; d++)
    if (pl_strategy_microbatches(strategy, job, d) > MOST_MICROBATCHES) return false;
  return true;
}

static void check_message(pl_code code, const pl_error *error) {
  PL_ASSERT(code == error->code && (code == PL_BAD_INPUT || code == PL_UNSUPPORTED));
  PL_ASSERT(error->message[0] != '\0' && strchr(error->message, '\n') == NULL);
}

static void check_row(const pl_result_row *row) {
  double parts = row->compute_s + row->tensor_comm_s + row->pipeline_comm_s + row->data_comm_s + row->context_comm_s +
                 row->expert_comm_s + row->bubble_s;
  int64_t memory = row->mem_parameters_bytes + row->mem_gradients_bytes + row->mem_optimizer_bytes +
                   row->mem_activations_bytes + row->mem_buffers_bytes;
  PL_ASSERT(isfinite(row->iter_time_s) && row->iter_time_s > 0);
  PL_ASSERT(row->compute_s >= 0 && row->bubble_s >= 0 && fabs(parts - row->iter_time_s) <= 1e-9 * row->iter_time_s);
  PL_ASSERT(isfinite(row->mfu) && row->mfu >= 0);
  PL_ASSERT(row->mem_activations_bytes >= 0 && labs(memory - row->peak_mem_bytes) <= 1e-9 * (double)memory + 3);
  PL_ASSERT(row->fits == (row->peak_mem_bytes <= row->mem_capacity_bytes));
}

static void check_boundaries(const pl_strategy *strategy, const pl_model *model) {
  int32_t n = pl_strategy_n_chunks(strategy);
  PL_ASSERT(strategy->boundary[0] == 0 && strategy->boundary[n] == pl_model_n_blocks(model));
  for (int32_t c = 0; c < n; c++)
    PL_ASSERT(strategy->boundary[c] < strategy->boundary[c + 1]);
}

static void check_same(const pl_result_row *a, const pl_result_row *b) {
  PL_ASSERT(a->iter_time_s == b->iter_time_s && a->compute_s == b->compute_s && a->bubble_s == b->bubble_s &&
            a->tensor_comm_s == b->tensor_comm_s && a->pipeline_comm_s == b->pipeline_comm_s &&
            a->data_comm_s == b->data_comm_s && a->peak_mem_bytes == b->peak_mem_bytes);
}

static void simulate(const pl_cluster *cluster, const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                     unsigned bits, pl_arena *arena) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.network = bits & 1 ? PL_NETWORK_ANALYTIC : PL_NETWORK_FLOW;
  options.chunked = (bits & 2) != 0;
  options.streams = bits & 4 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER;
  options.sharing = bits & 8 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  pl_simulate_report folded, unfolded;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_simulate(cluster, model, job, strategy, &options, arena, &folded, &error);
  if (code != PL_OK) {
    check_message(code, &error);
    return;
  }
  check_row(&folded.row);
  options.fold = options.fuse = false;
  PL_ASSERT(pl_simulate(cluster, model, job, strategy, &options, arena, &unfolded, &error) == PL_OK);
  check_same(&folded.row, &unfolded.row);
}

static void run(const job_text *text, const pl_cluster *cluster, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  pl_strategy strategy;
  pl_job job = {.gbs = text->gbs,
                .seq = text->seq,
                .dtype = text->options & 16 ? PL_DTYPE_BF16 : PL_DTYPE_FP16,
                .flash = (text->options & 32) == 0,
                .bucket_bytes = 1e6,
                .split_sends = (text->options & 64) != 0};
  if (job.gbs < 1 || job.seq < 1) return;
  pl_code code = pl_model_parse("fuzz", text->model, strlen(text->model), arena, &model, &error);
  if (code == PL_OK) code = pl_strategy_parse(text->strategy, &model, arena, &strategy, &error);
  if (code == PL_OK) {
    pl_strategy_adopt(&strategy, &job);
    code = pl_strategy_check(&strategy, &model, &job, cluster->n_devices, &error);
  }
  if (code == PL_OK && !is_small(&model, &job, &strategy)) return;
  const pl_simulate_options defaults = PL_SIMULATE_OPTIONS_DEFAULT;
  if (code == PL_OK) code = pl_assign(&strategy, &model, &job, cluster, &defaults, arena, &error);
  if (code != PL_OK) {
    check_message(code, &error);
    return;
  }
  check_boundaries(&strategy, &model);
  simulate(cluster, &model, &job, &strategy, text->options, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  char *text = pl_arena_take(&arena, size + 1, 1);
  PL_ASSERT(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0';
  job_text job;
  if (split_text(text, &job)) {
    pl_cluster *cluster = make_cluster(job.platform);
    run(&job, cluster, &arena);
    synthetic_cluster_release(cluster);
  }
  pl_arena_release(&arena);
  return 0;
}
