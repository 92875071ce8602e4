/* Variations of a loaded platform: what if the NICs were twice as fast, the GPUs larger, the machines fewer?
 *
 *   link:WHICH.bandwidth=100Gbps,200Gbps    WHICH: kinds of link or patterns of their names, joined by '+':
 *   link:WHICH.latency=1us,x0.5             nic   nic+fabric   'n0nic*'   (a SPLITDUPLEX link's name with or without
 * its _UP or _DOWN) device:TYPE.memory=40GiB,80GiB          TYPE: a type of device of this platform, or a pattern
 * (device:*.memory=x2) device:TYPE.bandwidth=3TBps,x1.5        of device memory device:TYPE.peak=x2 of every data type
 *   device:TYPE.power=500W,x0.8             limit of power (netmodel/device/device_power.h)
 *   device:TYPE=H100-SXM5-80GB,V100-32GB    another profile in its place
 *   nodes=1,2,4                             the first nodes of the platform
 *
 * Values are what takes the place of what the file says, with a unit; or x and a factor on it. Several axes make a
 * grid, the last one varying fastest; where two axes reach the same figure, the later one acts on what the earlier made
 * of it.
 *
 * A variation is a copy of the cluster's arrays with other figures: devices, wires and routes stay those of the file,
 * and so do shares of link capacity that the file has already worked out (an oversubscribed leaf's uplink does not grow
 * with its NICs; name both: nic+fabric). Calibrated collectives keep the entries of the profile that they have on the
 * file's links, priced at the varied rates: entries are measured on whole machines, and those with faster links may be
 * slower in other ways (steps, launches), which is nothing that a faster link would do to this machine. Peaks and
 * bandwidths act on calibrated kernels as on all others (the share of the peak that a kernel reaches is kept, overheads
 * stay); a profile with measured times of single ops cannot be varied that way, because such times say nothing about
 * another chip. Rejected: editing the XML and loading it again (a load of 16,384 devices takes 0.2 s or, by SimGrid, 2
 * to 3 s, where a copy takes milliseconds, and bandwidths are not always attributes of a link). SimGrid itself keeps
 * the file's figures: --network simgrid cannot play variations.
 */
#ifndef PL_NETMODEL_PLATFORM_VARY_H
#define PL_NETMODEL_PLATFORM_VARY_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"

enum { PL_VARY_AXES_MAX = 8, PL_VARY_VALUES_MAX = 64, PL_VARY_POINTS_MAX = 1024, PL_VARY_LABEL_BYTES = 512 };

typedef enum pl_vary_field {
  PL_VARY_LINK_BANDWIDTH = 0,
  PL_VARY_LINK_LATENCY,
  PL_VARY_DEVICE_MEMORY,
  PL_VARY_DEVICE_BANDWIDTH,
  PL_VARY_DEVICE_PEAK,
  PL_VARY_DEVICE_POWER,
  PL_VARY_DEVICE_TYPE,
  PL_VARY_NODES,
  PL_VARY_FIELD_COUNT
} pl_vary_field;

typedef struct pl_vary_value {
  const char *text; /* as the user wrote it; the type's name of PL_VARY_DEVICE_TYPE */
  double number;    /* bytes, bytes/s, s or nodes; the factor if is_factor */
  bool is_factor;
} pl_vary_value;

typedef struct pl_vary_axis {
  const char *name;    /* left of '=' */
  const char *pattern; /* WHICH or TYPE; "" of nodes */
  pl_vary_field field;
  const pl_vary_value *values;
  uint32_t n_values;
} pl_vary_axis;

typedef struct pl_vary_grid {
  pl_vary_axis axes[PL_VARY_AXES_MAX];
  uint32_t n_axes, n_points; /* product of the axes' values; 0 without axes */
} pl_vary_grid;

/* Reads `n` texts as above. Everything in `arena`; the texts may go. PL_BAD_INPUT with the text and what is allowed:
 * unknown subject or field, a value without unit, zero, negative, twice the same value, too many. */
pl_code pl_vary_grid_parse(const char *const *texts, uint32_t n, pl_arena *arena, pl_vary_grid *grid, pl_error *error);

/* The value that axis `axis` has at point `point` of the grid. */
const pl_vary_value *pl_vary_value_at(const pl_vary_grid *grid, uint32_t point, uint32_t axis);
/* "link:nic.bandwidth=100Gbps nodes=2"; returns the length that was needed, like snprintf. */
int pl_vary_format(const pl_vary_grid *grid, uint32_t point, char *text, size_t size);

/* The cluster of point `point`, in `arena`; `base` must outlive it. Its digest is the base's if nothing differs, else
 * one of the base's and of all that differs. A topology cache tells clusters apart by address: keep them side by side.
 * PL_BAD_INPUT: a kind, name or type that this platform does not have (the message lists what it has), a device profile
 * that is not found, memory below what is reserved, more nodes than there are. O(links + devices). Thread-safe for
 * distinct arenas. */
pl_code pl_vary_cluster_take(const pl_vary_grid *grid, uint32_t point, const pl_cluster *base, pl_arena *arena,
                             const pl_cluster **cluster, pl_error *error);

#endif
