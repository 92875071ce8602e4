/* `paceline trace import` and `paceline trace check`: what a job's ranks recorded, into one file, and what is in it. */
#ifndef PL_SEARCH_TRACE_CMD_TRACE_H
#define PL_SEARCH_TRACE_CMD_TRACE_H

int pl_cmd_trace(int argc, char **argv);

#endif
