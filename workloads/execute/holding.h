/* A value while a program runs: what each device of a class holds of it. Counted references, since arguments, results
 * and state are handed on without a copy. */
#ifndef PL_WORKLOADS_HOLDING_H
#define PL_WORKLOADS_HOLDING_H

#include "workloads/language/ir_table.h"

/* Devices of a class, and what they hold at the moment. */
typedef struct pl_crew {
  const pl_ir_mesh *mesh;
  const uint32_t *devices; /* of the mesh, rising */
  uint32_t n_devices;
  double live_bytes, peak_bytes; /* of values, by their written elements: per device, all hold equally much */
} pl_crew;

typedef struct pl_holding {
  int32_t references;
  double bytes; /* per device */
  pl_ir_type type;
  pl_ir_tensor parts[]; /* one per device of the crew; data in one block behind them */
} pl_holding;

/* A zeroed value of one reference; NULL: no memory. */
pl_holding *pl_holding_create(pl_crew *crew, const pl_ir_type *type);
static inline pl_holding *pl_holding_share(pl_holding *holding) {
  PL_ASSERT(holding != NULL);
  holding->references++;
  return holding;
}
/* Gives one reference back; NULL is fine. */
void pl_holding_drop(pl_crew *crew, pl_holding *holding);

/* Position of mesh device `device` in the crew; asserts that it is there. */
uint32_t pl_crew_find(const pl_crew *crew, uint32_t device);

/* The whole value: parts put together, partial sums added up. `whole` has pl_ir_type_elements. */
void pl_holding_whole(const pl_crew *crew, const pl_holding *holding, double *whole);
/* How far devices that should hold the same are apart, relative to the largest element. */
double pl_holding_differs(const pl_crew *crew, const pl_holding *holding);

#endif
