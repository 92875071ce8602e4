/* What the words of a row's column `interconnect` say of the network between nodes. Internal to validation/rows. */
#ifndef PL_VALIDATION_ROW_NETWORK_H
#define PL_VALIDATION_ROW_NETWORK_H

#include <stdbool.h>

/* The number that ends in front of `at`, blanks between; `start` is where it begins, `at` when there is none. */
double pl_row_number_before(const char *text, const char *at, const char **start);

/* NCCL over TCP sockets: said so, or Ethernet without any word of RDMA; not the Ethernet of storage and management. */
bool pl_row_runs_over_sockets(const char *text);
/* An Ethernet, or InfiniBand that is switched off: the rate of the machine's NICs is not theirs. */
bool pl_row_names_ethernet(const char *text);

/* What a message between nodes takes beside the machines' own latencies, "delay 10 ms"; 0: none is said. False: the
 * word is there and no time behind it. */
bool pl_row_delay_of(const char *text, double *delay_s);

/* Of the NICs that training uses, not NVLink's, PCIe's, storage's or management's; all 0: none is said. */
typedef struct pl_row_rate {
  double node_GBps; /* of all NICs of a node together: "800 Gb/s per node", "8x200Gb HDR", "4x HDR" */
  double each_GBps; /* without a word of how many: "InfiniBand 200Gb/s", "100Gbps" */
  bool is_port; /* `each_GBps` stands beside the name of a port (InfiniBand, RoCE, HDR ...), whose rate is a NIC's */
} pl_row_rate;

/* A rate in numbers, else by the generation's name (EDR 100, HDR 200, NDR 400 Gb/s); with a count if any is said with
 * one. `n_gpus`: GPUs of a node, for rates per GPU. Over sockets a node has one interface. */
pl_row_rate pl_row_rate_of(const char *text, double n_gpus, bool is_socket);

#endif
