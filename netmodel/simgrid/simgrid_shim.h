/* The only door to libsimgrid: a small C interface of the shared library paceline_simgrid.
 *
 * Why a library of its own: libsimgrid exports about 770 MPI_* symbols (SMPI). Linked into the program it takes
 * MPI_Init away from Open MPI as soon as it stands before libmpi on the command line. Behind a shared library of ours
 * it comes after libmpi in the dynamic linker's breadth-first search, whatever the order of the other libraries.
 *
 * No exception, abort or exit of SimGrid's crosses this line, and nothing is printed: SimGrid reports broken platforms
 * by C++ exceptions and by xbt_assert, which logs a critical message and aborts. The shim defines the log function that
 * those assertions call
 * (_xbt_log_event_log) and, standing before libsimgrid in the search order, is called instead of it: it throws the
 * message as a C++ exception, which is caught here. Rejected: a trial load in a forked child (twice the time and memory
 * of a 16,384-GPU platform, and a fork in an MPI process), and a SIGABRT handler with longjmp (leaks, and a handler
 * that belongs to the program).
 *
 * Messages are written to `message` (message_bytes, always NUL-terminated); they are SimGrid's own words, with
 * file:line in front where SimGrid knows it.
 */
#ifndef PL_NETMODEL_SIMGRID_SHIM_H
#define PL_NETMODEL_SIMGRID_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_shim pl_shim;

typedef enum pl_shim_status {
  PL_SHIM_OK = 0,
  PL_SHIM_REFUSED, /* SimGrid does not accept the input; message says why */
  PL_SHIM_NO_MEMORY,
  PL_SHIM_BUSY,     /* a platform is loaded already, or a failed load has left SimGrid unusable */
  PL_SHIM_TOO_SMALL /* the caller's array is too short; *n_links says how many there are */
} pl_shim_status;

enum { PL_SHIM_NONE = 0xffffffff };

/* All strings belong to SimGrid and live as long as the pl_shim. */
typedef struct pl_shim_zone {
  const char *name;
  uint32_t parent; /* zones are in pre-order: parent < own index; PL_SHIM_NONE for the root */
} pl_shim_zone;

typedef struct pl_shim_host {
  const char *name;
  const char *device; /* value of the property "device", or NULL */
  const char *cpu;    /* value of the property "cpu", or NULL */
  uint32_t zone;
  uint32_t n_cores;
} pl_shim_host;

typedef struct pl_shim_link {
  const char *name;
  const char *kind; /* value of the property "kind" of the link or of its split-duplex parent, or NULL */
  double bandwidth_Bps;
  double latency_s;
  uint32_t zone; /* the zone whose element declares it */
  uint8_t is_fatpipe;
  uint8_t is_shareable; /* 0: a policy that has no plain capacity (Wi-Fi, non-linear) */
} pl_shim_link;

/* Everything at once; the arrays belong to whoever made them. */
typedef struct pl_shim_parts {
  const pl_shim_zone *zones;
  const pl_shim_host *hosts;
  const pl_shim_link *links;
  uint32_t n_zones, n_hosts, n_links;
} pl_shim_parts;

/* Makes SimGrid's engine and loads the platform at `path`, called `name` in messages; seals it, so that routes of every
 * routing kind can be asked for. SimGrid has one engine per process: a second load is possible after pl_shim_destroy of
 * the first, not before. The engine is configured as the reference network needs it (CM02, optim Full, no crosstraffic;
 * see FLOW RULES in simgrid_shim.cpp). Signal handlers of the program stay as they were. */
pl_shim_status pl_shim_load(const char *path, const char *name, pl_shim **shim, char *message, size_t message_bytes);
void pl_shim_destroy(pl_shim *shim);

/* Zones in file order (pre-order), hosts and links in the order in which the file makes them. */
void pl_shim_get_parts(const pl_shim *shim, pl_shim_parts *parts);

/* Links of the route in crossing order as link indices; none, with PL_SHIM_OK, when a zone on the way has no route for
 * its stretch. Any thread, one at a time. Cost: 0.3 us where SimGrid's routing tables are Full, as much again for the
 * search for holes. */
pl_shim_status pl_shim_route(const pl_shim *shim, uint32_t source_host, uint32_t destination_host, uint32_t *links,
                             uint32_t capacity, uint32_t *n_links, char *message, size_t message_bytes);

#ifdef __cplusplus
}
#endif

#endif
