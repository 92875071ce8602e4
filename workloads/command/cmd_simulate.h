/* `paceline simulate`: one strategy, in full. */
#ifndef PL_WORKLOADS_CMD_SIMULATE_H
#define PL_WORKLOADS_CMD_SIMULATE_H

int pl_cmd_simulate(int argc, char **argv);

#endif
