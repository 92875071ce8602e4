/* See workloads/run/program_members.h. */
#include "workloads/run/program_members.h"

#include "workloads/language/ir_module.h"

bool pl_program_members_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                             pl_arena *arena, pl_program_members *members) {
  const uint32_t *places = pl_ir_places_take(module, arena);
  *members = (pl_program_members){.made = made,
                                  .number = PL_TAKE(arena, uint32_t, cluster->n_devices),
                                  .list = PL_TAKE(arena, int32_t, made->graph.n_devices)};
  if (places == NULL || arena->failed) return false;
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    members->number[d] = PL_NONE;
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&module->mesh); d++) {
    if (places[d] == PL_IR_NOWHERE) continue;
    uint32_t number = members->number[places[d]] = made->device_class != NULL ? made->device_class[d] : d;
    for (int32_t c = 0; c < module->n_classes; c++)
      if (pl_ir_class_has(module, &module->classes[c], d)) members->list[number] = c;
  }
  return true;
}

uint32_t pl_program_members_times(const pl_program_members *members, const pl_task *task, uint32_t device) {
  const pl_ir_sent *sent = &members->made->sent[task->index];
  uint32_t n = 0;
  for (uint32_t i = 0; i < sent->n_members; i++)
    n += members->number[sent->members[i]] == device;
  return n * sent->n_alike / members->made->graph.devices[device].multiplicity;
}
