/* What frameworks are told by one number (see search/optimize/optimize.h). */
#include <string.h>

#include "search/optimize/optimize.h"

enum { TORCH_FIRST_BUCKET = 1 << 20 }; /* bytes; torch.distributed._DEFAULT_FIRST_BUCKET_BYTES */

/* DistributedDataParallel closes a bucket once it has reached the cap, the first one at 1 MiB; Horovod before it would
 * pass the threshold. Chain by chain, in the order in which gradients were ready. */
static void make_buckets(const pl_step_model *model, int64_t cap, bool torch, pl_step_plan *plan) {
  int64_t size = 0, limit = cap;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    bool begins = !pl_plan_can_join(model, k);
    if (begins) limit = torch && cap > TORCH_FIRST_BUCKET ? TORCH_FIRST_BUCKET : cap;
    bool closes = torch ? size >= limit : size + model->tensors[k].size_bytes > limit;
    plan->joins[k] = !begins && !closes;
    if (begins || closes) {
      if (!begins) limit = cap;
      size = 0;
    }
    size += model->tensors[k].size_bytes;
  }
}

static void cut(const pl_step_model *model, int64_t piece, pl_step_plan *plan) {
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    uint32_t end = pl_step_plan_end(model, plan, k);
    int64_t size = 0;
    for (uint32_t t = k; t < end; t++)
      size += model->tensors[t].size_bytes;
    int64_t parts = (size + piece - 1) / piece;
    plan->parts[k] = (uint8_t)(parts > PL_STEP_MOST_PARTS ? PL_STEP_MOST_PARTS : parts < 1 ? 1 : parts);
  }
}

typedef enum rule { TORCH, HOROVOD, BYTEPS } rule;

static pl_code try_sizes(pl_optimization *job, rule how, int64_t least, int64_t most, pl_step_plan *plan,
                         pl_framework_plan *out, pl_error *error) {
  static const char *const words[] = {"closed once they reach so many bytes, as torch does it",
                                      "of so many bytes at most, as Horovod does it", "of so many bytes"};
  pl_plan_search *search = &job->search;
  *out = (pl_framework_plan){-1, PL_TICKS_NEVER};
  for (int64_t cap = least, k = 0;; k++) { /* four per doubling */
    memcpy(plan->fuses, search->plan.fuses, job->coarse.n_units);
    memcpy(plan->narrows, search->plan.narrows, job->coarse.n_units);
    if (how == BYTEPS) {
      for (uint32_t t = 0; t < job->coarse.n_tensors; t++)
        plan->joins[t] = 0;
      cut(&job->coarse, cap, plan);
    } else {
      for (uint32_t t = 0; t < job->coarse.n_tensors; t++)
        plan->parts[t] = 0;
      make_buckets(&job->coarse, cap, how == TORCH, plan);
    }
    pl_ticks ticks = pl_plan_search_play(search, plan);
    if (ticks < 0) return pl_fail_memory(error, "buckets of a framework");
    if (ticks < out->ticks) *out = (pl_framework_plan){cap, ticks};
    pl_search_step step = {how == BYTEPS ? PL_MOVE_PIECES : PL_MOVE_CAP, 0, 0, words[how], 0, 0};
    step.value = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
    PL_TRY(pl_plan_search_offer(search, plan, ticks, step));
    if (cap >= most) return PL_OK;
    int64_t half = least << (k / 4);
    cap = half + half * (k % 4 + 1) / 4;
    if (cap > most) cap = most;
  }
}

pl_code pl_framework_plans_find(pl_optimization *job, const pl_optimize_options *options, pl_error *error) {
  const pl_step_model *model = &job->coarse;
  pl_step_plan plan;
  int64_t least = INT64_MAX, most = 0;
  job->ddp = job->horovod = job->byteps = (pl_framework_plan){-1, PL_TICKS_NEVER};
  bool any = options->passes.has[PL_PASS_TENSOR_FUSION] || options->passes.has[PL_PASS_TENSOR_PARTITION];
  if (!any || job->costs.n_without > 0) return PL_OK;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    if (model->tensors[k].size_bytes <= 0) return PL_OK;
    if (model->tensors[k].size_bytes < least) least = model->tensors[k].size_bytes;
    most += model->tensors[k].size_bytes;
  }
  if (!pl_step_plan_take(model, job->search.arena, &plan)) return pl_fail_memory(error, "buckets of a framework");
  if (options->passes.has[PL_PASS_TENSOR_FUSION]) {
    PL_TRY(try_sizes(job, TORCH, least, most, &plan, &job->ddp, error));
    PL_TRY(try_sizes(job, HOROVOD, least, most, &plan, &job->horovod, error));
  }
  if (options->passes.has[PL_PASS_TENSOR_PARTITION])
    PL_TRY(try_sizes(job, BYTEPS, most / PL_STEP_MOST_PARTS + 1, most, &plan, &job->byteps, error));
  return PL_OK;
}
