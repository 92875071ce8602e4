/* What a collectives library costs beyond the wires, as a file: platforms/collectives/NAME.json.
 *
 * The links of a platform say how fast bytes could move. NCCL adds: the launch of its kernel, a time per step of the
 * algorithm, a protocol that trades bytes for latency (LL sends a flag with every 4 bytes of data, LL128 with every
 * 120; Simple sends data alone and synchronises), less than the nominal rate, and a choice between algorithms and
 * protocols by size. A profile holds these figures per kind of wiring: `inside` nodes (NVSwitch of a generation, direct
 * NVLinks, PCIe) and `between` them (InfiniBand, cloud NICs). A group takes the first entry of each list that its own
 * links match, so like groups get like entries whatever their members are called.
 *
 * Time of a collective under algorithm a and protocol p, alone (CALIBRATED.md derives
 * it): launch + start + steps inside * step + steps between * step + route latencies
 *   + w + ramp * sqrt(w) + local,    w = factor(p) * bytes / (nominal rate * rate), of the slower level.
 * launch, start are those of the outermost level. The smallest time over all (a, p) that both levels have is what runs.
 *
 * Rejected: NCCL's own tables (its tuner ranks choices, its times are up to 3 times off on today's machines), and one
 * efficiency per size (it cannot be carried from the machines measured to others).
 */
#ifndef PL_NETMODEL_COLLECTIVE_PROFILE_H
#define PL_NETMODEL_COLLECTIVE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef enum pl_protocol { PL_PROTOCOL_LL = 0, PL_PROTOCOL_LL128, PL_PROTOCOL_SIMPLE, PL_PROTOCOL_COUNT } pl_protocol;

/* The algorithms that a profile knows; DIRECT stands for all-to-all and sends. */
typedef enum pl_tuned { PL_TUNED_RING = 0, PL_TUNED_TREE, PL_TUNED_DIRECT, PL_TUNED_NVLS, PL_TUNED_COUNT } pl_tuned;

extern const char *const pl_protocol_names[PL_PROTOCOL_COUNT + 1]; /* "LL", "LL128", "Simple", NULL */
extern const char *const pl_tuned_names[PL_TUNED_COUNT];           /* "ring", "tree", "direct", "nvls" */

/* Bytes on the wire per byte of data. */
double pl_protocol_factor(pl_protocol protocol);

typedef struct pl_protocol_cost {
  bool known;
  double start_us; /* once, beyond the launch */
  double step_us;  /* per step over this level, beyond the latency of the wires */
  double rate;     /* of the nominal rate, in (0, 1] */
  double ramp;     /* sqrt(us): a transfer of w us takes w + ramp * sqrt(w), pipelines fill slowly */
} pl_protocol_cost;

/* One kind of wiring: `link_GBps` bounds the slowest NVLink or, without any, the slowest PCIe link of a group inside
 * its nodes; `nic_us` and `nic_GBps` the slowest NIC in latency and rate, `pcie_GBps` the way to it (old PCIe: no
 * direct access of NICs to GPU memory), `node_gpus` how many GPUs a node has (a process for each of eight leaves TCP
 * less of the wire than one). An entry matches where all bounds hold. */
typedef struct pl_wiring {
  const char *name;
  const char *like;             /* the entry that calibration starts from, for what no measurement says; NULL: none */
  const char *provenance;       /* NULL: not stated */
  bool nvlink;                  /* inside: NVLink, else PCIe */
  bool host;                    /* inside: only groups whose hops cross a link of kind cpu, e.g. host memory */
  double least_GBps, most_GBps; /* of a link inside, or of a NIC; bounds inclusive, of "link_GBps", "nic_GBps" */
  double least_us, most_us;     /* between: latency of one NIC */
  double least_pcie_GBps, most_pcie_GBps; /* between: slowest PCIe link; groups that cross none match any bounds */
  double least_gpus, most_gpus;           /* between: GPUs of a node, "node_gpus" */
  double limit_GBps; /* between: what one NIC moves at most, e.g. copies through host memory; INFINITY: no limit */
  /* between: a send is over for its sender when its bytes are in the socket's buffer, so that the wire delays its
   * arrival and nothing behind it ("buffered_sends") */
  bool buffers_sends;
  /* between: the latency of one NIC that the library's choice goes by, whatever the wire's ("tuner_nic_us"); INFINITY:
   * it knows the wire */
  double tuner_nic_us;
  double launch_us;
  double local; /* inside: passes of a member's own share through its memory, in crossings of the wire */
  pl_protocol_cost cost[PL_TUNED_COUNT][PL_PROTOCOL_COUNT];
} pl_wiring;

typedef struct pl_collective_profile {
  const char *path;
  uint64_t digest; /* of the file */
  const char *library, *provenance;
  const pl_wiring *inside, *between;
  uint32_t n_inside, n_between;
} pl_collective_profile;

/* Strings and arrays in `arena`. A mistake is one message with file, line, value and what is allowed. */
pl_code pl_collective_profile_load(const char *path, pl_arena *arena, pl_collective_profile *profile, pl_error *error);
/* The same from memory; `name` stands for the path in messages. */
pl_code pl_collective_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                    pl_collective_profile *profile, pl_error *error);
/* What `choice` (of --collective-profile) means for a platform file: "ideal": NULL. A path: that. NULL: "collectives/
 * nccl.json" beside the platform file, else the one that comes with Paceline. */
pl_code pl_collective_profile_path(const char *choice, const char *platform_path, pl_arena *arena, const char **path,
                                   pl_error *error);

/* What a group's links are, as far as entries are matched. Zero rates: no such link. */
typedef struct pl_wiring_facts {
  double nvlink_GBps, pcie_GBps, nic_GBps; /* slowest of its kind */
  double nic_us;                           /* largest latency of one NIC */
  uint32_t node_gpus;                      /* of the group's nodes, on the one that has most */
  bool inside, between;                    /* hops inside and between nodes */
  bool host;                               /* some hop crosses a link of kind cpu: memory of the host, or its bus */
} pl_wiring_facts;

/* The entries of a group; NULL where none matches or there are no such hops. */
void pl_collective_profile_match(const pl_collective_profile *profile, const pl_wiring_facts *facts,
                                 const pl_wiring **inside, const pl_wiring **between);

/* What the nodes of one kind do of a work, where a group has nodes of several (netmodel/collective/collective_kinds.c):
 * the fields are those of pl_tuned_work, for these nodes alone. */
typedef struct pl_tuned_kind {
  const pl_wiring *inside, *between; /* inside: NULL for nodes with one member */
  uint32_t inside_steps, between_steps;
  double inside_us, between_us, nic_us, nic_GBps, local_us;
} pl_tuned_kind;

/* One algorithm for one collective, priced at nominal rates. */
typedef struct pl_tuned_work {
  pl_tuned algorithm;
  double latency_us;                    /* of the routes */
  uint32_t inside_steps, between_steps; /* one after another */
  double inside_us, between_us;         /* bytes / nominal rate on the busiest link of the level, one byte per byte */
  double nic_us;                        /* as between_us, on the busiest NIC alone */
  double nic_GBps;                      /* of the slowest NIC; 0: none */
  double local_us;                      /* a member's own share at the nominal rate inside */
  const pl_tuned_kind *kinds;           /* of a mixed group, which they price; n_kinds 0: all nodes are of one */
  uint32_t n_kinds;
  double round_bytes; /* of a ring that goes round in pieces: what a member has in one of NCCL's channels; 0: no ring */
} pl_tuned_work;

typedef struct pl_tuned_time {
  pl_protocol protocol;
  double latency_us, transfer_us; /* INFINITY: the profile does not know this algorithm here */
} pl_tuned_time;

/* The fastest protocol for `work`; LL before LL128 before Simple when equal. The entries are those of a group of like
 * nodes: works of mixed ones have their own. O(1). */
pl_tuned_time pl_tuned_time_of(const pl_wiring *inside, const pl_wiring *between, const pl_tuned_work *work);
/* Under that protocol. */
pl_tuned_time pl_tuned_time_under(const pl_wiring *inside, const pl_wiring *between, const pl_tuned_work *work,
                                  pl_protocol protocol);

#endif
