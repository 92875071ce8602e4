/* See workloads/cost/op_profile.h. */
#include "workloads/cost/op_profile.h"

#include <string.h>

#include "core/base/digest.h"
#include "core/text/csv.h"

/* clang-format off */
enum { DEVICE, BLOCK, PASS, DTYPE, TIME, HIDDEN, SEQ, FFN_HIDDEN, N_HEADS, N_KV_HEADS, VOCAB, TMP, MBS, COLLECTIVES,
       SOURCE, N_COLUMNS };
/* clang-format on */
static const struct {
  const char *name;
  bool is_needed;
} columns[N_COLUMNS] = {
    [DEVICE] = {"device", true},    [BLOCK] = {"block", true},
    [PASS] = {"pass", true},        [DTYPE] = {"dtype", true},
    [TIME] = {"time_s", true},      [HIDDEN] = {"hidden", true},
    [SEQ] = {"seq", true},          [FFN_HIDDEN] = {"ffn_hidden", false},
    [N_HEADS] = {"n_heads", false}, [N_KV_HEADS] = {"n_kv_heads", false},
    [VOCAB] = {"vocab", false},     [TMP] = {"tmp", false},
    [MBS] = {"mbs", false},         [COLLECTIVES] = {"collectives", false},
    [SOURCE] = {"source", false},
};

typedef struct reader {
  const pl_csv *csv;
  uint32_t row, column[N_COLUMNS];
  pl_error *error;
} reader;

static const char *cell(const reader *r, int column) {
  return pl_csv_cell(r->csv, r->row, r->column[column]);
}

static pl_code find_columns(reader *r) {
  for (uint32_t c = 0; c < r->csv->n_columns; c++) {
    int known = 0;
    while (known < N_COLUMNS && strcmp(columns[known].name, r->csv->header[c]) != 0)
      known++;
    if (known == N_COLUMNS)
      return pl_fail(r->error, PL_BAD_INPUT,
                     "%s: column '%s' is unknown; columns of an op profile are device, block, pass, dtype, time_s, "
                     "hidden, seq, ffn_hidden, n_heads, n_kv_heads, vocab, tmp, mbs, collectives, source",
                     r->csv->name, r->csv->header[c]);
  }
  for (int i = 0; i < N_COLUMNS; i++) {
    r->column[i] = pl_csv_column(r->csv, columns[i].name);
    if (columns[i].is_needed && r->column[i] == PL_CSV_NO_COLUMN)
      return pl_fail(r->error, PL_BAD_INPUT, "%s: column '%s' is missing", r->csv->name, columns[i].name);
  }
  return PL_OK;
}

/* A whole number from 1; `absent` where the cell is empty, which a needed column's must not be. */
static pl_code read_count(const reader *r, int column, int64_t absent, int64_t *count) {
  bool given = false;
  double value = 0;
  *count = absent;
  PL_TRY(pl_csv_number(r->csv, r->row, r->column[column], &given, &value, r->error));
  if (!given && !columns[column].is_needed) return PL_OK;
  if (!given) return pl_csv_fail(r->csv, r->row, r->error, "column '%s' is empty", columns[column].name);
  if (!(value >= 1 && value <= INT32_MAX && value == (double)(int64_t)value))
    return pl_csv_fail(r->csv, r->row, r->error, "column '%s': %s is no whole number from 1 to %d",
                       columns[column].name, cell(r, column), INT32_MAX);
  *count = (int64_t)value;
  return PL_OK;
}

static pl_code read_words(const reader *r, pl_pass_time *time) {
  int kind = 0, dtype = pl_dtype_from_alias(cell(r, DTYPE));
  while (kind < PL_BLOCK_KIND_COUNT && strcmp(cell(r, BLOCK), pl_block_kind_name((pl_block_kind)kind)) != 0)
    kind++;
  if (kind == PL_BLOCK_KIND_COUNT || kind == PL_BLOCK_IDENTITY)
    return pl_csv_fail(r->csv, r->row, r->error,
                       "column 'block': '%s' is unknown; choose one of embedding, layer, expert_layer, final_norm, "
                       "head, loss",
                       cell(r, BLOCK));
  time->block = (pl_block_kind)kind;
  time->backward = strcmp(cell(r, PASS), "backward") == 0;
  if (!time->backward && strcmp(cell(r, PASS), "forward") != 0)
    return pl_csv_fail(r->csv, r->row, r->error, "column 'pass': '%s' is neither forward nor backward", cell(r, PASS));
  if (dtype < 0 || dtype >= PL_DTYPE_FP8)
    return pl_csv_fail(r->csv, r->row, r->error,
                       "column 'dtype': '%s' is unknown; choose one of fp32, tf32, fp16, bf16", cell(r, DTYPE));
  time->dtype = (pl_dtype)dtype;
  const char *collectives = cell(r, COLLECTIVES);
  time->has_collectives = strcmp(collectives, "inside") == 0;
  if (collectives[0] != '\0' && !time->has_collectives && strcmp(collectives, "none") != 0)
    return pl_csv_fail(r->csv, r->row, r->error, "column 'collectives': '%s' is neither inside nor none", collectives);
  time->device = cell(r, DEVICE);
  if (time->device[0] == '\0') return pl_csv_fail(r->csv, r->row, r->error, "column 'device' is empty");
  return PL_OK;
}

static pl_code read_row(const reader *r, pl_pass_time *time) {
  int64_t tmp = 1, mbs = 1;
  bool given = false;
  *time = (pl_pass_time){.n_rows = 1};
  PL_TRY(read_words(r, time));
  PL_TRY(read_count(r, HIDDEN, 0, &time->hidden));
  PL_TRY(read_count(r, SEQ, 0, &time->seq));
  PL_TRY(read_count(r, FFN_HIDDEN, 0, &time->ffn_hidden));
  PL_TRY(read_count(r, N_HEADS, 0, &time->n_heads));
  PL_TRY(read_count(r, N_KV_HEADS, 0, &time->n_kv_heads));
  PL_TRY(read_count(r, VOCAB, 0, &time->vocab));
  PL_TRY(read_count(r, TMP, 1, &tmp));
  PL_TRY(read_count(r, MBS, 1, &mbs));
  PL_TRY(pl_csv_number(r->csv, r->row, r->column[TIME], &given, &time->time_s, r->error));
  if (!given || !(time->time_s > 0))
    return pl_csv_fail(r->csv, r->row, r->error, "column 'time_s': '%s' is no time in seconds above 0", cell(r, TIME));
  time->tmp = (int32_t)tmp;
  time->mbs = (int32_t)mbs;
  if (time->tmp == 1) time->has_collectives = false;
  return PL_OK;
}

static bool say_the_same(const pl_pass_time *a, const pl_pass_time *b) {
  return strcmp(a->device, b->device) == 0 && a->block == b->block && a->dtype == b->dtype &&
         a->backward == b->backward && a->has_collectives == b->has_collectives && a->hidden == b->hidden &&
         a->seq == b->seq && a->ffn_hidden == b->ffn_hidden && a->n_heads == b->n_heads &&
         a->n_kv_heads == b->n_kv_heads && a->vocab == b->vocab && a->tmp == b->tmp && a->mbs == b->mbs;
}

/* Sums while rows come in, means in the end. */
static pl_code read_rows(reader *r, pl_pass_time *times, uint32_t *n_times) {
  for (r->row = 0; r->row < r->csv->n_rows; r->row++) {
    pl_pass_time time;
    uint32_t i = 0;
    PL_TRY(read_row(r, &time));
    while (i < *n_times && !say_the_same(&times[i], &time))
      i++;
    if (i == *n_times) {
      times[(*n_times)++] = time;
      continue;
    }
    times[i].time_s += time.time_s;
    times[i].n_rows++;
  }
  for (uint32_t i = 0; i < *n_times; i++)
    times[i].time_s /= times[i].n_rows;
  return PL_OK;
}

static uint64_t digest_of(const pl_csv *csv) {
  pl_digest digest;
  pl_digest_init(&digest);
  for (uint32_t c = 0; c < csv->n_columns; c++)
    pl_digest_text(&digest, csv->header[c]);
  for (size_t i = 0; i < (size_t)csv->n_rows * csv->n_columns; i++)
    pl_digest_text(&digest, csv->cells[i]);
  return digest.value;
}

static pl_code make(const pl_csv *csv, pl_arena *arena, pl_op_profile *profile, pl_error *error) {
  reader r = {.csv = csv, .error = error};
  PL_TRY(find_columns(&r));
  if (csv->n_rows == 0) return pl_fail(error, PL_BAD_INPUT, "%s: no rows", csv->name);
  pl_pass_time *times = PL_TAKE(arena, pl_pass_time, csv->n_rows);
  uint32_t n_times = 0;
  if (times == NULL) return pl_fail_memory(error, "the op profile");
  PL_TRY(read_rows(&r, times, &n_times));
  *profile = (pl_op_profile){.path = csv->name, .digest = digest_of(csv), .times = times, .n_times = n_times};
  return PL_OK;
}

pl_code pl_op_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_op_profile *profile,
                            pl_error *error) {
  pl_csv csv;
  *profile = (pl_op_profile){.n_times = 0};
  PL_TRY(pl_csv_parse(name, text, size, arena, &csv, error));
  return make(&csv, arena, profile, error);
}

pl_code pl_op_profile_load(const char *path, pl_arena *arena, pl_op_profile *profile, pl_error *error) {
  pl_csv csv;
  *profile = (pl_op_profile){.n_times = 0};
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  return make(&csv, arena, profile, error);
}

bool pl_pass_time_is_of(const pl_pass_time *time, const pl_model *model, int32_t block_class, pl_dtype dtype,
                        int64_t seq) {
  pl_block_kind kind = pl_model_class_kind(model, block_class);
  if (model->unlike.parts != NULL) {
    if (seq != model->positions.max_positions) return false;
    seq = model->unlike.parts[block_class].rows;
    model = model->unlike.parts[block_class].model;
  }
  return time->block == kind && time->dtype == dtype && time->seq == seq && time->hidden == model->width.hidden &&
         (time->ffn_hidden == 0 || time->ffn_hidden == model->width.ffn_hidden) &&
         (time->n_heads == 0 || time->n_heads == model->attention.n_heads) &&
         (time->n_kv_heads == 0 || time->n_kv_heads == model->attention.n_kv_heads) &&
         (time->vocab == 0 || time->vocab == model->width.vocab);
}

bool pl_op_profile_applies(const pl_op_profile *profile, const pl_model *model, pl_dtype dtype, int64_t seq,
                           const pl_cluster *cluster) {
  for (uint32_t i = 0; i < profile->n_times; i++)
    for (uint32_t p = 0; p < cluster->n_profiles; p++)
      for (int32_t c = 0; c < pl_model_n_classes(model); c++)
        if (strcmp(profile->times[i].device, cluster->profiles[p].name) == 0 &&
            pl_pass_time_is_of(&profile->times[i], model, c, dtype, seq))
          return true;
  return false;
}
