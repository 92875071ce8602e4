/* See validation/rows/case_columns.h. */
#include "validation/rows/case_columns.h"

#include <math.h>

static bool is_expressed(const pl_case *c) {
  return c->reason == NULL;
}

/* Strategies are there as far as mapping came: zero degrees where it did not. */
static int64_t degree(int32_t value) {
  return value > 0 ? value : -1;
}

static double predicted(const pl_case *c, double value) {
  return is_expressed(c) ? value : NAN;
}

static double share_pct(const pl_case *c, double time_s) {
  return predicted(c, 100 * time_s / c->result.iter_time_s);
}

const char *pl_case_device(const pl_case *c) {
  if (!is_expressed(c)) return "";
  if (c->device.name[0] != '\0') return c->device.name;
  if (c->plan.n_parts == 0) return "";
  return c->plan.device != NULL ? c->plan.device : c->plan.parts[0].kind->device;
}

/* clang-format off */
/* X(kind, name, unit, description, value of the case c) */
#define COLUMNS(X) \
  X(TEXT, file, "", "table that the configuration is from", c->row->file) \
  X(INTEGER, line, "1", "line of its first row there", c->row->line) \
  X(INTEGER, n_rows, "1", "rows that say the same", c->n_rows) \
  X(TEXT, family, "", "collection of measurements", c->row->family) \
  X(TEXT, model, "", "model as the table names it", c->row->model) \
  X(TEXT, gpu, "", "GPU as the table names it", c->row->gpu) \
  X(TEXT, framework, "", "software as the table names it", c->row->framework) \
  X(TEXT, precision, "", "arithmetic as the table names it", c->row->precision) \
  X(TEXT, source, "", "who published the measurement", c->row->source) \
  X(INTEGER, n_gpus, "1", "GPUs", c->row->n_gpus) \
  X(INTEGER, n_layers, "1", "layers of the model", c->row->n_layers) \
  X(INTEGER, hidden, "1", "width of the model", c->row->hidden) \
  X(INTEGER, seq_len, "tokens", "sequence length", c->row->seq_len) \
  X(INTEGER, gbs, "sequences", "global batch", c->row->gbs) \
  X(INTEGER, tmp, "1", "tensor-parallel degree", degree(c->strategy.tmp)) \
  X(INTEGER, pp, "1", "pipeline-parallel degree", degree(c->strategy.pp)) \
  X(INTEGER, dp, "1", "data-parallel degree", degree(c->strategy.dp)) \
  X(INTEGER, cp, "1", "context-parallel degree", degree(c->strategy.cp)) \
  X(INTEGER, ep, "1", "expert-parallel degree", degree(c->strategy.ep)) \
  X(INTEGER, mbs, "sequences", "microbatch", degree(c->strategy.mbs)) \
  X(INTEGER, vpp, "1", "model chunks per stage", degree(c->strategy.vpp)) \
  X(INTEGER, zero, "1", "ZeRO stage", is_expressed(c) ? c->strategy.zero : -1) \
  X(INTEGER, sp, "1", "1 if sequence parallelism is on", is_expressed(c) ? c->strategy.sp : -1) \
  X(TEXT, recompute, "", "recomputation", is_expressed(c) ? pl_recompute_names[c->strategy.recompute] : "") \
  X(INTEGER, flash, "1", "1 if attention is one fused kernel", is_expressed(c) ? c->job.flash : -1) \
  X(NUMBER, measured_s, "s", "measured time of an iteration, the median of the rows", c->measured_s) \
  X(NUMBER, predicted_s, "s", "predicted time of an iteration", predicted(c, c->result.iter_time_s)) \
  X(NUMBER, predicted_low_s, "s", "lower end of the 80 % prediction interval", predicted(c, c->interval.low_s)) \
  X(NUMBER, predicted_high_s, "s", "upper end of it", predicted(c, c->interval.high_s)) \
  X(NUMBER, error_pct, "%", "predicted / measured - 1", pl_case_is_timed(c) ? 100 * pl_case_error(c) : NAN) \
  X(NUMBER, compute_pct, "%", "share of the predicted time: computing", share_pct(c, c->result.compute_s)) \
  X(NUMBER, tensor_pct, "%", "exposed tensor-parallel communication", share_pct(c, c->result.tensor_comm_s)) \
  X(NUMBER, pipeline_pct, "%", "exposed pipeline communication", share_pct(c, c->result.pipeline_comm_s)) \
  X(NUMBER, data_pct, "%", "exposed data-parallel communication", share_pct(c, c->result.data_comm_s)) \
  X(NUMBER, bubble_pct, "%", "pipeline bubble and other waiting", share_pct(c, c->result.bubble_s)) \
  X(NUMBER, predicted_mfu, "1", "predicted model FLOPs utilisation", predicted(c, c->result.mfu)) \
  X(NUMBER, measured_mem_bytes, "B", "measured peak memory, the median of the rows", c->measured_mem_bytes) \
  X(NUMBER, predicted_mem_bytes, "B", "predicted peak of memory: the figure that the source publishes, of the rank of which it does", predicted(c, c->predicted_mem_bytes)) \
  X(INTEGER, crashed, "1", "1 if the measured run did not get through", c->crashed) \
  X(INTEGER, predicted_fits, "1", "1 if it should fit into memory", is_expressed(c) ? c->result.fits : -1) \
  X(TEXT, framework_profile, "", "profile of workloads/frameworks/ that stands for the software", \
    c->habits.framework != NULL ? c->habits.framework : "") \
  X(TEXT, platform, "", "machines, as paceline platform make takes them", c->platform != NULL ? c->platform : "") \
  X(TEXT, reason, "", "why it is not expressed", c->reason != NULL ? c->reason : "") \
  X(TEXT, assumptions, "", "what was taken where the row says nothing", c->assumptions != NULL ? c->assumptions : "")
/* The same for what sites are made of: only where it was asked for. */
#define SITE_COLUMNS(X) \
  X(NUMBER, flops, "1", "FLOPs of an iteration of the model, without recomputation", predicted(c, c->flops)) \
  X(TEXT, device, "", "profile of its GPU", pl_case_device(c)) \
  X(NUMBER, predicted_capacity_bytes, "B", "what of the GPU's memory tensors can have", predicted(c, (double)c->result.mem_capacity_bytes)) \
  X(NUMBER, d_compute, "1", "d ln time / d ln compute", predicted(c, c->sensitivity[PL_SITE_compute])) \
  X(NUMBER, d_memory, "1", "d ln time / d ln memory", predicted(c, c->sensitivity[PL_SITE_memory])) \
  X(NUMBER, d_host, "1", "d ln time / d ln host", predicted(c, c->sensitivity[PL_SITE_host])) \
  X(NUMBER, d_inside_rate, "1", "d ln time / d ln inside_rate", predicted(c, c->sensitivity[PL_SITE_inside_rate])) \
  X(NUMBER, d_inside_latency, "1", "d ln time / d ln inside_latency", predicted(c, c->sensitivity[PL_SITE_inside_latency])) \
  X(NUMBER, d_between_rate, "1", "d ln time / d ln between_rate", predicted(c, c->sensitivity[PL_SITE_between_rate])) \
  X(NUMBER, d_between_latency, "1", "d ln time / d ln between_latency", predicted(c, c->sensitivity[PL_SITE_between_latency])) \
  X(NUMBER, d_step, "1/s", "d ln time / d step", predicted(c, c->sensitivity[PL_SITE_step]))

#define RETURNS_TEXT const char *
#define RETURNS_INTEGER int64_t
#define RETURNS_NUMBER double
#define GETTER(kind, name, unit, description, value) static RETURNS_##kind get_##name(const pl_case *c) { return value; }
COLUMNS(GETTER)
SITE_COLUMNS(GETTER)

#define GET_TEXT(name) .type = PL_TABLE_TEXT, .text = get_##name
#define GET_INTEGER(name) .type = PL_TABLE_INTEGER, .integer = get_##name
#define GET_NUMBER(name) .type = PL_TABLE_NUMBER, .number = get_##name
#define ENTRY(kind, column, measure, about, value) \
  {.name = #column, .unit = measure, .description = about, GET_##kind(column)},
const pl_case_column pl_case_columns[] = {COLUMNS(ENTRY) SITE_COLUMNS(ENTRY)};
#define COUNT(kind, name, unit, description, value) +1
enum { N_SITE_COLUMNS = 0 SITE_COLUMNS(COUNT) };
/* clang-format on */

const uint32_t pl_case_n_columns = sizeof pl_case_columns / sizeof pl_case_columns[0] - N_SITE_COLUMNS;
const uint32_t pl_case_n_columns_of_sites = sizeof pl_case_columns / sizeof pl_case_columns[0];

static const void *gather(const pl_case_column *column, const pl_cases *cases, pl_arena *arena) {
  uint32_t n = cases->n_cases;
  const char **texts = column->type == PL_TABLE_TEXT ? PL_TAKE(arena, const char *, n) : NULL;
  int64_t *integers = column->type == PL_TABLE_INTEGER ? PL_TAKE(arena, int64_t, n) : NULL;
  double *numbers = column->type == PL_TABLE_NUMBER ? PL_TAKE(arena, double, n) : NULL;
  for (uint32_t i = 0; i < n; i++) {
    const pl_case *c = &cases->cases[i];
    if (texts != NULL) texts[i] = column->text(c);
    if (integers != NULL) integers[i] = column->integer(c);
    if (numbers != NULL) numbers[i] = column->number(c);
  }
  return texts != NULL ? (const void *)texts : integers != NULL ? (const void *)integers : numbers;
}

pl_code pl_case_columns_take(const pl_cases *cases, pl_arena *arena, pl_table_column **columns, pl_error *error) {
  *columns = PL_TAKE(arena, pl_table_column, pl_case_n_columns);
  for (uint32_t i = 0; *columns != NULL && i < pl_case_n_columns; i++) {
    const pl_case_column *column = &pl_case_columns[i];
    (*columns)[i] =
        (pl_table_column){column->name, column->unit, column->description, column->type, gather(column, cases, arena)};
    if ((*columns)[i].values == NULL) return pl_fail_memory(error, "the columns");
  }
  return *columns != NULL ? PL_OK : pl_fail_memory(error, "the columns");
}
