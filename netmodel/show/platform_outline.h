/* The hierarchy of a platform, folded for people: zones in pre-order, siblings with the same content as one entry,
 * GPUs, CPU sockets and links of a zone grouped. What `platform show` prints and draws. Alike means the same types of
 * GPU and socket and the same wires (kind, bandwidth, latency, policy) and, recursively, the same zones inside; how
 * they are wired is not compared.
 */
#ifndef PL_NETMODEL_PLATFORM_OUTLINE_H
#define PL_NETMODEL_PLATFORM_OUTLINE_H

#include <stdbool.h>

#include "netmodel/platform/platform.h"

typedef struct pl_outline_gpus {
  uint32_t profile, count;
  const char *first, *last; /* names */
} pl_outline_gpus;

typedef struct pl_outline_sockets {
  const char *cpu;
  uint32_t n_cores, count;
  const char *first, *last; /* names */
} pl_outline_sockets;

typedef struct pl_outline_links {
  pl_link_kind kind;
  pl_link_policy policy;
  bool is_duplex; /* X_UP and X_DOWN, alike, counted once */
  double capacity_Bps;
  pl_ticks latency;
  uint32_t count;
  const char *first, *last; /* names, of a duplex link without _UP */
} pl_outline_links;

typedef struct pl_outline_zone {
  const char *name, *last_name; /* of the first and the last of those alike */
  uint32_t alike;               /* how many this entry stands for */
  uint32_t zone;                /* index of the first in pl_platform_zones */
  uint32_t parent;              /* entry; PL_NONE for the root */
  uint32_t depth;
  uint32_t node; /* of the first, PL_NONE if it holds no GPU */
  const pl_outline_gpus *gpus;
  uint32_t n_gpus;
  const pl_outline_sockets *sockets;
  uint32_t n_sockets;
  const pl_outline_links *links; /* by kind from the GPU outwards, then falling bandwidth */
  uint32_t n_links;
} pl_outline_zone;

typedef struct pl_outline {
  const pl_outline_zone *zones;
  uint32_t n_zones;
} pl_outline;

pl_code pl_platform_outline_take(const pl_platform *platform, pl_arena *arena, pl_outline *outline, pl_error *error);

#endif
