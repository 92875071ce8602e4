/* `paceline report`: an entry of the front door's table (core/system/command.h). */
#ifndef PL_SEARCH_CMD_REPORT_H
#define PL_SEARCH_CMD_REPORT_H

int pl_cmd_report(int argc, char **argv);

#endif
