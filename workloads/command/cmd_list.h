/* `paceline list`: the names that options take, of what comes with Paceline. */
#ifndef PL_WORKLOADS_CMD_LIST_H
#define PL_WORKLOADS_CMD_LIST_H

int pl_cmd_list(int argc, char **argv);

#endif
