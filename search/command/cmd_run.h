/* `paceline run`. */
#ifndef PL_SEARCH_CMD_RUN_H
#define PL_SEARCH_CMD_RUN_H

int pl_cmd_run(int argc, char **argv);

#endif
