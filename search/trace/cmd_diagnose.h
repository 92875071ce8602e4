/* `paceline diagnose`: where a recorded step's time goes, and what would shorten it. */
#ifndef PL_SEARCH_TRACE_CMD_DIAGNOSE_H
#define PL_SEARCH_TRACE_CMD_DIAGNOSE_H

int pl_cmd_diagnose(int argc, char **argv);

#endif
