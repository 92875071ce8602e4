/* `paceline replay`: a recorded step played again, as it was and as it would be. */
#ifndef PL_SEARCH_TRACE_CMD_REPLAY_H
#define PL_SEARCH_TRACE_CMD_REPLAY_H

int pl_cmd_replay(int argc, char **argv);

#endif
