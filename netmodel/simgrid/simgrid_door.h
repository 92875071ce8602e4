/* Opens the shared library paceline_simgrid (simgrid_shim.h, simgrid_run.h) when SimGrid is needed, and not before:
 * most platforms are read without it, and what libsimgrid brings along (75 libraries on Debian, those of ns-3 among
 * them) costs every start of a program 30 MiB and more time than a small simulation takes.
 *
 * The library lies where the program's RPATH says. It stays open until the process ends. What it brings along is of no
 * use to others: libsimgrid exports MPI_* symbols of its own, which stay inside (RTLD_LOCAL). */
#ifndef PL_NETMODEL_SIMGRID_DOOR_H
#define PL_NETMODEL_SIMGRID_DOOR_H

#include <stdbool.h>
#include <stddef.h>

#include "netmodel/simgrid/simgrid_run.h"
#include "netmodel/simgrid/simgrid_shim.h"

/* The functions of the two headers. */
typedef struct pl_simgrid_door {
  __typeof__(&pl_shim_load) load;
  __typeof__(&pl_shim_destroy) destroy;
  __typeof__(&pl_shim_get_parts) get_parts;
  __typeof__(&pl_shim_route) route;
  __typeof__(&pl_simgrid_loop_run) run;
  __typeof__(&pl_simgrid_loop_timer) timer;
  __typeof__(&pl_simgrid_loop_send) send;
} pl_simgrid_door;

/* False: the library is not there or is another one; `message` says what the loader says. */
bool pl_simgrid_door_open(pl_simgrid_door *door, char *message, size_t message_bytes);

#endif
