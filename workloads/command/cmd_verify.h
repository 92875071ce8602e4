/* `paceline verify`. */
#ifndef PL_WORKLOADS_CMD_VERIFY_H
#define PL_WORKLOADS_CMD_VERIFY_H

int pl_cmd_verify(int argc, char **argv);

#endif
