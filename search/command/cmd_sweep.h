/* `paceline sweep`: every candidate of the space, simulated over ranks and threads, into an HDF5 file. */
#ifndef PL_SEARCH_CMD_SWEEP_H
#define PL_SEARCH_CMD_SWEEP_H

int pl_cmd_sweep(int argc, char **argv);

#endif
