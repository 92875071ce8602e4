/* `paceline show`: the rows of a results file that a user asks for, as a table, CSV or JSON. */
#ifndef PL_SEARCH_CMD_SHOW_H
#define PL_SEARCH_CMD_SHOW_H

int pl_cmd_show(int argc, char **argv);

#endif
