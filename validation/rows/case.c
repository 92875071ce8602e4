/* Merging rows into cases and expressing them (see validation/rows/case.h). */
#include "validation/rows/case.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/digest.h"
#include "core/base/hash_index.h"
#include "validation/rows/assume.h"
#include "validation/rows/case_shared.h"
#include "validation/rows/program_row.h"
#include "validation/statistics/statistics.h"

/* What a recipe sets, where the notes say: "recipe of SOFTWARE: SETTING; SETTING". */
static const char *settings_of(const pl_measured_row *row) {
  const char *recipe = strstr(row->notes, "recipe of ");
  const char *settings = recipe != NULL ? strstr(recipe, ": ") : NULL;
  return settings != NULL ? settings : "";
}

/* Everything that says what ran; not what came out, nor who says so. */
static uint64_t configuration(const pl_measured_row *row) {
  pl_digest digest;
  pl_digest_init(&digest);
  const char *const texts[] = {row->schedule,   row->tied_embeddings, row->norms,      row->reshard_after_forward,
                               row->family,     row->model,           row->gpu,        row->interconnect,
                               row->framework,  row->precision,       row->mlp_type,   row->fsdp,
                               row->recompute,  row->assign,          row->program,    row->platform,
                               row->model_file, row->strategy,        settings_of(row)};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    pl_digest_text(&digest, texts[i]);
#define PL_MEASURED_COUNT(name, lowest, absent) pl_digest_u64(&digest, (uint64_t)row->name);
  PL_MEASURED_COUNTS(PL_MEASURED_COUNT)
#undef PL_MEASURED_COUNT
  pl_digest_f64(&digest, isnan(row->power_w) ? 0 : row->power_w);
  pl_digest_u64(&digest, pl_measured_crashed(row));
  pl_digest_u64(&digest, pl_row_overlaps_experts(row));
  if (row->defect != NULL) pl_digest_text(&digest, row->defect);
  pl_error absent = PL_ERROR_INIT; /* an optimizer that only the notes name is none of those beside it */
  if (pl_row_check_absent(row, &absent) != PL_OK) pl_digest_text(&digest, absent.message);
  if (pl_row_mentions(row->notes, "NCCL_IB_DISABLE=1")) pl_digest_text(&digest, "sockets");
  return digest.value;
}

/* One entry per row: its case, and the next row of that case. */
typedef struct member {
  const pl_measured_row *row;
  uint32_t next; /* UINT32_MAX at the end */
} member;

typedef struct merger {
  pl_cases *cases;
  member *members;
  uint32_t *first, *last; /* members, per case */
  double *values;         /* scratch: as many as rows */
} merger;

static double median_of(const merger *m, uint32_t c, double (*value)(const pl_measured_row *)) {
  uint32_t n = 0;
  for (uint32_t i = m->first[c]; i != UINT32_MAX; i = m->members[i].next) {
    double v = value(m->members[i].row);
    if (!isnan(v)) m->values[n++] = v;
  }
  return pl_median(m->values, n);
}

static double memory_bytes(const pl_measured_row *row) {
  return row->mem_gb * 1024 * 1024 * 1024;
}

static pl_code merge(merger *m, const pl_measured *tables, uint32_t n_tables, pl_arena *arena, pl_error *error) {
  pl_hash_index index = {0};
  uint32_t i = 0;
  for (uint32_t t = 0; t < n_tables; t++)
    for (uint32_t r = 0; r < tables[t].n_rows; r++, i++) {
      const pl_measured_row *row = &tables[t].rows[r];
      uint64_t hash = configuration(row);
      uint32_t probe = 0;
      pl_case *found = (pl_case *)(uintptr_t)pl_hash_index_find(&index, hash, &probe);
      m->members[i] = (member){row, UINT32_MAX};
      if (found != NULL) {
        uint32_t c = (uint32_t)(found - m->cases->cases);
        m->members[m->last[c]].next = i;
        m->last[c] = i;
        found->n_rows++;
        continue;
      }
      uint32_t c = m->cases->n_cases++;
      m->first[c] = m->last[c] = i;
      m->cases->cases[c] =
          (pl_case){.row = row, .n_rows = 1, .crashed = pl_measured_crashed(row), .interval = pl_interval_none()};
      if (!pl_hash_index_put(&index, hash, &m->cases->cases[c], arena)) return pl_fail_memory(error, "the rows");
    }
  return PL_OK;
}

pl_code pl_cases_take(const pl_measured *tables, uint32_t n_tables, pl_arena *arena, pl_cases *cases, pl_error *error) {
  *cases = (pl_cases){0};
  for (uint32_t t = 0; t < n_tables; t++)
    cases->n_rows += tables[t].n_rows;
  merger m = {.cases = cases,
              .members = PL_TAKE(arena, member, cases->n_rows),
              .first = PL_TAKE(arena, uint32_t, cases->n_rows),
              .last = PL_TAKE(arena, uint32_t, cases->n_rows),
              .values = PL_TAKE(arena, double, cases->n_rows)};
  cases->cases = PL_TAKE(arena, pl_case, cases->n_rows);
  if (arena->failed) return pl_fail_memory(error, "the rows");
  PL_TRY(merge(&m, tables, n_tables, arena, error));
  for (uint32_t c = 0; c < cases->n_cases; c++) {
    cases->cases[c].measured_s = median_of(&m, c, pl_measured_step_s);
    cases->cases[c].measured_mem_bytes = median_of(&m, c, memory_bytes);
  }
  return PL_OK;
}

/* ---- expressing ---- */

enum { FRAMEWORKS_MAX = 32 };

/* Each profile is read once. */
typedef struct framework_list {
  pl_framework profiles[FRAMEWORKS_MAX];
  uint32_t n;
} framework_list;

/* Into the case's own; PL_UNSUPPORTED or PL_BAD_INPUT where there is none of that name. */
static pl_code load_framework(pl_case *c, const char *name, framework_list *list, pl_arena *arena, pl_error *error) {
  for (uint32_t i = 0; i < list->n; i++)
    if (strcmp(list->profiles[i].name, name) == 0) {
      c->framework = list->profiles[i];
      return PL_OK;
    }
  PL_TRY(pl_framework_load(name, arena, &c->framework, error));
  if (list->n < FRAMEWORKS_MAX) list->profiles[list->n++] = c->framework;
  return PL_OK;
}

/* Of a row that has a strategy: the profile that its column `framework` names as --framework does. */
static bool is_named(pl_case *c, framework_list *list, pl_arena *arena) {
  const pl_measured_row *row = c->row;
  pl_error none = PL_ERROR_INIT;
  return row->strategy[0] != '\0' && row->framework[0] != '\0' && strchr(row->framework, '/') == NULL &&
         load_framework(c, row->framework, list, arena, &none) == PL_OK &&
         strcmp(c->framework.name, row->framework) == 0;
}

static pl_code find_framework(pl_case *c, const pl_case_options *options, framework_list *list, pl_arena *arena,
                              pl_error *error) {
  c->habits = pl_row_habits_of(c->row);
  c->habits.is_named = options->framework != NULL;
  if (options->framework != NULL) {
    c->habits.framework = options->framework;
  } else if (is_named(c, list, arena)) {
    c->habits.framework = c->row->framework;
    c->habits.is_named = true;
  }
  pl_error why = PL_ERROR_INIT;
  pl_code code = load_framework(c, c->habits.framework, list, arena, &why);
  return code == PL_OK ? PL_OK : pl_fail(error, code == PL_UNSUPPORTED ? PL_BAD_INPUT : code, "%s", why.message);
}

/* That of all rows, the row's own, or the machines that its columns tell of. */
static pl_code find_platform(pl_case *c, const pl_case_options *options, pl_arena *arena, pl_error *error) {
  const pl_measured_row *row = c->row;
  if (options->platform_path != NULL) {
    c->platform = options->platform_path;
  } else if (row->platform[0] != '\0') {
    c->platform = pl_row_beside(row, row->platform, arena);
  } else {
    char made[PL_ROW_PLATFORM_BYTES];
    PL_TRY(pl_row_cluster(row, &c->plan, made, error));
    c->platform = pl_arena_strdup(arena, made);
  }
  return c->platform != NULL ? PL_OK : pl_fail_memory(error, "the names of the platforms");
}

static pl_code express(pl_case *c, const pl_csv *known, const pl_case_options *options, framework_list *profiles,
                       pl_arena *arena, pl_error *error) {
  const pl_measured_row *row = c->row;
  if (row->defect != NULL) return pl_fail(error, PL_UNSUPPORTED, "cell: %s", row->defect);
  if (strcasecmp(row->status, "ended otherwise") == 0)
    return pl_fail(error, PL_UNSUPPORTED, "status: 'ended otherwise': no verdict on memory");
  if (!c->crashed && isnan(c->measured_s) && isnan(c->measured_mem_bytes) && row->measured_rank == 0)
    return pl_fail(error, PL_UNSUPPORTED, "not stated: step_time_s");
  if (row->program[0] != '\0') return pl_program_row_express(c, options, arena, error);
  PL_TRY(find_framework(c, options, profiles, arena, error));
  PL_TRY(pl_row_check_counts(row, &c->habits, error));
  PL_TRY(pl_row_check_words(row, error));
  PL_TRY(pl_row_check_absent(row, error));
  if (!c->habits.is_named) pl_row_choose(row, &c->habits, &c->framework);
  if (options->allocator != NULL) c->framework.memory.allocator = *options->allocator;
  pl_model *model = PL_TAKE(arena, pl_model, 1);
  if (model == NULL) return pl_fail_memory(error, "the models");
  PL_TRY(find_platform(c, options, arena, error));
  if (strcmp(c->habits.framework, "nemo") == 0) c->habits.vpp = pl_row_recipe_vpp(row, known);
  PL_TRY(pl_row_model(row, &c->habits, known, arena, model, error));
  c->model = model;
  PL_TRY(pl_row_check_experts(row, model->moe.n_experts, error)); /* which only models.csv or a file may say */
  PL_TRY(pl_row_job(row, &c->habits, &c->framework, &c->job, error));
  c->job.op_profile = options->op_profile;
  PL_TRY(pl_row_strategy(row, &c->habits, model, &c->job, arena, &c->strategy, error));
  return pl_case_assume(c, arena, error);
}

pl_code pl_cases_express(pl_cases *cases, const pl_csv *known_models, const pl_case_options *options, pl_arena *arena,
                         pl_error *error) {
  framework_list *profiles = PL_TAKE(arena, framework_list, 1);
  pl_case_shared shared;
  if (profiles == NULL) return pl_fail_memory(error, "the frameworks");
  PL_TRY(pl_case_shared_take(cases->n_cases, arena, &shared, error));
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    pl_error why = PL_ERROR_INIT;
    pl_case *c = &cases->cases[i];
    pl_code code = express(c, known_models, options, profiles, arena, &why);
    if (code == PL_OK && c->program == NULL) pl_case_share(&shared, c);
    if (code == PL_OK) continue;
    if (code != PL_UNSUPPORTED) return pl_fail(error, code, "%s", why.message);
    c->reason = pl_arena_strdup(arena, why.message);
    if (c->reason == NULL) return pl_fail_memory(error, "the reasons");
  }
  return PL_OK;
}
