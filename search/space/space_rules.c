/* Why a combination is no candidate (search/space/space.h), and the words for it. */
#include <stdio.h>

#include "search/space/space.h"

/* ---- the rules ---- */

static bool breaks_tensor_rule(const pl_model *model, const pl_candidate *candidate, pl_space_reason *reason) {
  int64_t tmp = candidate->tmp;
  if (model->attention.n_heads % tmp != 0) return *reason = PL_DROP_HEADS, true;
  if (model->attention.n_kv_heads % tmp != 0 && tmp % model->attention.n_kv_heads != 0)
    return *reason = PL_DROP_KV_HEADS, true;
  int64_t width;
  if (!pl_model_splits_mlp(model, candidate->tmp, &width)) return *reason = PL_DROP_FFN, true;
  return false;
}

static bool breaks_batch_rule(const pl_job *job, const pl_candidate *candidate, pl_space_reason *reason) {
  if (job->gbs % candidate->dp != 0) return *reason = PL_DROP_GBS, true;
  if (job->gbs / candidate->dp % candidate->mbs != 0) return *reason = PL_DROP_MBS, true;
  return false;
}

static bool breaks_pipeline_rule(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason) {
  const pl_job *job = space->job;
  if (candidate->pp > space->model->n_layers) return *reason = PL_DROP_STAGES, true;
  int64_t n_microbatches = job->gbs / candidate->dp / candidate->mbs;
  if (candidate->schedule == PL_SCHEDULE_DUALPIPE &&
      (candidate->pp % 2 != 0 || n_microbatches % 2 != 0 || n_microbatches < 2 * (int64_t)candidate->pp))
    return *reason = PL_DROP_TWO_ENDS, true;
  if (candidate->vpp == 1) return false;
  if (space->model->n_layers % ((int64_t)candidate->pp * candidate->vpp) != 0) return *reason = PL_DROP_CHUNKS, true;
  if (candidate->schedule == PL_SCHEDULE_INTERLEAVED && n_microbatches % candidate->pp != 0)
    return *reason = PL_DROP_ROUNDS, true;
  if (candidate->schedule == PL_SCHEDULE_DUALPIPE_V && n_microbatches < 2 * (int64_t)candidate->pp)
    return *reason = PL_DROP_FEW_MICROBATCHES, true;
  return false;
}

/* As workloads/program/program.c has it. */
static bool breaks_gradient_rule(const pl_job *job, const pl_candidate *candidate, pl_space_reason *reason) {
  if (pl_framework_or_ideal(job->framework)->gradients.life != PL_GRADIENTS_CONSUMED) return false;
  bool once = job->gbs / candidate->dp == candidate->mbs, alone = (int64_t)candidate->dp * candidate->cp == 1;
  if (once && (alone || candidate->zero >= 2)) return false;
  return *reason = PL_DROP_CONSUMED, true;
}

/* Of cp and ep. */
static bool breaks_group_rule(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason) {
  const pl_model *model = space->model;
  int64_t ranks = (int64_t)candidate->dp * candidate->cp * candidate->tmp, chunks = candidate->cp;
  if (model->attention.causal) chunks *= 2;
  if (candidate->cp > 1 && (space->job->seq % chunks != 0 || !space->job->flash))
    return *reason = PL_DROP_CONTEXT, true;
  if (candidate->ep > 1 && (model->moe.n_experts == 0 || model->moe.n_experts % candidate->ep != 0))
    return *reason = PL_DROP_EXPERTS, true;
  if ((candidate->cuts_experts ? ranks / candidate->tmp : ranks) % candidate->ep != 0)
    return *reason = PL_DROP_EXPERT_RANKS, true;
  if (model->moe.n_experts > 0 && candidate->tmp > 1 && !candidate->sp) return *reason = PL_DROP_EXPERT_SEQUENCE, true;
  return false;
}

/* Stages that shard gradients, with a pipeline: asked for by name, and not where backward passes are split. */
static bool breaks_zero_rule(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason) {
  if (candidate->zero < 2 || candidate->pp == 1) return false;
  if (space->choices.zero.n_ranges == 0) return *reason = PL_DROP_ZERO, true;
  const pl_strategy strategy = {.schedule = (pl_schedule_kind)candidate->schedule};
  return pl_strategy_splits_backward(&strategy) ? (*reason = PL_DROP_ZERO_SPLIT, true) : false;
}

bool pl_space_breaks_rule(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason) {
  if (breaks_tensor_rule(space->model, candidate, reason)) return true;
  if (breaks_batch_rule(space->job, candidate, reason)) return true;
  if (breaks_pipeline_rule(space, candidate, reason)) return true;
  if (breaks_gradient_rule(space->job, candidate, reason)) return true;
  if (breaks_zero_rule(space, candidate, reason)) return true;
  if (candidate->sp && space->job->seq / candidate->cp % candidate->tmp != 0) return *reason = PL_DROP_SEQUENCE, true;
  return breaks_group_rule(space, candidate, reason) || pl_space_breaks_offer(space, candidate, reason);
}

int pl_space_format_reason(const pl_space *space, pl_space_reason reason, char *text, size_t size) {
  const pl_model *model = space->model;
  const pl_job *job = space->job;
  switch (reason) {
  case PL_DROP_HEADS:
    return snprintf(text, size, "tmp does not divide %lld heads", (long long)model->attention.n_heads);
  case PL_DROP_KV_HEADS:
    return snprintf(text, size, "tmp neither divides nor is a multiple of %lld kv heads",
                    (long long)model->attention.n_kv_heads);
  case PL_DROP_FFN:
    return snprintf(text, size, "tmp does not divide the feed-forward width %lld", (long long)model->width.ffn_hidden);
  case PL_DROP_GBS:
    return snprintf(text, size, "dp does not divide gbs %lld", (long long)job->gbs);
  case PL_DROP_MBS:
    return snprintf(text, size, "mbs does not divide gbs %lld / dp", (long long)job->gbs);
  case PL_DROP_STAGES:
    return snprintf(text, size, "pp exceeds %d layers", model->n_layers);
  case PL_DROP_CHUNKS:
    return snprintf(text, size, "chunks: pp * vpp does not divide %d layers", model->n_layers);
  case PL_DROP_ROUNDS:
    return snprintf(text, size, "interleaved: microbatches are not a multiple of pp");
  case PL_DROP_ZERO:
    return snprintf(text, size, "zero 2 and 3 are not offered with pp > 1, unless --zero names them");
  case PL_DROP_ZERO_SPLIT:
    return snprintf(text, size, "zero 2 and 3 shard gradients in every backward pass, which this schedule splits");
  case PL_DROP_SEQUENCE:
    return snprintf(text, size, "sp: tmp does not divide the sequence length %lld", (long long)job->seq);
  case PL_DROP_BALANCED:
    return snprintf(text, size, "the balanced assignment equals the uniform one");
  case PL_DROP_CONTEXT:
    return snprintf(text, size, "cp needs fused attention and chunks that divide the sequence length %lld",
                    (long long)job->seq);
  case PL_DROP_EXPERTS:
    if (model->moe.n_experts == 0) return snprintf(text, size, "ep above 1, and the model has no experts");
    return snprintf(text, size, "ep does not divide %lld experts", (long long)model->moe.n_experts);
  case PL_DROP_EXPERT_RANKS:
    return snprintf(text, size, "ep does not divide dp * cp * tmp, or with etp=tmp dp * cp");
  case PL_DROP_EXPERT_SEQUENCE:
    return snprintf(text, size, "experts need sp with tmp > 1");
  case PL_DROP_CONSUMED:
    return snprintf(text, size, "%s steps in the backward pass: one microbatch, and dp=1 or zero 2 and 3",
                    pl_framework_or_ideal(space->job->framework)->name);
  case PL_DROP_FEW_MICROBATCHES:
    return snprintf(text, size, "dualpipe-v: fewer microbatches than 2 * pp");
  case PL_DROP_TWO_ENDS:
    return snprintf(text, size, "dualpipe: an odd number of stages or microbatches, or fewer of these than 2 * pp");
  case PL_DROP_OFFER_DEGREE:
  case PL_DROP_OFFER_SCHEDULE:
  case PL_DROP_OFFER_RECOMPUTE:
  case PL_DROP_OFFER_SP:
  case PL_DROP_OFFER_ZERO:
    return pl_space_format_offer(space, reason, text, size);
  case PL_DROP_COUNT:
    break;
  }
  return snprintf(text, size, "?");
}
