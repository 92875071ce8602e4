/* `paceline search`: the fastest strategy that fits, by one of several methods. */
#ifndef PL_SEARCH_CMD_SEARCH_H
#define PL_SEARCH_CMD_SEARCH_H

int pl_cmd_search(int argc, char **argv);

#endif
