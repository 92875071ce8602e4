/* What is asked of a platform file (netmodel/make/platform_writer.h). */
#include "netmodel/make/platform_writer.h"

static const char *const fabric_names[] = {"rail", "fat-tree", "single"};

const char *pl_fabric_name(pl_fabric fabric) {
  return fabric_names[fabric];
}

static const char *const sockets_names[] = {"auto", "always", "never"};

const char *pl_sockets_name(pl_sockets sockets) {
  return sockets_names[sockets];
}

uint32_t pl_platform_plan_nodes(const pl_platform_plan *plan) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < plan->n_parts; p++)
    n += plan->parts[p].n_nodes;
  return n;
}

uint32_t pl_platform_plan_pods(const pl_platform_plan *plan) {
  return (pl_platform_plan_nodes(plan) + plan->pod_nodes - 1) / plan->pod_nodes;
}

pl_code pl_platform_plan_check(const pl_platform_plan *plan, pl_error *error) {
  uint32_t n_nodes = pl_platform_plan_nodes(plan), n_pods = pl_platform_plan_pods(plan);
  if (n_nodes > PL_PLAN_NODES_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%u nodes: at most %d can be written", n_nodes, PL_PLAN_NODES_MAX);
  if (n_pods > PL_PLAN_PODS_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%u nodes in pods of %u are %u pods: at most %d; raise --pod-nodes", n_nodes,
                   plan->pod_nodes, n_pods, PL_PLAN_PODS_MAX);
  if (plan->n_parts > 1 && plan->fabric != PL_FABRIC_SINGLE)
    return pl_fail(error, PL_BAD_INPUT, "--fabric %s wants machines of one kind; take --fabric single for a mixture",
                   pl_fabric_name(plan->fabric));
  for (uint32_t p = 0; p < plan->n_parts; p++) {
    const pl_node_kind *kind = plan->parts[p].kind;
    if (n_nodes > 1 && kind->n_nics == 0)
      return pl_fail(error, PL_BAD_INPUT, "%s has no network card: only --nodes 1 can be written", kind->name);
    if (plan->gpus_per_node > kind->n_gpus)
      return pl_fail(error, PL_BAD_INPUT, "--gpus-per-node %u: %s has %u GPUs", plan->gpus_per_node, kind->name,
                     kind->n_gpus);
  }
  return PL_OK;
}

const char *const pl_transport_names[] = {"rdma", "socket", NULL};
