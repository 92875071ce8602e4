/* What collectives take on the devices that a program is for: what laying out chooses by. Whoever has a platform makes
 * one (workloads/compile/mesh_prices.h); without one bytes on the wire are counted, as recipes of tuples always do:
 * these say what a framework does, whatever it is run on. */
#ifndef PL_WORKLOADS_LAYOUT_PRICES_H
#define PL_WORKLOADS_LAYOUT_PRICES_H

#include "netmodel/collective/collective.h"
#include "workloads/language/ir_module.h"

typedef struct pl_layout_prices {
  void *context;
  uint32_t n_devices; /* of the platform: programs for more are refused before they are laid out */
  bool tells;         /* reasons say what a way takes, and what the next best would; else it is asked where there are
                         several, and no more */
  /* Seconds of a collective over `axes` (one bit each) of the module's mesh, in all groups at once; `size_bytes` as
   * netmodel/collective/collective.h has it. */
  pl_code (*seconds)(void *context, const pl_ir_module *module, pl_collective_kind kind, uint32_t axes,
                     double size_bytes, double *time_s, pl_error *error);
} pl_layout_prices;

#endif
