/* `paceline compare`: an entry of the front door's table (core/system/command.h). */
#ifndef PL_SEARCH_CMD_COMPARE_H
#define PL_SEARCH_CMD_COMPARE_H

int pl_cmd_compare(int argc, char **argv);

#endif
