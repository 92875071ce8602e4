/* See netmodel/simgrid/simgrid_door.h. */
#include "netmodel/simgrid/simgrid_door.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ISO C has no cast from a pointer to an object to one to a function. */
static bool find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

bool pl_simgrid_door_open(pl_simgrid_door *door, char *message, size_t message_bytes) {
  void *library = dlopen("libpaceline_simgrid.so", RTLD_NOW | RTLD_LOCAL);
  bool all = library != NULL && find(library, "pl_shim_load", &door->load) &&
             find(library, "pl_shim_destroy", &door->destroy) && find(library, "pl_shim_get_parts", &door->get_parts) &&
             find(library, "pl_shim_route", &door->route) && find(library, "pl_simgrid_loop_run", &door->run) &&
             find(library, "pl_simgrid_loop_timer", &door->timer) && find(library, "pl_simgrid_loop_send", &door->send);
  if (!all) {
    const char *reason = dlerror();
    snprintf(message, message_bytes, "SimGrid cannot be used: %s", reason == NULL ? "the library is broken" : reason);
  }
  return all;
}
