/* What the words of a row's column `interconnect` say of the network between nodes. Internal to validation/rows. */
#ifndef PL_VALIDATION_ROW_NETWORK_H
#define PL_VALIDATION_ROW_NETWORK_H

#include <stdbool.h>

/* The number that ends in front of `at`, blanks between; `start` is where it begins, `at` when there is none. */
double pl_row_number_before(const char *text, const char *at, const char **start);

/* NCCL over TCP sockets: said so, or Ethernet without any word of RDMA; not the Ethernet of storage and management. */
bool pl_row_runs_over_sockets(const char *text);

/* "400Gbps per node", "8x200Gb HDR": the rate of all NICs of a node with `n_gpus` GPUs together, GB/s; 0 when no such
 * words are there. */
double pl_row_node_rate_GBps(const char *text, double n_gpus, bool is_socket);

#endif
