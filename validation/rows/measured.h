/* Measured training runs as tables: the schema that `paceline validate` reads (column by column in
 * validation/README.md), one struct per row, nothing interpreted yet.
 *
 * An empty cell is "not stated" and stays that: 0 for counts, -1 where 0 means something, NaN for measurements, "" for
 * texts. Names of columns are of any case. Columns that are not in the lists below are not read, and named; of those
 * that are, only a few must be there. A cell that cannot be what its column needs spoils its row alone.
 */
#ifndef PL_VALIDATION_MEASURED_H
#define PL_VALIDATION_MEASURED_H

#include <stdint.h>

#include "core/text/csv.h"

/* clang-format off */
/* X(name) */
#define PL_MEASURED_TEXTS(X) \
  X(family) X(model) X(kind) X(gpu) X(interconnect) X(framework) X(precision) X(mlp_type) X(fsdp) X(recompute) \
  X(step_time_kind) X(notes) X(source) X(confidence) X(status) X(assign) \
  X(schedule) X(tied_embeddings) X(norms) X(reshard_after_forward) X(program) X(platform) X(model_file) X(strategy)
/* Whole numbers from `lowest`; `absent` where nothing is stated. X(name, lowest, absent) */
#define PL_MEASURED_COUNTS(X) \
  X(n_layers, 1, 0) X(hidden, 1, 0) X(ffn_hidden, 1, 0) X(n_heads, 1, 0) X(n_kv_heads, 1, 0) X(seq_len, 1, 0) \
  X(vocab, 1, 0) X(n_experts, 0, 0) X(topk, 0, 0) X(n_gpus, 1, 0) X(gpus_per_node, 1, 0) X(tp, 1, 0) X(pp, 1, 0) \
  X(vpp, 0, 0) X(cp, 0, 0) X(ep, 0, 0) X(etp, 1, 0) X(dp, 1, 0) X(sp, 0, -1) X(zero_stage, 0, -1) X(mbs, 1, 0) X(gbs, 1, 0) \
  X(measured_rank, 1, 0) X(other_rank, 1, 0)
/* Positive measurements. X(name, alias): read under the alias where the first is empty or absent. */
#define PL_MEASURED_NUMBERS(X) \
  X(step_time_s, "iter_time_s") X(tokens_per_s_per_gpu, NULL) X(mem_gb, NULL) X(gpu_mem_gb, NULL) \
  X(iter_time_derived_s, NULL) X(other_step_time_s, NULL) X(other_mem_gb, NULL) X(power_w, "power")
/* clang-format on */

typedef struct pl_measured_row {
  const char *file;
  uint32_t line;
  const char *defect;              /* the first cell that is none: "column 'gbs': 'x' is not a number"; NULL */
  const struct pl_measured *table; /* that it is from */
#define PL_MEASURED_TEXT(name)                  const char *name;
#define PL_MEASURED_COUNT(name, lowest, absent) int64_t name;
#define PL_MEASURED_NUMBER(name, alias)         double name;
  PL_MEASURED_TEXTS(PL_MEASURED_TEXT)
  PL_MEASURED_COUNTS(PL_MEASURED_COUNT)
  PL_MEASURED_NUMBERS(PL_MEASURED_NUMBER)
#undef PL_MEASURED_TEXT
#undef PL_MEASURED_COUNT
#undef PL_MEASURED_NUMBER
} pl_measured_row;

typedef struct pl_measured {
  uint32_t n_rows;
  pl_measured_row *rows;
  uint64_t columns;    /* one bit per column of the lists above, in their order: the table has it */
  const char *ignored; /* what is not read: "mfu_pct, sequence_len (seq_len?)"; "": nothing */
} pl_measured;

/* Appends nothing: reads one table into rows from `arena`. PL_BAD_INPUT with file:line: what pl_csv_parse refuses,
 * columns that must be there and are not (all of them, with those that are named nearly so), a column twice, no row at
 * all. A count or a measurement that is not one, is negative or is beyond 10^15 is its row's defect. */
pl_code pl_measured_read(const pl_csv *csv, pl_arena *arena, pl_measured *measured, pl_error *error);
pl_code pl_measured_load(const char *path, pl_arena *arena, pl_measured *measured, pl_error *error);
/* PL_BAD_INPUT for the first row with a defect: for tables that constants are fitted to. */
pl_code pl_measured_refuse_defects(const pl_measured *measured, pl_error *error);
/* Whether the row's table has the column at all: what it leaves out for every row it does not speak of. */
bool pl_measured_has_column(const pl_measured_row *row, const char *name);

/* Seconds per iteration: as stated, or from tokens per second; NaN where the row has neither. */
double pl_measured_step_s(const pl_measured_row *row);
/* Whether the row says that the run did not get through (status neither "" nor "ok"). */
bool pl_measured_crashed(const pl_measured_row *row);

#endif
