/* paceline strategy check|show. */
#ifndef PL_WORKLOADS_CMD_STRATEGY_H
#define PL_WORKLOADS_CMD_STRATEGY_H

int pl_cmd_strategy(int argc, char **argv);

#endif
