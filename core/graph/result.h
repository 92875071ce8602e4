/* The result row: one candidate. The one list of columns, names and units that HDF5, JSON, `show` and the docs use.
 *
 * PL_RESULT_COLUMNS(X): X(type, field, unit, description). Types: i32, i64, f64, u64 (digests), text
 * (PL_RESULT_TEXT_BYTES bytes, NUL-padded). Fields that could not be computed are NaN (f64) or -1 (i32, i64).
 */
#ifndef PL_CORE_RESULT_H
#define PL_CORE_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "core/graph/features.h"

enum {
  PL_RESULT_ASSIGN_BYTES = 512,
  PL_RESULT_SHORT_BYTES = 16,
  PL_RESULT_CHOICE_BYTES = 48,
  PL_RESULT_REASON_BYTES = 256,
  PL_RESULT_WIDEST_BYTES = 1024,
  PL_RESULT_CHOICES_MAX = 8
};

/* Outcome of a candidate. 0 means: not computed yet (the fill value of the file). */
typedef enum pl_result_status {
  PL_RESULT_PENDING = 0,
  PL_RESULT_DONE = 1,  /* simulated, fits */
  PL_RESULT_OOM = 2,   /* does not fit; peak recorded, and simulated all the same */
  PL_RESULT_FAILED = 3 /* could not be simulated (lack of memory ...) */
} pl_result_status;
/* What `status` is called in text and JSON, by value; NULL-terminated. */
extern const char *const pl_result_status_names[];

/* clang-format off */
#define PL_RESULT_COLUMNS(X) \
  X(i32, pp, "1", "pipeline-parallel degree") \
  X(i32, dp, "1", "data-parallel degree") \
  X(i32, tmp, "1", "tensor-model-parallel degree") \
  X(i32, cp, "1", "context-parallel degree") \
  X(i32, ep, "1", "expert-parallel degree") \
  X(i32, etp, "1", "expert-tensor-parallel degree: tensor ranks over which each expert is cut") \
  X(i32, ep_overlap, "1", "1 if experts exchange tokens beside another pass, 2 with gradients of weights put off as well, 3 beside shared experts") \
  X(i32, mbs, "sequences", "microbatch size per data-parallel replica") \
  X(i32, n_microbatches, "1", "microbatches per iteration and replica (of the replica with most)") \
  X(text16, schedule, "", "pipeline schedule: 1f1b, gpipe, interleaved, fifo, breadth-first, zb-h1, zb-h2, zb-v, dualpipe-v or dualpipe") \
  X(i32, vpp, "1", "model chunks per pipeline stage (virtual pipeline)") \
  X(i32, sp, "1", "1 if sequence parallelism is on") \
  X(text16, recompute, "", "activation recomputation: none, selective, full or alternate") \
  X(i32, zero, "1", "ZeRO stage") \
  X(i32, overlap, "1", "1 if gradient reduction overlaps the backward pass") \
  X(text16, order, "", "placement order, innermost first, e.g. tdp") \
  X(text512, assign, "", "layer boundaries of the stages, e.g. 0:9:15:21:30") \
  X(f64, iter_time_s, "s", "time of one training iteration") \
  X(f64, iter_time_low_s, "s", "80 % interval of iter_time_s: lower end; NaN where there is none") \
  X(f64, iter_time_high_s, "s", "80 % interval of iter_time_s: upper end; NaN where there is none") \
  X(f64, tokens_per_s, "tokens/s", "throughput of the whole job") \
  X(f64, samples_per_s, "sequences/s", "throughput of the whole job") \
  X(f64, mfu, "1", "model FLOPs utilisation (no recomputation counted)") \
  X(f64, compute_s, "s", "mean over devices: computing, overlap slow-down included") \
  X(f64, tensor_comm_s, "s", "mean over devices: exposed tensor-parallel communication") \
  X(f64, pipeline_comm_s, "s", "mean over devices: exposed pipeline communication") \
  X(f64, data_comm_s, "s", "mean over devices: exposed data-parallel communication") \
  X(f64, context_comm_s, "s", "mean over devices: exposed context-parallel communication") \
  X(f64, expert_comm_s, "s", "mean over devices: exposed expert-parallel communication") \
  X(f64, bubble_s, "s", "mean over devices: pipeline bubble and other waiting") \
  X(i64, peak_mem_bytes, "B", "peak of the device with the least memory left") \
  X(i64, mem_capacity_bytes, "B", "usable memory of that device") \
  X(i64, reserved_mem_bytes, "B", "of that device: held by the allocator at the peak") \
  X(i64, device_mem_bytes, "B", "of that device: taken at the peak, context and communicators included") \
  X(i32, fits, "1", "1 if every device's peak fits in its memory") \
  X(i32, peak_stage, "1", "pipeline stage of that device") \
  X(i64, mem_parameters_bytes, "B", "of that peak: parameters") \
  X(i64, mem_gradients_bytes, "B", "of that peak: gradients") \
  X(i64, mem_optimizer_bytes, "B", "of that peak: optimizer state") \
  X(i64, mem_activations_bytes, "B", "of that peak: activations") \
  X(i64, mem_buffers_bytes, "B", "of that peak: communication and temporary buffers") \
  X(i64, n_classes, "1", "device classes after folding") \
  X(i64, n_tasks, "1", "tasks simulated (of the microbatches that are played)") \
  X(u64, run_digest, "", "digest of the simulated run (of what is played)")

/* Of searches only. */
#define PL_SEARCH_COLUMNS(X) \
  X(text16, method, "", "search method that proposed it") \
  X(i64, found, "1", "order of discovery: 1 was simulated first") \
  X(f64, bound_s, "s", "lower bound on iter_time_s, known before it was simulated; NaN without one") \
  X(f64, estimate_s, "s", "iteration time by the method's own cost model; NaN without one") \
  X(text1024, strategy, "", "the strategy, as paceline simulate --strategy takes it; where it is cut off ... and the whole text's digest")
/* clang-format on */

typedef int32_t pl_column_i32;
typedef int64_t pl_column_i64;
typedef double pl_column_f64;
typedef uint64_t pl_column_u64;
typedef struct pl_column_text16 {
  char text[PL_RESULT_SHORT_BYTES];
} pl_column_text16;
typedef struct pl_column_text48 {
  char text[PL_RESULT_CHOICE_BYTES];
} pl_column_text48;
typedef struct pl_column_text256 {
  char text[PL_RESULT_REASON_BYTES];
} pl_column_text256;
typedef struct pl_column_text512 {
  char text[PL_RESULT_ASSIGN_BYTES];
} pl_column_text512;

typedef struct pl_column_text1024 {
  char text[PL_RESULT_WIDEST_BYTES];
} pl_column_text1024;

/* What a search knows of a row beside the simulation. */
typedef struct pl_search_values {
#define PL_SEARCH_FIELD(type, field, unit, description) pl_column_##type field;
  PL_SEARCH_COLUMNS(PL_SEARCH_FIELD)
#undef PL_SEARCH_FIELD
  const char *whole; /* no column: of the best rows the strategy where the column cuts it off; else NULL */
} pl_search_values;

/* As whole as it is known. */
static inline const char *pl_search_strategy(const pl_search_values *values) {
  return values->whole != NULL ? values->whole : values->strategy.text;
}

/* Of files of programs only: why a candidate was refused, and what was chosen of a strategy space. */
typedef struct pl_program_values {
  pl_column_text256 reason;
  pl_column_text48 choices[PL_RESULT_CHOICES_MAX];
} pl_program_values;

typedef struct pl_result_row {
#define PL_RESULT_FIELD(type, field, unit, description) pl_column_##type field;
  PL_RESULT_COLUMNS(PL_RESULT_FIELD)
#undef PL_RESULT_FIELD
  int32_t status;                 /* pl_result_status; written last */
  double *features;               /* as core/graph/features.h says; NULL: not asked for */
  const pl_search_values *search; /* NULL: not of a search */
  pl_program_values program;      /* zeros: nothing to say */
} pl_result_row;

typedef enum pl_column_type {
  PL_COLUMN_i32,
  PL_COLUMN_i64,
  PL_COLUMN_f64,
  PL_COLUMN_u64,
  PL_COLUMN_text, /* of the column's size, whichever that is */
  PL_COLUMN_text16 = PL_COLUMN_text,
  PL_COLUMN_text48 = PL_COLUMN_text,
  PL_COLUMN_text256 = PL_COLUMN_text,
  PL_COLUMN_text512 = PL_COLUMN_text,
  PL_COLUMN_text1024 = PL_COLUMN_text
} pl_column_type;

typedef struct pl_column_info {
  const char *name;
  const char *unit;
  const char *description;
  pl_column_type type;
  uint32_t offset, size; /* in pl_result_row */
} pl_column_info;

/* All columns in the order above, `status` last: those of every file. Behind them `candidate`, the index of the row,
 * the features of one number per candidate, whose offset is in row->features, and the columns of searches, in
 * row->search.
 */
extern const pl_column_info pl_result_columns[];
extern const uint32_t pl_result_n_columns;
enum {
#define PL_RESULT_COUNT(type, field, unit, description) +1
  PL_RESULT_N_COLUMNS = 1 PL_RESULT_COLUMNS(PL_RESULT_COUNT),
#undef PL_RESULT_COUNT
  PL_RESULT_CANDIDATE = PL_RESULT_N_COLUMNS,
  PL_RESULT_FIRST_FEATURE,
  PL_RESULT_FIRST_SEARCH = PL_RESULT_FIRST_FEATURE + PL_N_FEATURES,
#define PL_SEARCH_COUNT(type, field, unit, description) +1
  PL_RESULT_N_ALL = PL_RESULT_FIRST_SEARCH PL_SEARCH_COLUMNS(PL_SEARCH_COUNT)
#undef PL_SEARCH_COUNT
};
/* Those that every file may have, and behind them, of one file, what a program's rows say (pl_program_values, at
 * offsets in the row). */
typedef struct pl_column_list {
  const pl_column_info *at;
  uint32_t n;
} pl_column_list;
enum { PL_RESULT_FIRST_PROGRAM = PL_RESULT_N_ALL, PL_RESULT_MOST = PL_RESULT_N_ALL + 1 + PL_RESULT_CHOICES_MAX };
extern const pl_column_list pl_result_column_list;
extern const pl_column_info pl_stage_feature_columns[PL_N_STAGE_FEATURES];
/* What throughput is said in: of models that know no tokens (pictures, clicks: sequences of one) "samples/s", else
 * "tokens/s". */
const char *pl_throughput_unit(double samples_per_s, double tokens_per_s);
/* Of every file, a feature or of searches; NULL when unknown. */
const pl_column_info *pl_result_column(const char *name);

#endif
