/* See workloads/run/site_likeness.h. */
#include "workloads/run/site_likeness.h"

#include <math.h>
#include <string.h>

#include "workloads/lower/block_program.h"

const char *const pl_likeness_names[PL_LIKENESS_COUNT + 1] = {
#define PL_LIKENESS_NAME(name) [PL_LIKENESS_##name] = #name,
    PL_LIKENESS_NUMBERS(PL_LIKENESS_NAME) PL_LIKENESS_NAMES(PL_LIKENESS_NAME)
#undef PL_LIKENESS_NAME
};

static double degree(int32_t value) {
  return value > 1 ? value : 1;
}

double pl_configuration_size(const pl_model *model, int64_t seq) {
  return fmax(1, pl_model_flops_per_sequence(model, seq) / fmax(1, (double)seq));
}

const char *pl_configuration_precision(const pl_job *job) {
  if (job->fp8) return pl_dtype_name(job->fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8);
  return pl_dtype_name(job->dtype);
}

pl_configuration pl_configuration_of(const char *gpu, double size, const pl_job *job, const pl_strategy *strategy) {
  return (pl_configuration){.number = {[PL_LIKENESS_gpus] = pl_strategy_n_ranks(strategy),
                                       [PL_LIKENESS_size] = size,
                                       [PL_LIKENESS_seq] = fmax(1, (double)job->seq),
                                       [PL_LIKENESS_tmp] = degree(strategy->tmp),
                                       [PL_LIKENESS_pp] = degree(strategy->pp),
                                       [PL_LIKENESS_cp] = degree(strategy->cp),
                                       [PL_LIKENESS_ep] = degree(strategy->ep),
                                       [PL_LIKENESS_vpp] = degree(strategy->vpp),
                                       [PL_LIKENESS_mbs] = degree(strategy->mbs)},
                            .name = {gpu, pl_framework_or_ideal(job->framework)->name, pl_configuration_precision(job),
                                     pl_recompute_names[strategy->recompute]}};
}

double pl_configuration_apart(const pl_configuration *a, const pl_configuration *b, int axis) {
  if (axis >= PL_LIKENESS_N_NUMBERS) {
    int name = axis - PL_LIKENESS_N_NUMBERS;
    return strcmp(a->name[name], b->name[name]) == 0 ? 0 : 1;
  }
  double apart = log(a->number[axis] / b->number[axis]);
  return apart * apart;
}

double pl_likeness_of(const pl_likeness *likeness, const pl_configuration *a, const pl_configuration *b) {
  double square = 0;
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    square += pl_configuration_apart(a, b, axis) / (likeness->length[axis] * likeness->length[axis]);
  return exp(-square / 2);
}
