/* See workloads/execute/executor.h: what came out. */
#include <math.h>
#include <stdlib.h>

#include "workloads/execute/executor_internal.h"

/* ---- results ---- */

double pl_execution_iteration_s(const pl_execution *own, int32_t iteration) {
  return own->iteration_s[iteration];
}

double pl_execution_op_s(const pl_execution *own, int32_t iteration, int32_t function, int32_t op) {
  return own->op_s[(size_t)iteration * (size_t)own->n_ops + (size_t)(own->first_op[function] + op)];
}

int32_t pl_execution_op_runs(const pl_execution *own, int32_t function, int32_t op) {
  return own->op_runs[own->first_op[function] + op] / own->options.iterations;
}

double pl_execution_loss(const pl_execution *own, int32_t iteration) {
  return own->losses[iteration];
}

double pl_execution_peak_bytes(const pl_execution *own, int32_t class_index) {
  return own->members[class_index].crew.peak_bytes;
}

const char *pl_execution_path(const pl_execution *own, pl_execution_kind kind, int32_t index) {
  for (int32_t c = 0; c < own->module->n_classes; c++)
    for (int32_t i = 0; i < own->members[c].store.n_entries; i++) {
      const pl_kept *entry = own->members[c].store.entries[i];
      bool first = entry->kind == (int32_t)kind && entry->holding != NULL;
      for (int32_t before = 0; first && before < c; before++)
        if (pl_store_find(&own->members[before].store, (int32_t)kind, entry->key) != NULL) first = false;
      if (first && index-- == 0) return entry->key;
    }
  return NULL;
}

double *pl_execution_whole(const pl_execution *own, pl_execution_kind kind, const char *path, pl_ir_type *type,
                           double *differs) {
  double *whole = NULL, *more = NULL;
  size_t n = 0;
  if (differs != NULL) *differs = 0;
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    const pl_kept *entry = pl_store_find(&own->members[c].store, (int32_t)kind, path);
    if (entry == NULL || entry->holding == NULL) continue;
    const pl_crew *crew = &own->members[c].crew;
    if (differs != NULL) *differs = fmax(*differs, pl_holding_differs(crew, entry->holding));
    bool first = whole == NULL;
    if (first) {
      n = (size_t)pl_ir_type_elements(&entry->holding->type);
      whole = (double *)malloc(n * sizeof(double));
      more = (double *)malloc(n * sizeof(double));
      if (whole == NULL || more == NULL) break;
      if (type != NULL) *type = entry->holding->type;
    }
    pl_holding_whole(crew, entry->holding, first ? whole : more);
    for (size_t i = 0; !first && i < n; i++) {
      if (kind == PL_EXECUTION_GRADIENT) {
        whole[i] += more[i];
      } else if (differs != NULL) {
        *differs = fmax(*differs, fabs(whole[i] - more[i]));
      }
    }
  }
  if (more == NULL) {
    free(whole);
    whole = NULL;
  }
  free(more);
  return whole;
}
