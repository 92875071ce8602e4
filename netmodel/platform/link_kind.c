/* See netmodel/platform/link_kind.h. */
#include "netmodel/platform/link_kind.h"

#include <string.h>

bool pl_link_kind_from_name(const char *name, pl_link_kind *kind) {
  for (int k = 0; k < PL_LINK_KIND_COUNT; k++)
    if (strcmp(pl_link_kind_name((pl_link_kind)k), name) == 0) {
      *kind = (pl_link_kind)k;
      return true;
    }
  return false;
}

const char *pl_link_kind_names(void) {
  return "nvlink, pcie, cpu, nic, fabric, other";
}
