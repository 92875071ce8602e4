/* See netmodel/simgrid/simgrid_door.h. */
#include "netmodel/simgrid/simgrid_door.h"

#include <stdio.h>

#include "core/base/status.h"
#include "core/system/library.h"

bool pl_simgrid_door_open(pl_simgrid_door *door, char *message, size_t message_bytes) {
  char reason[PL_ERROR_MESSAGE_BYTES];
  const struct {
    const char *name;
    void *function;
  } wanted[] = {{"pl_shim_load", &door->load},           {"pl_shim_destroy", &door->destroy},
                {"pl_shim_get_parts", &door->get_parts}, {"pl_shim_route", &door->route},
                {"pl_simgrid_loop_run", &door->run},     {"pl_simgrid_loop_timer", &door->timer},
                {"pl_simgrid_loop_send", &door->send}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if (!pl_library_find("libpaceline_simgrid.so", wanted[i].name, wanted[i].function, reason, sizeof reason)) {
      snprintf(message, message_bytes, "SimGrid cannot be used: %s", reason);
      return false;
    }
  return true;
}
