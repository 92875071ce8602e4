/* `paceline simulate --from sweep.h5:17` and `paceline explain --from ...`: a row of a sweep's or a search's results,
 * as it was simulated there. Results are HDF5, which the commands themselves (workloads/command) do not read: here the
 * row becomes their options, and everything else is theirs. */
#ifndef PL_SEARCH_ROW_AGAIN_H
#define PL_SEARCH_ROW_AGAIN_H

int pl_cmd_simulate_again(int argc, char **argv);
int pl_cmd_explain_again(int argc, char **argv);

#endif
