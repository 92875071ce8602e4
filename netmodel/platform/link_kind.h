/* Link kinds by name, as <prop id="kind"> of a link writes them (the names themselves: pl_link_kind_name in
 * core/cluster/cluster.h). */
#ifndef PL_NETMODEL_LINK_KIND_H
#define PL_NETMODEL_LINK_KIND_H

#include <stdbool.h>

#include "core/cluster/cluster.h"

bool pl_link_kind_from_name(const char *name, pl_link_kind *kind);
/* "nvlink, pcie, cpu, nic, fabric, other", for messages. */
const char *pl_link_kind_names(void);

#endif
