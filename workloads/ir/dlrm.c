/* See workloads/ir/dlrm.h. */
#include "workloads/ir/dlrm.h"

int64_t pl_dlrm_n_tables(const pl_dlrm *dlrm) {
  int64_t n = 0;
  for (int32_t i = 0; i < dlrm->n_groups; i++)
    n += dlrm->groups[i].tables;
  return n;
}

int64_t pl_dlrm_interaction_width(const pl_dlrm *dlrm) {
  int64_t vectors = pl_dlrm_n_tables(dlrm) + 1;
  if (dlrm->concatenates) return vectors * dlrm->width;
  return dlrm->width + (dlrm->itself ? vectors * (vectors + 1) / 2 : vectors * (vectors - 1) / 2);
}

static double mlp_parameters(const int64_t *widths, int32_t n_layers) {
  double n = 0;
  for (int32_t i = 0; i < n_layers; i++)
    n += ((double)widths[i] + 1) * (double)widths[i + 1];
  return n;
}

double pl_dlrm_parameters(const pl_dlrm *dlrm) {
  double n = mlp_parameters(dlrm->bottom, dlrm->n_bottom) + mlp_parameters(dlrm->top, dlrm->n_top);
  for (int32_t i = 0; i < dlrm->n_groups; i++)
    n += (double)dlrm->groups[i].tables * (double)dlrm->groups[i].rows * (double)dlrm->width;
  return n;
}
