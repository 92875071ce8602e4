/* `paceline explain`: where each second of one strategy's iteration comes from, op by op. */
#ifndef PL_WORKLOADS_CMD_EXPLAIN_H
#define PL_WORKLOADS_CMD_EXPLAIN_H

int pl_cmd_explain(int argc, char **argv);

#endif
