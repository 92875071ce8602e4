/* `paceline launch`: an entry of the front door's table (core/system/command.h). */
#ifndef PL_SEARCH_CMD_LAUNCH_H
#define PL_SEARCH_CMD_LAUNCH_H

int pl_cmd_launch(int argc, char **argv);

#endif
