/* `paceline list`: an entry of the front door's table (core/system/command.h). */
#ifndef PL_WORKLOADS_CMD_LIST_H
#define PL_WORKLOADS_CMD_LIST_H

int pl_cmd_list(int argc, char **argv);

#endif
