/* `paceline program`: programs (workloads/language/) as text: printing and checking them. */
#ifndef PL_WORKLOADS_CMD_PROGRAM_H
#define PL_WORKLOADS_CMD_PROGRAM_H

int pl_cmd_program(int argc, char **argv);

#endif
