/* The command `paceline platform check|show|make`. */
#ifndef PL_NETMODEL_CMD_PLATFORM_H
#define PL_NETMODEL_CMD_PLATFORM_H

/* See pl_command (core/system/command.h). */
int pl_cmd_platform(int argc, char **argv);

#endif
