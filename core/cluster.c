/* See core/cluster.h. */
#include "core/cluster.h"

const char *pl_link_kind_name(pl_link_kind kind) {
  static const char *const names[PL_LINK_KIND_COUNT] = {"other", "nvlink", "pcie", "cpu", "nic", "fabric"};
  return names[kind];
}
