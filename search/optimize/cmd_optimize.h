/* paceline optimize: what would make a recorded step shorter, as a plan that frameworks read. */
#ifndef PL_SEARCH_CMD_OPTIMIZE_H
#define PL_SEARCH_CMD_OPTIMIZE_H

int pl_cmd_optimize(int argc, char **argv);

#endif
