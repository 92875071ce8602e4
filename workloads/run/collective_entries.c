/* See workloads/run/collective_entries.h. */
#include "workloads/run/collective_entries.h"

#include <string.h>

#include "workloads/run/explain_rows.h"

static void add(pl_collective_entries *entries, pl_collective_entry entry) {
  for (uint32_t i = 0; i < entries->n; i++) {
    const pl_collective_entry *known = &entries->entries[i];
    if (strcmp(known->role, entry.role) == 0 && known->inside == entry.inside && known->between == entry.between)
      return;
  }
  if (entries->n == PL_COLLECTIVE_ENTRIES_MAX)
    entries->more = true;
  else
    entries->entries[entries->n++] = entry;
}

pl_collective_entries pl_collective_entries_of(const pl_program *program, const pl_communication_plan *plan,
                                               const pl_collective_profile *profile) {
  pl_collective_entries entries = {.n = 0};
  for (uint32_t g = 0; profile != NULL && g < plan->n_group_classes; g++) {
    const pl_group_class *class = &plan->group_classes[g];
    const pl_wiring *inside, *between;
    for (uint32_t kind = 0; pl_collective_group_entries(class->channels, kind, &inside, &between); kind++)
      add(&entries, (pl_collective_entry){.role = pl_family_role_name(program->families[class->family].kind),
                                          .inside = inside != NULL ? inside->name : NULL,
                                          .between = between != NULL ? between->name : NULL});
  }
  return entries;
}

void pl_collective_entries_print(FILE *stream, const pl_collective_entries *entries) {
  for (uint32_t i = 0; i < entries->n; i++) {
    const pl_collective_entry *own = &entries->entries[i];
    const char *first = own->inside != NULL ? own->inside : own->between;
    fprintf(stream, "%s%s %s", i > 0 ? "; " : "", own->role, first != NULL ? first : "ideal");
    if (own->inside != NULL && own->between != NULL) fprintf(stream, " + %s", own->between);
  }
  if (entries->more) fprintf(stream, "; and more");
}

void pl_collective_entries_json(pl_json *json, const pl_collective_entries *entries) {
  pl_json_key(json, "collective_entries");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < entries->n; i++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "role", entries->entries[i].role);
    pl_json_put_string(json, "inside", entries->entries[i].inside);
    pl_json_put_string(json, "between", entries->entries[i].between);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}
