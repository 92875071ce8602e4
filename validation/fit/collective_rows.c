/* See validation/fit/collective_rows.h. */
#include "validation/fit/collective_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/printable.h"
#include "core/text/csv.h"
#include "netmodel/platform/platform.h"

enum { MOST_MEMBERS = 4096 };

typedef struct reading {
  const char *path, *platform;
  const pl_collective_profile *profile;
  pl_arena *arena;
  pl_csv csv;
  uint32_t system, role, platform_column, op, n_gpus, n_nodes, members, size, time; /* columns */
  pl_collective_rows *rows;
  const char **platforms; /* per row */
  pl_error *error;
} reading;

static pl_code find_columns(reading *state) {
  const struct {
    const char *name;
    uint32_t *column;
    bool needed;
  } columns[] = {{"system", &state->system, false},
                 {"role", &state->role, false},
                 {"platform", &state->platform_column, false},
                 {"op", &state->op, true},
                 {"n_gpus", &state->n_gpus, true},
                 {"n_nodes", &state->n_nodes, false},
                 {"members", &state->members, false},
                 {"size_bytes", &state->size, true},
                 {"time_us", &state->time, true}};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    *columns[i].column = pl_csv_column(&state->csv, columns[i].name);
    if (columns[i].needed && *columns[i].column == PL_CSV_NO_COLUMN)
      return pl_fail(state->error, PL_BAD_INPUT,
                     "%s: no column '%s'; measured collectives need op, n_gpus, size_bytes and time_us", state->path,
                     columns[i].name);
  }
  return PL_OK;
}

static pl_code read_positive(reading *state, uint32_t row, uint32_t column, const char *name, double most,
                             double *value) {
  bool given;
  PL_TRY(pl_csv_number(&state->csv, row, column, &given, value, state->error));
  if (given && *value > 0 && *value <= most) return PL_OK;
  return pl_csv_fail(&state->csv, row, state->error, "%s is '%s': it must be more than 0 and at most %g", name,
                     pl_csv_cell(&state->csv, row, column), most);
}

static pl_code read_count(reading *state, uint32_t row, uint32_t column, const char *name, uint32_t *count) {
  double value;
  PL_TRY(read_positive(state, row, column, name, MOST_MEMBERS, &value));
  *count = (uint32_t)value;
  if (value == (double)*count) return PL_OK;
  return pl_csv_fail(&state->csv, row, state->error, "%s is %g: it must be a whole number", name, value);
}

static pl_code read_kind(reading *state, uint32_t row, pl_collective_kind *kind) {
  const char *name = pl_csv_cell(&state->csv, row, state->op);
  for (int k = 0; k < PL_COLLECTIVE_COUNT; k++)
    if (strcmp(name, pl_collective_name((pl_collective_kind)k)) == 0) {
      *kind = (pl_collective_kind)k;
      return PL_OK;
    }
  return pl_csv_fail(&state->csv, row, state->error,
                     "op '%.32s' is none of all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send", name);
}

static const char *system_of(reading *state, uint32_t row) {
  const char *name = pl_printable_name(pl_csv_cell(&state->csv, row, state->system), state->arena);
  if (name == NULL) name = "?"; /* the arena remembers */
  if (name[0] == '\0') name = "measured";
  for (uint32_t before = row; before-- > 0;) /* mostly the row before */
    if (strcmp(state->rows->rows[before].system, name) == 0) return state->rows->rows[before].system;
  return name;
}

/* Chosen before anybody looked at an error. */
static bool is_kept_out(const pl_collective_row *row) {
  pl_digest digest;
  uint64_t numbers[] = {(uint64_t)row->kind, row->n_gpus, (uint64_t)row->size_bytes};
  pl_digest_init(&digest);
  pl_digest_bytes(&digest, row->system, strlen(row->system));
  pl_digest_bytes(&digest, numbers, sizeof numbers);
  return digest.value % 4 == 0;
}

static pl_code read_role(reading *state, uint32_t index, pl_collective_row *row) {
  const char *role = pl_csv_cell(&state->csv, index, state->role);
  if (role[0] != '\0' && strcmp(role, "fit") != 0 && strcmp(role, "check") != 0)
    return pl_csv_fail(&state->csv, index, state->error, "role '%.32s' is neither fit nor check", role);
  row->role = strcmp(role, "check") == 0 ? PL_ROW_KEPT_SYSTEM : is_kept_out(row) ? PL_ROW_KEPT_SIZE : PL_ROW_FIT;
  return PL_OK;
}

/* Relative to the folder of the CSV file. */
static pl_code read_platform(reading *state, uint32_t row) {
  const char *name = pl_csv_cell(&state->csv, row, state->platform_column), *slash = strrchr(state->path, '/');
  state->platforms[row] = state->platform;
  if (name[0] == '\0' && state->platform == NULL)
    return pl_csv_fail(&state->csv, row, state->error, "no platform; say --platform FILE or give a column 'platform'");
  if (name[0] == '\0') return PL_OK;
  int folder = slash != NULL && name[0] != '/' ? (int)(slash - state->path) + 1 : 0;
  state->platforms[row] = pl_arena_printf(state->arena, "%.*s%s", folder, state->path, name);
  return state->platforms[row] != NULL ? PL_OK : pl_fail_memory(state->error, "measured collectives");
}

static pl_code read_row(reading *state, uint32_t index) {
  pl_collective_row *row = &state->rows->rows[index];
  row->line = state->csv.lines[index];
  row->system = system_of(state, index);
  row->n_nodes = 1;
  PL_TRY(read_kind(state, index, &row->kind));
  PL_TRY(read_count(state, index, state->n_gpus, "n_gpus", &row->n_gpus));
  if (pl_csv_cell(&state->csv, index, state->n_nodes)[0] != '\0')
    PL_TRY(read_count(state, index, state->n_nodes, "n_nodes", &row->n_nodes));
  if (row->n_gpus < 2 || row->n_gpus % row->n_nodes != 0)
    return pl_csv_fail(&state->csv, index, state->error, "%u GPUs on %u nodes: at least 2, the same number on each",
                       row->n_gpus, row->n_nodes);
  PL_TRY(read_positive(state, index, state->size, "size_bytes", 1e15, &row->size_bytes));
  PL_TRY(read_positive(state, index, state->time, "time_us", 1e12, &row->measured_us));
  PL_TRY(read_role(state, index, row));
  return read_platform(state, index);
}

/* ---- groups ---- */

static pl_code list_members(reading *state, uint32_t index, const pl_cluster *cluster, uint32_t *members) {
  const pl_collective_row *row = &state->rows->rows[index];
  const char *text = pl_csv_cell(&state->csv, index, state->members);
  uint32_t per_node = row->n_gpus / row->n_nodes, n = 0;
  if (text[0] != '\0') {
    char *end = NULL;
    for (; n < row->n_gpus; n++, text = end) {
      unsigned long device = strtoul(text, &end, 10);
      if (end == text || device >= cluster->n_devices)
        return pl_csv_fail(&state->csv, index, state->error, "members: %u devices from 0 to %u are needed, as in '0 3'",
                           row->n_gpus, cluster->n_devices - 1);
      members[n] = (uint32_t)device;
    }
    return PL_OK;
  }
  for (uint32_t k = 0; k < row->n_nodes; k++)
    for (uint32_t i = 0; i < per_node; i++) {
      if (k >= cluster->n_nodes || i >= cluster->nodes[k].n_devices)
        return pl_csv_fail(&state->csv, index, state->error,
                           "%u nodes with %u GPUs each: %s has only %u nodes, %u GPUs", row->n_nodes, per_node,
                           cluster->path, cluster->n_nodes, cluster->n_devices);
      members[n++] = cluster->nodes[k].first_device + i;
    }
  return PL_OK;
}

static pl_code weigh_row(reading *state, uint32_t index, const pl_cluster *cluster, pl_arena *scratch) {
  pl_collective_row *row = &state->rows->rows[index];
  const pl_collective_options options = {.profile = state->profile};
  pl_collective_group *group;
  pl_arena_mark mark = pl_arena_mark_here(scratch);
  uint32_t *members = PL_TAKE(scratch, uint32_t, row->n_gpus);
  if (members == NULL) return pl_fail_memory(state->error, "a group");
  PL_TRY(list_members(state, index, cluster, members));
  PL_TRY(pl_collective_group_take(cluster, members, row->n_gpus, &options, scratch, &group, state->error));
  PL_TRY(pl_collective_weigh(group, row->kind, row->size_bytes, scratch, &row->weighing, state->error));
  pl_arena_release_to(scratch, mark);
  if (row->weighing.n_works > 0) return PL_OK;
  return pl_csv_fail(&state->csv, index, state->error, "no entry of %s fits the links of %s", state->profile->path,
                     cluster->path);
}

static pl_code weigh_platform(reading *state, const char *path, bool *done) {
  pl_platform *platform;
  pl_arena scratch;
  PL_TRY(pl_platform_load(path, NULL, &platform, state->error));
  pl_arena_init(&scratch, 0);
  pl_code code = PL_OK;
  for (uint32_t i = 0; i < state->rows->n && code == PL_OK; i++) {
    if (done[i] || strcmp(state->platforms[i], path) != 0) continue;
    done[i] = true;
    code = weigh_row(state, i, pl_platform_cluster(platform), &scratch);
  }
  pl_arena_release(&scratch);
  pl_platform_destroy(platform);
  return code;
}

pl_code pl_collective_rows_load(const char *path, const char *platform, const pl_collective_profile *profile,
                                pl_arena *arena, pl_collective_rows *rows, pl_error *error) {
  reading state = {
      .path = path, .platform = platform, .profile = profile, .arena = arena, .rows = rows, .error = error};
  PL_TRY(pl_csv_load(path, arena, &state.csv, error));
  PL_TRY(find_columns(&state));
  rows->n = state.csv.n_rows;
  rows->rows = PL_TAKE(arena, pl_collective_row, rows->n);
  state.platforms = PL_TAKE(arena, const char *, rows->n);
  bool *done = PL_TAKE(arena, bool, rows->n);
  if (arena->failed) return pl_fail_memory(error, "measured collectives");
  for (uint32_t i = 0; i < rows->n; i++)
    PL_TRY(read_row(&state, i));
  for (uint32_t i = 0; i < rows->n; i++)
    if (!done[i]) PL_TRY(weigh_platform(&state, state.platforms[i], done));
  return PL_OK;
}

double pl_collective_row_us(const pl_collective_row *row) {
  double best_us = INFINITY;
  for (uint32_t i = 0; i < row->weighing.n_works; i++) {
    pl_tuned_time time = pl_tuned_time_of(row->weighing.inside, row->weighing.between, &row->weighing.works[i]);
    best_us = fmin(best_us, time.latency_us + time.transfer_us);
  }
  return best_us;
}
