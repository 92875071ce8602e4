/* See workloads/lower/block_functions.h. */
#include "workloads/lower/block_functions.h"

#include "workloads/lower/block_program.h"

/* All of a shard that a function depends on. */
typedef struct layout {
  int32_t tmp, ep, cp, etp;
  bool sp, gathers;
  pl_dtype dtype;
  int64_t seq;
  const pl_framework *framework; /* whose kernels are kept with them */
  /* Of layers alone. */
  bool flash, fp8, fp4;
  pl_recompute recompute;
  uint8_t token_order;
} layout;

typedef struct pl_kept_functions {
  layout layout;
  pl_block_function *functions; /* by class */
  struct pl_kept_functions *next;
} kept_functions;

void pl_block_functions_init(pl_block_functions *functions, size_t most_bytes) {
  *functions = (pl_block_functions){.most_bytes = most_bytes};
  pl_arena_init(&functions->arena, 0);
}

void pl_block_functions_release(pl_block_functions *functions) {
  pl_arena_release(&functions->arena);
  functions->model = NULL;
}

void pl_block_functions_forget(pl_block_functions *functions) {
  functions->model = NULL;
}

static layout layout_of(const pl_block_shard *shard) {
  return (layout){.tmp = shard->tmp,
                  .ep = shard->ep > 1 ? shard->ep : 1,
                  .cp = shard->cp > 1 ? shard->cp : 1,
                  .etp = shard->etp > 1 ? shard->etp : 1,
                  .sp = shard->sp,
                  .gathers = shard->cp > 1 && shard->cp_gather,
                  .dtype = shard->dtype,
                  .seq = shard->seq,
                  .framework = pl_framework_or_ideal(shard->framework),
                  .flash = shard->flash,
                  .fp8 = shard->fp8,
                  .fp4 = shard->fp4,
                  .recompute = shard->recompute,
                  .token_order = shard->token_order};
}

static bool is_same(const layout *a, const layout *b) {
  return a->tmp == b->tmp && a->ep == b->ep && a->cp == b->cp && a->etp == b->etp && a->sp == b->sp &&
         a->gathers == b->gathers && a->dtype == b->dtype && a->seq == b->seq && a->framework == b->framework &&
         a->flash == b->flash && a->fp8 == b->fp8 && a->fp4 == b->fp4 && a->recompute == b->recompute &&
         a->token_order == b->token_order;
}

/* Kept functions that differ in what is said of layers alone; NULL: none. */
static const kept_functions *find_like(const pl_block_functions *functions, const layout *wanted) {
  for (const kept_functions *kept = functions->kept; kept != NULL; kept = kept->next) {
    layout like = kept->layout;
    like.flash = wanted->flash;
    like.fp8 = wanted->fp8;
    like.fp4 = wanted->fp4;
    like.recompute = wanted->recompute;
    like.token_order = wanted->token_order;
    if (is_same(&like, wanted)) return kept;
  }
  return NULL;
}

/* Of models of unlike blocks every class may hold layers. */
static bool is_no_layer(const pl_model *model, int32_t class_of_blocks) {
  return model->unlike.parts == NULL && class_of_blocks != PL_BLOCK_LAYER && class_of_blocks != PL_BLOCK_EXPERT_LAYER;
}

static void begin(pl_block_functions *functions, const pl_model *model) {
  if (functions->model == model && !functions->arena.failed &&
      pl_arena_used_bytes(&functions->arena) <= functions->most_bytes)
    return;
  pl_arena_reset(&functions->arena);
  functions->model = model;
  functions->kept = NULL;
}

static pl_code make(pl_block_functions *functions, const pl_model *model, const pl_block_shard *shard,
                    const pl_block_function **made, pl_error *error) {
  kept_functions *kept = PL_TAKE(&functions->arena, kept_functions, 1);
  int32_t n = pl_model_n_classes(model);
  if (kept != NULL) kept->functions = PL_TAKE(&functions->arena, pl_block_function, n);
  if (kept == NULL || kept->functions == NULL) return pl_fail_memory(error, "the functions of the blocks");
  kept->layout = layout_of(shard);
  const kept_functions *like = find_like(functions, &kept->layout);
  for (int32_t c = 0; c < n; c++) {
    if (like != NULL && is_no_layer(model, c))
      kept->functions[c] = like->functions[c];
    else
      PL_TRY(pl_block_function_take(model, c, shard, &functions->arena, &kept->functions[c], error));
  }
  kept->next = functions->kept;
  functions->kept = kept;
  functions->n_made++;
  *made = kept->functions;
  return PL_OK;
}

static pl_code find(pl_block_functions *functions, const pl_model *model, const pl_block_shard *shard,
                    const pl_block_function **found, pl_error *error) {
  const layout wanted = layout_of(shard);
  begin(functions, model);
  for (const kept_functions *kept = functions->kept; kept != NULL; kept = kept->next)
    if (is_same(&kept->layout, &wanted)) {
      functions->n_found++;
      *found = kept->functions;
      return PL_OK;
    }
  return make(functions, model, shard, found, error);
}

pl_code pl_block_functions_programs(pl_block_functions *functions, const pl_model *model, const pl_block_shard *shard,
                                    const pl_block_program *like, pl_arena *arena, const pl_block_program **blocks,
                                    pl_error *error) {
  const pl_block_function *of = NULL;
  int32_t n = pl_model_n_classes(model);
  for (int32_t c = 0; c < n; c++)
    PL_TRY(pl_block_check_class(model, c, shard, error));
  pl_block_program *made = PL_TAKE(arena, pl_block_program, n);
  if (made == NULL) return pl_fail_memory(error, "the programs of the blocks");
  PL_TRY(find(functions, model, shard, &of, error));
  for (int32_t c = 0; c < n; c++) {
    if (like != NULL && is_no_layer(model, c))
      made[c] = like[c];
    else
      PL_TRY(pl_block_program_make(model, c, shard, &of[c], arena, &made[c], error));
  }
  *blocks = made;
  return PL_OK;
}
